//! The handle of a thread, and the ticket of its next batch.

use std::time::Duration;

use super::filter::{OrderedState, Passage};
use super::partition::InTurn;
use crate::assembly::loss::{ExchangeError, LossPolicy, Unanswered};
use crate::assembly::owned::OwnedFilter;
use crate::filters::{Batch, Filter, Ticks};
use crate::report::Report;
use crate::routing::RoutedBatch;
use crate::sync::Arc;
use crate::transport::{Parker, deadline_after};
use crate::verdicts::Verdicts;

/// A thread's access to an [`OrderedFilter`](crate::OrderedFilter): the buffers for its batches.
/// Threads make one each, with [`OrderedFilter::handle`](crate::OrderedFilter::handle).
#[derive(Debug)]
pub struct OrderedHandle<F> {
    shared: Arc<OrderedState<F>>,
    buffers: Buffers,
}

/// What a thread needs to pass a batch.
#[derive(Debug)]
struct Buffers {
    parker: Parker,
    batch: RoutedBatch,
    /// Whether the last batch has passed all partitions and failed: `batch` has the verdicts that
    /// are known.
    has_partial: bool,
    /// The clock at each key of the batch, if its ticks are not in ascending order.
    clock: Vec<u64>,
}

/// The place of a batch in the order of all batches. Dropped without a batch, it is left out.
///
/// All later tickets wait until the batch of this one has passed, or it is dropped. A thread that
/// waits with a later ticket while it holds this one would wait forever.
#[derive(Debug)]
#[must_use = "a ticket that is dropped is left out"]
pub struct Ticket<'a, F> {
    passage: Passage<'a, F>,
    shared: &'a OrderedState<F>,
    buffers: &'a mut Buffers,
}

impl<F: Filter> OrderedHandle<F> {
    pub(super) fn new(shared: Arc<OrderedState<F>>) -> Self {
        Self {
            buffers: Buffers {
                parker: Parker::new(),
                batch: RoutedBatch::new(shared.partitioning.clone(), 0..shared.partitions.len()),
                has_partial: false,
                clock: Vec::new(),
            },
            shared,
        }
    }

    /// The next ticket: its batch applies after those of all tickets that were taken before, by any
    /// thread. Does not block.
    pub fn ticket(&mut self) -> Ticket<'_, F> {
        Ticket {
            passage: Passage::new(&self.shared),
            shared: &self.shared,
            buffers: &mut self.buffers,
        }
    }

    /// Takes a ticket and observes the batch with it.
    ///
    /// # Errors
    /// As [`Ticket::observe`].
    ///
    /// # Panics
    /// As [`Ticket::observe`].
    ///
    /// # Examples
    /// ```
    /// use echoless::{FingerprintSpec, KeyHasher, OrderedFilter, Verdicts};
    /// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
    /// let mut handle = OrderedFilter::builder(halves).build().handle();
    /// let keys = ["a", "b", "a"].map(|key| KeyHasher::seeded(0).hash(key));
    /// let mut verdicts = Verdicts::new();
    /// handle.observe(&keys, &mut verdicts)?;
    /// assert!(verdicts.duplicates().eq([2]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn observe<'b>(
        &mut self,
        batch: impl Into<Batch<'b>>,
        verdicts: &mut Verdicts,
    ) -> Result<(), ExchangeError> {
        self.ticket().observe(batch, verdicts)
    }

    /// What is known of the last batch of this handle, if it failed: the verdicts of the surviving
    /// partitions, which have recorded their keys if the batch was observed, and not if it was
    /// looked up ([`Ticket::contains_each`]). All other keys are [unknown](Verdicts::is_unknown):
    /// no filter has recorded them, so they can be observed again, and no policy judges them, so
    /// their bits are fresh. Returns false, with empty `verdicts`, if the last batch did not fail,
    /// or this was called before.
    ///
    /// # Examples
    /// ```
    /// use echoless::{ExchangeError, Filter, KeyHash, OrderedHandle, Verdicts};
    /// /// Observes a batch, and the keys of a lost partition again once it is replaced.
    /// fn observe_all<F: Filter>(
    ///     handle: &mut OrderedHandle<F>,
    ///     keys: &[KeyHash],
    ///     replace: impl Fn(usize),
    /// ) -> Result<Vec<bool>, ExchangeError> {
    ///     let mut verdicts = Verdicts::new();
    ///     let Err(error) = handle.observe(keys, &mut verdicts) else {
    ///         return Ok((&verdicts).into_iter().map(|verdict| verdict.is_duplicate()).collect());
    ///     };
    ///     let ExchangeError::Panicked(partition) = error else {
    ///         return Err(error);
    ///     };
    ///     handle.take_partial(&mut verdicts);
    ///     replace(partition);
    ///     let unknown: Vec<usize> = (0..keys.len()).filter(|i| verdicts.is_unknown(*i)).collect();
    ///     let rest: Vec<KeyHash> = unknown.iter().map(|index| keys[*index]).collect();
    ///     let mut all: Vec<bool> = (0..keys.len()).map(|i| verdicts.is_duplicate(i)).collect();
    ///     for (index, duplicate) in unknown.iter().zip(observe_all(handle, &rest, replace)?) {
    ///         all[*index] = duplicate;
    ///     }
    ///     Ok(all)
    /// }
    /// ```
    pub fn take_partial(&mut self, verdicts: &mut Verdicts) -> bool {
        verdicts.reset(0);
        let partial = std::mem::take(&mut self.buffers.has_partial);
        if partial {
            // The error is the caller's to handle, so no policy judges the unknown keys.
            std::mem::swap(self.buffers.batch.finish(), verdicts);
        }
        partial
    }
}

