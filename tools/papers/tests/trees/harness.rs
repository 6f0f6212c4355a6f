//! Shared by the tests: streams of several producers, and trees of Bloom filters.

use echoless::{Filter, FilterSpec, KeyHash, KeyHasher};
use echoless_papers::{BloomTree, TreeMode, TreeSpec};
use proptest::prelude::*;

/// A key of a producer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) producer: usize,
    pub(crate) key: KeyHash,
}

pub(crate) type Node = Box<dyn Filter>;

/// Short streams with many repeats, of more producers than most trees have leaves.
pub(crate) fn streams() -> impl Strategy<Value = Vec<Arrival>> {
    let arrivals = |universe| prop::collection::vec((0_usize..40, 0..universe), 0..600);
    let streams = (1_u64..300).prop_flat_map(arrivals);
    streams.prop_map(|stream| {
        let arrival = |(producer, key)| Arrival {
            producer,
            key: key_hash(key),
        };
        stream.into_iter().map(arrival).collect()
    })
}

pub(crate) fn modes() -> impl Strategy<Value = TreeMode> {
    prop_oneof![Just(TreeMode::Sparse), Just(TreeMode::Dense)]
}

/// Trees of at most 40 nodes, with every level of top-down testing.
pub(crate) fn specs() -> impl Strategy<Value = TreeSpec> {
    let shapes = prop::sample::select(vec![
        (1, 1),
        (1, 7),
        (2, 1),
        (2, 2),
        (2, 5),
        (3, 2),
        (3, 3),
        (4, 2),
        (4, 3),
        (5, 1),
    ]);
    shapes.prop_flat_map(|(levels, fanout)| {
        (0..levels, modes())
            .prop_map(move |(level, mode)| TreeSpec::new(levels, fanout).mode(mode).topdown(level))
    })
}

pub(crate) fn key_hash(key: u64) -> KeyHash {
    KeyHasher::seeded(9).hash_u64(key)
}

/// A tree whose nodes all have this specification.
pub(crate) fn tree(spec: TreeSpec, node: &FilterSpec) -> BloomTree<Node> {
    BloomTree::new(spec, |_level| node.build()).expect("valid")
}

/// Whether each arrival is a duplicate.
pub(crate) fn verdicts(tree: &mut BloomTree<Node>, stream: &[Arrival]) -> Vec<bool> {
    let observe = |arrival: &Arrival| tree.observe_from(arrival.producer, arrival.key);
    stream
        .iter()
        .map(observe)
        .map(echoless::Verdict::is_duplicate)
        .collect()
}

/// A seeded sequence of numbers, for long streams.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 += 1;
        KeyHash::from_uniform(KeyHash::from_uniform(self.0).remix(77)).line(bound)
    }
}

/// A stream of uniform producers and uniform keys.
pub(crate) fn uniform_stream(count: u64, universe: u64, producers: u64) -> Vec<Arrival> {
    let mut numbers = Numbers(0);
    let arrival = |_| Arrival {
        producer: numbers.below(producers) as usize,
        key: key_hash(numbers.below(universe)),
    };
    (0..count).map(arrival).collect()
}
