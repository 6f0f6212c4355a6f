//! The filter of a partition in the hands of its owner: catches its panics, and takes the filter
//! that replaces it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::partition_state::PartitionState;
use super::recorder::Recorder;
use super::status::Status;
use crate::filters::{Batch, Filter, Ticks};
use crate::hash::KeyHash;
use crate::sync::{Arc, contain, discard, panicking};
use crate::verdicts::Verdicts;

/// The outcome of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    /// Every key has its verdict.
    Known,
    /// The partition is lost; maybe its filter panicked in this pass.
    Lost,
}

/// The filter of a partition, or its absence.
#[derive(Debug)]
pub(super) struct OwnedFilter<F> {
    /// The first field: the loss is set before the filter is freed, which may take long, and before
    /// the rings close.
    _mark: UnwindMark,
    /// None while the partition is lost.
    filter: Option<F>,
    /// The clock of the stream: the largest tick so far, which outlives the filter. None before
    /// the first one.
    clock: Option<u64>,
    state: Arc<PartitionState<F>>,
    /// While the filter is saved. The loss of the filter ends it.
    recorder: Option<Box<Recorder>>,
}

/// Marks the partition as lost if the thread of its owner unwinds, so that peers can distinguish a
/// panic outside the filter from a drop. Must be dropped before any ring of its owner closes: a
/// peer that finds a ring closed reads the loss once.
#[derive(Debug)]
struct UnwindMark(Arc<Status>);

impl Drop for UnwindMark {
    fn drop(&mut self) {
        if panicking() {
            self.0.mark_lost();
        }
    }
}

impl<F: Filter> OwnedFilter<F> {
    pub(super) fn new(filter: F, state: Arc<PartitionState<F>>) -> Self {
        Self {
            _mark: UnwindMark(Arc::clone(state.status())),
            filter: Some(filter),
            clock: None,
            state,
            recorder: None,
        }
    }

    /// Passes keys through the filter, and moves its clock to `tick` afterwards: the last one of
    /// the whole batch, of which the partition may not own the last key. No verdict bit is set
    /// unless all are known.
    pub(super) fn judge(
        &mut self,
        batch: Batch<'_>,
        tick: Option<u64>,
        verdicts: &mut [u64],
    ) -> Judged {
        let clock = self.clock;
        let judged = self.run(tick, verdicts, |filter, verdicts| {
            filter.observe_batch(batch, verdicts);
            if let (Ticks::Each(ticks), Some(tick)) = (batch.ticks(), tick)
                && ticks.last() != Some(&tick)
            {
                filter.advance_to(tick);
            }
        });
        let (status, keys) = (self.state.status(), batch.keys().len());
        match judged {
            Judged::Known => {
                status.count_judged(keys, verdicts);
                if let Some(recorder) = &mut self.recorder {
                    recorder.record(batch, clock, verdicts);
                }
            }
            Judged::Lost => status.count_unknown(keys),
        }
        judged
    }

    /// Whether the filter has each key at a tick. Records and counts none of them. No verdict bit
    /// is set unless all are known.
    pub(super) fn look_up(
        &mut self,
        tick: Option<u64>,
        keys: &[KeyHash],
        verdicts: &mut [u64],
    ) -> Judged {
        self.run(tick, verdicts, |filter, verdicts| {
            let mut found = Verdicts::new();
            if let Some(tick) = tick {
                filter.advance_to(tick);
            }
            filter.contains_each(keys, &mut found);
            verdicts.copy_from_slice(found.words());
        })
    }

    /// What `inspect` returns for the filter, whose panic is caught as that of a pass. None if the
    /// partition is lost.
    pub(super) fn inspect<T>(&mut self, inspect: impl FnOnce(&F) -> T) -> Option<T> {
        let mut result = None;
        self.run(None, &mut [], |filter, _| result = Some(inspect(filter)));
        result
    }

    /// Calls `pass`, which moves the clock to `tick`, with the filter, and catches its panic. No
    /// verdict bit is set unless `pass` returns.
    fn run(
        &mut self,
        tick: Option<u64>,
        verdicts: &mut [u64],
        pass: impl FnOnce(&mut F, &mut [u64]),
    ) -> Judged {
        // A filter that was never used has no clock that late keys could leave as it is.
        let mut clock_of_new = None;
        if self.filter.is_none() {
            self.filter = self.state.take_restored();
            clock_of_new = self.clock;
        }
        // No tick is less than any.
        self.clock = self.clock.max(tick);
        let panic = self.filter.as_mut().map(|filter| {
            // Unwind safe: after a panic the filter is dropped and the verdict bits are cleared.
            catch_unwind(AssertUnwindSafe(|| {
                if let Some(clock) = clock_of_new {
                    filter.advance_to(clock);
                }
                pass(filter, verdicts);
            }))
        });
        match panic {
            Some(Ok(())) => return Judged::Known,
            Some(Err(panic)) => {
                self.drop_panicked(&*panic);
                discard(panic);
            }
            None => {}
        }
        verdicts.fill(0);
        Judged::Lost
    }

    /// The filter as it is. `None` if the partition is lost.
    pub(super) const fn filter(&self) -> Option<&F> {
        self.filter.as_ref()
    }

    /// As [`filter`](Self::filter), or the one that replaces it.
    pub(super) fn present(&mut self) -> Option<&F> {
        if self.filter.is_none() {
            // Takes a filter that replaces the lost one, and moves it to the clock of the stream.
            self.run(None, &mut [], |_, _| {});
        }
        self.filter.as_ref()
    }

    /// The clock of the stream; 0 before the first tick.
    pub(super) fn clock(&self) -> u64 {
        self.clock.unwrap_or(0)
    }

    /// Records what the filter observes from now on.
    pub(super) fn record(&mut self, recorder: Recorder) {
        self.recorder = Some(Box::new(recorder));
    }

    /// The recorder, unless it has ended.
    pub(super) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_deref_mut()
    }

    /// The filter, or the message of its panic if the partition is lost.
    pub(super) fn into_filter(mut self) -> Result<F, String> {
        loop {
            self.present();
            if let Some(filter) = self.filter.take() {
                return Ok(filter);
            }
            // None: a filter was left meanwhile.
            if let Some(panic) = self.state.end_lost() {
                return Err(panic);
            }
        }
    }

    /// Drops the filter, which panicked, and records the loss.
    #[cold]
    fn drop_panicked(&mut self, panic: &(dyn Any + Send)) {
        // Before the loss is known, so that its memory is free when a new filter is built. A second
        // panic, of the drop, adds nothing.
        let filter = self.filter.take();
        contain(|| drop(filter));
        self.recorder = None;
        self.state.record_panic(panic);
    }
}

impl<F> OwnedFilter<F> {
    pub(super) fn end_recording(&mut self) {
        self.recorder = None;
    }
}
