//! How a port exchanges messages with the partition servers: it sends a batch, blocks for room and
//! for answers, and collects the answers.

use std::task::{Context, Poll};
use std::time::Instant;

use super::Port;
use crate::assembly::exchange_error::ExchangeError;
use crate::assembly::link::{PortLink, RequestOutcome};
use crate::assembly::loss_policy::LossPolicy;
use crate::assembly::routing::MessageIndex;
use crate::hash::KeyHash;
use crate::sync::check;
use crate::transport::Attention;
use crate::verdicts::Verdicts;

/// The keys of the longest batch whose buffers a port uses again. They take 1 MiB.
const MOST_KEPT_KEYS: usize = 1 << 17;

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
        assert!(keys.len() < 1 << 31, "a batch of {} keys", keys.len());
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
            self.wait_for_answers(None);
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

    /// Blocks until an answer arrives, or the rest of a batch has room. Each of them becomes true
    /// only in a thread that then wakes this port's doorbell. Returns false if neither is true at
    /// the deadline.
    pub(super) fn wait_for_answers(&mut self, deadline: Option<Instant>) -> bool {
        let (unsent, attention) = self.next_owner();
        let Self { parker, links, .. } = self;
        parker.wait_while_before(deadline, self.wait, || {
            (!is_ready(links, unsent)).then_some(attention)
        })
    }

    /// Waits in a task until an answer arrives, or the rest of a batch has room.
    pub(super) fn poll_wait(&mut self, context: &Context<'_>) -> Poll<()> {
        let (unsent, attention) = self.next_owner();
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
                if let RequestOutcome::Closed(error) = outcome {
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

/// Whether an answer can be taken, or the next message of a batch has room.
fn is_ready(links: &[PortLink], unsent: Option<usize>) -> bool {
    unsent.is_some_and(|owner| links[owner].has_room()) || links.iter().any(PortLink::has_answer)
}
