//! Stable Bloom filters.

use echoless::{Filter, FilterSpec};
use echoless_papers::theory::stable::{Cell, stable_point_fpr, stable_zeros};

use crate::trial::{fnr_at_gap, fresh_keys, probed_fpr};

/// A filter of so many bytes with cells of `bits` bits, decrementing P = `decrements` of them.
fn build(
    (bits, hashes, decrements): (u32, u32, u64),
    decrement: &str,
    bytes: u64,
) -> Box<dyn Filter> {
    let text = format!("sbf:k={hashes},d={bits},p={decrements},decrement={decrement}");
    let spec: FilterSpec = echoless_papers::parse(&text).expect("valid");
    spec.memory(bytes).seed(1).build().expect("small")
}

/// The fraction of cells that are zero.
fn zeros_of(filter: &dyn Filter) -> f64 {
    1.0 - filter.report().fill().expect("cells")
}

#[test]
fn the_stable_point_is_that_of_the_filter() {
    for decrement in ["consecutive", "independent"] {
        for (bits, hashes, decrements) in [(1, 2, 4), (2, 3, 12), (3, 2, 20)] {
            let bytes = 12_000;
            let mut filter = build((bits, hashes, decrements), decrement, bytes);
            for key in fresh_keys(400_000) {
                filter.observe_one(key);
            }
            let cells = bytes * 8 / u64::from(bits);
            let max = (1 << bits) - 1;
            let zeros = stable_zeros(decrements as f64, max, hashes, cells);
            assert!(
                (zeros_of(&*filter) - zeros).abs() < 0.005,
                "{bits} bits: {zeros}"
            );
            let fps = stable_point_fpr(decrements as f64, max, hashes, cells);
            let fpr = probed_fpr(&*filter, 200_000);
            assert!(
                (fpr - fps).abs() < 0.005,
                "{bits} bits: {fpr}, expected {fps}"
            );
        }
    }
}

#[test]
fn the_fraction_of_zeros_falls_as_computed() {
    for decrement in ["consecutive", "independent"] {
        for (bits, hashes, decrements) in [(1, 2, 4), (2, 3, 12), (3, 2, 20), (4, 1, 1)] {
            let bytes = 24_000;
            let mut filter = build((bits, hashes, decrements), decrement, bytes);
            let (cells, max) = (bytes * 8 / u64::from(bits), (1 << bits) - 1);
            for (key, arrivals) in fresh_keys(4 * cells).zip(1..) {
                filter.observe_one(key);
                if [cells / 20, cells / 4, cells, 2 * cells, 4 * cells].contains(&arrivals) {
                    let cell = Cell::new(decrements as f64, max, hashes, cells);
                    let zeros = cell.zero_after(arrivals);
                    assert!(
                        (zeros_of(&*filter) - zeros).abs() < 0.005,
                        "{bits} bits, {arrivals} arrivals: {}, expected {zeros}",
                        zeros_of(&*filter)
                    );
                }
            }
        }
    }
}

#[test]
fn duplicates_are_missed_as_often_as_computed() {
    for (bits, hashes, decrements) in [(1, 2, 4), (2, 2, 8)] {
        let bytes = 4000;
        let (cells, max) = (bytes * 8 / u64::from(bits), (1 << bits) - 1);
        for gap in [100, 1000, 10_000, 100_000] {
            let mut filter = build((bits, hashes, decrements), "independent", bytes);
            let measured = fnr_at_gap(&mut *filter, gap, 60_000);
            let zero = Cell::new(decrements as f64, max, hashes, cells).zero_since_set(gap);
            let expected = 1.0 - (1.0 - zero).powi(hashes as i32);
            assert!(
                (measured - expected).abs() < 0.01,
                "{bits} bits, gap {gap}: {measured}, expected {expected}"
            );
        }
    }
}
