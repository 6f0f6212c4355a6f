//! The client half: sends a batch as messages to the partitions, and collects its verdicts in the
//! order of the batch.
//!
//! Several batches can be in flight. Each counts its requests without an outcome, and is settled
//! once it was sent whole and the count is 0: every key then has a verdict or is unknown for good.
//! Batches are returned in the order of submission, so a settled batch waits for older ones:
//!
//! ```text
//!   pending:   batch 7 (2 unanswered)   batch 8 (0 unanswered)   batch 9 (being sent)
//!              oldest = 7               settled, but not oldest
//!   link 0, sent: [7, 9]      the next answer of a link belongs to the front of its queue
//!   link 1, sent: [7]
//! ```
//!
//! A port blocks in two places: for room in a ring ([`submit`](Port::submit)), and for answers
//! ([`drain`](Port::drain)). In both it pops the answers that are there: a request is sent only
//! while the ring of answers has room for its answer, so answers that are not popped block further
//! requests. It is woken once it can get further: when half of the ring is free, or a partition has
//! answered the whole of the oldest batch. After a long wait the next ones park without spinning,
//! but for one now and then, which finds out whether waits have become short.
//!
//! A task of an executor never blocks ([`task`]): a batch is accepted as a whole, and messages
//! without room are sent when the port is polled; no further batch is accepted before that. The
//! task is woken by any answer, and for room as a blocked thread.
//!
//! A loss arrives in two ways: an answer is *unknown* (the partition is lost, its owner still
//! answers), or a ring is closed (the owner is gone). The second ends the port: `failed` is
//! returned by every later call, after the batches that are complete. Once a message of a batch is
//! sent, its loss is reported with the batch and not by `submit`, so a rejected batch was not sent
//! at all.

mod exchange;
mod task;

use std::collections::VecDeque;
use std::time::Duration;

use super::link::PortLink;
use super::loss::{ExchangeError, LossPolicy};
use crate::hash::KeyHash;
use crate::partition::Partitioning;
use crate::routing::messages::Router;
use crate::transport::{Parker, Wait, deadline_after};
use crate::verdicts::Verdicts;

use exchange::{PendingBatch, Unsent};

/// Submits keys and returns their verdicts. Each ingest thread owns one: a port can be sent to a
/// thread, but not shared.
///
/// The buffers of batches are reused, so a port stops allocating after the first few batches.
///
/// **When a partition is lost** (its filter panicked), the [`LossPolicy`] of the engine decides.
/// With [`LossPolicy::Error`], the default, every batch is rejected until the partition is
/// [replaced](crate::Engine::replace), including batches without keys of that partition. The
/// verdicts of batches in flight are returned first; for a batch with keys of the lost partition,
/// [`poll`](Self::poll) and [`drain`](Self::drain) return [`ExchangeError::Panicked`] until
/// [`take_partial`](Self::take_partial) has returned what is known of it. With the other policies
/// batches go on, and [`Verdicts::is_unknown`] shows which keys the policy has judged.
///
/// **When the engine is shut down**, batches in flight come out in the same way, with every policy,
/// and every later call returns [`ExchangeError::Disconnected`]. `poll` and `drain` check only
/// batches in flight: while there are none and no call has found the engine gone yet, they return
/// `false`.
///
/// **When the process is forked**, every call in the child returns [`ExchangeError::Forked`], with
/// every policy; the parent is not affected.
///
/// # Examples
/// ```
/// use echoless::{Engine, FingerprintSpec, KeyHasher, Verdicts};
/// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
/// let (engine, mut ports) = Engine::builder(halves).ports(1).build()?;
/// let hasher = KeyHasher::seeded(0);
/// let keys = [b"a", b"b", b"a"].map(|key| hasher.hash(key));
/// let mut verdicts = Verdicts::new();
/// ports[0].observe(&keys, &mut verdicts)?;
/// assert_eq!(verdicts.words(), [0b100]);
/// # drop(ports);
/// # engine.shutdown()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Port {
    router: Router,
    links: Vec<PortLink>,
    parker: Parker,
    wait: Wait,
    /// How many waits in a row took longer than parking.
    long_waits: u32,
    policy: LossPolicy,
    /// Batches in flight: not settled, or settled and not yet returned. Oldest first.
    pending: VecDeque<PendingBatch>,
    /// The number of the front of `pending`, by this port's own count of batches.
    oldest: u64,
    free: Vec<PendingBatch>,
    /// The latest tick that was sent to every partition.
    clock: Option<u64>,
    /// The first error that ends the port. A lost partition alone does not.
    failed: Option<ExchangeError>,
    /// What is left to send of the last batch in `pending`.
    unsent: Option<Unsent>,
}

