//! Rows of the table of adapters, and the tables of cells that adapters cut into slices or stack as
//! layers.

use std::fmt;
use std::ops::Range;

use super::layers::{Built, Layers};
use crate::error::{BuildError, SpecError};
use crate::extend;
use crate::filters::row::{Head, Named};
use crate::filters::{Facts, Form};
use crate::hash::KeyHash;
use crate::options::{Options, one_of};
use crate::report::Cells;

/// Builds an adapter and the layers under it.
pub type Build = fn(&Named, Layers<'_>) -> Result<Built, BuildError>;

/// Checks options against a number of buckets.
pub type CheckLines = fn(&Named, u64) -> Result<(), SpecError>;

/// An adapter around a filter. What it adapts, the layers under it, holds the memory and the seed
/// of the whole.
#[derive(Debug)]
pub struct AdapterRow {
    /// Its name and options.
    pub head: Head,
    /// Builds the adapter around the layers under it.
    pub build: Build,
    /// Checks its options against the number of buckets of a line filter, if its verdicts are those
    /// of that filter, so that partitions can have owners of their own; `None` if they are not.
    pub check_lines: Option<CheckLines>,
    /// What is known of the adapter around the layers under it.
    pub facts: fn(&Named, Layers<'_>) -> Facts,
}

impl AdapterRow {
    /// All adapters.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        extend::registered().flat_map(|rows| rows.adapters.iter().copied())
    }

    /// The row of an adapter.
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::all().find(|row| row.head.name == name)
    }

    /// The row of an adapter.
    pub fn of(adapter: &Named) -> &'static Self {
        Self::find(adapter.name()).expect("an adapter")
    }

    /// Parses `name:key=value,key=value`.
    pub fn parse(text: &str) -> Result<Named, SpecError> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let mut options = Options::parse(options)?;
        let name = name.trim();
        let row = Self::find(name).ok_or_else(|| {
            let names: Vec<&str> = Self::all().map(|row| row.head.name).collect();
            let allowed = match &names[..] {
                [] => "none before the filter, as no adapter is registered".to_owned(),
                names => format!("{} before the filter", one_of(names)),
            };
            SpecError::new("adapter", name, allowed)
        })?;
        let adapter = Named::parse(&row.head, Form::Scattered, &mut options)?;
        options.finish()?;
        Ok(adapter)
    }
}

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
