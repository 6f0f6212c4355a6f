//! How a port exchanges messages with the partition servers: it sends a batch, blocks for room and
//! for answers, and collects the answers.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::Port;
use crate::assembly::link::PortLink;
use crate::assembly::loss::{ExchangeError, LossPolicy, Unanswered};
use crate::hash::KeyHash;
use crate::isa::DetectedKernel;
use crate::routing::messages::{MessageIndex, Selections};
use crate::sync::check;
use crate::transport::Attention;
use crate::verdicts::Verdicts;

/// The keys of the longest batch whose buffers a port uses again. They take 1 MiB.
const MOST_KEPT_KEYS: usize = 1 << 17;

/// A wait of a port that took so long is followed by waits that park at once. To park and to be woken
/// takes both threads together some 10 µs of their time, so spinning costs less if the wait is
/// shorter.
const LONG_WAIT: Duration = Duration::from_micros(20);

/// Of so many waits, one spins all the same: a wait that parks is never a short one.
const PROBED_WAITS: u32 = 8;

/// With fewer messages that are not answered, a wait is taken for a short one.
const MANY_MESSAGES: usize = 16;

/// What is left to send of the last pending batch. The router holds its keys.
#[derive(Debug)]
pub(super) struct Unsent {
    tick: Option<u64>,
    looks_up: bool,
    /// The partition that gets the next message.
    owner: usize,
    /// That message; the first one for `None`.
    next: Option<MessageIndex>,
}

impl Port {
    pub(super) fn submit_with(
        &mut self,
        tick: Option<u64>,
        looks_up: bool,
        keys: &[KeyHash],
    ) -> Result<(), ExchangeError> {
        self.check_process();
        // A batch that `try_submit` has accepted comes first.
        self.send_rest();
        self.begin(tick, looks_up, keys)?;
        self.send_rest();
        Ok(())
    }

    /// Appends a batch to those in flight. [`send`](Self::send) sends it.
    pub(super) fn begin(
        &mut self,
        tick: Option<u64>,
        looks_up: bool,
        keys: &[KeyHash],
    ) -> Result<(), ExchangeError> {
        check!(self.unsent.is_none(), "the router holds one batch");
        self.check_open()?;
        let mut batch = self.free.pop().unwrap_or_default();
        batch.reset(keys.len());
        self.router.route(keys, &mut batch.selections);
        self.pending.push_back(batch);
        self.unsent = Some(Unsent {
            tick,
            looks_up,
            owner: 0,
            next: None,
        });
        Ok(())
    }

    /// Sends the messages that have room, and returns whether no message is left. Once the owner of
    /// a partition is gone, its messages count as sent.
    pub(super) fn send(&mut self) -> bool {
        let Some(mut unsent) = self.unsent.take() else {
            return true;
        };
        while unsent.owner < self.links.len() {
            match self.send_messages(&mut unsent) {
                Ok(true) => {}
                Ok(false) => {
                    // The peer may be parked beside messages that were enqueued without a wake, and
                    // then never frees a slot.
                    self.links[unsent.owner].notify();
                    self.unsent = Some(unsent);
                    return false;
                }
                // The other partitions still get their keys. What is lost is reported with the
                // batch.
                Err(error) => {
                    self.failed = self.failed.or(Some(error));
                    if let Some(batch) = self.pending.back_mut() {
                        batch.mark_unsent(unsent.owner, unsent.next, error);
                    }
                }
            }
            unsent.owner += 1;
            unsent.next = None;
        }
        if let Some(batch) = self.pending.back_mut() {
            batch.end_sending();
        }
        self.clock = self.clock.max(unsent.tick);
        true
    }

    /// As [`send`](Self::send), and blocks until no message is left.
    fn send_rest(&mut self) {
        while !self.send() {
            self.wait_for_answers(None, None);
            self.collect();
        }
    }