impl Port {
    pub(super) fn new(
        partitioning: Partitioning,
        links: Vec<PortLink>,
        parker: Parker,
        wait: Wait,
        policy: LossPolicy,
    ) -> Self {
        Self {
            router: Router::new(partitioning),
            links,
            parker,
            wait,
            long_waits: 0,
            policy,
            pending: VecDeque::new(),
            oldest: 0,
            free: Vec::new(),
            clock: None,
            failed: None,
            unsent: None,
        }
    }

    /// Submits a batch, whose verdicts [`poll`](Self::poll) or [`drain`](Self::drain) returns
    /// later. Blocks while the rings to the partitions are full.
    ///
    /// The number of batches in flight is unlimited, so a caller that only submits runs out of
    /// memory. With up to 4 partitions, each batch takes one bit a key for its verdict and one for
    /// each partition; with more, some 5 bytes a key and 76 for each partition. The port also holds
    /// the keys of one batch: with up to 4 partitions 8 bytes a key for each of them, so 32 with 4;
    /// with more, 8 bytes a key and 512 for each partition. Buffers keep the size of the largest
    /// batch.
    ///
    /// # Errors
    /// [`ExchangeError`] if the owner of any partition is gone, or a partition is lost and the
    /// policy is [`LossPolicy::Error`]. The batch was then not sent: no key is recorded, and the
    /// number of batches in flight is as before.
    ///
    /// # Panics
    /// If the batch has 2^31 keys or more.
    pub fn submit(&mut self, keys: &[KeyHash]) -> Result<(), ExchangeError> {
        self.submit_with(None, false, keys)
    }

