//! Lost partitions: what is shared between the threads when the filter of a partition panics, the
//! policy for its keys, and how a new filter takes its place.
//!
//! The owner of a partition catches the panic of its filter, so its rings stay open and its
//! messages stay in order. It drops the filter and answers every message with *unknown*, until it
//! finds a new filter in the slot:
//!
//! ```text
//!   owner (server)                        engine or node                     port
//!   catch panic, drop the filter
//!   slot = Lost(message)
//!   lost.store(true, Release)  ------------------------------------------->  lost.load(Acquire)
//!   push answer: unknown       ------------------------------------------->  pop answer
//!                                         slot = Restored(filter)
//!                                         lost.store(false, Release)  ---->  lost.load(Acquire)
//!   pop message                <-------------------------------------------  push message
//!   slot is Restored: take the filter
//! ```
//!
//! - After a port received *unknown*, the partition can be replaced at once: the slot is `Lost`
//!   before the answer is pushed.
//! - A message that is sent after `replace` returned is judged by the new filter: the owner locks
//!   the slot after it popped the message, so after the slot was filled. No thread has to be woken.
//! - While no partition is lost, no thread locks the slot, and nothing that ports read is written.
//!   A port loads one flag for each partition and batch, and only with [`LossPolicy::Error`].
//!
//! A closed ring is something else: the owner is gone for good, so it is an error with every
//! policy.

use std::any::Any;

use crossbeam_utils::CachePadded;

use super::counts::EngineCounts;
use super::replace::NotReplaceable;
use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering, unpoisoned};

/// What happens to the keys of a partition whose filter panicked.
///
/// The partitions are the horizontal slices of paper 001, and the last two policies are its answers
/// for slices that failed. With `f` of `S` equal partitions lost, a filter whose false positive
/// rate is `p` has the false positive rate `f/S + (1 - f/S) p` with
/// [`AsDuplicate`](Self::AsDuplicate), and the additional false negative rate `f/S` with
/// [`AsFresh`](Self::AsFresh). The verdicts of the other partitions are those of the undivided
/// filter with every policy.
///
/// A worker or node that is gone (it was shut down or dropped) is an error with every policy.
///
/// # Examples
/// A filter that panics at one key; half of the keys belong to its partition.
/// ```
/// use echoless::{Engine, Filter, KeyHash, LossPolicy, Partitioned, Partitioning, Verdicts};
/// #[derive(Clone)]
/// struct Brittle;
/// impl Filter for Brittle {
///     fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
///         assert!(!keys.contains(&KeyHash::from_uniform(u64::MAX)), "a bug of this filter");
///         duplicates.fill(0);
///     }
/// #   fn contains(&self, _: KeyHash) -> bool { false }
/// #   fn clear(&mut self) {}
/// #   fn memory_bytes(&self) -> u64 { 0 }
/// }
/// let halves = Partitioned::new(Partitioning::new(2, 2)?, vec![Brittle; 2])?;
/// let (engine, mut ports) =
///     Engine::builder(halves).on_loss(LossPolicy::AsDuplicate).build()?;
/// let mut verdicts = Verdicts::new();
/// let keys = [1, u64::MAX, 2].map(KeyHash::from_uniform);
/// ports[0].observe(&keys, &mut verdicts)?;
/// // Key 1 is a duplicate by the policy.
/// assert_eq!((verdicts.words(), verdicts.unknown_words()), (&[0b010][..], &[0b010][..]));
/// assert_eq!(engine.unknown_keys(), 1);
/// assert_eq!(engine.lost(), [(1, "a bug of this filter".to_owned())]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LossPolicy {
    /// Batches with keys of a lost partition are errors, and later batches are rejected until the
    /// partition is replaced. In a mesh, the panic goes on in the thread of the node, which is then
    /// lost for good. An ordered filter rejects only the batches with keys of the partition, and
    /// the others record their keys.
    #[default]
    Error,
    /// Keys of a lost partition are duplicates: no duplicate passes, and new keys are dropped.
    AsDuplicate,
    /// Keys of a lost partition are fresh: no new key is dropped, and duplicates pass.
    AsFresh,
}

