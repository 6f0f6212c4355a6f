//! The client half: sends a batch as messages to the partitions, and collects its verdicts in the
//! order of the batch.
//!
//! Several batches can be in flight. Each counts its messages without an answer, and is complete
//! once it was sent whole and the count is 0. Verdicts are returned in the order of submission, so
//! a complete batch waits for older ones:
//!
//! ```text
//!   pending:   batch 7 (2 unanswered)   batch 8 (0 unanswered)   batch 9 (being sent)
//!              oldest = 7               complete, but not oldest
//!   link 0, sent: [7, 9]      the next answer of a link belongs to the front of its queue
//!   link 1, sent: [7]
//! ```
//!
//! A port blocks in two places: for room in a ring ([`submit`](Port::submit)), and for answers
//! ([`drain`](Port::drain)). In both it pops the answers that are there: a request is sent only
//! while the ring of answers has room for its answer, so answers that are not popped block further
//! requests. In both it also runs its [`WhileWaiting`], which for a node of a mesh is its own
//! partition server.

use std::collections::VecDeque;

use super::link::{LinkClosed, PortLink};
use super::message::{Header, Kind, MESSAGE_KEYS};
use super::routing::{Router, Selection};
use crate::error::Disconnected;
use crate::hash::KeyHash;
use crate::kernels::isa::DetectedKernel;
use crate::partition::Partitioning;
use crate::transport::{Doorbell, Parker, Wait};
use crate::verdicts::Verdicts;

/// Submits keys and returns their verdicts. Each ingest thread owns one: a port can be sent to a
/// thread, but not shared.
///
/// The buffers of batches are reused, so a port stops allocating after the first few batches.
///
/// **When a partition is lost** (its worker panicked, or the engine was shut down), every later
/// batch is rejected, including batches without keys of that partition. The verdicts of earlier
/// batches are returned first, as far as all partitions answered them. After them, every call
/// returns [`Disconnected`]. [`poll`](Self::poll) and [`drain`](Self::drain) check only batches in
/// flight: while there are none and no call has returned `Disconnected` yet, they return `false`.
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
    /// Batches in flight: incomplete, or complete and not yet returned. Oldest first.
    pending: VecDeque<Batch>,
    /// The number of the front of `pending`, by this port's own count of batches.
    oldest: u64,
    free: Vec<Batch>,
    /// The latest tick that was sent to every partition.
    clock: u64,
    /// The first error. It ends the port, because some batch can never be complete.
    lost: Option<Disconnected>,
}

#[derive(Debug, Default)]
struct Batch {
    verdicts: Verdicts,
    /// For each link, the keys of the batch that it owns.
    selections: Vec<Selection>,
    /// Messages without an answer, plus one until the whole batch is sent. So a batch of which
    /// sending failed never counts as complete.
    unanswered: usize,
    /// Sending failed; the rest will not be sent.
    partially_sent: bool,
}

/// The work that a thread does while its port blocks.
pub(super) trait WhileWaiting {
    /// Does some work. Returns false if there was none.
    fn work(&mut self) -> Result<bool, Disconnected>;
    /// Whether [`work`](Self::work) would work or return an error.
    fn has_work(&self) -> bool;
}

/// No work: the thread parks while its port blocks.
pub(super) struct Idle;

impl WhileWaiting for Idle {
    fn work(&mut self) -> Result<bool, Disconnected> {
        Ok(false)
    }

    fn has_work(&self) -> bool {
        false
    }
}

/// Whether a batch has a place in the order of all batches.
#[derive(Debug, Clone, Copy)]
pub(super) enum BatchNumber {
    /// The batch of an engine. Only partitions that own some of its keys get messages.
    Unnumbered,
    /// The batch of a mesh, with its number. Every partition gets a message that ends it.
    Number(u64),
}

impl Batch {
    /// Deposits the answer to the next message of a link into the verdicts.
    fn deposit(&mut self, kernel: DetectedKernel, owner: usize, answer: u64) {
        self.unanswered -= 1;
        self.selections[owner].deposit(kernel, answer, self.verdicts.words_mut());
    }
}

