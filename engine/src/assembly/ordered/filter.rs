//! The filter that threads share in the order of tickets, and its partitions.

use std::collections::VecDeque;
use std::time::Instant;

use crossbeam_utils::CachePadded;

use super::handle::OrderedHandle;
use super::partition::OrderedPartition;
use super::turns::Turn;
use crate::assembly::loss::{ExchangeError, LossPolicy};
use crate::assembly::partition_state::{NotReplaceable, ReplaceError, lost_partitions, replace};
use crate::assembly::shutdown::ShutdownError;
use crate::assembly::status::EngineCounts;
use crate::filters::Filter;
use crate::hash::KeyHash;
use crate::memory::process::Process;
use crate::partition::{Partitioned, Partitioning};
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering, available_parallelism, check, unpoisoned};
use crate::transport::{Parker, Wait};

/// The options of an [`OrderedFilter`]; see [`OrderedFilter::builder`].
///
/// # Examples
/// ```
/// use echoless::{FingerprintSpec, LossPolicy, OrderedFilter, transport::Wait};
/// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
/// let builder = OrderedFilter::builder(halves).on_loss(LossPolicy::AsFresh).wait(Wait::Shared);
/// assert_eq!(builder.build().partitioning().count(), 2);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug)]
pub struct OrderedBuilder<F> {
    filter: Partitioned<F>,
    policy: LossPolicy,
    wait: Option<Wait>,
    saver_rest: u32,
    saver_keys: Option<u64>,
}

/// A filter for all threads whose verdicts are those of a single thread: batches apply in the order
/// of their tickets.
///
/// A thread takes a [`Ticket`](crate::Ticket) when it has its next batch, usually under the same
/// lock as the input, and passes the batch through all partitions, one after the other, each as
/// soon as the batch before it has left. So with two partitions or more, several batches are under
/// way at a time:
///
/// ```text
///   thread 0    route 0 | partition 0 | partition 1 | route 2 | partition 0 | partition 1 | ...
///   thread 1              route 1     | partition 0 | partition 1 | route 3 | ...
/// ```
///
/// The verdicts do not depend on the numbers of partitions and threads. Threads that do nothing but
/// judge need a partition each. Those that also read, parse and write need fewer, because the
/// others do that meanwhile, and a filter that cannot be divided is one partition. With one
/// partition, keys are not divided at all.
///
/// No key moves to another thread, but every core reads and writes the lines of all partitions, one
/// cache line for each key. Where a partition must stay with one core, use an
/// [`Engine`](crate::Engine). Where order does not matter, a [`SharedFilter`](crate::SharedFilter)
/// does not wait at all.
///
/// At each partition, a batch costs some transfers of cache lines between cores, so batches of
/// thousands of keys are best. A ticket that is dropped without a batch is left out; one that is
/// kept blocks all later ones.
///
/// # Examples
/// Two threads take lines from one input. They hash at the same time, and judge at different
/// partitions at the same time. The duplicates are those of a single thread.
/// ```
/// use std::sync::Mutex;
/// use echoless::{FingerprintSpec, KeyHasher, OrderedFilter, Verdicts, report_of};
/// let filter = OrderedFilter::builder(FingerprintSpec::new(1 << 20).build_partitions(2)?).build();
/// let input = Mutex::new((0..1000).chain(0..1000).collect::<Vec<u64>>().into_iter());
/// let work = || {
///     let (mut handle, mut verdicts) = (filter.handle(), Verdicts::new());
///     let mut duplicates = 0;
///     loop {
///         // The order of the tickets is that of the input: both are taken under one lock.
///         let mut lines = input.lock().unwrap();
///         let chunk: Vec<u64> = lines.by_ref().take(64).collect();
///         let ticket = handle.ticket();
///         drop(lines);
///         if chunk.is_empty() {
///             return duplicates; // drops the ticket
///         }
///         let keys: Vec<_> = chunk.iter().map(|id| KeyHasher::seeded(0).hash_u64(*id)).collect();
///         ticket.observe(&keys, &mut verdicts).unwrap();
///         duplicates += verdicts.count_duplicates();
///     }
/// };
/// let duplicates: u64 = std::thread::scope(|scope| {
///     let threads = [scope.spawn(work), scope.spawn(work)];
///     threads.into_iter().map(|thread| thread.join().unwrap()).sum()
/// });
/// assert_eq!(duplicates, 1000);
/// let halves = filter.shutdown()?;
/// assert_eq!(report_of(halves.filters()).tally.observed, Some(2000));
/// // The filter is gone.
/// assert_eq!(filter.shutdown().unwrap_err().to_string(), "it was shut down before");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OrderedFilter<F> {
    shared: Arc<OrderedState<F>>,
}

