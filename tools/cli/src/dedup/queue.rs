//! The chunks between the feed and the workers: which worker gets one, in which order they are
//! delivered, and which worker is woken.
//!
//! Chunks are pushed, taken and delivered in the order of their numbers, so two positions cut the
//! stream, and only the chunks between them have a worker:
//!
//! ```text
//!   delivered      taken                               queued      pushed next
//!   ... 15  16  |  17: w2   18: w0   19: w2   20: w1 |  21  22  |  23 ...
//!                  next to deliver
//! ```
//!
//! A wake-up is for one worker: a new chunk calls one worker that is idle, and a delivery wakes the
//! worker of the next chunk. With many workers and a slow stream, anything else would cost a thread
//! switch of every worker for each line that arrives.
//!
//! **No chunk is left behind while a worker is idle.** A worker is idle, busy, or called: on its
//! way from idle to [`take`](ChunkQueue::take). Under the lock, if any worker is idle, there are at
//! least as many called workers as queued chunks: a worker becomes idle only while no chunk is
//! queued, a push calls one of the idle if there is one, and a called worker that takes a chunk
//! reduces both numbers. A busy worker takes a chunk before it becomes idle, so it only helps.
//!
//! **No wake-up is lost.** Every condition that a worker waits for is an atomic that another thread
//! changes under the lock, *before* it wakes the worker's doorbell: change, fence (in
//! [`Doorbell::wake`]), test whether the worker is parked. The worker parks in the opposite order:
//! parked, fence, test of the condition. So either the waker sees the worker parked, or the worker
//! sees the change. It remains that the waker must know whom to wake:
//!
//! - For a new chunk that is the worker that it has just taken off the list of idle ones. A worker
//!   enters the list under the same lock that shows it an empty queue.
//! - For a delivery, and for the clock, it is the worker that took the next chunk. If the next
//!   chunk is taken only after the lock was released, its worker finds the condition true when it
//!   first tests it: the lock orders the change before its test.

#[cfg(not(loom))]
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

// `loom-tests` includes this file as a module of its own.
#[cfg(loom)]
use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
#[cfg(loom)]
use std::sync::PoisonError;

use std::collections::VecDeque;

use echoless::transport::Doorbell;

/// The queue of chunks, and the order of their delivery.
pub(super) struct ChunkQueue<C> {
    state: Mutex<State<C>>,
    /// The number of delivered chunks, which is the number of the next one. Changed under the lock.
    delivered: AtomicU64,
    workers: Vec<WorkerState>,
}

struct State<C> {
    queued: VecDeque<C>,
    /// The worker of each chunk that is taken and not delivered, in the order of their numbers.
    taken_by: VecDeque<usize>,
    /// The workers that are idle, the one that became idle last at the end: it is called first, as
    /// it may not have parked yet, and the others can sleep on.
    idle: Vec<usize>,
    /// No chunk follows.
    ended: bool,
    /// The chunks in the queue are not taken any more.
    stopped: bool,
}

struct WorkerState {
    /// Not idle. Changed under the lock, together with `idle`.
    called: AtomicBool,
    doorbell: Doorbell,
}

impl<C> ChunkQueue<C> {
    /// An empty queue with space for `capacity` chunks, and its busy workers.
    pub(super) fn new(capacity: usize, workers: impl IntoIterator<Item = Doorbell>) -> Self {
        let worker = |doorbell| WorkerState {
            called: AtomicBool::new(true),
            doorbell,
        };
        Self {
            state: Mutex::new(State {
                queued: VecDeque::with_capacity(capacity),
                taken_by: VecDeque::with_capacity(capacity),
                idle: Vec::new(),
                ended: false,
                stopped: false,
            }),
            delivered: AtomicU64::new(0),
            workers: workers.into_iter().map(worker).collect(),
        }
    }

    /// Locks the state even if a holder panicked: the panic itself ends the run.
    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pushes the chunk with the next number, and calls one idle worker. Returns false if the
    /// queue is stopped.
    pub(super) fn push(&self, chunk: C) -> bool {
        let mut state = self.lock();
        if state.stopped {
            return false;
        }
        state.queued.push_back(chunk);
        let called = state.idle.pop();
        if let Some(worker) = called {
            self.set_called(worker);
        }
        drop(state);
        // After the lock is released: the worker needs it.
        if let Some(worker) = called {
            self.workers[worker].doorbell.wake();
        }
        true
    }

