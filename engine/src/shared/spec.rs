//! The specification of a shared filter.

use super::filter::SharedFilter;
use super::layout::SharedLayout;
use crate::error::{BuildError, SpecError};
use crate::memory::LINE_BYTES;

/// The specification of a [`SharedFilter`].
///
/// # Examples
/// ```
/// use echoless::{SharedLayout, SharedSpec};
/// let filter = SharedSpec::new(1 << 20).layout(SharedLayout::Bloom { k: 4 }).build()?;
/// assert_eq!(filter.memory_bytes(), 1 << 20);
/// assert!(SharedSpec::new(1 << 20).layout(SharedLayout::Bloom { k: 0 }).build().is_err());
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedSpec {
    memory_bytes: u64,
    layout: SharedLayout,
}

impl SharedSpec {
    /// A filter of [`SharedLayout::Row4x16`] in `memory_bytes`, rounded down to whole lines of 64
    /// bytes.
    #[must_use]
    pub const fn new(memory_bytes: u64) -> Self {
        Self {
            memory_bytes,
            layout: SharedLayout::Row4x16,
        }
    }

    /// The layout of the words.
    #[must_use]
    pub const fn layout(mut self, layout: SharedLayout) -> Self {
        self.layout = layout;
        self
    }

    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] if the memory is less than a line, `k` is out of range, or the machine lacks
    /// the memory.
    pub fn build(&self) -> Result<SharedFilter, BuildError> {
        let lines = self.memory_bytes / LINE_BYTES;
        if lines == 0 {
            let asked = format!("{} B", self.memory_bytes);
            return Err(SpecError::new("memory", asked, "at least 64 B (one line)").into());
        }
        let k_and_lowest = match self.layout {
            SharedLayout::Bloom { k } => Some((k, 1)),
            SharedLayout::Ageing { k } => Some((k, 2)),
            SharedLayout::Row4x16 | SharedLayout::Row2x32 => None,
        };
        if let Some((k, lowest)) = k_and_lowest
            && !(lowest..=10).contains(&k)
        {
            return Err(SpecError::new("k", k.to_string(), format!("{lowest} to 10")).into());
        }
        Ok(SharedFilter::new(lines, self.layout)?)
    }
}
