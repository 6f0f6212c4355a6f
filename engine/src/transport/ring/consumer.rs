//! The consumer: the end of a ring that pops.

#![allow(unsafe_code)] // reads slots that belong to the consumer, by the contract of the ring

use std::cell::Cell;
use std::ops::Deref;

use super::PopError;
use super::state::RingState;
use crate::sync::{Arc, ConstPtr, Ordering, check};
use crate::transport::parker::Doorbell;

/// The end of a ring that pops. Dropping it closes the ring.
///
/// It can be sent to another thread, but not shared with one:
/// ```compile_fail,E0277
/// fn share<T: Sync>() {}
/// share::<echoless::transport::Consumer<u64>>();
/// ```
#[derive(Debug)]
pub struct Consumer<T> {
    ring: Arc<RingState<T>>,
    /// Equals the shared `head`, which only this end moves.
    head: usize,
    /// The shared `tail` when it was last read; the current one is equal or ahead. The cell also
    /// makes the type `!Sync`.
    seen_tail: Cell<usize>,
    doorbell: Option<Doorbell>,
}

impl<T> Consumer<T> {
    pub(super) const fn new(ring: Arc<RingState<T>>, start: usize) -> Self {
        Self {
            ring,
            head: start,
            seen_tail: Cell::new(start),
            doorbell: None,
        }
    }

    /// Sets the doorbell of the producer's thread. Every [`release`](Self::release) and the close
    /// wake it.
    pub fn set_doorbell(&mut self, writer: Doorbell) {
        self.doorbell = Some(writer);
    }

    /// The number of slots.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.ring.slots.len()
    }

    /// Whether either end was closed or dropped; items may be left.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.ring.is_closed()
    }

    /// Whether the ring has an item or is closed: whether a pop returns something other than
    /// [`PopError::Empty`]. Consumers park on this condition.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.check_ready(0) != Err(PopError::Empty)
    }

    /// Whether the ring has `count` items or is closed: as [`is_ready`](Self::is_ready), for
    /// consumers that park until there are several.
    #[must_use]
    pub fn has(&self, count: usize) -> bool {
        self.check_ready(count.saturating_sub(1)) != Err(PopError::Empty)
    }

    /// Sets what the next wait is for, where the producer wakes this end's thread [only
    /// then](super::Producer::wake_when_awaited): until the ring [has](Self::has) `count` items, or
    /// for other things if `None`.
    #[inline]
    pub fn wake_when(&self, count: Option<usize>) {
        // Relaxed: see `Doorbell::wake_if`. No tail gets ahead of the head by half of all numbers.
        let ahead = count.unwrap_or(usize::MAX / 2);
        self.ring
            .wake_at
            .store(self.head.wrapping_add(ahead), Ordering::Relaxed);
    }

    /// Closes the ring. Its items can still be popped. A push that is in progress may still
    /// succeed, even after a pop returned [`PopError::Closed`]; a push that sees the ring closed
    /// fails.
    pub fn close(&mut self) {
        self.ring.close();
        if let Some(writer) = &self.doorbell {
            writer.wake();
        }
    }

    /// The item `ahead` positions behind the front one, read in place. It stays in the ring until
    /// it is [released](Self::release).
    ///
    /// # Errors
    /// [`PopError::Empty`] if the ring has `ahead` items or fewer, and [`PopError::Closed`] if it
    /// is closed as well.
    #[inline]
    pub fn peek(&self, ahead: usize) -> Result<Peeked<'_, T>, PopError> {
        self.check_ready(ahead)?;
        Ok(Peeked {
            slot: self.ring.slot(self.head.wrapping_add(ahead)).get(),
            _consumer: self,
        })
    }

    /// Returns the slots of the first `count` items to the producer.
    ///
    /// # Panics
    /// If fewer than `count` items are in the ring.
    #[inline]
    pub fn release(&mut self, count: usize) {
        self.release_without_notify(count);
        // After the store: a wake follows the change that the condition reads (W1 and W2 in
        // `transport::parker`).
        if let Some(writer) = &self.doorbell {
            writer.wake();
        }
    }

    /// As [`release`](Self::release), without waking the producer's thread, which may be parked for
    /// room. The caller wakes it, or signals the room in another way.
    ///
    /// # Panics
    /// If fewer than `count` items are in the ring.
    #[inline]
    pub fn release_without_notify(&mut self, count: usize) {
        let ready = self.ready(count);
        assert!(count <= ready, "{count} items released of {ready}");
        self.head = self.head.wrapping_add(count);
        // Release: pairs with the Acquire in `Producer::room`. This end's reads of the slots come
        // before the producer's next writes to them.
        self.ring.head.store(self.head, Ordering::Release);
    }

    #[inline]
    fn check_ready(&self, ahead: usize) -> Result<(), PopError> {
        let wanted = ahead.saturating_add(1);
        if self.ready(wanted) > ahead {
            return Ok(());
        }
        if !self.is_closed() {
            return Err(PopError::Empty);
        }
        // The producer may have pushed and closed between the two checks. Read the tail again, so
        // that its last items come before the end.
        if self.ready(wanted) > ahead {
            Ok(())
        } else {
            Err(PopError::Closed)
        }
    }

    /// The number of items known to be in the ring. Reads the producer's index, and so its cache
    /// line, only if fewer than `wanted` are known.
    #[inline]
    fn ready(&self, wanted: usize) -> usize {
        let ready = || self.seen_tail.get().wrapping_sub(self.head);
        if ready() < wanted {
            // Acquire: pairs with the Release in `Producer::publish`. The producer's writes to the
            // slots before `tail` are visible.
            self.seen_tail.set(self.ring.tail.load(Ordering::Acquire));
            check!(ready() <= self.capacity());
        }
        ready()
    }
}

