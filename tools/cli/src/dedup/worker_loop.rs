//! The loop of a thread that passes chunks beside others, and what these threads share.
//!
//! A worker waits for several things at once: the verdicts of its oldest chunk, its turn to deliver
//! it, and the turn to fill. It goes on with the first that comes. No thread only reads, so with a
//! worker for each core no thread takes a core from another.
//!
//! A slow stream is passed by one thread: a worker that has waited for data, and is alone, takes a
//! short chunk through all stages by itself, and the others sleep.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::chunk_order::ChunkOrder;
use super::chunk_size::ChunkSize;
use super::clock::{ClockOrder, cut};
use super::delivery::Delivery;
use super::feed::{ChunkReader, Feed, StreamEnd};
use super::worker::Worker;
use crate::config::WindowConfig;
use crate::failure::Failure;
use crate::reading::Filled;
use crate::records::chunk::Chunk;
use crate::signals::Patience;

/// The bytes that a worker which is alone passes by itself each time that it has waited for data:
/// their work is less than that of waking another thread. A stream with more than that between two
/// pauses is passed by all threads, and so are many small files.
pub(super) const SHORT_BYTES: usize = 16 << 10;

/// What the workers share.
pub(super) struct Stream<'a> {
    /// Locked by the worker that has the turn to fill.
    pub(super) feed: Mutex<Feed>,
    pub(super) order: ChunkOrder,
    pub(super) timing: Option<(&'a WindowConfig, ClockOrder)>,
    pub(super) delivery: &'a Mutex<Delivery>,
    /// How the stream ended, or what ended the run first.
    pub(super) outcome: Mutex<Option<Result<StreamEnd, Failure>>>,
    /// [`SHORT_BYTES`], or less if reads are shorter.
    pub(super) short_bytes: usize,
    pub(super) size: ChunkSize,
}

impl Stream<'_> {
    /// Records the outcome of the reading. A failure of the outputs comes first.
    fn end(&self, outcome: Result<StreamEnd, Failure>) {
        lock(&self.outcome).get_or_insert(outcome);
        self.order.end();
    }

    /// Delivers the next chunk, unless an earlier one failed.
    fn deliver(&self, chunk: &mut Chunk) {
        if self.order.is_stopped() {
            return;
        }
        let delivered = lock(self.delivery).deliver(chunk);
        if let Err(failure) = delivered {
            // The remaining chunks are dropped, so this is what counts.
            *lock(&self.outcome) = Some(Err(failure));
            self.order.stop();
        }
    }
}

/// One thread: fills chunks in its turn, submits and delivers them, and serves its partition
/// meanwhile.
pub(super) struct WorkerLoop<'a, W> {
    number: usize,
    worker: W,
    stream: &'a Stream<'a>,
    reader: Option<ChunkReader>,
    /// The chunks that are submitted, with their numbers.
    submitted: VecDeque<(u64, Chunk)>,
    free: Vec<Chunk>,
    /// The last turn to fill found no data; it is left to others until something is delivered.
    found_no_data: bool,
}

impl<'a, W: Worker> WorkerLoop<'a, W> {
    pub(super) fn new(number: usize, worker: W, stream: &'a Stream<'a>) -> Self {
        Self {
            number,
            worker,
            stream,
            reader: None,
            submitted: VecDeque::new(),
            free: Vec::new(),
            found_no_data: false,
        }
    }

    /// Passes chunks until the stream ends.
    pub(super) fn pass_chunks(mut self) -> Result<(), Failure> {
        let order = &self.stream.order;
        loop {
            let (mut oldest, mut is_judged) = (None, false);
            if let Some((number, chunk)) = self.submitted.front_mut() {
                let is_next = order.is_next(*number);
                is_judged = self.worker.poll(chunk, is_next)?;
                oldest = Some(*number);
                if is_judged && is_next {
                    self.deliver_oldest();
                    continue;
                }
            }
            let may_fill = self.submitted.len() < self.stream.size.in_flight && !self.found_no_data;
            if may_fill && order.seems_free() && order.try_fill() {
                self.fill()?;
            } else if let Some(number) = oldest {
                self.worker.wait(
                    is_judged,
                    || order.is_next(number),
                    || may_fill && order.seems_free(),
                )?;
            } else if order.is_over() {
                return Ok(self.worker.finish()?);
            } else {
                if order.become_idle(self.number, self.found_no_data) {
                    self.worker.wait_until(|| order.is_called(self.number))?;
                }
                // Called, or no other worker is on the way to fill.
                self.found_no_data = false;
            }
        }
    }

