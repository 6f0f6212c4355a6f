//! The loop of a thread that passes chunks beside others: what it does next, and when it waits.
//!
//! A worker waits for several things at once: the verdicts of its oldest chunk, its turn to deliver
//! it, and the turn to fill. It goes on with the first that comes. No thread only reads, so with a
//! worker for each core no thread takes a core from another.
//!
//! A slow stream is passed by one thread: a worker that has waited for data, and is alone, takes a
//! short chunk through all stages by itself, and the others stay parked.
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

    /// Finds the records of a chunk.
    fn read(&mut self, chunk: &mut Self::Chunk);

    /// The memory that the chunk takes in bytes. Before it is read, that is an estimate.
    fn memory_bytes(&self, chunk: &Self::Chunk) -> usize;

    /// Submits a chunk that is read. If the stream has a clock, it waits until the clock has passed
    /// all chunks before this one, moves it, and calls `clock_moved`, which wakes the worker of the
    /// next one.
    fn submit(
        &mut self,
        number: u64,
        chunk: &mut Self::Chunk,
        clock_moved: impl FnOnce(),
    ) -> Result<(), Self::Failure>;

    /// Stores what is known of the verdicts of the oldest submitted chunk in it, and returns
    /// whether that is all. `is_next` is true if all chunks before it are delivered.
    fn poll(&mut self, chunk: &mut Self::Chunk, is_next: bool) -> Result<bool, Self::Failure>;

    /// Waits until [`poll`](Self::poll) may return more of the oldest chunk, or, if the chunk
    /// `is_judged` and poll has returned all, until `is_next` holds: then this thread is woken. It
    /// also returns if it finds that `other` holds, but nothing need wake it for that.
    fn wait(
        &mut self,
        is_judged: bool,
        is_next: impl FnMut() -> bool,
        other: impl FnMut() -> bool,
    ) -> Result<(), Self::Failure>;

    /// Waits until the condition holds. The thread that makes it true wakes this one afterwards.
    fn wait_until(&mut self, condition: impl FnMut() -> bool) -> Result<(), Self::Failure>;

    /// Takes a filled chunk through all stages before its delivery, while nothing is under way.
    fn process_alone(&mut self, chunk: &mut Self::Chunk);

    /// Delivers the next chunk. Returns false if that failed, after recording the failure. No later
    /// chunk is delivered then.
    fn deliver(&mut self, chunk: &mut Self::Chunk) -> bool;

    /// Frees what the chunk need not keep until it is filled again.
    fn shrink(&mut self, chunk: &mut Self::Chunk);

    /// Finishes the work of this thread.
    fn finish(self) -> Result<(), Self::Failure>;
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

/// The limits of one worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The most chunks that a worker has submitted and not delivered.
    pub(super) in_flight: usize,
    /// The most bytes that a worker passes alone in a turn to fill; the count starts again each
    /// time that it waits for data. A stream with more than that between two pauses, or of many
    /// small files, is passed by all threads.
    pub(super) bytes_alone: usize,
}

/// One thread: fills chunks in its turn, submits and delivers them, and serves its partition
/// meanwhile.
pub(super) struct WorkerLoop<'a, S: Stages> {
    number: usize,
    stages: S,
    order: &'a ChunkOrder,
    limits: Limits,
    /// The chunks that are submitted, with their numbers.
    submitted: VecDeque<(u64, S::Chunk)>,
    free: Vec<S::Chunk>,
    /// The last turn to fill found no data; it is left to others until something is delivered.
    found_no_data: bool,
}

impl<'a, S: Stages> WorkerLoop<'a, S> {
    pub(super) fn new(number: usize, stages: S, order: &'a ChunkOrder, limits: Limits) -> Self {
        Self {
            number,
            stages,
            order,
            limits,
            submitted: VecDeque::new(),
            free: Vec::new(),
            found_no_data: false,
        }
    }

    /// Passes chunks until the stream ends. The worker must have [begun](ChunkOrder::begin).
    pub(super) fn pass_chunks(mut self) -> Result<(), S::Failure> {
        let order = self.order;
        loop {
            let (mut oldest, mut is_judged) = (None, false);
            if let Some((number, chunk)) = self.submitted.front_mut() {
                let is_next = order.is_next(*number);
                is_judged = self.stages.poll(chunk, is_next)?;
                oldest = Some(*number);
                if is_judged && is_next {
                    self.deliver_oldest();
                    continue;
                }
            }
            let may_fill = self.submitted.len() < self.limits.in_flight && !self.found_no_data;
            if may_fill && order.seems_free() && order.try_fill() {
                self.fill()?;
            } else if let Some(number) = oldest {
                self.stages.wait(
                    is_judged,
                    || order.is_next(number),
                    || may_fill && order.seems_free(),
                )?;
            } else if order.is_over() {
                return self.stages.finish();
            } else {
                if order.become_idle(self.number, self.found_no_data) {
                    self.stages.wait_until(|| order.is_called(self.number))?;
                }
                // Called, or no other worker is on the way to fill.
                self.found_no_data = false;
            }
        }
    }

    /// The turn to fill: fills a chunk, passes the turn on and submits the chunk. While this worker
    /// is alone, it passes short chunks by itself.
    fn fill(&mut self) -> Result<(), S::Failure> {
        let order = self.order;
        let mut source = self.stages.source();
        let mut chunk = self.free.pop().unwrap_or_default();
        let mut may_wait = false;
        // What may be passed alone.
        let mut bytes_alone = self.limits.bytes_alone;
        loop {
            match self.stages.fill(&mut source, &mut chunk, may_wait) {
                FillOutcome::Bytes(bytes) if bytes <= bytes_alone && order.is_alone() => {
                    bytes_alone -= bytes;
                    self.stages.process_alone(&mut chunk);
                    self.deliver(&mut chunk);
                    if order.is_over() {
                        return Ok(());
                    }
                    may_wait = false;
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
        let expected = self.stages.memory_bytes(&chunk);
        let number = order.pass_on(self.number, expected);
        self.stages.read(&mut chunk);
        let memory = self.stages.memory_bytes(&chunk);
        // A smaller error is not worth the lock.
        if memory > 2 * expected || memory < expected / 2 {
            order.correct_bytes(number, memory);
        }
        let clock_moved = || order.wake_worker_of(number + 1);
        self.stages.submit(number, &mut chunk, clock_moved)?;
        self.submitted.push_back((number, chunk));
        Ok(())
    }

    /// Delivers the oldest chunk, which is judged and the next one of the stream.
    fn deliver_oldest(&mut self) {
        if let Some((_, mut chunk)) = self.submitted.pop_front() {
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
