//! Whose turn it is to fill a chunk and whose to deliver one, which workers are idle, and which one
//! is woken.
//!
//! One worker at a time has the **turn to fill**: it fills a chunk, passes the turn on, and the
//! chunk gets the next number. Chunks are delivered in the order of their numbers, each by the
//! worker that filled it, so two positions cut the stream:
//!
//! ```text
//!   delivered       under way                        filled next
//!   ... 15  16  |  17: w2   18: w0   19: w2   20: w1  |  21 ...
//!                  next to deliver
//! ```
//!
//! **No worker waits for data while a chunk is under way.** That chunk may be its own, and could
//! not be delivered for as long as the producer pauses. So a worker that finds no data gives the
//! turn back, unless it is [alone](ChunkOrder::is_alone): then nothing is under way, and nothing
//! can come under way while it has the turn. It can then wait for data, and pass short chunks
//! through all stages without waking any thread. (A read of a regular file is never found to have
//! no data, and blocks for the disk.)
//!
//! **Whenever the turn is free, some worker is on its way to try for it**: one that is called, or
//! one with a chunk under way, which tries again after it has delivered it. A worker becomes idle
//! only if the turn is taken, or not all workers have begun, or another worker has a chunk under
//! way ([`become_idle`](ChunkOrder::become_idle)), and a worker that passes the turn on calls an
//! idle one, as it is busy with its chunk first.
//!
//! **A wake-up is for one worker**: the one that is called to fill, or the one that delivers next.
//! With many workers, anything else would cost a thread switch of each.
//!
//! **No wake-up is lost.** Every condition that a worker waits for is an atomic that another thread
//! changes *before* it wakes the worker's doorbell: change, fence (in [`Doorbell::wake`]), test
//! whether the worker is parked. The worker parks in the opposite order: parked, fence, test of the
//! condition. So either the waker finds the worker parked, or the worker finds the change. It
//! remains to find the right worker to wake:
//!
//! - To fill, that is the worker that was just taken off the list of idle ones. A worker enters the
//!   list under the same lock that shows it that it cannot fill.
//! - For a delivery, and for the clock, it is the worker that has the next chunk. If that chunk
//!   comes under way only after the lock was released, its worker finds the condition true when it
//!   first tests it: the change was made before or under that lock.

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

/// The order in which some workers fill and deliver the chunks of one stream.
pub(super) struct ChunkOrder {
    state: Mutex<OrderState>,
    /// The number of delivered chunks, which is the number of the next one. Changed under the lock.
    delivered: AtomicU64,
    /// [`OrderState::is_free`], to be seen without the lock.
    free: AtomicBool,
    /// A worker has left with chunks that will not be delivered.
    abandoned: AtomicBool,
    workers: Vec<WorkerState>,
}

struct OrderState {
    /// The workers that have not [begun](ChunkOrder::begin).
    starting: usize,
    /// A worker has the turn to fill.
    filling: bool,
    /// The chunks that are filled and not delivered, in the order of their numbers.
    under_way: VecDeque<UnderWay>,
    /// The memory of these chunks in bytes, and above how much of it nothing is filled.
    bytes: usize,
    most_bytes: usize,
    /// The workers that are idle, the one that became idle last at the end: it is called first, as
    /// it may not have parked yet, and the others can stay parked.
    idle: Vec<usize>,
    /// Nothing is left to fill.
    ended: bool,
    /// Nothing is filled any more, and what is under way is not written.
    stopped: bool,
}

struct UnderWay {
    worker: usize,
    bytes: usize,
}

struct WorkerState {
    /// Not idle. Changed under the lock, together with `idle`.
    called: AtomicBool,
    doorbell: Doorbell,
}

impl OrderState {
    /// Whether the turn to fill can be taken now.
    fn is_free(&self) -> bool {
        let has_room = self.bytes <= self.most_bytes || self.under_way.is_empty();
        self.starting == 0 && !self.filling && has_room && !self.is_over()
    }

    const fn is_over(&self) -> bool {
        self.ended || self.stopped
    }
}

