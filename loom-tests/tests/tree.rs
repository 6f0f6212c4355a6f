//! The shared tree: of all producers that observe a key exactly one gets Fresh, at any leaves,
//! and a Duplicate never comes before it.

#![cfg(loom)]

use echoless::{KeyHash, SharedLayout, Verdict};
use echoless_loom::{Preemptions, Sometimes, check};
use echoless_papers::{SharedTree, TreeMode, TreeSpec};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

const MODES: [TreeMode; 2] = [TreeMode::Sparse, TreeMode::Dense];

/// One layout that records with `fetch_or`, and one that records with compare-and-swap.
const LAYOUTS: [SharedLayout; 2] = [SharedLayout::Bloom { k: 3 }, SharedLayout::Row4x16];

const A: KeyHash = KeyHash::from_uniform(1);
const B: KeyHash = KeyHash::from_uniform(2);

/// A tree of two leaves, or of four, with a line in each node. All keys fall into one word.
fn tree(mode: TreeMode, layout: SharedLayout, levels: u32) -> SharedTree {
    let spec = TreeSpec::new(levels, 2).mode(mode);
    spec.build_shared(64 * 7, layout).expect("at most 7 nodes")
}

/// The producers observe their keys concurrently. Returns who got Fresh for each of its keys.
fn observe(tree: &Arc<SharedTree>, producers: &[(usize, &'static [KeyHash])]) -> Vec<Vec<bool>> {
    let run = |tree: &SharedTree, (producer, keys): (usize, &[KeyHash])| {
        let observe = |key: &KeyHash| tree.observe_from(producer, *key) == Verdict::Fresh;
        keys.iter().map(observe).collect::<Vec<_>>()
    };
    let others: Vec<_> = producers[1..]
        .iter()
        .map(|producer| {
            let (tree, producer) = (Arc::clone(tree), *producer);
            thread::spawn(move || run(&tree, producer))
        })
        .collect();
    let mut fresh = vec![run(tree, producers[0])];
    fresh.extend(others.into_iter().map(|thread| thread.join().unwrap()));
    fresh
}

/// Runs the producers in all executions: each key has one Fresh, and the nodes hold the keys that
/// the mode records there.
fn one_fresh(
    preemptions: Preemptions,
    levels: u32,
    producers: &'static [(usize, &'static [KeyHash])],
) {
    for mode in MODES {
        for layout in LAYOUTS {
            // Whether the first producer is the first to observe its key, or a later one.
            let first = std::sync::Arc::new([Sometimes::new(), Sometimes::new()]);
            let outcomes = std::sync::Arc::clone(&first);
            let property = format!(
                "tree_one_fresh_per_key, {mode:?}, {layout:?}, {levels} levels, {} producers",
                producers.len()
            );
            check(&property, preemptions, move || {
                let tree = Arc::new(tree(mode, layout, levels));
                let fresh = observe(&tree, producers);
                outcomes[0].note(fresh[0][0]);
                outcomes[1].note(!fresh[0][0]);
                let arrivals = || {
                    let all = producers.iter().zip(&fresh);
                    all.flat_map(|((producer, keys), fresh)| {
                        let keys = keys.iter().zip(fresh);
                        keys.map(move |(key, fresh)| (*producer, *key, *fresh))
                    })
                };
                for (producer, key, _) in arrivals() {
                    let by: Vec<usize> = arrivals()
                        .filter(|(_, other, fresh)| *other == key && *fresh)
                        .map(|(producer, ..)| producer)
                        .collect();
                    assert_eq!(by.len(), 1, "{key:?} is fresh for {by:?}");
                    assert!(tree.root().contains(key));
                    let same_leaf = by[0] % tree.leaves() == producer % tree.leaves();
                    let recorded = mode == TreeMode::Dense || same_leaf;
                    assert_eq!(tree.leaf(producer).contains(key), recorded);
                }
            });
            first.iter().for_each(Sometimes::assert);
        }
    }
}

/// Exactly one Fresh for each key, at two leaves; the nodes hold the keys that the mode records
/// there (2 levels, 2 producers).
#[test]
fn tree_one_fresh_per_key_at_two_leaves() {
    one_fresh(Preemptions::Any, 2, &[(0, &[A]), (1, &[A])]);
}

/// The same, at one leaf (2 levels, 2 producers).
#[test]
fn tree_one_fresh_per_key_at_one_leaf() {
    one_fresh(Preemptions::Any, 2, &[(0, &[A]), (2, &[A])]);
}

/// The same, with two keys that two producers observe in opposite orders (2 levels).
#[test]
fn tree_one_fresh_per_key_of_two_keys() {
    one_fresh(Preemptions::Any, 2, &[(0, &[A, B]), (1, &[B, A])]);
}

/// The same (2 levels, 3 producers).
#[test]
fn tree_one_fresh_per_key_of_three_producers() {
    one_fresh(Preemptions::Any, 2, &[(0, &[A]), (1, &[A]), (2, &[A])]);
}

/// The same (3 levels, 2 producers).
#[test]
fn tree_one_fresh_per_key_in_three_levels() {
    one_fresh(Preemptions::Any, 3, &[(0, &[A]), (1, &[A])]);
}

/// Before it observes the key, each producer writes its number. One that gets Duplicate, from the
/// root or from its leaf, sees the number of the one that got Fresh. So no Duplicate comes before
/// the Fresh either.
#[test]
fn tree_duplicate_follows_fresh() {
    static FROM_LEAF: Sometimes = Sometimes::new();
    static FROM_ROOT: Sometimes = Sometimes::new();
    // Two producers at one leaf, one at the other.
    const PRODUCERS: [usize; 3] = [0, 2, 1];
    for mode in MODES {
        for layout in LAYOUTS {
            check(
                &format!("tree_duplicate_follows_fresh, {mode:?}, {layout:?}"),
                Preemptions::AtMost(2),
                move || {
                    let tree = Arc::new(tree(mode, layout, 2));
                    let written = Arc::new([0, 0, 0].map(AtomicU64::new));
                    let observe = |thread: usize| {
                        let (tree, written) = (Arc::clone(&tree), Arc::clone(&written));
                        move || {
                            written[thread].store(1, Ordering::Relaxed);
                            let producer = PRODUCERS[thread];
                            let at_leaf = tree.leaf(producer).contains(A);
                            let fresh = tree.observe_from(producer, A) == Verdict::Fresh;
                            FROM_LEAF.note(at_leaf && !fresh);
                            FROM_ROOT.note(!at_leaf && !fresh);
                            // Which numbers this producer sees, now that it has its verdict.
                            let sees = |other: usize| written[other].load(Ordering::Relaxed) == 1;
                            (fresh, [0, 1, 2].map(sees))
                        }
                    };
                    let others = [thread::spawn(observe(1)), thread::spawn(observe(2))];
                    let mut all = vec![observe(0)()];
                    all.extend(others.map(|thread| thread.join().unwrap()));
                    let fresh: Vec<usize> = (0..3).filter(|thread| all[*thread].0).collect();
                    assert_eq!(fresh.len(), 1, "{all:?}");
                    for (_, sees) in &all {
                        assert!(sees[fresh[0]], "{all:?}");
                    }
                },
            );
        }
    }
    FROM_LEAF.assert();
    FROM_ROOT.assert();
}
