//! Rows of fingerprints: quotient hash tables and their queues (paper 002, sections 4 and 5).
//!
//! R rows of k slots; S usable fingerprints. The streams are uniform over an alphabet much larger than the table.

use super::counts::{binomial_terms, poisson_mean};

/// The FPR of a QHT after `arrivals` keys: the mean number of slots taken in a row, over S. Its limit is k/S. Within 2 % of simulations.
///
/// A row that is not yet full holds each fingerprint that came to it, so the number it holds is min(B, k) with B of Binomial(S, 1 - (1 - 1/(RS))^m). For
/// one slot that is the paper's (k/S)(1 - (1 - 1/(kR))^m) (theorem 4.1), which for more is up to 30 % too low while rows fill.
///
/// # Examples
/// ```
/// let fpr = echoless::theory::rows::qht_fpr(1, 7, 1_000_000, 100_000_000);
/// assert!((fpr - 1.0 / 7.0).abs() < 1e-9);
/// ```
#[must_use]
pub fn qht_fpr(slots: u32, fingerprints: u64, rows: u64, arrivals: u64) -> f64 {
    let one_of_all = 1.0 / (rows as f64 * fingerprints as f64);
    let came = -(arrivals as f64 * (-one_of_all).ln_1p()).exp_m1();
    let full = f64::from(slots);
    if came >= 1.0 {
        return full.min(fingerprints as f64) / fingerprints as f64;
    }
    // Rows that are not full, and the slots taken in them.
    let (mut share, mut taken) = (0.0, 0.0);
    for (count, term) in (0..slots).zip(binomial_terms(fingerprints, came)) {
        share += term;
        taken += f64::from(count) * term;
    }
    (taken + full * (1.0 - share).max(0.0)) / fingerprints as f64
}

/// The limit of the FPR where a row may hold a fingerprint several times, as in QHTD and QQHTD: 1 - (1 - 1/S)^k. Within 2 % of simulations.
///
/// # Examples
/// ```
/// let fpr = echoless::theory::rows::with_duplicates_fpr(4, 15);
/// assert!((fpr - 0.2411).abs() < 0.0001);
/// ```
#[must_use]
pub fn with_duplicates_fpr(slots: u32, fingerprints: u64) -> f64 {
    1.0 - (1.0 - 1.0 / fingerprints as f64).powi(slots as i32)
}

/// The limit of a cuckoo filter's FPR on an endless stream: 1 - (1 - 1/S)^(2k), for two rows are searched. Within 5 % of simulations for S of 63 and
/// more.
///
/// # Examples
/// ```
/// let fpr = echoless::theory::rows::cuckoo_fpr(4, 4095);
/// assert!((fpr - 8.0 / 4095.0).abs() < 0.0001);
/// ```
#[must_use]
pub fn cuckoo_fpr(slots: u32, fingerprints: u64) -> f64 {
    with_duplicates_fpr(2 * slots, fingerprints)
}

