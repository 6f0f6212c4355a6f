//! Lost partitions: what the threads share when the filter of a partition panics, and how a new
//! filter takes its place.
//!
//! The owner of a partition catches the panic of its filter, so its rings stay open and its
//! messages stay in order. It drops the filter and answers every message with *unknown*, until it
//! finds a new filter in the slot:
//!
//! ```text
//!   owner (server)                        engine                             port
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
//!   A port loads one flag for each partition and batch, and only with
//!   [`LossPolicy::Error`](super::LossPolicy::Error).
//!
//! A closed ring is something else: the owner is gone for good, so it is an error with every
//! policy.

use std::any::Any;
use std::error::Error;
use std::fmt;

use super::status::Status;
use crate::sync::{Arc, Mutex, unpoisoned};

/// The slot for a new filter, which also tells where the filter of a partition is.
#[derive(Debug)]
enum FilterSlot<F> {
    /// The owner has it.
    InUse,
    /// It panicked with this message and was dropped.
    Lost(String),
    /// A new one, which the owner has not taken yet.
    Restored(F),
    /// It panicked with this message, and there is no owner any more.
    Ended(String),
}

/// A partition as its owner and its engine share it.
#[derive(Debug)]
pub(super) struct PartitionState<F> {
    status: Arc<Status>,
    /// Locked only while the partition is lost, and by the engine.
    slot: Mutex<FilterSlot<F>>,
}

impl<F> PartitionState<F> {
    pub(super) fn new(status: Arc<Status>) -> Arc<Self> {
        Arc::new(Self {
            status,
            slot: Mutex::new(FilterSlot::InUse),
        })
    }

    pub(super) fn status(&self) -> &Arc<Status> {
        &self.status
    }

    /// Records that the filter panicked. The owner has dropped it.
    pub(super) fn record_panic(&self, panic: &(dyn Any + Send)) {
        let mut slot = unpoisoned(self.slot.lock());
        *slot = FilterSlot::Lost(panic_message(panic));
        self.status.mark_lost();
    }

    /// Leaves a filter for the owner of a lost partition.
    ///
    /// # Errors
    /// Returns the filter if the partition is not lost, or its owner has ended or is not in this
    /// process.
    pub(super) fn restore(&self, filter: F) -> Result<(), (F, NotReplaceable)> {
        if self.status.is_forked() {
            return Err((filter, NotReplaceable::Ended));
        }
        let mut slot = unpoisoned(self.slot.lock());
        match &*slot {
            // The slot changes with the flag, under the lock, unless the thread of the owner
            // unwinds.
            FilterSlot::InUse | FilterSlot::Restored(_) if self.status.is_lost() => {
                Err((filter, NotReplaceable::Ended))
            }
            FilterSlot::InUse | FilterSlot::Restored(_) => Err((filter, NotReplaceable::NotLost)),
            FilterSlot::Lost(_) => {
                *slot = FilterSlot::Restored(filter);
                self.status.mark_restored();
                Ok(())
            }
            FilterSlot::Ended(_) => Err((filter, NotReplaceable::Ended)),
        }
    }

    /// The filter that was left for the owner, if one was.
    #[cold]
    pub(super) fn take_restored(&self) -> Option<F> {
        let mut slot = unpoisoned(self.slot.lock());
        match std::mem::replace(&mut *slot, FilterSlot::InUse) {
            FilterSlot::Restored(filter) => Some(filter),
            other @ (FilterSlot::InUse | FilterSlot::Lost(_) | FilterSlot::Ended(_)) => {
                *slot = other;
                None
            }
        }
    }

    /// Ends a partition without a filter: no other one is taken from here on. Returns the message
    /// of its panic, or none if a filter was left for it.
    pub(super) fn end_lost(&self) -> Option<String> {
        let mut slot = unpoisoned(self.slot.lock());
        let message = match &*slot {
            FilterSlot::Restored(_) => return None,
            FilterSlot::Lost(message) | FilterSlot::Ended(message) => message.clone(),
            FilterSlot::InUse => String::new(),
        };
        *slot = FilterSlot::Ended(message.clone());
        Some(message)
    }

