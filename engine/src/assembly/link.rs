//! The way from a port to one partition and back: messages out, one word of verdicts for each in return.

use std::collections::VecDeque;

use super::message::{Kind, Request};
use crate::hash::KeyHash;
use crate::sync::check;
use crate::transport::{Consumer, PopError, Producer, PushError};

/// The way to one partition and back.
#[derive(Debug)]
pub(super) struct PortLink {
    requests: Producer<Request>,
    answers: Consumer<u64>,
    /// For each message without answer, the batch it belongs to. No more than `answers` has room for, so that the other side never has to
    /// wait.
    sent: VecDeque<u64>,
    /// The other side is gone, and all that it answered was taken.
    dead: bool,
}

/// The other side is gone.
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

    /// Whether the other side is gone, even if nothing was asked of it.
    pub(super) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Whether every request is answered.
    pub(super) fn is_answered(&self) -> bool {
        self.sent.is_empty()
    }

    /// Whether there is an answer to take, or there will be none although one is due.
    pub(super) fn has_answer(&self) -> bool {
        // A link without questions is only closed, which is found out when something is sent.
        !self.dead && !self.sent.is_empty() && self.answers.is_ready()
    }

    /// Whether a message can be sent and its answer be taken, or the link is closed.
    pub(super) fn has_room(&self) -> bool {
        self.sent.len() < self.answers.capacity() && self.requests.is_ready()
    }

    /// Whether an answer to this batch can never come.
    pub(super) fn will_not_answer(&self, batch: u64) -> bool {
        self.dead && self.sent.front() == Some(&batch)
    }

    /// Sends a message of a batch. The other side may be asleep until it is [announced](Self::notify).
    ///
    /// # Errors
    /// If the other side is gone.
    pub(super) fn ask(
        &mut self,
        batch_number: u64,
        kind: Kind,
        keys: &[KeyHash],
        batch: u64,
    ) -> Result<(), LinkClosed> {
        check!(
            self.sent.len() < self.answers.capacity(),
            "a request without room for its answer"
        );
        self.send(batch_number, kind, keys)?;
        self.sent.push_back(batch);
        Ok(())
    }

    /// Sends a message that has no answer.
    ///
    /// # Errors
    /// If the other side is gone.
    pub(super) fn send(
        &mut self,
        batch_number: u64,
        kind: Kind,
        keys: &[KeyHash],
    ) -> Result<(), LinkClosed> {
        let mut slot = self.requests.vacant().map_err(|error| {
            check!(error == PushError::Closed(()), "room was waited for");
            LinkClosed
        })?;
        slot.fill(batch_number, kind, keys);
        slot.publish_without_notify();
        Ok(())
    }

    /// Wakes the other side if it sleeps: once for many messages.
    pub(super) fn notify(&self) {
        self.requests.notify();
    }

    /// Takes the answers that are there, each with its batch.
    ///
    /// # Errors
    /// If an answer is due that can never come; those that came were taken before.
    pub(super) fn take_answers(
        &mut self,
        mut each: impl FnMut(u64, u64),
    ) -> Result<(), LinkClosed> {
        if self.sent.is_empty() {
            return Ok(());
        }
        for answer in self.answers.drain() {
            let batch = self.sent.pop_front();
            check!(batch.is_some(), "an answer that nobody asked for");
            if let Some(batch) = batch {
                each(batch, answer);
            }
        }
        if !self.sent.is_empty() && self.answers.peek(0).err() == Some(PopError::Closed) {
            self.dead = true;
            return Err(LinkClosed);
        }
        Ok(())
    }
}
