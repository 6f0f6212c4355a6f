//! The adapters of a specification, outermost first: a bounded list, so that specifications stay
//! `Copy`, and its text `name:key=value/name:key=value`.

use std::fmt;
use std::str::FromStr;

use super::adapter::AdapterRow;
use crate::error::SpecError;
use crate::filters::row::Named;

/// The most adapters around one filter.
const MOST_ADAPTERS: usize = 4;

/// The adapters around a filter, outermost first; at most [`MOST_ADAPTERS`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct AdapterChain {
    /// The adapters, then `None` up to the end.
    adapters: [Option<Named>; MOST_ADAPTERS],
}

impl AdapterChain {
    /// A chain of these adapters, outermost first.
    ///
    /// # Errors
    /// [`SpecError`] if there are more than [`MOST_ADAPTERS`].
    fn new(adapters: &[Named]) -> Result<Self, SpecError> {
        if adapters.len() > MOST_ADAPTERS {
            let allowed = format!("at most {MOST_ADAPTERS} around a filter");
            return Err(SpecError::new(
                "adapters",
                adapters.len().to_string(),
                allowed,
            ));
        }
        let mut chain = Self::default();
        for (slot, adapter) in chain.adapters.iter_mut().zip(adapters) {
            *slot = Some(*adapter);
        }
        Ok(chain)
    }

    /// The adapters, outermost first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Named> {
        self.adapters.iter().flatten()
    }

    /// Whether there is no adapter.
    pub(crate) const fn is_empty(&self) -> bool {
        self.adapters[0].is_none()
    }

    /// The adapters as a slice, each of them `Some`.
    pub(crate) fn as_slice(&self) -> &[Option<Named>] {
        &self.adapters[..self.iter().count()]
    }
}

impl fmt::Display for AdapterChain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, adapter) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { "/" };
            write!(formatter, "{separator}{adapter}")?;
        }
        Ok(())
    }
}

impl FromStr for AdapterChain {
    type Err = SpecError;

    /// Parses adapters separated by `/`; an empty text has none.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let parts = (!text.is_empty()).then(|| text.split('/'));
        let adapters: Result<Vec<Named>, _> =
            parts.into_iter().flatten().map(AdapterRow::parse).collect();
        Self::new(&adapters?)
    }
}