/// What the filter and its handles share.
#[derive(Debug)]
pub(super) struct OrderedState<F> {
    pub(super) partitioning: Partitioning,
    pub(super) partitions: Vec<OrderedPartition<F>>,
    pub(super) policy: LossPolicy,
    pub(super) wait: Wait,
    /// The number of the next ticket. Padded: the other fields are only read.
    tickets: CachePadded<AtomicU64>,
    /// A thread saves the filter.
    pub(super) is_saved: AtomicBool,
    /// For how many times as long as it has written a block that thread sleeps.
    pub(super) saver_rest: u32,
    /// The most keys that are recorded for that thread.
    pub(super) saver_keys: u64,
    /// The process whose threads take turns.
    process: Process,
}

impl<F> OrderedState<F> {
    /// # Errors
    /// [`ExchangeError::Forked`] if this process is a fork of the one that built the filter.
    pub(super) fn check_process(&self) -> Result<(), ExchangeError> {
        if self.process.is_current() {
            Ok(())
        } else {
            Err(ExchangeError::Forked)
        }
    }
}

impl<F: Filter> OrderedFilter<F> {
    /// A builder of an ordered filter over the partitions of `filter`.
    #[must_use]
    pub fn builder(filter: Partitioned<F>) -> OrderedBuilder<F> {
        OrderedBuilder {
            filter,
            policy: LossPolicy::default(),
            wait: None,
            saver_rest: default_saver_rest(),
            saver_keys: None,
        }
    }

    /// A handle for a thread. It keeps the filter alive.
    #[must_use]
    pub fn handle(&self) -> OrderedHandle<F> {
        OrderedHandle::new(Arc::clone(&self.shared))
    }

    /// Waits for the batches of all tickets that were taken before, and returns the filter with its
    /// counters. Batches of later tickets fail with
    /// [`Disconnected`](crate::ExchangeError::Disconnected). A thread that holds a
    /// [`Ticket`](crate::Ticket) while it calls this would wait forever.
    ///
    /// # Errors
    /// [`ShutdownError`] if partitions are lost and were not replaced, with the surviving ones; or
    /// if the filter was shut down before, with none. In a fork of the process that built the
    /// filter, all partitions are lost.
    pub fn shutdown(&self) -> Result<Partitioned<F>, ShutdownError<F>> {
        let OrderedState {
            partitioning,
            partitions,
            wait,
            ..
        } = &*self.shared;
        let mut passage = Passage::new(&self.shared);
        let mut parker = Parker::new();
        let (mut survivors, mut lost) = (Vec::new(), Vec::new());
        for (index, partition) in partitions.iter().enumerate() {
            let turn = match passage.wait_for_turn(index, &mut parker, *wait) {
                Ok(turn) => turn,
                Err(forked) => {
                    lost.push((index, forked.to_string()));
                    continue;
                }
            };
            // Of two shutdowns, the one with the lower ticket takes all partitions.
            let Some(owned) = unpoisoned(partition.owned.lock()).take() else {
                return Err(ShutdownError::repeated());
            };
            match owned.into_filter() {
                Ok(filter) => survivors.push((index, filter)),
                Err(panic) => lost.push((index, panic)),
            }
            // Before the next partition, where this thread may block.
            drop(turn);
        }
        ShutdownError::or_whole(survivors, lost, partitioning.clone())
    }
}

impl<F> OrderedFilter<F> {
    /// The map from keys to partitions.
    #[must_use]
    pub fn partitioning(&self) -> &Partitioning {
        &self.shared.partitioning
    }

