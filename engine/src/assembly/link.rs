//! The two rings between a port and one partition, from the port's side: messages out, one word of
//! verdicts for each in return.

use std::collections::VecDeque;

use super::message::{Header, Request};
use crate::hash::KeyHash;
use crate::sync::check;
use crate::transport::{Consumer, PopError, Producer, PushError};

/// The port's ends of the rings to and from one partition.
///
/// ```text
///   port                                     partition server
///   requests: Producer  --- [keys] [keys] -->  requests: Consumer
///   answers:  Consumer  <-- [bits] ----------  answers:  Producer
///   sent: [batch, batch, batch]   the batch of each request without an answer, oldest first
/// ```
///
/// The server answers requests in their order, so the next answer belongs to the front of `sent`.
#[derive(Debug)]
pub(super) struct PortLink {
    requests: Producer<Request>,
    answers: Consumer<u64>,
    /// The batch of each request without an answer, by the port's own count. Never longer than the
    /// capacity of `answers`, so the server can push every answer without waiting.
    sent: VecDeque<u64>,
    /// The server is gone and an answer is missing; all answers that it pushed were popped before.
    dead: bool,
}

/// The server closed its ends of the rings: it panicked, was shut down or was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkClosed;

impl PortLink {
    pub(super) const fn new(requests: Producer<Request>, answers: Consumer<u64>) -> Self {
        Self {
            requests,
            answers,
            sent: VecDeque::new(),
            dead: false,
        }
    }

    /// Whether the server is gone, with or without unanswered requests.
    pub(super) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Whether every request is answered.
    pub(super) fn is_answered(&self) -> bool {
        self.sent.is_empty()
    }

    /// Whether [`take_answers`](Self::take_answers) would take an answer or newly return an error.
    pub(super) fn has_answer(&self) -> bool {
        // Without an unanswered request, a closed ring is no event: the next send reports it.
        !self.dead && !self.sent.is_empty() && self.answers.is_ready()
    }

    /// Whether a request and later its answer have a free slot, or the link is closed.
    pub(super) fn has_room(&self) -> bool {
        self.sent.len() < self.answers.capacity() && self.requests.is_ready()
    }

    /// Whether an answer to this batch is next, and can never arrive.
    pub(super) fn will_not_answer(&self, batch: u64) -> bool {
        self.dead && self.sent.front() == Some(&batch)
    }

    /// Enqueues a request of a batch. The server may stay parked until [`notify`](Self::notify).
    ///
    /// # Errors
    /// If the server is gone.
    pub(super) fn request(
        &mut self,
        header: Header,
        keys: &[KeyHash],
        batch: u64,
    ) -> Result<(), LinkClosed> {
        check!(
            self.sent.len() < self.answers.capacity(),
            "a request without room for its answer"
        );
        self.send(header, keys)?;
        self.sent.push_back(batch);
        Ok(())
    }

    /// Enqueues a message that has no answer.
    ///
    /// # Errors
    /// If the server is gone.
    pub(super) fn send(&mut self, header: Header, keys: &[KeyHash]) -> Result<(), LinkClosed> {
        let mut slot = self.requests.vacant().map_err(|error| {
            check!(error == PushError::Closed(()), "a request without room");
            LinkClosed
        })?;
        slot.write(header, keys);
        slot.publish_without_notify();
        Ok(())
    }

    /// Wakes the server if it is parked. One call covers all messages enqueued before it, because a
    /// wake costs more than a message.
    pub(super) fn notify(&self) {
        self.requests.notify();
    }

    /// Pops all answers in the ring and calls `each` with the batch and the verdict bits of each.
    ///
    /// # Errors
    /// If an answer is due that can never arrive. All answers that did arrive are popped first.
    pub(super) fn take_answers(
        &mut self,
        mut each: impl FnMut(u64, u64),
    ) -> Result<(), LinkClosed> {
        if self.sent.is_empty() {
            return Ok(());
        }
        for answer in self.answers.drain() {
            let batch = self.sent.pop_front();
            check!(batch.is_some(), "an answer without a request");
            if let Some(batch) = batch {
                each(batch, answer);
            }
        }
        // `peek` reads the tail again after it finds the ring closed, so `Closed` means that no
        // answer is left in the ring.
        if !self.sent.is_empty() && self.answers.peek(0).err() == Some(PopError::Closed) {
            self.dead = true;
            return Err(LinkClosed);
        }
        Ok(())
    }
}
