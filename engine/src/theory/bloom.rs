//! The Bloom filter that never forgets.

use super::counts::poisson_mean;

/// The FPR once `keys` distinct keys are in `bits` bits, k each: (1 - e^(-k n / M))^k (Bloom 1970). Simulations agree within 3 % of it.
///
/// # Examples
/// ```
/// use echoless::theory::bloom::fpr;
/// // Ten bits a key and seven hashes: a bit below one percent.
/// assert!((fpr(7, 1_000_000, 10_000_000) - 0.0082).abs() < 0.0001);
/// ```
#[must_use]
pub fn fpr(hashes: u32, keys: u64, bits: u64) -> f64 {
    let load = f64::from(hashes) * keys as f64 / bits as f64;
    (-(-load).exp_m1()).powi(hashes as i32)
}

/// The FPR of the line form once `keys` distinct keys are in `lines` lines: that of each line, k filters of 512/k bits, averaged over the Poisson number
/// of keys in a line. Simulations agree within 3 % of it.
///
/// With q = 1 - k/512 that is the mean of (1 - q^j)^k over a Poisson number j of mean n/L, summed term by term: its closed form, an alternating sum,
/// loses all digits from k = 12 on.
///
/// # Examples
/// ```
/// use echoless::theory::bloom::{fpr, line_fpr};
/// // Lines are filled unevenly, which costs little while they are full of keys.
/// let (spread, in_lines) = (fpr(2, 250_000, 1 << 19), line_fpr(2, 250_000, 1 << 10));
/// assert!(in_lines > spread && in_lines < 1.01 * spread);
/// ```
#[must_use]
pub fn line_fpr(hashes: u32, keys: u64, lines: u64) -> f64 {
    let load = keys as f64 / lines as f64;
    let free = (-f64::from(hashes) / 512.0).ln_1p();
    poisson_mean(load, |keys| {
        (-(free * keys as f64).exp_m1()).powi(hashes as i32)
    })
}

/// The number of hashes with the lowest FPR, M ln2 / n rounded to the better neighbour; at least 1, at most 64.
///
/// # Examples
/// ```
/// use echoless::theory::bloom::best_hashes;
/// assert_eq!(best_hashes(1_000_000, 10_000_000), 7);
/// assert_eq!(best_hashes(1_000_000, 500_000), 1);
/// ```
#[must_use]
pub fn best_hashes(keys: u64, bits: u64) -> u32 {
    let exact = bits as f64 / keys as f64 * std::f64::consts::LN_2;
    let below = (exact.floor() as u32).clamp(1, 64);
    let above = (below + 1).min(64);
    if fpr(above, keys, bits) < fpr(below, keys, bits) {
        above
    } else {
        below
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::Filter;
    use crate::filters::lines::{LineKind, LineSpec};
    use crate::filters::scattered::bits::{Ageing, BitsSpec};
    use crate::theory::trial::{fresh_keys, probed_fpr};

    #[test]
    fn the_fpr_is_that_of_the_filter() {
        for (hashes, keys) in [(1, 20_000), (2, 60_000), (4, 100_000), (4, 400_000)] {
            let spec = BitsSpec {
                hashes,
                ageing: Ageing::Never,
            };
            let mut filter = spec.build(1 << 16, 0).expect("valid");
            for key in fresh_keys(keys) {
                filter.observe_one(key);
            }
            let expected = fpr(hashes, keys, 1 << 19);
            let measured = probed_fpr(&filter, 400_000);
            assert!(
                (measured / expected - 1.0).abs() < 0.03,
                "k {hashes}, {keys} keys: {measured} for {expected}"
            );
        }
    }

    #[test]
    fn the_fpr_in_lines_is_that_of_the_filter() {
        for (hashes, keys) in [
            (1, 20_000),
            (2, 60_000),
            (3, 80_000),
            (4, 100_000),
            (4, 400_000),
            (16, 60_000),
            (64, 30_000),
        ] {
            let spec = LineKind::Bits(BitsSpec {
                hashes,
                ageing: Ageing::Never,
            });
            let mut filter = LineSpec::new(spec, 1 << 16).build().expect("valid");
            for key in fresh_keys(keys) {
                filter.observe_one(key);
            }
            let expected = line_fpr(hashes, keys, 1 << 10);
            let measured = probed_fpr(&*filter, 400_000);
            assert!(
                (measured / expected - 1.0).abs() < 0.03,
                "k {hashes}, {keys} keys: {measured} for {expected}"
            );
        }
    }

    /// The mean over every number of keys that a line is at all likely to have, by the definition.
    fn plain_line_fpr(hashes: u32, load: f64) -> f64 {
        let mut probability = (-load).exp();
        let mut sum = 0.0;
        for keys in 0..2000 {
            let set = 1.0 - (1.0 - f64::from(hashes) / 512.0).powi(keys);
            sum += probability * set.powi(hashes as i32);
            probability *= load / f64::from(keys + 1);
        }
        sum
    }

    #[test]
    fn no_digits_are_lost_in_lines_with_any_number_of_hashes() {
        for hashes in 1..=64 {
            for load in [1, 10, 60, 500] {
                let expected = plain_line_fpr(hashes, load as f64);
                let fpr = line_fpr(hashes, load << 20, 1 << 20);
                assert!(
                    (fpr / expected - 1.0).abs() < 1e-9,
                    "k {hashes}, {load} keys a line: {fpr} for {expected}"
                );
            }
        }
        let few = line_fpr(64, 1 << 20, 1 << 20);
        assert!((few / 1.8e-15 - 1.0).abs() < 0.05, "{few}");
        assert_eq!(line_fpr(64, 0, 1 << 20), 0.0);
        assert_eq!(line_fpr(2, u64::MAX, 1), 1.0);
    }

    #[test]
    fn no_other_number_of_hashes_is_better() {
        for bits in [100_000, 1_000_000, 3_456_789, 30_000_000] {
            let best = best_hashes(1_000_000, bits);
            for hashes in 1..=64 {
                assert!(fpr(best, 1_000_000, bits) <= fpr(hashes, 1_000_000, bits));
            }
        }
    }
}