    pub(super) fn state(&self) -> &OrderedState<F> {
        &self.shared
    }

    /// Gives a lost partition a new filter. As [`Engine::replace`](crate::Engine::replace): every
    /// batch whose [`observe`](crate::Ticket::observe) is called after this is judged by the new
    /// filter, at the clock of the stream or later.
    ///
    /// # Errors
    /// [`ReplaceError`], with the filter, if there is no such partition, or it is not lost.
    pub fn replace(&self, partition: usize, filter: F) -> Result<(), ReplaceError<F>> {
        let partitions = &self.shared.partitions;
        let state = partitions
            .get(partition)
            .map(|partition| &*partition.state)
            .ok_or(NotReplaceable::NoSuchPartition);
        replace(state, partition, partitions.len(), filter)
    }

    /// The number of each partition that is lost now, and the message of the panic, in ascending
    /// order.
    #[must_use]
    pub fn lost(&self) -> Vec<(usize, String)> {
        let partitions = self.shared.partitions.iter();
        lost_partitions(partitions.map(|partition| &*partition.state))
    }

    /// What was counted so far, over all handles, while they are in use.
    /// [`Ticket::report`](crate::Ticket::report) has the report of the filter.
    #[must_use]
    pub fn counts(&self) -> EngineCounts {
        let partitions = self.shared.partitions.iter();
        partitions
            .map(|partition| partition.state.status().counts())
            .sum()
    }
}

impl<F: Filter> OrderedBuilder<F> {
    /// What happens to the keys of a partition whose filter panicked. The default is
    /// [`LossPolicy::Error`]: batches with such keys are errors, until the partition is replaced.
    #[must_use]
    pub const fn on_loss(mut self, policy: LossPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// How threads wait for their turns. The default is [`Wait::auto`] for as many threads as
    /// partitions. With more threads than that, and than cores, set [`Wait::Shared`].
    #[must_use]
    pub const fn wait(mut self, wait: Wait) -> Self {
        self.wait = Some(wait);
        self
    }

    /// How long the thread that [saves](OrderedFilter::save) the filter sleeps after each block of
    /// 1 MiB: so many times as long as it has worked on the block. With 0 it takes a whole core; a
    /// rest of 3 leaves three quarters of the core to the threads that observe, and a save takes
    /// four times as long. The time of a block beyond 4 ms is a wait for the output, and part of the
    /// rest. The default depends on the number of cores: 3 with two of them, 0 with
    /// eight or more, so that the blocks take an eighth of the machine.
    #[must_use]
    pub const fn saver_rest(mut self, times: u32) -> Self {
        self.saver_rest = times;
        self
    }

    /// The most keys that are kept in memory for a thread that [saves](OrderedFilter::save) the
    /// filter, each partition its share: keys that come while it writes a block. A key takes 8
    /// bytes, with a clock 16. When more come, because the output hangs, the save ends with
    /// [`SaveError::Keys`](crate::assembly::SaveError::Keys), and the batches go on. The default is
    /// as many as take the memory of the filter, or 64 MiB if that is more.
    #[must_use]
    pub const fn saver_keys(mut self, most: u64) -> Self {
        self.saver_keys = Some(most);
        self
    }

    /// The filter. Starts no thread.
    #[must_use]
    pub fn build(self) -> OrderedFilter<F> {
        let (partitioning, filters) = self.filter.into_parts();
        let wait = self.wait.unwrap_or_else(|| Wait::auto(filters.len()));
        let saver_keys = self.saver_keys.unwrap_or_else(|| {
            let memory: u64 = filters.iter().map(Filter::memory_bytes).sum();
            LEAST_SAVER_KEYS.max(memory / size_of::<KeyHash>() as u64)
        });
        let partitions = filters.into_iter().map(OrderedPartition::new).collect();
        OrderedFilter {
            shared: Arc::new(OrderedState {
                partitioning,
                partitions,
                policy: self.policy,
                wait,
                tickets: CachePadded::new(AtomicU64::new(0)),
                is_saved: AtomicBool::new(false),
                saver_rest: self.saver_rest,
                saver_keys,
                process: Process::current(),
            }),
        }
    }
}

/// The default of a small filter: 64 MiB, half a second of the fastest streams.
const LEAST_SAVER_KEYS: u64 = 1 << 23;

/// An eighth of the time of all cores is for the saver.
fn default_saver_rest() -> u32 {
    let cores = available_parallelism().map_or(1, |cores| cores.get() as u32);
    8_u32.div_ceil(cores) - 1
}

/// The turns of one ticket at all partitions. Those that were not taken when this is dropped, also
/// by a panic, are left out.
#[derive(Debug)]
pub(super) struct Passage<'a, F> {
    shared: &'a OrderedState<F>,
    ticket: u64,
    /// The number of partitions whose turn was taken.
    passed: usize,
    /// The turns that were taken and are kept, those of the last partitions of `passed`.
    kept: VecDeque<Turn<'a>>,
}

