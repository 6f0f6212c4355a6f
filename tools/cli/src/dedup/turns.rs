//! Whose turn it is to read and whose to deliver, which workers are idle, and which one is woken.
//!
//! One worker at a time has the **turn to read**: it fills a chunk, passes the turn on, and the
//! chunk gets the next number. Chunks are delivered in the order of their numbers, each by the
//! worker that read it, so two positions cut the stream:
//!
//! ```text
//!   delivered       under way                        read next
//!   ... 15  16  |  17: w2   18: w0   19: w2   20: w1  |  21 ...
//!                  next to deliver
//! ```
//!
//! **Nobody waits for input while a chunk is under way.** The worker that waits serves no partition,
//! and could keep others from delivering for as long as the producer pauses. So a worker that finds
//! no data gives the turn back, unless it is [alone](Turns::is_alone): then nothing is under way,
//! and nothing can come under way while it has the turn. It can then wait for data, and pass short
//! chunks through the whole filter without waking anybody.
//!
//! **Input is not left behind while a worker is idle.** A worker is idle, busy, or called: on its
//! way from idle to [`try_read`](Turns::try_read). Whenever the turn is free, some worker is on its
//! way to try for it: one that is called, or one with a chunk under way, which tries again after it
//! has delivered it. A worker becomes idle only if the turn is taken or another worker has a chunk
//! under way ([`become_idle`](Turns::become_idle)), and a worker that passes the turn on calls an
//! idle one, as it is busy with its chunk first.
//!
//! **A wake-up is for one worker**: the one that is called to read, or the one that delivers next.
//! With many workers, anything else would cost a thread switch of each.
//!
//! **No wake-up is lost.** Every condition that a worker waits for is an atomic that another thread
//! changes under the lock, *before* it wakes the worker's doorbell: change, fence (in
//! [`Doorbell::wake`]), test whether the worker is parked. The worker parks in the opposite order:
//! parked, fence, test of the condition. So either the waker sees the worker parked, or the worker
//! sees the change. It remains that the waker must know whom to wake:
//!
//! - To read, that is the worker that it has just taken off the list of idle ones. A worker enters
//!   the list under the same lock that shows it that it cannot read.
//! - For a delivery, and for the clock, it is the worker that has the next chunk. If that chunk
//!   comes under way only after the lock was released, its worker finds the condition true when it
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

/// The turns of some workers, which read and deliver the chunks of one stream.
pub(super) struct Turns {
    state: Mutex<State>,
    /// The number of delivered chunks, which is the number of the next one. Changed under the lock.
    delivered: AtomicU64,
    /// [`State::is_readable`], to be seen without the lock.
    readable: AtomicBool,
    workers: Vec<WorkerState>,
}

struct State {
    /// The workers that have not [begun](Turns::begin).
    starting: usize,
    /// A worker has the turn to read.
    reading: bool,
    /// The chunks that are read and not delivered, in the order of their numbers.
    under_way: VecDeque<UnderWay>,
    /// The memory of these chunks in bytes, and how much of it stops the reading.
    bytes: usize,
    most_bytes: usize,
    /// The workers that are idle, the one that became idle last at the end: it is called first, as
    /// it may not have parked yet, and the others can sleep on.
    idle: Vec<usize>,
    /// Nothing is left to read.
    ended: bool,
    /// Nothing is read any more, and what is under way is not written.
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

impl State {
    /// Whether the turn to read can be taken now.
    fn is_readable(&self) -> bool {
        let has_room = self.bytes <= self.most_bytes || self.under_way.is_empty();
        self.starting == 0 && !self.reading && has_room && !self.is_over()
    }