    /// As [`submit`](Self::submit), at a tick: every partition moves its clock to `tick` before it
    /// judges the keys; see [`Filter::advance_to`](crate::Filter::advance_to).
    ///
    /// A stream has one clock, so the caller passes the largest event time so far. An earlier tick
    /// has no effect. With one port, verdicts equal those of the undivided filter.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    ///
    /// # Panics
    /// As [`submit`](Self::submit).
    ///
    /// # Examples
    /// ```
    /// use echoless::{Engine, FilterSpec, KeyHasher, Verdicts};
    /// let key = KeyHasher::seeded(0).hash_u64(7);
    /// let spec: FilterSpec = "stamped:window=60,memory=1MiB".parse()?;
    /// let (engine, mut ports) = Engine::builder(spec.build_partitions(2)?).build()?;
    /// let mut verdicts = Verdicts::new();
    /// for (tick, duplicates) in [(100, 0), (160, 1), (221, 0)] {
    ///     ports[0].submit_at(tick, &[key])?;
    ///     ports[0].drain(&mut verdicts)?;
    ///     assert_eq!(verdicts.count_duplicates(), duplicates);
    /// }
    /// # drop(ports);
    /// # engine.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit_at(&mut self, tick: u64, keys: &[KeyHash]) -> Result<(), ExchangeError> {
        self.submit_with(Some(tick), false, keys)
    }

    /// Sends what is left of a batch that [`try_submit`](Self::try_submit) has accepted, as far as
    /// it has room. Then writes the verdicts of the oldest batch [in flight](Self::in_flight) to
    /// `verdicts` and returns true, if they are complete. Returns false if they are not complete
    /// yet, or no batch is in flight. `verdicts` is empty unless true is returned.
    ///
    /// # Errors
    /// [`ExchangeError`] if some of them will never be complete; see
    /// [`take_partial`](Self::take_partial). Without a batch in flight, if an owner was found gone,
    /// or a partition is lost and the policy is [`LossPolicy::Error`].
    pub fn poll(&mut self, verdicts: &mut Verdicts) -> Result<bool, ExchangeError> {
        self.check_process();
        self.collect();
        self.send();
        self.take_settled(verdicts)
    }

    /// Writes what is known of the oldest batch in flight to `verdicts` and returns true, if
    /// [`poll`](Self::poll) and [`drain`](Self::drain) return an error because some of its verdicts
    /// will never arrive; [`Verdicts::is_unknown`] shows which. Else returns false, and `verdicts`
    /// is empty. The next call of `poll` or `drain` goes on with the next batch.
    ///
    /// Every key that is not unknown is recorded and must not be submitted again, or it would be a
    /// duplicate of itself. An unknown key is recorded in no partition that goes on, so it can be
    /// submitted again once its partition is [replaced](crate::Engine::replace).
    ///
    /// # Examples
    /// The retry of a batch, half of which was lost with its partition.
    /// ```
    /// # use std::collections::HashSet;
    /// # use echoless::{Batch, Tally};
    /// use echoless::{ExchangeError, Engine, Filter, KeyHash, Partitioned, Partitioning, Verdicts};
    /// /// An exact filter, which panics as long as it is broken.
    /// #[derive(Clone, Default)]
    /// struct Brittle {
    ///     keys: HashSet<KeyHash>,
    ///     broken: bool,
    /// }
    /// # impl Filter for Brittle {
    /// #     fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
    /// #         assert!(!self.broken, "a bug of this filter");
    /// #         batch.observe_each(duplicates, |key| !self.keys.insert(key));
    /// #     }
    /// #     fn contains(&self, _: KeyHash) -> bool { false }
    /// #     fn clear(&mut self) {}
    /// #     fn tally(&self) -> Tally { Tally::default() }
    /// # }
    /// let broken = Brittle { broken: true, ..Brittle::default() };
    /// let halves = Partitioned::new(Partitioning::new(2, 2)?, vec![Brittle::default(), broken])?;
    /// let (engine, mut ports) = Engine::builder(halves).build()?;
    /// let batch = [1, u64::MAX, 2].map(KeyHash::from_uniform); // the second is in partition 1
    /// let mut verdicts = Verdicts::new();
    /// let lost = ports[0].observe(&batch, &mut verdicts).unwrap_err();
    /// assert_eq!((lost, verdicts.len()), (ExchangeError::Panicked(1), 0));
    ///
    /// assert!(ports[0].take_partial(&mut verdicts));
    /// let again: Vec<KeyHash> = verdicts.unknown().map(|index| batch[index]).collect();
    /// assert_eq!(again, [batch[1]]);
    ///
    /// engine.replace(1, Brittle::default())?;
    /// ports[0].observe(&again, &mut verdicts)?;
    /// assert_eq!((verdicts.count_duplicates(), verdicts.count_unknown()), (0, 0));
    /// assert_eq!(engine.shutdown()?.filters().len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take_partial(&mut self, verdicts: &mut Verdicts) -> bool {
        self.check_process();
        self.collect();
        let partial = self
            .pending
            .front()
            .is_some_and(|batch| batch.is_settled() && batch.error().is_some());
        if partial {
            // The error is the caller's to handle, so no policy judges the unknown keys.
            self.take_oldest(LossPolicy::Error, verdicts);
        } else {
            verdicts.reset(0);
        }
        partial
    }

    /// How many batches were submitted and their verdicts not yet returned.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Blocks until the verdicts of the oldest batch in flight are complete, writes them to
    /// `verdicts` and returns true. Returns false if no batch is in flight. `verdicts` is empty
    /// unless true is returned.
    ///
    /// # Errors
    /// As [`poll`](Self::poll). It returns an error only once every key of the batch has its
    /// verdict or will never have one.
    pub fn drain(&mut self, verdicts: &mut Verdicts) -> Result<bool, ExchangeError> {
        loop {
            match self.poll(verdicts) {
                Ok(false) if !self.pending.is_empty() => {
                    self.wait_for_answers(Some(self.oldest), None);
                }
                result => return result,
            }
        }
    }

    /// Blocks until [`poll`](Self::poll) or [`try_submit`](Self::try_submit) may get further, but
    /// not longer than `timeout`: until a partition has answered all of the oldest batch, or messages
    /// of a batch that is not sent have room. Returns at once if there is nothing to wait for, and at
    /// the end of `timeout` if any answer has arrived.
    ///
    /// With these calls, a thread submits and drains that must do something else now and then, such
    /// as handle signals.
    ///
    /// # Errors
    /// [`ExchangeError::TimedOut`]. All batches in flight remain.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use echoless::{Engine, ExchangeError, FingerprintSpec, KeyHasher, Port, Verdicts};
    /// /// As `Port::drain`, and gives up if nothing arrives for a minute.
    /// fn drain(port: &mut Port, verdicts: &mut Verdicts) -> Result<bool, ExchangeError> {
    ///     while !port.poll(verdicts)? {
    ///         if port.in_flight() == 0 {
    ///             return Ok(false);
    ///         }
    ///         port.wait(Duration::from_secs(60))?;
    ///     }
    ///     Ok(true)
    /// }
    /// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
    /// let (engine, mut ports) = Engine::builder(halves).build()?;
    /// let keys = ["a", "b", "a"].map(|key| KeyHasher::seeded(0).hash(key));
    /// while !ports[0].try_submit(&keys)? {
    ///     ports[0].wait(Duration::from_secs(60))?;
    /// }
    /// let mut verdicts = Verdicts::new();
    /// assert!(drain(&mut ports[0], &mut verdicts)?);
    /// assert_eq!(verdicts.words(), [0b100]);
    /// assert!(!drain(&mut ports[0], &mut verdicts)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait(&mut self, timeout: Duration) -> Result<(), ExchangeError> {
        self.check_process();
        self.collect();
        self.send();
        if self.pending.front().is_none_or(PendingBatch::is_settled)
            || self.wait_for_answers(Some(self.oldest), Some(deadline_after(timeout)))
            || self.links.iter().any(PortLink::has_answer)
        {
            return Ok(());
        }
        Err(ExchangeError::TimedOut)
    }

    /// Whether each key would be a duplicate now, after the batches that this port has submitted;
    /// see [`Filter::contains_each`](crate::Filter::contains_each). Records and counts nothing.
    /// Blocks until the answers are complete. `verdicts` is empty after an error.
    ///
    /// Between this and a batch that is submitted next, other ports may record the keys.
    ///
    /// # Errors
    /// As [`observe`](Self::observe).
    ///
    /// # Panics
    /// As [`observe`](Self::observe).
    pub fn contains_each(
        &mut self,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) -> Result<(), ExchangeError> {
        self.exchange(true, keys, verdicts)
    }

    /// Submits a batch and blocks until its verdicts are complete. `verdicts` is empty after an
    /// error.
    ///
    /// # Errors
    /// As [`submit`](Self::submit) and [`drain`](Self::drain). If the batch was sent, it stays in
    /// flight for [`take_partial`](Self::take_partial). [`ExchangeError::InFlight`] if other
    /// batches are in flight; nothing was sent then.
    ///
    /// # Panics
    /// If the batch has 2^31 keys or more.
    pub fn observe(
        &mut self,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) -> Result<(), ExchangeError> {
        self.exchange(false, keys, verdicts)
    }

    fn exchange(
        &mut self,
        looks_up: bool,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) -> Result<(), ExchangeError> {
        verdicts.reset(0);
        self.check_idle()?;
        self.submit_with(None, looks_up, keys)?;
        self.drain(verdicts).map(|_| ())
    }

    /// Checks that the next verdicts will be those of the next batch.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), or if batches are in flight.
    pub(super) fn check_idle(&mut self) -> Result<(), ExchangeError> {
        if self.pending.is_empty() {
            return Ok(()); // `submit` checks the partitions
        }
        self.check_open()?;
        Err(ExchangeError::InFlight(self.pending.len()))
    }

    /// Returns the error that ended this port, if one did.
    pub(super) fn check_connected(&mut self) -> Result<(), ExchangeError> {
        self.check_process();
        self.failed.map_or(Ok(()), Err)
    }

    /// Ends the port if this process is a fork of the one that has the owners of the partitions:
    /// they would never answer. All calls begin with this, before they touch a ring.
    #[inline]
    pub(super) fn check_process(&mut self) {
        if self.links.first().is_some_and(PortLink::is_forked) {
            self.end_forked();
        }
    }

    /// Checks all partitions, including those without keys of the next batch: a port rejects every
    /// batch while a partition is lost, unless a policy judges its keys.
    fn check_open(&mut self) -> Result<(), ExchangeError> {
        self.check_connected()?;
        if let Some(link) = self.links.iter().find(|link| link.is_closed()) {
            let error = link.closed_error();
            return Err(self.fail(error));
        }
        self.check_lost()
    }

    /// Ends the port, unless it has ended before. Returns the error that ended it first.
    pub(super) fn fail(&mut self, error: ExchangeError) -> ExchangeError {
        *self.failed.get_or_insert(error)
    }

    /// Checks that no partition is lost, or that a policy judges its keys.
    fn check_lost(&self) -> Result<(), ExchangeError> {
        match self.policy {
            LossPolicy::AsDuplicate | LossPolicy::AsFresh => Ok(()),
            LossPolicy::Error => match self.links.iter().position(PortLink::is_lost) {
                Some(partition) => Err(ExchangeError::Panicked(partition)),
                None => Ok(()),
            },
        }
    }
}