/// The latest tick of a batch, if it has any.
fn latest(ticks: Ticks<'_>) -> Option<u64> {
    match ticks {
        Ticks::Unmoved => None,
        Ticks::One(tick) => Some(tick),
        Ticks::Each(ticks) => ticks.iter().max().copied(),
    }
}

impl Buffers {
    /// Passes a batch, whose ticks are in ascending order, through all partitions.
    fn pass<F: Filter>(
        &mut self,
        shared: &OrderedState<F>,
        passage: &mut Passage<'_, F>,
        batch: Batch<'_>,
        verdicts: &mut Verdicts,
        mut in_turn: InTurn<'_, F>,
    ) -> Result<(), ExchangeError> {
        self.has_partial = false;
        let ticks = batch.ticks();
        let last = latest(ticks);
        if shared.partitions.len() == 1 {
            return self.pass_whole(shared, passage, batch, last, verdicts, in_turn);
        }
        self.batch.route(batch);
        let mut failed = None;
        for index in 0..shared.partitions.len() {
            // Not `as_deref_mut`, whose borrow would have to outlive the loop.
            let in_turn: InTurn<'_, F> = match &mut in_turn {
                Some(in_turn) => Some(&mut **in_turn),
                None => None,
            };
            let passed = self.pass_part(shared, passage, index, ticks, last, in_turn);
            failed = failed.or(passed);
        }
        self.finish(failed, shared.policy, verdicts)
    }

    /// Passes a batch through the only partition: the keys need not be divided.
    fn pass_whole<F: Filter>(
        &mut self,
        shared: &OrderedState<F>,
        passage: &mut Passage<'_, F>,
        batch: Batch<'_>,
        last: Option<u64>,
        verdicts: &mut Verdicts,
        in_turn: InTurn<'_, F>,
    ) -> Result<(), ExchangeError> {
        let keys = batch.keys();
        assert!(keys.len() < 1 << 31, "a batch of {} keys", keys.len());
        verdicts.reset(keys.len());
        let judged = match &mut passage.wait_for_turn(0, &mut self.parker, shared.wait) {
            Ok(turn) => {
                let words = verdicts.words_mut();
                shared.partitions[0].judge(0, turn, batch, last, words, in_turn)
            }
            Err(forked) => Err(Unanswered::Closed(*forked)),
        };
        if judged.is_ok() {
            verdicts.clear_tail();
            return Ok(());
        }
        verdicts.reset(0);
        self.batch.route(batch);
        let failed = self.take_outcomes(0, judged, shared.policy);
        self.finish(failed, shared.policy, verdicts)
    }

    /// Passes the keys of one partition through it, in their turn. Returns why the batch fails, if
    /// it does.
    fn pass_part<F: Filter>(
        &mut self,
        shared: &OrderedState<F>,
        passage: &mut Passage<'_, F>,
        index: usize,
        ticks: Ticks<'_>,
        last: Option<u64>,
        in_turn: InTurn<'_, F>,
    ) -> Option<ExchangeError> {
        let (batch, words) = self.batch.part(index, ticks);
        // A turn is dropped after the verdicts are taken.
        let mut turn = passage.wait_for_turn(index, &mut self.parker, shared.wait);
        let judged = match &mut turn {
            Ok(turn) => {
                let partition = &shared.partitions[index];
                partition.judge(index, turn, batch, last, words, in_turn)
            }
            Err(forked) => Err(Unanswered::Closed(*forked)),
        };
        self.take_outcomes(index, judged, shared.policy)
    }

    /// Looks up the keys of one partition in it, in their turn, which goes on if it was `kept`.
    fn look_up<F: Filter>(
        &mut self,
        shared: &OrderedState<F>,
        kept: Result<(), ExchangeError>,
        partition: usize,
        tick: Option<u64>,
    ) -> Option<ExchangeError> {
        let (batch, words) = self.batch.part(partition, Ticks::Unmoved);
        let found = kept.map_err(Unanswered::Closed).and_then(|()| {
            shared.partitions[partition].look_up(partition, tick, batch.keys(), words)
        });
        self.take_outcomes(partition, found, shared.policy)
    }

    /// Takes the verdicts of one partition, which are in the words of its part. If it has none,
    /// returns why the batch fails by the policy.
    fn take_outcomes(
        &mut self,
        partition: usize,
        judged: Result<(), Unanswered>,
        policy: LossPolicy,
    ) -> Option<ExchangeError> {
        let Err(unanswered) = judged else {
            self.batch.answer(partition);
            return None;
        };
        let has_keys = self.batch.answer_unknown(partition);
        has_keys.then(|| policy.error_of(unanswered)).flatten()
    }

    /// The verdicts of a batch that has passed all partitions.
    fn finish(
        &mut self,
        failed: Option<ExchangeError>,
        policy: LossPolicy,
        verdicts: &mut Verdicts,
    ) -> Result<(), ExchangeError> {
        // Not before: a batch that unwinds has no verdicts.
        self.has_partial = failed.is_some();
        if let Some(error) = failed {
            return Err(error);
        }
        let found = self.batch.finish();
        policy.judge(found);
        std::mem::swap(found, verdicts);
        Ok(())
    }
}

