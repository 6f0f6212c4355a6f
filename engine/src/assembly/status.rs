//! What is read of a partition without a lock: whether it is lost, and its counts, whose sums
//! callers get while the partitions are in use.

use std::iter::Sum;

use crossbeam_utils::CachePadded;

use crate::memory::process::Process;
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering};

/// Counts of an engine or an ordered filter in use; see [`Engine::counts`](super::Engine::counts)
/// and [`OrderedFilter::counts`](super::OrderedFilter::counts).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct EngineCounts {
    /// The number of keys that filters have judged.
    pub judged: u64,
    /// The number of these that were duplicates.
    pub duplicates: u64,
    /// The number of keys without a verdict, because their partition was lost.
    pub unknown: u64,
}

impl Sum for EngineCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, counts| Self {
            judged: sum.judged + counts.judged,
            duplicates: sum.duplicates + counts.duplicates,
            unknown: sum.unknown + counts.unknown,
        })
    }
}

/// What ports see of a partition beside its rings.
#[derive(Debug)]
pub(super) struct Status {
    /// The process of the owner.
    process: Process,
    /// The filter panicked and was not replaced. Also set if the owner's thread unwinds.
    lost: AtomicBool,
    /// The number of keys without a verdict. Written by the owner, while it is lost.
    unknown_keys: AtomicU64,
    /// Padded, because ports read `lost` for each batch, and the owner writes this for each pass.
    verdicts: CachePadded<VerdictCounts>,
}

/// The numbers of keys with a verdict, and of the duplicates among them. Written by the owner.
#[derive(Debug, Default)]
struct VerdictCounts {
    judged: AtomicU64,
    duplicates: AtomicU64,
}

impl Status {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            process: Process::current(),
            lost: AtomicBool::new(false),
            unknown_keys: AtomicU64::new(0),
            verdicts: CachePadded::default(),
        })
    }

    /// Whether this process is a fork of the one that the partition was built in, so that its owner
    /// is not here.
    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        !self.process.is_current()
    }

    pub(super) fn is_lost(&self) -> bool {
        // Acquire: pairs with the Release stores in `mark_lost` and `mark_restored`. A port that
        // reads false after a replacement sends messages that the owner receives after the slot was
        // filled.
        self.lost.load(Ordering::Acquire)
    }

    pub(super) fn count_unknown(&self, keys: usize) {
        // Relaxed: a statistic, which orders nothing. Only the owner adds.
        self.unknown_keys.fetch_add(keys as u64, Ordering::Relaxed);
    }

    /// Counts the verdicts of a pass, before they are sent.
    pub(super) fn count_judged(&self, keys: usize, verdicts: &[u64]) {
        // A filter from outside this crate may set bits past the last key.
        let bits_of = |(index, word): (usize, &u64)| match keys - index * 64 {
            64.. => word.count_ones(),
            of_last => (word << (64 - of_last)).count_ones(),
        };
        let duplicates: u32 = verdicts.iter().enumerate().map(bits_of).sum();
        // No read-modify-write, because only the owner writes. A port that has the verdicts of a
        // batch sees them counted, because the ring of answers orders both. Release: see `counts`.
        let add = |count: &AtomicU64, more| {
            count.store(count.load(Ordering::Relaxed) + more, Ordering::Release);
        };
        add(&self.verdicts.judged, keys as u64);
        add(&self.verdicts.duplicates, duplicates.into());
    }

    pub(super) fn counts(&self) -> EngineCounts {
        // Acquire: pairs with the Release of `count_judged`, which counts keys before duplicates.
        // So there are at least as many keys as duplicates.
        let duplicates = self.verdicts.duplicates.load(Ordering::Acquire);
        let judged = self.verdicts.judged.load(Ordering::Relaxed);
        EngineCounts {
            judged,
            duplicates,
            // Relaxed: as in `count_unknown`.
            unknown: self.unknown_keys.load(Ordering::Relaxed),
        }
    }

    /// Sets the flag that ports read.
    pub(super) fn mark_lost(&self) {
        // Release: pairs with the Acquire in `is_lost`. After a panic of the filter, the slot is
        // `Lost` before.
        self.lost.store(true, Ordering::Release);
    }

    /// Clears the flag that ports read. A new filter is in the slot.
    pub(super) fn mark_restored(&self) {
        // Release: pairs with the Acquire in `is_lost`.
        self.lost.store(false, Ordering::Release);
    }
}
