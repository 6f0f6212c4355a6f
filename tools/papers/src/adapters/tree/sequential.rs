//! The tree with one owner: tests from a leaf to the root, in both modes, and top-down testing.
//!
//! ```text
//!   sparse: first test, then set             dense: test and set
//!
//!   root    3 test -- held? Duplicate        3 test and set -- held? Duplicate
//!           |   4 set                        |
//!   inner   2 test  |   else continue        2 test and set -- held? Duplicate
//!           |       5 set                    |
//!   leaf    1 test  |                        1 test and set -- held? Duplicate
//!           |       6 set
//!         producer                         producer
//! ```
//!
//! # What follows from the algorithms
//!
//! Let every node be the same filter, and let that filter never forget: recording a key only sets
//! bits, and a key is held if all its bits are set. Then, after every arrival,
//!
//! 1. a node has all the bits of its children: a key that is set in a child is set in the parent,
//!    or the parent held it already;
//! 2. the root has exactly the bits of a single filter that observed the same stream: it is set
//!    whenever it does not hold the key, and a match below the root is a match at the root by 1;
//! 3. an arrival is a duplicate if and only if some node of level d holds its key, where d is the
//!    level of top-down testing. A match at level d or below stands, and is a match of its ancestor
//!    at level d. A match above level d stands if and only if one of the nodes of level d below it
//!    holds the key; the one on the path of the arrival was tested on the way up.
//!
//! From 2 and 3 with d = 0: the sparse tree, the dense tree and the single filter give the same
//! verdicts (paper 001, propositions 3 and 4, which state that their false positive rates are
//! equal and that the tree has no additional false positives). With d > 0, a key that the single
//! filter reports as fresh is fresh in the dense tree, and one that is fresh in the dense tree is
//! fresh in the sparse one, because the nodes of a dense tree have all bits of those of the sparse
//! one. No duplicate is missed at any d: after an arrival some node of level d holds its key,
//! because the key was recorded, or else by 3. `tests/trees` checks all of this on every arrival.
//!
//! # Where this differs from the paper
//!
//! By the text of the top-down heuristic a match that no child confirms ends the test: the key is
//! distinct. The key can have arrived elsewhere in the tree, though, so in trees of three or more
//! levels with d >= 2 that rule misses duplicates. Here such a match counts as a miss, and the test
//! goes on at the parent. The paper also leaves open whether a key that is distinct by the
//! heuristic is recorded. Here it is, as all fresh keys are, or its repeats would be fresh too.

use super::shape::{NodeId, Shape};
use super::spec::{TreeMode, TreeSpec};
use echoless::{Batch, BuildError, Filter, KeyHash, Report, SpecError, Tally, Verdict, Verdicts};

/// What happened at one level of a tree, over all of its nodes (paper 001, table 1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelCounts {
    /// How often a node was tested or set. To test and set in one step counts once. A fresh key
    /// counts twice in a sparse tree, when it is tested and when it is set.
    pub accesses: u64,
    /// The arrivals that were duplicates because of a match at this level.
    pub hits: u64,
}

/// A tree of filters, each at the leaf of some producers or above several of them. An inner node
/// holds the union of its children (paper 001, section 6).
///
/// An arrival is tested at the leaf of its producer, then at the parent, and so on to the root; it
/// is a duplicate at the first node that holds it. Producer `p` belongs to leaf `p % leaves`.
/// [`TreeMode`] determines when the key is recorded. Cache lines touched per key: those of a node
/// for each level up to the match; for a fresh key, those of a node in each level
/// ([`TreeSpec::cache_lines`]).
///
/// **Top-down testing** with level d > 0: a match at a level j < d is tested again in the children
/// other than the one that the test came from, and so on in the children that match, down to level
/// d. If none confirms it, the match counts as a miss. (This differs from the text of the paper,
/// where the test ends there: in trees of three or more levels that would miss duplicates of keys
/// that arrived in other branches.) Children are tested one after the other until one confirms.
///
/// **As a [`Filter`]**, a tree deals its arrivals to the producers in turn: arrival number `i`
/// since it was built or cleared, duplicates included, belongs to producer `i % leaves`.
/// [`contains`](Filter::contains) answers for the producer of the next arrival.
///
/// **What the nodes can be**: any filter. If all nodes are Bloom filters of one configuration, no
/// duplicate is missed, and without top-down testing the verdicts are those of a single such
/// filter; with it, there are fewer false positives. Filters that forget keep neither promise: a
/// key that the root has forgotten may still be held at a leaf. In a sparse tree, a duplicate
/// changes no node, so it neither renews its key (LRU) nor ages the others.
///
/// **Windows** need a sparse tree. All nodes of a path record a key at the same tick, so the key
/// expires everywhere a window after it was reported as fresh, however often it arrived since. A
/// dense tree would record duplicates at its leaves, and remember them for too long. A window that
/// a filter counts in its own arrivals counts those that reach the node. With top-down testing,
/// nodes should renew keys (`refresh=true`): a fresh key that has a false match at an inner node
/// otherwise expires there with the key that it matched.
///
/// # Examples
/// ```
/// use echoless::{KeyHasher, Verdict};
/// use echoless_papers::{BloomTree, TreeMode, TreeSpec};
/// let node = echoless_papers::parse("bloom:k=4,memory=16KiB")?;
/// let spec = TreeSpec::new(2, 2).mode(TreeMode::Dense);
/// let mut tree = BloomTree::new(spec, |_level| node.build())?;
/// let key = KeyHasher::seeded(0).hash(b"call 17");
/// assert_eq!(tree.observe_from(0, key), Verdict::Fresh);
/// // Found at the root, and recorded at the leaf of producer 1. The next one ends there.
/// assert_eq!(tree.observe_from(1, key), Verdict::Duplicate);
/// assert_eq!(tree.observe_from(1, key), Verdict::Duplicate);
/// let [root, leaves] = tree.counts() else { unreachable!("two levels") };
/// assert_eq!((root.accesses, root.hits), (2, 1));
/// assert_eq!((leaves.accesses, leaves.hits), (3, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct BloomTree<F> {
    spec: TreeSpec,
    shape: Shape,
    /// The nodes, level by level from the root.
    nodes: Vec<F>,
    /// The counters of each level, from the root.
    counts: Vec<LevelCounts>,
    observed: u64,
    fresh: u64,
    /// The producer of the next arrival that is dealt out, below the number of leaves.
    turn: usize,
}

