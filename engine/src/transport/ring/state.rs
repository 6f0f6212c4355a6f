//! What both ends of a ring share: the indices, the slots, whether it is closed, and why a push or a
//! pop failed.

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
    /// The tail from which on the consumer's thread is woken, if it awaits several items. Stored by
    /// the consumer only.
    pub(super) wake_at: CachePadded<AtomicUsize>,
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
        wake_at: CachePadded::new(AtomicUsize::new(start)),
        closed: AtomicBool::new(false),
        slots: slots.into_boxed_slice(),
    });
    Ok((
        Producer::new(Arc::clone(&ring), start),
        Consumer::new(ring, start),
    ))
}

/// Why an item was not pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushError {
    /// Every slot holds an item that the consumer has not released.
    Full,
    /// One of the ends was closed or dropped.
    Closed,
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

/// Compares the ring with a `VecDeque`, both ends on one thread. Two threads are covered by the
/// models of `loom-tests` and by the stress test.
#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;

    /// One call of a user of the ring.
    #[derive(Debug, Clone)]
    enum Action {
        PushBatch(usize),
        WriteInPlace { publish: bool },
        Drain(usize),
        Peek { ahead: usize, release: bool },
        CloseProducer,
        CloseConsumer,
    }

    fn step() -> impl Strategy<Value = Action> {
        prop_oneof![
            8 => Just(Action::PushBatch(1)),
            4 => (0..12_usize).prop_map(Action::PushBatch),
            4 => any::<bool>().prop_map(|publish| Action::WriteInPlace { publish }),
            8 => Just(Action::Drain(1)),
            4 => (0..12_usize).prop_map(Action::Drain),
            4 => (0..9_usize, any::<bool>()).prop_map(|(ahead, release)| Action::Peek { ahead, release }),
            1 => prop_oneof![Just(Action::CloseProducer), Just(Action::CloseConsumer)],
        ]
    }

    proptest! {
        #[test]
        fn a_ring_is_a_bounded_queue(
            log_capacity in 0..4_u32,
            steps_before_wrap in 0..40_usize,
            steps in prop::collection::vec(step(), 0..200),
        ) {
            let capacity = 1 << log_capacity;
            let start = 0_usize.wrapping_sub(steps_before_wrap);
            let (mut producer, mut consumer) = starting_at::<u64>(capacity, start).unwrap();
            let mut model = VecDeque::new();
            let mut closed = false;
            let mut next = 1_u64;

            for step in steps {
                let expected_push = if closed {
                    Err(PushError::Closed)
                } else if model.len() == capacity {
                    Err(PushError::Full)
                } else {
                    Ok(())
                };
                let expected_pop = if closed { PopError::Closed } else { PopError::Empty };
                prop_assert_eq!(producer.is_ready(), expected_push != Err(PushError::Full));
                prop_assert_eq!(consumer.is_ready(), closed || !model.is_empty());

                match step {
                    Action::PushBatch(len) => {
                        let end = next + len as u64;
                        let mut items = next..end;
                        let room = len.min(capacity - model.len());
                        prop_assert_eq!(producer.push_batch(&mut items), expected_push.map(|()| room));
                        model.extend(next..items.start);
                        next = end;
                    }
                    Action::WriteInPlace { publish } => {
                        match producer.vacant() {
                            Ok(mut slot) => {
                                prop_assert!(expected_push.is_ok());
                                *slot = next;
                                if publish {
                                    slot.publish();
                                    model.push_back(next);
                                }
                            }
                            Err(error) => prop_assert_eq!(Err(error), expected_push),
                        }
                        next += 1;
                    }
                    Action::Drain(limit) => {
                        let popped: Vec<u64> = consumer.drain().take(limit).collect();
                        let count = limit.min(model.len());
                        prop_assert_eq!(popped, model.drain(..count).collect::<Vec<_>>());
                    }
                    Action::Peek { ahead, release } => {
                        let seen = consumer.peek(ahead).map(|item| *item);
                        prop_assert_eq!(seen, model.get(ahead).copied().ok_or(expected_pop));
                        if release && seen.is_ok() {
                            consumer.release(ahead + 1);
                            model.drain(..=ahead);
                        }
                    }
                    Action::CloseProducer => {
                        producer.close();
                        closed = true;
                    }
                    Action::CloseConsumer => {
                        consumer.close();
                        closed = true;
                    }
                }
                prop_assert_eq!(producer.is_closed(), closed);
                prop_assert_eq!(consumer.is_closed(), closed);
            }
            drop(producer);
            prop_assert_eq!(consumer.drain().collect::<Vec<_>>(), Vec::from(model));
            prop_assert_eq!(consumer.peek(0).err(), Some(PopError::Closed));
        }

        #[test]
        fn every_item_is_dropped_once(pushes in 0..20_usize, pops in 0..20_usize, producer_first: bool) {
            let witness = Rc::new(());
            let (mut producer, mut consumer) = bounded::<Option<Rc<()>>>(8).unwrap();
            for _ in 0..pushes {
                if let Err(error) = producer.push_batch([Some(Rc::clone(&witness))]) {
                    prop_assert_eq!(error, PushError::Full);
                }
            }
            for _ in 0..pops {
                drop(consumer.drain().next());
            }
            let left = pushes.min(8).saturating_sub(pops);
            prop_assert_eq!(Rc::strong_count(&witness), 1 + left);
            if producer_first {
                drop(producer);
                drop(consumer);
            } else {
                drop(consumer);
                drop(producer);
            }
            prop_assert_eq!(Rc::strong_count(&witness), 1);
        }
    }

    #[test]
    fn capacities_that_are_not_powers_of_two_are_rejected() {
        for capacity in [0, 3, 6, usize::MAX] {
            let error = bounded::<u8>(capacity).unwrap_err();
            let expected = SpecError::new("capacity", capacity.to_string(), "a power of two");
            assert!(matches!(error, BuildError::Spec(error) if error == expected));
        }
    }

    #[test]
    fn a_ring_larger_than_the_memory_is_an_error() {
        let error = bounded::<u64>(1 << (usize::BITS - 2)).unwrap_err();
        assert!(matches!(error, BuildError::Memory(MemoryError { bytes, .. }) if bytes > 1 << 60));
    }

    #[test]
    fn items_taken_before_a_drain_panics_are_not_popped_again() {
        let (mut producer, mut consumer) = bounded(4).unwrap();
        assert_eq!(producer.push_batch([1, 2, 3]), Ok(3));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for item in consumer.drain() {
                assert!(item < 2, "the reader fails on the second item");
            }
        }));
        assert!(panicked.is_err());
        assert!(consumer.drain().eq([3]));
    }

    #[test]
    fn a_batch_whose_source_panics_is_not_pushed() {
        let (mut producer, mut consumer) = bounded(4).unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            producer.push_batch((0..3).inspect(|&item| {
                assert!(item < 2, "the source fails on the third item");
            }))
        }));
        assert!(panicked.is_err());
        assert_eq!(consumer.peek(0).err(), Some(PopError::Empty));
        assert_eq!(producer.push_batch([7, 8, 9, 10]), Ok(4));
        assert_eq!(consumer.drain().collect::<Vec<_>>(), [7, 8, 9, 10]);
    }

    #[test]
    #[should_panic(expected = "2 items released of 1")]
    fn releasing_more_items_than_the_ring_holds_panics() {
        let (mut producer, mut consumer) = bounded(4).unwrap();
        assert_eq!(producer.push_batch([1]), Ok(1));
        consumer.release(2);
    }
}
