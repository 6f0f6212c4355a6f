//! Stands in for a filter where a test is about threads: it holds no keys, and runs a function of
//! the test for each batch.

use std::panic::resume_unwind;

use echoless::{Batch, Filter, KeyHash, Partitioned, Partitioning, Tally};

/// A filter that returns Fresh for every key, and calls `each_batch` first. A lookup calls
/// `each_lookup`.
#[derive(Clone)]
pub(crate) struct Stub<S> {
    pub(crate) state: S,
    each_batch: fn(&mut S, &[KeyHash]),
    each_lookup: fn(KeyHash),
}

impl<S> Stub<S> {
    pub(crate) const fn new(state: S, each_batch: fn(&mut S, &[KeyHash])) -> Self {
        Self {
            state,
            each_batch,
            each_lookup: |_| {},
        }
    }

    pub(crate) fn with_lookup(self, each_lookup: fn(KeyHash)) -> Self {
        Self {
            each_lookup,
            ..self
        }
    }

    /// A filter of one line in one partition.
    pub(crate) fn undivided(self) -> Partitioned<Self> {
        Partitioned::new(Partitioning::new(1, 1).unwrap(), vec![self]).unwrap()
    }
}

impl<S: Send + Sync> Filter for Stub<S> {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        (self.each_batch)(&mut self.state, batch.keys());
        duplicates.fill(0);
    }

    fn contains(&self, key: KeyHash) -> bool {
        (self.each_lookup)(key);
        false
    }

    fn clear(&mut self) {}

    fn tally(&self) -> Tally {
        Tally::default()
    }
}

/// A filter that panics at the key in its state.
pub(crate) type Fragile = Stub<KeyHash>;

/// The key at which the filters of [`fragile`] panic. It belongs to the last partition.
pub(crate) const BAD_KEY: KeyHash = KeyHash::from_uniform(u64::MAX);

pub(crate) const fn fragile_at(bad: KeyHash) -> Fragile {
    Stub::new(bad, |bad, keys| {
        if keys.contains(bad) {
            // Skips the panic hook, which would print from several threads at once.
            resume_unwind(Box::new("this key panics on purpose"));
        }
    })
}

/// `count` partitions that panic at [`BAD_KEY`].
pub(crate) fn fragile(count: usize) -> Partitioned<Fragile> {
    let partitioning = Partitioning::new(100, count).unwrap();
    Partitioned::new(partitioning, vec![fragile_at(BAD_KEY); count]).unwrap()
}