impl<F: Filter> BloomTree<F> {
    /// A tree whose nodes `build_node` builds, given the level of the node, level by level from the
    /// root.
    ///
    /// # Errors
    /// [`BuildError`] if a value of `spec` is outside its range, a node of a dense tree has a
    /// window, or `build_node` fails.
    pub fn new(
        spec: TreeSpec,
        mut build_node: impl FnMut(u32) -> Result<F, BuildError>,
    ) -> Result<Self, BuildError> {
        spec.check()?;
        let shape = spec.shape();
        let levels = (0..spec.levels).flat_map(|level| {
            let nodes = spec.fanout.pow(level);
            (0..nodes).map(move |_| level)
        });
        let nodes: Vec<F> = levels.map(&mut build_node).collect::<Result<_, _>>()?;
        // The report of an empty tally reads no memory of the filter.
        let has_window = |node: &F| {
            node.report_on(Tally::new(node.memory_bytes()))
                .window
                .is_some()
        };
        if spec.mode == TreeMode::Dense && nodes.iter().any(has_window) {
            let allowed = "sparse, because the nodes have a window";
            return Err(SpecError::new("mode", "dense", allowed).into());
        }
        Ok(Self {
            counts: vec![LevelCounts::default(); shape.levels()],
            spec,
            shape,
            nodes,
            observed: 0,
            fresh: 0,
            turn: 0,
        })
    }

    /// The number of leaves.
    #[must_use]
    pub fn leaves(&self) -> usize {
        self.shape.leaves()
    }

    /// All nodes, level by level from the root; node `i` has the parent `(i - 1) / fanout`.
    #[must_use]
    pub fn nodes(&self) -> &[F] {
        &self.nodes
    }

    /// The counters of each level, from the root to the leaves.
    #[must_use]
    pub fn counts(&self) -> &[LevelCounts] {
        &self.counts
    }

    /// Tests and records one key of a producer.
    pub fn observe_from(&mut self, producer: usize, key: KeyHash) -> Verdict {
        Verdict::from_bit(self.observe_at(self.shape.leaf_of(producer), key))
    }

    /// Tests and records a batch of one producer in order; `verdicts` is resized to it.
    pub fn observe_batch_from(
        &mut self,
        producer: usize,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) {
        verdicts.reset(keys.len());
        let leaf = self.shape.leaf_of(producer);
        let words = verdicts.words_mut();
        Batch::new(keys).observe_each(words, |key| self.observe_at(leaf, key));
    }

    /// Whether the key would be reported as a duplicate if this producer observed it now. Changes
    /// nothing, the counters included.
    #[must_use]
    pub fn contains_from(&self, producer: usize, key: KeyHash) -> bool {
        let leaf = self.shape.leaf_of(producer);
        (0..self.shape.levels()).rev().any(|level| {
            let node = self.shape.on_path(level, leaf);
            self.node(node).contains(key) && self.confirms(node, leaf, key, &mut |_| {})
        })
    }

    /// Tests and records one key at a leaf; true means duplicate.
    fn observe_at(&mut self, leaf: usize, key: KeyHash) -> bool {
        self.observed += 1;
        for level in (0..self.shape.levels()).rev() {
            let node = self.shape.on_path(level, leaf);
            self.counts[level].accesses += 1;
            let held = match self.spec.mode {
                TreeMode::Sparse => self.node(node).contains(key),
                TreeMode::Dense => self.node_mut(node).observe_one(key).is_duplicate(),
            };
            if held && self.confirms_counted(node, leaf, key) {
                self.counts[level].hits += 1;
                return true;
            }
        }
        self.fresh += 1;
        match self.spec.mode {
            TreeMode::Sparse => self.set_path(leaf, key),
            // Every node of the path has recorded the key or held it before.
            TreeMode::Dense => {}
        }
        false
    }

