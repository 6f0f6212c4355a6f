//! A filter that panics, for what becomes of the others.

use std::panic::resume_unwind;

use echoless::{Filter, KeyHash, Partitioned, Partitioning};

/// A filter that panics at one key.
pub(crate) struct Fragile(pub(crate) KeyHash);

impl Filter for Fragile {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        if keys.contains(&self.0) {
            // Without the printing, of which several threads may be in need at once.
            resume_unwind(Box::new("this key panics on purpose"));
        }
        duplicates.fill(0);
    }

    fn contains(&self, _key: KeyHash) -> bool {
        false
    }

    fn clear(&mut self) {}

    fn memory_bytes(&self) -> u64 {
        0
    }
}

pub(crate) const BAD_KEY: KeyHash = KeyHash(u64::MAX);

pub(crate) fn fragile(count: usize) -> Partitioned<Fragile> {
    let partitioning = Partitioning::new(100, count).unwrap();
    Partitioned::new(partitioning, (0..count).map(|_| Fragile(BAD_KEY)).collect()).unwrap()
}
