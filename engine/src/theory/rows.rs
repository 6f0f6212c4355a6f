//! Rows of fingerprints: quotient hash tables and their queues (paper 002, sections 4 and 5).
//!
//! R rows of k slots; S usable fingerprints. The streams are uniform over an alphabet much larger than the table.

/// The FPR of a QHT after `insertions` keys: (k/S)(1 - (1 - 1/(kR))^m) (theorem 4.1). Its limit is k/S.
///
/// Exact for one slot a row; for more, rows that are not yet full collide more than it says: up to 30 % more at one insertion a slot, within 2 %
/// from five on.
///
/// # Examples
/// ```
/// let fpr = echoless::theory::rows::qht_fpr(1, 7, 1_000_000, 100_000_000);
/// assert!((fpr - 1.0 / 7.0).abs() < 1e-9);
/// ```
#[must_use]
pub fn qht_fpr(slots: u32, fingerprints: u64, rows: u64, insertions: u64) -> f64 {
    let limit = f64::from(slots) / fingerprints as f64;
    let survival = -1.0 / (f64::from(slots) * rows as f64);
    limit * -(insertions as f64 * survival.ln_1p()).exp_m1()
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
    let pushed = age as f64 / rows as f64;
    let mut term = (-pushed).exp();
    let mut fewer = 0.0;
    for count in 0..slots {
        fewer += term;
        term *= pushed / f64::from(count + 1);
    }
    (1.0 - fewer).max(0.0) * (1.0 - with_duplicates_fpr(slots, fingerprints))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::Filter;
    use crate::filters::published::rows::{
        CuckooSpec, Fingerprint, OnHit, RowForm, RowSpec, Victim,
    };
    use crate::theory::trial::{fnr_at_gap, fresh_keys, probed_fpr};

    fn spec(slots: u32, bits: u32, victim: Victim, on_hit: OnHit) -> RowSpec {
        RowSpec {
            slots,
            fingerprint: Fingerprint::Nonzero { bits },
            victim,
            on_hit,
            form: RowForm::Packed,
        }
    }

    fn agree(measured: f64, expected: f64, relative: f64, what: &str) {
        let error = (measured / expected - 1.0).abs();
        assert!(error < relative, "{what}: {measured} for {expected}");
    }

    #[test]
    fn the_fpr_of_a_qht_grows_as_computed() {
        for (slots, bits) in [(1, 3), (2, 5), (4, 6)] {
            let filter = spec(slots, bits, Victim::Random, OnHit::Keep).build(30_000, 2);
            let mut filter = filter.expect("valid");
            let (rows, fingerprints) = (filter.rows(), (1 << bits) - 1);
            let all_slots = rows * u64::from(slots);
            for (key, arrivals) in fresh_keys(8 * all_slots).zip(1..) {
                filter.observe_one(key);
                let error = match (slots, arrivals / all_slots) {
                    (1, _) | (_, 5..) => 0.02,
                    _ => 0.3,
                };
                if arrivals % all_slots == 0 {
                    let expected = qht_fpr(slots, fingerprints, rows, arrivals);
                    let what = format!("{slots} slots at {arrivals}");
                    agree(probed_fpr(&filter, 300_000), expected, error, &what);
                }
            }
        }
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
                form: RowForm::Packed,
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
