//! Rows of fingerprints: quotient hash tables and their queues (paper 002, sections 4 and 5).
//!
//! R rows of k slots; S usable fingerprints. The streams are uniform over an alphabet much larger
//! than the table.

use echoless::extend::{binomial, poisson};

/// The FPR of a QHT after `arrivals` keys: the mean number of occupied slots in a row, over S. Its
/// limit is k/S.
///
/// Within 2 % of simulations.
///
/// A row that is not yet full holds each fingerprint that arrived at it once, so it holds min(B, k)
/// of them, with B of Binomial(S, 1 - (1 - 1/(RS))^m). For one slot that is the paper's
/// (k/S)(1 - (1 - 1/(kR))^m) (theorem 4.1); for more slots the paper's formula is up to 30 % too
/// low while rows fill.
///
/// # Examples
/// ```
/// let fpr = echoless_papers::theory::rows::qht_fpr(1, 7, 1_000_000, 100_000_000);
/// assert!((fpr - 1.0 / 7.0).abs() < 1e-9);
/// ```
#[must_use]
pub fn qht_fpr(slots: u32, fingerprints: u64, rows: u64, arrivals: u64) -> f64 {
    let one_of_all = 1.0 / (rows as f64 * fingerprints as f64);
    let arrived = -(arrivals as f64 * (-one_of_all).ln_1p()).exp_m1();
    let full = f64::from(slots);
    if arrived >= 1.0 {
        return full.min(fingerprints as f64) / fingerprints as f64;
    }
    // The fraction of rows that are not full, and the mean number of their occupied slots.
    let (mut not_full, mut occupied) = (0.0, 0.0);
    for (count, term) in (0..slots).zip(binomial::terms(fingerprints, arrived)) {
        not_full += term;
        occupied += f64::from(count) * term;
    }
    (occupied + full * (1.0 - not_full).max(0.0)) / fingerprints as f64
}

/// The limit of the FPR where a row may hold a fingerprint several times, as in QHTD and QQHTD:
/// 1 - (1 - 1/S)^k.
///
/// Within 2 % of simulations.
///
/// # Examples
/// ```
/// let fpr = echoless_papers::theory::rows::with_duplicates_fpr(4, 15);
/// assert!((fpr - 0.2411).abs() < 0.0001);
/// ```
#[must_use]
pub fn with_duplicates_fpr(slots: u32, fingerprints: u64) -> f64 {
    1.0 - (1.0 - 1.0 / fingerprints as f64).powi(slots as i32)
}

/// The limit of a cuckoo filter's FPR on an endless stream: 1 - (1 - 1/S)^(2k), as two rows are
/// searched.
///
/// Within 5 % of simulations for S of 63 and more.
///
/// # Examples
/// ```
/// let fpr = echoless_papers::theory::rows::cuckoo_fpr(4, 4095);
/// assert!((fpr - 8.0 / 4095.0).abs() < 0.0001);
/// ```
#[must_use]
pub fn cuckoo_fpr(slots: u32, fingerprints: u64) -> f64 {
    with_duplicates_fpr(2 * slots, fingerprints)
}

/// The probability that a QQHTD misses a duplicate `age` arrivals after the last arrival of its
/// key: P(Poisson(age/R) >= k) (1 - 1/S)^k.
///
/// Within 0.01 of simulations.
///
/// # Examples
/// ```
/// use echoless_papers::theory::rows::queue_fnr_at_age;
/// assert_eq!(queue_fnr_at_age(0, 4, 4095, 1000), 0.0);
/// assert!(queue_fnr_at_age(1000, 4, 4095, 1000) < 0.02);
/// assert!(queue_fnr_at_age(20_000, 4, 4095, 1000) > 0.99);
/// ```
#[must_use]
pub fn queue_fnr_at_age(age: u64, slots: u32, fingerprints: u64, rows: u64) -> f64 {
    let evicted = poisson::at_least(age as f64 / rows as f64, u64::from(slots));
    evicted * (1.0 - with_duplicates_fpr(slots, fingerprints))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fpr_of_one_slot_is_that_of_the_paper() {
        for arrivals in [1, 1000, 100_000, 10_000_000] {
            let printed = -(arrivals as f64 * (-1.0 / 30_000.0_f64).ln_1p()).exp_m1() / 7.0;
            let fpr = qht_fpr(1, 7, 30_000, arrivals);
            let error = (fpr / printed - 1.0).abs();
            assert!(error < 1e-4, "{arrivals}: {fpr}, expected {printed}");
        }
        assert_eq!(qht_fpr(4, 63, 1000, 0), 0.0);
        assert_eq!(qht_fpr(4, 63, 1000, u64::MAX), 4.0 / 63.0);
    }
}
