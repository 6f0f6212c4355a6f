//! The client half: a batch goes out as messages to the partitions, and its verdicts come back in the order of the batch.

use std::collections::VecDeque;

use super::message::{Kind, MESSAGE_KEYS, Request};
use crate::error::Lost;
use crate::hash::KeyHash;
use crate::partition::Partitioning;
use crate::transport::{Consumer, PopError, Producer, PushError, Sleeper, Wait};
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
}

/// The way to one partition and back.
#[derive(Debug)]
pub(super) struct Lane {
    requests: Producer<Request>,
    answers: Consumer<u64>,
    open: Request,
    open_places: [u32; MESSAGE_KEYS],
    /// What was sent and not answered.
    sent: VecDeque<Sent>,
}

/// Where the bits of an answer belong.
#[derive(Debug)]
struct Sent {
    batch: u64,
    places: [u32; MESSAGE_KEYS],
}

#[derive(Debug, Default)]
struct Batch {
    verdicts: Verdicts,
    unanswered: usize,
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
    pub(super) fn new(requests: Producer<Request>, answers: Consumer<u64>) -> Self {
        Self {
            requests,
            answers,
            open: Request::new(),
            open_places: [0; MESSAGE_KEYS],
            sent: VecDeque::new(),
        }
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
        }
    }

    /// Hands in a batch; its verdicts come from [`poll`](Self::poll). Waits where the partitions cannot keep up.
    ///
    /// # Errors
    /// [`Lost`] if the owner of a partition is gone; then some of the keys may have been recorded.
    ///
    /// # Panics
    /// If the batch has 2^32 keys or more.
    pub fn submit(&mut self, keys: &[KeyHash]) -> Result<(), Lost> {
        self.submit_meanwhile(Turn::Unnumbered, keys, &mut Idle)
    }

    /// The verdicts of the oldest batch that was submitted and not polled, if they are complete; true if they were.
    ///
    /// # Errors
    /// [`Lost`] if the owner of a partition is gone.
    pub fn poll(&mut self, verdicts: &mut Verdicts) -> Result<bool, Lost> {
        self.collect()?;
        Ok(self.take_complete(verdicts))
    }

    /// How many batches were submitted and not polled.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Waits for the verdicts of the oldest batch that was submitted and not polled; false if there is none.
    ///
    /// # Errors
    /// [`Lost`] if the owner of a partition is gone.
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
        assert_eq!(
            self.in_flight(),
            0,
            "batches are in flight: drain them first"
        );
        self.submit(keys)?;
        self.drain(verdicts).map(|_| ())
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
        let mut batch = self.free.pop().unwrap_or_default();
        batch.verdicts.reset(keys.len());
        batch.unanswered = 0;
        self.pending.push_back(batch);
        for (place, key) in keys.iter().enumerate() {
            let owner = self.partitioning.of(*key);
            let lane = &mut self.lanes[owner];
            lane.open_places[lane.open.count] = place as u32;
            if lane.open.push(*key) {
                self.send(owner, turn, Kind::Part, meanwhile)?;
            }
        }
        for owner in 0..self.lanes.len() {
            match turn {
                Turn::Number(_) => self.send(owner, turn, Kind::LastOfTurn, meanwhile)?,
                Turn::Unnumbered if self.lanes[owner].open.count > 0 => {
                    self.send(owner, turn, Kind::Part, meanwhile)?;
                }
                Turn::Unnumbered => {}
            }
        }
        Ok(())
    }

    pub(super) fn drain_meanwhile(
        &mut self,
        verdicts: &mut Verdicts,
        meanwhile: &mut impl Meanwhile,
    ) -> Result<bool, Lost> {
        while !self.pending.is_empty() {
            self.collect()?;
            if self.take_complete(verdicts) {
                return Ok(true);
            }
            if !meanwhile.work()? {
                self.wait_for_answers(meanwhile, || false);
            }
        }
        Ok(false)
    }

    /// Says to every partition that nothing more will come.
    pub(super) fn say_farewell(&mut self, meanwhile: &mut impl Meanwhile) -> Result<(), Lost> {
        for owner in 0..self.lanes.len() {
            self.send(owner, Turn::Unnumbered, Kind::Farewell, meanwhile)?;
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
            // A lane without questions is only closed, which is found out when something is sent.
            let answered = |lane: &Lane| !lane.sent.is_empty() && lane.answers.is_ready();
            meanwhile.has_work() || lanes.iter().any(answered) || condition()
        });
    }

    pub(super) fn doorbell(&self) -> crate::transport::Doorbell {
        self.sleeper.doorbell()
    }

    /// Sends the open message of a lane, waiting for room.
    fn send(
        &mut self,
        owner: usize,
        turn: Turn,
        kind: Kind,
        meanwhile: &mut impl Meanwhile,
    ) -> Result<(), Lost> {
        loop {
            let batch = self.oldest + self.pending.len() as u64 - u64::from(kind != Kind::Farewell);
            let lane = &mut self.lanes[owner];
            match lane.requests.vacant() {
                Ok(mut slot) => {
                    lane.open.kind = kind;
                    lane.open.turn = match turn {
                        Turn::Number(number) => number,
                        Turn::Unnumbered => 0,
                    };
                    *slot = lane.open;
                    slot.publish();
                    lane.open.count = 0;
                    if kind != Kind::Farewell {
                        let places = lane.open_places;
                        lane.sent.push_back(Sent { batch, places });
                        self.pending[(batch - self.oldest) as usize].unanswered += 1;
                    }
                    return Ok(());
                }
                Err(PushError::Closed(())) => return Err(Lost::Partition(owner)),
                Err(PushError::Full(())) => {
                    self.collect()?;
                    if !meanwhile.work()? {
                        self.wait_for_room(owner, meanwhile);
                    }
                }
            }
        }
    }

    fn wait_for_room(&mut self, owner: usize, meanwhile: &impl Meanwhile) {
        let Self { sleeper, lanes, .. } = self;
        sleeper.wait_until(self.wait, || {
            let answered = |lane: &Lane| !lane.sent.is_empty() && lane.answers.is_ready();
            let room = lanes[owner].requests.is_ready();
            room || meanwhile.has_work() || lanes.iter().any(answered)
        });
    }

    /// Takes the answers that are there, so that the partitions have room for more.
    pub(super) fn collect(&mut self) -> Result<(), Lost> {
        for (owner, lane) in self.lanes.iter_mut().enumerate() {
            while !lane.sent.is_empty() {
                let mask = match lane.answers.try_pop() {
                    Ok(mask) => mask,
                    Err(PopError::Empty) => break,
                    Err(PopError::Closed) => return Err(Lost::Partition(owner)),
                };
                let Some(sent) = lane.sent.pop_front() else {
                    break;
                };
                let batch = &mut self.pending[(sent.batch - self.oldest) as usize];
                batch.unanswered -= 1;
                scatter(mask, &sent.places, batch.verdicts.words_mut());
            }
        }
        Ok(())
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
fn scatter(mut mask: u64, places: &[u32; MESSAGE_KEYS], words: &mut [u64]) {
    while mask != 0 {
        let place = places[mask.trailing_zeros() as usize] as usize;
        words[place / 64] |= 1 << (place % 64);
        mask &= mask - 1;
    }
}
