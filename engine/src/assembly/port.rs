//! The client half: a batch goes out as messages to the partitions, and its verdicts come back in the order of the batch.

use std::collections::VecDeque;

use super::message::{Kind, MESSAGE_KEYS, Request};
use crate::error::Lost;
use crate::hash::KeyHash;
use crate::partition::Partitioning;
use crate::transport::{Consumer, Doorbell, PopError, Producer, Sleeper, Wait};
use crate::verdicts::Verdicts;

/// Where a thread hands in its keys and gets its verdicts. One for each ingest thread: it can be sent to a thread, not shared.
///
/// Batches are recycled: after the first few, nothing is allocated.
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
    partitioning: Partitioning,
    lanes: Vec<Lane>,
    sleeper: Sleeper,
    wait: Wait,
    /// Batches that are not complete, or complete and not polled; oldest first.
    pending: VecDeque<Batch>,
    /// The number of the oldest pending batch, counted by this port.
    oldest: u64,
    free: Vec<Batch>,
    /// How many keys of the batch that is handed in go to each lane.
    counts: Vec<usize>,
    /// What ended this port: there are batches that will never be complete.
    lost: Option<Lost>,
}

/// The way to one partition and back.
#[derive(Debug)]
pub(super) struct Lane {
    requests: Producer<Request>,
    answers: Consumer<u64>,
    /// The keys of the batch that is handed in.
    keys: Vec<KeyHash>,
    /// What was sent and not answered: no more than `answers` has room for, so that the other side never has to wait.
    sent: VecDeque<Sent>,
    /// The other side is gone, and all that it answered was taken.
    dead: bool,
}

/// Where an answer belongs.
#[derive(Debug)]
struct Sent {
    batch: u64,
    /// The first of its keys among those of the batch that went this way.
    first: usize,
}

#[derive(Debug, Default)]
struct Batch {
    verdicts: Verdicts,
    /// For each lane, the places in the batch of the keys that went there; not kept if all went one way.
    places: Vec<Vec<u32>>,
    /// Messages without answer, and one more until all are sent: a batch that got stuck on the way is never complete.
    unanswered: usize,
    /// Not all of it could be sent.
    cut_off: bool,
}

/// What a thread does while its port waits.
pub(super) trait Meanwhile {
    /// Does some work; false if there is none.
    fn work(&mut self) -> Result<bool, Lost>;
    /// Whether there is work.
    fn has_work(&self) -> bool;
}

/// Nothing to do but wait.
pub(super) struct Idle;

impl Meanwhile for Idle {
    fn work(&mut self) -> Result<bool, Lost> {
        Ok(false)
    }

    fn has_work(&self) -> bool {
        false
    }
}

/// How a batch stands in the order of batches.
#[derive(Debug, Clone, Copy)]
pub(super) enum Turn {
    /// It has no number: partial messages are sent where there is something in them.
    Unnumbered,
    /// It has this number: every partition hears of it and of its end.
    Number(u64),
}

impl Lane {
    pub(super) const fn new(requests: Producer<Request>, answers: Consumer<u64>) -> Self {
        Self {
            requests,
            answers,
            keys: Vec::new(),
            sent: VecDeque::new(),
            dead: false,
        }
    }

    fn has_answer(&self) -> bool {
        // A lane without questions is only closed, which is found out when something is sent.
        !self.dead && !self.sent.is_empty() && self.answers.is_ready()
    }

    fn has_credit(&self) -> bool {
        self.sent.len() < self.answers.capacity()
    }
}

impl Port {
    pub(super) const fn new(
        partitioning: Partitioning,
        lanes: Vec<Lane>,
        sleeper: Sleeper,
        wait: Wait,
    ) -> Self {
        Self {
            partitioning,
            lanes,
            sleeper,
            wait,
            pending: VecDeque::new(),
            oldest: 0,
            free: Vec::new(),
            counts: Vec::new(),
            lost: None,
        }
    }

    /// Hands in a batch; its verdicts come from [`poll`](Self::poll). Waits where the partitions cannot keep up.
    ///
    /// # Errors
    /// [`Lost`] if the owner of a partition is gone; then some of the keys may have been recorded. No later batch is taken.
    ///
    /// # Panics
    /// If the batch has 2^32 keys or more.
    pub fn submit(&mut self, keys: &[KeyHash]) -> Result<(), Lost> {
        self.submit_meanwhile(Turn::Unnumbered, keys, &mut Idle)
    }

    /// The verdicts of the oldest batch that was submitted and not polled, if they are complete; true if they were.
    ///
    /// # Errors
    /// [`Lost`] if the owner of a partition is gone and they will never be.
    pub fn poll(&mut self, verdicts: &mut Verdicts) -> Result<bool, Lost> {
        let collected = self.collect();
        if self.take_complete(verdicts) {
            return Ok(true);
        }
        // A partition that is gone does not matter to a batch whose other answers are still on their way.
        match collected {
            Err(Lost::Partition(_)) if !self.oldest_is_doomed() => Ok(false),
            collected => collected.map(|()| false),
        }
    }

