//! Windows: timers, the jumping window and age-partitioned slices, under a steady stream.
//!
//! Duplicates are recorded in all of these filters, so that false positives are recorded, too, and
//! each tick records the same number of keys.

use echoless::{Filter, FilterSpec, KeyHash};
use echoless_papers::theory::bloom;
use echoless_papers::theory::windows::{
    age_partitioned_fills, age_partitioned_fpr, jumping_fpr, timer_fractions, timers_fnr,
    timers_fpr,
};

use crate::trial::{assert_close, fresh_keys, probed_fpr};

/// The filter at the end of a tick, after so many ticks of `keys` fresh ones each.
fn fed(text: &str, ticks: u64, keys: u64) -> Box<dyn Filter> {
    let spec: FilterSpec = echoless_papers::parse(text).expect("valid");
    let mut filter = spec.build().expect("valid");
    for (index, key) in (0..).zip(fresh_keys(ticks * keys)) {
        filter.advance_to(index / keys);
        filter.observe_one(key);
    }
    filter
}

/// The rate that the filter reports follows from its state, the expected one from the stream.
fn check(filter: &dyn Filter, expected: f64, case: &str) {
    let measured = probed_fpr(filter, 1_000_000);
    assert_close(measured, expected, 0.05, case);
    let reported = filter.report().expected_fpr.expect("a rate");
    assert_close(measured, reported, 0.05, &format!("{case}, as reported"));
}

#[test]
fn timers_have_the_computed_fpr() {
    for (hashes, equal, window, keys) in [
        (1, 1, 100, 20),
        (4, 1, 100, 100),
        (4, 2, 100, 100),
        (4, 2, 1000, 20),
        (4, 3, 30, 400),
        (3, 3, 10, 1000),
        (8, 2, 100, 100),
        (8, 4, 20, 500),
        (64, 8, 30, 100),
    ] {
        let text = format!(
            "tbf:window={window},k={hashes},equal={equal},refresh=true,bits=12,memory=60008"
        );
        let filter = fed(&text, 2 * window, keys);
        // 60,000 bytes and a word.
        let fractions = timer_fractions(hashes, keys as f64, window as usize + 1, 40_000);
        check(&*filter, timers_fpr(hashes, equal, &fractions), &text);
    }
}

#[test]
fn equal_timers_miss_as_many_keys_as_computed() {
    for (hashes, equal, keys) in [(8, 8, 10), (8, 5, 30), (4, 2, 60), (4, 4, 5)] {
        let text =
            format!("tbf:window=100,k={hashes},equal={equal},refresh=true,bits=12,memory=15008");
        // 15,000 bytes and a word.
        let cells = 10_000;
        let (mut missed, mut expected) = (0, 0.0);
        for first in 0..40 {
            // 500 units, and no key in common with another run.
            let recorded: Vec<KeyHash> = fresh_keys((first + 1) * 500 * keys)
                .skip((first * 500 * keys) as usize)
                .collect();
            let mut filter = text
                .parse::<FilterSpec>()
                .expect("valid")
                .build()
                .expect("small");
            for (unit, unit_keys) in (0..).zip(recorded.chunks(keys as usize)) {
                filter.advance_to(unit);
                for key in unit_keys {
                    filter.observe_one(*key);
                }
            }
            for (age, unit_keys) in recorded.rchunks(keys as usize).take(101).enumerate() {
                missed += unit_keys
                    .iter()
                    .filter(|key| !filter.contains(**key))
                    .count();
                expected += timers_fnr(hashes, equal, keys as f64, age, cells) * keys as f64;
            }
        }
        assert!(expected > 400.0, "{text}: {expected} misses are too few");
        assert_close(missed as f64, expected, 0.05, &text);
    }
}

/// The rate of paper 001 for k equal timers is that of one live event; here are 191.
#[test]
fn all_equal_timers_have_the_rate_of_the_paper_for_each_live_event() {
    let text = "tbf:window=190,k=2,equal=2,refresh=true,bits=8,memory=2008";
    let filter = fed(text, 1000, 1);
    let paper = (1.0 - (-2.0_f64 / 2000.0).exp()).powi(2);
    let measured = probed_fpr(&*filter, 8_000_000);
    // With one key in a unit, how many of its two timers are left varies a lot between units.
    let fractions = timer_fractions(2, 1.0, 191, 2000);
    assert_close(measured, timers_fpr(2, 2, &fractions), 0.15, text);
    // A tenth of the events' timers are overwritten, more of the older ones.
    assert!(
        measured > 140.0 * paper && measured < 191.0 * paper,
        "{measured}"
    );
}

#[test]
fn a_jumping_window_has_the_computed_fpr() {
    for (hashes, generations, keys) in [(1, 4, 20), (3, 8, 50), (4, 8, 100), (6, 20, 100)] {
        let text = format!(
            "gbf:window=200,k={hashes},q={generations},refresh=true,memory={}",
            // 20,000 cells and a word.
            20_000 * (generations + 2) / 8 + 8
        );
        // The last tick is the end of a generation: all are full.
        let filter = fed(&text, 1000, keys);
        let one = bloom::fill(hashes, keys * 200 / generations, 20_000);
        let fills = vec![one; generations as usize + 1];
        check(&*filter, jumping_fpr(hashes, &fills), &text);
    }
}

#[test]
fn age_partitioned_slices_have_the_computed_fpr() {
    for (hashes, generations, keys) in [(1, 3, 4), (2, 5, 20), (4, 4, 30), (7, 5, 12), (10, 8, 30)]
    {
        let slices = u64::from(hashes + generations);
        let text = format!(
            "apbf:window=400,k={hashes},l={generations},refresh=true,memory={}",
            // 12,800 bits and a count in each slice.
            slices * (1600 + 8)
        );
        let filter = fed(&text, 2000, keys);
        let generation = keys * 400 / u64::from(generations);
        let fills = age_partitioned_fills(hashes, generations, generation as f64, 12_800);
        check(&*filter, age_partitioned_fpr(hashes, &fills), &text);
    }
}
