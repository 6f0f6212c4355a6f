//! The shared filter: rules against a plain model, and the promise of one Fresh under real threads.

use std::collections::{HashMap, HashSet};
use std::sync::Barrier;
use std::thread;

use echoless::{
    BuildError, KeyHash, KeyHasher, SharedFilter, SharedLayout, SharedSpec, Verdict, Verdicts,
};
use proptest::prelude::*;

const FORMS: [SharedLayout; 6] = [
    SharedLayout::Row4x16,
    SharedLayout::Row2x32,
    SharedLayout::Bloom { k: 1 },
    SharedLayout::Bloom { k: 4 },
    SharedLayout::Ageing { k: 2 },
    SharedLayout::Ageing { k: 10 },
];

fn build(bytes: u64, form: SharedLayout) -> SharedFilter {
    SharedSpec::new(bytes, form).build().unwrap()
}

fn keys(range: std::ops::Range<u64>) -> Vec<KeyHash> {
    let hasher = KeyHasher::seeded(4);
    range.map(|key| hasher.hash_u64(key)).collect()
}

proptest! {
    #[test]
    fn rows_equal_a_list_for_each_word(
        keys in prop::collection::vec((0u64..400).prop_map(|key| KeyHash(KeyHash(key).remix(0))), 0..600),
        part in 1usize..100,
    ) {
        for (form, bits) in [(SharedLayout::Row4x16, 16), (SharedLayout::Row2x32, 32)] {
            let filter = build(128, form);
            let mut model: HashMap<u64, Vec<u64>> = HashMap::new();
            let mut verdicts = Verdicts::new();
            for batch in keys.chunks(part) {
                filter.observe(batch, &mut verdicts);
                for (index, key) in batch.iter().enumerate() {
                    let row = model.entry(key.line(16)).or_default();
                    let fingerprint = (key.0 & (u64::MAX >> (64 - bits))).max(1);
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
        for form in FORMS {
            let (one, batch) = (build(256, form), build(256, form));
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

/// Of each key, how many of the threads hear Fresh.
fn fresh_counts(filter: &SharedFilter, keys: &[KeyHash], threads: usize) -> Vec<usize> {
    let barrier = Barrier::new(threads);
    let heard: Vec<Vec<bool>> = thread::scope(|scope| {
        let observe = |_| {
            scope.spawn(|| {
                let mut verdicts = Verdicts::new();
                let mut fresh = Vec::new();
                for batch in keys.chunks(100) {
                    barrier.wait();
                    filter.observe(batch, &mut verdicts);
                    fresh.extend((0..batch.len()).map(|index| !verdicts.is_duplicate(index)));
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
        .map(|key| heard.iter().filter(|fresh| fresh[key]).count())
        .collect()
}

#[test]
fn exactly_one_thread_hears_fresh() {
    let keys = keys(0..20_000);
    for form in FORMS {
        // Ample memory: 16 words for each key, so next to no word is overrun.
        let filter = build(20_000 * 16 * 8, form);
        let single = build(20_000 * 16 * 8, form);
        let counts = fresh_counts(&filter, &keys, 4);
        let mut differ = 0;
        for (key, count) in keys.iter().zip(counts) {
            // A false positive is heard by nobody; which keys those are may depend on the order within a word.
            let expected = usize::from(single.observe_one(*key) == Verdict::Fresh);
            differ += usize::from(count != expected);
        }
        let ageing = matches!(form, SharedLayout::Ageing { .. });
        let allowed = if ageing {
            keys.len() / 20
        } else {
            keys.len() / 1000
        };
        assert!(differ <= allowed, "{form:?}: {differ}");
    }
}

#[test]
fn bloom_words_promise_one_fresh_without_condition() {
    // So little memory that most keys are false positives: still nobody hears Fresh twice.
    let keys = keys(0..20_000);
    let filter = build(64 * 40, SharedLayout::Bloom { k: 3 });
    let counts = fresh_counts(&filter, &keys, 4);
    assert!(counts.iter().all(|count| *count <= 1));
    assert!(counts.iter().sum::<usize>() > 500);
    assert!(keys.iter().all(|key| filter.contains(*key)));
}

#[test]
fn rates_are_the_reported_ones() {
    let present = keys(0..40_000);
    let absent = keys(1_000_000..1_200_000);
    for form in FORMS {
        let filter = build(64 << 10, form);
        filter.observe(&present, &mut Verdicts::new());
        let found = absent.iter().filter(|key| filter.contains(**key)).count() as f64;
        let expected = filter.expected_fpr() * absent.len() as f64;
        assert!(
            (found - expected).abs() <= 6.0 * expected.sqrt() + 3.0,
            "{form:?}: {found} {expected}"
        );
    }
}

#[test]
fn endless_streams_leave_room_in_the_forms_that_age() {
    for form in FORMS {
        let filter = build(64 * 16, form);
        filter.observe(&keys(0..200_000), &mut Verdicts::new());
        let full = filter.expected_fpr() > 0.999;
        assert_eq!(full, matches!(form, SharedLayout::Bloom { .. }), "{form:?}");
        filter.clear();
        assert_eq!(filter.expected_fpr(), 0.0);
        assert!(keys(0..100).iter().all(|key| !filter.contains(*key)));
    }
}

#[test]
fn distinct_keys_are_told_apart() {
    let filter = build(1 << 20, SharedLayout::Row2x32);
    let keys = keys(0..10_000);
    let mut verdicts = Verdicts::new();
    filter.observe(&keys, &mut verdicts);
    assert_eq!(verdicts.count_duplicates(), 0);
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), 10_000);
    assert_eq!(filter.memory_bytes(), 1 << 20);
}

#[test]
fn specifications_that_cannot_be_met_are_refused() {
    let field = |spec: SharedSpec| match spec.build().unwrap_err() {
        BuildError::Spec(error) => error.field,
        other => panic!("{other}"),
    };
    assert_eq!(field(SharedSpec::new(63, SharedLayout::Row4x16)), "memory");
    for k in [0, 11] {
        assert_eq!(field(SharedSpec::new(64, SharedLayout::Bloom { k })), "k");
        assert_eq!(field(SharedSpec::new(64, SharedLayout::Ageing { k })), "k");
    }
    assert_eq!(
        field(SharedSpec::new(64, SharedLayout::Ageing { k: 1 })),
        "k"
    );
    let huge = SharedSpec::new(1 << 50, SharedLayout::Row4x16)
        .build()
        .unwrap_err();
    assert!(matches!(huge, BuildError::Memory(_)));
}
