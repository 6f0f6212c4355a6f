//! The Bloom filter, scattered and in lines.

use echoless::{Filter, FilterSpec};
use echoless_papers::theory::bloom::{fpr, line_fpr};

use crate::trial::{assert_close, fresh_keys, probed_fpr};

const BYTES: u64 = 1 << 16;

fn bloom(hashes: u32, form: &str) -> Box<dyn Filter> {
    let text = format!("bloom:k={hashes},form={form},memory={BYTES}");
    let spec: FilterSpec = echoless_papers::parse(&text).expect("valid");
    spec.build().expect("small")
}

/// The FPR of the filter once it holds so many keys.
fn measured_fpr(mut filter: Box<dyn Filter>, keys: u64) -> f64 {
    for key in fresh_keys(keys) {
        filter.observe_one(key);
    }
    probed_fpr(&*filter, 400_000)
}

#[test]
fn the_fpr_is_that_of_the_filter() {
    for (hashes, keys) in [(1, 20_000), (2, 60_000), (4, 100_000), (4, 400_000)] {
        let measured = measured_fpr(bloom(hashes, "scattered"), keys);
        let expected = fpr(hashes, keys, BYTES * 8);
        assert_close(
            measured,
            expected,
            0.03,
            &format!("k {hashes}, {keys} keys"),
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
        let measured = measured_fpr(bloom(hashes, "line"), keys);
        let expected = line_fpr(hashes, keys, BYTES / 64);
        assert_close(
            measured,
            expected,
            0.03,
            &format!("k {hashes}, {keys} keys"),
        );
    }
}