    const fn is_over(&self) -> bool {
        self.ended || self.stopped
    }
}

impl Turns {
    /// The turns of busy workers that have not begun. Nothing is read while more than `most_bytes`
    /// bytes are under way.
    pub(super) fn new(most_bytes: usize, workers: impl IntoIterator<Item = Doorbell>) -> Self {
        let worker = |doorbell| WorkerState {
            called: AtomicBool::new(true),
            doorbell,
        };
        let workers: Vec<WorkerState> = workers.into_iter().map(worker).collect();
        Self {
            state: Mutex::new(State {
                starting: workers.len(),
                reading: false,
                under_way: VecDeque::new(),
                bytes: 0,
                most_bytes,
                idle: Vec::new(),
                ended: false,
                stopped: false,
            }),
            delivered: AtomicU64::new(0),
            readable: AtomicBool::new(false),
            workers,
        }
    }

    /// Locks the state even if a holder panicked: the panic itself ends the run.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change visible without the lock.
    fn publish(&self, state: &State) {
        // Relaxed: a hint. Whoever acts on it takes the lock.
        self.readable.store(state.is_readable(), Ordering::Relaxed);
    }

    /// A worker has begun. Nothing is read before all of them have, so no worker waits for input
    /// while another one fails to start.
    pub(super) fn begin(&self) {
        let mut state = self.lock();
        state.starting -= 1;
        self.publish(&state);
        // The last one is busy, so it tries to read, and calls another one when it passes the turn
        // on.
    }

    /// Whether it seems that the turn to read can be taken.
    pub(super) fn seems_readable(&self) -> bool {
        // Relaxed: a hint.
        self.readable.load(Ordering::Relaxed)
    }

    /// Takes the turn to read, if it is free. The worker must [pass it on](Self::pass_on),
    /// [give it back](Self::give_back), or [end](Self::end) or [stop](Self::stop) the reading.
    pub(super) fn try_read(&self) -> bool {
        let mut state = self.lock();
        let free = state.is_readable();
        if free {
            state.reading = true;
            self.publish(&state);
        }
        free
    }

    /// Whether nothing is under way. While the caller has the turn to read, nothing comes under
    /// way.
    pub(super) fn is_alone(&self) -> bool {
        self.lock().under_way.is_empty()
    }

