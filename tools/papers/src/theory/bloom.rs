//! The Bloom filter that never forgets (Bloom 1970), and when a growing filter opens the next one
//! (paper 001, section 5).

use echoless::extend::poisson;

/// The fraction of bits set once `keys` distinct keys are in `bits` bits, k each: 1 - e^(-k n / M).
///
/// Simulations agree within 0.01.
///
/// # Examples
/// ```
/// // One hash and a key for each ten bits.
/// assert!((echoless_papers::theory::bloom::fill(1, 100_000, 1_000_000) - 0.0952).abs() < 0.0001);
/// ```
#[must_use]
pub fn fill(hashes: u32, keys: u64, bits: u64) -> f64 {
    let insertions_per_bit = f64::from(hashes) * keys as f64 / bits as f64;
    -(-insertions_per_bit).exp_m1()
}

/// The FPR once `keys` distinct keys are in `bits` bits, k each: (1 - e^(-k n / M))^k, the
/// probability that all k bits of another key are set.
///
/// Simulations agree within 3 % of it.
///
/// # Examples
/// ```
/// use echoless_papers::theory::bloom::fpr;
/// // Ten bits a key and seven hashes: a bit below one percent.
/// assert!((fpr(7, 1_000_000, 10_000_000) - 0.0082).abs() < 0.0001);
/// ```
#[must_use]
pub fn fpr(hashes: u32, keys: u64, bits: u64) -> f64 {
    fill(hashes, keys, bits).powi(hashes as i32)
}

/// The FPR of the line form once `keys` distinct keys are in `lines` lines: that of each line, k
/// filters of 512/k bits, averaged over the Poisson number of keys in a line.
///
/// Simulations agree within 3 % of it.
///
/// With q = 1 - k/512 that is the mean of (1 - q^j)^k over a Poisson number j of mean n/L, summed
/// term by term. Its closed form, an alternating sum, loses all digits from k = 12 on.
///
/// # Examples
/// ```
/// use echoless_papers::theory::bloom::{fpr, line_fpr};
/// // Lines fill unevenly, which costs little while each holds many keys.
/// let (scattered, line) = (fpr(2, 250_000, 1 << 19), line_fpr(2, 250_000, 1 << 10));
/// assert!(line > scattered && line < 1.01 * scattered);
/// ```
#[must_use]
pub fn line_fpr(hashes: u32, keys: u64, lines: u64) -> f64 {
    let keys_per_line = keys as f64 / lines as f64;
    let ln_q = (-f64::from(hashes) / 512.0).ln_1p();
    poisson::mean_of(keys_per_line, |keys| {
        (-(ln_q * keys as f64).exp_m1()).powi(hashes as i32)
    })
}

/// The number of hashes with the lowest FPR, M ln2 / n rounded to the better neighbour; at least 1,
/// at most 64.
///
/// # Examples
/// ```
/// use echoless_papers::theory::bloom::best_hashes;
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

/// The density threshold of a filter of `cells` cells, k for each key: z = m p^(1/k), the number of
/// set cells at which its FPR is p (paper 001, section 5).
///
/// # Examples
/// ```
/// use echoless_papers::theory::bloom::density_threshold;
/// // A quarter of the keys find both of their cells set once half of them are.
/// assert_eq!(density_threshold(1000, 2, 0.25), 500.0);
/// ```
#[must_use]
pub fn density_threshold(cells: u64, hashes: u32, fpr: f64) -> f64 {
    cells as f64 * fpr.powf(1.0 / f64::from(hashes))
}

/// The cardinality threshold of a filter of `cells` cells, k for each key:
/// n = -(m/k) ln(1 - p^(1/k)), the number of keys at which its FPR is p (paper 001, section 5; the
/// solution of its equation 2).
///
/// A growing filter exceeds p a little at that number: only keys that miss are inserted, and those
/// set more new cells than others.
///
/// # Examples
/// ```
/// use echoless_papers::theory::bloom::{cardinality_threshold, fpr};
/// let keys = cardinality_threshold(1 << 20, 8, 0.01);
/// assert!((fpr(8, keys as u64, 1 << 20) - 0.01).abs() < 1e-6);
/// ```
#[must_use]
pub fn cardinality_threshold(cells: u64, hashes: u32, fpr: f64) -> f64 {
    let hashes = f64::from(hashes);
    -(cells as f64 / hashes) * (-fpr.powf(1.0 / hashes)).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean by its definition, over every number of keys that a line can plausibly have.
    fn plain_line_fpr(hashes: u32, keys_per_line: f64) -> f64 {
        let mut probability = (-keys_per_line).exp();
        let mut sum = 0.0;
        for keys in 0..2000 {
            let set = 1.0 - (1.0 - f64::from(hashes) / 512.0).powi(keys);
            sum += probability * set.powi(hashes as i32);
            probability *= keys_per_line / f64::from(keys + 1);
        }
        sum
    }

    #[test]
    fn the_line_fpr_keeps_its_digits_for_any_number_of_hashes() {
        for hashes in 1..=64 {
            for keys_per_line in [1, 10, 60, 500] {
                let expected = plain_line_fpr(hashes, keys_per_line as f64);
                let fpr = line_fpr(hashes, keys_per_line << 20, 1 << 20);
                assert!(
                    (fpr / expected - 1.0).abs() < 1e-9,
                    "k {hashes}, {keys_per_line} keys a line: {fpr}, expected {expected}"
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
