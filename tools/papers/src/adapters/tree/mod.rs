//! Bloom trees (paper 001, section 6): a filter near each producer, and above them filters that
//! hold the union of their children. A key is tested near its producer first, so most duplicates
//! never reach the root.
//!
//! | file | holds |
//! |---|---|
//! | `shape` | levels, fan-out, and the path from a leaf to the root |
//! | `spec` | the specification: its text, its limits, how memory is divided |
//! | `sequential` | the tree with one owner: sparse, dense, top-down testing, counters |
//! | `shared` | the tree that producer threads use at once, through `&self` |
//!
//! The formulas are in [`theory::tree`](crate::theory::tree).

mod sequential;
mod shape;
mod shared;
mod spec;

pub use sequential::{BloomTree, LevelCounts};
pub use shared::SharedTree;
pub(crate) use spec::ROW;
pub use spec::{TreeMode, TreeSpec};