    /// Passes the turn to read on, after a chunk that takes so much memory, and calls one idle
    /// worker to read. Returns the number of the chunk; the worker must
    /// [deliver](Self::set_delivered) it.
    pub(super) fn pass_on(&self, worker: usize, bytes: usize) -> u64 {
        let mut state = self.lock();
        debug_assert!(state.reading, "not this worker's turn");
        // Relaxed: changed under the lock.
        let delivered = self.delivered.load(Ordering::Relaxed);
        let number = delivered + state.under_way.len() as u64;
        state.under_way.push_back(UnderWay { worker, bytes });
        state.bytes += bytes;
        state.reading = false;
        self.publish(&state);
        let called = if state.is_readable() {
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

    /// Gives the turn to read back, because there is no data yet. Returns false, and the caller
    /// keeps the turn, if nothing is under way: then it is the one to wait for data.
    pub(super) fn give_back(&self) -> bool {
        let mut state = self.lock();
        debug_assert!(state.reading, "not this worker's turn");
        if state.under_way.is_empty() {
            return false;
        }
        state.reading = false;
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
    /// [try to read](Self::try_read) now. `found_no_data` says that it just did.
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
        if state.is_readable() && !is_left_to_others {
            return false;
        }
        // Relaxed: no other thread changes it before it finds the worker in the list.
        self.workers[worker].called.store(false, Ordering::Relaxed);
        state.idle.push(worker);
        true
    }

    /// Whether an idle worker has something to do: to read, or to finish.
    pub(super) fn is_called(&self, worker: usize) -> bool {
        // Acquire: pairs with the Release in `set_called`. What the worker does then is under the
        // lock, so this only keeps its tests in order.
        self.workers[worker].called.load(Ordering::Acquire)
    }

    fn set_called(&self, worker: usize) {
        // Release: pairs with the Acquire in `is_called`.
        self.workers[worker].called.store(true, Ordering::Release);
    }

    /// Whether nothing is read any more: a worker without chunks finishes.
    pub(super) fn is_over(&self) -> bool {
        self.lock().is_over()
    }

    /// Whether what is under way is not to be written.
    pub(super) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Nothing is left to read, as the worker whose turn it is has found: the workers finish once
    /// they have delivered what is under way.
    pub(super) fn end(&self) {
        self.finish(|state| state.ended = true);
    }

    /// Nothing is read any more. What is under way is still passed on in order, but not written.
    pub(super) fn stop(&self) {
        self.finish(|state| state.stopped = true);
    }

    fn finish(&self, set: impl FnOnce(&mut State)) {
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
        debug_assert!(delivered.is_some(), "a chunk that was not read");
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use echoless::transport::{Parker, Wait};

    use super::*;

    const MOST_BYTES: usize = 100;

    /// The turns of workers that have begun.
    fn turns(workers: usize) -> Turns {
        let turns = Turns::new(MOST_BYTES, (0..workers).map(|_| Parker::new().doorbell()));
        for _ in 0..workers {
            assert!(!turns.try_read());
            turns.begin();
        }
        turns
    }

    fn called(turns: &Turns) -> Vec<usize> {
        let workers = 0..turns.workers.len();
        workers.filter(|worker| turns.is_called(*worker)).collect()
    }

    /// Worker 0 reads, and the others are idle.
    fn reading(workers: usize) -> Turns {
        let turns = turns(workers);
        assert!(turns.try_read());
        for worker in 1..workers {
            assert!(!turns.try_read());
            assert!(turns.become_idle(worker, false));
        }
        turns
    }

    #[test]
    fn the_turn_passes_to_the_worker_that_became_idle_last() {
        let turns = reading(3);
        assert_eq!(called(&turns), [0]);
        assert_eq!(turns.pass_on(0, 1), 0);
        assert_eq!(called(&turns), [0, 2]);
        // A busy worker takes the turn of the called one, which finds nothing to do.
        assert!(turns.try_read());
        assert!(!turns.try_read() && !turns.seems_readable());
        assert!(turns.become_idle(2, false));
        assert_eq!(called(&turns), [0]);
        assert_eq!(turns.pass_on(0, 1), 1);
        assert_eq!(called(&turns), [0, 2]);
    }

    #[test]
    fn a_worker_does_not_become_idle_while_it_can_read() {
        let turns = turns(2);
        assert!(!turns.become_idle(1, false));
        // It has just found no data: but nobody else is on the way to find more.
        assert!(!turns.become_idle(1, true));
        assert!(turns.try_read());
        assert_eq!(turns.pass_on(0, 1), 0);
        assert!(!turns.become_idle(1, false));
        // Now worker 0 is: it tries again once it has delivered its chunk.
        assert!(turns.become_idle(1, true));
    }

    #[test]
    fn only_a_worker_that_is_alone_waits_for_data() {
        let turns = reading(2);
        assert!(turns.is_alone() && !turns.give_back());
        assert_eq!(turns.pass_on(0, 1), 0);
        assert!(turns.try_read());
        assert!(!turns.is_alone() && turns.give_back());
        assert!(turns.seems_readable() && turns.try_read());
        turns.set_delivered();
        assert!(turns.is_alone() && !turns.give_back());
    }

    #[test]
    fn nothing_is_read_while_too_much_is_under_way() {
        let turns = reading(2);
        assert_eq!(turns.pass_on(0, MOST_BYTES), 0);
        assert_eq!(called(&turns), [0, 1]);
        assert!(turns.try_read());
        // One byte too many: no worker is called.
        assert!(turns.become_idle(1, false));
        assert_eq!(turns.pass_on(0, 1), 1);
        assert_eq!(called(&turns), [0]);
        assert!(!turns.seems_readable() && !turns.try_read());
        turns.set_delivered();
        assert!(turns.seems_readable() && turns.try_read());
        assert!(turns.give_back());
        // The chunk was longer than expected.
        turns.correct_bytes(1, MOST_BYTES + 1);
        assert!(!turns.seems_readable() && !turns.try_read());
        // However long it was, the next one can be read once nothing is under way.
        turns.set_delivered();
        assert!(turns.try_read());
        assert_eq!(turns.pass_on(0, MOST_BYTES), 2);
        assert!(turns.try_read());
    }

    #[test]
    fn chunks_are_delivered_in_the_order_in_which_they_were_read() {
        let turns = turns(2);
        for number in 0..2 {
            assert!(turns.try_read());
            assert_eq!(turns.pass_on(number, 1), number as u64);
        }
        assert!(turns.is_next(0) && !turns.is_next(1));
        turns.set_delivered();
        assert!(turns.is_next(1));
        // Numbers go on over what is delivered.
        assert!(turns.try_read());
        assert_eq!(turns.pass_on(0, 1), 2);
        turns.set_delivered();
        turns.set_delivered();
        assert!(turns.is_next(3));
    }

    #[test]
    fn the_end_and_a_stop_call_all() {
        for (end, stops) in [(Turns::end as fn(&Turns), false), (Turns::stop, true)] {
            let turns = reading(3);
            end(&turns);
            assert_eq!(called(&turns), [0, 1, 2]);
            assert!(turns.is_over() && turns.is_stopped() == stops);
            assert!(!turns.try_read() && !turns.seems_readable());
            // Nothing to wait for.
            assert!(turns.become_idle(1, false) && turns.is_called(1));
        }
    }

    #[test]
    fn a_worker_that_cannot_begin_stops_all() {
        let turns = Turns::new(1, (0..2).map(|_| Parker::new().doorbell()));
        turns.begin();
        assert!(turns.become_idle(0, false) && !turns.is_called(0));
        turns.stop();
        assert!(turns.is_called(0) && turns.is_over());
    }

    /// Workers that wait as those of a run do, with nothing but the turns to wake them: a wake-up
    /// that is lost would end in a deadlock.
    #[test]
    fn every_chunk_is_delivered_once_and_in_order() {
        const CHUNKS: usize = 2000;
        for workers in [1, 2, 5] {
            let parkers: Vec<Parker> = (0..workers).map(|_| Parker::new()).collect();
            let turns = Turns::new(1, parkers.iter().map(Parker::doorbell));
            let (read, delivered) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
            thread::scope(|scope| {
                for (worker, mut parker) in parkers.into_iter().enumerate() {
                    let (turns, read, delivered) = (&turns, &read, &delivered);
                    scope.spawn(move || {
                        turns.begin();
                        let mut found_no_data = false;
                        loop {
                            if !found_no_data && turns.try_read() {
                                // Relaxed: changed by the worker that has the turn.
                                let chunk = read.load(Ordering::Relaxed);
                                // The data of every third chunk is late.
                                if chunk % 3 == 0 && turns.give_back() {
                                    found_no_data = true;
                                    continue;
                                }
                                if chunk == CHUNKS {
                                    turns.end();
                                    continue;
                                }
                                read.store(chunk + 1, Ordering::Relaxed);
                                let number = turns.pass_on(worker, 1);
                                parker.wait_until(Wait::Shared, || turns.is_next(number));
                                delivered.lock().unwrap().push((number, chunk));
                                turns.set_delivered();
                            } else if turns.is_over() {
                                break;
                            } else if turns.become_idle(worker, found_no_data) {
                                parker.wait_until(Wait::Shared, || turns.is_called(worker));
                            }
                            found_no_data = false;
                        }
                    });
                }
            });
            let expected: Vec<(u64, usize)> =
                (0..CHUNKS).map(|chunk| (chunk as u64, chunk)).collect();
            assert_eq!(delivered.into_inner().unwrap(), expected);
        }
    }
}
