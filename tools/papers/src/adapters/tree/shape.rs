//! The shape of a tree: how many levels, how many children, and where the nodes lie in memory.
//!
//! ```text
//! level 0                 0                 the root
//! level 1         1               2
//! level 2     3       4       5       6     the leaves, offsets 0 to 3
//! ```
//!
//! Nodes are numbered level by level. In a level, a node is known by its offset, so that parents,
//! children and ancestors are found by division and multiplication.

/// Levels numbered from the root, as in paper 001, and the number of children of an inner node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    fanout: usize,
    levels: Vec<Level>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    /// The number of the first node of the level.
    first: usize,
    /// How many leaves lie below a node of the level; 1 for a leaf.
    leaves: usize,
}

/// A node of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeId {
    pub(super) level: usize,
    /// The position of the node in its level.
    pub(super) offset: usize,
}

impl Shape {
    /// A tree of `levels` levels whose inner nodes have `fanout` children each. The specification
    /// has checked that the number of nodes is small.
    pub(super) fn new(levels: u32, fanout: u32) -> Self {
        let fanout = fanout as usize;
        let mut first = 0;
        let level = |level| {
            let this = first;
            first += fanout.pow(level);
            Level {
                first: this,
                leaves: fanout.pow(levels - 1 - level),
            }
        };
        Self {
            levels: (0..levels).map(level).collect(),
            fanout,
        }
    }

    pub(super) const fn levels(&self) -> usize {
        self.levels.len()
    }

    pub(super) fn leaves(&self) -> usize {
        self.levels[0].leaves
    }

    /// The leaf of a producer, as an offset among the leaves.
    pub(super) fn leaf_of(&self, producer: usize) -> usize {
        producer % self.leaves()
    }

    /// The number of a node: its index in an array of all nodes.
    pub(super) fn index(&self, node: NodeId) -> usize {
        self.levels[node.level].first + node.offset
    }

    /// The node of a level on the path from a leaf to the root.
    pub(super) fn on_path(&self, level: usize, leaf: usize) -> NodeId {
        NodeId {
            level,
            offset: leaf / self.levels[level].leaves,
        }
    }

    /// The children of an inner node.
    pub(super) fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        let first = node.offset * self.fanout;
        let level = node.level + 1;
        (first..first + self.fanout).map(move |offset| NodeId { level, offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_once_and_children_name_their_parent() {
        for (levels, fanout) in [(1, 1), (1, 5), (2, 3), (3, 2), (4, 1), (4, 3)] {
            let shape = Shape::new(levels, fanout);
            let mut level = vec![NodeId {
                level: 0,
                offset: 0,
            }];
            let mut numbers = 0;
            for depth in 0..levels as usize {
                for node in &level {
                    assert_eq!(shape.index(*node), numbers, "{levels} {fanout}");
                    numbers += 1;
                }
                if depth + 1 < shape.levels() {
                    let children = level.iter().flat_map(|node| shape.children(*node));
                    level = children.collect();
                }
            }
            assert_eq!(level.len(), shape.leaves());
            for leaf in 0..shape.leaves() {
                for depth in 1..shape.levels() {
                    let (node, parent) =
                        (shape.on_path(depth, leaf), shape.on_path(depth - 1, leaf));
                    assert!(shape.children(parent).any(|child| child == node));
                }
                assert_eq!(shape.on_path(shape.levels() - 1, leaf).offset, leaf);
                assert_eq!(shape.on_path(0, leaf).offset, 0);
                assert_eq!(shape.leaf_of(leaf + 3 * shape.leaves()), leaf);
            }
        }
    }
}
