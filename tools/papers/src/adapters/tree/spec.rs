//! The specification of a tree: its text, its limits, and how memory is divided among the nodes.

use super::sequential::BloomTree;
use super::shape::Shape;
use super::shared::SharedTree;
use echoless::extend::{AdapterRow, Head, Layers, Named, OptionRow, Value, names, within};
use echoless::spec::{Facts, Form, Options};
use echoless::theory::RateModel;
use echoless::{BuildError, Filter, SharedLayout, SharedSpec, SpecError};

/// What the nodes below the root hold (paper 001, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TreeMode {
    /// First-test-then-set (algorithm 2): a key is tested from its leaf up to the root, and
    /// recorded on the way down only if no node holds it. Each key is in one leaf, and a duplicate
    /// changes nothing. Nodes can have windows.
    Sparse,
    /// Test-and-set (algorithm 1): each node on the way up tests and records the key, until one
    /// holds it. A key is in the leaf of every producer that observed it, so that a repeat of the
    /// same producer ends at the leaf.
    Dense,
}

/// The modes and their names; the first is the default, because it suits all nodes.
const MODES: [(&str, TreeMode); 2] = [("sparse", TreeMode::Sparse), ("dense", TreeMode::Dense)];

/// The most levels of a tree.
const MOST_LEVELS: u32 = 16;

/// The most nodes of a tree.
const MOST_NODES: usize = 1 << 16;

/// The specification of a tree of filters.
///
/// The text options are `levels`, `fanout`, `mode` (`sparse` or `dense`) and `topdown`. Levels are
/// numbered from the root, 0, to the leaves, `levels - 1`.
///
/// **Memory** is that of all nodes together. Each of the
/// (`fanout`^`levels` - 1) / (`fanout` - 1) nodes gets an equal share, rounded down to bytes; a
/// node in lines rounds its share down to whole lines. So all nodes have one configuration, as in
/// the paper, and the same seed. A tree has the false positive rate of its root, so at equal memory
/// it makes more false positives than a single filter: it saves accesses to the root, not memory.
///
/// # Examples
/// ```
/// use echoless::spec::Options;
/// use echoless::{Filter, KeyHasher, Verdict};
/// use echoless_papers::TreeSpec;
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// let spec = TreeSpec::parse(&mut Options::parse("levels=3,fanout=2,mode=sparse")?)?;
/// let node = echoless_papers::parse("bloom:k=4,form=line")?;
/// let build_node = |memory, seed| node.memory(memory).seed(seed).build();
/// let mut tree = spec.build(7 << 10, 0, build_node)?;
/// assert_eq!(tree.memory_bytes(), 7 << 10); // 1 KiB for each of 7 nodes
/// assert_eq!(tree.observe_from(0, key), Verdict::Fresh);
/// assert_eq!(tree.observe_from(3, key), Verdict::Duplicate);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeSpec {
    /// The number of levels, 1 to 16. A tree of one level is a single filter.
    pub levels: u32,
    /// The children of an inner node, at least 1; at most 65536 nodes in all.
    pub fanout: u32,
    /// What the nodes below the root hold.
    pub mode: TreeMode,
    /// The level d of top-down testing: a match at a level above d counts only if a node of level d
    /// confirms it. 0 to `levels - 1`; at 0 every match counts.
    pub topdown: u32,
}

impl TreeSpec {
    /// The name of the tree in specifications.
    pub const NAME: &'static str = "tree";

    /// A sparse tree without top-down testing.
    #[must_use]
    pub const fn new(levels: u32, fanout: u32) -> Self {
        Self {
            levels,
            fanout,
            mode: TreeMode::Sparse,
            topdown: 0,
        }
    }

    /// Sets the mode.
    #[must_use]
    pub const fn mode(mut self, mode: TreeMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the level of top-down testing.
    #[must_use]
    pub const fn topdown(mut self, level: u32) -> Self {
        self.topdown = level;
        self
    }

    /// Takes the options of a tree. Without options, a sparse tree of a root and two leaves.
    ///
    /// # Errors
    /// [`SpecError`] if a value is not a number or not a mode, or outside its range.
    ///
    /// # Examples
    /// ```
    /// use echoless::spec::Options;
    /// use echoless_papers::TreeSpec;
    /// let parse = |text| TreeSpec::parse(&mut Options::parse(text)?);
    /// assert_eq!(parse("levels=3,topdown=1"), Ok(TreeSpec::new(3, 2).topdown(1)));
    /// let error = parse("mode=thin").unwrap_err();
    /// assert_eq!(error.to_string(), "invalid mode=thin: expected one of sparse, dense");
    /// ```
    pub fn parse(options: &mut Options) -> Result<Self, SpecError> {
        Named::parse(&ROW.head, Form::Scattered, options).map(|named| Self::of(&named))
    }

    /// All options that [`parse`](Self::parse) takes, as text, defaults included.
    #[must_use]
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let mut named = Named::default_of(&ROW.head, Form::Scattered);
        let mode = MODES.iter().position(|(_, mode)| *mode == self.mode);
        named.set("levels", Value::Whole(self.levels.into()));
        named.set("fanout", Value::Whole(self.fanout.into()));
        named.set("mode", mode.map_or(Value::Unset, Value::Choice));
        named.set("topdown", Value::Whole(self.topdown.into()));
        named.options()
    }

