//! Rows of the table of adapters.

use super::layers::Layers;
use crate::error::{BuildError, SpecError};
use crate::extend;
use crate::filters::row::{Head, Named};
use crate::filters::{Facts, Filter, Form};
use crate::options::{Options, one_of};

/// Builds an adapter and the layers under it.
pub type Build = fn(&Named, Layers<'_>) -> Result<Box<dyn Filter>, BuildError>;

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
