//! The keys of a recorded stream, numbered in the order of their first arrival.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use echoless::{KeyHash, SpecError};

use super::definition::{Distribution, Stream, above_zero};

/// The keys of a recorded stream, while they are collected: 4 bytes for each record, and up to 40
/// for each distinct key.
///
/// # Examples
/// ```
/// use echoless::KeyHasher;
/// use echoless_lab::stream::RecordedKeys;
/// let mut keys = RecordedKeys::default();
/// for key in [7, 9, 7] {
///     keys.push(KeyHasher::seeded(0).hash_u64(key))?;
/// }
/// assert_eq!(keys.records(), 3);
/// assert_eq!(keys.into_stream()?.universe(), 2);
/// # Ok::<(), echoless::SpecError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct RecordedKeys {
    /// The index of each distinct key.
    indices: HashMap<KeyHash, u32>,
    records: Vec<u32>,
}

impl RecordedKeys {
    /// Adds the key of the next record.
    ///
    /// # Errors
    /// [`SpecError`] if there are 2^32 distinct keys.
    pub fn push(&mut self, key: KeyHash) -> Result<(), SpecError> {
        let next = self.indices.len();
        let index = match self.indices.entry(key) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => *entry.insert(u32::try_from(next).map_err(|_| {
                SpecError::new("input", "2^32 distinct keys", "fewer distinct keys")
            })?),
        };
        self.records.push(index);
        Ok(())
    }

    /// The number of records so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records.len() as u64
    }

    /// The stream of these keys.
    ///
    /// # Errors
    /// [`SpecError`] if there are none.
    pub fn into_stream(self) -> Result<Stream, SpecError> {
        Ok(Stream {
            records: above_zero("records", self.records())?,
            universe: self.indices.len() as u64,
            distribution: Distribution::Recorded(self.records.into()),
        })
    }
}
