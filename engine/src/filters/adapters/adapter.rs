//! Rows of the table of adapters.

use super::ADAPTERS;
use super::layers::{Built, Layers};
use crate::error::{BuildError, SpecError};
use crate::filters::row::{Head, Named};
use crate::filters::{Facts, Form};
use crate::options::{Options, one_of};

/// Builds an adapter and the layers under it.
type Build = fn(&Named, Layers<'_>) -> Result<Built, BuildError>;

/// An adapter around a filter. What it adapts, the layers under it, holds the memory and the seed
/// of the whole.
#[derive(Debug)]
pub(crate) struct AdapterRow {
    pub(crate) head: Head,
    pub(crate) build: Build,
    pub(crate) facts: fn(&Named, Layers<'_>) -> Facts,
}

impl AdapterRow {
    /// All adapters.
    pub(crate) fn all() -> impl Iterator<Item = &'static Self> {
        ADAPTERS.iter().copied()
    }

    /// The row of an adapter.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        Self::all().find(|row| row.head.name == name)
    }

    /// The row of an adapter.
    pub(crate) fn of(adapter: &Named) -> &'static Self {
        Self::find(adapter.name()).expect("an adapter")
    }

    /// Parses `name:key=value,key=value`.
    pub(super) fn parse(text: &str) -> Result<Named, SpecError> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let mut options = Options::parse(options)?;
        let name = name.trim();
        let row = Self::find(name).ok_or_else(|| {
            let names: Vec<&str> = Self::all().map(|row| row.head.name).collect();
            let allowed = format!("{} before the filter", one_of(&names));
            SpecError::new("adapter", name, allowed)
        })?;
        let adapter = Named::parse(&row.head, Form::Scattered, &mut options)?;
        options.finish()?;
        Ok(adapter)
    }
}