impl ChunkOrder {
    /// The order for busy workers that have not begun. Nothing is filled while more than
    /// `most_bytes` bytes are under way.
    pub(super) fn new(most_bytes: usize, workers: impl IntoIterator<Item = Doorbell>) -> Self {
        let worker = |doorbell| WorkerState {
            called: AtomicBool::new(true),
            doorbell,
        };
        let workers: Vec<WorkerState> = workers.into_iter().map(worker).collect();
        Self {
            state: Mutex::new(OrderState {
                starting: workers.len(),
                filling: false,
                under_way: VecDeque::new(),
                bytes: 0,
                most_bytes,
                idle: Vec::new(),
                ended: false,
                stopped: false,
            }),
            delivered: AtomicU64::new(0),
            free: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            workers,
        }
    }

    /// Locks the state even if a holder panicked: the panic itself ends the run.
    fn lock(&self) -> MutexGuard<'_, OrderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change visible without the lock.
    fn publish(&self, state: &OrderState) {
        // Relaxed: a hint. A worker that acts on it takes the lock.
        self.free.store(state.is_free(), Ordering::Relaxed);
    }

    /// A worker has begun. Nothing is filled before all of them have, so no worker waits for data
    /// while another one fails to start.
    pub(super) fn begin(&self) {
        let mut state = self.lock();
        state.starting -= 1;
        self.publish(&state);
        // The last one is busy, so it tries to fill, and calls another one when it passes the turn
        // on.
    }

    /// Whether it seems that the turn to fill can be taken. No worker is woken when that changes: a
    /// worker that waits for something else, too, may miss it.
    pub(super) fn seems_free(&self) -> bool {
        // Relaxed: a hint.
        self.free.load(Ordering::Relaxed)
    }

    /// Takes the turn to fill, if it is free. The worker must [pass it on](Self::pass_on),
    /// [give it back](Self::give_back), or [end](Self::end) or [stop](Self::stop) the stream.
    pub(super) fn try_fill(&self) -> bool {
        let mut state = self.lock();
        let is_free = state.is_free();
        if is_free {
            state.filling = true;
            self.publish(&state);
        }
        is_free
    }

    /// Whether nothing is under way. While the caller has the turn to fill, nothing comes under
    /// way.
    pub(super) fn is_alone(&self) -> bool {
        self.lock().under_way.is_empty()
    }

    /// Passes the turn to fill on after a chunk of so many bytes of memory, and calls one idle
    /// worker to fill. Returns the number of the chunk; the worker must
    /// [deliver](Self::set_delivered) it.
    pub(super) fn pass_on(&self, worker: usize, bytes: usize) -> u64 {
        let mut state = self.lock();
        debug_assert!(state.filling, "not this worker's turn");
        // Relaxed: changed under the lock.
        let delivered = self.delivered.load(Ordering::Relaxed);
        let number = delivered + state.under_way.len() as u64;
        state.under_way.push_back(UnderWay { worker, bytes });
        state.bytes += bytes;
        state.filling = false;
        self.publish(&state);
        let called = if state.is_free() {
            state.idle.pop()
        } else {
            None
        };
        if let Some(worker) = called {
            self.set_called(worker);
        }
        drop(state);
        // After the lock is released: the worker needs it.
        if let Some(worker) = called {
            self.workers[worker].doorbell.wake();
        }
        number
    }

    /// Gives the turn to fill back, because there is no data yet. Returns false, and the caller
    /// keeps the turn, if nothing is under way: then it is the one to wait for data.
    pub(super) fn give_back(&self) -> bool {
        let mut state = self.lock();
        debug_assert!(state.filling, "not this worker's turn");
        if state.under_way.is_empty() {
            return false;
        }
        state.filling = false;
        self.publish(&state);
        true
    }

    /// A chunk under way takes this memory, not what was expected.
    pub(super) fn correct_bytes(&self, number: u64, bytes: usize) {
        let mut state = self.lock();
        // Relaxed: changed under the lock.
        let ahead = number - self.delivered.load(Ordering::Relaxed);
        if let Some(chunk) = state.under_way.get_mut(ahead as usize) {
            let expected = std::mem::replace(&mut chunk.bytes, bytes);
            state.bytes = state.bytes - expected + bytes;
        }
        self.publish(&state);
    }

