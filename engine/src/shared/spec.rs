//! What a shared filter is to be.

use super::filter::SharedFilter;
use crate::error::{BuildError, SpecError};
use crate::memory::LINE_BYTES;

/// What a 64-bit word holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SharedLayout {
    /// Four fingerprints of 16 bits, oldest out first: a false positive rate of 6e-5, for endless streams.
    Row4x16,
    /// Two fingerprints of 32 bits, oldest out first: 5e-10, for endless streams.
    Row2x32,
    /// A Bloom filter with `k` bits for each key (register-blocked): never misses a duplicate, and fills up.
    Bloom {
        /// Bits for each key, 1 to 10.
        k: u32,
    },
    /// A Bloom filter that forgets as it fills: RLBSBF (paper 000) in a word, for endless streams.
    Ageing {
        /// Bits for each key, 2 to 10: with a single bit the words would fill up.
        k: u32,
    },
}

/// The specification of a [`SharedFilter`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedSpec {
    memory_bytes: u64,
    form: SharedLayout,
}

impl SharedSpec {
    /// A filter in `memory_bytes`, rounded down to whole lines of 64 bytes.
    #[must_use]
    pub const fn new(memory_bytes: u64, form: SharedLayout) -> Self {
        Self { memory_bytes, form }
    }

    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] if the memory holds no line, `k` is out of its range, or the machine does not grant the memory.
    pub fn build(&self) -> Result<SharedFilter, BuildError> {
        let lines = self.memory_bytes / LINE_BYTES;
        if lines == 0 {
            let asked = format!("{} B", self.memory_bytes);
            return Err(SpecError::new("memory", asked, "at least 64 B (one line)").into());
        }
        let allowed = match self.form {
            SharedLayout::Bloom { k } => Some((k, 1)),
            SharedLayout::Ageing { k } => Some((k, 2)),
            SharedLayout::Row4x16 | SharedLayout::Row2x32 => None,
        };
        if let Some((k, lowest)) = allowed
            && !(lowest..=10).contains(&k)
        {
            return Err(SpecError::new("k", k.to_string(), format!("{lowest} to 10")).into());
        }
        Ok(SharedFilter::new(lines, self.form)?)
    }
}
