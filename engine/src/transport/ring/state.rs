//! What both ends of a ring share: the indices, the slots and whether it is closed.

#![allow(unsafe_code)] // shares the slots, by the contract of the ring

use crossbeam_utils::CachePadded;

use super::{Consumer, Producer};
use crate::error::{BuildError, MemoryError, SpecError};
use crate::sync::{Arc, AtomicBool, AtomicUsize, Ordering, UnsafeCell, check};

/// The state that both ends share. Each index has a cache line of its own (two, on CPUs that fetch
/// lines in pairs): an end that moves its index would otherwise evict that of the other end.
#[derive(Debug)]
pub(super) struct RingState<T> {
    /// Stored by the producer only.
    pub(super) tail: CachePadded<AtomicUsize>,
    /// Stored by the consumer only.
    pub(super) head: CachePadded<AtomicUsize>,
    /// Never set back to false. Not padded: it is only read until the ring closes.
    closed: AtomicBool,
    pub(super) slots: Box<[UnsafeCell<T>]>,
}

// SAFETY: by the contract of the ring, one thread at a time accesses a slot, and each hand-over
// is a Release/Acquire pair. So sharing the ring only ever sends items from thread to thread, for
// which `T: Send` is enough.
unsafe impl<T: Send> Sync for RingState<T> {}

impl<T> RingState<T> {
    #[inline(always)]
    pub(super) fn slot(&self, index: usize) -> &UnsafeCell<T> {
        check!(self.slots.len().is_power_of_two());
        &self.slots[index & (self.slots.len() - 1)]
    }

    pub(super) fn close(&self) {
        // Release: pairs with the Acquire in `is_closed`. A consumer that reads true also sees
        // every push before the close, so it reads the tail once more before it reports the end.
        self.closed.store(true, Ordering::Release);
    }

    #[inline(always)]
    pub(super) fn is_closed(&self) -> bool {
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
pub(super) fn starting_at<T: Default>(
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
