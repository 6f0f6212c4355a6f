//! A partition of an ordered filter: what a thread does with it in its turn.

use crossbeam_utils::CachePadded;

use super::turns::{Turn, Turns};
use crate::assembly::loss::{ExchangeError, Unanswered};
use crate::assembly::owned::{Judged, OwnedFilter};
use crate::assembly::partition_state::PartitionState;
use crate::assembly::status::Status;
use crate::filters::{Batch, Filter};
use crate::hash::KeyHash;
use crate::sync::{Arc, Mutex, unpoisoned};

/// What to do with the filter of a partition, by its number, before the turn of a batch ends.
pub(super) type InTurn<'a, F> = Option<&'a mut dyn FnMut(usize, &F)>;

/// A partition, with the turns of the batches at it.
#[derive(Debug)]
pub(super) struct OrderedPartition<F> {
    pub(super) turns: Turns,
    /// Locked by the thread whose turn it is, so it is free, but for a moment after a save has
    /// failed. Padded, because threads that wait read their turns beside it.
    /// None after the shutdown.
    pub(super) owned: CachePadded<Mutex<Option<OwnedFilter<F>>>>,
    pub(super) state: Arc<PartitionState<F>>,
}

impl<F: Filter> OrderedPartition<F> {
    pub(super) fn new(filter: F) -> Self {
        let state = PartitionState::new(Status::new());
        let owned = OwnedFilter::new(filter, Arc::clone(&state));
        Self {
            turns: Turns::new(),
            owned: CachePadded::new(Mutex::new(Some(owned))),
            state,
        }
    }

    /// Passes keys through the partition, in the turn of their batch, moves its clock to `tick`,
    /// the last one of the batch, and passes its filter to `in_turn`. Ends the turn; a thread that
    /// parks for the next one is woken once `turn` is dropped.
    ///
    /// # Errors
    /// Why the keys have no verdicts. `verdicts` is 0 then, as it must be before.
    pub(super) fn judge(
        &self,
        index: usize,
        turn: &mut Turn<'_>,
        batch: Batch<'_>,
        tick: Option<u64>,
        verdicts: &mut [u64],
        in_turn: InTurn<'_, F>,
    ) -> Result<(), Unanswered> {
        let judged = if batch.keys().is_empty() && tick.is_none() && in_turn.is_none() {
            Ok(())
        } else {
            self.run(index, |owned| {
                let judged = owned.judge(batch, tick, verdicts);
                if let (Some(in_turn), Some(filter)) = (in_turn, owned.filter()) {
                    in_turn(index, filter);
                }
                judged
            })
        };
        turn.end();
        judged
    }

    /// Whether the partition has each key, in the turn of their batch, which goes on.
    ///
    /// # Errors
    /// As [`judge`](Self::judge).
    pub(super) fn look_up(
        &self,
        index: usize,
        tick: Option<u64>,
        keys: &[KeyHash],
        verdicts: &mut [u64],
    ) -> Result<(), Unanswered> {
        self.run(index, |owned| owned.look_up(tick, keys, verdicts))
    }

    fn run(
        &self,
        index: usize,
        pass: impl FnOnce(&mut OwnedFilter<F>) -> Judged,
    ) -> Result<(), Unanswered> {
        let mut owned = unpoisoned(self.owned.lock());
        let Some(owned) = &mut *owned else {
            return Err(Unanswered::Closed(ExchangeError::Disconnected(index)));
        };
        match pass(owned) {
            Judged::Known => Ok(()),
            Judged::Lost => Err(Unanswered::Lost(ExchangeError::Panicked(index))),
        }
    }

    /// Calls `visit` with the filter in the hands of its owner, in a turn.
    ///
    /// # Errors
    /// That of `visit`, or that the filter was shut down.
    pub(super) fn visit<E: From<ExchangeError>>(
        &self,
        index: usize,
        visit: impl FnOnce(&mut OwnedFilter<F>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut owned = unpoisoned(self.owned.lock());
        let owned = owned.as_mut();
        visit(owned.ok_or(ExchangeError::Disconnected(index))?)
    }
}
