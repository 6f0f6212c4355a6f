//! What a published filter implements: one key at a time. The batch interface follows from it, with one dynamic call a batch.

use crate::filters::Filter;
use crate::hash::KeyHash;

/// A filter that takes its keys one by one.
pub(crate) trait KeyByKey: Send {
    /// Tests and records one key; true means duplicate.
    fn observe_key(&mut self, key: KeyHash) -> bool;

    /// See [`Filter::contains`].
    fn holds(&self, key: KeyHash) -> bool;

    /// See [`Filter::clear`].
    fn forget(&mut self);

    /// See [`Filter::memory_bytes`].
    fn state_bytes(&self) -> u64;

    /// See [`Filter::load`].
    fn taken(&self) -> f64;
}

impl<F: KeyByKey> Filter for F {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        assert_eq!(
            duplicates.len(),
            keys.len().div_ceil(64),
            "one verdict bit for each key"
        );
        for (keys, word) in keys.chunks(64).zip(duplicates) {
            *word = 0;
            for (index, key) in keys.iter().enumerate() {
                *word |= u64::from(self.observe_key(*key)) << index;
            }
        }
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.holds(key)
    }

    fn clear(&mut self) {
        self.forget();
    }

    fn memory_bytes(&self) -> u64 {
        self.state_bytes()
    }

    fn load(&self) -> Option<f64> {
        Some(self.taken())
    }
}
