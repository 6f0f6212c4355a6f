//! Tables of cells, of which every key has k: what adapters need to cut or to stack such filters.

use std::fmt;
use std::ops::Range;

use crate::hash::KeyHash;
use crate::report::Cells;

/// A table of cells, of which every key has k: those of a Bloom filter, or timers.
pub trait CellTable: fmt::Debug + Send + Sync {
    /// k: the cells of a key, 1 to 64.
    fn hashes(&self) -> usize;

    /// m: the number of cells.
    fn cell_count(&self) -> u64;

    /// The number of cell `index` of a key, below m; `index` is below k.
    fn position(&self, key: KeyHash, index: usize) -> u64;

    /// Whether a cell is set.
    fn is_set(&self, cell: u64) -> bool;

    /// Sets a cell.
    fn set(&mut self, cell: u64);

    /// Empties a range of cells.
    fn empty(&mut self, cells: Range<u64>);

    /// The number of set cells, and m.
    fn cells(&self) -> Cells;

    /// The memory of the table, in bytes.
    fn bytes(&self) -> u64;

    /// Moves the clock, if the cells have one.
    fn advance_to(&mut self, _tick: u64) {}

    /// Empties all cells and moves the clock back to 0.
    fn restart(&mut self);
}