    /// Whether the oldest batch waits for an answer that can never come.
    fn oldest_is_doomed(&self) -> bool {
        let waits = |lane: &Lane| {
            lane.sent
                .front()
                .is_some_and(|sent| sent.batch == self.oldest)
        };
        self.pending.front().is_none_or(|batch| batch.cut_off)
            || self.lanes.iter().any(|lane| lane.dead && waits(lane))
    }

    /// How many batches were submitted and not polled.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Waits for the verdicts of the oldest batch that was submitted and not polled; false if there is none.
    ///
    /// # Errors
    /// [`Lost`] if the owner of a partition is gone and they will never be complete.
    pub fn drain(&mut self, verdicts: &mut Verdicts) -> Result<bool, Lost> {
        self.drain_meanwhile(verdicts, &mut Idle)
    }

    /// Hands in a batch and waits for its verdicts.
    ///
    /// # Errors
    /// [`Lost`] if the owner of a partition is gone; then some of the keys may have been recorded.
    ///
    /// # Panics
    /// If batches are in flight: their verdicts come first. Or if the batch has 2^32 keys or more.
    pub fn observe(&mut self, keys: &[KeyHash], verdicts: &mut Verdicts) -> Result<(), Lost> {
        self.check_idle()?;
        self.submit(keys)?;
        self.drain(verdicts).map(|_| ())
    }

    /// Makes sure that the next verdicts are those of the next batch.
    ///
    /// # Errors
    /// [`Lost`] if there will be none.
    ///
    /// # Panics
    /// If batches are in flight.
    pub(super) fn check_idle(&self) -> Result<(), Lost> {
        self.check_whole()?;
        assert_eq!(
            self.in_flight(),
            0,
            "batches are in flight: drain them first"
        );
        Ok(())
    }

    fn check_whole(&self) -> Result<(), Lost> {
        self.lost.map_or(Ok(()), Err)
    }

    pub(super) fn submit_meanwhile(
        &mut self,
        turn: Turn,
        keys: &[KeyHash],
        meanwhile: &mut impl Meanwhile,
    ) -> Result<(), Lost> {
        assert!(
            u32::try_from(keys.len()).is_ok(),
            "a batch of {} keys",
            keys.len()
        );
        self.check_whole()?;
        let mut batch = self.free.pop().unwrap_or_default();
        batch.verdicts.reset(keys.len());
        batch.unanswered = 1;
        batch.cut_off = false;
        self.route(keys, &mut batch);
        self.pending.push_back(batch);
        for owner in 0..self.lanes.len() {
            // The keys are lent out while they are sent, because waiting for room needs the whole port.
            let keys = std::mem::take(&mut self.lanes[owner].keys);
            let sent = self.send_keys(owner, turn, &keys, meanwhile);
            self.lanes[owner].keys = keys;
            if sent.is_err()
                && let Some(batch) = self.pending.back_mut()
            {
                batch.cut_off = true;
            }
            sent?;
        }
        if let Some(batch) = self.pending.back_mut() {
            batch.unanswered -= 1;
        }
        Ok(())
    }

    /// Sorts the keys by the partitions that own them.
    fn route(&mut self, keys: &[KeyHash], batch: &mut Batch) {
        if let [only] = &mut self.lanes[..] {
            only.keys.clear();
            only.keys.extend_from_slice(keys);
            return;
        }
        // Room for all keys in every lane first, so that the loop has no growing in it.
        batch.places.resize_with(self.lanes.len(), Vec::new);
        for (lane, places) in self.lanes.iter_mut().zip(&mut batch.places) {
            lane.keys.resize(keys.len(), KeyHash(0));
            places.resize(keys.len(), 0);
        }
        self.counts.clear();
        self.counts.resize(self.lanes.len(), 0);
        for (place, key) in keys.iter().enumerate() {
            let owner = self.partitioning.of(*key);
            let count = &mut self.counts[owner];
            self.lanes[owner].keys[*count] = *key;
            batch.places[owner][*count] = place as u32;
            *count += 1;
        }
        for (lane, count) in self.lanes.iter_mut().zip(&self.counts) {
            lane.keys.truncate(*count);
        }
    }