    /// Makes a worker without chunks idle. Returns false, with the worker still busy, if it should
    /// [try to fill](Self::try_fill) now. `found_no_data` is true if it just did.
    ///
    /// An idle worker waits until [`is_called`](Self::is_called); at the end of the stream that
    /// holds at once.
    pub(super) fn become_idle(&self, worker: usize, found_no_data: bool) -> bool {
        let mut state = self.lock();
        if state.is_over() {
            return true;
        }
        // A worker with a chunk tries for the turn once it has delivered it.
        let is_left_to_others = found_no_data && !state.under_way.is_empty();
        if state.is_free() && !is_left_to_others {
            return false;
        }
        // Relaxed: no other thread changes it before it finds the worker in the list.
        self.workers[worker].called.store(false, Ordering::Relaxed);
        state.idle.push(worker);
        true
    }

    /// Whether an idle worker has something to do: to fill, or to finish.
    pub(super) fn is_called(&self, worker: usize) -> bool {
        // Acquire: pairs with the Release in `set_called`. What the worker does then is under the
        // lock, so this only keeps its tests in order.
        self.workers[worker].called.load(Ordering::Acquire)
    }

    fn set_called(&self, worker: usize) {
        // Release: pairs with the Acquire in `is_called`.
        self.workers[worker].called.store(true, Ordering::Release);
    }

    /// Whether nothing is filled any more: a worker without chunks finishes.
    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over()
    }

    /// Whether what is under way is not to be written.
    pub(super) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Nothing is left to fill, as the worker whose turn it is has found: the workers finish once
    /// they have delivered what is under way.
    pub(super) fn end(&self) {
        self.finish(|state| state.ended = true);
    }

    /// Nothing is filled any more. What is under way is still delivered in order, but not written.
    pub(super) fn stop(&self) {
        self.finish(|state| state.stopped = true);
    }

    /// Ends all workers, because one has left: a chunk of it may be next.
    pub(super) fn abandon(&self) {
        self.stop();
        // Release: pairs with the Acquire in `is_abandoned`.
        self.abandoned.store(true, Ordering::Release);
        for worker in &self.workers {
            worker.doorbell.wake();
        }
    }

    /// Whether a worker has left, so that the others leave as well.
    pub(super) fn is_abandoned(&self) -> bool {
        // Acquire: pairs with the Release in `abandon`.
        self.abandoned.load(Ordering::Acquire)
    }

    fn finish(&self, set: impl FnOnce(&mut OrderState)) {
        let mut state = self.lock();
        set(&mut state);
        self.publish(&state);
        let called = std::mem::take(&mut state.idle);
        for worker in &called {
            self.set_called(*worker);
        }
        drop(state);
        for worker in called {
            self.workers[worker].doorbell.wake();
        }
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
        let delivered = state.under_way.pop_front();
        debug_assert!(delivered.is_some(), "a chunk that was not filled");
        state.bytes -= delivered.map_or(0, |chunk| chunk.bytes);
        self.publish(&state);
        let following = state.under_way.front().map(|chunk| chunk.worker);
        drop(state);
        if let Some(worker) = following {
            self.workers[worker].doorbell.wake();
        }
    }

    /// Wakes the worker that has this chunk, unless it is delivered. If no worker has it yet, the
    /// one that gets it sees what was changed before this call.
    pub(super) fn wake_worker_of(&self, number: u64) {
        let state = self.lock();
        // Relaxed: changed under the lock.
        let delivered = self.delivered.load(Ordering::Relaxed);
        let ahead = number.checked_sub(delivered);
        let chunk = ahead.and_then(|ahead| state.under_way.get(ahead as usize));
        let worker = chunk.map(|chunk| chunk.worker);
        drop(state);
        if let Some(worker) = worker {
            self.workers[worker].doorbell.wake();
        }
    }
}