    /// The message of the panic, if the partition is lost.
    pub(super) fn loss(&self) -> Option<String> {
        match &*unpoisoned(self.slot.lock()) {
            FilterSlot::Lost(message) | FilterSlot::Ended(message) => Some(message.clone()),
            FilterSlot::InUse | FilterSlot::Restored(_) => None,
        }
    }
}

/// The number of each partition that is lost now, and the message of the panic, in ascending order.
/// `states` are those of all partitions.
pub(super) fn lost_partitions<'a, F: 'a>(
    states: impl Iterator<Item = &'a PartitionState<F>>,
) -> Vec<(usize, String)> {
    states
        .enumerate()
        .filter_map(|(index, state)| Some((index, state.loss()?)))
        .collect()
}

/// The message of a panic payload.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
        .to_owned()
}

/// A rejected replacement of a partition. It returns the filter.
///
/// # Examples
/// ```
/// use echoless::{Engine, FilterSpec, NotReplaceable};
/// let spec: FilterSpec = "fingerprint:fpr=1e-8,memory=1MiB".parse()?;
/// let (engine, _ports) = Engine::builder(spec.build_line_partitions(2)?).build()?;
/// for (lost, _panic) in engine.lost() {
///     engine.replace(lost, spec.build_line_partition(lost, 2)?)?;
/// }
/// let rejected = engine.replace(1, spec.build_line_partition(1, 2)?).unwrap_err();
/// assert_eq!(rejected.reason, NotReplaceable::NotLost);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[non_exhaustive]
pub struct ReplaceError<F> {
    /// The partition that was to be replaced.
    pub partition: usize,
    /// The number of partitions.
    pub partitions: usize,
    /// Why it was not replaced.
    pub reason: NotReplaceable,
    /// The filter that was to take its place.
    pub filter: F,
}

/// Why a partition cannot be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotReplaceable {
    /// There is no partition with this number.
    NoSuchPartition,
    /// Its filter did not panic, or was replaced before.
    NotLost,
    /// No thread would use the new filter: the worker of the engine panicked outside its filter, it
    /// was shut down, or this process is a fork of theirs.
    Ended,
}

/// Leaves `filter` for the owner of partition `partition` of `partitions`. `state` is that of the
/// partition, or why there is none that can take it.
pub(super) fn replace<F>(
    state: Result<&PartitionState<F>, NotReplaceable>,
    partition: usize,
    partitions: usize,
    filter: F,
) -> Result<(), ReplaceError<F>> {
    let restored = match state {
        Ok(state) => state.restore(filter),
        Err(reason) => Err((filter, reason)),
    };
    restored.map_err(|(filter, reason)| ReplaceError {
        partition,
        partitions,
        reason,
        filter,
    })
}

impl<F> fmt::Debug for ReplaceError<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ReplaceError")
            .field("partition", &self.partition)
            .field("partitions", &self.partitions)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

impl<F> fmt::Display for ReplaceError<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            partition,
            partitions,
            reason,
            filter: _,
        } = self;
        match reason {
            NotReplaceable::NoSuchPartition => write!(
                out,
                "invalid partition={partition}: expected 0 to {}",
                partitions - 1
            ),
            NotReplaceable::NotLost => write!(
                out,
                "partition {partition} is not lost: expected a partition whose filter panicked"
            ),
            NotReplaceable::Ended => write!(
                out,
                "partition {partition} cannot be replaced: its worker panicked outside the filter, \
                 it was shut down, or this process is a fork of its own"
            ),
        }
    }
}

impl<F> Error for ReplaceError<F> {}

#[cfg(test)]
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
        state.record_panic(&"a bug");
        assert_eq!(state.restore(5), Ok(()));
        assert_eq!(state.end_lost(), None, "a filter was left");
        assert_eq!(state.take_restored(), Some(5));
        state.record_panic(&"a bug");
        assert_eq!(state.end_lost().as_deref(), Some("a bug"));
        assert_eq!(state.restore(6), Err((6, NotReplaceable::Ended)));
        assert_eq!(state.loss().as_deref(), Some("a bug"));

        let state = PartitionState::<u8>::new(Status::new());
        // As if its thread unwound.
        state.status().mark_lost();
        assert_eq!(state.restore(4), Err((4, NotReplaceable::Ended)));
    }
}
