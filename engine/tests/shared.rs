//! The shared filter: its rules against a plain model, and the guarantee of one Fresh under real
//! threads.

use std::collections::{HashMap, HashSet};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use echoless::{
    AgeOrigin, BuildError, Cells, KeyHash, KeyHasher, SharedFilter, SharedLayout, SharedSpec,
    Verdict, Verdicts,
};
use proptest::prelude::*;

const LAYOUTS: [SharedLayout; 7] = [
    SharedLayout::Row4x16,
    SharedLayout::Row2x32,
    SharedLayout::Stamped {
        window: 600,
        refresh: true,
    },
    SharedLayout::Bloom { k: 1 },
    SharedLayout::Bloom { k: 4 },
    SharedLayout::Ageing { k: 2 },
    SharedLayout::Ageing { k: 10 },
];

fn build(bytes: u64, layout: SharedLayout) -> SharedFilter {
    SharedSpec::new(bytes).layout(layout).build().unwrap()
}

fn keys(range: std::ops::Range<u64>) -> Vec<KeyHash> {
    let hasher = KeyHasher::seeded(4);
    range.map(|key| hasher.hash_u64(key)).collect()
}

proptest! {
    #[test]
    fn rows_equal_a_list_for_each_word(
        keys in prop::collection::vec((0u64..400).prop_map(|key| KeyHash::from_uniform(KeyHash::from_uniform(key).remix(0))), 0..600),
        part in 1usize..100,
    ) {
        for (layout, bits) in [(SharedLayout::Row4x16, 16), (SharedLayout::Row2x32, 32)] {
            let filter = build(128, layout);
            let mut model: HashMap<u64, Vec<u64>> = HashMap::new();
            let mut verdicts = Verdicts::new();
            for batch in keys.chunks(part) {
                filter.observe(batch, &mut verdicts);
                for (index, key) in batch.iter().enumerate() {
                    let row = model.entry(key.line(16)).or_default();
                    let fingerprint = (key.get() & (u64::MAX >> (64 - bits))).max(1);
                    let duplicate = row.contains(&fingerprint);
                    if !duplicate {
                        row.insert(0, fingerprint);
                        row.truncate(64 / bits);
                    }
                    prop_assert_eq!(verdicts.is_duplicate(index), duplicate);
                }
            }
        }
    }

    #[test]
    fn single_keys_and_batches_agree(seed: u64, count in 0u64..500) {
        let hasher = KeyHasher::seeded(seed);
        let keys: Vec<KeyHash> = (0..count).map(|key| hasher.hash_u64(key % 300)).collect();
        for layout in LAYOUTS {
            let (one, batch) = (build(256, layout), build(256, layout));
            let mut verdicts = Verdicts::new();
            batch.observe(&keys, &mut verdicts);
            for (index, key) in keys.iter().enumerate() {
                let held = one.contains(*key);
                let duplicate = one.observe_one(*key) == Verdict::Duplicate;
                prop_assert_eq!(duplicate, held);
                prop_assert_eq!(duplicate, verdicts.is_duplicate(index));
            }
            let again: Vec<bool> = keys.iter().map(|key| batch.contains(*key)).collect();
            prop_assert_eq!(again, keys.iter().map(|key| one.contains(*key)).collect::<Vec<_>>());
        }
    }
}

