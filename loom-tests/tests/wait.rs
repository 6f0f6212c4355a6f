//! Parking and waking. A lost wake-up leaves a thread parked forever, which loom reports as a
//! deadlock.

#![cfg(loom)]

use std::future::poll_fn;
use std::task::{Context, Poll, Wake, Waker};

use echoless::transport::{Attention, Consumer, Parker, PopError, Producer, Wait, ring};
use echoless_loom::{Preemptions, Sometimes, check, pop, push};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

/// A ring whose ends wake the threads at the other ends.
fn between<T: Default>(
    writer: &Parker,
    reader: &Parker,
    capacity: usize,
) -> (Producer<T>, Consumer<T>) {
    let (mut producer, mut consumer) = ring::bounded(capacity).expect("a small power of two");
    producer.set_doorbell(reader.doorbell());
    consumer.set_doorbell(writer.doorbell());
    (producer, consumer)
}

/// A thread that pushes 7 and 8, and returns its end of the ring.
fn push_two(mut producer: Producer<u64>) -> thread::JoinHandle<Producer<u64>> {
    thread::spawn(move || {
        assert_eq!(push(&mut producer, 7), Ok(()));
        assert_eq!(push(&mut producer, 8), Ok(()));
        producer
    })
}

/// A parked reader is woken by each of two pushes (2 slots, 2 items).
#[test]
fn wait_no_lost_wakeup() {
    check("wait_no_lost_wakeup", Preemptions::Any, || {
        let (writer, mut reader) = (Parker::new(), Parker::new());
        let (producer, mut consumer) = between(&writer, &reader, 2);
        let pushing = push_two(producer);
        for item in [7, 8] {
            reader.wait_until(Wait::Shared, || consumer.is_ready());
            assert_eq!(pop(&mut consumer), Ok(item));
        }
        assert_eq!(pop(&mut consumer), Err(PopError::Empty));
        drop(pushing.join().unwrap());
    });
}

/// A reader that awaits nothing, then one item, then two more, is woken by the first push and by the
/// third (4 slots, 3 items).
#[test]
fn wait_for_several_items() {
    check("wait_for_several_items", Preemptions::AtMost(3), || {
        let (writer, mut reader) = (Parker::new(), Parker::new());
        let (mut producer, mut consumer) = between(&writer, &reader, 4);
        producer.wake_when_awaited();
        let pushing = thread::spawn(move || {
            for item in 1..=3 {
                assert_eq!(push(&mut producer, item), Ok(()));
            }
            // Its close would wake the reader.
            producer
        });
        consumer.wake_when(None);
        let mut next = 1;
        for count in [1, 2] {
            consumer.wake_when(Some(count));
            reader.wait_until(Wait::Shared, || consumer.has(count));
            for item in next..next + count as u64 {
                assert_eq!(pop(&mut consumer), Ok(item));
            }
            next += count as u64;
        }
        drop(pushing.join().unwrap());
    });
}

/// Writer and reader park on the same ring, alternately (1 slot, 3 items).
#[test]
fn wait_for_room() {
    check("wait_for_room", Preemptions::AtMost(3), || {
        let (mut writer, mut reader) = (Parker::new(), Parker::new());
        let (mut producer, mut consumer) = between(&writer, &reader, 1);
        let pushing = thread::spawn(move || {
            for item in 1..=3 {
                writer.wait_until(Wait::Shared, || producer.is_ready());
                assert_eq!(push(&mut producer, item), Ok(()));
            }
        });
        for item in 1..=3 {
            reader.wait_until(Wait::Shared, || consumer.is_ready());
            assert_eq!(pop(&mut consumer), Ok(item));
        }
        reader.wait_until(Wait::Shared, || consumer.is_ready());
        assert_eq!(pop(&mut consumer), Err(PopError::Closed));
        pushing.join().unwrap();
    });
}

