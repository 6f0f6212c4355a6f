//! An exact filter that may panic, and what a scenario needs to judge its verdicts.

use std::collections::HashSet;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};

use echoless::{Batch, Filter, KeyHash, Partitioned, Partitioning, Tally};

/// A set of keys that outlives the filter, so that a filter that replaces it goes on with it.
pub(crate) type Keys = Arc<Mutex<HashSet<KeyHash>>>;

/// An exact filter. The pass after the last one panics and records nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exact {
    pub(crate) keys: Keys,
    pub(crate) passes_left: Option<usize>,
}

impl Exact {
    /// Partitions that never panic.
    pub(crate) fn partitions(count: usize) -> Partitioned<Self> {
        let partitioning = Partitioning::new(count as u64 * 16, count).expect("lines for each");
        let parts = (0..count).map(|_| Self::default()).collect();
        Partitioned::new(partitioning, parts).expect("a filter for each")
    }
}

impl Filter for Exact {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        match &mut self.passes_left {
            Some(0) => resume_unwind(Box::new("a panic of this scenario")),
            Some(left) => *left -= 1,
            None => {}
        }
        let mut seen = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        batch.observe_each(duplicates, |key| !seen.insert(key));
    }

    fn contains(&self, key: KeyHash) -> bool {
        let seen = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        seen.contains(&key)
    }

    fn clear(&mut self) {
        *self = Self::default();
    }

    fn tally(&self) -> Tally {
        Tally::default()
    }
}
