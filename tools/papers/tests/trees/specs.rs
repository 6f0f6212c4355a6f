//! Text, limits, memory, reports.

use echoless::spec::Options;
use echoless::{BuildError, Filter, FilterSpec, SharedLayout, SpecError};
use echoless_papers::{BloomTree, TreeMode, TreeSpec};
use proptest::prelude::*;

use crate::harness::{Node, key_hash, modes, tree, uniform_stream};

fn parse(text: &str) -> Result<TreeSpec, SpecError> {
    let mut options = Options::parse(text)?;
    let spec = TreeSpec::parse(&mut options)?;
    options.finish()?;
    Ok(spec)
}

fn build(spec: TreeSpec, memory: u64, node: &str) -> Result<BloomTree<Node>, BuildError> {
    let node: FilterSpec = echoless_papers::parse(node)?;
    spec.build(memory, 7, |memory, seed| {
        node.memory(memory).seed(seed).build()
    })
}

fn message<T>(result: Result<T, impl std::fmt::Display>) -> String {
    result.err().expect("an error").to_string()
}

proptest! {
    #[test]
    fn specifications_survive_their_text(
        levels in 0_u32..20, fanout in 0_u32..300, topdown in 0_u32..20, mode in modes(),
    ) {
        let spec = TreeSpec::new(levels, fanout).mode(mode).topdown(topdown);
        let options = spec.options();
        let options = options.iter().map(|(key, value)| format!("{key}={value}"));
        let text: Vec<String> = options.collect();
        let valid = spec.check().is_ok();
        prop_assert_eq!(parse(&text.join(",")).ok(), valid.then_some(spec));
    }

    #[test]
    fn the_number_of_nodes_is_that_of_the_levels(levels in 0_u32..20, fanout in 0_u32..70_000) {
        let spec = TreeSpec::new(levels, fanout);
        // Counted level by level; capped, because the limit is far below.
        let (mut nodes, mut level) = (0_u64, 1_u64);
        for _ in 0..levels {
            nodes = (nodes + level).min(1 << 40);
            level = (level * u64::from(fanout)).min(1 << 40);
        }
        let valid = (1..=16).contains(&levels) && fanout > 0 && nodes <= 1 << 16;
        prop_assert_eq!(spec.nodes().ok(), valid.then_some(nodes as usize));
        prop_assert_eq!(spec.check().is_ok(), valid);
    }
}

#[test]
fn the_defaults_are_a_sparse_root_with_two_leaves() {
    assert_eq!(parse(""), Ok(TreeSpec::new(2, 2)));
    let dense = TreeSpec::new(3, 4).mode(TreeMode::Dense).topdown(1);
    assert_eq!(parse("levels=3,fanout=4,mode=dense,topdown=1"), Ok(dense));
}

#[test]
fn every_error_names_field_value_and_range() {
    for (text, expected) in [
        (
            "levels=x",
            "invalid levels=x: expected a whole number from 1 to 16",
        ),
        (
            "fanout=-1",
            "invalid fanout=-1: expected a whole number from 1 to 65536",
        ),
        (
            "mode=both",
            "invalid mode=both: expected one of sparse, dense",
        ),
        ("levels=3,topdown=3", "invalid topdown=3: expected 0 to 2"),
        (
            "topdown=1.5",
            "invalid topdown=1.5: expected a whole number from 0 to 15",
        ),
        (
            "depth=3",
            "invalid option=depth: expected one of levels, fanout, mode, topdown",
        ),
        (
            "levels=3,levels=4",
            "invalid option=levels=4: expected each key once",
        ),
    ] {
        assert_eq!(message(parse(text)), expected);
    }
    for (spec, expected) in [
        (TreeSpec::new(0, 2), "invalid levels=0: expected 1 to 16"),
        (TreeSpec::new(17, 2), "invalid levels=17: expected 1 to 16"),
        (
            TreeSpec::new(2, 0),
            "invalid fanout=0: expected 1 to 65535 (at most 65536 nodes in 2 levels)",
        ),
        (
            TreeSpec::new(16, 3),
            "invalid fanout=3: expected 1 to 2 (at most 65536 nodes in 16 levels)",
        ),
        (
            TreeSpec::new(2, 2).topdown(2),
            "invalid topdown=2: expected 0 to 1",
        ),
    ] {
        assert_eq!(message(spec.check()), expected);
        assert_eq!(message(build(spec, 1 << 20, "bloom")), expected);
        assert_eq!(
            message(spec.build_shared(1 << 20, SharedLayout::Row4x16)),
            expected
        );
    }
    let spec = TreeSpec::new(2, 2);
    for (memory, node, expected) in [
        (
            2,
            "bloom",
            "invalid memory=2 B: expected at least 3 B (a byte for each of 3 nodes)",
        ),
        (
            3,
            "bloom:k=9",
            "invalid memory=1 B: expected at least 2 B (one bit in each filter), \
             for each of 3 nodes",
        ),
        (300, "sqf:kept=3", "invalid kept=3: expected 1 to 2"),
    ] {
        assert_eq!(message(build(spec, memory, node)), expected);
    }
    let shared = |spec: TreeSpec, memory| message(spec.build_shared(memory, SharedLayout::Row4x16));
    assert_eq!(
        shared(spec.topdown(1), 1 << 20),
        "invalid topdown=1: expected 0 in a shared tree, whose lower nodes lag behind the root"
    );
    let (window, refresh) = (600, true);
    let layout = SharedLayout::Stamped { window, refresh };
    assert_eq!(
        message(spec.build_shared(1 << 20, layout)),
        "invalid layout=stamped: expected one without a window in a shared tree"
    );
    assert_eq!(
        shared(spec, 191),
        "invalid memory=63 B: expected at least 64 B (one line), for each of 3 nodes"
    );
    assert_eq!(
        shared(TreeSpec::new(1, 2), 63),
        "invalid memory=63 B: expected at least 64 B (one line)"
    );
}

