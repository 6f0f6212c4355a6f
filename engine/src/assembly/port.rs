//! The client half: a batch goes out as messages to the partitions, and its verdicts come back in the order of the batch.

use std::collections::VecDeque;

use super::link::{LinkClosed, PortLink};
use super::message::{Kind, MESSAGE_KEYS};
use super::routing::{Router, Selection};
use crate::error::Disconnected;
use crate::hash::KeyHash;
use crate::kernels::isa::DetectedKernel;
use crate::partition::Partitioning;
use crate::transport::{Doorbell, Parker, Wait};
use crate::verdicts::Verdicts;

/// Where a thread hands in its keys and gets its verdicts. One for each ingest thread: it can be sent to a thread, not shared.
///
/// Batches are recycled: after the first few, nothing is allocated.
///
/// **When a partition is lost** (its worker panicked, or the engine was shut down) every later batch is refused, whichever partitions its
/// keys belong to. The verdicts of earlier batches come first, as far as they were answered in all partitions; after them comes [`Disconnected`],
/// again and again. [`poll`](Self::poll) and [`drain`](Self::drain) look only at what is in flight: while nothing is, and no call has said
/// `Disconnected` yet, they say `false`.
///
/// # Examples
/// ```
/// use echoless::{Engine, FingerprintSpec, KeyHasher, Verdicts};
/// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
/// let (engine, mut ports) = Engine::builder(halves).ports(1).start()?;
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
    /// Batches that are not complete, or complete and not polled; oldest first.
    pending: VecDeque<Batch>,
    /// The number of the oldest pending batch, counted by this port.
    oldest: u64,
    free: Vec<Batch>,
    /// What ended this port: there are batches that will never be complete.
    lost: Option<Disconnected>,
}

#[derive(Debug, Default)]
struct Batch {
    verdicts: Verdicts,
    /// For each link, where the answers belong.
    selections: Vec<Selection>,
    /// Messages without answer, and one more until all are sent: a batch that got stuck on the way is never complete.
    unanswered: usize,
    /// Not all of it could be sent.
    partially_sent: bool,
}

/// What a thread does while its port waits.
pub(super) trait WhileWaiting {
    /// Does some work; false if there is none.
    fn work(&mut self) -> Result<bool, Disconnected>;
    /// Whether there is work.
    fn has_work(&self) -> bool;
}

/// Nothing to do but wait.
pub(super) struct Idle;

impl WhileWaiting for Idle {
    fn work(&mut self) -> Result<bool, Disconnected> {
        Ok(false)
    }

    fn has_work(&self) -> bool {
        false
    }
}

/// How a batch stands in the order of batches.
#[derive(Debug, Clone, Copy)]
pub(super) enum BatchNumber {
    /// It has no number: partial messages are sent where there is something in them.
    Unnumbered,
    /// It has this number: every partition hears of it and of its end.
    Number(u64),
}