/// What ports see of a partition beside its rings.
#[derive(Debug)]
pub(super) struct Status {
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
            lost: AtomicBool::new(false),
            unknown_keys: AtomicU64::new(0),
            verdicts: CachePadded::default(),
        })
    }

    pub(super) fn is_lost(&self) -> bool {
        // Acquire: pairs with the Release stores in `mark_lost` and `restore`. A port that reads
        // false after a replacement sends messages that the owner receives after the slot was
        // filled.
        self.lost.load(Ordering::Acquire)
    }

    pub(super) fn unknown_keys(&self) -> u64 {
        // Relaxed: a statistic, which orders nothing.
        self.unknown_keys.load(Ordering::Relaxed)
    }

    pub(super) fn count_unknown(&self, keys: usize) {
        // Relaxed: as above. Only the owner adds.
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
            unknown: self.unknown_keys(),
        }
    }

    /// Sets the flag that ports read.
    pub(super) fn mark_lost(&self) {
        // Release: pairs with the Acquire in `is_lost`. After a panic of the filter, the slot is
        // `Lost` before.
        self.lost.store(true, Ordering::Release);
    }
}

/// Where the filter of a partition is.
#[derive(Debug)]
enum Slot<F> {
    /// The owner has it.
    InUse,
    /// It panicked with this message and was dropped.
    Lost(String),
    /// A new one, which the owner has not taken yet.
    Restored(F),
}

/// A partition as its owner and its engine share it.
#[derive(Debug)]
pub(super) struct PartitionState<F> {
    status: Arc<Status>,
    /// Locked only while the partition is lost, and by the engine.
    slot: Mutex<Slot<F>>,
}

impl<F> PartitionState<F> {
    pub(super) fn new(status: Arc<Status>) -> Arc<Self> {
        Arc::new(Self {
            status,
            slot: Mutex::new(Slot::InUse),
        })
    }

    pub(super) fn status(&self) -> &Arc<Status> {
        &self.status
    }

    /// Records that the filter panicked. The owner has dropped it.
    pub(super) fn record_panic(&self, panic: &(dyn Any + Send)) {
        let mut slot = unpoisoned(self.slot.lock());
        *slot = Slot::Lost(message(panic));
        self.status.mark_lost();
    }

    /// Leaves a filter for the owner of a lost partition.
    ///
    /// # Errors
    /// Returns the filter if the partition is not lost, or its owner has ended.
    pub(super) fn restore(&self, filter: F) -> Result<(), (F, NotReplaceable)> {
        let mut slot = unpoisoned(self.slot.lock());
        match &*slot {
            // The slot changes with the flag, under the lock, unless the thread of the owner
            // unwinds.
            Slot::InUse | Slot::Restored(_) if self.status.is_lost() => {
                Err((filter, NotReplaceable::Ended))
            }
            Slot::InUse | Slot::Restored(_) => Err((filter, NotReplaceable::NotLost)),
            Slot::Lost(_) => {
                *slot = Slot::Restored(filter);
                // Release: pairs with the Acquire in `Status::is_lost`.
                self.status.lost.store(false, Ordering::Release);
                Ok(())
            }
        }
    }

    /// The filter that was left for the owner, if one was.
    pub(super) fn take_restored(&self) -> Option<F> {
        let mut slot = unpoisoned(self.slot.lock());
        match std::mem::replace(&mut *slot, Slot::InUse) {
            Slot::Restored(filter) => Some(filter),
            other @ (Slot::InUse | Slot::Lost(_)) => {
                *slot = other;
                None
            }
        }
    }

    /// The message of the panic, if the partition is lost.
    pub(super) fn loss(&self) -> Option<String> {
        match &*unpoisoned(self.slot.lock()) {
            Slot::Lost(message) => Some(message.clone()),
            Slot::InUse | Slot::Restored(_) => None,
        }
    }
}

/// The message of a panic payload.
pub(super) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
        .to_owned()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_replaced_once_and_only_while_its_owner_exists() {
        let state = PartitionState::new(Status::new());
        assert_eq!(state.restore(1), Err((1, NotReplaceable::NotLost)));
        state.record_panic(&"a bug");
        assert_eq!(state.loss().as_deref(), Some("a bug"));
        assert_eq!(state.restore(2), Ok(()));
        assert_eq!(state.restore(3), Err((3, NotReplaceable::NotLost)));
        assert_eq!(state.take_restored(), Some(2));
        // As if its thread unwound.
        state.status().mark_lost();
        assert_eq!(state.restore(4), Err((4, NotReplaceable::Ended)));
    }
}