/// A thread parked for an item or for room is woken when the other end is dropped, and returns
/// Closed (1 slot, 2 rings).
#[test]
fn close_wakes() {
    check("close_wakes", Preemptions::AtMost(3), || {
        let (mut writer, mut reader) = (Parker::new(), Parker::new());
        let (mut full, unread) = between::<u64>(&writer, &reader, 1);
        let (unwritten, mut empty) = between::<u64>(&writer, &reader, 1);
        assert_eq!(push(&mut full, 1), Ok(()));
        let writing = thread::spawn(move || {
            drop(unwritten);
            writer.wait_until(Wait::Shared, || full.is_ready());
            push(&mut full, 2)
        });
        reader.wait_until(Wait::Shared, || empty.is_ready());
        assert_eq!(pop(&mut empty), Err(PopError::Closed));
        drop(unread);
        assert_eq!(
            writing.join().unwrap(),
            Err(echoless::transport::PushError::Closed)
        );
    });
}

/// One thread parks on two rings and is woken by two threads (3 threads, 1 slot each).
#[test]
fn doorbell_many_wakers() {
    check("doorbell_many_wakers", Preemptions::AtMost(3), || {
        let mut reader = Parker::new();
        let writer = Parker::new();
        let (mut one, mut from_one) = between(&writer, &reader, 1);
        let (mut two, mut from_two) = between(&writer, &reader, 1);
        let first = thread::spawn(move || {
            assert_eq!(push(&mut one, 1), Ok(()));
            one
        });
        let second = thread::spawn(move || {
            assert_eq!(push(&mut two, 2), Ok(()));
            two
        });
        let mut popped = [None, None];
        while popped.contains(&None) {
            let waits_for_one = popped[0].is_none();
            let waits_for_two = popped[1].is_none();
            reader.wait_until(Wait::Shared, || {
                (waits_for_one && from_one.is_ready()) || (waits_for_two && from_two.is_ready())
            });
            popped[0] = popped[0].or_else(|| pop(&mut from_one).ok());
            popped[1] = popped[1].or_else(|| pop(&mut from_two).ok());
        }
        assert_eq!(popped, [Some(1), Some(2)]);
        drop((first.join().unwrap(), second.join().unwrap()));
    });
}

/// A reader needs two changes. One is followed by a wake; the other only by a hint, which the
/// reader waits for once it has seen the first.
#[test]
fn hint_wakes_who_waits_for_it() {
    check(
        "hint_wakes_who_waits_for_it",
        Preemptions::AtMost(3),
        || {
            let mut reader = Parker::new();
            let changes = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
            let doorbell = reader.doorbell();
            let called = {
                let (changes, doorbell) = (Arc::clone(&changes), doorbell.clone());
                thread::spawn(move || {
                    changes[0].store(true, Ordering::Release);
                    doorbell.wake();
                })
            };
            let hinted = {
                let changes = Arc::clone(&changes);
                thread::spawn(move || {
                    changes[1].store(true, Ordering::Release);
                    doorbell.hint();
                })
            };
            reader.wait_while(None, Wait::Shared, || {
                let seen = |change: usize| changes[change].load(Ordering::Acquire);
                match (seen(0), seen(1)) {
                    (true, true) => None,
                    (true, false) => Some(Attention::WakesAndHints),
                    (false, _) => Some(Attention::Wakes),
                }
            });
            called.join().unwrap();
            hinted.join().unwrap();
        },
    );
}

/// As [`wait_no_lost_wakeup`], with a reader in a task, and a doorbell that outlives it.
#[test]
fn task_no_lost_wakeup() {
    check("task_no_lost_wakeup", Preemptions::AtMost(3), || {
        let (writer, mut reader) = (Parker::new(), Parker::new());
        let (producer, mut consumer) = between(&writer, &reader, 2);
        let pushing = push_two(producer);
        for item in [7, 8] {
            loom::future::block_on(poll_fn(|context| {
                reader.poll_while(context, || {
                    (!consumer.is_ready()).then_some(Attention::Wakes)
                })
            }));
            assert_eq!(pop(&mut consumer), Ok(item));
        }
        assert_eq!(pop(&mut consumer), Err(PopError::Empty));
        drop(reader);
        drop(pushing.join().unwrap());
    });
}

