//! Filters as tables of cells, which adapters cut into slices or open one after the other.

use std::fmt;
use std::ops::Range;

use echoless::extend::{Layers, Named};
use echoless::spec::Form;
use echoless::{BuildError, Cells, KeyHash, SpecError};

use crate::scattered::{bits, windows};

/// A table of cells, of which every key has k: those of a Bloom filter, or timers.
pub(crate) trait CellTable: fmt::Debug + Send + Sync {
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

/// Builds a filter as a table of cells, for the adapter `under`.
///
/// # Errors
/// [`BuildError`] if an adapter lies in between, or the filter is no table of cells.
pub(crate) fn cell_table(
    layers: Layers<'_>,
    under: &'static str,
) -> Result<Box<dyn CellTable>, BuildError> {
    if layers.split().is_none() {
        if layers.form == Form::Line {
            let allowed = format!("scattered under {under}");
            return Err(SpecError::new("form", "line", allowed).into());
        }
        if let Some(table) = build(&layers.kind, layers.memory) {
            return table;
        }
    }
    let allowed = "one of bloom, tbf, whose keys have cells in one table";
    Err(SpecError::new(under, layers.name(), allowed).into())
}

/// Builds a filter as a table of cells; `None` if it is none: a key must be a duplicate if and only
/// if its k cells are set, and only a fresh key may set them.
pub(crate) fn build(kind: &Named, memory: u64) -> Option<Result<Box<dyn CellTable>, BuildError>> {
    match kind.name() {
        "bloom" => Some(bits::cell_table(kind, memory)),
        "tbf" => Some(windows::cell_table(kind, memory)),
        _ => None,
    }
}
