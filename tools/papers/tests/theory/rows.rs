//! Rows of fingerprints.

use echoless::{Filter, FilterSpec};
use echoless_papers::theory::rows::{cuckoo_fpr, qht_fpr, queue_fnr_at_age, with_duplicates_fpr};

use crate::trial::{assert_close, fnr_at_gap, fresh_keys, probed_fpr};

fn build(name: &str, slots: u32, bits: u32, bytes: u64) -> Box<dyn Filter> {
    let text = format!("{name}:slots={slots},bits={bits},memory={bytes},seed=2");
    let spec: FilterSpec = echoless_papers::parse(&text).expect("valid");
    spec.build().expect("small")
}

#[test]
fn the_fpr_of_a_qht_grows_as_computed() {
    for (slots, bits) in [(1, 3), (2, 5), (4, 6), (8, 5), (16, 6)] {
        let mut filter = build("qht", slots, bits, 30_000);
        let fingerprints = (1 << bits) - 1;
        let all_slots = filter.tally().cells.expect("slots").total;
        let rows = all_slots / u64::from(slots);
        for (key, arrivals) in fresh_keys(8 * all_slots).zip(1..) {
            filter.observe_one(key);
            if arrivals % all_slots == 0 || arrivals == all_slots / 2 {
                let expected = qht_fpr(slots, fingerprints, rows, arrivals);
                let case = format!("{slots} slots at {arrivals}");
                assert_close(probed_fpr(&*filter, 300_000), expected, 0.02, &case);
            }
        }
    }
}

#[test]
fn filters_with_duplicates_reach_their_limit() {
    for name in ["qhtd", "qqhtd"] {
        let mut filter = build(name, 4, 4, 10_000);
        for key in fresh_keys(400_000) {
            filter.observe_one(key);
        }
        let measured = probed_fpr(&*filter, 300_000);
        assert_close(measured, with_duplicates_fpr(4, 15), 0.02, name);
    }
}

#[test]
fn cuckoo_filters_reach_their_limit() {
    for (slots, bits) in [(1, 6), (4, 8)] {
        let mut filter = build("cuckoo", slots, bits, 8192);
        for key in fresh_keys(300_000) {
            filter.observe_one(key);
        }
        let measured = probed_fpr(&*filter, 500_000);
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
        let mut filter = build("qqhtd", slots, bits, bytes);
        let measured = fnr_at_gap(&mut *filter, age, 60_000);
        let expected = queue_fnr_at_age(age, slots, 255, rows);
        assert!(
            (measured - expected).abs() < 0.01,
            "age {age}: {measured}, expected {expected}"
        );
    }
}