/// A waker that counts as woken once it was.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A task is polled twice, with a waker each, while two threads make what it waits for true. A
/// thread that clears the flag of the first poll may take the waker of the second, so that the
/// other thread finds none: the waker of the last poll is woken in any case.
#[test]
fn task_polled_again_is_woken() {
    let pending = std::sync::Arc::new(Sometimes::new());
    let noted = std::sync::Arc::clone(&pending);
    let property = "task_polled_again_is_woken";
    check(property, Preemptions::AtMost(3), move || {
        let mut reader = Parker::new();
        let changes = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
        let threads = [0, 1].map(|change| {
            let (changes, doorbell) = (Arc::clone(&changes), reader.doorbell());
            thread::spawn(move || {
                changes[change].store(true, Ordering::Release);
                doorbell.wake();
            })
        });
        let mut poll = || {
            let flag = std::sync::Arc::new(Flag(AtomicBool::new(false)));
            let waker = Waker::from(std::sync::Arc::clone(&flag));
            let polled = reader.poll_while(&Context::from_waker(&waker), || {
                let seen = |change: &AtomicBool| change.load(Ordering::Acquire);
                (!changes.iter().all(seen)).then_some(Attention::Wakes)
            });
            (polled, flag)
        };
        let (first, _) = poll();
        let (second, last) = poll();
        for thread in threads {
            thread.join().unwrap();
        }
        noted.note((first, second) == (Poll::Pending, Poll::Pending));
        if second.is_pending() {
            assert!(last.0.load(Ordering::Relaxed), "the last waker is woken");
        }
        assert_eq!(poll().0, Poll::Ready(()));
    });
    pending.assert();
}

/// A thread that blocks after its task has left a waker is woken, too.
#[test]
fn thread_waits_after_a_task() {
    check("thread_waits_after_a_task", Preemptions::AtMost(3), || {
        let (writer, mut reader) = (Parker::new(), Parker::new());
        let (mut producer, mut consumer) = between(&writer, &reader, 1);
        let pushing = thread::spawn(move || {
            assert_eq!(push(&mut producer, 7), Ok(()));
            producer
        });
        loom::future::block_on(poll_fn(|context| {
            // Leaves the waker, and does not wait.
            let _ = reader.poll_while(context, || {
                (!consumer.is_ready()).then_some(Attention::Wakes)
            });
            std::task::Poll::Ready(())
        }));
        reader.wait_until(Wait::Shared, || consumer.is_ready());
        assert_eq!(pop(&mut consumer), Ok(7));
        drop(pushing.join().unwrap());
    });
}

/// The protocol of a port and its partition server: messages of keys out, masks of verdicts back,
/// both threads parked when idle.
#[test]
fn request_response() {
    #[derive(Default)]
    struct Message {
        len: usize,
        keys: [u64; 2],
    }
    check("request_response", Preemptions::AtMost(2), || {
        let (mut port, mut server) = (Parker::new(), Parker::new());
        let (mut requests, mut inbox) = between::<Message>(&port, &server, 1);
        let (mut outbox, mut masks) = between::<u64>(&server, &port, 1);
        let serving = thread::spawn(move || {
            let mut seen = Vec::new();
            loop {
                server.wait_until(Wait::Shared, || inbox.is_ready());
                let Ok(message) = inbox.peek(0) else {
                    return seen;
                };
                let mut mask = 0;
                for (bit, key) in message.keys[..message.len].iter().enumerate() {
                    mask |= u64::from(seen.contains(key)) << bit;
                    seen.push(*key);
                }
                drop(message);
                inbox.release(1);
                server.wait_until(Wait::Shared, || outbox.is_ready());
                assert_eq!(push(&mut outbox, mask), Ok(()));
            }
        });
        let batches: [&[u64]; 3] = [&[5, 6], &[6], &[7, 5]];
        let mut answers = Vec::new();
        for keys in batches {
            port.wait_until(Wait::Shared, || requests.is_ready());
            let mut message = requests.vacant().expect("the ring has room");
            message.len = keys.len();
            message.keys[..keys.len()].copy_from_slice(keys);
            message.publish();
            requests.notify();
            answers.extend(masks.drain());
        }
        while answers.len() < batches.len() {
            port.wait_until(Wait::Shared, || masks.is_ready());
            answers.push(pop(&mut masks).expect("the ring has a mask"));
        }
        assert_eq!(answers, [0b00, 0b1, 0b10]);
        drop(requests);
        assert_eq!(serving.join().unwrap(), [5, 6, 6, 7, 5]);
        assert_eq!(pop(&mut masks), Err(PopError::Closed));
    });
}
