//! The ring between two threads: order, reuse of slots, closing, batches, and dropping of items
//! that were never popped.

#![cfg(loom)]

use echoless::transport::{Consumer, PopError, Producer, PushError, ring};
use echoless_loom::{Preemptions, Sometimes, check, pop, push};
use loom::sync::Arc;
use loom::thread;

/// Runs the two ends of a ring on two threads, and checks what they return. Runs twice, with either
/// end on the thread that starts first, because loom's search is not symmetric: it drops a load
/// that another load of the same atomic follows.
fn model<T: Default + 'static, P: 'static, C: 'static>(
    property: &str,
    capacity: usize,
    produce: fn(Producer<T>) -> P,
    consume: fn(Consumer<T>) -> C,
    verify: fn(P, C),
) {
    let bounded = move || ring::bounded(capacity).expect("a small power of two");
    check(
        &format!("{property}, producer first"),
        Preemptions::Any,
        move || {
            let (producer, consumer) = bounded();
            let popping = thread::spawn(move || consume(consumer));
            let pushed = produce(producer);
            verify(pushed, popping.join().unwrap());
        },
    );
    check(
        &format!("{property}, consumer first"),
        Preemptions::Any,
        move || {
            let (producer, consumer) = bounded();
            let pushing = thread::spawn(move || produce(producer));
            let popped = consume(consumer);
            verify(pushing.join().unwrap(), popped);
        },
    );
}

/// Every item is popped once, in order; then Empty, and Closed after the producer is dropped (4
/// slots, 3 items).
#[test]
fn ring_fifo() {
    model(
        "ring_fifo",
        4,
        |mut producer| {
            for item in 1..=3_u64 {
                assert_eq!(push(&mut producer, item), Ok(()), "there is room for all");
            }
            producer
        },
        |mut consumer| {
            let popped: Vec<u64> = (0..3).filter_map(|_| pop(&mut consumer).ok()).collect();
            (consumer, popped)
        },
        |producer, (mut consumer, mut popped)| {
            popped.extend(consumer.drain());
            assert_eq!(popped, [1, 2, 3]);
            assert_eq!(pop(&mut consumer), Err(PopError::Empty));
            drop(producer);
            assert_eq!(pop(&mut consumer), Err(PopError::Closed));
        },
    );
}

/// Slots are reused without loss; Full only if the ring is full (2 slots, 4 items).
#[test]
fn ring_wrap_around() {
    static SLOTS_REUSED: Sometimes = Sometimes::new();
    static FULL: Sometimes = Sometimes::new();
    model(
        "ring_wrap_around",
        2,
        |mut producer| {
            let mut items = 0..4_u64;
            let rejected = items.find_map(|item| push(&mut producer, item).err());
            if let Some(error) = rejected {
                assert_eq!(error, PushError::Full);
            }
            (producer, rejected.map_or(4, |_| items.start - 1))
        },
        |mut consumer| {
            let popped: Vec<u64> = (0..3).filter_map(|_| pop(&mut consumer).ok()).collect();
            (consumer, popped)
        },
        |(_producer, pushed), (mut consumer, mut popped)| {
            popped.extend(consumer.drain());
            assert!(pushed >= 2, "two slots were free");
            assert_eq!(popped, (0..pushed).collect::<Vec<_>>());
            SLOTS_REUSED.note(pushed == 4);
            FULL.note(pushed == 2);
        },
    );
    SLOTS_REUSED.assert();
    FULL.assert();
}

/// A message of two words written through `vacant` is read whole through `peek`, also one position
/// ahead (2 slots, 3 messages).
#[test]
fn ring_in_place() {
    model(
        "ring_in_place",
        2,
        |mut producer| {
            for item in 1..=3 {
                let Ok(mut slot) = producer.vacant() else {
                    return (producer, item - 1);
                };
                *slot = [item, 10 * item];
                slot.publish();
                producer.notify();
            }
            (producer, 3)
        },
        |mut consumer| {
            let mut last = 0;
            for _ in 0..2 {
                let Ok(front) = consumer.peek(0) else {
                    continue;
                };
                last += 1;
                assert_eq!(*front, [last, 10 * last]);
                if let Ok(second) = consumer.peek(1) {
                    assert_eq!(*second, [last + 1, 10 * (last + 1)]);
                }
                drop(front);
                consumer.release(1);
            }
            (consumer, last)
        },
        |(_producer, pushed), (mut consumer, last)| {
            let rest: Vec<[u64; 2]> = consumer.drain().collect();
            let expected: Vec<_> = (last + 1..=pushed).map(|item| [item, 10 * item]).collect();
            assert_eq!(rest, expected);
        },
    );
}

/// Each push succeeds or returns Closed, and none succeeds after Closed, while the consumer pops
/// and is dropped (2 slots, 2 items).
#[test]
fn ring_close_vs_push() {
    static BOTH_PUSHED: Sometimes = Sometimes::new();
    static NONE_PUSHED: Sometimes = Sometimes::new();
    static POPPED: Sometimes = Sometimes::new();
    model(
        "ring_close_vs_push",
        2,
        |mut producer| {
            let first = push(&mut producer, 1_u64);
            let second = push(&mut producer, 2);
            (producer, first, second)
        },
        |mut consumer| pop(&mut consumer),
        |(mut producer, first, second), popped| {
            assert!(matches!(first, Ok(()) | Err(PushError::Closed)));
            assert!(matches!(second, Ok(()) | Err(PushError::Closed)));
            assert!(
                first.is_ok() || second.is_err(),
                "a closed ring stays closed"
            );
            match popped {
                Ok(item) => assert_eq!((item, first), (1, Ok(()))),
                Err(error) => assert_eq!(error, PopError::Empty),
            }
            assert_eq!(push(&mut producer, 3), Err(PushError::Closed));
            assert_eq!(producer.push_batch([4]), Err(PushError::Closed));
            BOTH_PUSHED.note(second.is_ok());
            NONE_PUSHED.note(first.is_err());
            POPPED.note(popped.is_ok());
        },
    );
    BOTH_PUSHED.assert();
    NONE_PUSHED.assert();
    POPPED.assert();
}

