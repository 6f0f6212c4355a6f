//! Tests of the audit of a window: ages, samples that shrink, the busiest window.

use super::*;
use crate::hash::KeyHasher;

fn observe_all(audit: &mut WindowAudit, keys: u64, tick: u64, duplicate: bool) {
    let verdict = if duplicate {
        Verdict::Duplicate
    } else {
        Verdict::Fresh
    };
    let hasher = KeyHasher::seeded(1);
    for key in 0..keys {
        audit.observe(hasher.hash_u64(key), || Moment { tick, number: 0 }, verdict);
    }
}

fn missed_by(audit: &WindowAudit) -> u64 {
    audit.counts().estimates(None).missed_duplicates.value
}

#[test]
fn errors_are_judged_by_age() {
    for (age, duplicate, missed, mistaken) in [
        (100, true, false, false),
        (100, false, true, false),
        (101, true, false, false),
        (101, false, false, false),
        (119, true, false, false),
        (120, true, false, true),
        (120, false, false, false),
    ] {
        let mut audit = WindowAudit::new(Window::new(100, 20), true);
        observe_all(&mut audit, 20_000, 7, false);
        observe_all(&mut audit, 20_000, 7 + age, duplicate);
        let expected = 19_000..21_000;
        assert_eq!(
            expected.contains(&missed_by(&audit)),
            missed,
            "{age} {duplicate}"
        );
        assert_eq!(
            expected.contains(&audit.found.mistaken.estimate().value),
            mistaken,
            "{age} {duplicate}"
        );
    }
}

#[test]
fn the_age_counts_from_the_last_record_that_renewed_the_key() {
    for refresh in [false, true] {
        let mut audit = WindowAudit::new(Window::new(100, 1), refresh);
        observe_all(&mut audit, 20_000, 0, false);
        observe_all(&mut audit, 20_000, 60, true);
        observe_all(&mut audit, 20_000, 120, false);
        assert_eq!(missed_by(&audit) > 0, refresh);
        assert_eq!(audit.found.mistaken.estimate().value, 0);
    }
}

#[test]
fn a_second_window_ends_the_first() {
    for (keys_between, missed) in [(50, true), (51, false)] {
        let mut audit = WindowAudit::new(Window::new(100, 1), true).also_within(Window::new(50, 1));
        for number in [0, keys_between] {
            for key in 0..20_000 {
                let key = KeyHasher::seeded(1).hash_u64(key);
                audit.observe(key, || Moment { tick: 7, number }, Verdict::Fresh);
            }
        }
        assert_eq!(missed_by(&audit) > 0, missed);
    }
}

#[test]
fn the_busiest_window_is_found_wherever_it_lies() {
    for refresh in [false, true] {
        let mut audit = WindowAudit::new(Window::new(100, 20), refresh);
        let hasher = KeyHasher::seeded(5);
        let mut seen = |tick: u64, keys: std::ops::Range<u64>| {
            for key in keys {
                audit.observe(
                    hasher.hash_u64(key),
                    || Moment { tick, number: 0 },
                    Verdict::Fresh,
                );
            }
        };
        // 1000 keys a tick make 101,000 in a window; a burst adds 300,000; then a silence.
        for tick in 0..300 {
            seen(tick, tick * 1000..(tick + 1) * 1000);
        }
        seen(300, 1_000_000..1_300_000);
        seen(10_000, 0..1000);
        let busiest = audit.busiest_window_keys();
        assert!((380_000..420_000).contains(&busiest), "{busiest}");
    }
}

#[test]
fn short_windows_are_counted_whole() {
    let mut audit = WindowAudit::new(Window::new(100, 1), true);
    let hasher = KeyHasher::seeded(5);
    for tick in 0..1000 {
        for key in tick * 7..(tick + 1) * 7 {
            audit.observe(
                hasher.hash_u64(key),
                || Moment { tick, number: 0 },
                Verdict::Fresh,
            );
        }
    }
    // Ticks 0 to 100 before a key: 101 ticks.
    let busiest = audit.busiest_window_keys();
    assert!((650..=707).contains(&busiest), "{busiest}");
}

#[test]
fn hot_keys_that_are_mistaken_again_and_again_widen_the_bounds() {
    let hasher = KeyHasher::seeded(1);
    let mut widths = Vec::new();
    for keys in [20_000, 200] {
        let mut audit = WindowAudit::new(Window::new(100, 1), false);
        // So many keys that 1 in 32 is sampled.
        observe_all(&mut audit, 1_000_000, 7, false);
        for number in 0..200_000 {
            let key = hasher.hash_u64((1 << 40) + number % keys);
            audit.observe(key, || Moment { tick: 7, number }, Verdict::Duplicate);
        }
        assert!(audit.mistaken.by_key.len() <= REPEATS_CAPACITY);
        let mistaken = audit.counts().estimates(None).false_duplicates;
        assert!(
            mistaken.low <= 200_000 && 200_000 <= mistaken.high,
            "{mistaken:?}"
        );
        widths.push(mistaken.high - mistaken.low);
    }
    assert!(widths[1] > 3 * widths[0], "{widths:?}");
}

#[test]
fn the_keys_that_are_mistaken_most_often_stay_counted() {
    let hasher = KeyHasher::seeded(1);
    let mut audit = WindowAudit::new(Window::new(100, 1), false);
    for number in 0..100_000 {
        let key = if number % 2 == 0 { number % 20 } else { number };
        audit.observe(
            hasher.hash_u64(key),
            || Moment { tick: 7, number },
            Verdict::Duplicate,
        );
    }
    assert!(audit.mistaken.by_key.len() <= REPEATS_CAPACITY);
    for key in (0..20).step_by(2) {
        assert_eq!(audit.mistaken.by_key[&hasher.hash_u64(key)], 5000);
    }
}

#[test]
fn the_sample_stays_bounded_and_forgets_what_has_expired() {
    let mut audit = WindowAudit::new(Window::new(100, 1), true);
    for tick in 0..4 {
        observe_all(&mut audit, 2_000_000, tick * 200, false);
    }
    assert!(audit.sample.len() <= CAPACITY);
    assert_eq!(
        (missed_by(&audit), audit.found.mistaken.estimate().value),
        (0, 0)
    );
    observe_all(&mut audit, 2_000_000, 700, false);
    let missed = audit.counts().estimates(None).missed_duplicates;
    assert!(
        missed.low <= 2_000_000 && 2_000_000 <= missed.high,
        "{missed:?}"
    );
    assert!(missed.high - missed.low < 400_000, "{missed:?}");
}
