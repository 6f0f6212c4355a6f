//! A bounded ring from one producer thread to one consumer thread, without locks.
//!
//! ```text
//!           head (the consumer moves it)       tail (the producer moves it)
//!              v                                  v
//!   +------+------+------+------+------+------+------+------+
//!   | free | full | full | full | full | full | free | free |   capacity: a power of two
//!   +------+------+------+------+------+------+------+------+
//! ```
//!
//! Both indices count up and wrap with `usize`; the slot of an index is its low bits. **The
//! contract** of every `unsafe` block below: the slots of `head..tail` belong to the consumer, all
//! others belong to the producer, and an end hands slots over only by moving its own index with
//! Release, which the other end reads with Acquire:
//!
//! ```text
//!   producer                                   consumer
//!   write slots
//!   tail.store(Release) ---------------------> tail.load(Acquire)
//!                                              read slots
//!   head.load(Acquire)  <--------------------- head.store(Release)
//!   overwrite slots
//! ```
//!
//! Each end caches the other's index and reads the shared one only if the ring seems full or empty.
//! The cached index is never ahead of the shared one, so an end can only underestimate the slots
//! that belong to it.
//!
//! Slots are created once, from [`Default`], and always hold a value. So a message of several cache
//! lines is written and read in place ([`Producer::vacant`], [`Consumer::peek`]), its allocations
//! are reused, and no slot can leak or drop twice.
//!
//! Closing or dropping either end closes the ring. Pushes then fail at once, except for one that is
//! in progress while the consumer closes; pops fail once the ring is empty. Items that are left
//! when the second end is dropped are dropped with the ring.

#![allow(unsafe_code)] // shares the slots, by the contract above

use std::error::Error;
use std::fmt;

use crossbeam_utils::CachePadded;

use crate::error::{BuildError, MemoryError, SpecError};
use crate::sync::{Arc, AtomicBool, AtomicUsize, Ordering, UnsafeCell, check};

mod consumer;
mod producer;
#[cfg(all(test, not(loom)))]
mod tests;

pub use consumer::{Consumer, Drain, Peeked};
pub use producer::{Producer, Vacant};

/// Why an item was not pushed. The error returns the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushError<T = ()> {
    /// Every slot holds an item that the consumer has not released.
    Full(T),
    /// One of the ends was closed or dropped.
    Closed(T),
}

impl<T> fmt::Display for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the ring is full",
            Self::Closed(_) => "the ring is closed",
        })
    }
}

impl<T: fmt::Debug> Error for PushError<T> {}

impl PushError {
    fn with<T>(self, item: T) -> PushError<T> {
        match self {
            Self::Full(()) => PushError::Full(item),
            Self::Closed(()) => PushError::Closed(item),
        }
    }
}

/// Why no item was popped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PopError {
    /// The ring is empty; items may follow.
    Empty,
    /// The ring is empty and closed, so no item will follow. One exception: if the consumer closed
    /// it, a push that was in progress may still succeed.
    Closed,
}

impl fmt::Display for PopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the ring is empty",
            Self::Closed => "the ring is closed",
        })
    }
}

impl Error for PopError {}

/// The state that both ends share. Each index has a cache line of its own (two, on CPUs that fetch
/// lines in pairs): an end that moves its index would otherwise evict that of the other end.
#[derive(Debug)]
struct RingState<T> {
    /// Stored by the producer only.
    tail: CachePadded<AtomicUsize>,
    /// Stored by the consumer only.
    head: CachePadded<AtomicUsize>,
    /// Never set back to false. Not padded: it is only read until the ring closes.
    closed: AtomicBool,
    slots: Box<[UnsafeCell<T>]>,
}

// SAFETY: by the contract of the module, one thread at a time accesses a slot, and each hand-over
// is a Release/Acquire pair. So sharing the ring only ever sends items from thread to thread, for
// which `T: Send` is enough.
unsafe impl<T: Send> Sync for RingState<T> {}

impl<T> RingState<T> {
    #[inline(always)]
    fn slot(&self, index: usize) -> &UnsafeCell<T> {
        check!(self.slots.len().is_power_of_two());
        &self.slots[index & (self.slots.len() - 1)]
    }

    fn close(&self) {
        // Release: pairs with the Acquire in `is_closed`. A consumer that reads true also sees
        // every push before the close, so it reads the tail once more before it reports the end.
        self.closed.store(true, Ordering::Release);
    }

    #[inline(always)]
    fn is_closed(&self) -> bool {
        // Acquire: pairs with the Release in `close`.
        self.closed.load(Ordering::Acquire)
    }
}

/// A ring of `capacity` slots.
///
/// A push or pop touches the cache lines of the slot and of the index that it moves. It reads the
/// index of the other end only if the ring seems full or empty. Messages that must not share a
/// cache line need an alignment of 64 bytes.
///
/// # Errors
/// If `capacity` is not a power of two, or the machine lacks the memory.
///
/// # Examples
/// ```
/// use echoless::transport::{PopError, PushError, ring};
/// # fn main() -> Result<(), echoless::BuildError> {
/// let (mut producer, mut consumer) = ring::bounded(2)?;
/// assert_eq!(producer.push_batch(["a", "b", "c"]), Ok(2));
/// assert_eq!(producer.try_push("c"), Err(PushError::Full("c")));
/// assert_eq!(consumer.try_pop(), Ok("a"));
/// drop(producer);
/// assert_eq!(consumer.try_pop(), Ok("b"));
/// assert_eq!(consumer.try_pop(), Err(PopError::Closed));
/// assert!(ring::bounded::<u64>(3).is_err());
/// # Ok(())
/// # }
/// ```
pub fn bounded<T: Default>(capacity: usize) -> Result<(Producer<T>, Consumer<T>), BuildError> {
    starting_at(capacity, 0)
}

/// The memory of a ring of `capacity` slots in bytes, without the allocations of its items.
pub(crate) const fn bytes<T>(capacity: usize) -> u64 {
    (capacity as u64)
        .saturating_mul(size_of::<T>() as u64)
        .saturating_add(size_of::<RingState<T>>() as u64)
}

/// [`bounded`], with both indices at `start`: tests let them wrap around `usize::MAX`.
fn starting_at<T: Default>(
    capacity: usize,
    start: usize,
) -> Result<(Producer<T>, Consumer<T>), BuildError> {
    if !capacity.is_power_of_two() {
        return Err(SpecError::new("capacity", capacity.to_string(), "a power of two").into());
    }
    let mut slots = Vec::new();
    slots
        .try_reserve_exact(capacity)
        .map_err(|reason| MemoryError {
            bytes: bytes::<T>(capacity),
            reason: reason.to_string(),
        })?;
    slots.resize_with(capacity, || UnsafeCell::new(T::default()));
    let ring = Arc::new(RingState {
        tail: CachePadded::new(AtomicUsize::new(start)),
        head: CachePadded::new(AtomicUsize::new(start)),
        closed: AtomicBool::new(false),
        slots: slots.into_boxed_slice(),
    });
    Ok((
        Producer::new(Arc::clone(&ring), start),
        Consumer::new(ring, start),
    ))
}
