//! The data path on several threads, with the same output as on one.
//!
//! ```text
//!          worker: fill chunk 7 | read, hash, submit 7 | ............ | deliver 7
//! input -> worker: ........ fill chunk 8 | read, hash, submit 8 | ....... deliver 8 -> outputs
//!          worker: .................. fill chunk 9 | read, hash, submit 9 | ..........
//! ```
//!
//! Each thread has a [`Worker`]: in its [turn](super::turns) it fills the next chunk; then it finds
//! the records, hashes their keys and submits them to the filter, which handles chunks in the order
//! of their numbers. With a window, the [clock](super::clock) passes from chunk to chunk before
//! they are submitted. The thread delivers the chunk when its number is next. A node of a mesh
//! serves its partition while it waits.
//!
//! A worker waits for whatever comes first: the verdicts of its oldest chunk, its turn to deliver
//! it, or the turn to read. So a thread has nothing to do only if there is nothing to do for it, and
//! there are no more threads than cores.
//!
//! A stream that is slower than one thread is passed by one thread: a worker that is alone takes a
//! short chunk through all stages by itself, and the others sleep.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::clock::{ClockOrder, cut};
use super::delivery::Delivery;
use super::feed::{ChunkReader, Feed, StreamEnd};
use super::pinning::pin;
use super::turns::Turns;
use super::worker::Worker;
use crate::config::{DedupConfig, WindowConfig};
use crate::failure::Failure;
use crate::reading::{CHUNK_BYTES, Filled};
use crate::records::chunk::Chunk;
use crate::signals::Patience;

/// The number of chunks a thread has submitted at a time: it reads the next ones while the verdicts
/// of one are under way.
const IN_FLIGHT: usize = 6;

/// The bytes of a chunk that are so few that a worker which is alone passes it by itself: less than
/// a thread switch is worth, and less than a pipe holds, so a producer that is faster than the
/// worker soon makes longer ones.
const SHORT_BYTES: usize = 16 << 10;

/// The usual memory of a chunk, with the results of its records.
const USUAL_BYTES: usize = 4 * CHUNK_BYTES;

/// The memory that chunks may take in addition to the usual. A record of many megabytes makes its
/// chunk as long as itself, and many short ones, such as empty lines, take more memory for their
/// hashes than for themselves; this bounds how many chunks become as large as the largest. A few
/// records of a megabyte still keep all threads busy.
const SPARE_BYTES: usize = 32 << 20;

/// What the workers share.
struct Stream<'a> {
    /// Locked by the worker that has the turn to read.
    feed: Mutex<Feed>,
    turns: Turns,
    timing: Option<(&'a WindowConfig, ClockOrder)>,
    delivery: &'a Mutex<Delivery>,
    /// How the stream ended, or what ended the run first.
    outcome: Mutex<Option<Result<StreamEnd, Failure>>>,
}

impl Stream<'_> {
    /// Records the outcome of the reading. A failure of the outputs comes first.
    fn end(&self, outcome: Result<StreamEnd, Failure>) {
        lock(&self.outcome).get_or_insert(outcome);
        self.turns.end();
    }

    /// Delivers the next chunk, unless an earlier one failed.
    fn deliver(&self, chunk: &mut Chunk) {
        if self.turns.is_stopped() {
            return;
        }
        let delivered = lock(self.delivery).deliver(chunk);
        if let Err(failure) = delivered {
            // The remaining chunks are dropped, so this is what counts.
            *lock(&self.outcome) = Some(Err(failure));
            self.turns.stop();
        }
    }
}

/// Passes the whole stream through the stages, on one thread for each worker. Returns how it ended.
///
/// # Errors
/// [`Failure`] of the stream, or if the threads cannot be set up.
pub(super) fn pass<W: Worker>(
    config: &DedupConfig,
    workers: Vec<W>,
    cores: Vec<Option<usize>>,
    delivery: &Mutex<Delivery>,
) -> Result<StreamEnd, Failure> {
    // One more is being filled.
    let chunks = workers.len() * (IN_FLIGHT + 1);
    let window = config.window.as_ref();
    let stream = Stream {
        feed: Mutex::new(Feed::new(config)),
        turns: Turns::new(
            chunks * USUAL_BYTES + SPARE_BYTES,
            workers.iter().map(Worker::doorbell),
        ),
        timing: window.map(|window| (window, ClockOrder::new())),
        delivery,
        outcome: Mutex::new(None),
    };
    thread::scope(|scope| {
        let stream = &stream;
        let run = |(number, (worker, core))| {
            thread::Builder::new().spawn_scoped(scope, move || {
                // A worker that cannot begin keeps all from reading.
                pin(core).inspect_err(|_| stream.turns.stop())?;
                stream.turns.begin();
                WorkerLoop::new(number, worker, stream).pass_chunks()
            })
        };
        // If a thread cannot start, the remaining workers are dropped and the running ones see the
        // disconnect.
        let threads: Vec<_> = (workers.into_iter().zip(cores).enumerate().map(run))
            .collect::<Result<_, _>>()
            .map_err(|error| {
                stream.turns.stop();
                Failure::file("a thread")(error)
            })?;
        let ends = threads.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        first_cause(ends.collect())
    })?;
    // Without an outcome, the threads were stopped before the stream ended.
    lock(&stream.outcome)
        .take()
        .unwrap_or_else(|| Ok(StreamEnd::default()))
}