    /// Sends the keys of one partition, in messages.
    fn send_keys(
        &mut self,
        owner: usize,
        turn: Turn,
        keys: &[KeyHash],
        meanwhile: &mut impl Meanwhile,
    ) -> Result<(), Lost> {
        let (number, last) = match turn {
            Turn::Number(number) => (number, Kind::LastOfTurn),
            Turn::Unnumbered if keys.is_empty() => return Ok(()),
            Turn::Unnumbered => (0, Kind::Part),
        };
        let mut first = 0;
        loop {
            let end = keys.len().min(first + MESSAGE_KEYS);
            let kind = if end == keys.len() { last } else { Kind::Part };
            self.wait_for_room(owner, meanwhile)?;
            self.send(owner, number, kind, &keys[first..end])?;
            let batch = self.oldest + self.pending.len() as u64 - 1;
            self.lanes[owner].sent.push_back(Sent { batch, first });
            if let Some(batch) = self.pending.back_mut() {
                batch.unanswered += 1;
            }
            first = end;
            if end == keys.len() {
                return Ok(());
            }
        }
    }

    pub(super) fn drain_meanwhile(
        &mut self,
        verdicts: &mut Verdicts,
        meanwhile: &mut impl Meanwhile,
    ) -> Result<bool, Lost> {
        while !self.pending.is_empty() {
            if self.poll(verdicts)? {
                return Ok(true);
            }
            if !self.work(meanwhile)? {
                self.wait_for_answers(meanwhile, || false);
            }
        }
        Ok(false)
    }

    /// Does some work meanwhile; false if there is none.
    pub(super) fn work(&mut self, meanwhile: &mut impl Meanwhile) -> Result<bool, Lost> {
        let worked = meanwhile.work();
        self.lost = self.lost.or(worked.err());
        worked
    }

    /// Says to every partition that nothing more will come.
    pub(super) fn say_farewell(&mut self, meanwhile: &mut impl Meanwhile) -> Result<(), Lost> {
        for owner in 0..self.lanes.len() {
            self.wait_for_room(owner, meanwhile)?;
            self.send(owner, 0, Kind::Farewell, &[])?;
        }
        Ok(())
    }

    /// Sleeps until an answer comes, there is work, or the condition holds.
    pub(super) fn wait_for_answers(
        &mut self,
        meanwhile: &impl Meanwhile,
        mut condition: impl FnMut() -> bool,
    ) {
        let Self { sleeper, lanes, .. } = self;
        sleeper.wait_until(self.wait, || {
            meanwhile.has_work() || lanes.iter().any(Lane::has_answer) || condition()
        });
    }

    pub(super) fn doorbell(&self) -> Doorbell {
        self.sleeper.doorbell()
    }

    /// Waits until a message can be sent and its answer be taken, or the lane is closed.
    fn wait_for_room(&mut self, owner: usize, meanwhile: &mut impl Meanwhile) -> Result<(), Lost> {
        loop {
            let lane = &self.lanes[owner];
            if lane.has_credit() && lane.requests.is_ready() {
                return Ok(());
            }
            self.collect()?;
            if !self.work(meanwhile)? {
                let Self { sleeper, lanes, .. } = self;
                sleeper.wait_until(self.wait, || {
                    let lane = &lanes[owner];
                    lane.has_credit() && lane.requests.is_ready()
                        || meanwhile.has_work()
                        || lanes.iter().any(Lane::has_answer)
                });
            }
        }
    }

    /// Sends a message to a lane that has room or is closed.
    fn send(&mut self, owner: usize, turn: u64, kind: Kind, keys: &[KeyHash]) -> Result<(), Lost> {
        let Ok(mut slot) = self.lanes[owner].requests.vacant() else {
            let lost = Lost::Partition(owner);
            self.lost = self.lost.or(Some(lost));
            return Err(lost);
        };
        slot.fill(turn, kind, keys);
        slot.publish();
        Ok(())
    }

    /// Takes the answers that are there, so that the partitions have room for more; also those of the others if one is lost.
    pub(super) fn collect(&mut self) -> Result<(), Lost> {
        for (owner, lane) in self.lanes.iter_mut().enumerate() {
            while let Some(sent) = lane.sent.front() {
                let mask = match lane.answers.try_pop() {
                    Ok(mask) => mask,
                    Err(PopError::Empty) => break,
                    Err(PopError::Closed) => {
                        lane.dead = true;
                        self.lost = self.lost.or(Some(Lost::Partition(owner)));
                        break;
                    }
                };
                let batch = &mut self.pending[(sent.batch - self.oldest) as usize];
                batch.unanswered -= 1;
                let words = batch.verdicts.words_mut();
                match batch.places.get(owner) {
                    Some(places) => scatter(mask, &places[sent.first..], words),
                    // All keys went one way, so answers are words of the batch; that to no keys is none.
                    None => {
                        if let Some(word) = words.get_mut(sent.first / MESSAGE_KEYS) {
                            *word = mask;
                        }
                    }
                }
                lane.sent.pop_front();
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

/// Sets the bit of each duplicate at its place in the batch.
#[inline]
fn scatter(mut mask: u64, places: &[u32], words: &mut [u64]) {
    while mask != 0 {
        let place = places[mask.trailing_zeros() as usize] as usize;
        words[place / 64] |= 1 << (place % 64);
        mask &= mask - 1;
    }
}
