//! Every verdict and counter of a tree against the model, and the ways to feed one.

use echoless::{Filter, FilterSpec, KeyHash, Verdict, Verdicts};
use proptest::prelude::*;

use crate::harness::{Arrival, key_hash, specs, streams, tree, verdicts};
use crate::model::{Refuted, Tree};

fn bloom(hashes: usize, bytes: usize) -> FilterSpec {
    let text = format!("bloom:k={hashes},memory={bytes}");
    echoless_papers::parse(&text).expect("a valid text")
}

proptest! {
    #[test]
    fn trees_agree_with_their_model(
        spec in specs(),
        hashes in 1_usize..5,
        bytes in 2_usize..60,
        stream in streams(),
    ) {
        let size = bytes * 8 / hashes;
        let mut model = Tree::new(spec, hashes, size, Refuted::GoesOn);
        let mut tree = tree(spec, &bloom(hashes, bytes));
        for (index, Arrival { producer, key }) in stream.iter().copied().enumerate() {
            let expected = model.observe(producer, key);
            prop_assert_eq!(tree.contains_from(producer, key), expected, "at {}", index);
            let duplicate = tree.observe_from(producer, key) == Verdict::Duplicate;
            prop_assert_eq!(duplicate, expected, "at {}", index);
        }
        let counts: Vec<(u64, u64)> =
            tree.counts().iter().map(|level| (level.accesses, level.hits)).collect();
        prop_assert_eq!(counts, model.counts.clone());
        prop_assert_eq!(tree.nodes().len(), model.bits().len());
        for (node, bits) in tree.nodes().iter().zip(model.bits()) {
            let ones = bits.iter().flatten().filter(|bit| **bit).count() as u64;
            prop_assert_eq!(node.tally().cells.map(|cells| cells.occupied), Some(ones));
        }
    }

    #[test]
    fn batches_and_turns_are_single_arrivals(
        spec in specs(),
        stream in streams(),
        part in 1_usize..200,
    ) {
        let node = bloom(3, 20);
        let keys: Vec<KeyHash> = stream.iter().map(|arrival| arrival.key).collect();
        let (mut dealt, mut single) = (tree(spec, &node), tree(spec, &node));
        let leaves = dealt.leaves();
        let in_turn = |(index, key): (usize, &KeyHash)| {
            let producer = index % leaves;
            Arrival { producer, key: *key }
        };
        let arrivals: Vec<Arrival> = keys.iter().enumerate().map(in_turn).collect();
        let expected = verdicts(&mut single, &arrivals);
        // Twice, once before and once after it is cleared.
        for _ in 0..2 {
            let mut all = Vec::new();
            let mut batch = Verdicts::new();
            for keys in keys.chunks(part) {
                let first = dealt.contains(keys[0]);
                dealt.observe(keys, &mut batch);
                prop_assert_eq!(batch.is_duplicate(0), first);
                all.extend(batch.to_bools());
            }
            prop_assert_eq!(&all, &expected);
            prop_assert_eq!(dealt.counts(), single.counts());
            dealt.clear();
        }
        prop_assert!(keys.iter().all(|key| !dealt.contains(*key)));
        prop_assert!(dealt.counts().iter().all(|level| level.accesses == 0 && level.hits == 0));

        // One producer sends all of them.
        single.clear();
        let mut batch = Verdicts::new();
        for (number, keys) in keys.chunks(part).enumerate() {
            dealt.observe_batch_from(number, keys, &mut batch);
            let mut observe = |key: &KeyHash| single.observe_from(number, *key).is_duplicate();
            let one_by_one = keys.iter().map(&mut observe);
            prop_assert_eq!(batch.to_bools(), one_by_one.collect::<Vec<_>>());
        }
    }
}

/// By the text of the paper, a match that no child confirms ends the test. In a tree of three
/// levels the key may lie in another branch, so that rule misses duplicates.
#[test]
fn to_stop_at_a_match_that_is_not_confirmed_misses_duplicates() {
    let spec = echoless_papers::TreeSpec::new(3, 2).topdown(2);
    let stream = crate::harness::uniform_stream(400, 150, 4);
    let missed = |refuted| {
        let mut model = Tree::new(spec, 2, 250, refuted);
        let mut seen = std::collections::HashSet::new();
        let misses = stream.iter().filter(|arrival| {
            let duplicate = model.observe(arrival.producer, arrival.key);
            !seen.insert(arrival.key) && !duplicate
        });
        misses.count()
    };
    assert!(missed(Refuted::IsDistinct) > 0);
    assert_eq!(missed(Refuted::GoesOn), 0);
}

#[test]
fn a_tree_of_one_level_is_its_filter() {
    for name in ["bloom", "rlbsbf", "sbf", "qqht", "a2"] {
        let text = format!("{name}:memory=300,seed=3");
        let node: FilterSpec = echoless_papers::parse(&text).expect("valid");
        let spec = echoless_papers::TreeSpec::new(1, 4).mode(echoless_papers::TreeMode::Dense);
        let (mut dense, mut alone) = (tree(spec, &node), node.build().expect("valid"));
        for key in (0..5000).map(|key| key_hash(key * key % 1201)) {
            assert_eq!(dense.contains(key), alone.contains(key), "{name}");
            assert_eq!(dense.observe_one(key), alone.observe_one(key), "{name}");
        }
    }
}
