//! The shared tree: its verdicts from one thread, and the guarantee of one Fresh under real
//! threads.

use std::collections::HashMap;
use std::sync::Barrier;
use std::thread;

use echoless::{KeyHash, SharedLayout, SharedSpec, Verdict, Verdicts};
use echoless_papers::{SharedTree, TreeMode, TreeSpec};
use proptest::prelude::*;

use crate::harness::{Arrival, key_hash, modes, specs, streams};

const MODES: [TreeMode; 2] = [TreeMode::Sparse, TreeMode::Dense];

/// A tree with this memory in each node.
fn tree(spec: TreeSpec, node: u64, layout: SharedLayout) -> SharedTree {
    let nodes = spec.nodes().expect("valid") as u64;
    spec.topdown(0)
        .build_shared(node * nodes, layout)
        .expect("valid")
}

proptest! {
    #[test]
    fn one_thread_gets_the_verdicts_of_the_root_alone(
        spec in specs(),
        k in 1_u32..6,
        stream in streams(),
        part in 1_usize..100,
    ) {
        let layout = SharedLayout::Bloom { k };
        let single = SharedSpec::new(128).layout(layout).build().expect("valid");
        let (one, batches) = (tree(spec, 128, layout), tree(spec, 128, layout));
        let mut verdicts = Verdicts::new();
        for (number, arrivals) in stream.chunks(part).enumerate() {
            let keys: Vec<KeyHash> = arrivals.iter().map(|arrival| arrival.key).collect();
            batches.observe_batch_from(number, &keys, &mut verdicts);
            for (index, Arrival { producer, key }) in arrivals.iter().copied().enumerate() {
                let held = one.contains_from(producer, key);
                let expected = single.observe_one(key);
                prop_assert_eq!(held, expected == Verdict::Duplicate);
                prop_assert_eq!(one.observe_from(producer, key), expected);
                prop_assert_eq!(verdicts.get(index), expected);
            }
        }
        batches.clear();
        for arrival in &stream {
            prop_assert!(!batches.contains_from(arrival.producer, arrival.key));
        }
    }

    /// Rows, so large that no key is a false positive or forgotten.
    #[test]
    fn leaves_hold_the_fresh_keys_of_their_producers_and_dense_ones_all_keys(
        spec in specs(),
        mode in modes(),
        stream in streams(),
    ) {
        let tree = tree(spec.mode(mode), 1 << 16, SharedLayout::Row4x16);
        // For each key, the leaf of its first arrival.
        let mut first = HashMap::new();
        for Arrival { producer, key } in stream.iter().copied() {
            let leaf = producer % tree.leaves();
            let is_new = !first.contains_key(&key);
            let is_fresh = tree.observe_from(producer, key) == Verdict::Fresh;
            prop_assert_eq!(is_fresh, is_new);
            let first = *first.entry(key).or_insert(leaf);
            let recorded = mode == TreeMode::Dense || first == leaf;
            prop_assert_eq!(tree.leaf(producer).contains(key), recorded);
            prop_assert!(tree.root().contains(key));
        }
    }
}

/// For each key, how many of the producers get Fresh: each is a thread, and all observe the keys in
/// the same order, some one by one and some in batches.
fn fresh_counts(tree: &SharedTree, keys: &[KeyHash], producers: usize) -> Vec<usize> {
    let barrier = Barrier::new(producers);
    let fresh: Vec<Vec<bool>> = thread::scope(|scope| {
        let producer = |producer: usize| {
            let barrier = &barrier;
            scope.spawn(move || {
                let mut verdicts = Verdicts::new();
                let mut fresh = Vec::new();
                for batch in keys.chunks(50) {
                    barrier.wait();
                    if producer.is_multiple_of(2) {
                        tree.observe_batch_from(producer, batch, &mut verdicts);
                        fresh.extend(verdicts.to_bools().iter().map(|duplicate| !duplicate));
                    } else {
                        let observe = |key: &KeyHash| tree.observe_from(producer, *key);
                        fresh.extend(
                            batch
                                .iter()
                                .map(observe)
                                .map(|verdict| verdict == Verdict::Fresh),
                        );
                    }
                }
                fresh
            })
        };
        let threads: Vec<_> = (0..producers).map(producer).collect();
        let results = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        results.collect()
    });
    let count = |key| fresh.iter().filter(|producer| producer[key]).count();
    (0..keys.len()).map(count).collect()
}

#[test]
fn exactly_one_producer_gets_fresh() {
    let keys: Vec<KeyHash> = (0..20_000).map(key_hash).collect();
    // Two producers at each leaf, and a node of 64 words for each key, so that hardly any word
    // overflows.
    for mode in MODES {
        for layout in [SharedLayout::Row4x16, SharedLayout::Bloom { k: 4 }] {
            let spec = TreeSpec::new(2, 3).mode(mode);
            let tree = tree(spec, 20_000 * 64 * 8, layout);
            let counts = fresh_counts(&tree, &keys, 6);
            let others = counts.iter().filter(|count| **count != 1).count();
            assert!(others <= 10, "{mode:?} {layout:?}: {others}");
            assert!(
                counts.iter().all(|count| *count <= 1),
                "{mode:?} {layout:?}"
            );
        }
    }
}

/// So little memory that most keys are false positives. Still no two producers get Fresh, and each
/// key is held everywhere it was looked for.
#[test]
fn full_trees_return_fresh_at_most_once() {
    let keys: Vec<KeyHash> = (0..20_000).map(key_hash).collect();
    for mode in MODES {
        let spec = TreeSpec::new(3, 2).mode(mode);
        let tree = tree(spec, 64 * 40, SharedLayout::Bloom { k: 3 });
        let counts = fresh_counts(&tree, &keys, 4);
        assert!(counts.iter().all(|count| *count <= 1), "{mode:?}");
        assert!(counts.iter().sum::<usize>() > 500, "{mode:?}");
        for key in &keys {
            let held = |producer| tree.contains_from(producer, *key);
            assert!((0..4).all(held), "{mode:?}");
        }
    }
}

/// The root counts what is fresh. The nodes below it have no memory but their words, so they count
/// nothing.
#[test]
fn the_root_counts_the_fresh_keys() {
    let keys: Vec<KeyHash> = (0..1000).map(key_hash).collect();
    for mode in MODES {
        let tree = tree(
            TreeSpec::new(2, 4).mode(mode),
            1 << 16,
            SharedLayout::Row4x16,
        );
        assert_eq!(tree.memory_bytes(), 5 << 16);
        for (producer, key) in keys.iter().chain(&keys).enumerate() {
            tree.observe_from(producer, *key);
        }
        let root = tree.root().report().tally;
        assert_eq!(root.fresh, Some(1000));
        assert!(root.evictions.is_some());
        let leaf = tree.leaf(0).report().tally;
        assert_eq!((leaf.fresh, leaf.evictions), (None, None));
        tree.clear();
        assert_eq!(tree.root().report().tally.fresh, Some(0));
    }
}