impl Port {
    pub(super) fn new(
        partitioning: Partitioning,
        links: Vec<PortLink>,
        parker: Parker,
        wait: Wait,
    ) -> Self {
        Self {
            router: Router::new(partitioning),
            links,
            parker,
            wait,
            pending: VecDeque::new(),
            oldest: 0,
            free: Vec::new(),
            clock: 0,
            lost: None,
        }
    }

    /// Submits a batch, whose verdicts [`poll`](Self::poll) or [`drain`](Self::drain) returns
    /// later. Blocks while the rings to the partitions are full.
    ///
    /// The number of batches in flight is unlimited, so a caller that only submits runs out of
    /// memory.
    ///
    /// # Errors
    /// [`Disconnected`] if the owner of any partition is gone. Some of the keys may have been
    /// recorded. All later batches are rejected.
    ///
    /// # Panics
    /// If the batch has 2^32 keys or more.
    pub fn submit(&mut self, keys: &[KeyHash]) -> Result<(), Disconnected> {
        self.submit_at(0, keys)
    }

    /// As [`submit`](Self::submit), at a tick: every partition moves its clock to `tick` before it
    /// judges the keys; see [`Filter::advance_to`](crate::Filter::advance_to).
    ///
    /// A stream has one clock, so the caller passes the largest event time so far. An earlier tick
    /// has no effect, like the tick 0. With one port, verdicts equal those of the undivided filter.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    ///
    /// # Panics
    /// As [`submit`](Self::submit).
    ///
    /// # Examples
    /// ```
    /// use echoless::{Engine, FilterSpec, KeyHash, Verdicts};
    /// let spec: FilterSpec = "stamped:window=60,memory=1MiB".parse()?;
    /// let (engine, mut ports) = Engine::builder(spec.build_partitions(2)?).build()?;
    /// let mut verdicts = Verdicts::new();
    /// for (tick, duplicates) in [(100, 0), (160, 1), (221, 0)] {
    ///     ports[0].submit_at(tick, &[KeyHash(7)])?;
    ///     ports[0].drain(&mut verdicts)?;
    ///     assert_eq!(verdicts.count_duplicates(), duplicates);
    /// }
    /// # drop(ports);
    /// # engine.shutdown()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit_at(&mut self, tick: u64, keys: &[KeyHash]) -> Result<(), Disconnected> {
        self.submit_while_serving(BatchNumber::Unnumbered, tick, keys, &mut Idle)
    }

    /// Writes the verdicts of the oldest batch [in flight](Self::in_flight) to `verdicts` and
    /// returns true, if they are complete. Returns false if they are not complete yet, or no batch
    /// is in flight.
    ///
    /// # Errors
    /// [`Disconnected`] if the owner of a partition is gone and they will never be complete.
    pub fn poll(&mut self, verdicts: &mut Verdicts) -> Result<bool, Disconnected> {
        let collected = self.collect();
        if self.take_complete(verdicts) {
            return Ok(true);
        }
        // A lost partition is no error yet for a batch that it has answered, while the other
        // partitions may still answer.
        match collected {
            Err(Disconnected::Partition(_)) if !self.oldest_cannot_complete() => Ok(false),
            collected => collected.map(|()| false),
        }
    }

    /// Whether the oldest batch lacks an answer that can never arrive.
    fn oldest_cannot_complete(&self) -> bool {
        self.pending
            .front()
            .is_none_or(|batch| batch.partially_sent)
            || self
                .links
                .iter()
                .any(|link| link.will_not_answer(self.oldest))
    }

    /// How many batches were submitted and their verdicts not yet returned.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Blocks until the verdicts of the oldest batch in flight are complete, writes them to
    /// `verdicts` and returns true. Returns false if no batch is in flight.
    ///
    /// # Errors
    /// [`Disconnected`] if the owner of a partition is gone and they will never be complete.
    pub fn drain(&mut self, verdicts: &mut Verdicts) -> Result<bool, Disconnected> {
        self.drain_while_serving(verdicts, &mut Idle)
    }

    /// Submits a batch and blocks until its verdicts are complete.
    ///
    /// # Errors
    /// [`Disconnected`] if the owner of a partition is gone. Some of the keys may have been
    /// recorded.
    ///
    /// # Panics
    /// If other batches are in flight, or the batch has 2^32 keys or more.
    pub fn observe(
        &mut self,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) -> Result<(), Disconnected> {
        self.check_idle()?;
        self.submit(keys)?;
        self.drain(verdicts).map(|_| ())
    }

    /// Checks that the next verdicts will be those of the next batch.
    ///
    /// # Errors
    /// [`Disconnected`] if an earlier call found an owner gone.
    ///
    /// # Panics
    /// If batches are in flight.
    pub(super) fn check_idle(&self) -> Result<(), Disconnected> {
        self.check_connected()?;
        assert_eq!(
            self.in_flight(),
            0,
            "batches are in flight: drain them first"
        );
        Ok(())
    }

    /// Returns the error that ended this port, if one did.
    pub(super) fn check_connected(&self) -> Result<(), Disconnected> {
        self.lost.map_or(Ok(()), Err)
    }

    pub(super) fn submit_while_serving(
        &mut self,
        number: BatchNumber,
        tick: u64,
        keys: &[KeyHash],
        while_waiting: &mut impl WhileWaiting,
    ) -> Result<(), Disconnected> {
        assert!(
            u32::try_from(keys.len()).is_ok(),
            "a batch of {} keys",
            keys.len()
        );
        self.check_connected()?;
        // Checks all partitions, including those without keys of this batch: a port with a lost
        // partition rejects every batch.
        if let Some(owner) = self.links.iter().position(PortLink::is_closed) {
            return Err(self.mark_lost(owner));
        }
        let mut batch = self.free.pop().unwrap_or_default();
        batch.verdicts.reset(keys.len());
        // The extra one is taken off below, once the whole batch is sent. Without it, a batch whose
        // first messages are answered while the others are being sent would count as complete.
        batch.unanswered = 1;
        batch.partially_sent = false;
        self.router.route(keys, &mut batch.selections);
        self.pending.push_back(batch);
        for owner in 0..self.links.len() {
            let sent = self.send_keys(owner, number, tick, while_waiting);
            if sent.is_err()
                && let Some(batch) = self.pending.back_mut()
            {
                batch.partially_sent = true;
            }
            sent?;
        }
        if let Some(batch) = self.pending.back_mut() {
            batch.unanswered -= 1;
        }
        self.clock = self.clock.max(tick);
        Ok(())
    }

    /// Sends the keys of the last pending batch that one partition owns, in messages of up to
    /// [`MESSAGE_KEYS`] keys.
    fn send_keys(
        &mut self,
        owner: usize,
        number: BatchNumber,
        tick: u64,
        while_waiting: &mut impl WhileWaiting,
    ) -> Result<(), Disconnected> {
        let count = self.router.keys_of(owner).len();
        let (batch_number, last) = match number {
            BatchNumber::Number(number) => (number, Kind::LastOfBatch),
            // A new tick goes to every partition, so that all clocks are equal in a report. An
            // earlier one would not move the clock of the undivided filter either.
            BatchNumber::Unnumbered if count == 0 && tick <= self.clock => return Ok(()),
            BatchNumber::Unnumbered => (0, Kind::Part),
        };
        let batch = self.oldest + self.pending.len() as u64 - 1;
        let mut first = 0;
        loop {
            let end = count.min(first + MESSAGE_KEYS);
            let kind = if end == count { last } else { Kind::Part };
            self.wait_for_room(owner, while_waiting)?;
            let keys = &self.router.keys_of(owner)[first..end];
            let header = Header {
                batch_number,
                tick,
                kind,
            };
            self.links[owner]
                .request(header, keys, batch)
                .map_err(|LinkClosed| self.mark_lost(owner))?;
            if let Some(batch) = self.pending.back_mut() {
                batch.unanswered += 1;
            }
            first = end;
            if end == count {
                // One wake for all messages of the batch to this partition.
                self.links[owner].notify();
                return Ok(());
            }
        }
    }

    pub(super) fn drain_while_serving(
        &mut self,
        verdicts: &mut Verdicts,
        while_waiting: &mut impl WhileWaiting,
    ) -> Result<bool, Disconnected> {
        while !self.pending.is_empty() {
            if self.poll(verdicts)? {
                return Ok(true);
            }
            // Park only if a whole round found neither an answer nor work.
            if !self.work(while_waiting)? {
                self.wait_for_answers(while_waiting, |_| false);
            }
        }
        self.check_connected().map(|()| false)
    }

    /// Does some work; returns false if there was none. Keeps an error for all later calls.
    pub(super) fn work(
        &mut self,
        while_waiting: &mut impl WhileWaiting,
    ) -> Result<bool, Disconnected> {
        let worked = while_waiting.work();
        self.lost = self.lost.or(worked.err());
        worked
    }

    /// Sends every partition the message that this port finishes.
    pub(super) fn send_finish(
        &mut self,
        while_waiting: &mut impl WhileWaiting,
    ) -> Result<(), Disconnected> {
        let header = Header {
            batch_number: 0,
            tick: 0,
            kind: Kind::Finish,
        };
        for owner in 0..self.links.len() {
            self.wait_for_room(owner, while_waiting)?;
            self.links[owner]
                .send(header, &[])
                .map_err(|LinkClosed| self.mark_lost(owner))?;
            self.links[owner].notify();
        }
        Ok(())
    }

    /// Parks until an answer arrives, there is work, or the condition holds. Each of them becomes
    /// true only in a thread that then wakes this port's doorbell, or in this thread.
    pub(super) fn wait_for_answers(
        &mut self,
        while_waiting: &impl WhileWaiting,
        mut condition: impl FnMut(&[PortLink]) -> bool,
    ) {
        let Self { parker, links, .. } = self;
        parker.wait_until(self.wait, || {
            while_waiting.has_work() || links.iter().any(PortLink::has_answer) || condition(links)
        });
    }

    pub(super) fn links(&self) -> &[PortLink] {
        &self.links
    }

    pub(super) fn doorbell(&self) -> Doorbell {
        self.parker.doorbell()
    }

    /// Blocks until a request and its answer have room, or the link is closed.
    fn wait_for_room(
        &mut self,
        owner: usize,
        while_waiting: &mut impl WhileWaiting,
    ) -> Result<(), Disconnected> {
        if self.links[owner].has_room() {
            return Ok(());
        }
        // Wake the peer first: it may be parked beside messages that were enqueued without a wake,
        // and then never frees a slot.
        self.links[owner].notify();
        while !self.links[owner].has_room() {
            self.collect()?;
            if !self.work(while_waiting)? {
                self.wait_for_answers(while_waiting, |links| links[owner].has_room());
            }
        }
        Ok(())
    }

    /// Records that the owner of a partition is gone, unless an earlier error is recorded.
    fn mark_lost(&mut self, owner: usize) -> Disconnected {
        let lost = Disconnected::Partition(owner);
        self.lost = self.lost.or(Some(lost));
        lost
    }

    /// Pops the answers of all links, which frees slots for the servers, and deposits them in their
    /// batches. A lost link does not keep it from the others.
    ///
    /// # Errors
    /// If an owner is gone, now or in an earlier call.
    pub(super) fn collect(&mut self) -> Result<(), Disconnected> {
        let (pending, oldest, kernel) = (&mut self.pending, self.oldest, self.router.kernel());
        for (owner, link) in self.links.iter_mut().enumerate() {
            let taken = link.take_answers(|batch, answer| {
                pending[(batch - oldest) as usize].deposit(kernel, owner, answer);
            });
            if taken.is_err() {
                self.lost = self.lost.or(Some(Disconnected::Partition(owner)));
            }
        }
        self.check_connected()
    }

    /// Returns the verdicts of the oldest batch if they are complete, and swaps its buffer for the
    /// caller's.
    fn take_complete(&mut self, verdicts: &mut Verdicts) -> bool {
        if self
            .pending
            .front()
            .is_none_or(|batch| batch.unanswered > 0)
        {
            return false;
        }
        if let Some(mut batch) = self.pending.pop_front() {
            self.oldest += 1;
            std::mem::swap(&mut batch.verdicts, verdicts);
            self.free.push(batch);
        }
        true
    }
}
