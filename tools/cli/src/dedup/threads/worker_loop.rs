//! The loop of a thread that passes chunks beside others: what it does next, and when it waits.
//!
//! ```text
//!          worker: fill 7 | read, judge 7 | deliver 7 ...
//! input -> worker: ...... fill 8 | read, judge 8 | ......... deliver 8 -> outputs
//!          worker: ............. fill 9 | read, judge 9 | ........... deliver 9
//! ```
//!
//! A worker waits for its turn to deliver its oldest chunk and for the turn to fill, and goes on
//! with the first that comes. No thread only reads, so with a worker for each core no thread takes
//! a core from another.
//!
//! **No wait goes round in a circle.** While it judges a chunk, a worker waits only for the workers
//! of chunks that were filled before, to judge them; they are on their way to that, because a
//! worker neither fills nor delivers between filling a chunk and judging it. Waiting to deliver, it
//! waits for chunks that are judged, or will be.
//!
//! A slow stream is passed by one thread: a worker that has waited for data, and is alone, takes a
//! short chunk through all stages by itself, and the others stay parked. The only worker of a run
//! is always alone.
//!
//! What is done with a chunk is up to the [`Stages`]. This file uses nothing of the command but the
//! [order of the chunks](super::chunk_order), so that the model checks can include both: they run
//! this loop with stages of their own.

use std::collections::VecDeque;

use super::chunk_order::ChunkOrder;

/// What a worker does with chunks, and how it waits for other threads.
pub(super) trait Stages {
    /// Where chunks are filled from.
    type Source;
    type Chunk: Default;
    type Failure;

    /// The source, which is this worker's while it has the turn to fill.
    fn source(&mut self) -> Self::Source;

    /// Fills the chunk. If there is no data yet, it waits for some only if it `may_wait`. Returns
    /// [`End`](FillOutcome::End) also if the stream fails, after recording why.
    fn fill(
        &mut self,
        source: &mut Self::Source,
        chunk: &mut Self::Chunk,
        may_wait: bool,
    ) -> FillOutcome;

    /// Takes a place in the order of the filter for a filled chunk, passes the turn to fill
    /// [on](FilledChunk::pass_on), reads the records and judges their keys in that order. It waits
    /// for nothing but the same steps of the chunks before.
    fn judge(
        &mut self,
        chunk: &mut Self::Chunk,
        filled: &mut FilledChunk<'_>,
    ) -> Result<(), Self::Failure>;

    /// Delivers the next chunk. Returns false if that failed, after recording the failure. No later
    /// chunk is delivered then.
    fn deliver(&mut self, chunk: &mut Self::Chunk) -> bool;

    /// Frees what the chunk need not keep until it is filled again.
    fn shrink(&mut self, chunk: &mut Self::Chunk);

    /// Waits until the condition holds. The thread that makes it true wakes this one afterwards.
    fn wait_until(&mut self, condition: impl FnMut() -> bool);
}

/// How filling a chunk ended. Like `Filled` of the readers, which the model checks cannot include,
/// with the length of the chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FillOutcome {
    /// The chunk has so many bytes.
    Bytes(usize),
    /// There is no data yet, and the worker must not wait for it.
    NotYet,
    /// The stream has ended.
    End,
}

/// A filled chunk on its way to being judged: what other workers do meanwhile.
pub(super) struct FilledChunk<'a> {
    order: &'a ChunkOrder,
    worker: usize,
    /// This worker passes the chunk by itself, and keeps the turn to fill.
    is_alone: bool,
    /// The number of the chunk and the memory that was expected, once the turn is passed on.
    passed_on: Option<(u64, usize)>,
}

impl FilledChunk<'_> {
    /// Passes the turn to fill on. The chunk takes about so many bytes of memory.
    pub(super) fn pass_on(&mut self, bytes: usize) {
        if !self.is_alone {
            self.passed_on = Some((self.order.pass_on(self.worker, bytes), bytes));
        }
    }

    /// The chunk takes this memory, now that its records are found.
    pub(super) fn correct_bytes(&self, bytes: usize) {
        // A smaller error is not worth the lock.
        if let Some((number, expected)) = self.passed_on
            && (bytes > 2 * expected || bytes < expected / 2)
        {
            self.order.correct_bytes(number, bytes);
        }
    }

    /// The number of the chunk; `None` if this worker passes it alone, while no chunk is under way.
    pub(super) fn number(&self) -> Option<u64> {
        self.passed_on.map(|(number, _)| number)
    }

    /// Wakes the worker of the next chunk, for what this chunk has passed.
    pub(super) fn wake_next(&self) {
        if let Some((number, _)) = self.passed_on {
            self.order.wake_worker_of(number + 1);
        }
    }

    /// Whether a worker has left, so that nothing need be judged any more.
    pub(super) fn is_abandoned(&self) -> bool {
        self.order.is_abandoned()
    }
}

/// The limits of one worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The most chunks that a worker has judged and not delivered.
    pub(super) in_flight: usize,
    /// The most bytes that a worker passes alone in a turn to fill; the count starts again each
    /// time that it waits for data. A stream with more than that between two pauses, or of many
    /// small files, is passed by all threads.
    pub(super) bytes_alone: usize,
    /// The worker is the only one, so it may always wait for data.
    pub(super) is_only: bool,
}

