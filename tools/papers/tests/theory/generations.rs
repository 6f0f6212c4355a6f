//! A2: the pair of Bloom filters that both answer.

use echoless::FilterSpec;
use echoless_papers::theory::generations::{insertions_to_half_fill, pair_fpr};

use crate::trial::{fresh_keys, probed_fpr};

/// The highest FPR over four generations.
fn highest_fpr(hashes: u32, rotate: &str) -> f64 {
    let bytes = 1 << 16;
    let text = format!("a2:k={hashes},rotate={rotate},memory={bytes}");
    let spec: FilterSpec = echoless_papers::parse(&text).expect("valid");
    let mut filter = spec.build().expect("small");
    let capacity = insertions_to_half_fill(bytes * 4, hashes);
    let mut highest = 0.0_f64;
    for (key, arrivals) in fresh_keys(4 * capacity).zip(1..) {
        filter.observe_one(key);
        if arrivals > capacity && arrivals % (capacity / 40) == 0 {
            highest = highest.max(probed_fpr(&*filter, 100_000));
        }
    }
    highest
}

#[test]
fn a_pair_that_rotates_by_fill_keeps_the_computed_fpr_and_one_that_counts_exceeds_it() {
    for hashes in [2, 4, 6] {
        let expected = pair_fpr(hashes);
        let by_fill = highest_fpr(hashes, "fill");
        assert!(
            (0.93..1.02).contains(&(by_fill / expected)),
            "k {hashes}: {by_fill}"
        );
    }
    assert!(highest_fpr(2, "count") > 1.1 * pair_fpr(2));
}
