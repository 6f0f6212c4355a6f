//! Primes: the sizes of sub-tables for double hashing.

/// The largest prime up to `number`, which is 2 or more.
pub(super) fn prime_at_most(number: u64) -> u64 {
    (2..=number)
        .rev()
        .find(|candidate| is_prime(*candidate))
        .unwrap_or(2)
}

/// Miller-Rabin with the first twelve primes as bases, which decide every 64-bit number.
fn is_prime(number: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if let Some(base) = BASES.into_iter().find(|base| number.is_multiple_of(*base)) {
        return number == base;
    }
    if number < 2 {
        return false;
    }
    let multiply = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(number)) as u64;
    let power = |base: u64, mut exponent: u64| {
        let (mut square, mut result) = (base, 1);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = multiply(result, square);
            }
            square = multiply(square, square);
            exponent >>= 1;
        }
        result
    };
    let twos = (number - 1).trailing_zeros();
    BASES.into_iter().all(|base| {
        let mut root = power(base, (number - 1) >> twos);
        if root == 1 || root == number - 1 {
            return true;
        }
        (1..twos).any(|_| {
            root = multiply(root, root);
            root == number - 1
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_distinguished_from_composites() {
        let small: Vec<u64> = (0..60).filter(|number| is_prime(*number)).collect();
        assert_eq!(
            small,
            [
                2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59
            ]
        );
        // A Carmichael number, a strong pseudoprime to bases 2, 3, 5 and 7, and the largest 64-bit
        // prime.
        assert!(!is_prime(561));
        assert!(!is_prime(3_215_031_751));
        assert!(is_prime(18_446_744_073_709_551_557));
        assert_eq!(prime_at_most(100), 97);
        assert_eq!(prime_at_most(2), 2);
    }
}
