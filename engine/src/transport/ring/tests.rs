//! Compares the ring with a `VecDeque`, both ends on one thread. Two threads are covered by the
//! models of `loom-tests` and by the stress test.

use std::collections::VecDeque;
use std::rc::Rc;

use proptest::prelude::*;

use super::state::starting_at;
use super::*;
use crate::error::{BuildError, MemoryError, SpecError};

/// One call of a user of the ring.
#[derive(Debug, Clone)]
enum Action {
    Push,
    PushBatch(usize),
    WriteInPlace { publish: bool },
    Pop,
    Drain(usize),
    Peek { ahead: usize, release: bool },
    CloseProducer,
    CloseConsumer,
}

fn step() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => Just(Action::Push),
        4 => (0..12_usize).prop_map(Action::PushBatch),
        4 => any::<bool>().prop_map(|publish| Action::WriteInPlace { publish }),
        8 => Just(Action::Pop),
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
                Err(PushError::Closed(()))
            } else if model.len() == capacity {
                Err(PushError::Full(()))
            } else {
                Ok(())
            };
            let expected_pop = if closed { PopError::Closed } else { PopError::Empty };
            prop_assert_eq!(producer.is_ready(), expected_push != Err(PushError::Full(())));
            prop_assert_eq!(consumer.is_ready(), closed || !model.is_empty());

            match step {
                Action::Push => {
                    prop_assert_eq!(producer.try_push(next), expected_push.map_err(|e| e.with(next)));
                    if expected_push.is_ok() {
                        model.push_back(next);
                    }
                    next += 1;
                }
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
                Action::Pop => {
                    prop_assert_eq!(consumer.try_pop(), model.pop_front().ok_or(expected_pop));
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
        prop_assert_eq!(consumer.try_pop(), Err(PopError::Closed));
    }

    #[test]
    fn every_item_is_dropped_once(pushes in 0..20_usize, pops in 0..20_usize, producer_first: bool) {
        let witness = Rc::new(());
        let (mut producer, mut consumer) = bounded::<Option<Rc<()>>>(8).unwrap();
        for _ in 0..pushes {
            if let Err(error) = producer.try_push(Some(Rc::clone(&witness))) {
                prop_assert!(matches!(error, PushError::Full(Some(_))));
            }
        }
        for _ in 0..pops {
            drop(consumer.try_pop());
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
    assert_eq!(consumer.try_pop(), Ok(3));
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
    assert_eq!(consumer.try_pop(), Err(PopError::Empty));
    assert_eq!(producer.push_batch([7, 8, 9, 10]), Ok(4));
    assert_eq!(consumer.drain().collect::<Vec<_>>(), [7, 8, 9, 10]);
}

#[test]
#[should_panic(expected = "2 items released of 1")]
fn releasing_more_items_than_the_ring_holds_panics() {
    let (mut producer, mut consumer) = bounded(4).unwrap();
    assert_eq!(producer.try_push(1), Ok(()));
    consumer.release(2);
}
