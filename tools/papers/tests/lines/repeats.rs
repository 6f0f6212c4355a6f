//! Line forms against scattered forms on streams of few recurring keys, where draws that depend on
//! content alone would cycle.

use echoless::{Filter, KeyHash, KeyHasher, Verdict};

use crate::harness::parse;

const LINES: u64 = 256;

fn build(text: &str, form: &str) -> Box<dyn Filter> {
    let text = format!("{text},form={form},memory={}B", LINES * 64);
    parse(&text).build().expect("valid")
}

/// The first `count` keys of each line, of the keys numbered from `first` on.
fn keys_of_each_line(count: usize, first: u64) -> Vec<KeyHash> {
    let hasher = KeyHasher::seeded(21);
    let mut missing = vec![count; LINES as usize];
    let mut left = count * missing.len();
    let mut keys = Vec::new();
    for number in first.. {
        if left == 0 {
            break;
        }
        let key = hasher.hash_u64(number);
        let missing = &mut missing[key.line(LINES) as usize];
        if *missing > 0 {
            *missing -= 1;
            left -= 1;
            keys.push(key);
        }
    }
    keys
}

/// After many rounds of the same keys, the fraction of arrivals that the filter misses, and the
/// fraction of keys that it misses in every round.
fn missed(filter: &mut dyn Filter, keys: &[KeyHash]) -> (f64, f64) {
    const COUNTED: u32 = 24;
    for _ in 0..300 {
        for key in keys {
            filter.observe_one(*key);
        }
    }
    let mut misses = vec![0; keys.len()];
    for _ in 0..COUNTED {
        for (key, misses) in keys.iter().zip(&mut misses) {
            *misses += u32::from(filter.observe_one(*key) == Verdict::Fresh);
        }
    }
    let always = misses.iter().filter(|misses| **misses == COUNTED).count();
    let arrivals = keys.len() as f64 * f64::from(COUNTED);
    (
        f64::from(misses.iter().sum::<u32>()) / arrivals,
        always as f64 / keys.len() as f64,
    )
}

#[test]
fn recurring_keys_are_missed_as_often_as_in_scattered_forms() {
    // The bounds are at least five standard deviations, for 2048 keys or more, 24 times each. In a
    // line one arrival less lies between two arrivals of a key.
    for (spec, counts) in [
        ("sbf:k=2,p=5", [8, 16, 32]),
        ("sbf:k=2,p=40", [8, 16, 32]),
        ("sbf:k=3,d=2,p=20", [8, 16, 32]),
        ("sbf:k=2,d=4,p=20", [16, 32, 64]),
        ("sbf:k=2,p=5,decrement=independent", [8, 16, 32]),
        ("sbf:k=2,p=5,update=distinct", [8, 16, 100]),
    ] {
        for count in counts {
            let keys = keys_of_each_line(count, 0);
            let (line, always_in_line) = missed(&mut *build(spec, "line"), &keys);
            let (scattered, always) = missed(&mut *build(spec, "scattered"), &keys);
            assert!(
                (line - scattered).abs() < 0.04,
                "{spec}, {count} keys a line: {line}, scattered {scattered}"
            );
            assert!(
                always_in_line < always + 0.04,
                "{spec}, {count} keys a line: always missed {always_in_line}, scattered {always}"
            );
        }
    }
}

#[test]
fn bit_filters_lock_few_keys_out() {
    // The bounds are several times the measured rates. Filters that draw from their own bits alone
    // instead of the whole line lock out far more keys.
    for (spec, counts, bound) in [
        ("bsbf:k=2", [8, 16, 32, 64], 0.004),
        ("bsbf:k=4", [8, 16, 24, 32], 0.004),
        ("bsbf:k=8", [2, 4, 6, 8], 0.03),
        ("rlbsbf:k=8", [8, 16, 24, 32], 0.005),
    ] {
        for count in counts {
            let keys = keys_of_each_line(count, 0);
            let (_, always) = missed(&mut *build(spec, "line"), &keys);
            assert!(
                always < bound,
                "{spec}, {count} keys a line: always missed {always}"
            );
        }
    }
}

/// A filter that first observed many keys, and then only `count` keys of each line, over and over.
fn after_few_recurring_keys(text: &str, form: &str, count: usize) -> Box<dyn Filter> {
    let mut filter = build(text, form);
    for key in keys_of_each_line(200, 1 << 32) {
        filter.observe_one(key);
    }
    let few = keys_of_each_line(count, 0);
    for _ in 0..4000 / count {
        for key in &few {
            filter.observe_one(*key);
        }
    }
    filter
}

#[test]
fn few_recurring_keys_leave_the_fill_that_they_leave_in_scattered_forms() {
    for spec in ["sbf:k=2,p=5", "sbf:k=1,p=1", "sbf:k=2,d=4,p=5"] {
        for count in [1, 2, 4] {
            let fill = |form| {
                after_few_recurring_keys(spec, form, count)
                    .report()
                    .fill()
                    .unwrap()
            };
            let (line, scattered) = (fill("line"), fill("scattered"));
            // At the lowest P, 256 arrivals without effect may freeze a few cells.
            assert!(
                (line - scattered).abs() < 0.01,
                "{spec}, {count} keys a line: {line}, scattered {scattered}"
            );
        }
    }
}

#[test]
fn few_keys_that_are_inserted_over_and_over_evict_all_others() {
    // Not against the scattered form: its rows have a Poisson number of the few keys, some of them
    // none. The published rule itself gives the bound.
    for (spec, values) in [
        ("qhtd:slots=63,bits=8", 255.0),
        ("qhtd:slots=31,bits=16", 65535.0),
        ("qhtd:slots=7,bits=64", f64::INFINITY),
    ] {
        for count in [1, 2, 4] {
            let filter = after_few_recurring_keys(spec, "line", count);
            let probes = keys_of_each_line(200, 1 << 33);
            let found = probes.iter().filter(|key| filter.contains(**key)).count();
            let fraction = found as f64 / probes.len() as f64;
            assert!(
                fraction < 1.1 * count as f64 / values + 0.002,
                "{spec}, {count} keys a line: {fraction}"
            );
        }
    }
}