/// All pushed items are popped before Closed (2 slots, 2 items).
#[test]
fn ring_close_vs_pop() {
    static WAITED: Sometimes = Sometimes::new();
    model(
        "ring_close_vs_pop",
        2,
        |mut producer| {
            assert_eq!(push(&mut producer, 1_u64), Ok(()));
            assert_eq!(push(&mut producer, 2), Ok(()));
        },
        |mut consumer| {
            let mut popped = Vec::new();
            loop {
                match pop(&mut consumer) {
                    Ok(item) => popped.push(item),
                    Err(PopError::Empty) => {
                        WAITED.note(true);
                        thread::yield_now();
                    }
                    Err(PopError::Closed) => return (consumer, popped),
                }
            }
        },
        |(), (mut consumer, popped)| {
            assert_eq!(popped, [1, 2], "pushed items come before Closed");
            assert_eq!(pop(&mut consumer), Err(PopError::Closed));
        },
    );
    WAITED.assert();
}

/// A consumer that closes the ring still pops every item of a successful push, possibly after
/// Closed; later pushes fail (2 slots, 2 items).
#[test]
fn ring_consumer_close_then_pop() {
    static AFTER_CLOSED: Sometimes = Sometimes::new();
    static NONE_PUSHED: Sometimes = Sometimes::new();
    model(
        "ring_consumer_close_then_pop",
        2,
        |mut producer| {
            let pushed = (1..=2_u64)
                .take_while(|item| push(&mut producer, *item).is_ok())
                .count();
            (producer, pushed as u64)
        },
        |mut consumer| {
            consumer.close();
            let popped: Vec<u64> = std::iter::from_fn(|| pop(&mut consumer).ok()).collect();
            assert_eq!(
                consumer.peek(0).err().unwrap_or(PopError::Closed),
                PopError::Closed
            );
            (consumer, popped)
        },
        |(mut producer, pushed), (mut consumer, mut popped)| {
            let late: Vec<u64> = consumer.drain().collect();
            AFTER_CLOSED.note(!late.is_empty());
            NONE_PUSHED.note(pushed == 0);
            popped.extend(late);
            assert_eq!(popped, (1..=pushed).collect::<Vec<_>>(), "no item is lost");
            assert_eq!(push(&mut producer, 3), Err(PushError::Closed));
        },
    );
    AFTER_CLOSED.assert();
    NONE_PUSHED.assert();
}

/// A batch becomes visible whole or not at all; a drain releases its slots all at once (4 slots, 2
/// batches of 3).
#[test]
fn ring_batch() {
    static SECOND_BATCH_WHOLE: Sometimes = Sometimes::new();
    model(
        "ring_batch",
        4,
        |mut producer| {
            assert_eq!(producer.push_batch([1, 2, 3]), Ok(3));
            let mut rest = 4..7_u64;
            let pushed = producer.push_batch(&mut rest).unwrap();
            assert_eq!(rest.start, 4 + pushed as u64, "no item is lost");
            (producer, pushed)
        },
        |mut consumer| {
            let first: Vec<u64> = consumer.drain().collect();
            let second: Vec<u64> = consumer.drain().collect();
            (consumer, first, second)
        },
        |(_producer, pushed), (mut consumer, first, second)| {
            let third: Vec<u64> = consumer.drain().collect();
            assert!(
                [1, 3].contains(&pushed),
                "a drain releases its slots all at once"
            );
            let ends_of_batches = [0, 3, 3 + pushed];
            assert!(ends_of_batches.contains(&first.len()));
            assert!(ends_of_batches.contains(&(first.len() + second.len())));
            let all: Vec<u64> = (1..=3 + pushed as u64).collect();
            assert_eq!([first, second, third].concat(), all);
            SECOND_BATCH_WHOLE.note(pushed == 3);
        },
    );
    SECOND_BATCH_WHOLE.assert();
}

/// Of items pushed, rejected, popped and left in the ring, none leaks or drops twice (2 slots, 3
/// items).
#[test]
fn drop_drains() {
    static LEFT_IN_RING: Sometimes = Sometimes::new();
    model(
        "drop_drains",
        2,
        |mut producer| {
            let witness = Arc::new(());
            let mut pushed = 0;
            for _ in 0..3 {
                let item = Some(Arc::clone(&witness));
                pushed += usize::from(push(&mut producer, item).is_ok());
            }
            (witness, pushed)
        },
        |mut consumer| {
            let popped = consumer.drain().next();
            popped.map(|item| item.expect("an item was pushed"))
        },
        |(witness, pushed), popped| {
            let held = usize::from(popped.is_some());
            assert_eq!(
                Arc::strong_count(&witness),
                1 + held,
                "no item leaks or drops twice"
            );
            LEFT_IN_RING.note(pushed > held);
        },
    );
    LEFT_IN_RING.assert();
}
