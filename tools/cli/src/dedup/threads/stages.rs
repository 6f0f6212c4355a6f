//! What the workers of `dedup` do with a chunk: fill it from the inputs, read its records, place
//! them on the clock of a window, submit their keys to the filter, and deliver it to the outputs.
//! The [loop](super::worker_loop) decides when.

use std::sync::{Mutex, MutexGuard};

use super::chunk_order::ChunkOrder;
use super::worker::Worker;
use super::worker_loop::{FillOutcome, Limits, Stages, WorkerLoop};
use crate::config::WindowConfig;
use crate::dedup::clock::{ClockOrder, cut};
use crate::dedup::delivery::Delivery;
use crate::dedup::feed::{ChunkReader, Feed, StreamEnd};
use crate::failure::Failure;
use crate::locks::lock;
use crate::reading::Filled;
use crate::records::chunk::Chunk;
use crate::signals::Patience;

/// The most bytes that a worker which is alone passes by itself at a time: their work is less than
/// that of waking another thread.
pub(super) const SHORT_BYTES: usize = 16 << 10;

/// The inputs, filter and outputs that all workers share.
pub(super) struct SharedRun<'a> {
    /// Locked by the worker that has the turn to fill.
    pub(super) feed: Mutex<Feed>,
    pub(super) order: ChunkOrder,
    pub(super) timing: Option<(&'a WindowConfig, ClockOrder)>,
    pub(super) delivery: &'a Mutex<Delivery>,
    /// How the stream ended, or what ended the run first.
    pub(super) outcome: Mutex<Option<Result<StreamEnd, Failure>>>,
    /// The length of a chunk without a long record.
    pub(super) chunk_bytes: usize,
    pub(super) limits: Limits,
}

impl SharedRun<'_> {
    /// Passes chunks on this thread, beside those of the other workers, until the stream ends.
    pub(super) fn pass_chunks(&self, number: usize, worker: impl Worker) -> Result<(), Failure> {
        let stages = WorkerStages {
            worker,
            run: self,
            reader: None,
        };
        WorkerLoop::new(number, stages, &self.order, self.limits).pass_chunks()
    }
}

/// The stages of one thread.
struct WorkerStages<'a, W> {
    worker: W,
    run: &'a SharedRun<'a>,
    /// None until the first chunk is filled.
    reader: Option<ChunkReader>,
}

impl<'a, W: Worker> Stages for WorkerStages<'a, W> {
    type Source = MutexGuard<'a, Feed>;
    type Chunk = Chunk;
    type Failure = Failure;

    fn source(&mut self) -> Self::Source {
        lock(&self.run.feed)
    }

    fn fill(&mut self, feed: &mut Self::Source, chunk: &mut Chunk, may_wait: bool) -> FillOutcome {
        let patience = if may_wait {
            Patience::Wait
        } else {
            Patience::Try
        };
        let outcome = match feed.next(chunk, patience) {
            Ok(Filled::Chunk) => {
                if self.reader.is_none() {
                    self.reader = feed.reader();
                }
                return FillOutcome::Bytes(chunk.filled);
            }
            Ok(Filled::NotYet) => return FillOutcome::NotYet,
            Ok(Filled::End) => Ok(feed.end()),
            Err(failure) => Err(failure),
        };
        // A failure of the outputs comes first.
        lock(&self.run.outcome).get_or_insert(outcome);
        FillOutcome::End
    }

    fn read(&mut self, chunk: &mut Chunk) {
        if let Some(reader) = &mut self.reader {
            reader.read(chunk);
        }
        chunk.expected_records = 0;
    }

    fn memory_bytes(&self, chunk: &Chunk) -> usize {
        chunk.memory_bytes()
    }

    fn submit(
        &mut self,
        number: u64,
        chunk: &mut Chunk,
        clock_moved: impl FnOnce(),
    ) -> Result<(), Failure> {
        if let Some((window, clock)) = &self.run.timing {
            self.worker.wait_until(|| clock.is_next(number))?;
            let records = clock.place(number, window, chunk);
            clock_moved();
            cut(window, records, chunk);
        } else {
            chunk.one_batch(number);
        }
        Ok(self.worker.submit(chunk)?)
    }

    fn poll(&mut self, chunk: &mut Chunk, is_next: bool) -> Result<bool, Failure> {
        Ok(self.worker.poll(chunk, is_next)?)
    }

    fn wait(
        &mut self,
        is_judged: bool,
        is_next: impl FnMut() -> bool,
        other: impl FnMut() -> bool,
    ) -> Result<(), Failure> {
        Ok(self.worker.wait(is_judged, is_next, other)?)
    }

    fn wait_until(&mut self, condition: impl FnMut() -> bool) -> Result<(), Failure> {
        Ok(self.worker.wait_until(condition)?)
    }

    fn process_alone(&mut self, chunk: &mut Chunk) {
        self.read(chunk);
        match &self.run.timing {
            Some((window, clock)) => {
                let records = clock.place_alone(window, chunk);
                cut(window, records, chunk);
            }
            // No node of a mesh gets the number.
            None => chunk.one_batch(0),
        }
        self.worker.judge_alone(chunk);
    }

    fn deliver(&mut self, chunk: &mut Chunk) -> bool {
        let delivered = lock(self.run.delivery).deliver(chunk);
        if let Err(failure) = delivered {
            // The remaining chunks are dropped, so this is what counts.
            *lock(&self.run.outcome) = Some(Err(failure));
            return false;
        }
        true
    }

    fn shrink(&mut self, chunk: &mut Chunk) {
        chunk.shrink(self.run.chunk_bytes);
    }

    fn finish(self) -> Result<(), Failure> {
        Ok(self.worker.finish()?)
    }
}
