//! The formulas against simulations: accesses and hits of a level, and the rate of top-down
//! testing.

use echoless::FilterSpec;
use echoless_papers::theory::tree::{dense_accesses, hit, sparse_accesses, sparse_fpr, tested};
use echoless_papers::{BloomTree, TreeMode, TreeSpec};

use crate::harness::{Node, Numbers, key_hash, tree};

const KEYS: u64 = 40_000;

/// A filter too large for false positives.
fn ample() -> FilterSpec {
    "qqht:slots=4,bits=32,memory=4MiB".parse().expect("valid")
}

/// Feeds every key from uniform producers, and then all of them again, `arrivals` times in all.
fn feed(tree: &mut BloomTree<Node>, arrivals: u64) {
    let mut numbers = Numbers(5);
    for _ in 0..arrivals {
        for key in 0..KEYS {
            let producer = numbers.below(tree.leaves() as u64) as usize;
            tree.observe_from(producer, key_hash(key));
        }
    }
}

fn close(measured: f64, expected: f64, case: &str) {
    let error = (measured - expected).abs();
    assert!(error < 0.01, "{case}: {measured}, expected {expected}");
}

#[test]
fn accesses_and_hits_of_each_level_are_those_of_the_tree() {
    for (levels, fanout) in [(1, 1), (2, 2), (2, 7), (3, 3), (4, 2), (3, 1)] {
        for arrivals in [1_u64, 2, 5] {
            let spec = TreeSpec::new(levels, fanout);
            let (mut sparse, mut dense) = (
                tree(spec, &ample()),
                tree(spec.mode(TreeMode::Dense), &ample()),
            );
            feed(&mut sparse, arrivals);
            feed(&mut dense, arrivals);
            let all = (KEYS * arrivals) as f64;
            for level in 0..levels {
                let case = format!("{levels} levels, fan-out {fanout}, level {level}, {arrivals}");
                let fresh = 1.0 / arrivals as f64;
                let counts = sparse.counts()[level as usize];
                let accesses = sparse_accesses(levels, fanout, level, fresh);
                close(counts.accesses as f64 / all, accesses, &case);
                let hits = (1.0 - fresh) * hit(levels, fanout, level, 1);
                close(counts.hits as f64 / all, hits, &case);

                let counts = dense.counts()[level as usize];
                let accesses = dense_accesses(levels, fanout, level, arrivals);
                close(counts.accesses as f64 / all, accesses, &case);
                let by_copies = (0..arrivals).map(|copies| tested(levels, fanout, level, copies));
                close(by_copies.sum::<f64>() / arrivals as f64, accesses, &case);
                let hits = (0..arrivals).map(|copies| hit(levels, fanout, level, copies));
                close(
                    counts.hits as f64 / all,
                    hits.sum::<f64>() / arrivals as f64,
                    &case,
                );
            }
        }
    }
}

#[test]
fn the_fpr_of_top_down_testing_is_that_of_the_tree() {
    let bytes = 8 << 10;
    let node: FilterSpec =
        echoless_papers::parse(&format!("bloom:k=3,memory={bytes}")).expect("valid");
    let keys = 20_000_u64;
    for topdown in 0..3 {
        let mut tree = tree(TreeSpec::new(3, 3).topdown(topdown), &node);
        let mut numbers = Numbers(1);
        for key in 0..keys {
            let producer = numbers.below(9) as usize;
            tree.observe_from(producer, key_hash(key));
        }
        let probes = 200_000;
        let wrong = (0..probes).filter(|key| {
            let producer = (*key % 9) as usize;
            tree.contains_from(producer, key_hash(u64::MAX - key))
        });
        let measured = wrong.count() as f64 / probes as f64;
        // The root holds every key, false positives included. The other nodes hold those that were
        // reported as fresh.
        let held = if topdown == 0 {
            keys
        } else {
            reported_fresh(&tree)
        };
        let expected = sparse_fpr(3, held, bytes * 8, 3_u64.pow(topdown));
        let error = (measured / expected - 1.0).abs();
        assert!(error < 0.05, "{topdown}: {measured}, expected {expected}");
    }
}

/// The number of arrivals that were fresh.
fn reported_fresh(tree: &BloomTree<Node>) -> u64 {
    let tally = echoless::Filter::tally(tree);
    tally.fresh.expect("a tree counts them")
}
