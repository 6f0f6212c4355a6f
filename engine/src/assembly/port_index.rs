//! The indices by which workers of an engine find the links of its ports. Ports come and go, so an
//! index is used again: tables by index stay as short as the most ports that there were at a time.

use crate::sync::{unmodelled, unpoisoned};

/// The indices of the ports of an engine: small numbers, used again once a port and all of its
/// links are gone.
#[derive(Debug, Default)]
pub(super) struct PortIndices(unmodelled::Mutex<IndexPool>);

#[derive(Debug, Default)]
struct IndexPool {
    free: Vec<usize>,
    /// How many indices there are.
    count: usize,
}

/// The index of a port. It is free again when the last owner drops it.
#[derive(Debug)]
pub(super) struct PortIndex {
    index: usize,
    indices: unmodelled::Arc<PortIndices>,
}

impl PortIndices {
    /// An index that no other port has.
    pub(super) fn take(self: &unmodelled::Arc<Self>) -> unmodelled::Arc<PortIndex> {
        let mut pool = self.lock();
        let index = pool.free.pop().unwrap_or_else(|| {
            pool.count += 1;
            pool.count - 1
        });
        unmodelled::Arc::new(PortIndex {
            index,
            indices: unmodelled::Arc::clone(self),
        })
    }

    /// The number of indices in use.
    pub(super) fn used(&self) -> usize {
        let pool = self.lock();
        pool.count - pool.free.len()
    }

    fn lock(&self) -> unmodelled::MutexGuard<'_, IndexPool> {
        unpoisoned(self.0.lock())
    }
}

impl PortIndex {
    pub(super) const fn get(&self) -> usize {
        self.index
    }
}

impl Drop for PortIndex {
    fn drop(&mut self) {
        self.indices.lock().free.push(self.index);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_used_again_once_its_last_owner_is_gone() {
        let indices = unmodelled::Arc::new(PortIndices::default());
        let (first, second) = (indices.take(), indices.take());
        let link = unmodelled::Arc::clone(&first);
        assert_eq!((first.get(), second.get(), indices.used()), (0, 1, 2));
        drop(first);
        assert_eq!(indices.take().get(), 2);
        drop(link);
        assert_eq!(indices.used(), 1);
        let mut again = [indices.take(), indices.take()].map(|index| index.get());
        again.sort_unstable();
        assert_eq!(again, [0, 2]);
    }
}
