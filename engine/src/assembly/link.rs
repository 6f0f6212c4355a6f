//! The two rings between a port and one partition, from the port's side: messages out, one answer
//! in return for each that holds keys.
//!
//! A message without keys only moves the clock of a partition that owns no key of a batch. No
//! thread waits for that, so it is followed by a [hint](Doorbell::hint) only: a batch of one key
//! wakes one worker, not all.
//!
//! Only published messages wake the other side. The server releases requests before it answers
//! them, so the wake for an answer covers the room as well (without an answer, a hint does); and a
//! server never waits for room for answers, because the port sends no request without it.

use std::collections::VecDeque;

use super::loss::{ExchangeError, Unanswered};
use super::mailbox::Notifier;
use super::rings::{Answer, Request};
use super::status::Status;
use crate::hash::KeyHash;
use crate::sync::{Arc, check};
use crate::transport::{Consumer, Parker, PopError, Producer, PushError};

/// The port's ends of the rings to and from one partition.
///
/// ```text
///   port                                     partition server
///   requests: Producer  --- [keys] [keys] -->  requests: Consumer
///   answers:  Consumer  <-- [answer] --------  answers:  Producer
///   sent: [batch, batch, batch]   the batch of each request with keys that has no answer, oldest
///                                 first
/// ```
///
/// The server answers requests in their order, so the next answer belongs to the front of `sent`.
/// Once the server has closed its ends, the requests that it left without an answer are settled as
/// unknown.
#[derive(Debug)]
pub(super) struct PortLink {
    partition: usize,
    status: Arc<Status>,
    requests: Producer<Request>,
    answers: Consumer<Answer>,
    /// The batch of each request without an answer, by the port's own count. Never longer than the
    /// capacity of `answers`, so the server can push every answer without waiting.
    sent: VecDeque<u64>,
    /// How many answers the port waits for.
    awaited: Option<usize>,
    /// The way into the mailbox of the server, if it has one.
    notifier: Option<Notifier>,
}

impl PortLink {
    pub(super) const fn new(
        partition: usize,
        status: Arc<Status>,
        requests: Producer<Request>,
        answers: Consumer<Answer>,
    ) -> Self {
        Self {
            partition,
            status,
            requests,
            answers,
            sent: VecDeque::new(),
            awaited: None,
            notifier: None,
        }
    }

    /// Notifies the server of messages, and of the end of the port, through its mailbox.
    pub(super) fn set_notifier(&mut self, notifier: Notifier) {
        self.notifier = Some(notifier);
    }

    /// Whether the filter of the partition panicked and was not replaced.
    pub(super) fn is_lost(&self) -> bool {
        self.status.is_lost()
    }

