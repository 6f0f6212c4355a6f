//! What filters tend to when they are full, against numbers that are computed here: the models of
//! single arrivals draw from the hashes that the filters draw from, so they would not notice draws
//! that depend on each other.

use echoless::{Filter, FilterSpec, Verdict};

use crate::trial::{assert_close, fresh_keys, probed_fpr};

fn build(text: &str) -> (FilterSpec, Box<dyn Filter>) {
    let spec: FilterSpec = echoless_papers::parse(text).expect("a valid specification");
    let filter = spec.build().expect("small");
    (spec, filter)
}

#[test]
fn full_rows_reach_the_limit_of_their_rate() {
    for (text, keys) in [
        ("qht:slots=4,bits=6,memory=30000,seed=2", 80_000),
        ("qht:slots=16,bits=6,memory=30000,seed=2", 80_000),
        ("qqht:slots=4,bits=6,memory=30000,seed=2", 80_000),
        ("cuckoo:slots=1,bits=6,memory=8192,seed=2", 300_000),
        ("cuckoo:slots=4,bits=8,memory=8192,seed=2", 300_000),
    ] {
        let (spec, mut filter) = build(text);
        fresh_keys(keys).for_each(|key| {
            filter.observe_one(key);
        });
        let limit = spec.facts().fpr_limit.expect("rows have one");
        let share = probed_fpr(&*filter, 300_000) / limit;
        assert!((0.9..1.02).contains(&share), "{text}: {share} of {limit}");
    }
}

/// The fill of k filters after `time` fresh keys a bit of one filter, from an empty one.
///
/// A fresh key is taken for a duplicate with probability p^k, where p is the fill. Otherwise, in each
/// filter, it sets its bit if that is zero, and clears a set bit with a probability that `clearing`
/// has: dp = (1 - p) - (1 - p^k) rho for each key and bit. Paper 000 claims that the fill of BSBF and
/// RLBSBF tends to 1 for k >= 2; by these dynamics, which are its own, it does not.
fn fill_after(hashes: i32, time: f64, clearing: impl Fn(f64) -> f64) -> f64 {
    let slope = |fill: f64| (1.0 - fill) - (1.0 - fill.powi(hashes)) * clearing(fill);
    let step = time / 10_000.0;
    (0..10_000).fold(0.0, |fill, _| {
        fill + step * slope(fill + step * slope(fill) / 2.0)
    })
}

#[test]
fn biased_filters_fill_as_the_dynamics_of_their_paper_say() {
    let size = 40_000;
    for hashes in [1, 2, 3] {
        let in_one_of = f64::from(hashes);
        let clearings: [(&str, &dyn Fn(f64) -> f64); 4] = [
            ("bloom", &|_| 0.0),
            ("bsbf", &|fill| fill),
            ("bsbfsd", &|fill| fill / in_one_of),
            ("rlbsbf", &|fill| fill * fill),
        ];
        for (name, clearing) in clearings {
            let bytes = hashes * size / 8;
            let (_, mut filter) = build(&format!("{name}:k={hashes},memory={bytes},seed=3"));
            for (key, arrivals) in fresh_keys(20 * size as u64).zip(1..) {
                filter.observe_one(key);
                if [size / 4, size, 4 * size, 20 * size].contains(&arrivals) {
                    let time = f64::from(arrivals) / f64::from(size);
                    let expected = fill_after(hashes, time, clearing);
                    let fill = filter.report().fill().expect("bits");
                    let told = format!("{name}, k {hashes}, after {arrivals}");
                    assert!(
                        (fill - expected).abs() < 0.01,
                        "{told}: {fill}, not {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_buffer_that_guesses_is_wrong_as_often_as_it_guesses() {
    for guess in [0.1, 0.4] {
        let (_, mut filter) = build(&format!("fpbuffer:q={guess},memory=240000,seed=4"));
        let wrong = fresh_keys(60_000)
            .filter(|key| filter.observe_one(*key) == Verdict::Duplicate)
            .count();
        assert_close(wrong as f64 / 60_000.0, guess, 0.05, "guesses");
    }
}