    /// Sends the messages of the last pending batch to one partition, as far as they have room.
    /// Returns whether all of them are sent.
    ///
    /// # Errors
    /// If the owner of the partition is gone.
    fn send_messages(&mut self, unsent: &mut Unsent) -> Result<bool, ExchangeError> {
        let Unsent {
            owner,
            tick,
            looks_up,
            ..
        } = *unsent;
        let number = self.oldest + self.pending.len() as u64 - 1;
        let Some(batch) = self.pending.back_mut() else {
            return Ok(true);
        };
        loop {
            let link = &mut self.links[owner];
            let (keys, next) = self.router.message(&batch.selections, owner, unsent.next);
            // A new tick goes to every partition, so that all clocks are equal in a report. An
            // earlier one would not move the clock of the undivided filter either.
            if keys.is_empty() && tick <= self.clock {
                return Ok(true);
            }
            if !link.has_room() {
                return Ok(false);
            }
            if keys.is_empty() {
                let sent = link.send_tick(tick);
                link.hint();
                return sent.map(|()| true);
            }
            link.request(tick, looks_up, keys, number)?;
            batch.expect_answer();
            if next.is_none() {
                // One wake for all messages of the batch to this partition.
                link.notify();
                return Ok(true);
            }
            unsent.next = next;
        }
    }

    /// Ends the port in a fork: closes all links, and settles all batches.
    #[cold]
    pub(super) fn end_forked(&mut self) {
        if self.failed == Some(ExchangeError::Forked) {
            return;
        }
        self.fail(ExchangeError::Forked);
        self.links.iter_mut().for_each(PortLink::close);
        // Takes the answers that are there, and settles all other requests as unknown.
        self.collect();
    }

    /// Blocks until a partition has answered all messages of the pending batches up to this one,
    /// or the rest of a batch has room. Each of them becomes true only in a thread that then wakes
    /// this port's doorbell. Returns false if neither is true at the deadline.
    pub(super) fn wait_for_answers(
        &mut self,
        batch: Option<u64>,
        deadline: Option<Instant>,
    ) -> bool {
        let (unsent, attention) = self.next_owner();
        let mut unanswered = 0;
        for (owner, link) in self.links.iter_mut().enumerate() {
            link.await_answers(batch, unsent == Some(owner));
            unanswered += link.unanswered();
        }
        let parks = !self.long_waits.is_multiple_of(PROBED_WAITS) && unanswered >= MANY_MESSAGES;
        let Self { parker, links, .. } = self;
        let start = Instant::now();
        let attention = || (!is_ready(links, unsent)).then_some(attention);
        let is_over = match parks {
            true => parker.park_while(deadline, self.wait, attention),
            false => parker.wait_while(deadline, self.wait, attention),
        };
        self.long_waits = match start.elapsed() > LONG_WAIT {
            true => self.long_waits.wrapping_add(1),
            false => 0,
        };
        is_over
    }

    /// Waits in a task until an answer arrives, or the rest of a batch has room.
    pub(super) fn poll_wait(&mut self, context: &Context<'_>) -> Poll<()> {
        let (unsent, attention) = self.next_owner();
        self.links.iter_mut().for_each(PortLink::await_any);
        let Self { parker, links, .. } = self;
        parker.poll_while(context, || (!is_ready(links, unsent)).then_some(attention))
    }

    /// The partition that gets the next message of a batch that is not sent whole, and what to be
    /// woken for: room that messages without answers leave is followed by a hint only.
    fn next_owner(&self) -> (Option<usize>, Attention) {
        match &self.unsent {
            Some(unsent) => (Some(unsent.owner), Attention::WakesAndHints),
            None => (None, Attention::Wakes),
        }
    }

    /// Pops the answers of all links, which frees slots for the servers, and passes them to their
    /// batches. A lost link does not keep it from the others.
    pub(super) fn collect(&mut self) {
        let Self {
            links,
            pending,
            failed,
            ..
        } = self;
        let (oldest, policy, kernel) = (self.oldest, self.policy, self.router.kernel());
        for (owner, link) in links.iter_mut().enumerate() {
            link.take_answers(|batch, outcome| {
                if let Err(Unanswered::Closed(error)) = outcome {
                    failed.get_or_insert(error);
                }
                pending[(batch - oldest) as usize].take_outcome(kernel, owner, outcome, policy);
            });
        }
    }

