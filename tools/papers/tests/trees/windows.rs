//! Sparse trees with a window against a map of keys to the ticks at which they were fresh.

use std::collections::HashMap;

use echoless::{BuildError, Filter, FilterSpec, KeyHash};
use echoless_papers::{TreeMode, TreeSpec};
use proptest::prelude::*;

use crate::harness::{specs, tree};

/// A key with a fingerprint of its own, in a random line.
fn key_hash(key: u64) -> KeyHash {
    KeyHash::from_uniform(KeyHash::from_uniform(key).remix(1) & !0xffff | (key + 1))
}

proptest! {
    /// Stamped lines are exact to the tick, and so few keys fill no line. The keys expire in all
    /// nodes at once, for any producers, and whether or not the filter would renew them.
    #[test]
    fn a_key_expires_a_window_after_it_was_fresh(
        spec in specs(),
        window in 1_u64..60,
        refresh: bool,
        stream in prop::collection::vec((0_u64..12, 0_usize..40, 0_u64..8), 0..500),
    ) {
        let text = format!("stamped:window={window},refresh={refresh},memory=256");
        let node: FilterSpec = echoless_papers::parse(&text).expect("valid");
        let mut tree = tree(spec.mode(TreeMode::Sparse), &node);
        let mut fresh_at = HashMap::new();
        let mut now = 0_u64;
        for (step, producer, key) in stream {
            // Mostly bursts; sometimes a late event, which does not move the clock.
            let event = match step {
                11 => now.saturating_sub(window),
                step => now + step.saturating_sub(6),
            };
            now = now.max(event);
            tree.advance_to(event);
            let expected = fresh_at.get(&key).is_some_and(|tick| now - tick <= window);
            let duplicate = tree.observe_from(producer, key_hash(key)).is_duplicate();
            prop_assert_eq!(duplicate, expected, "key {} at {}", key, now);
            if !expected {
                fresh_at.insert(key, now);
            }
        }
        prop_assert_eq!(tree.report().window, node.facts().window);
        prop_assert_eq!(tree.report().tally.evictions, Some(0));
    }
}

#[test]
fn dense_trees_have_no_windows() {
    let spec = TreeSpec::new(2, 2).mode(TreeMode::Dense);
    for text in ["clocked:window=10,memory=64", "stamped:window=10,memory=64"] {
        let node: FilterSpec = echoless_papers::parse(text).expect("valid");
        let error = spec.build(192, 0, |memory, _| node.memory(memory).build());
        let BuildError::Spec(error) = error.expect_err("dense") else {
            panic!("an error of the specification");
        };
        let expected = "invalid mode=dense: expected sparse, because the nodes have a window";
        assert_eq!(error.to_string(), expected);
    }
}