#[test]
fn every_node_gets_an_equal_share_and_the_same_seed() {
    let mut shares = Vec::new();
    let node: FilterSpec = echoless_papers::parse("bloom").expect("valid");
    let spec = TreeSpec::new(3, 3);
    let tree = spec.build(1305, 7, |memory, seed| {
        shares.push((memory, seed));
        node.memory(memory).build()
    });
    assert_eq!(shares, [(100, 7); 13]);
    let tree = tree.expect("valid");
    assert_eq!((tree.leaves(), tree.nodes().len()), (9, 13));
    let shared = spec
        .build_shared(13 * 200, SharedLayout::Row2x32)
        .expect("valid");
    assert_eq!((shared.leaves(), shared.memory_bytes()), (9, 13 * 192));
}

#[test]
fn nodes_can_differ_by_level() {
    let spec = TreeSpec::new(3, 2);
    let mut levels = Vec::new();
    let tree = BloomTree::new(spec, |level| {
        levels.push(level);
        let node: FilterSpec = echoless_papers::parse("bloom:form=line")?;
        node.memory(1024 >> level).build()
    });
    assert_eq!(levels, [0, 1, 1, 2, 2, 2, 2]);
    assert_eq!(tree.expect("valid").memory_bytes(), 3 * 1024);
}

#[test]
fn reports_count_arrivals_and_bound_the_rate() {
    let node: FilterSpec =
        echoless_papers::parse("bloom:k=4,form=line,memory=4KiB").expect("valid");
    for mode in [TreeMode::Sparse, TreeMode::Dense] {
        let mut tree = tree(TreeSpec::new(3, 2).mode(mode), &node);
        let stream = uniform_stream(6_000, 5_000, 4);
        let mut fresh = 0;
        for arrival in &stream {
            let verdict = tree.observe_from(arrival.producer, arrival.key);
            fresh += u64::from(!verdict.is_duplicate());
        }
        let report = tree.report();
        assert_eq!(report.tally.observed, Some(6_000));
        assert_eq!(report.tally.fresh, Some(fresh));
        assert_eq!(report.tally.memory_bytes, 7 * 4096);
        let cells = report.tally.cells.expect("bits");
        assert_eq!(cells.total, 7 * 4096 * 8);
        let of_nodes = tree
            .nodes()
            .iter()
            .map(|node| node.tally().cells.expect("bits").occupied);
        assert_eq!(cells.occupied, of_nodes.sum::<u64>());
        // The probability for a new key is that of the root, and the bound is not far above it.
        let probes = 100_000;
        let wrong = (0..probes)
            .filter(|key| tree.contains(key_hash(u64::MAX - key)))
            .count();
        let measured = wrong as f64 / probes as f64;
        let bound = report.expected_fpr.expect("lines");
        assert!(
            bound > 0.97 * measured && bound < 2.0 * measured,
            "{measured} {bound}"
        );
        assert_eq!(report.kernel, tree.nodes()[0].report().kernel);
        assert_eq!(report.miss_age, None);
        tree.clear();
        assert_eq!(tree.tally().observed, Some(0));
        assert_eq!(tree.report().expected_fpr, Some(0.0));
    }
    // Scattered Bloom filters have no estimate, so the tree has none.
    let node: FilterSpec = echoless_papers::parse("bloom:memory=64").expect("valid");
    assert_eq!(tree(TreeSpec::new(2, 2), &node).report().expected_fpr, None);
}

/// It takes no time for each level, and is that of the definition for trees that can be built.
#[test]
fn cache_lines_of_any_numbers_are_found_at_once() {
    for (levels, fanout, topdown) in [(1, 5, 0), (4, 1, 2), (4, 3, 0), (4, 3, 3), (16, 2, 15)] {
        let nodes = |level| f64::from(fanout).powi(level as i32);
        let expected: f64 = (0..levels)
            .map(|level| if level <= topdown { nodes(level) } else { 1.0 })
            .sum();
        let spec = TreeSpec::new(levels, fanout).topdown(topdown);
        assert_eq!(spec.cache_lines(2.0), 2.0 * expected, "{spec:?}");
    }
    let most = f64::from(u32::MAX);
    assert_eq!(TreeSpec::new(u32::MAX, 2).cache_lines(1.0), most);
    let searched = TreeSpec::new(u32::MAX, 2).topdown(u32::MAX);
    assert_eq!(searched.cache_lines(1.0), f64::INFINITY);
}
