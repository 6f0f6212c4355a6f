//! The order of the chunks of the command `dedup`: which worker fills a chunk, which one delivers,
//! and which one is woken for what. A wake-up that is lost leaves a worker parked forever, which
//! loom reports as a deadlock.
//!
//! The command itself cannot be built for loom, so its module is part of this file. It uses nothing
//! of the command.

#![cfg(loom)]

#[path = "../../tools/cli/src/dedup/chunk_order.rs"]
mod chunk_order;

use std::collections::VecDeque;

use echoless::transport::{Parker, Wait};
use echoless_loom::{Preemptions, Sometimes, check};
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread::{self, JoinHandle};

use chunk_order::ChunkOrder;

/// The chunks that a worker has at most.
const IN_FLIGHT: usize = 2;

/// The memory of chunks beyond which nothing is filled.
const MOST_BYTES: usize = 1;

/// What a stream does beside bringing chunks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stream {
    /// All chunks are there.
    Fast,
    /// The chunk with this number is not there at first.
    Pauses(u64),
    /// Each chunk takes more memory than all may: nothing is filled beside it.
    Long,
    /// That turns out once the turn is passed on.
    Longer,
    /// A worker that is alone passes its chunks by itself.
    Short,
    /// A window has a clock.
    Clocked,
}

/// What the threads of a run share.
struct Run {
    order: ChunkOrder,
    stream: Stream,
    chunks: u64,
    /// The number of chunks that were filled. Changed by the worker that has the turn.
    filled: AtomicU64,
    /// A worker waits for data, or has.
    waited: AtomicBool,
    /// Locked only by the worker whose chunk is next.
    delivered: Mutex<Vec<u64>>,
    /// The number of the next chunk to place, of the clock of a window.
    placed: AtomicU64,
}

impl Run {
    /// The threads of two workers, which end with the stream.
    fn start(stream: Stream, chunks: u64) -> (Arc<Self>, Vec<JoinHandle<usize>>) {
        let parkers: Vec<Parker> = (0..2).map(|_| Parker::new()).collect();
        let run = Arc::new(Self {
            order: ChunkOrder::new(MOST_BYTES, parkers.iter().map(Parker::doorbell)),
            stream,
            chunks,
            filled: AtomicU64::new(0),
            waited: AtomicBool::new(false),
            delivered: Mutex::new(Vec::new()),
            placed: AtomicU64::new(0),
        });
        let start = |(worker, parker)| {
            let run = Arc::clone(&run);
            thread::spawn(move || run.pass(worker, parker))
        };
        let threads = parkers.into_iter().enumerate().map(start).collect();
        (run, threads)
    }

    /// The loop of a worker of the command. Returns how many chunks it has delivered.
    fn pass(&self, worker: usize, mut parker: Parker) -> usize {
        let order = &self.order;
        let (mut submitted, mut found_no_data, mut count) = (VecDeque::new(), false, 0);
        order.begin();
        loop {
            if let Some((number, chunk)) = submitted.front().copied()
                && order.is_next(number)
            {
                submitted.pop_front();
                self.deliver(chunk);
                order.set_delivered();
                found_no_data = false;
                count += 1;
                continue;
            }
            let may_fill = submitted.len() < IN_FLIGHT && !found_no_data;
            if may_fill && order.seems_free() && order.try_fill() {
                let Some(chunk) = self.fill(&mut found_no_data, &mut count) else {
                    continue;
                };
                let is_long = self.stream == Stream::Long;
                let bytes = if is_long { MOST_BYTES + 1 } else { 1 };
                let number = order.pass_on(worker, bytes);
                if self.stream == Stream::Longer {
                    order.correct_bytes(number, MOST_BYTES + 1);
                }
                if self.stream == Stream::Clocked {
                    let is_next = || self.placed.load(Ordering::Acquire) == number;
                    parker.wait_until(Wait::Shared, is_next);
                    self.placed.store(number + 1, Ordering::Release);
                    order.wake_worker_of(number + 1);
                }
                submitted.push_back((number, chunk));
            } else if let Some((number, _)) = submitted.front() {
                let fills = || may_fill && order.seems_free();
                parker.wait_until(Wait::Shared, || order.is_next(*number) || fills());
            } else if order.is_over() {
                return count;
            } else {
                if order.become_idle(worker, found_no_data) {
                    parker.wait_until(Wait::Shared, || order.is_called(worker));
                }
                found_no_data = false;
            }
        }
    }

