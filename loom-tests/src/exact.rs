//! A filter that never errs, but panics when told to, for models of what carries keys to filters and verdicts back; the same set is the oracle.

use std::collections::HashSet;
use std::panic::resume_unwind;

use echoless::{Filter, KeyHash, Partitioned, Partitioning, Verdicts};

/// The key at which [`Exact`] panics, as [`key`] makes none.
pub const PANICS: KeyHash = KeyHash(u64::MAX >> 1);

/// The keys that were observed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exact(pub HashSet<KeyHash>);

impl Exact {
    /// A filter in `count` partitions, each of one line.
    ///
    /// # Panics
    /// If there is no partition.
    #[must_use]
    pub fn partitions(count: usize) -> Partitioned<Self> {
        let partitioning = Partitioning::new(count as u64, count).expect("a line for each");
        Partitioned::new(partitioning, vec![Self::default(); count]).expect("a filter for each")
    }
}

impl Filter for Exact {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        if keys.contains(&PANICS) {
            // Without words: the panics that have them are those of assertions.
            resume_unwind(Box::new(PANICS));
        }
        duplicates.fill(0);
        for (place, key) in keys.iter().enumerate() {
            duplicates[place / 64] |= u64::from(!self.0.insert(*key)) << (place % 64);
        }
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.0.contains(&key)
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn memory_bytes(&self) -> u64 {
        0
    }
}

/// A key of one of two partitions.
#[must_use]
pub const fn key(partition: u64, number: u64) -> KeyHash {
    KeyHash(partition << 63 | number)
}

/// Which keys of each batch are duplicates, if the batches come one after the other.
#[must_use]
pub fn expected(batches: &[&[KeyHash]]) -> Vec<Vec<bool>> {
    let mut seen = HashSet::new();
    let duplicates = |batch: &&[KeyHash]| batch.iter().map(|key| !seen.insert(*key)).collect();
    batches.iter().map(duplicates).collect()
}

/// Which keys of a batch are duplicates, as its verdicts say.
#[must_use]
pub fn heard(verdicts: &Verdicts) -> Vec<bool> {
    (0..verdicts.len())
        .map(|place| verdicts.is_duplicate(place))
        .collect()
}