impl<T: Default> Consumer<T> {
    /// An iterator that pops the items that are in the ring now. Dropping it returns their slots to
    /// the producer, all at once.
    #[inline]
    pub fn drain(&mut self) -> Drain<'_, T> {
        Drain {
            ready: self.ready(self.capacity()),
            taken: 0,
            consumer: self,
        }
    }

    /// Takes the item `ahead` positions behind the front, which must be known to be in the ring.
    /// Leaves a default in its slot.
    #[inline]
    fn take(&mut self, ahead: usize) -> T {
        check!(ahead < self.ready(0));
        let slot = self.ring.slot(self.head.wrapping_add(ahead)).get_mut();
        // SAFETY: the caller has found more than `ahead` items, so the slot lies in `head..tail`
        // and belongs to the consumer, and `&mut self` is the only consumer. No `Peeked` is alive,
        // because it borrows the consumer.
        slot.with(|slot| unsafe { std::mem::take(&mut *slot) })
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.close();
    }
}

/// An item read in place; see [`Consumer::peek`].
#[derive(Debug)]
pub struct Peeked<'a, T> {
    slot: ConstPtr<T>,
    _consumer: &'a Consumer<T>,
}

impl<T> Deref for Peeked<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the slot belongs to the consumer until it is released or taken. Both need `&mut
        // Consumer`, which the shared borrow in `self` rules out.
        self.slot.with(|slot| unsafe { &*slot })
    }
}

/// The iterator of [`Consumer::drain`].
#[derive(Debug)]
pub struct Drain<'a, T: Default> {
    consumer: &'a mut Consumer<T>,
    ready: usize,
    taken: usize,
}

impl<T: Default> Iterator for Drain<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        if self.taken == self.ready {
            return None;
        }
        let item = self.consumer.take(self.taken);
        self.taken += 1;
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.ready - self.taken;
        (left, Some(left))
    }
}

impl<T: Default> ExactSizeIterator for Drain<'_, T> {}

impl<T: Default> Drop for Drain<'_, T> {
    fn drop(&mut self) {
        if self.taken > 0 {
            self.consumer.release(self.taken);
        }
    }
}
