//! How a port exchanges messages with the partition servers: it sends a batch, blocks for room and
//! for answers, collects the answers, and ends once its node cannot go on.

use std::task::{Context, Poll};

use super::Port;
use crate::assembly::exchange_error::ExchangeError;
use crate::assembly::link::{PortLink, RequestOutcome};
use crate::assembly::loss_policy::LossPolicy;
use crate::assembly::message::{MessageHeader, MessageRole};
use crate::assembly::routing::MessageIndex;
use crate::hash::KeyHash;
use crate::sync::check;
use crate::transport::{Attention, Doorbell};
use crate::verdicts::Verdicts;

/// The work that a thread does while its port blocks.
pub(in crate::assembly) trait WhileWaiting {
    /// Does some work. Returns false if there was none.
    fn work(&mut self) -> Result<bool, ExchangeError>;
    /// `None` if [`work`](Self::work) would work or return an error; else what the thread is to be
    /// woken for.
    fn attention(&self) -> Option<Attention>;
    /// Whether [`work`](Self::work) has caught a panic that the caller must resume.
    fn has_panicked(&self) -> bool;
}

/// No work: the thread parks while its port blocks.
pub(in crate::assembly) struct Idle;

impl WhileWaiting for Idle {
    fn work(&mut self) -> Result<bool, ExchangeError> {
        Ok(false)
    }

    fn attention(&self) -> Option<Attention> {
        Some(Attention::Wakes)
    }

    fn has_panicked(&self) -> bool {
        false
    }
}

/// Whether a batch has a place in the order of all batches.
#[derive(Debug, Clone, Copy)]
pub(in crate::assembly) enum BatchNumber {
    /// The batch of an engine. Only partitions that own some of its keys get messages.
    Unnumbered,
    /// The batch of a mesh, with its number. Every partition gets a message that ends it.
    Number(u64),
}

/// What is left to send of the last pending batch. The router holds its keys.
#[derive(Debug)]
pub(super) struct Unsent {
    number: BatchNumber,
    tick: u64,
    /// The partition that gets the next message.
    owner: usize,
    /// That message; the first one for `None`.
    next: Option<MessageIndex>,
}

impl Port {
    pub(in crate::assembly) fn submit_while_serving(
        &mut self,
        number: BatchNumber,
        tick: u64,
        keys: &[KeyHash],
        while_waiting: &mut impl WhileWaiting,
    ) -> Result<(), ExchangeError> {
        self.check_process();
        // A batch that `try_submit` has accepted comes first.
        self.send_rest(while_waiting);
        self.begin(number, tick, keys)?;
        self.send_rest(while_waiting);
        Ok(())
    }

