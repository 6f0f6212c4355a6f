//! Rows of fingerprints.

use echoless::filters::scattered::rows::RowFilter;
use echoless::spec::{CuckooSpec, RowPolicy, RowSpec};
use echoless::theory::rows::{cuckoo_fpr, qht_fpr, queue_fnr_at_age, with_duplicates_fpr};
use echoless::{Filter, Replacement};

use crate::trial::{assert_close, fnr_at_gap, fresh_keys, probed_fpr};

const QHT: RowPolicy = RowPolicy::RandomVictim { again: false };
const QHTD: RowPolicy = RowPolicy::RandomVictim { again: true };
const QQHTD: RowPolicy = RowPolicy::Queue(Replacement::Qqhtd);

fn build(spec: RowSpec, bytes: u64) -> RowFilter {
    spec.build(bytes, 2).expect("valid")
}

#[test]
fn the_fpr_of_a_qht_grows_as_computed() {
    for (slots, bits) in [(1, 3), (2, 5), (4, 6), (8, 5), (16, 6)] {
        let mut filter = build(RowSpec::new(slots, bits, QHT), 30_000);
        let (rows, fingerprints) = (filter.rows(), (1 << bits) - 1);
        let all_slots = rows * u64::from(slots);
        for (key, arrivals) in fresh_keys(8 * all_slots).zip(1..) {
            filter.observe_one(key);
            if arrivals % all_slots == 0 || arrivals == all_slots / 2 {
                let expected = qht_fpr(slots, fingerprints, rows, arrivals);
                let case = format!("{slots} slots at {arrivals}");
                assert_close(probed_fpr(&filter, 300_000), expected, 0.02, &case);
            }
        }
    }
}

#[test]
fn filters_with_duplicates_reach_their_limit() {
    for policy in [QHTD, QQHTD] {
        let mut filter = build(RowSpec::new(4, 4, policy), 10_000);
        for key in fresh_keys(400_000) {
            filter.observe_one(key);
        }
        let measured = probed_fpr(&filter, 300_000);
        assert_close(
            measured,
            with_duplicates_fpr(4, 15),
            0.02,
            &format!("{policy:?}"),
        );
    }
}

#[test]
fn cuckoo_filters_reach_their_limit() {
    for (slots, bits) in [(1, 6), (4, 8)] {
        let mut filter = CuckooSpec::new(slots, bits).build(8192, 2).expect("valid");
        for key in fresh_keys(300_000) {
            filter.observe_one(key);
        }
        let measured = probed_fpr(&filter, 500_000);
        let expected = cuckoo_fpr(slots, (1 << bits) - 1);
        assert_close(measured, expected, 0.05, &format!("{slots} slots"));
    }
}

#[test]
fn queues_forget_by_age_as_computed() {
    let (slots, bits) = (4, 8);
    let rows = 2000;
    let bytes = rows * u64::from(slots * bits) / 8;
    for age in [500, 4000, 8000, 16_000, 60_000] {
        let mut filter = build(RowSpec::new(slots, bits, QQHTD), bytes);
        let measured = fnr_at_gap(&mut filter, age, 60_000);
        let expected = queue_fnr_at_age(age, slots, 255, rows);
        assert!(
            (measured - expected).abs() < 0.01,
            "age {age}: {measured}, expected {expected}"
        );
    }
}