    /// Records a fresh key from the root to its leaf: the second half of first-test-then-set.
    fn set_path(&mut self, leaf: usize, key: KeyHash) {
        for level in 0..self.shape.levels() {
            self.counts[level].accesses += 1;
            let node = self.shape.on_path(level, leaf);
            self.node_mut(node).observe_one(key);
        }
    }

    /// [`confirms`](Self::confirms) in a tree that counts its accesses.
    fn confirms_counted(&mut self, node: NodeId, leaf: usize, key: KeyHash) -> bool {
        // Taken out, because the tests borrow the nodes meanwhile. Takes no allocation.
        let mut counts = std::mem::take(&mut self.counts);
        let confirmed = self.confirms(node, leaf, key, &mut |level| counts[level].accesses += 1);
        self.counts = counts;
        confirmed
    }

    /// Whether a match at `node`, on the path of `leaf`, is a duplicate: if the node is not above
    /// the level of top-down testing, or a child off the path confirms the match.
    ///
    /// The child on the path is not tested again: it did not hold the key, or its match was not
    /// confirmed. (In a dense tree it holds the key by now.)
    fn confirms(
        &self,
        node: NodeId,
        leaf: usize,
        key: KeyHash,
        on_access: &mut dyn FnMut(usize),
    ) -> bool {
        if self.is_final(node) {
            return true;
        }
        let from = self.shape.on_path(node.level + 1, leaf);
        let mut others = self.shape.children(node).filter(|child| *child != from);
        others.any(|child| self.holds_below(child, key, on_access))
    }

    /// Whether the node holds the key, and so does a path from it to the level of top-down testing.
    fn holds_below(&self, node: NodeId, key: KeyHash, on_access: &mut dyn FnMut(usize)) -> bool {
        on_access(node.level);
        self.node(node).contains(key)
            && (self.is_final(node)
                || self
                    .shape
                    .children(node)
                    .any(|child| self.holds_below(child, key, on_access)))
    }

    /// Whether a match at the node needs no confirmation. It never does at a leaf, because the
    /// level of top-down testing is at most that of the leaves.
    const fn is_final(&self, node: NodeId) -> bool {
        node.level >= self.spec.topdown as usize
    }

    fn node(&self, node: NodeId) -> &F {
        &self.nodes[self.shape.index(node)]
    }

    fn node_mut(&mut self, node: NodeId) -> &mut F {
        let index = self.shape.index(node);
        &mut self.nodes[index]
    }

    /// The sum of the mean rates of the levels, at most 1; `None` if a node has no estimate.
    fn rate_bound(&self) -> Option<f64> {
        let mut sum = 0.0;
        let mut nodes = self.nodes.iter();
        for level in 0..self.spec.levels {
            let count = self.spec.fanout.pow(level);
            let rates = nodes.by_ref().take(count as usize);
            let rates = rates.map(|node| node.report().expected_fpr);
            sum += rates.sum::<Option<f64>>()? / f64::from(count);
        }
        Some(sum.min(1.0))
    }
}

impl<F: Filter> Filter for BloomTree<F> {
    /// Deals the keys to the producers in turn.
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        batch.observe_runs(duplicates, |tick, batch, duplicates| {
            if let Some(tick) = tick {
                self.nodes.iter_mut().for_each(|node| node.advance_to(tick));
            }
            batch.observe_each(duplicates, |key| {
                let leaf = self.turn;
                self.turn = (leaf + 1) % self.shape.leaves();
                self.observe_at(leaf, key)
            });
        });
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.contains_from(self.turn, key)
    }

    fn clear(&mut self) {
        self.nodes.iter_mut().for_each(Filter::clear);
        self.counts.fill(LevelCounts::default());
        (self.observed, self.fresh, self.turn) = (0, 0, 0);
    }

    fn memory_bytes(&self) -> u64 {
        self.nodes.iter().map(Filter::memory_bytes).sum()
    }

    /// Arrivals are those of the tree; evictions, cells and memory are summed over the nodes.
    fn tally(&self) -> Tally {
        Tally {
            observed: Some(self.observed),
            fresh: Some(self.fresh),
            // The mean over the lines of all nodes is not a rate of the tree.
            rates: None,
            ..self.nodes.iter().map(Filter::tally).sum()
        }
    }

    /// The false positive rate is a bound: the sum, over the levels, of the mean rates of their
    /// nodes. While no node forgets, a match below the root is also one at the root, and the rate
    /// is that of the root alone. There is no estimate of the age at which misses begin, because it
    /// differs from level to level.
    fn report_on(&self, tally: Tally) -> Report {
        let root = &self.nodes[0];
        Report {
            expected_fpr: self.rate_bound(),
            expected_false_duplicates: None,
            most_fpr: None,
            miss_age: None,
            ..Report {
                tally,
                ..root.report_on(Tally::new(root.memory_bytes()))
            }
        }
    }
}