impl Batch {
    /// Enters the answer to the next message of a link.
    fn enter(&mut self, kernel: DetectedKernel, owner: usize, answer: u64) {
        self.unanswered -= 1;
        self.selections[owner].enter(kernel, answer, self.verdicts.words_mut());
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
            lost: None,
        }
    }

    /// Hands in a batch; its verdicts come from [`poll`](Self::poll) or [`drain`](Self::drain). Waits where the partitions cannot keep up.
    ///
    /// Verdicts are kept until they are taken, however many there are: a caller that only submits fills the memory.
    ///
    /// # Errors
    /// [`Disconnected`] if the owner of any partition is gone; then some of the keys may have been recorded. No later batch is taken.
    ///
    /// # Panics
    /// If the batch has 2^32 keys or more.
    pub fn submit(&mut self, keys: &[KeyHash]) -> Result<(), Disconnected> {
        self.submit_while_serving(BatchNumber::Unnumbered, keys, &mut Idle)
    }

    /// The verdicts of the oldest batch that was submitted and not polled, if they are complete; true if they were. False if they are not
    /// yet, or nothing is [in flight](Self::in_flight).
    ///
    /// # Errors
    /// [`Disconnected`] if the owner of a partition is gone and they will never be.
    pub fn poll(&mut self, verdicts: &mut Verdicts) -> Result<bool, Disconnected> {
        let collected = self.collect();
        if self.take_complete(verdicts) {
            return Ok(true);
        }
        // A partition that is gone does not matter to a batch whose other answers are still on their way.
        match collected {
            Err(Disconnected::Partition(_)) if !self.oldest_cannot_complete() => Ok(false),
            collected => collected.map(|()| false),
        }
    }

    /// Whether the oldest batch waits for an answer that can never come.
    fn oldest_cannot_complete(&self) -> bool {
        self.pending
            .front()
            .is_none_or(|batch| batch.partially_sent)
            || self
                .links
                .iter()
                .any(|link| link.will_not_answer(self.oldest))
    }

    /// How many batches were submitted and not polled.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Waits for the verdicts of the oldest batch that was submitted and not polled; false if there is none.
    ///
    /// # Errors
    /// [`Disconnected`] if the owner of a partition is gone and they will never be complete.
    pub fn drain(&mut self, verdicts: &mut Verdicts) -> Result<bool, Disconnected> {
        self.drain_while_serving(verdicts, &mut Idle)
    }

    /// Hands in a batch and waits for its verdicts.
    ///
    /// # Errors
    /// [`Disconnected`] if the owner of a partition is gone; then some of the keys may have been recorded.
    ///
    /// # Panics
    /// If batches are in flight: their verdicts come first. Or if the batch has 2^32 keys or more.
    pub fn observe(
        &mut self,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) -> Result<(), Disconnected> {
        self.check_idle()?;
        self.submit(keys)?;
        self.drain(verdicts).map(|_| ())
    }

    /// Makes sure that the next verdicts are those of the next batch.
    ///
    /// # Errors
    /// [`Disconnected`] if there will be none.
    ///
    /// # Panics
    /// If batches are in flight.
    pub(super) fn check_idle(&self) -> Result<(), Disconnected> {
        self.check_whole()?;
        assert_eq!(
            self.in_flight(),
            0,
            "batches are in flight: drain them first"
        );
        Ok(())
    }

    /// That nothing is known to be lost.
    pub(super) fn check_whole(&self) -> Result<(), Disconnected> {
        self.lost.map_or(Ok(()), Err)
    }

    pub(super) fn submit_while_serving(
        &mut self,
        number: BatchNumber,
        keys: &[KeyHash],
        meanwhile: &mut impl WhileWaiting,
    ) -> Result<(), Disconnected> {
        assert!(
            u32::try_from(keys.len()).is_ok(),
            "a batch of {} keys",
            keys.len()
        );
        self.check_whole()?;
        // Also of a partition that has none of these keys: no later batch is taken.
        if let Some(owner) = self.links.iter().position(PortLink::is_closed) {
            return Err(self.mark_lost(owner));
        }
        let mut batch = self.free.pop().unwrap_or_default();
        batch.verdicts.reset(keys.len());
        batch.unanswered = 1;
        batch.partially_sent = false;
        self.router.route(keys, &mut batch.selections);
        self.pending.push_back(batch);
        for owner in 0..self.links.len() {
            let sent = self.send_keys(owner, number, meanwhile);
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
        Ok(())
    }

    /// Sends the keys of one partition, in messages.
    fn send_keys(
        &mut self,
        owner: usize,
        number: BatchNumber,
        meanwhile: &mut impl WhileWaiting,
    ) -> Result<(), Disconnected> {
        let count = self.router.keys_of(owner).len();
        let (number, last) = match number {
            BatchNumber::Number(number) => (number, Kind::LastOfBatch),
            BatchNumber::Unnumbered if count == 0 => return Ok(()),
            BatchNumber::Unnumbered => (0, Kind::Part),
        };
        let batch = self.oldest + self.pending.len() as u64 - 1;
        let mut first = 0;
        loop {
            let end = count.min(first + MESSAGE_KEYS);
            let kind = if end == count { last } else { Kind::Part };
            self.wait_for_room(owner, meanwhile)?;
            let keys = &self.router.keys_of(owner)[first..end];
            self.links[owner]
                .ask(number, kind, keys, batch)
                .map_err(|LinkClosed| self.mark_lost(owner))?;
            if let Some(batch) = self.pending.back_mut() {
                batch.unanswered += 1;
            }
            first = end;
            if end == count {
                self.links[owner].notify();
                return Ok(());
            }
        }
    }

    pub(super) fn drain_while_serving(
        &mut self,
        verdicts: &mut Verdicts,
        meanwhile: &mut impl WhileWaiting,
    ) -> Result<bool, Disconnected> {
        while !self.pending.is_empty() {
            if self.poll(verdicts)? {
                return Ok(true);
            }
            if !self.work(meanwhile)? {
                self.wait_for_answers(meanwhile, |_| false);
            }
        }
        self.check_whole().map(|()| false)
    }

    /// Does some work meanwhile; false if there is none.
    pub(super) fn work(&mut self, meanwhile: &mut impl WhileWaiting) -> Result<bool, Disconnected> {
        let worked = meanwhile.work();
        self.lost = self.lost.or(worked.err());
        worked
    }

    /// Says to every partition that nothing more will come.
    pub(super) fn send_finish(
        &mut self,
        meanwhile: &mut impl WhileWaiting,
    ) -> Result<(), Disconnected> {
        for owner in 0..self.links.len() {
            self.wait_for_room(owner, meanwhile)?;
            self.links[owner]
                .send(0, Kind::Finish, &[])
                .map_err(|LinkClosed| self.mark_lost(owner))?;
            self.links[owner].notify();
        }
        Ok(())
    }

    /// Sleeps until an answer comes, there is work, or the condition holds.
    pub(super) fn wait_for_answers(
        &mut self,
        meanwhile: &impl WhileWaiting,
        mut condition: impl FnMut(&[PortLink]) -> bool,
    ) {
        let Self { parker, links, .. } = self;
        parker.wait_until(self.wait, || {
            meanwhile.has_work() || links.iter().any(PortLink::has_answer) || condition(links)
        });
    }

    pub(super) fn links(&self) -> &[PortLink] {
        &self.links
    }

    pub(super) fn doorbell(&self) -> Doorbell {
        self.parker.doorbell()
    }

    /// Waits until a message can be sent and its answer be taken, or the link is closed.
    fn wait_for_room(
        &mut self,
        owner: usize,
        meanwhile: &mut impl WhileWaiting,
    ) -> Result<(), Disconnected> {
        if self.links[owner].has_room() {
            return Ok(());
        }
        // Nobody makes room who does not know of what there is to do.
        self.links[owner].notify();
        while !self.links[owner].has_room() {
            self.collect()?;
            if !self.work(meanwhile)? {
                self.wait_for_answers(meanwhile, |links| links[owner].has_room());
            }
        }
        Ok(())
    }

    /// Notes that the owner of a partition is gone.
    fn mark_lost(&mut self, owner: usize) -> Disconnected {
        let lost = Disconnected::Partition(owner);
        self.lost = self.lost.or(Some(lost));
        lost
    }

    /// Takes the answers that are there, so that the partitions have room for more; also those of the others if one is lost.
    pub(super) fn collect(&mut self) -> Result<(), Disconnected> {
        let (pending, oldest, kernel) = (&mut self.pending, self.oldest, self.router.kernel());
        for (owner, link) in self.links.iter_mut().enumerate() {
            let taken = link.take_answers(|batch, answer| {
                pending[(batch - oldest) as usize].enter(kernel, owner, answer);
            });
            if taken.is_err() {
                self.lost = self.lost.or(Some(Disconnected::Partition(owner)));
            }
        }
        self.check_whole()
    }

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