    /// Appends a batch to those in flight. [`send`](Self::send) sends it.
    pub(super) fn begin(
        &mut self,
        number: BatchNumber,
        tick: u64,
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
            number,
            tick,
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
    fn send_rest(&mut self, while_waiting: &mut impl WhileWaiting) {
        while !self.send() {
            if let Some(Unsent { owner, .. }) = self.unsent {
                // If the work fails, all links are closed: the messages count as sent.
                self.wait_for_room(owner, while_waiting).ok();
            }
        }
    }

    /// Sends the messages of the last pending batch to one partition, as far as they have room.
    /// Returns whether all of them are sent.
    ///
    /// # Errors
    /// If the owner of the partition is gone.
    fn send_messages(&mut self, unsent: &mut Unsent) -> Result<bool, ExchangeError> {
        let Unsent { owner, tick, .. } = *unsent;
        let number = self.oldest + self.pending.len() as u64 - 1;
        let Some(batch) = self.pending.back_mut() else {
            return Ok(true);
        };
        loop {
            let link = &mut self.links[owner];
            let (keys, next) = self.router.message(&batch.selections, owner, unsent.next);
            let (batch_number, role_of_last) = match unsent.number {
                BatchNumber::Number(number) => (number, MessageRole::LastOfBatch),
                // A new tick goes to every partition, so that all clocks are equal in a report. An
                // earlier one would not move the clock of the undivided filter either.
                BatchNumber::Unnumbered if keys.is_empty() && tick <= self.clock => {
                    return Ok(true);
                }
                BatchNumber::Unnumbered => (0, MessageRole::Part),
            };
            if !link.has_room() {
                return Ok(false);
            }
            let header = MessageHeader {
                batch_number,
                tick,
                role: next.map_or(role_of_last, |_| MessageRole::Part),
            };
            if keys.is_empty() {
                let sent = link.send_marker(header);
                link.hint();
                return sent.map(|()| true);
            }
            link.request(header, keys, number)?;
            batch.expect_answer();
            if next.is_none() {
                // One wake for all messages of the batch to this partition.
                link.notify();
                return Ok(true);
            }
            unsent.next = next;
        }
    }

    pub(in crate::assembly) fn drain_while_serving(
        &mut self,
        verdicts: &mut Verdicts,
        while_waiting: &mut impl WhileWaiting,
    ) -> Result<bool, ExchangeError> {
        loop {
            match self.poll(verdicts) {
                Ok(false) if !self.pending.is_empty() => {}
                result => return result,
            }
            match self.work(while_waiting) {
                Ok(true) => {}
                // Park only if a whole round found neither an answer nor work.
                Ok(false) => self.wait_for_answers(while_waiting, |_| false),
                // A panic is the outcome of this call, and leaves all batches in flight.
                Err(error) if while_waiting.has_panicked() => return Err(error),
                // The port has ended: every batch is settled now.
                Err(_) => {}
            }
        }
    }

    /// Does some work; returns false if there was none. An error ends the port.
    pub(in crate::assembly) fn work(
        &mut self,
        while_waiting: &mut impl WhileWaiting,
    ) -> Result<bool, ExchangeError> {
        while_waiting.work().map_err(|error| self.give_up(error))
    }

    /// Ends the port, because the order of batches is broken, the partition of this node is lost or
    /// the process was forked: closes all links, so that no peer waits for this node, and settles
    /// all batches. Returns the error that ended it first.
    #[cold]
    pub(in crate::assembly) fn give_up(&mut self, error: ExchangeError) -> ExchangeError {
        let error = match error {
            // In a mesh, link `i` leads to node `i`.
            ExchangeError::Peer(peer) if self.links[peer].is_lost() => {
                ExchangeError::Panicked(peer)
            }
            error @ (ExchangeError::Peer(_)
            | ExchangeError::Panicked(_)
            | ExchangeError::Disconnected(_)
            | ExchangeError::MissingBatch(_)
            | ExchangeError::Repeated(_)
            | ExchangeError::InFlight(_)
            | ExchangeError::Forked) => error,
        };
        let first = self.fail(error);
        if !self.gave_up {
            self.gave_up = true;
            self.links.iter_mut().for_each(PortLink::close);
            // Takes the answers that are there, and settles all other requests as unknown.
            self.collect();
        }
        first
    }

    /// Sends every partition the message that this port finishes.
    pub(in crate::assembly) fn send_finish(
        &mut self,
        while_waiting: &mut impl WhileWaiting,
    ) -> Result<(), ExchangeError> {
        let header = MessageHeader {
            batch_number: 0,
            tick: 0,
            role: MessageRole::Finish,
        };
        for owner in 0..self.links.len() {
            self.links[owner].notify();
            self.wait_for_room(owner, while_waiting)?;
            if let Err(error) = self.links[owner].send_marker(header) {
                return Err(self.fail(error));
            }
            self.links[owner].notify();
        }
        Ok(())
    }

    /// Parks until an answer arrives, there is work, or the condition holds. Each of them becomes
    /// true only in a thread that then wakes this port's doorbell, or in this thread.
    pub(in crate::assembly) fn wait_for_answers(
        &mut self,
        while_waiting: &impl WhileWaiting,
        mut condition: impl FnMut(&[PortLink]) -> bool,
    ) {
        let (unsent, least) = self.next_owner();
        self.wait(while_waiting, least, |links| {
            is_ready(links, unsent) || condition(links)
        });
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

    /// Parks until there is work or the condition holds, with this attention at least.
    fn wait(
        &mut self,
        while_waiting: &impl WhileWaiting,
        least: Attention,
        mut condition: impl FnMut(&[PortLink]) -> bool,
    ) {
        let Self { parker, links, .. } = self;
        parker.wait_while(self.wait, || match while_waiting.attention() {
            None => None,
            Some(_) if condition(links) => None,
            Some(Attention::Wakes) => Some(least),
            Some(Attention::WakesAndHints) => Some(Attention::WakesAndHints),
        });
    }

    pub(in crate::assembly) fn links(&self) -> &[PortLink] {
        &self.links
    }

    pub(in crate::assembly) fn doorbell(&self) -> Doorbell {
        self.parker.doorbell()
    }

    /// Blocks until a request and its answer have room, or the link is closed. The peer must have
    /// been notified of the messages before.
    ///
    /// # Errors
    /// If the work failed.
    fn wait_for_room(
        &mut self,
        owner: usize,
        while_waiting: &mut impl WhileWaiting,
    ) -> Result<(), ExchangeError> {
        while !self.links[owner].has_room() {
            self.collect();
            if !self.work(while_waiting)? {
                // Room that messages without answers leave is followed by a hint only.
                self.wait(while_waiting, Attention::WakesAndHints, |links| {
                    links.iter().any(PortLink::has_answer) || links[owner].has_room()
                });
            }
        }
        Ok(())
    }

    /// Pops the answers of all links, which frees slots for the servers, and passes them to their
    /// batches. A lost link does not keep it from the others.
    pub(in crate::assembly) fn collect(&mut self) {
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
            self.free.push(batch);
        }
    }
}

/// Whether an answer can be taken, or the next message of a batch has room.
fn is_ready(links: &[PortLink], unsent: Option<usize>) -> bool {
    unsent.is_some_and(|owner| links[owner].has_room()) || links.iter().any(PortLink::has_answer)
}