impl<F: Filter> Ticket<'_, F> {
    /// Blocks until the batches of all lower tickets have left the first partition, but not longer
    /// than `timeout`. The ticket has the turn then, and a call that uses it waits only for batches
    /// that are on their way through the other partitions.
    ///
    /// This is how a thread waits that must do something else now and then, such as handle signals.
    /// There is no time-out behind the first partition, because the batch would be observed in
    /// part.
    ///
    /// # Errors
    /// [`ExchangeError::TimedOut`]; [`Forked`](ExchangeError::Forked) in a fork of the process that
    /// built the filter. The ticket remains, in its place among the others.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use echoless::{ExchangeError, FingerprintSpec, KeyHasher, OrderedFilter, Verdicts};
    /// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
    /// let filter = OrderedFilter::builder(halves).build();
    /// let (mut one, mut two) = (filter.handle(), filter.handle());
    /// let keys = [KeyHasher::seeded(0).hash(b"call 17")];
    /// let mut verdicts = Verdicts::new();
    /// let first = one.ticket();
    /// let mut second = two.ticket();
    /// assert_eq!(second.wait(Duration::from_millis(1)), Err(ExchangeError::TimedOut));
    /// first.observe(&keys, &mut verdicts)?;
    /// while let Err(ExchangeError::TimedOut) = second.wait(Duration::from_millis(50)) {
    ///     // Handle signals.
    /// }
    /// second.observe(&keys, &mut verdicts)?;
    /// assert_eq!(verdicts.count_duplicates(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait(&mut self, timeout: Duration) -> Result<(), ExchangeError> {
        let Self {
            passage,
            shared,
            buffers,
        } = self;
        passage.keep_first_turn(deadline_after(timeout), &mut buffers.parker, shared.wait)
    }

    /// Observes the batch of this ticket: passes it through all partitions, and blocks at each
    /// until the batches of all lower tickets have passed it.
    ///
    /// The verdicts are those of the undivided filter, also at ticks: every partition judges each
    /// of its keys at the clock of the stream, the largest tick of the keys up to it, in this batch
    /// and in those of lower tickets. Afterwards the clock of every partition is at the largest
    /// tick of the batch.
    ///
    /// `verdicts` is empty after an error; [`take_partial`](OrderedHandle::take_partial) has those
    /// that are known.
    ///
    /// # Errors
    /// [`ExchangeError`] if the batch has keys of a lost partition, with
    /// [`LossPolicy::Error`](crate::LossPolicy::Error), or the filter was shut down. The other
    /// partitions have recorded their keys.
    ///
    /// # Panics
    /// If the batch has 2^31 keys or more.
    ///
    /// # Examples
    /// ```
    /// use echoless::{Batch, FilterSpec, KeyHasher, OrderedFilter, Verdicts};
    /// let spec: FilterSpec = "stamped:window=60,memory=1MiB".parse()?;
    /// let mut handle = OrderedFilter::builder(spec.build_partitions(2)?).build().handle();
    /// let key = KeyHasher::seeded(0).hash_u64(7);
    /// let mut verdicts = Verdicts::new();
    /// let batch = [key; 3];
    /// handle.ticket().observe(Batch::at_each(&batch, &[100, 160, 221]), &mut verdicts)?;
    /// assert_eq!(verdicts.to_bools(), [false, true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn observe<'b>(
        self,
        batch: impl Into<Batch<'b>>,
        verdicts: &mut Verdicts,
    ) -> Result<(), ExchangeError> {
        self.pass(batch.into(), verdicts, None)
    }

    /// As [`observe`](Self::observe), and calls `in_turn` with each partition after its keys of the
    /// batch are judged, and before those of later tickets are: with its number, and its filter at
    /// exactly this point of the stream, to copy lines of it for example. A batch without keys has
    /// a turn at every partition, too.
    ///
    /// The batches of later tickets wait for `in_turn` at this partition. Its panic unwinds to the
    /// caller; the filters stay in use, and later partitions do not get the batch. It is not called
    /// for a partition that is lost.
    ///
    /// # Errors
    /// As [`observe`](Self::observe).
    ///
    /// # Panics
    /// As [`observe`](Self::observe).
    ///
    /// # Examples
    /// ```
    /// use echoless::{FilterSpec, KeyHasher, LineFilter, OrderedFilter, Verdicts};
    /// let spec: FilterSpec = "fingerprint:fpr=1e-8,memory=1MiB".parse()?;
    /// let mut handle = OrderedFilter::builder(spec.build_line_partitions(2)?).build().handle();
    /// let keys = ["a", "b"].map(|key| KeyHasher::seeded(0).hash(key));
    /// let mut fresh = Vec::new();
    /// handle.ticket().observe_then(&keys, &mut Verdicts::new(), |partition, filter| {
    ///     fresh.push((partition, filter.progress().fresh));
    /// })?;
    /// assert_eq!(fresh.iter().map(|(_, fresh)| fresh).sum::<u64>(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn observe_then<'b>(
        self,
        batch: impl Into<Batch<'b>>,
        verdicts: &mut Verdicts,
        mut in_turn: impl FnMut(usize, &F),
    ) -> Result<(), ExchangeError> {
        self.pass(batch.into(), verdicts, Some(&mut in_turn))
    }

    fn pass(
        mut self,
        batch: Batch<'_>,
        verdicts: &mut Verdicts,
        in_turn: InTurn<'_, F>,
    ) -> Result<(), ExchangeError> {
        verdicts.reset(0);
        let Self {
            passage,
            shared,
            buffers,
        } = &mut self;
        let mut clock = std::mem::take(&mut buffers.clock);
        let ticks = match batch.ticks() {
            // A late key is judged at the clock, which keys of other partitions may have moved.
            Ticks::Each(ticks) if !ticks.is_sorted() => {
                clock.clear();
                clock.extend(ticks.iter().scan(0, |latest, tick| {
                    *latest = (*latest).max(*tick);
                    Some(*latest)
                }));
                Ticks::Each(&clock)
            }
            other => other,
        };
        let keys = batch.keys();
        let batch = match ticks {
            Ticks::Each(ticks @ [first, .., last]) if first < last => Batch::at_each(keys, ticks),
            // Most batches of a coarse clock have one tick.
            _ => latest(ticks).map_or(Batch::new(keys), |tick| Batch::at(keys, tick)),
        };
        let passed = buffers.pass(shared, passage, batch, verdicts, in_turn);
        buffers.clock = clock;
        passed
    }

    /// Whether each key would be a duplicate now, after the batches of all lower tickets; see
    /// [`Filter::contains_each`]. Records and counts nothing. If the batch has ticks, every
    /// partition moves its clock to the latest of them before.
    ///
    /// All batches of later tickets wait until this ticket is used or dropped, so nothing comes
    /// between this and [`observe`](Self::observe): a thread that writes the fresh records in
    /// between can record exactly those that it wrote. Equal keys of the batch are all fresh: write
    /// the first of them only.
    ///
    /// After an error `verdicts` is empty, and once the ticket is dropped
    /// [`take_partial`](OrderedHandle::take_partial) has those that are known.
    ///
    /// # Errors
    /// As [`observe`](Self::observe). The ticket remains.
    ///
    /// # Panics
    /// As [`observe`](Self::observe).
    ///
    /// # Examples
    /// ```
    /// use echoless::{FingerprintSpec, KeyHasher, OrderedFilter, Verdicts};
    /// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
    /// let mut handle = OrderedFilter::builder(halves).build().handle();
    /// let keys = ["a", "b"].map(|key| KeyHasher::seeded(0).hash(key));
    /// let mut verdicts = Verdicts::new();
    /// let mut ticket = handle.ticket();
    /// ticket.contains_each(&keys, &mut verdicts)?;
    /// assert_eq!(verdicts.count_duplicates(), 0);
    /// // The record of the second key was not written.
    /// ticket.observe(&keys[..1], &mut verdicts)?;
    /// handle.ticket().contains_each(&keys, &mut verdicts)?;
    /// assert_eq!(verdicts.to_bools(), [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_each<'b>(
        &mut self,
        batch: impl Into<Batch<'b>>,
        verdicts: &mut Verdicts,
    ) -> Result<(), ExchangeError> {
        let batch = batch.into();
        verdicts.reset(0);
        let Self {
            passage,
            shared,
            buffers,
        } = self;
        buffers.has_partial = false;
        buffers.batch.route(Batch::new(batch.keys()));
        let kept = passage.keep_turns(&mut buffers.parker, shared.wait);
        let (tick, mut failed) = (latest(batch.ticks()), None);
        for partition in 0..shared.partitions.len() {
            let found = buffers.look_up(shared, kept, partition, tick);
            failed = failed.or(found);
        }
        buffers.finish(failed, shared.policy, verdicts)
    }

    /// Calls `visit` with each of the first `count` partitions, in the turn of this ticket.
    ///
    /// # Errors
    /// That of `visit`, or that the filter was shut down, or of a fork.
    pub(super) fn visit<E: From<ExchangeError>>(
        mut self,
        count: usize,
        mut visit: impl FnMut(usize, &mut OwnedFilter<F>) -> Result<(), E>,
    ) -> Result<(), E> {
        for index in 0..count {
            let parker = &mut self.buffers.parker;
            let turn = (self.passage).wait_for_turn(index, parker, self.shared.wait)?;
            self.shared.partitions[index].visit(index, |owned| visit(index, owned))?;
            // Before the next partition, where this thread may block.
            drop(turn);
        }
        Ok(())
    }

    /// The [report](crate::report_of) of the filter, after the batches of all lower tickets and
    /// before those of all higher ones. Each partition is counted in its turn, which may read all
    /// of its memory.
    ///
    /// # Errors
    /// [`ExchangeError`] if a partition is lost, with every [`LossPolicy`](crate::LossPolicy), or
    /// the filter was shut down.
    pub fn report(self) -> Result<Report, ExchangeError> {
        let count = self.shared.partitions.len();
        let (mut tallies, mut report) = (Vec::with_capacity(count), None);
        self.visit(count, |index, owned| {
            let filter = owned.present().ok_or(ExchangeError::Panicked(index))?;
            tallies.push(filter.tally());
            if tallies.len() == count {
                report = Some(filter.report_on(tallies.drain(..).sum()));
            }
            Ok::<_, ExchangeError>(())
        })?;
        report.ok_or(ExchangeError::Disconnected(0))
    }
}
