//! The queue of the command `dedup`: which worker gets a chunk, and who is woken for what. A
//! wake-up that is lost leaves a worker parked forever, which loom reports as a deadlock.
//!
//! The command itself cannot be built for loom, so its module is part of this file. It uses nothing
//! of the command.

#![cfg(loom)]

#[path = "../../tools/cli/src/dedup/queue.rs"]
mod queue;

use echoless::transport::{Parker, Wait};
use echoless_loom::{Preemptions, Sometimes, check};
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread::{self, JoinHandle};

use queue::ChunkQueue;

/// What the threads of a run share.
struct Run {
    queue: ChunkQueue<u64>,
    /// Locked only by the worker whose chunk is next.
    delivered: Mutex<Vec<u64>>,
    /// The number of the next chunk to place, of the clock of a window.
    placed: AtomicU64,
}

/// Chunks are numbers that tell them apart from their own.
const FIRST: u64 = 10;

impl Run {
    /// The threads of `workers` workers, which end with the queue.
    fn start(workers: usize, with_clock: bool) -> (Arc<Self>, Vec<JoinHandle<usize>>) {
        let parkers: Vec<Parker> = (0..workers).map(|_| Parker::new()).collect();
        let run = Arc::new(Self {
            queue: ChunkQueue::new(4, parkers.iter().map(Parker::doorbell)),
            delivered: Mutex::new(Vec::new()),
            placed: AtomicU64::new(0),
        });
        let start = |(worker, parker)| {
            let run = Arc::clone(&run);
            thread::spawn(move || run.pass(worker, parker, with_clock))
        };
        let threads = parkers.into_iter().enumerate().map(start).collect();
        (run, threads)
    }

    /// The loop of a worker of the command. Returns how many chunks it has delivered.
    fn pass(&self, worker: usize, mut parker: Parker, with_clock: bool) -> usize {
        let queue = &self.queue;
        let mut count = 0;
        loop {
            if let Some((number, chunk)) = queue.take(worker) {
                assert_eq!(chunk, number + FIRST);
                if with_clock {
                    let is_next = || self.placed.load(Ordering::Acquire) == number;
                    parker.wait_until(Wait::Shared, is_next);
                    self.placed.store(number + 1, Ordering::Release);
                    queue.wake_worker_of(number + 1);
                }
                parker.wait_until(Wait::Shared, || queue.is_next(number));
                if !queue.is_stopped() {
                    let delivered = self.delivered.try_lock();
                    delivered.expect("another worker's turn").push(chunk);
                }
                queue.set_delivered();
                count += 1;
            } else if queue.is_exhausted() {
                return count;
            } else if queue.become_idle(worker) {
                parker.wait_until(Wait::Shared, || queue.is_called(worker));
            }
        }
    }
}

#[test]
fn queue_delivers_in_order() {
    static BOTH_DELIVERED: Sometimes = Sometimes::new();
    check("queue_delivers_in_order", Preemptions::AtMost(2), || {
        let (run, threads) = Run::start(2, false);
        for chunk in FIRST..FIRST + 2 {
            assert!(run.queue.push(chunk));
        }
        run.queue.end();
        let counts: Vec<usize> = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect();
        BOTH_DELIVERED.note(counts == [1, 1]);
        assert_eq!(*run.delivered.lock().unwrap(), [FIRST, FIRST + 1]);
    });
    BOTH_DELIVERED.assert();
}

#[test]
fn queue_calls_an_idle_worker() {
    // The second chunk comes once the first is delivered, so no busy worker picks it up by chance,
    // and the queue does not end: only the call of an idle worker delivers it.
    check("queue_calls_an_idle_worker", Preemptions::AtMost(2), || {
        let (run, threads) = Run::start(2, false);
        for chunk in FIRST..FIRST + 2 {
            assert!(run.queue.push(chunk));
            while !run.queue.is_next(chunk - FIRST + 1) {
                thread::yield_now();
            }
        }
        run.queue.end();
        let counts = threads.into_iter().map(|thread| thread.join().unwrap());
        assert_eq!(counts.sum::<usize>(), 2);
        assert_eq!(*run.delivered.lock().unwrap(), [FIRST, FIRST + 1]);
    });
}

#[test]
fn queue_passes_the_clock_on() {
    check("queue_passes_the_clock_on", Preemptions::AtMost(1), || {
        let (run, threads) = Run::start(2, true);
        for chunk in FIRST..FIRST + 2 {
            assert!(run.queue.push(chunk));
        }
        run.queue.end();
        let counts = threads.into_iter().map(|thread| thread.join().unwrap());
        assert_eq!(counts.sum::<usize>(), 2);
        assert_eq!(*run.delivered.lock().unwrap(), [FIRST, FIRST + 1]);
    });
}

#[test]
fn queue_stop_wakes_idle() {
    static ALL: Sometimes = Sometimes::new();
    static NONE: Sometimes = Sometimes::new();
    check("queue_stop_wakes_idle", Preemptions::AtMost(2), || {
        let (run, threads) = Run::start(2, false);
        assert!(run.queue.push(FIRST));
        run.queue.stop();
        assert!(!run.queue.push(FIRST + 1));
        for thread in threads {
            thread.join().unwrap();
        }
        // What was taken is passed on, but a stop may come before its delivery.
        let delivered = run.delivered.lock().unwrap().clone();
        ALL.note(delivered == [FIRST]);
        NONE.note(delivered.is_empty());
        assert!(delivered.is_empty() || delivered == [FIRST]);
    });
    ALL.assert();
    NONE.assert();
}
