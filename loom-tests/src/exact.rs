//! An exact filter for models of engine and ordered filter: a set of keys, which panics at one
//! chosen key. The same kind of set is the oracle.

use std::collections::HashSet;
use std::panic::resume_unwind;

use echoless::{Batch, Filter, KeyHash, Partitioned, Partitioning, Tally, Verdicts};

/// The key at which [`Exact`] panics. [`key`] never returns it.
pub const PANICS: KeyHash = KeyHash::from_uniform(u64::MAX >> 1);

/// The set of observed keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exact(pub HashSet<KeyHash>);

impl Exact {
    /// A filter of `count` partitions of one line each.
    ///
    /// # Panics
    /// If `count` is 0.
    #[must_use]
    pub fn partitions(count: usize) -> Partitioned<Self> {
        let partitioning = Partitioning::new(count as u64, count).expect("a line for each");
        Partitioned::new(partitioning, vec![Self::default(); count]).expect("a filter for each")
    }
}

impl Filter for Exact {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        if batch.keys().contains(&PANICS) {
            // A payload without a message: `sync::spawn` of the engine takes panics with one for
            // failed assertions. No hook runs, which would use locks of the standard library.
            resume_unwind(Box::new(PANICS));
        }
        batch.observe_each(duplicates, |key| !self.0.insert(key));
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.0.contains(&key)
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        tally.fresh = Some(self.0.len() as u64);
        tally
    }
}

/// The key with this number in one of two partitions.
#[must_use]
pub const fn key(partition: u64, number: u64) -> KeyHash {
    KeyHash::from_uniform(partition << 63 | number)
}

/// Whether each key of each batch is a duplicate, if the batches are applied one after the other.
#[must_use]
pub fn expected(batches: &[&[KeyHash]]) -> Vec<Vec<bool>> {
    let mut seen = HashSet::new();
    let duplicates = |batch: &&[KeyHash]| batch.iter().map(|key| !seen.insert(*key)).collect();
    batches.iter().map(duplicates).collect()
}

/// Whether each key of a batch is a duplicate, by its verdicts.
#[must_use]
pub fn duplicates(verdicts: &Verdicts) -> Vec<bool> {
    (0..verdicts.len())
        .map(|index| verdicts.is_duplicate(index))
        .collect()
}

/// Whether each key of a batch has no verdict.
#[must_use]
pub fn unknown(verdicts: &Verdicts) -> Vec<bool> {
    (0..verdicts.len())
        .map(|index| verdicts.is_unknown(index))
        .collect()
}
