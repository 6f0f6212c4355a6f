//! A bounded ring from one thread to one other, without locks.
//!
//! ```text
//!            head: the consumer moves it    tail: the producer moves it
//!              v                              v
//!  +------+------+------+------+------+------+------+------+
//!  | free | full | full | full | full | full | free | free |   capacity: a power of two
//!  +------+------+------+------+------+------+------+------+
//! ```
//!
//! Both indices count up for ever and wrap with `usize`; the slot of an index is its low bits. **The contract** that every
//! `unsafe` block below leans on: the slots of `head..tail` are the consumer's, all others are the producer's, and an end hands
//! slots over only by moving its own index with Release, which the other end reads with Acquire.
//!
//! Slots are made once, from [`Default`], and always hold a value, so that a message of several cache lines is written and read
//! in place ([`Producer::vacant`], [`Consumer::peek`]), whatever it allocated is recycled, and no slot can leak or drop twice.
//!
//! An end that is closed or dropped closes the ring: pushes fail at once (but for one that is under way when the consumer closes), pops
//! once the ring is empty. What is still in a ring
//! when its second end goes is dropped with it.

#![allow(unsafe_code)] // sharing the slots, by the contract above

use crossbeam_utils::CachePadded;
use thiserror::Error;

use crate::error::{BuildError, MemoryError, SpecError};
use crate::sync::{Arc, AtomicBool, AtomicUsize, Ordering, UnsafeCell, check};

mod consumer;
mod producer;
#[cfg(all(test, not(loom)))]
mod tests;

pub use consumer::{Consumer, Drain, Peeked};
pub use producer::{Producer, Vacant};

/// Why an item was not pushed. It gives the item back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PushError<T = ()> {
    /// Every slot holds an item that the consumer has not released.
    #[error("the ring is full")]
    Full(T),
    /// One of the ends was closed or dropped.
    #[error("the ring is closed")]
    Closed(T),
}

impl PushError {
    fn with<T>(self, item: T) -> PushError<T> {
        match self {
            Self::Full(()) => PushError::Full(item),
            Self::Closed(()) => PushError::Closed(item),
        }
    }
}

/// Why there is no item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PopError {
    /// None is there yet.
    #[error("the ring is empty")]
    Empty,
    /// None is there, and none will come: the producer was closed or dropped. If it was the consumer, a push that had begun before may
    /// still come.
    #[error("the ring is closed")]
    Closed,
}

/// What the ends share; each index has a cache line (two, where lines are fetched in pairs) of its own.
#[derive(Debug)]
struct Shared<T> {
    tail: CachePadded<AtomicUsize>,
    head: CachePadded<AtomicUsize>,
    closed: AtomicBool,
    slots: Box<[UnsafeCell<T>]>,
}

// SAFETY: by the contract of the module a slot is accessed by one thread at a time, and its hand-over is a Release/Acquire pair;
// so sharing the ring only ever sends items from thread to thread.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T> Shared<T> {
    #[inline(always)]
    fn slot(&self, index: usize) -> &UnsafeCell<T> {
        check!(self.slots.len().is_power_of_two());
        &self.slots[index & (self.slots.len() - 1)]
    }

    fn close(&self) {
        // Release: pairs with the Acquire in `is_closed`; who sees the ring closed sees all that was pushed before.
        self.closed.store(true, Ordering::Release);
    }

    #[inline(always)]
    fn is_closed(&self) -> bool {
        // Acquire: pairs with the Release in `close`.
        self.closed.load(Ordering::Acquire)
    }
}

/// Makes a ring of `capacity` slots.
///
/// To push or pop touches the cache lines of the slot and of the index that it moves; the index of the other end is read only
/// when the ring seems full or empty. A message that should not share a line with its neighbour aligns itself to 64 bytes.
///
/// # Errors
/// If `capacity` is not a power of two, or the machine does not grant the memory.
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

/// What a ring of `capacity` slots takes, in bytes, without what its items own.
pub(crate) const fn bytes<T>(capacity: usize) -> u64 {
    (capacity as u64)
        .saturating_mul(size_of::<T>() as u64)
        .saturating_add(size_of::<Shared<T>>() as u64)
}

/// [`bounded`], with both indices at `start`, so that a test can have them wrap.
fn starting_at<T: Default>(
    capacity: usize,
    start: usize,
) -> Result<(Producer<T>, Consumer<T>), BuildError> {
    if !capacity.is_power_of_two() {
        return Err(SpecError::new("ring", format!("{capacity} slots"), "a power of two").into());
    }
    let mut slots = Vec::new();
    slots
        .try_reserve_exact(capacity)
        .map_err(|reason| MemoryError {
            bytes: bytes::<T>(capacity),
            reason: reason.to_string(),
        })?;
    slots.resize_with(capacity, || UnsafeCell::new(T::default()));
    let ring = Arc::new(Shared {
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