    /// The turn to fill: the next chunk, unless the stream has ended or pauses.
    fn fill(&self, found_no_data: &mut bool, count: &mut usize) -> Option<u64> {
        loop {
            let chunk = self.filled.load(Ordering::Relaxed);
            if chunk == self.chunks {
                self.order.end();
                return None;
            }
            let is_late = self.stream == Stream::Pauses(chunk);
            if is_late && !self.waited.load(Ordering::Relaxed) {
                if self.order.give_back() {
                    *found_no_data = true;
                    return None;
                }
                // Nothing waits for this worker while it waits for data.
                assert_eq!(self.delivered.try_lock().unwrap().len() as u64, chunk);
                self.waited.store(true, Ordering::Relaxed);
            }
            if self.stream == Stream::Long {
                assert!(self.order.is_alone(), "too much is under way");
            }
            self.filled.store(chunk + 1, Ordering::Relaxed);
            if self.stream != Stream::Short || !self.order.is_alone() {
                return Some(chunk);
            }
            self.deliver(chunk);
            *count += 1;
        }
    }

    fn deliver(&self, chunk: u64) {
        if !self.order.is_stopped() {
            let delivered = self.delivered.try_lock();
            delivered.expect("another worker's turn").push(chunk);
        }
    }
}

/// Passes a stream, and returns how many chunks each worker has delivered.
fn pass(stream: Stream, chunks: u64) -> Vec<usize> {
    let (run, threads) = Run::start(stream, chunks);
    let counts: Vec<usize> = (threads.into_iter())
        .map(|thread| thread.join().unwrap())
        .collect();
    let expected: Vec<u64> = (0..chunks).collect();
    assert_eq!(*run.delivered.lock().unwrap(), expected);
    counts
}

#[test]
fn chunks_deliver_in_order() {
    static BOTH_DELIVERED: Sometimes = Sometimes::new();
    check("chunks_deliver_in_order", Preemptions::AtMost(3), || {
        let counts = pass(Stream::Fast, 2);
        BOTH_DELIVERED.note(counts == [1, 1]);
        assert_eq!(counts.iter().sum::<usize>(), 2);
    });
    BOTH_DELIVERED.assert();
}

#[test]
fn chunks_wait_for_data_alone() {
    static OTHER_WAITED: Sometimes = Sometimes::new();
    check("chunks_wait_for_data_alone", Preemptions::AtMost(3), || {
        let counts = pass(Stream::Pauses(1), 2);
        OTHER_WAITED.note(counts == [1, 1]);
        assert_eq!(counts.iter().sum::<usize>(), 2);
    });
    OTHER_WAITED.assert();
}

#[test]
fn chunks_wait_for_room() {
    check("chunks_wait_for_room", Preemptions::AtMost(2), || {
        for stream in [Stream::Long, Stream::Longer] {
            assert_eq!(pass(stream, 2).iter().sum::<usize>(), 2);
        }
    });
}

#[test]
fn chunks_short_pass_alone() {
    check("chunks_short_pass_alone", Preemptions::AtMost(3), || {
        // The one that fills first passes all.
        let counts = pass(Stream::Short, 3);
        assert!(counts.contains(&3) && counts.contains(&0));
    });
}

#[test]
fn chunks_pass_the_clock_on() {
    check("chunks_pass_the_clock_on", Preemptions::AtMost(2), || {
        assert_eq!(pass(Stream::Clocked, 2).iter().sum::<usize>(), 2);
    });
}

#[test]
fn chunks_stop_wakes_idle() {
    static ALL: Sometimes = Sometimes::new();
    static NONE: Sometimes = Sometimes::new();
    check("chunks_stop_wakes_idle", Preemptions::AtMost(3), || {
        let (run, threads) = Run::start(Stream::Fast, 1);
        run.order.stop();
        for thread in threads {
            thread.join().unwrap();
        }
        // What was filled is passed on, but a stop may come before its delivery.
        let delivered = run.delivered.lock().unwrap().clone();
        ALL.note(delivered == [0]);
        NONE.note(delivered.is_empty());
        assert!(delivered.is_empty() || delivered == [0]);
    });
    ALL.assert();
    NONE.assert();
}
