//! The end of a ring that pushes.

#![allow(unsafe_code)] // writes the slots that are the producer's by the contract of the ring

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use super::{PushError, Shared};
use crate::sync::{Arc, MutPtr, Ordering, check};
use crate::transport::wait::Doorbell;

/// The end that pushes. Dropping it closes the ring.
///
/// It can be sent to another thread, but not shared with one:
/// ```compile_fail,E0277
/// fn share<T: Sync>() {}
/// share::<echoless::transport::Producer<u64>>();
/// ```
#[derive(Debug)]
pub struct Producer<T> {
    ring: Arc<Shared<T>>,
    /// The shared `tail`, which only this end moves.
    tail: usize,
    /// The shared `head` when it was last looked at: the real one is here or further on. The cell also keeps the type from `Sync`.
    seen_head: Cell<usize>,
    doorbell: Option<Doorbell>,
}

impl<T> Producer<T> {
    pub(super) const fn new(ring: Arc<Shared<T>>, start: usize) -> Self {
        Self {
            ring,
            tail: start,
            seen_head: Cell::new(start),
            doorbell: None,
        }
    }

    /// Has every publication, and the closing, ring the bell of the thread that reads this ring.
    pub fn set_doorbell(&mut self, reader: Doorbell) {
        self.doorbell = Some(reader);
    }

    /// How many slots the ring has.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.ring.slots.len()
    }

    /// Whether either end was closed or dropped.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.ring.is_closed()
    }

    /// Whether a push would not find the ring full: there is room, or the ring is closed. What a producer waits for.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.room(1) > 0 || self.is_closed()
    }

    /// Rings the bell of the thread that reads this ring, after what was published [unannounced](Vacant::publish_without_notify).
    #[inline]
    pub fn notify(&self) {
        if let Some(reader) = &self.doorbell {
            reader.ring();
        }
    }

    /// Closes the ring: what is in it can still be popped.
    pub fn close(&mut self) {
        self.ring.close();
        self.notify();
    }

    /// Pushes one item. While the consumer is closing the ring, a push may succeed whose item nobody pops; it is dropped with the ring.
    ///
    /// # Errors
    /// If the ring is full or closed; the error holds the item.
    #[inline]
    pub fn try_push(&mut self, item: T) -> Result<(), PushError<T>> {
        match self.vacant() {
            Ok(mut slot) => {
                *slot = item;
                slot.publish();
                Ok(())
            }
            Err(error) => Err(error.with(item)),
        }
    }

    /// Pushes as many of the items as there is room for, says how many, and publishes them all at once. No item is taken from
    /// `items` that is not pushed; pass `&mut items` to keep the others.
    ///
    /// # Errors
    /// If the ring is full or closed; then none was taken.
    ///
    /// # Panics
    /// If `items` does; what it gave before is then not pushed.
    pub fn push_batch(&mut self, items: impl IntoIterator<Item = T>) -> Result<usize, PushError> {
        let room = self.check_room(self.capacity())?;
        let mut pushed = 0;
        for item in items.into_iter().take(room) {
            let slot = self.ring.slot(self.tail.wrapping_add(pushed)).get_mut();
            // SAFETY: the slot is one of the `room` behind `tail`, which are the producer's, and `&mut self` is the producer.
            slot.with(|slot| unsafe { *slot = item });
            pushed += 1;
        }
        if pushed > 0 {
            self.publish(pushed);
            self.notify();
        }
        Ok(pushed)
    }

    /// The next free slot, to write in place. It holds what it held when it was last used (at first the default), or what was
    /// written since through a [`Vacant`] that was not published.
    ///
    /// # Errors
    /// If the ring is full or closed.
    ///
    /// # Examples
    /// ```
    /// use echoless::transport::ring;
    /// # fn main() -> Result<(), echoless::BuildError> {
    /// let (mut producer, mut consumer) = ring::bounded::<Vec<u64>>(1)?;
    /// producer.vacant().unwrap().push(5); // not published yet
    /// let mut slot = producer.vacant().unwrap();
    /// slot.push(7);
    /// slot.publish();
    /// assert_eq!(*consumer.peek(0).unwrap(), [5, 7]);
    /// consumer.release(1);
    /// assert!(producer.vacant().unwrap().capacity() >= 2); // the memory came back
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn vacant(&mut self) -> Result<Vacant<'_, T>, PushError> {
        self.check_room(1)?;
        let slot = self.ring.slot(self.tail).get_mut();
        Ok(Vacant {
            producer: self,
            slot,
        })
    }

    #[inline]
    fn check_room(&self, wanted: usize) -> Result<usize, PushError> {
        if self.is_closed() {
            return Err(PushError::Closed(()));
        }
        match self.room(wanted) {
            0 => Err(PushError::Full(())),
            room => Ok(room),
        }
    }

    /// How many slots are known to be free; looks at the consumer's line only if that is fewer than wanted.
    #[inline]
    fn room(&self, wanted: usize) -> usize {
        let room = || self.capacity() - self.tail.wrapping_sub(self.seen_head.get());
        if room() < wanted {
            // Acquire: pairs with the Release in `Consumer::release`; the consumer has finished with the slots before `head`.
            self.seen_head.set(self.ring.head.load(Ordering::Acquire));
            check!(self.tail.wrapping_sub(self.seen_head.get()) <= self.capacity());
        }
        room()
    }

    #[inline]
    fn publish(&mut self, count: usize) {
        self.tail = self.tail.wrapping_add(count);
        // Release: pairs with the Acquire in `Consumer::ready`, which reads what was written to the slots.
        self.ring.tail.store(self.tail, Ordering::Release);
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        self.close();
    }
}

/// The next free slot of a ring, to be written in place and then [published](Self::publish).
#[derive(Debug)]
#[must_use = "nothing is pushed before `publish`"]
pub struct Vacant<'a, T> {
    producer: &'a mut Producer<T>,
    slot: MutPtr<T>,
}

impl<'a, T> Vacant<'a, T> {
    /// Pushes what the slot holds.
    #[inline]
    pub fn publish(self) {
        self.hand_over().notify();
    }

    /// Pushes what the slot holds without ringing the reader's bell, which costs more than the rest: a reader that is awake finds it, one that
    /// sleeps may sleep on. For several in a row; [`Producer::notify`] must follow.
    #[inline]
    pub fn publish_without_notify(self) {
        self.hand_over();
    }

    #[inline]
    fn hand_over(self) -> &'a Producer<T> {
        let producer = {
            let Self {
                producer,
                slot: _written, // the access ends here, before the slot is the consumer's
            } = self;
            producer
        };
        producer.publish(1);
        producer
    }
}

impl<T> Deref for Vacant<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the slot at `tail` is the producer's until it is published, and the exclusive borrow of the producer that
        // `self` holds keeps all others away.
        self.slot.with(|slot| unsafe { &*slot })
    }
}

impl<T> DerefMut for Vacant<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`; `&mut self` makes the reference the only one.
        self.slot.with(|slot| unsafe { &mut *slot })
    }
}
