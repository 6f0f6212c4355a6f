//! The tree for producers that are threads: the root decides, and the nodes below it are caches of
//! its decisions.
//!
//! ```text
//!   root    2 observe: one atomic operation on one word decides Fresh or Duplicate
//!           |   3 record, after the root has decided
//!   leaf    1 test  |         held? Duplicate: the root has decided before
//!           |       v
//!         producer
//! ```
//!
//! # What serialises the producers
//!
//! The key's word of the root, and nothing else. The paper locks the whole root; here two producers
//! wait for each other only if their keys fall into the same word, and only for one atomic
//! operation.
//!
//! # Why exactly one producer gets Fresh
//!
//! - *At most one.* `Fresh` is returned only by step 2, and of all threads that observe a key at
//!   the root, [`SharedFilter`] returns `Fresh` to one.
//! - *At least one, unless the key is a false positive.* A node below the root holds a key only
//!   after the root has recorded it, by step 3, or because of a false match. With Bloom words all
//!   nodes have the same bits for a key, and a node gains bits only after the root has, so a match
//!   below the root is a match at the root too.
//! - *No Duplicate comes before the Fresh.* A thread that reads the key at a lower node (Acquire)
//!   sees what the thread that recorded it there did before (Release): step 2, or, in a dense tree,
//!   reading the key at a node above, for which the same is true. Step 2 either was the Fresh or
//!   read a word that was written by it or after it (AcqRel). So the atomic operation at the root
//!   that returned `Fresh` is where the key is recorded, for all threads.
//!
//! Test-and-set from the leaf up, as in algorithm 1 of the paper, would break the last point: a
//! thread that has set its leaf and not yet reached the root causes `Duplicate` at this leaf for a
//! key that was not yet reported as fresh, and that a third producer can report as fresh later. A
//! dense tree here is therefore first-test-then-set as well, which the paper proposes for windows:
//! a duplicate is recorded in the nodes below the one that held it.
//!
//! Top-down testing is excluded: between steps 2 and 3 the leaf lacks a key that the root holds,
//! and the match at the root would be taken for a false positive, so that two threads get
//! `Fresh`.

use super::shape::Shape;
use super::spec::{TreeMode, TreeSpec};
use echoless::{KeyHash, SharedFilter, Verdict, Verdicts};

/// A tree of [`SharedFilter`]s that any number of producer threads use at once through `&self`
/// (paper 001, section 6). [`TreeSpec::build_shared`] builds it and has an
/// example.
///
/// Producer `p` belongs to leaf `p % leaves`; several threads may use one producer number. An
/// arrival is tested at its leaf and then upwards. The root decides with one atomic operation; the
/// nodes below record the key afterwards and answer its repeats from then on. In a sparse tree
/// only a fresh key is recorded, on its path; in a dense one also a duplicate, in the nodes of its
/// path below the one that held it.
///
/// **The guarantee** is that of the root as a [`SharedFilter`]: of any number of threads that
/// observe a new key, at one leaf or at several, exactly one gets [`Verdict::Fresh`], if the nodes
/// forget no key in between; for a false positive none does. A thread that gets `Duplicate` also
/// sees the writes that the thread that got `Fresh` made before it observed the key.
///
/// With [`SharedLayout::Bloom`](echoless::SharedLayout::Bloom) the verdicts of a single thread are
/// those of the root alone. Other layouts forget: a key that the root has forgotten may still be
/// held, and be a duplicate, at a leaf.
///
/// The root counts the keys that it records, which are the fresh ones, in [`SharedFilter::report`];
/// the nodes below it count nothing. Cache lines touched per key: one for each level up to the
/// match, and one for each level below it that records the key; a fresh key also the line of a
/// count.
#[derive(Debug)]
pub struct SharedTree {
    spec: TreeSpec,
    shape: Shape,
    /// The nodes, level by level from the root.
    nodes: Vec<SharedFilter>,
}

impl SharedTree {
    /// A tree of these nodes, as many as `spec` has, all of one configuration.
    pub(super) fn new(spec: TreeSpec, nodes: Vec<SharedFilter>) -> Self {
        Self {
            shape: spec.shape(),
            spec,
            nodes,
        }
    }

    /// The number of leaves.
    #[must_use]
    pub fn leaves(&self) -> usize {
        self.shape.leaves()
    }

    /// The root, which decides.
    #[must_use]
    pub fn root(&self) -> &SharedFilter {
        &self.nodes[0]
    }

    /// The leaf of a producer; the root, if there is only one level.
    #[must_use]
    pub fn leaf(&self, producer: usize) -> &SharedFilter {
        self.on_path(self.shape.levels() - 1, self.shape.leaf_of(producer))
    }

    /// The memory of the words of all nodes, in bytes. The count of the root takes 4 KiB more.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.nodes.iter().map(SharedFilter::memory_bytes).sum()
    }

    /// Tests and records one key of a producer. Producers share the leaves in turn: with `n`
    /// leaves, the leaf of producer `p` is leaf `p % n`.
    pub fn observe_from(&self, producer: usize, key: KeyHash) -> Verdict {
        self.observe_at(self.shape.leaf_of(producer), key)
    }

    /// Tests and records a batch of one producer in order; `verdicts` is resized to it.
    pub fn observe_batch_from(&self, producer: usize, keys: &[KeyHash], verdicts: &mut Verdicts) {
        let leaf = self.shape.leaf_of(producer);
        verdicts.reset(keys.len());
        for (index, key) in keys.iter().enumerate() {
            verdicts.set(index, self.observe_at(leaf, *key));
        }
    }

    /// Whether the key would be a duplicate now, if this producer observed it. Does not record it.
    #[must_use]
    pub fn contains_from(&self, producer: usize, key: KeyHash) -> bool {
        let leaf = self.shape.leaf_of(producer);
        let mut levels = (0..self.shape.levels()).rev();
        levels.any(|level| self.on_path(level, leaf).contains(key))
    }

    /// Forgets all keys. A key that is observed concurrently may be forgotten or stay, at some
    /// nodes or at all.
    pub fn clear(&self) {
        self.nodes.iter().for_each(SharedFilter::clear);
    }

    fn observe_at(&self, leaf: usize, key: KeyHash) -> Verdict {
        let levels = self.shape.levels();
        let mut below_root = (1..levels).rev();
        let held = below_root.find(|level| self.on_path(*level, leaf).contains(key));
        let (verdict, level) = match held {
            Some(level) => (Verdict::Duplicate, level),
            // The decision: of all threads that get here with a new key, one gets Fresh.
            None => (self.root().observe_one(key), 0),
        };
        let record = match (self.spec.mode, verdict) {
            (TreeMode::Sparse, Verdict::Duplicate) => false,
            (TreeMode::Sparse, Verdict::Fresh) | (TreeMode::Dense, _) => true,
        };
        if record {
            // Only now, after the root has decided or a node that follows it held the key: a node
            // below the root must not hold a key that was not yet reported as fresh. From the top,
            // so that this is true of each node and its parent as well.
            for level in level + 1..levels {
                self.on_path(level, leaf).observe_one(key);
            }
        }
        verdict
    }

    fn on_path(&self, level: usize, leaf: usize) -> &SharedFilter {
        let node = self.shape.on_path(level, leaf);
        &self.nodes[self.shape.index(node)]
    }
}