/// For each key, how many of the threads get Fresh.
fn fresh_counts(filter: &SharedFilter, keys: &[KeyHash], threads: usize) -> Vec<usize> {
    let barrier = Barrier::new(threads);
    let fresh: Vec<Vec<bool>> = thread::scope(|scope| {
        let observe = |_| {
            scope.spawn(|| {
                let mut verdicts = Verdicts::new();
                let mut fresh = Vec::new();
                for batch in keys.chunks(100) {
                    barrier.wait();
                    filter.observe(batch, &mut verdicts);
                    fresh.extend(verdicts.to_bools().iter().map(|duplicate| !duplicate));
                }
                fresh
            })
        };
        let threads: Vec<_> = (0..threads).map(observe).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    (0..keys.len())
        .map(|key| fresh.iter().filter(|thread| thread[key]).count())
        .collect()
}

#[test]
fn exactly_one_thread_gets_fresh() {
    let keys = keys(0..20_000);
    for layout in LAYOUTS {
        // Ample memory: with 16 words for each key, hardly any word overflows.
        let filter = build(20_000 * 16 * 8, layout);
        let single = build(20_000 * 16 * 8, layout);
        let counts = fresh_counts(&filter, &keys, 4);
        let mut differ = 0;
        for (key, count) in keys.iter().zip(counts) {
            // No thread gets Fresh for a false positive; which keys are false positives may depend
            // on the order within a word.
            let expected = usize::from(single.observe_one(*key) == Verdict::Fresh);
            differ += usize::from(count != expected);
        }
        let ageing = matches!(layout, SharedLayout::Ageing { .. });
        let allowed = if ageing {
            keys.len() / 20
        } else {
            keys.len() / 1000
        };
        assert!(differ <= allowed, "{layout:?}: {differ}");
    }
}

#[test]
fn bloom_words_return_fresh_at_most_once_even_when_full() {
    // So little memory that most keys are false positives. Still no two threads get Fresh.
    let keys = keys(0..20_000);
    let filter = build(64 * 40, SharedLayout::Bloom { k: 3 });
    let counts = fresh_counts(&filter, &keys, 4);
    assert!(counts.iter().all(|count| *count <= 1));
    assert!(counts.iter().sum::<usize>() > 500);
    assert!(keys.iter().all(|key| filter.contains(*key)));
}

#[test]
fn the_false_positive_rate_is_the_expected_one() {
    let present = keys(0..40_000);
    let absent = keys(1_000_000..1_200_000);
    for layout in LAYOUTS {
        let filter = build(64 << 10, layout);
        filter.observe(&present, &mut Verdicts::new());
        let found = absent.iter().filter(|key| filter.contains(**key)).count() as f64;
        let expected = filter.report().expected_fpr.unwrap() * absent.len() as f64;
        assert!(
            (found - expected).abs() <= 6.0 * expected.sqrt() + 3.0,
            "{layout:?}: {found} {expected}"
        );
    }
}

#[test]
fn endless_streams_fill_only_the_layout_that_never_forgets() {
    for layout in LAYOUTS {
        let filter = build(64 * 16, layout);
        filter.observe(&keys(0..200_000), &mut Verdicts::new());
        let full = filter.report().expected_fpr.unwrap() > 0.999;
        assert_eq!(
            full,
            matches!(layout, SharedLayout::Bloom { .. }),
            "{layout:?}"
        );
        filter.clear();
        assert_eq!(filter.report().expected_fpr.unwrap(), 0.0);
        assert!(keys(0..100).iter().all(|key| !filter.contains(*key)));
    }
}

#[test]
fn the_report_of_rows_counts_what_a_list_evicts() {
    for (layout, slots, bits) in [
        (SharedLayout::Row4x16, 4, 16),
        (SharedLayout::Row2x32, 2, 32),
    ] {
        let filter = build(64 * 40, layout);
        let keys = keys(0..3000);
        let (mut rows, mut fresh, mut evictions) = (HashMap::new(), 0, 0);
        for key in &keys {
            let row: &mut Vec<u64> = rows.entry(key.line(320)).or_default();
            let fingerprint = (key.get() & (u64::MAX >> (64 - bits))).max(1);
            if !row.contains(&fingerprint) {
                row.insert(0, fingerprint);
                fresh += 1;
                evictions += u64::from(row.len() > slots);
                row.truncate(slots);
            }
        }
        // In batches, from several threads: the counts do not depend on who counted.
        thread::scope(|scope| {
            for keys in keys.chunks(700) {
                let filter = &filter;
                let observe = move || filter.observe(keys, &mut Verdicts::new());
                scope.spawn(observe).join().unwrap();
            }
        });
        let report = filter.report();
        let occupied: usize = rows.values().map(Vec::len).sum();
        assert_eq!(report.tally.fresh, Some(fresh));
        assert_eq!(report.tally.evictions, Some(evictions));
        assert_eq!(
            report.tally.cells,
            Some(Cells::new(occupied as u64, 320 * slots as u64))
        );
        assert_eq!(report.slot_bits, Some(bits));
        let rate = occupied as f64 / 320.0 / 2_f64.powi(bits as i32);
        assert!((report.expected_fpr.unwrap() / rate - 1.0).abs() < 1e-9);
        filter.clear();
        let report = filter.report();
        assert_eq!(
            (report.tally.fresh, report.tally.evictions),
            (Some(0), Some(0))
        );
        assert_eq!(report.fill(), Some(0.0));
    }
    for k in [2, 4] {
        let never = build(64, SharedLayout::Bloom { k });
        never.observe(&keys(0..1000), &mut Verdicts::new());
        assert_eq!(never.report().tally.evictions, Some(0));
        assert_eq!(never.report().miss_age, None);
        let ageing = build(64, SharedLayout::Ageing { k });
        assert_eq!(ageing.report().tally.evictions, None);
        assert_eq!(ageing.report().miss_age, None);
    }
}

#[test]
fn one_in_a_thousand_is_missed_at_the_age_of_the_report() {
    for layout in [SharedLayout::Row4x16, SharedLayout::Row2x32] {
        let words = 1 << 17;
        let filter = build(words * 8, layout);
        let age = filter.report().miss_age.unwrap();
        assert_eq!(age.since, AgeOrigin::Recorded);
        // Every key is looked up when so many others came after it.
        let age = age.age as usize;
        let keys = keys(0..400_000 + age as u64);
        let (mut missed, mut asked) = (0, 0);
        for (index, key) in keys.iter().enumerate() {
            filter.observe_one(*key);
            if let Some(old) = index.checked_sub(age) {
                asked += 1;
                missed += u64::from(!filter.contains(keys[old]));
            }
        }
        let per_thousand = missed as f64 * 1000.0 / f64::from(asked);
        assert!(
            (0.75..1.25).contains(&per_thousand),
            "{layout:?}: {per_thousand}"
        );
    }
}

#[test]
fn specifications_are_their_texts() {
    for layout in LAYOUTS {
        for bytes in [64, 1000, 64 << 20] {
            let spec = SharedSpec::new(bytes).layout(layout);
            let text = spec.to_string();
            assert_eq!(text.parse(), Ok(spec), "{text}");
        }
    }
    assert_eq!(
        "bloom:memory=64".parse(),
        Ok(SharedSpec::new(64).layout(SharedLayout::Bloom { k: 4 }))
    );
    let stamped = |window, refresh| {
        let layout = SharedLayout::Stamped { window, refresh };
        SharedSpec::new(64).layout(layout)
    };
    // The defaults of filters in lines.
    assert_eq!("stamped:memory=64".parse(), Ok(stamped(1 << 20, true)));
    let text = "stamped:window=7,refresh=false,memory=64B";
    assert_eq!(stamped(7, false).to_string(), text);
    assert_eq!(text.parse(), Ok(stamped(7, false)));
    for (text, message) in [
        (
            "rows:memory=64",
            "invalid layout=rows: expected one of row4x16, row2x32, bloom, ageing, stamped",
        ),
        ("row4x16", "missing memory: expected a size such as 64MiB"),
        (
            "row4x16:k=2,memory=64",
            "invalid option=k: expected one of memory",
        ),
        ("ageing:k=1,memory=64", "invalid k=1: expected 2 to 10"),
        (
            "stamped:window=0,memory=64",
            "invalid window=0: expected 1 to 9223372036854775807",
        ),
        (
            "stamped:refresh=yes,memory=64",
            "invalid refresh=yes: expected one of true, false",
        ),
        (
            "bloom:window=5,memory=64",
            "invalid option=window: expected one of k, memory",
        ),
        (
            "row2x32:memory=63",
            "invalid memory=63 B: expected at least 64 B (one line)",
        ),
    ] {
        let error = text.parse::<SharedSpec>().unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn distinct_keys_are_all_fresh() {
    let filter = build(1 << 20, SharedLayout::Row2x32);
    let keys = keys(0..10_000);
    let mut verdicts = Verdicts::new();
    filter.observe(&keys, &mut verdicts);
    assert_eq!(verdicts.count_duplicates(), 0);
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 10_000);
    assert_eq!(filter.memory_bytes(), 1 << 20);
}

#[test]
fn invalid_specifications_are_rejected() {
    let field = |bytes, layout| {
        let spec = SharedSpec::new(bytes).layout(layout);
        match spec.build().unwrap_err() {
            BuildError::Spec(error) => error.field,
            other => panic!("{other}"),
        }
    };
    assert_eq!(field(63, SharedLayout::Row4x16), "memory");
    for k in [0, 11] {
        assert_eq!(field(64, SharedLayout::Bloom { k }), "k");
    }
    for k in [0, 1, 11] {
        assert_eq!(field(64, SharedLayout::Ageing { k }), "k");
    }
    for window in [0, 1 << 63, u64::MAX] {
        let refresh = true;
        assert_eq!(
            field(64, SharedLayout::Stamped { window, refresh }),
            "window"
        );
    }
    let huge = SharedSpec::new(1 << 50).build().unwrap_err();
    assert!(matches!(huge, BuildError::Memory(_)));
}

/// Half of the keys are recorded and the other half come again. The words are many, so a report
/// takes long enough for keys to be recorded meanwhile.
#[test]
fn counters_are_exact_after_all_calls_and_never_too_high_before() {
    const THREADS: u64 = 4;
    const KEYS: u64 = 100_000;
    let filter = build(1 << 22, SharedLayout::Row2x32);
    let (begun, running) = (AtomicU64::new(0), AtomicU64::new(THREADS));
    let mut reports = Vec::new();
    let fresh: u64 = thread::scope(|scope| {
        let observe = |thread: u64| {
            let (filter, begun, running) = (&filter, &begun, &running);
            scope.spawn(move || {
                let (mut fresh, mut verdicts) = (0, Verdicts::new());
                let keys = keys(thread * KEYS / 2..(thread + 2) * KEYS / 2);
                for batch in keys.chunks(500) {
                    begun.fetch_add(batch.len() as u64, Ordering::AcqRel);
                    filter.observe(batch, &mut verdicts);
                    fresh += batch.len() as u64 - verdicts.count_duplicates();
                }
                running.fetch_sub(1, Ordering::AcqRel);
                fresh
            })
        };
        let threads: Vec<_> = (0..THREADS).map(observe).collect();
        while running.load(Ordering::Acquire) > 0 {
            let tally = filter.report().tally;
            reports.push((tally, begun.load(Ordering::Acquire)));
        }
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    let last = filter.report().tally;
    let occupied = last.cells.unwrap().occupied;
    assert_eq!(last.fresh, Some(fresh));
    assert_eq!(last.evictions, Some(fresh - occupied));
    for (tally, begun) in reports {
        assert!(tally.fresh <= Some(begun.min(fresh)), "{tally:?}");
        assert!(tally.evictions <= last.evictions, "{tally:?}");
    }
}