/// One thread: fills chunks in its turn, judges and delivers them.
pub(super) struct WorkerLoop<'a, S: Stages> {
    number: usize,
    stages: S,
    order: &'a ChunkOrder,
    limits: Limits,
    /// The chunks that are judged, with their numbers.
    judged: VecDeque<(u64, S::Chunk)>,
    free: Vec<S::Chunk>,
    /// The last turn to fill found no data; it is left to others until something is delivered.
    found_no_data: bool,
}

/// Ends the other workers, unless this one ends well: they would wait for its chunks.
struct EndsOthers<'a>(Option<&'a ChunkOrder>);

impl Drop for EndsOthers<'_> {
    fn drop(&mut self) {
        if let Some(order) = self.0 {
            order.abandon();
        }
    }
}

impl<'a, S: Stages> WorkerLoop<'a, S> {
    pub(super) fn new(number: usize, stages: S, order: &'a ChunkOrder, limits: Limits) -> Self {
        Self {
            number,
            stages,
            order,
            limits,
            judged: VecDeque::new(),
            free: Vec::new(),
            found_no_data: false,
        }
    }

    /// Passes chunks until the stream ends, or another worker has left. The worker must have
    /// [begun](ChunkOrder::begin). If [`Stages::judge`] fails, the other workers end, too, as they
    /// do after a panic.
    pub(super) fn pass_chunks(mut self) -> Result<(), S::Failure> {
        let mut ends_others = EndsOthers(Some(self.order));
        self.pass_all()?;
        ends_others.0 = None;
        Ok(())
    }

    fn pass_all(&mut self) -> Result<(), S::Failure> {
        let order = self.order;
        while !order.is_abandoned() {
            let oldest = self.judged.front().map(|(number, _)| *number);
            if oldest.is_some_and(|number| order.is_next(number)) {
                self.deliver_oldest();
                continue;
            }
            let may_fill = self.judged.len() < self.limits.in_flight && !self.found_no_data;
            if may_fill && order.seems_free() && order.try_fill() {
                self.fill()?;
            } else if let Some(number) = oldest {
                // Nothing need wake it for the turn to fill.
                self.stages.wait_until(|| {
                    order.is_next(number) || may_fill && order.seems_free() || order.is_abandoned()
                });
            } else if order.is_over() {
                break;
            } else {
                if order.become_idle(self.number, self.found_no_data) {
                    self.stages.wait_until(|| order.is_called(self.number));
                }
                // Called, or no other worker is on the way to fill.
                self.found_no_data = false;
            }
        }
        Ok(())
    }

    /// The turn to fill: fills a chunk, passes the turn on and judges the chunk. While this worker
    /// is alone, it passes short chunks by itself.
    fn fill(&mut self) -> Result<(), S::Failure> {
        let order = self.order;
        let mut source = self.stages.source();
        let mut chunk = self.free.pop().unwrap_or_default();
        let mut may_wait = self.limits.is_only;
        // What may be passed alone.
        let mut bytes_alone = self.limits.bytes_alone;
        loop {
            match self.stages.fill(&mut source, &mut chunk, may_wait) {
                FillOutcome::Bytes(bytes) if bytes <= bytes_alone && order.is_alone() => {
                    bytes_alone -= bytes;
                    self.judge(&mut chunk, true)?;
                    self.deliver(&mut chunk);
                    if order.is_over() {
                        return Ok(());
                    }
                    may_wait = self.limits.is_only;
                }
                FillOutcome::Bytes(_) => break,
                FillOutcome::NotYet => {
                    // Before the turn is given back: the next worker takes it at once.
                    drop(source);
                    if order.give_back() {
                        self.found_no_data = true;
                        self.recycle(chunk);
                        return Ok(());
                    }
                    source = self.stages.source();
                    may_wait = true;
                    bytes_alone = self.limits.bytes_alone;
                }
                FillOutcome::End => {
                    order.end();
                    return Ok(());
                }
            }
        }
        // Before the turn is passed on: the next worker takes it at once.
        drop(source);
        if let Some(number) = self.judge(&mut chunk, false)? {
            self.judged.push_back((number, chunk));
        }
        Ok(())
    }

    /// Judges a filled chunk. Returns its number, if it has one.
    fn judge(&mut self, chunk: &mut S::Chunk, is_alone: bool) -> Result<Option<u64>, S::Failure> {
        let mut filled = FilledChunk {
            order: self.order,
            worker: self.number,
            is_alone,
            passed_on: None,
        };
        self.stages.judge(chunk, &mut filled)?;
        Ok(filled.number())
    }

    /// Delivers the oldest chunk, which is the next one of the stream.
    fn deliver_oldest(&mut self) {
        if let Some((_, mut chunk)) = self.judged.pop_front() {
            self.deliver(&mut chunk);
            self.order.set_delivered();
            self.found_no_data = false;
            self.recycle(chunk);
        }
    }

    /// Delivers the next chunk, unless an earlier one failed: then the remaining ones are dropped.
    fn deliver(&mut self, chunk: &mut S::Chunk) {
        if !self.order.is_stopped() && !self.stages.deliver(chunk) {
            self.order.stop();
        }
    }

    /// Keeps the memory of a chunk for the next one.
    fn recycle(&mut self, mut chunk: S::Chunk) {
        self.stages.shrink(&mut chunk);
        self.free.push(chunk);
    }
}
