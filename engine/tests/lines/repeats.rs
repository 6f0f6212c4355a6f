//! Line forms against scattered forms on streams of few keys that come back for ever, where draws that depend on content alone would run in circles.

use echoless::{Filter, KeyHash, KeyHasher, Verdict};

use crate::harness::parse;

const LINES: u64 = 256;

fn build(text: &str, form: &str) -> Box<dyn Filter> {
    let text = format!("{text},form={form},memory={}B", LINES * 64);
    parse(&text).build().expect("valid")
}

/// So many keys of each line, of those numbered from `first` on, in turn.
fn keys_of_each_line(count: usize, first: u64) -> Vec<KeyHash> {
    let hasher = KeyHasher::seeded(21);
    let mut wanted = vec![count; LINES as usize];
    let mut left = count * wanted.len();
    let mut keys = Vec::new();
    for number in first.. {
        if left == 0 {
            break;
        }
        let key = hasher.hash_u64(number);
        let wanted = &mut wanted[key.line(LINES) as usize];
        if *wanted > 0 {
            *wanted -= 1;
            left -= 1;
            keys.push(key);
        }
    }
    keys
}

/// The share of arrivals that are missed once a filter has settled on keys that come round and round, and the share of the keys that are missed
/// at all of them.
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
fn keys_that_come_round_and_round_are_missed_as_often_as_in_scattered_forms() {
    // Of 2048 keys and more, 24 times each: the bounds are five standard deviations and more. In a line one arrival less lies between two of a key.
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
                "{spec}, {count} keys a line: {line} against {scattered}"
            );
            assert!(
                always_in_line < always + 0.04,
                "{spec}, {count} keys a line: {always_in_line} always missed, {always} in scattered form"
            );
        }
    }
}

#[test]
fn bit_filters_lock_few_keys_out() {
    // Bounds of several times what was seen. Filters that draw from their own bits alone, not from the whole line, lock out far more.
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
                "{spec}, {count} keys a line: {always} always missed"
            );
        }
    }
}

/// A filter that saw many keys long ago, and since then only so many of each line, again and again.
fn worn_by_few(text: &str, form: &str, count: usize) -> Box<dyn Filter> {
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
fn what_few_keys_leave_of_others_is_what_they_leave_in_scattered_forms() {
    for spec in ["sbf:k=2,p=5", "sbf:k=1,p=1", "sbf:k=2,d=4,p=5"] {
        for count in [1, 2, 4] {
            let fill = |form| worn_by_few(spec, form, count).report().fill().unwrap();
            let (line, scattered) = (fill("line"), fill("scattered"));
            // What 256 arrivals without effect may freeze: a few cells at the lowest P.
            assert!(
                (line - scattered).abs() < 0.01,
                "{spec}, {count} keys a line: {line} against {scattered}"
            );
        }
    }
}

#[test]
fn few_keys_that_are_inserted_again_and_again_push_all_others_out() {
    // Rows of the scattered form have a Poisson number of the few keys, some of them none; so it is the published rule itself that tells.
    for (spec, values) in [
        ("qhtd:slots=63,bits=8", 255.0),
        ("qhtd:slots=31,bits=16", 65535.0),
        ("qhtd:slots=7,bits=64", f64::INFINITY),
    ] {
        for count in [1, 2, 4] {
            let filter = worn_by_few(spec, "line", count);
            let probes = keys_of_each_line(200, 1 << 33);
            let taken = probes.iter().filter(|key| filter.contains(**key)).count();
            let share = taken as f64 / probes.len() as f64;
            assert!(
                share < 1.1 * count as f64 / values + 0.002,
                "{spec}, {count} keys a line: {share}"
            );
        }
    }
}
