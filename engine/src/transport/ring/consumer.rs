//! The end of a ring that pops.

#![allow(unsafe_code)] // reads the slots that are the consumer's by the contract of the ring

use std::cell::Cell;
use std::ops::Deref;

use super::{PopError, Shared};
use crate::sync::{Arc, ConstPtr, Ordering, check};
use crate::transport::wait::Doorbell;

/// The end that pops. Dropping it closes the ring.
///
/// It can be sent to another thread, but not shared with one:
/// ```compile_fail,E0277
/// fn share<T: Sync>() {}
/// share::<echoless::transport::Consumer<u64>>();
/// ```
#[derive(Debug)]
pub struct Consumer<T> {
    ring: Arc<Shared<T>>,
    /// The shared `head`, which only this end moves.
    head: usize,
    /// The shared `tail` when it was last looked at: the real one is here or further on. The cell also keeps the type from `Sync`.
    seen_tail: Cell<usize>,
    doorbell: Option<Doorbell>,
}

impl<T> Consumer<T> {
    pub(super) const fn new(ring: Arc<Shared<T>>, start: usize) -> Self {
        Self {
            ring,
            head: start,
            seen_tail: Cell::new(start),
            doorbell: None,
        }
    }

    /// Has every release, and the closing, ring the bell of the thread that writes this ring.
    pub fn set_doorbell(&mut self, writer: Doorbell) {
        self.doorbell = Some(writer);
    }

    /// How many slots the ring has.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.ring.slots.len()
    }

    /// Whether either end was closed or dropped; items may be left.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.ring.is_closed()
    }

    /// Whether a pop would not find the ring empty: there is an item, or the ring is closed. What a consumer waits for.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.check_ready(0) != Err(PopError::Empty)
    }

    /// Closes the ring: what is in it can still be popped, and so can what the producer is pushing at this moment, also after a pop
    /// that said [`PopError::Closed`]. A push that begins when the producer knows fails.
    pub fn close(&mut self) {
        self.ring.close();
        if let Some(writer) = &self.doorbell {
            writer.ring();
        }
    }

    /// The item `ahead` places behind the front one, to read in place. It stays in the ring until it is
    /// [released](Self::release), so that a reader can look ahead and prefetch.
    ///
    /// # Errors
    /// [`PopError::Empty`] if there are not so many items yet (the ring never holds more than its capacity), and
    /// [`PopError::Closed`] if the ring is closed as well.
    #[inline]
    pub fn peek(&self, ahead: usize) -> Result<Peeked<'_, T>, PopError> {
        self.check_ready(ahead)?;
        Ok(Peeked {
            slot: self.ring.slot(self.head.wrapping_add(ahead)).get(),
            _consumer: self,
        })
    }

    /// Gives the slots of the first `count` items back to the producer.
    ///
    /// # Panics
    /// If fewer than `count` items are in the ring.
    #[inline]
    pub fn release(&mut self, count: usize) {
        let ready = self.ready(count);
        assert!(count <= ready, "{count} items released of {ready}");
        self.head = self.head.wrapping_add(count);
        // Release: pairs with the Acquire in `Producer::room`; the slots were read before the producer writes them anew.
        self.ring.head.store(self.head, Ordering::Release);
        if let Some(writer) = &self.doorbell {
            writer.ring();
        }
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
        // The producer may have pushed and closed since; its last items come before the end.
        if self.ready(wanted) > ahead {
            Ok(())
        } else {
            Err(PopError::Closed)
        }
    }

    /// How many items are known to be there; looks at the producer's line only if that is fewer than wanted.
    #[inline]
    fn ready(&self, wanted: usize) -> usize {
        let ready = || self.seen_tail.get().wrapping_sub(self.head);
        if ready() < wanted {
            // Acquire: pairs with the Release in `Producer::publish`; the slots before `tail` are written.
            self.seen_tail.set(self.ring.tail.load(Ordering::Acquire));
            check!(ready() <= self.capacity());
        }
        ready()
    }
}

impl<T: Default> Consumer<T> {
    /// Pops one item.
    ///
    /// # Errors
    /// If the ring is empty, or empty and closed.
    #[inline]
    pub fn try_pop(&mut self) -> Result<T, PopError> {
        self.check_ready(0)?;
        let item = self.take(0);
        self.release(1);
        Ok(item)
    }

    /// Pops, while iterated, the items that are there now; their slots go back to the producer all at once when the iterator is
    /// dropped. Nothing comes if the ring is empty.
    ///
    /// # Examples
    /// ```
    /// use echoless::transport::ring;
    /// # fn main() -> Result<(), echoless::BuildError> {
    /// let (mut producer, mut consumer) = ring::bounded(4)?;
    /// assert_eq!(producer.push_batch([1, 2, 3]), Ok(3));
    /// assert_eq!(consumer.drain().take(2).collect::<Vec<_>>(), [1, 2]);
    /// assert_eq!(consumer.try_pop(), Ok(3));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn drain(&mut self) -> Drain<'_, T> {
        Drain {
            ready: self.ready(self.capacity()),
            taken: 0,
            consumer: self,
        }
    }

    /// Takes the item `ahead` places behind the front, which must be there.
    #[inline]
    fn take(&mut self, ahead: usize) -> T {
        check!(ahead < self.ready(0));
        let slot = self.ring.slot(self.head.wrapping_add(ahead)).get_mut();
        // SAFETY: the slot is before the `tail` that was read, so the consumer's, and `&mut self` is the consumer.
        slot.with(|slot| unsafe { std::mem::take(&mut *slot) })
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.close();
    }
}

/// An item that is still in its ring.
#[derive(Debug)]
pub struct Peeked<'a, T> {
    slot: ConstPtr<T>,
    _consumer: &'a Consumer<T>,
}

impl<T> Deref for Peeked<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the slot is the consumer's until it is released or taken, which the shared borrow of the consumer prevents.
        self.slot.with(|slot| unsafe { &*slot })
    }
}

/// The items of [`Consumer::drain`].
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
