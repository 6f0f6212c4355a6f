//! A tree of Bloom filters as paper 001 describes it: nodes own their children, and the algorithms
//! are recursions over them.

use echoless::KeyHash;
use echoless_papers::{TreeMode, TreeSpec};

/// What follows a match above the level of top-down testing that no child confirms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refuted {
    /// The test goes on at the parent, as in this library.
    GoesOn,
    /// The key is distinct, as in the text of the paper.
    IsDistinct,
}

#[derive(Debug, Clone)]
struct Node {
    level: usize,
    /// k filters.
    bits: Vec<Vec<bool>>,
    children: Vec<Node>,
}

/// Where the test of an arrival has ended.
enum Test {
    Duplicate,
    Distinct,
    Open,
}

pub(crate) struct Tree {
    spec: TreeSpec,
    refuted: Refuted,
    root: Node,
    /// Accesses and hits of each level.
    pub(crate) counts: Vec<(u64, u64)>,
}

impl Node {
    fn new(level: usize, levels: usize, fanout: usize, bits: &[Vec<bool>]) -> Self {
        let children = if level + 1 == levels { 0 } else { fanout };
        let child = |_| Self::new(level + 1, levels, fanout, bits);
        Self {
            level,
            bits: bits.to_vec(),
            children: (0..children).map(child).collect(),
        }
    }

    fn positions(&self, key: KeyHash) -> Vec<(usize, usize)> {
        let size = self.bits[0].len() as u64;
        let position = |filter| KeyHash::from_uniform(key.remix(filter as u64)).line(size) as usize;
        let filters = 0..self.bits.len();
        filters.map(|filter| (filter, position(filter))).collect()
    }

    fn holds(&self, key: KeyHash) -> bool {
        let mut positions = self.positions(key).into_iter();
        positions.all(|(filter, position)| self.bits[filter][position])
    }

    fn set(&mut self, key: KeyHash) {
        for (filter, position) in self.positions(key) {
            self.bits[filter][position] = true;
        }
    }
}

impl Tree {
    /// A tree of filters of k times `size` bits.
    pub(crate) fn new(spec: TreeSpec, hashes: usize, size: usize, refuted: Refuted) -> Self {
        let (levels, fanout) = (spec.levels as usize, spec.fanout as usize);
        Self {
            spec,
            refuted,
            root: Node::new(0, levels, fanout, &vec![vec![false; size]; hashes]),
            counts: vec![(0, 0); levels],
        }
    }

    /// The child to take at each level on the way from the root to the leaf of a producer: the
    /// digits of the number of the leaf, to the base of the fan-out.
    fn path(&self, producer: usize) -> Vec<usize> {
        let fanout = self.spec.fanout as usize;
        let inner_levels = self.spec.levels - 1;
        let mut left = producer % fanout.pow(inner_levels);
        let mut digits = vec![0; inner_levels as usize];
        for digit in digits.iter_mut().rev() {
            (*digit, left) = (left % fanout, left / fanout);
        }
        digits
    }

    /// Tests and records a key; true means duplicate.
    pub(crate) fn observe(&mut self, producer: usize, key: KeyHash) -> bool {
        let path = self.path(producer);
        let walk = Walk {
            key,
            mode: self.spec.mode,
            last: self.spec.topdown as usize,
            refuted: self.refuted,
        };
        let duplicate = matches!(
            walk.test(&mut self.root, &path, &mut self.counts),
            Test::Duplicate
        );
        if !duplicate && self.spec.mode == TreeMode::Sparse {
            let mut node = &mut self.root;
            node.set(key);
            self.counts[0].0 += 1;
            for (level, child) in path.into_iter().enumerate() {
                node = &mut node.children[child];
                node.set(key);
                self.counts[level + 1].0 += 1;
            }
        }
        duplicate
    }

    /// The bits of all nodes, level by level from the root.
    pub(crate) fn bits(&self) -> Vec<&Vec<Vec<bool>>> {
        let mut all = Vec::new();
        let mut level = vec![&self.root];
        while !level.is_empty() {
            all.extend(level.iter().map(|node| &node.bits));
            level = level.iter().flat_map(|node| &node.children).collect();
        }
        all
    }
}

/// The test of one arrival.
struct Walk {
    key: KeyHash,
    mode: TreeMode,
    /// The level of top-down testing.
    last: usize,
    refuted: Refuted,
}

impl Walk {
    /// Tests the nodes from the end of `path` up to `node`.
    fn test(&self, node: &mut Node, path: &[usize], counts: &mut [(u64, u64)]) -> Test {
        if let [child, rest @ ..] = path {
            match self.test(&mut node.children[*child], rest, counts) {
                Test::Open => {}
                ended => return ended,
            }
        }
        counts[node.level].0 += 1;
        if !node.holds(self.key) {
            if self.mode == TreeMode::Dense {
                node.set(self.key);
            }
            return Test::Open;
        }
        if self.confirmed(node, path.first().copied(), counts) {
            counts[node.level].1 += 1;
            return Test::Duplicate;
        }
        match self.refuted {
            Refuted::GoesOn => Test::Open,
            Refuted::IsDistinct => Test::Distinct,
        }
    }

    /// Whether a match at `node` stands. `from` is the child that the test came from.
    fn confirmed(&self, node: &Node, from: Option<usize>, counts: &mut [(u64, u64)]) -> bool {
        if node.level >= self.last {
            return true;
        }
        for (number, child) in node.children.iter().enumerate() {
            if Some(number) != from {
                counts[child.level].0 += 1;
                if child.holds(self.key) && self.confirmed(child, None, counts) {
                    return true;
                }
            }
        }
        false
    }
}