/// The probability that a QQHTD misses a duplicate `age` arrivals after the last arrival of its key: P(Poisson(age/R) >= k) (1 - 1/S)^k.
///
/// Within 0.01 of simulations.
///
/// # Examples
/// ```
/// use echoless::theory::rows::queue_fnr_at_age;
/// assert_eq!(queue_fnr_at_age(0, 4, 4095, 1000), 0.0);
/// assert!(queue_fnr_at_age(1000, 4, 4095, 1000) < 0.02);
/// assert!(queue_fnr_at_age(20_000, 4, 4095, 1000) > 0.99);
/// ```
#[must_use]
pub fn queue_fnr_at_age(age: u64, slots: u32, fingerprints: u64, rows: u64) -> f64 {
    let pushed_out = poisson_mean(age as f64 / rows as f64, |pushed| {
        f64::from(pushed >= u64::from(slots))
    });
    pushed_out * (1.0 - with_duplicates_fpr(slots, fingerprints))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::Filter;
    use crate::filters::scattered::rows::{
        CuckooSpec, Fingerprint, OnHit, RowEncoding, RowSpec, Victim,
    };
    use crate::theory::trial::{fnr_at_gap, fresh_keys, probed_fpr};

    fn spec(slots: u32, bits: u32, victim: Victim, on_hit: OnHit) -> RowSpec {
        RowSpec {
            slots,
            fingerprint: Fingerprint::Nonzero { bits },
            victim,
            on_hit,
            form: RowEncoding::Packed,
        }
    }

    fn agree(measured: f64, expected: f64, relative: f64, what: &str) {
        let error = (measured / expected - 1.0).abs();
        assert!(error < relative, "{what}: {measured} for {expected}");
    }

    #[test]
    fn the_fpr_of_a_qht_grows_as_computed() {
        for (slots, bits) in [(1, 3), (2, 5), (4, 6), (8, 5), (16, 6)] {
            let filter = spec(slots, bits, Victim::Random, OnHit::Keep).build(30_000, 2);
            let mut filter = filter.expect("valid");
            let (rows, fingerprints) = (filter.rows(), (1 << bits) - 1);
            let all_slots = rows * u64::from(slots);
            for (key, arrivals) in fresh_keys(8 * all_slots).zip(1..) {
                filter.observe_one(key);
                if arrivals % all_slots == 0 || arrivals == all_slots / 2 {
                    let expected = qht_fpr(slots, fingerprints, rows, arrivals);
                    let what = format!("{slots} slots at {arrivals}");
                    agree(probed_fpr(&filter, 300_000), expected, 0.02, &what);
                }
            }
        }
    }

    #[test]
    fn the_fpr_of_one_slot_is_that_of_the_paper() {
        for arrivals in [1, 1000, 100_000, 10_000_000] {
            let printed = -(arrivals as f64 * (-1.0 / 30_000.0_f64).ln_1p()).exp_m1() / 7.0;
            agree(qht_fpr(1, 7, 30_000, arrivals), printed, 1e-4, "one slot");
        }
        assert_eq!(qht_fpr(4, 63, 1000, 0), 0.0);
        assert_eq!(qht_fpr(4, 63, 1000, u64::MAX), 4.0 / 63.0);
    }

    #[test]
    fn filters_with_duplicates_reach_their_limit() {
        for victim in [Victim::Random, Victim::Oldest] {
            let filter = spec(4, 4, victim, OnHit::InsertAgain).build(10_000, 2);
            let mut filter = filter.expect("valid");
            for key in fresh_keys(400_000) {
                filter.observe_one(key);
            }
            let expected = with_duplicates_fpr(4, 15);
            agree(
                probed_fpr(&filter, 300_000),
                expected,
                0.02,
                &format!("{victim:?}"),
            );
        }
    }

    #[test]
    fn cuckoo_filters_reach_their_limit() {
        for (slots, bits) in [(1, 6), (4, 8)] {
            let spec = CuckooSpec {
                slots,
                bits,
                kicks: 4,
                form: RowEncoding::Packed,
            };
            let mut filter = spec.build(8192, 2).expect("valid");
            for key in fresh_keys(300_000) {
                filter.observe_one(key);
            }
            let expected = cuckoo_fpr(slots, (1 << bits) - 1);
            agree(
                probed_fpr(&filter, 500_000),
                expected,
                0.05,
                &format!("{slots} slots"),
            );
        }
    }

    #[test]
    fn queues_forget_by_age_as_computed() {
        let (slots, bits) = (4, 8);
        let rows = 2000;
        let bytes = rows * u64::from(slots * bits) / 8;
        for age in [500, 4000, 8000, 16_000, 60_000] {
            let filter = spec(slots, bits, Victim::Oldest, OnHit::InsertAgain).build(bytes, 0);
            let measured = fnr_at_gap(&mut filter.expect("valid"), age, 60_000);
            let expected = queue_fnr_at_age(age, slots, 255, rows);
            assert!(
                (measured - expected).abs() < 0.01,
                "age {age}: {measured} for {expected}"
            );
        }
    }
}