    /// The outcome of the oldest batch, if it is settled.
    pub(super) fn take_settled(&mut self, verdicts: &mut Verdicts) -> Result<bool, ExchangeError> {
        let outcome = match self.pending.front() {
            None => self.check_connected().and_then(|()| self.check_lost()),
            Some(batch) if !batch.is_settled() => Ok(()),
            Some(batch) => match batch.error() {
                Some(error) => Err(self.failed.unwrap_or(error)),
                None => {
                    self.take_oldest(self.policy, verdicts);
                    return Ok(true);
                }
            },
        };
        verdicts.reset(0);
        outcome.map(|()| false)
    }

    /// Swaps the buffer of the oldest batch for the caller's.
    pub(super) fn take_oldest(&mut self, policy: LossPolicy, verdicts: &mut Verdicts) {
        if let Some(mut batch) = self.pending.pop_front() {
            self.oldest += 1;
            batch.take_verdicts(self.router.kernel(), policy, verdicts);
            if verdicts.len() <= MOST_KEPT_KEYS {
                self.free.push(batch);
            } else if self.unsent.is_none() {
                self.router.release();
            }
        }
    }
}

/// Whether the awaited answers of a link are there, or the next message of a batch has room.
fn is_ready(links: &[PortLink], unsent: Option<usize>) -> bool {
    unsent.is_some_and(|owner| links[owner].has_room()) || links.iter().any(PortLink::has_awaited)
}

/// One batch of a port. Its buffers are reused.
#[derive(Debug, Default)]
pub(super) struct PendingBatch {
    verdicts: Verdicts,
    /// For each link, the keys of the batch that it owns.
    pub(super) selections: Selections,
    /// Requests without an outcome.
    unanswered: usize,
    /// Every message was sent, or never will be. Until then the batch is not settled, even if all
    /// messages so far are answered.
    sent: bool,
    /// Why some keys have no verdict, if that is an error.
    error: Option<ExchangeError>,
}

impl PendingBatch {
    pub(super) fn reset(&mut self, keys: usize) {
        self.verdicts.reset(keys);
        self.unanswered = 0;
        self.sent = false;
        self.error = None;
    }

    /// Counts a request that was sent.
    pub(super) const fn expect_answer(&mut self) {
        self.unanswered += 1;
    }

    /// No message follows.
    pub(super) const fn end_sending(&mut self) {
        self.sent = true;
    }

    /// Whether every key has a verdict or will never have one.
    pub(super) const fn is_settled(&self) -> bool {
        self.sent && self.unanswered == 0
    }

    /// Why the batch is an error, if it is one.
    pub(super) const fn error(&self) -> Option<ExchangeError> {
        self.error
    }

    /// Takes the outcome of the next request of a link.
    pub(super) fn take_outcome(
        &mut self,
        kernel: DetectedKernel,
        owner: usize,
        outcome: Result<u64, Unanswered>,
        policy: LossPolicy,
    ) {
        self.unanswered -= 1;
        match outcome {
            Ok(bits) => (self.selections).answer(owner, kernel, bits, &mut self.verdicts),
            Err(unanswered) => self.take_unknown(kernel, owner, policy.error_of(unanswered)),
        }
    }

    /// The keys of the next message of a link have no verdict.
    #[cold]
    fn take_unknown(&mut self, kernel: DetectedKernel, owner: usize, error: Option<ExchangeError>) {
        self.error = self.error.or(error);
        let verdicts = &mut self.verdicts;
        self.selections.answer_unknown(owner, kernel, verdicts);
    }

    /// The keys that a link owns were not sent, from this message on.
    #[cold]
    pub(super) fn mark_unsent(
        &mut self,
        owner: usize,
        index: Option<MessageIndex>,
        error: ExchangeError,
    ) {
        if !self.selections.is_empty(owner) {
            self.error = self.error.or(Some(error));
            let verdicts = &mut self.verdicts;
            self.selections.mark_unsent(owner, index, verdicts);
        }
    }

    /// Exchanges the buffer of the verdicts for the caller's, after the policy has judged the keys
    /// without a verdict.
    pub(super) fn take_verdicts(
        &mut self,
        kernel: DetectedKernel,
        policy: LossPolicy,
        verdicts: &mut Verdicts,
    ) {
        self.selections.finish(kernel, &mut self.verdicts);
        policy.judge(&mut self.verdicts);
        std::mem::swap(&mut self.verdicts, verdicts);
    }
}