    fn of(named: &Named) -> Self {
        Self {
            levels: named.small("levels"),
            fanout: named.small("fanout"),
            mode: named.choice("mode", &MODES),
            topdown: named.small("topdown"),
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// [`SpecError`] if a value is outside the range that its field states.
    ///
    /// # Examples
    /// ```
    /// use echoless_papers::TreeSpec;
    /// let error = TreeSpec::new(3, 1000).check().unwrap_err();
    /// let expected = "invalid fanout=1000: expected 1 to 255 (at most 65536 nodes in 3 levels)";
    /// assert_eq!(error.to_string(), expected);
    /// ```
    pub fn check(self) -> Result<(), SpecError> {
        self.nodes()?;
        within("topdown", self.topdown, 0..=self.levels - 1)?;
        Ok(())
    }

    /// The number of nodes.
    ///
    /// # Errors
    /// [`SpecError`] if `levels` or `fanout` is outside its range.
    pub fn nodes(self) -> Result<usize, SpecError> {
        within("levels", self.levels, 1..=MOST_LEVELS)?;
        let nodes = |fanout: u32| {
            let powers = (0..self.levels).map(|level| u64::from(fanout).checked_pow(level));
            let sum = powers.sum::<Option<u64>>();
            sum.and_then(|nodes| usize::try_from(nodes).ok())
                .filter(|nodes| *nodes <= MOST_NODES)
        };
        if let Some(nodes) = nodes(self.fanout).filter(|_| self.fanout > 0) {
            return Ok(nodes);
        }
        let most = (1..=MOST_NODES as u32)
            .rev()
            .find(|fanout| nodes(*fanout).is_some());
        let allowed = format!(
            "1 to {} (at most {MOST_NODES} nodes in {} levels)",
            most.unwrap_or(1),
            self.levels
        );
        Err(SpecError::new("fanout", self.fanout.to_string(), allowed))
    }

    /// The memory of one node, if all nodes have `memory` bytes together.
    ///
    /// # Errors
    /// [`SpecError`] if that is less than a byte, or `levels` or `fanout` is outside its range.
    pub fn node_memory(self, memory: u64) -> Result<u64, SpecError> {
        let nodes = self.nodes()? as u64;
        if memory < nodes {
            let allowed = format!("at least {nodes} B (a byte for each of {nodes} nodes)");
            return Err(SpecError::new("memory", format!("{memory} B"), allowed));
        }
        Ok(memory / nodes)
    }

    /// The number of cache lines that a fresh key touches at most, if it touches `node` lines in a
    /// node: those of one node in each level, and in the levels that top-down testing searches
    /// those of all nodes. (A sparse tree sets the lines that it has tested.)
    ///
    /// # Examples
    /// ```
    /// use echoless_papers::TreeSpec;
    /// assert_eq!(TreeSpec::new(3, 4).cache_lines(1.0), 3.0);
    /// assert_eq!(TreeSpec::new(3, 4).topdown(2).cache_lines(1.0), 1.0 + 4.0 + 16.0);
    /// ```
    #[must_use]
    pub fn cache_lines(self, node: f64) -> f64 {
        // In closed form, for a number of levels that no tree has, too.
        let searched = self.topdown.saturating_add(1).min(self.levels);
        let fanout = f64::from(self.fanout);
        let in_searched = match self.fanout {
            1 => f64::from(searched),
            _ => (fanout.powi(i32::try_from(searched).unwrap_or(i32::MAX)) - 1.0) / (fanout - 1.0),
        };
        node * (in_searched + f64::from(self.levels - searched))
    }

    /// Builds the tree. `build_node` builds a node from its memory and its seed; every node gets
    /// the same of both.
    ///
    /// # Errors
    /// [`BuildError`] if a value is outside its range, the share of a node is too small for it, a
    /// node of a dense tree has a window, or `build_node` fails.
    pub fn build<F: Filter>(
        self,
        memory: u64,
        seed: u64,
        mut build_node: impl FnMut(u64, u64) -> Result<F, BuildError>,
    ) -> Result<BloomTree<F>, BuildError> {
        let share = self.node_memory(memory)?;
        BloomTree::new(self, |_level| {
            build_node(share, seed).map_err(|error| self.of_node(error))
        })
    }

    /// Builds the tree that producer threads use at once, in `memory` bytes for all nodes together.
    /// Every node has the layout `layout`.
    ///
    /// # Errors
    /// [`BuildError`] if a value is outside its range, the share of a node is less than a line,
    /// or the memory cannot be allocated. Also if `topdown` is not 0: between the verdict at the
    /// root and the records below it, another thread would take the match for a false positive. And
    /// if the layout has a window, because a tree has no clock.
    ///
    /// # Examples
    /// ```
    /// use echoless::{KeyHasher, SharedLayout, Verdict};
    /// use echoless_papers::{TreeMode, TreeSpec};
    /// let key = KeyHasher::seeded(0).hash_u64(17);
    /// let spec = TreeSpec::new(2, 2).mode(TreeMode::Dense);
    /// let tree = spec.build_shared(3 << 20, SharedLayout::Row4x16)?;
    /// let fresh = std::thread::scope(|scope| {
    ///     let tree = &tree;
    ///     let observe = |producer| scope.spawn(move || tree.observe_from(producer, key));
    ///     let producers = [0, 1, 2, 3].map(observe);
    ///     let verdicts = producers.map(|producer| producer.join().unwrap());
    ///     verdicts.iter().filter(|verdict| **verdict == Verdict::Fresh).count()
    /// });
    /// assert_eq!(fresh, 1);
    /// # Ok::<(), echoless::BuildError>(())
    /// ```
    pub fn build_shared(self, memory: u64, layout: SharedLayout) -> Result<SharedTree, BuildError> {
        self.check()?;
        if self.topdown != 0 {
            let allowed = "0 in a shared tree, whose lower nodes lag behind the root";
            return Err(SpecError::new("topdown", self.topdown.to_string(), allowed).into());
        }
        if let SharedLayout::Stamped { .. } = layout {
            let allowed = "one without a window in a shared tree";
            return Err(SpecError::new("layout", "stamped", allowed).into());
        }
        let node = SharedSpec::new(self.node_memory(memory)?).layout(layout);
        let nodes = (0..self.nodes()?).map(|index| {
            // The count of a filter takes as much memory as 64 lines, so only the root has one.
            let built = match index {
                0 => node.build(),
                _ => node.build_uncounted(),
            };
            built.map_err(|error| self.of_node(error))
        });
        Ok(SharedTree::new(self, nodes.collect::<Result<_, _>>()?))
    }

    pub(super) fn shape(self) -> Shape {
        Shape::new(self.levels, self.fanout)
    }

    /// An error about the memory of a node states that it is a share.
    fn of_node(self, error: BuildError) -> BuildError {
        match (error, self.nodes()) {
            (BuildError::Spec(error), Ok(nodes)) if error.field == "memory" && nodes > 1 => {
                let allowed = format!("{}, for each of {nodes} nodes", error.allowed);
                SpecError { allowed, ..error }.into()
            }
            (error, _) => error,
        }
    }
}

const OPTIONS: &[OptionRow] = &[
    OptionRow::whole("levels", 1, MOST_LEVELS as u64, 2),
    OptionRow::whole("fanout", 1, MOST_NODES as u64, 2),
    OptionRow::choice("mode", &names(&MODES)),
    OptionRow::whole("topdown", 0, MOST_LEVELS as u64 - 1, 0),
];

/// Trees.
pub(crate) static ROW: AdapterRow = AdapterRow {
    head: Head {
        name: TreeSpec::NAME,
        options: |_| OPTIONS,
        complete: |named, _| TreeSpec::of(named).check(),
    },
    build: |named, inner| {
        let node = |memory, seed| {
            let node = Layers {
                memory,
                seed,
                ..inner
            };
            node.build()
        };
        let spec = TreeSpec::of(named);
        let tree = spec.build(inner.memory, inner.seed, node)?;
        Ok(Box::new(tree))
    },
    check_lines: None,
    facts: |named, inner| {
        let spec = TreeSpec::of(named);
        let share = spec.node_memory(inner.memory);
        let node = Layers {
            memory: *share.as_ref().unwrap_or(&0),
            ..inner
        };
        let node = node.facts();
        // A tree of filters that forget nothing has the verdicts of one of its nodes.
        let is_node = share.is_ok() && spec.topdown == 0;
        let forgets = |model: &RateModel| matches!(model, RateModel::Stable { .. });
        // A key that was never seen is a duplicate if one of the nodes on its way matches, at most
        // one in each level. Top-down testing only takes matches back.
        let of_levels = |limit: f64| f64::from(spec.levels) * limit;
        Facts {
            cache_lines: match share {
                Ok(_) => spec.cache_lines(node.cache_lines),
                Err(_) => 0.0,
            },
            rate_model: node.rate_model.filter(|model| is_node && !forgets(model)),
            fpr_limit: share.ok().and(node.fpr_limit).map(of_levels),
            most_memory: node
                .most_memory
                .saturating_mul(spec.nodes().map_or(1, |nodes| nodes as u64)),
            // A duplicate that is found on the way up changes no node.
            renews_keys: false,
            forgets_by_time: false,
            ..node
        }
    },
};
