//! Propositions 3 and 4 of paper 001. For filters that never forget they hold for every arrival,
//! in a stronger form than stated; for others the rates are compared on seeded streams.

use std::collections::HashSet;

use echoless::FilterSpec;
use echoless_papers::{TreeMode, TreeSpec};
use proptest::prelude::*;

use crate::harness::{specs, streams, tree, uniform_stream, verdicts};

/// Bloom filters, scattered and in lines.
fn bloom_nodes() -> impl Strategy<Value = FilterSpec> {
    let text = prop_oneof![
        (1_u32..5, 2_u32..60).prop_map(|(k, bytes)| format!("bloom:k={k},memory={bytes}")),
        (1_u32..20).prop_map(|k| format!("bloom:k={k},form=line,memory=64")),
    ];
    text.prop_map(|text| text.parse().expect("a valid text"))
}

proptest! {
    /// Proposition 3 and more: without top-down testing both trees are the single filter.
    #[test]
    fn sparse_and_dense_trees_have_the_verdicts_of_a_single_filter(
        spec in specs(),
        node in bloom_nodes(),
        stream in streams(),
    ) {
        let mut single = node.build().expect("valid");
        let expected: Vec<bool> = stream
            .iter()
            .map(|arrival| single.observe_one(arrival.key).is_duplicate())
            .collect();
        for mode in [TreeMode::Sparse, TreeMode::Dense] {
            let mut tree = tree(spec.mode(mode).topdown(0), &node);
            prop_assert_eq!(verdicts(&mut tree, &stream), &expected[..]);
            prop_assert_eq!(tree.nodes()[0].tally().cells, single.tally().cells);
        }
    }

    /// Proposition 4 with top-down testing, and that no duplicate is missed.
    #[test]
    fn fresh_in_the_single_filter_is_fresh_in_the_dense_and_then_in_the_sparse_tree(
        spec in specs(),
        node in bloom_nodes(),
        stream in streams(),
    ) {
        let mut single = node.build().expect("valid");
        let mut dense = tree(spec.mode(TreeMode::Dense), &node);
        let mut sparse = tree(spec.mode(TreeMode::Sparse), &node);
        let mut seen = HashSet::new();
        for arrival in &stream {
            let single = single.observe_one(arrival.key).is_duplicate();
            let dense = dense.observe_from(arrival.producer, arrival.key).is_duplicate();
            let sparse = sparse.observe_from(arrival.producer, arrival.key).is_duplicate();
            prop_assert!(single || !dense, "a false positive of the dense tree alone");
            prop_assert!(dense || !sparse, "a false positive of the sparse tree alone");
            prop_assert!(sparse || seen.insert(arrival.key), "a duplicate is missed");
            seen.insert(arrival.key);
        }
    }

    #[test]
    fn an_arrival_is_a_duplicate_if_a_node_at_the_level_of_top_down_testing_holds_it(
        spec in specs(),
        node in bloom_nodes(),
        stream in streams(),
    ) {
        let mut tree = tree(spec, &node);
        let count = |level: u32| spec.fanout.pow(level) as usize;
        let before: usize = (0..spec.topdown).map(count).sum();
        for arrival in &stream {
            let level = &tree.nodes()[before..before + count(spec.topdown)];
            let expected = level.iter().any(|node| node.contains(arrival.key));
            let duplicate = tree.observe_from(arrival.producer, arrival.key).is_duplicate();
            prop_assert_eq!(duplicate, expected);
        }
    }

    #[test]
    fn an_inner_node_holds_what_its_children_hold(
        spec in specs(),
        node in bloom_nodes(),
        stream in streams(),
    ) {
        let mut tree = tree(spec, &node);
        verdicts(&mut tree, &stream);
        for arrival in &stream {
            for child in 1..tree.nodes().len() {
                let parent = (child - 1) / spec.fanout as usize;
                let held = |node: usize| tree.nodes()[node].contains(arrival.key);
                prop_assert!(held(parent) || !held(child));
            }
        }
    }
}

/// The FPR and the FNR of a tree on a stream.
fn rates(spec: TreeSpec, node: &FilterSpec) -> (f64, f64) {
    let stream = uniform_stream(60_000, 30_000, 4);
    let mut seen = HashSet::new();
    let (mut fresh, mut wrong, mut missed) = (0.0, 0.0, 0.0);
    let verdicts = verdicts(&mut tree(spec, node), &stream);
    for (arrival, duplicate) in stream.iter().zip(verdicts) {
        let is_fresh = seen.insert(arrival.key);
        fresh += f64::from(u8::from(is_fresh));
        wrong += f64::from(u8::from(is_fresh && duplicate));
        missed += f64::from(u8::from(!is_fresh && !duplicate));
    }
    (wrong / fresh, missed / (60_000.0 - fresh))
}

/// Filters that forget: what a leaf remembers for longer than the root differs, so the rates agree
/// only roughly.
#[test]
fn sparse_and_dense_trees_of_filters_that_forget_have_similar_rates() {
    for text in [
        "rlbsbf:k=2,memory=8KiB",
        "rlbsbf:k=2,form=line,memory=8KiB",
        "sbf:memory=8KiB",
        "qqht:slots=8,bits=8,memory=16KiB",
    ] {
        let node: FilterSpec = echoless_papers::parse(text).expect("valid");
        let spec = TreeSpec::new(3, 2);
        let (sparse_fpr, sparse_fnr) = rates(spec, &node);
        let (dense_fpr, dense_fnr) = rates(spec.mode(TreeMode::Dense), &node);
        let alike = (sparse_fpr / dense_fpr - 1.0).abs();
        assert!(alike < 0.15, "{text}: {sparse_fpr} and {dense_fpr}");
        assert!(
            (sparse_fnr - dense_fnr).abs() < 0.05,
            "{text}: {sparse_fnr} and {dense_fnr}"
        );
    }
}
