//! The producer: the end of a ring that pushes.

#![allow(unsafe_code)] // writes slots that belong to the producer, by the contract of the ring

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use super::PushError;
use super::state::RingState;
use crate::sync::{Arc, MutPtr, Ordering, check};
use crate::transport::parker::Doorbell;

/// The end of a ring that pushes. Dropping it closes the ring.
///
/// It can be sent to another thread, but not shared with one:
/// ```compile_fail,E0277
/// fn share<T: Sync>() {}
/// share::<echoless::transport::Producer<u64>>();
/// ```
#[derive(Debug)]
pub struct Producer<T> {
    ring: Arc<RingState<T>>,
    /// Equals the shared `tail`, which only this end moves.
    tail: usize,
    /// The shared `head` when it was last read; the current one is equal or ahead. The cell also
    /// makes the type `!Sync`.
    seen_head: Cell<usize>,
    doorbell: Option<Doorbell>,
    /// The doorbell is for publications that the consumer awaits.
    when_awaited: bool,
}

impl<T> Producer<T> {
    pub(super) const fn new(ring: Arc<RingState<T>>, start: usize) -> Self {
        Self {
            ring,
            tail: start,
            seen_head: Cell::new(start),
            doorbell: None,
            when_awaited: false,
        }
    }

    /// Sets the doorbell of the consumer's thread. Every publication and the close wake it;
    /// after [`wake_when_awaited`](Self::wake_when_awaited), those that it awaits.
    pub fn set_doorbell(&mut self, reader: Doorbell) {
        self.doorbell = Some(reader);
    }

    /// From now on, only publications that the consumer [awaits](super::Consumer::wake_when) wake
    /// its thread, and the close. The consumer must say before every wait what it awaits.
    pub const fn wake_when_awaited(&mut self) {
        self.when_awaited = true;
    }

    /// The number of slots.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.ring.slots.len()
    }

    /// Whether either end was closed or dropped.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.ring.is_closed()
    }

    /// Whether the ring has a free slot or is closed: whether a push returns something other than
    /// [`PushError::Full`]. Producers park on this condition.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.room(1) > 0 || self.is_closed()
    }

    /// Wakes the consumer's thread, if it awaits what is published. Must follow
    /// [`Vacant::publish`].
    #[inline]
    pub fn notify(&self) {
        if let Some(reader) = &self.doorbell {
            reader.wake_if(|| {
                // Relaxed: see `Doorbell::wake_if`. The difference wraps as the indices do.
                let wake_at = || self.ring.wake_at.load(Ordering::Relaxed);
                !self.when_awaited || self.tail.wrapping_sub(wake_at()).cast_signed() >= 0
            });
        }
    }

    /// As [`notify`](Self::notify), if the consumer's thread waits for hints.
    #[inline]
    pub fn hint(&self) {
        if let Some(reader) = &self.doorbell {
            reader.hint();
        }
    }

    /// Closes the ring. Its items can still be popped.
    pub fn close(&mut self) {
        self.ring.close();
        if let Some(reader) = &self.doorbell {
            reader.wake();
        }
    }

    /// Pushes as many of the items as the ring has room for, publishes them all at once, and
    /// returns their number. Takes no item from `items` that it does not push; pass `&mut items` to
    /// keep the rest. A push that runs concurrently with the consumer's close may succeed although
    /// no pop follows; its items are then dropped with the ring.
    ///
    /// # Errors
    /// If the ring is full or closed. No item was taken.
    ///
    /// # Panics
    /// If `items` panics. The items before are then not pushed.
    pub fn push_batch(&mut self, items: impl IntoIterator<Item = T>) -> Result<usize, PushError> {
        let mut items = items.into_iter();
        let mut room = self.check_room(1)?;
        let mut pushed = 0;
        loop {
            if pushed == room {
                // Reads the consumer's index only if the known room does not suffice.
                room = self.room(pushed + 1);
            }
            if pushed == room {
                break;
            }
            let Some(item) = items.next() else { break };
            let slot = self.ring.slot(self.tail.wrapping_add(pushed)).get_mut();
            // SAFETY: the slot is one of the `room` slots from `tail` on, which belong to the
            // producer, and `&mut self` is the only producer. No `Vacant` is alive, because it
            // borrows the producer.
            slot.with(|slot| unsafe { *slot = item });
            pushed += 1;
        }
        if pushed > 0 {
            self.publish(pushed);
            self.notify();
        }
        Ok(pushed)
    }

    /// The next free slot, to be written in place. It still holds its last value: the default at
    /// first, later that of an earlier message (unless the consumer took it), or one written
    /// through a [`Vacant`] that was not published.
    ///
    /// # Errors
    /// If the ring is full or closed.
    #[inline]
    pub fn vacant(&mut self) -> Result<Vacant<'_, T>, PushError> {
        self.check_room(1)?;
        let slot = self.ring.slot(self.tail).get_mut();
        Ok(Vacant {
            producer: self,
            slot,
        })
    }

    /// The number of slots known to be free, at least 1.
    #[inline]
    fn check_room(&self, wanted: usize) -> Result<usize, PushError> {
        if self.is_closed() {
            return Err(PushError::Closed);
        }
        match self.room(wanted) {
            0 => Err(PushError::Full),
            room => Ok(room),
        }
    }

    /// The number of slots known to be free. Reads the consumer's index, and so its cache line,
    /// only if fewer than `wanted` are known.
    #[inline]
    fn room(&self, wanted: usize) -> usize {
        let room = || self.capacity() - self.tail.wrapping_sub(self.seen_head.get());
        if room() < wanted {
            // Acquire: pairs with the Release in `Consumer::release`. The consumer's reads of the
            // slots before `head` are over.
            self.seen_head.set(self.ring.head.load(Ordering::Acquire));
            check!(self.tail.wrapping_sub(self.seen_head.get()) <= self.capacity());
        }
        room()
    }

    /// Hands `count` written slots over to the consumer. The caller wakes it afterwards.
    #[inline]
    fn publish(&mut self, count: usize) {
        self.tail = self.tail.wrapping_add(count);
        // Release: pairs with the Acquire in `Consumer::ready`. This end's writes to the slots come
        // before the consumer's reads.
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

impl<T> Vacant<'_, T> {
    /// Pushes the value of the slot without waking the consumer: the fence of a wake costs more
    /// than the rest of a push. A running consumer finds the item, a parked one may stay parked.
    /// Call [`Producer::notify`] after the last of several.
    #[inline]
    pub fn publish(self) {
        let producer = {
            let Self {
                producer,
                slot: _written, // ends the access, before the slot is handed over
            } = self;
            producer
        };
        producer.publish(1);
    }
}

impl<T> Deref for Vacant<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the slot at `tail` belongs to the producer until it is published, and the
        // exclusive borrow of the producer in `self` rules out every other access.
        self.slot.with(|slot| unsafe { &*slot })
    }
}

impl<T> DerefMut for Vacant<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; `&mut self` makes the reference unique.
        self.slot.with(|slot| unsafe { &mut *slot })
    }
}