/// One thread: reads in its turn, submits and delivers what it has read, and serves its partition
/// meanwhile.
struct WorkerLoop<'a, W> {
    number: usize,
    worker: W,
    stream: &'a Stream<'a>,
    reader: Option<ChunkReader>,
    /// The chunks that are submitted, with their numbers.
    submitted: VecDeque<(u64, Chunk)>,
    free: Vec<Chunk>,
    /// The last turn to read found no data; it is left to others until something is delivered.
    found_no_data: bool,
}

impl<'a, W: Worker> WorkerLoop<'a, W> {
    fn new(number: usize, worker: W, stream: &'a Stream<'a>) -> Self {
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
    fn pass_chunks(mut self) -> Result<(), Failure> {
        let turns = &self.stream.turns;
        loop {
            let (mut oldest, mut is_judged) = (None, false);
            if let Some((number, chunk)) = self.submitted.front_mut() {
                let is_next = turns.is_next(*number);
                is_judged = self.worker.poll(chunk, is_next)?;
                oldest = Some(*number);
                if is_judged && is_next {
                    self.deliver_oldest();
                    continue;
                }
            }
            let wants_to_read = self.submitted.len() < IN_FLIGHT && !self.found_no_data;
            if wants_to_read && turns.seems_readable() && turns.try_read() {
                self.read()?;
            } else if let Some(number) = oldest {
                self.worker.wait(
                    is_judged,
                    || turns.is_next(number),
                    || wants_to_read && turns.seems_readable(),
                )?;
            } else if turns.is_over() {
                return Ok(self.worker.finish()?);
            } else {
                if turns.become_idle(self.number, self.found_no_data) {
                    self.worker.wait_until(|| turns.is_called(self.number))?;
                }
                // Called, or nobody else is on the way to read.
                self.found_no_data = false;
            }
        }
    }

    /// Takes the turn to read: fills one chunk, passes the turn on and submits the chunk. While this
    /// worker is alone, it passes short chunks by itself.
    fn read(&mut self) -> Result<(), Failure> {
        let Stream { feed, turns, .. } = self.stream;
        let mut feed = lock(feed);
        let mut chunk = self.free.pop().unwrap_or_default();
        let mut patience = Patience::Try;
        loop {
            match feed.next(&mut chunk, patience) {
                Ok(Filled::Chunk) => {}
                Ok(Filled::NotYet) if turns.give_back() => {
                    self.found_no_data = true;
                    self.free.push(chunk);
                    return Ok(());
                }
                Ok(Filled::NotYet) => {
                    patience = Patience::Wait;
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
            if chunk.filled > SHORT_BYTES || !turns.is_alone() {
                break;
            }
            // Nothing comes under way before the turn is passed on.
            patience = Patience::Wait;
            self.pass_alone(&mut chunk);
            if turns.is_over() {
                return Ok(());
            }
        }
        // Before the turn is passed on: the next reader locks it.
        drop(feed);
        let bytes = chunk.memory_bytes();
        let number = turns.pass_on(self.number, bytes);
        self.read_records(&mut chunk);
        if chunk.memory_bytes() > 2 * bytes {
            turns.correct_bytes(number, chunk.memory_bytes());
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
            // No node of a mesh sees the number.
            None => chunk.one_batch(0),
        }
        self.worker.judge_alone(chunk);
        self.stream.deliver(chunk);
    }

    fn read_records(&mut self, chunk: &mut Chunk) {
        if let Some(reader) = &mut self.reader {
            reader.read(chunk);
        }
    }

    /// Submits a chunk that is read, with a window once its clock is known.
    fn submit(&mut self, number: u64, chunk: &mut Chunk) -> Result<(), Failure> {
        if let Some((window, clock)) = &self.stream.timing {
            self.worker.wait_until(|| clock.is_next(number))?;
            let records = clock.place(number, window, chunk);
            self.stream.turns.wake_worker_of(number + 1);
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
            self.stream.turns.set_delivered();
            self.found_no_data = false;
            chunk.shrink();
            self.free.push(chunk);
        }
    }
}

/// The cause of a failure. A disconnect only follows from a failure elsewhere, so any other failure
/// is preferred.
fn first_cause(ends: Vec<Result<(), Failure>>) -> Result<(), Failure> {
    let mut cause = None;
    for failure in ends.into_iter().filter_map(Result::err) {
        if matches!(cause, None | Some(Failure::Thread(_))) {
            cause = Some(failure);
        }
    }
    cause.map_or(Ok(()), Err)
}

/// Locks a mutex even if a holder panicked: the panic itself ends the run.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_is_reported_and_not_its_consequences() {
        let peer_gone = || Failure::Thread(echoless::ExchangeError::Peer(1));
        let reported = |ends| first_cause(ends).map_err(|failure| failure.to_string());
        assert_eq!(reported(vec![Ok(()), Ok(())]), Ok(()));
        assert_eq!(
            reported(vec![Ok(()), Err(peer_gone())]),
            Err(peer_gone().to_string())
        );
        for ends in [
            vec![Err(peer_gone()), Err(Failure::ReaderGone)],
            vec![Err(Failure::ReaderGone), Err(peer_gone())],
        ] {
            assert_eq!(reported(ends), Err(Failure::ReaderGone.to_string()));
        }
    }
}
