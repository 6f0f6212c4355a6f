//! Filters that panic on demand: an exact one whose content survives it, and a wrapper of any
//! other.

use std::collections::HashSet;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use echoless::{Batch, Filter, KeyHash, Partitioned, Partitioning, Report, Tally};

/// A set of keys that outlives the filters on it, like a copy that is always up to date.
pub(crate) type Keys = Arc<Mutex<HashSet<KeyHash>>>;

/// Panics without a message on standard error.
fn fail() -> ! {
    resume_unwind(Box::new("this filter panics on purpose"));
}

/// An exact filter that panics in one of its passes, before it records a key of it.
#[derive(Clone, Default)]
pub(crate) struct Exact {
    pub(crate) keys: Keys,
    /// The passes before the one that panics; none panics if `None`.
    pub(crate) passes_left: Option<u64>,
}

impl Exact {
    /// `count` partitions, all with the same number of passes.
    pub(crate) fn partitions(count: usize, passes_left: Option<u64>) -> Partitioned<Self> {
        let filter = || Self {
            keys: Keys::default(),
            passes_left,
        };
        let filters = (0..count).map(|_| filter()).collect();
        Partitioned::new(Partitioning::new(100, count).unwrap(), filters).unwrap()
    }
}

impl Filter for Exact {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        match &mut self.passes_left {
            Some(0) => {
                // A filter may leave anything behind in the verdicts.
                duplicates.fill(u64::MAX);
                fail();
            }
            Some(passes) => *passes -= 1,
            None => {}
        }
        let mut held = self.keys.lock().unwrap();
        batch.observe_each(duplicates, |key| !held.insert(key));
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.keys.lock().unwrap().contains(&key)
    }

    fn clear(&mut self) {
        self.keys.lock().unwrap().clear();
    }

    fn tally(&self) -> Tally {
        Tally::default()
    }
}

/// A filter that panics in its next pass if the switch is on, and turns it off.
pub(crate) struct Breakable<F> {
    pub(crate) inner: F,
    pub(crate) switch: Arc<AtomicBool>,
}

impl<F: Filter> Filter for Breakable<F> {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        if self.switch.swap(false, Ordering::Relaxed) {
            fail();
        }
        self.inner.observe_batch(batch, duplicates);
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.inner.contains(key)
    }

    fn clear(&mut self) {
        self.inner.clear();
    }

    fn tally(&self) -> Tally {
        self.inner.tally()
    }

    fn report_on(&self, tally: Tally) -> Report {
        self.inner.report_on(tally)
    }
}

/// The partitions of a filter, and for each the switch that breaks it.
pub(crate) fn breakable<F: Filter>(
    filter: Partitioned<F>,
) -> (Partitioned<Breakable<F>>, Vec<Arc<AtomicBool>>) {
    let (partitioning, filters) = filter.into_parts();
    let switches: Vec<Arc<AtomicBool>> = filters.iter().map(|_| Arc::default()).collect();
    let filters = filters.into_iter().zip(&switches).map(|(inner, switch)| {
        let switch = Arc::clone(switch);
        Breakable { inner, switch }
    });
    let breakable = Partitioned::new(partitioning, filters.collect()).unwrap();
    (breakable, switches)
}