impl<'a, F> Passage<'a, F> {
    /// With the next ticket.
    pub(super) fn new(shared: &'a OrderedState<F>) -> Self {
        Self {
            shared,
            // Relaxed: tickets order nothing but batches. Where their order is to be that of an
            // input, the caller orders the calls.
            ticket: shared.tickets.fetch_add(1, Ordering::Relaxed),
            passed: 0,
            kept: VecDeque::new(),
        }
    }

    /// The turn at a partition, which may be kept. Blocks until the batches of all lower tickets
    /// have left a partition. The partitions must be passed in their order.
    ///
    /// # Errors
    /// In a fork, where the threads with lower tickets are not.
    pub(super) fn wait_for_turn(
        &mut self,
        partition: usize,
        parker: &mut Parker,
        wait: Wait,
    ) -> Result<Turn<'a>, ExchangeError> {
        self.shared.check_process()?;
        check!(
            partition + self.kept.len() == self.passed,
            "the partitions in their order"
        );
        if let Some(kept) = self.kept.pop_front() {
            return Ok(kept);
        }
        self.take_turn(None, parker, wait)
    }

    /// Takes the turns at all partitions, and keeps them until this is dropped or
    /// [`wait_for_turn`](Self::wait_for_turn) returns them.
    ///
    /// # Errors
    /// As `wait_for_turn`.
    pub(super) fn keep_turns(
        &mut self,
        parker: &mut Parker,
        wait: Wait,
    ) -> Result<(), ExchangeError> {
        self.shared.check_process()?;
        while self.passed < self.shared.partitions.len() {
            let turn = self.take_turn(None, parker, wait)?;
            self.kept.push_back(turn);
        }
        Ok(())
    }

    /// Takes the turn at the first partition, and keeps it.
    ///
    /// # Errors
    /// As `wait_for_turn`, or [`ExchangeError::TimedOut`].
    pub(super) fn keep_first_turn(
        &mut self,
        deadline: Instant,
        parker: &mut Parker,
        wait: Wait,
    ) -> Result<(), ExchangeError> {
        self.shared.check_process()?;
        if self.passed == 0 {
            let turn = self.take_turn(Some(deadline), parker, wait)?;
            self.kept.push_back(turn);
        }
        Ok(())
    }

    /// The turn at the partition that comes next.
    fn take_turn(
        &mut self,
        deadline: Option<Instant>,
        parker: &mut Parker,
        wait: Wait,
    ) -> Result<Turn<'a>, ExchangeError> {
        let turns = &self.shared.partitions[self.passed].turns;
        let turn = turns.wait_for(self.ticket, deadline, parker, wait);
        let turn = turn.ok_or(ExchangeError::TimedOut)?;
        // From here on the turn ends by itself.
        self.passed += 1;
        Ok(turn)
    }
}

impl<F> Drop for Passage<'_, F> {
    fn drop(&mut self) {
        if self.shared.check_process().is_err() {
            // No thread waits here, and one may have held the lock of the turns.
            self.kept.drain(..).for_each(std::mem::forget);
            return;
        }
        for partition in &self.shared.partitions[self.passed..] {
            partition.turns.skip(self.ticket);
        }
    }
}
