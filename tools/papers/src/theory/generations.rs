//! Generations of Bloom filters: the parameters of A2 (Yoon 2010; paper 002, section 6.1, bounds
//! its FPR).

/// k from a bound f on the FPR of the pair, in (0, 1): floor(-log2(1 - sqrt(1 - f))), at least 1.
/// It follows from f = 1 - (1 - f1)^2, f1 being the FPR of one generation.
///
/// The floor is the paper's: near the end of a generation the FPR may exceed f, by at most a factor
/// of two; [`pair_fpr`] gives the exact value.
///
/// # Examples
/// ```
/// use echoless_papers::theory::generations::pair_hashes;
/// assert_eq!(pair_hashes(0.1), 4);
/// assert_eq!(pair_hashes(1e-30), 100);
/// ```
#[must_use]
pub fn pair_hashes(fpr: f64) -> u32 {
    // 1 - sqrt(1 - f) as f / (1 + sqrt(1 - f)): no difference of two nearly equal numbers.
    let one = fpr / (1.0 + (1.0 - fpr).sqrt());
    (-one.log2()).floor().max(1.0) as u32
}

/// The FPR of a pair of half-filled generations: 1 - (1 - 2^-k)^2.
///
/// The highest FPR of a pair that rotates by fill is within 2 % of it. A pair that rotates by count
/// exceeds it (0.505 instead of 0.4375 at k = 2, 4 % more at k = 4), because only keys that miss
/// are inserted, and those set more new bits than others.
///
/// # Examples
/// ```
/// let fpr = echoless_papers::theory::generations::pair_fpr(4);
/// assert!((fpr - 0.121).abs() < 0.001);
/// ```
#[must_use]
pub fn pair_fpr(hashes: u32) -> f64 {
    let one = 0.5_f64.powi(hashes as i32);
    // 1 - (1 - x)^2 = x (2 - x), which keeps the digits of a small x.
    one * (2.0 - one)
}

/// The number of insertions of arbitrary keys that set half of the bits of one generation:
/// floor(bits ln2 / k). For a pair in M bits, `bits` is M/2.
///
/// # Examples
/// ```
/// assert_eq!(echoless_papers::theory::generations::insertions_to_half_fill(1_000_000, 4), 173_286);
/// ```
#[must_use]
pub fn insertions_to_half_fill(bits: u64, hashes: u32) -> u64 {
    (bits as f64 * std::f64::consts::LN_2 / f64::from(hashes)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fpr_exceeds_its_bound_by_less_than_a_factor_of_two() {
        for fpr in [0.5, 0.25, 0.1, 0.01, 0.001, 1e-9, 1e-14] {
            let reached = pair_fpr(pair_hashes(fpr));
            assert!(reached < 2.0 * fpr, "{fpr}: {reached}");
            assert!(pair_fpr(pair_hashes(fpr) + 1) <= fpr);
        }
    }

    #[test]
    fn a_power_of_two_gives_its_exponent_however_small() {
        // A pair of generations of 2^-k each has an FPR of 2^(1 - k) - 2^-2k. A bound slightly
        // above it needs one hash less; a bound slightly below it needs k.
        for hashes in 2..=200 {
            let one = 0.5_f64.powi(hashes);
            let fpr = one * (2.0 - one);
            assert_eq!(pair_hashes(fpr * (1.0 - 1e-9)), hashes as u32);
            assert_eq!(pair_hashes(fpr * (1.0 + 1e-9)), hashes as u32 - 1);
        }
    }
}