    /// The turn to fill: fills a chunk, passes the turn on and submits the chunk. While this worker
    /// is alone, it passes short chunks by itself.
    fn fill(&mut self) -> Result<(), Failure> {
        let Stream { feed, order, .. } = self.stream;
        let mut feed = lock(feed);
        let mut chunk = self.free.pop().unwrap_or_default();
        let mut patience = Patience::Try;
        // What may be passed alone.
        let mut bytes_alone = self.stream.short_bytes;
        loop {
            match feed.next(&mut chunk, patience) {
                Ok(Filled::Chunk) => {}
                Ok(Filled::NotYet) => {
                    if order.give_back() {
                        drop(feed);
                        self.found_no_data = true;
                        self.recycle(chunk);
                        return Ok(());
                    }
                    patience = Patience::Wait;
                    bytes_alone = self.stream.short_bytes;
                    continue;
                }
                Ok(Filled::End) => {
                    self.stream.end(Ok(feed.end()));
                    return Ok(());
                }
                Err(failure) => {
                    self.stream.end(Err(failure));
                    return Ok(());
                }
            }
            if self.reader.is_none() {
                self.reader = feed.reader();
            }
            if chunk.filled > bytes_alone || !order.is_alone() {
                break;
            }
            bytes_alone -= chunk.filled;
            self.pass_alone(&mut chunk);
            if order.is_over() {
                return Ok(());
            }
            patience = Patience::Try;
        }
        // Before the turn is passed on: the next worker locks it at once.
        drop(feed);
        let expected = chunk.memory_bytes();
        let number = order.pass_on(self.number, expected);
        self.read_records(&mut chunk);
        let memory = chunk.memory_bytes();
        // A smaller error is not worth the lock.
        if memory > 2 * expected || memory < expected / 2 {
            order.correct_bytes(number, memory);
        }
        self.submit(number, &mut chunk)?;
        self.submitted.push_back((number, chunk));
        Ok(())
    }

    /// Passes a chunk through all stages while nothing is under way.
    fn pass_alone(&mut self, chunk: &mut Chunk) {
        self.read_records(chunk);
        match &self.stream.timing {
            Some((window, clock)) => {
                let records = clock.place_alone(window, chunk);
                cut(window, records, chunk);
            }
            // No node of a mesh gets the number.
            None => chunk.one_batch(0),
        }
        self.worker.judge_alone(chunk);
        self.stream.deliver(chunk);
    }

    /// Finds the records of a chunk, and so how many there are.
    fn read_records(&mut self, chunk: &mut Chunk) {
        if let Some(reader) = &mut self.reader {
            reader.read(chunk);
        }
        chunk.expected_records = 0;
    }

    /// Submits a chunk that is read, with a window once its clock is known.
    fn submit(&mut self, number: u64, chunk: &mut Chunk) -> Result<(), Failure> {
        if let Some((window, clock)) = &self.stream.timing {
            self.worker.wait_until(|| clock.is_next(number))?;
            let records = clock.place(number, window, chunk);
            self.stream.order.wake_worker_of(number + 1);
            cut(window, records, chunk);
        } else {
            chunk.one_batch(number);
        }
        Ok(self.worker.submit(chunk)?)
    }

    /// Delivers the oldest chunk, which is judged and the next one of the stream.
    fn deliver_oldest(&mut self) {
        if let Some((_, mut chunk)) = self.submitted.pop_front() {
            self.stream.deliver(&mut chunk);
            self.stream.order.set_delivered();
            self.found_no_data = false;
            self.recycle(chunk);
        }
    }

    /// Keeps the memory of a chunk for the next one, unless the chunk was long.
    fn recycle(&mut self, mut chunk: Chunk) {
        chunk.shrink(self.stream.size.bytes);
        self.free.push(chunk);
    }
}

/// Locks a mutex even if a holder panicked: the panic itself ends the run.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