    /// No chunk follows: the workers finish once they have taken those in the queue.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        self.call_all(state);
    }

    /// The chunks in the queue are not taken any more, and later ones are rejected. Chunks that are
    /// taken are still delivered in order.
    pub(super) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        self.call_all(state);
    }

    fn call_all(&self, mut state: MutexGuard<'_, State<C>>) {
        let called = std::mem::take(&mut state.idle);
        for worker in &called {
            self.set_called(*worker);
        }
        drop(state);
        for worker in called {
            self.workers[worker].doorbell.wake();
        }
    }

    fn set_called(&self, worker: usize) {
        // Release: pairs with the Acquire in `is_called`.
        self.workers[worker].called.store(true, Ordering::Release);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Takes the next chunk, with its number, if one is queued. The worker must
    /// [deliver](Self::set_delivered) it.
    pub(super) fn take(&self, worker: usize) -> Option<(u64, C)> {
        let mut state = self.lock();
        if state.stopped {
            return None;
        }
        let chunk = state.queued.pop_front()?;
        // Relaxed: changed under the lock.
        let delivered = self.delivered.load(Ordering::Relaxed);
        let number = delivered + state.taken_by.len() as u64;
        state.taken_by.push_back(worker);
        Some((number, chunk))
    }

    /// Makes a worker without chunks idle. Returns false, with the worker still busy, if it can
    /// take a chunk now. An idle worker waits until [`is_called`](Self::is_called); at the end of
    /// the stream that holds at once.
    pub(super) fn become_idle(&self, worker: usize) -> bool {
        let mut state = self.lock();
        if state.ended || state.stopped {
            return true;
        }
        if !state.queued.is_empty() {
            return false;
        }
        // Relaxed: no other thread changes it before it finds the worker in the list.
        self.workers[worker].called.store(false, Ordering::Relaxed);
        state.idle.push(worker);
        true
    }

    /// Whether an idle worker has something to do: to take a chunk, or to finish.
    pub(super) fn is_called(&self, worker: usize) -> bool {
        // Acquire: pairs with the Release in `set_called`. What the worker does then is under the
        // lock, so this only keeps its tests in order.
        self.workers[worker].called.load(Ordering::Acquire)
    }

    /// Whether no chunk is queued and none will be.
    pub(super) fn is_exhausted(&self) -> bool {
        let state = self.lock();
        state.stopped || state.ended && state.queued.is_empty()
    }

    /// Whether all chunks before this one are delivered.
    pub(super) fn is_next(&self, number: u64) -> bool {
        // Acquire: pairs with the Release in `set_delivered`. The thread with the next chunk sees
        // the outputs and counts of the one before.
        self.delivered.load(Ordering::Acquire) == number
    }

    /// The [next](Self::is_next) chunk is delivered: wakes the worker of the one after it.
    pub(super) fn set_delivered(&self) {
        let mut state = self.lock();
        // Relaxed: only the worker whose turn it is comes here.
        let next = self.delivered.load(Ordering::Relaxed) + 1;
        // Release: pairs with the Acquire in `is_next`.
        self.delivered.store(next, Ordering::Release);
        let deliverer = state.taken_by.pop_front();
        debug_assert!(deliverer.is_some(), "a chunk that was not taken");
        let following = state.taken_by.front().copied();
        drop(state);
        if let Some(worker) = following {
            self.workers[worker].doorbell.wake();
        }
    }

    /// Wakes the worker that has taken a chunk that is not delivered yet. If no worker has taken
    /// it, the one that does sees what was changed before this call.
    pub(super) fn wake_worker_of(&self, number: u64) {
        let state = self.lock();
        // Relaxed: changed under the lock.
        let delivered = self.delivered.load(Ordering::Relaxed);
        let ahead = number.checked_sub(delivered);
        let worker = ahead.and_then(|ahead| state.taken_by.get(ahead as usize).copied());
        drop(state);
        if let Some(worker) = worker {
            self.workers[worker].doorbell.wake();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use echoless::transport::{Parker, Wait};

    use super::*;

    fn queue(workers: usize) -> ChunkQueue<u64> {
        ChunkQueue::new(8, (0..workers).map(|_| Parker::new().doorbell()))
    }

    fn called(queue: &ChunkQueue<u64>) -> Vec<usize> {
        let workers = 0..queue.workers.len();
        workers.filter(|worker| queue.is_called(*worker)).collect()
    }

    #[test]
    fn a_chunk_calls_the_worker_that_became_idle_last() {
        let queue = queue(3);
        assert_eq!(called(&queue), [0, 1, 2]);
        for worker in [1, 0, 2] {
            assert!(queue.become_idle(worker));
        }
        assert!(called(&queue).is_empty());
        assert!(queue.push(10));
        assert_eq!(called(&queue), [2]);
        assert!(queue.push(11));
        assert_eq!(called(&queue), [0, 2]);
        // A worker that was busy takes the chunk of a called one, which finds the next or none.
        assert_eq!(queue.take(0), Some((0, 10)));
        assert_eq!(queue.take(0), Some((1, 11)));
        assert_eq!(queue.take(2), None);
        assert!(queue.become_idle(2));
        assert_eq!(called(&queue), [0]);
    }

    #[test]
    fn no_worker_becomes_idle_while_a_chunk_is_queued() {
        let queue = queue(2);
        assert!(queue.push(10));
        assert!(!queue.become_idle(1));
        assert!(queue.is_called(1));
        assert_eq!(queue.take(1), Some((0, 10)));
        assert!(queue.become_idle(1));
        assert!(!queue.is_called(1));
    }

    #[test]
    fn the_end_lets_the_queue_run_empty_and_a_stop_does_not() {
        let ending = queue(2);
        assert!(ending.become_idle(1));
        assert!(ending.push(10));
        assert!(ending.push(11));
        ending.end();
        assert!(!ending.is_exhausted());
        assert_eq!(ending.take(1), Some((0, 10)));
        assert_eq!(ending.take(1), Some((1, 11)));
        assert!(ending.is_exhausted() && !ending.is_stopped());
        // Nothing to wait for.
        assert!(ending.become_idle(1) && ending.is_called(1));

        let stopping = queue(2);
        assert!(stopping.become_idle(0));
        assert!(stopping.become_idle(1));
        assert!(stopping.push(10));
        stopping.stop();
        assert_eq!(called(&stopping), [0, 1]);
        assert!(stopping.is_exhausted() && stopping.is_stopped());
        assert_eq!(stopping.take(1), None);
        assert!(!stopping.push(11));
    }

    #[test]
    fn chunks_are_delivered_in_the_order_in_which_they_were_taken() {
        let queue = queue(2);
        for chunk in 10..13 {
            assert!(queue.push(chunk));
        }
        assert_eq!(queue.take(0), Some((0, 10)));
        assert_eq!(queue.take(1), Some((1, 11)));
        assert!(queue.is_next(0) && !queue.is_next(1));
        queue.set_delivered();
        assert!(queue.is_next(1));
        // Numbers go on over what is delivered.
        assert_eq!(queue.take(0), Some((2, 12)));
        queue.set_delivered();
        queue.set_delivered();
        assert!(queue.is_next(3));
    }

    /// Workers that wait as those of a run do, with nothing but the queue to wake them: a wake-up
    /// that is lost would end in a deadlock.
    #[test]
    fn every_chunk_is_delivered_once_and_in_order() {
        for workers in [1, 2, 5] {
            let parkers: Vec<Parker> = (0..workers).map(|_| Parker::new()).collect();
            let queue = ChunkQueue::new(8, parkers.iter().map(Parker::doorbell));
            let delivered = std::sync::Mutex::new(Vec::new());
            thread::scope(|scope| {
                for (worker, mut parker) in parkers.into_iter().enumerate() {
                    let (queue, delivered) = (&queue, &delivered);
                    scope.spawn(move || {
                        loop {
                            if let Some((number, chunk)) = queue.take(worker) {
                                parker.wait_until(Wait::Shared, || queue.is_next(number));
                                delivered.lock().unwrap().push((number, chunk));
                                queue.set_delivered();
                            } else if queue.is_exhausted() {
                                break;
                            } else if queue.become_idle(worker) {
                                parker.wait_until(Wait::Shared, || queue.is_called(worker));
                            }
                        }
                    });
                }
                for chunk in 0..2000 {
                    assert!(queue.push(chunk + 7));
                    if chunk % 16 == 0 {
                        thread::yield_now();
                    }
                }
                queue.end();
            });
            let expected: Vec<(u64, u64)> = (0..2000).map(|number| (number, number + 7)).collect();
            assert_eq!(delivered.into_inner().unwrap(), expected);
        }
    }
}
