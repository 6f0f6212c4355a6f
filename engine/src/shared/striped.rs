//! A count that many threads raise at once, without a cache line that all of them write.

use std::cell::Cell;

use crossbeam_utils::CachePadded;

use crate::sync::{Ordering, unmodelled::AtomicU64};

/// The number of stripes: a power of two. Threads share a stripe if there are more.
const STRIPES: usize = 32;

/// A count, kept in parts, each on a cache line of its own. A thread adds to one part; up to
/// [`STRIPES`] threads have a part each. It takes 4 KiB where cache lines are padded to 128 bytes.
#[derive(Debug, Default)]
pub(super) struct StripedCount(Box<[CachePadded<AtomicU64>; STRIPES]>);

/// The number of threads that have counted something so far, in all filters.
static THREADS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The stripe of this thread; above all stripes before it first counts.
    static STRIPE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The stripe of this thread.
#[inline]
fn stripe() -> usize {
    STRIPE.with(|stripe| {
        if stripe.get() == usize::MAX {
            // Relaxed: a number that spreads the threads, and orders nothing.
            let thread = THREADS.fetch_add(1, Ordering::Relaxed);
            stripe.set(thread as usize % STRIPES);
        }
        stripe.get()
    })
}

impl StripedCount {
    #[inline]
    pub(super) fn add(&self, more: u64) {
        // Release: pairs with the Acquire of `sum`. An addition and not a store, because two
        // threads may have the same stripe.
        self.0[stripe()].fetch_add(more, Ordering::Release);
    }

    /// The sum. While other threads add, it may lack some of what they add. What threads wrote
    /// before they added what is in the sum is visible afterwards.
    pub(super) fn sum(&self) -> u64 {
        let stripes = self.0.iter();
        // Acquire: pairs with the Release of `add`.
        stripes.map(|part| part.load(Ordering::Acquire)).sum()
    }

    /// Starts at 0 again.
    pub(super) fn clear(&self) {
        for part in &*self.0 {
            part.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_with_more_threads_than_stripes() {
        let count = StripedCount::default();
        std::thread::scope(|scope| {
            for _ in 0..STRIPES + 5 {
                scope.spawn(|| (0..100).for_each(|_| count.add(2)));
            }
        });
        assert_eq!(count.sum(), 200 * (STRIPES as u64 + 5));
        count.clear();
        assert_eq!(count.sum(), 0);
    }
}