    /// Whether the owner of the partition is in another process, of which this one is a fork.
    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        self.status.is_forked()
    }

    /// Why the link is closed. The owner sets the status before it closes the rings.
    pub(super) fn closed_error(&self) -> ExchangeError {
        if self.is_lost() {
            ExchangeError::Panicked(self.partition)
        } else {
            ExchangeError::Disconnected(self.partition)
        }
    }

    /// Closes the port's ends. Answers in the ring can still be taken.
    pub(super) fn close(&mut self) {
        if self.is_forked() {
            // There is no thread to wake, and one may have held a lock of its own at the fork.
            let of_no_thread = Parker::new().doorbell();
            self.requests.set_doorbell(of_no_thread.clone());
            self.answers.set_doorbell(of_no_thread);
            self.notifier = None;
        }
        self.requests.close();
        self.answers.close();
        if self.notifier.is_some() {
            self.notify();
        }
    }

    /// Whether the server is gone, with or without unanswered requests.
    pub(super) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Whether [`take_answers`](Self::take_answers) would settle a request.
    pub(super) fn has_answer(&self) -> bool {
        !self.sent.is_empty() && self.answers.is_ready()
    }

    /// Requests without an answer.
    pub(super) fn unanswered(&self) -> usize {
        self.sent.len()
    }

    /// Sets the answers that the port waits for: those to all requests up to this batch, and, if it
    /// waits for room, so many that half of the ring is free. Fewer do not wake it.
    pub(super) fn await_answers(&mut self, batch: Option<u64>, room: bool) {
        let of_batch = batch.map_or(0, |batch| self.sent.partition_point(|sent| *sent <= batch));
        let half = self.answers.capacity() / 2;
        let for_room = room.then(|| self.sent.len().saturating_sub(half).max(1));
        let either = [Some(of_batch).filter(|count| *count > 0), for_room];
        self.set_awaited(either.into_iter().flatten().min());
    }

    /// The port waits for the next answer.
    pub(super) fn await_any(&mut self) {
        self.set_awaited(Some(1));
    }

    fn set_awaited(&mut self, count: Option<usize>) {
        self.awaited = count;
        self.answers.wake_when(count);
    }

    /// Whether the awaited answers are there, or never will be. Without an unanswered request, a
    /// closed ring is no event: the next send reports it.
    pub(super) fn has_awaited(&self) -> bool {
        !self.sent.is_empty() && self.awaited.is_some_and(|count| self.answers.has(count))
    }

    /// Whether a request and later its answer have a free slot, or the link is closed.
    pub(super) fn has_room(&self) -> bool {
        self.sent.len() < self.answers.capacity() && self.requests.is_ready()
    }

    /// Enqueues a request with keys. Does not wake the server, which may stay parked until
    /// [`notify`](Self::notify).
    ///
    /// # Errors
    /// If the server is gone.
    pub(super) fn request(
        &mut self,
        tick: Option<u64>,
        looks_up: bool,
        keys: &[KeyHash],
        batch: u64,
    ) -> Result<(), ExchangeError> {
        check!(
            self.sent.len() < self.answers.capacity(),
            "a request without room for its answer"
        );
        self.enqueue(tick, looks_up, keys)?;
        self.sent.push_back(batch);
        Ok(())
    }

    /// Enqueues a message without keys, which has no answer. Does not wake the server, which may
    /// stay parked until [`notify`](Self::notify). If it is parked with
    /// [`Attention::WakesAndHints`](crate::transport::Attention), [`hint`](Self::hint) is enough.
    ///
    /// # Errors
    /// If the server is gone.
    pub(super) fn send_tick(&mut self, tick: Option<u64>) -> Result<(), ExchangeError> {
        self.enqueue(tick, false, &[])
    }

    fn enqueue(
        &mut self,
        tick: Option<u64>,
        looks_up: bool,
        keys: &[KeyHash],
    ) -> Result<(), ExchangeError> {
        match self.requests.vacant() {
            Ok(mut slot) => {
                slot.write(tick, looks_up, keys);
                slot.publish();
                Ok(())
            }
            Err(error) => {
                check!(error == PushError::Closed, "a request without room");
                Err(self.closed_error())
            }
        }
    }

    /// Wakes the server if it is parked. One call covers all messages enqueued before it, because a
    /// wake costs more than a message.
    pub(super) fn notify(&self) {
        self.notify_mailbox();
        self.requests.notify();
    }

    /// Wakes the server if it is parked and waits for hints.
    pub(super) fn hint(&self) {
        self.notify_mailbox();
        self.requests.hint();
    }

    fn notify_mailbox(&self) {
        if let Some(notifier) = &self.notifier {
            notifier.notify();
        }
    }

    /// Pops all answers in the ring and calls `each` with the batch and the outcome of each
    /// request. If the server is gone, does the same for every request that it left without an
    /// answer.
    pub(super) fn take_answers(&mut self, mut each: impl FnMut(u64, Result<u64, Unanswered>)) {
        if self.sent.is_empty() {
            return;
        }
        for answer in self.answers.drain() {
            let batch = self.sent.pop_front();
            check!(batch.is_some(), "an answer without a request");
            if let Some(batch) = batch {
                let outcome = if answer.unknown {
                    Err(Unanswered::Lost(ExchangeError::Panicked(self.partition)))
                } else {
                    Ok(answer.bits)
                };
                each(batch, outcome);
            }
        }
        // `peek` reads the tail again after it finds the ring closed, so `Closed` means that no
        // answer is left in the ring.
        if !self.sent.is_empty() && self.answers.peek(0).err() == Some(PopError::Closed) {
            let closed = Err(Unanswered::Closed(self.closed_error()));
            for batch in self.sent.drain(..) {
                each(batch, closed);
            }
        }
    }
}

impl Drop for PortLink {
    fn drop(&mut self) {
        self.close();
    }
}
