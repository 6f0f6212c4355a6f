//! The server of a node of a mesh: it applies messages by the numbers of their batches, from 0
//! without gaps.

use super::ServerLink;
use super::pass::{GatherStep, Links, OnPanic, Pass};
use crate::assembly::exchange_error::ExchangeError;
use crate::assembly::message::{MessageRole, Request};
use crate::assembly::owned::{OwnedFilter, Panic};
use crate::assembly::partition_state::PartitionState;
use crate::filters::Filter;
use crate::transport::{Attention, PopError};

/// The owner of one partition of a mesh.
///
/// A node that is dropped before its [`MessageRole::Finish`] may leave a gap in the numbers, so
/// that is an error.
#[derive(Debug)]
pub(in crate::assembly) struct NumberedServer<F> {
    /// The first field: if the thread unwinds, the loss is set before the links close.
    pass: Pass<F>,
    /// The error that ended this server: its links are closed, and it applies no message.
    failed: Option<ExchangeError>,
    links: Vec<ServerLink>,
    /// The number of the batch that is due; all earlier batches are applied.
    next_batch: u64,
    /// The link that the next pass gathers from first; rotates, so that no node starves.
    first: usize,
}

/// The state of the front of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Front {
    /// A message that can be applied now.
    Due,
    /// A message of a later batch.
    Early,
    /// A message of a batch that is already complete: its number was used twice, or numbers fell.
    Late(u64),
    /// No message; one may follow.
    Empty,
    /// The node has finished.
    Finish,
    /// The node is gone, and no message is left.
    LinkClosed,
}

impl Links for Vec<ServerLink> {
    fn link(&mut self, index: usize) -> &mut ServerLink {
        &mut self[index]
    }
}

impl<F: Filter> NumberedServer<F> {
    /// A server that takes messages from these links, one to each node.
    pub(in crate::assembly) const fn new(
        partition: usize,
        owned: OwnedFilter<F>,
        links: Vec<ServerLink>,
        on_panic: OnPanic,
    ) -> Self {
        Self {
            pass: Pass::new(partition, owned, on_panic),
            failed: None,
            links,
            next_batch: 0,
            first: 0,
        }
    }

    /// The filter, or the message of its panic if the partition is lost.
    pub(in crate::assembly) fn into_filter(self) -> Result<F, String> {
        self.pass.into_filter()
    }

    /// The number of the partition.
    pub(in crate::assembly) const fn partition(&self) -> usize {
        self.pass.partition()
    }

    pub(in crate::assembly) fn state(&self) -> &PartitionState<F> {
        self.pass.state()
    }

    /// The panic to resume, with [`OnPanic::Fail`].
    pub(in crate::assembly) const fn take_panic(&mut self) -> Option<Panic> {
        self.pass.take_panic()
    }

    pub(in crate::assembly) const fn has_panicked(&self) -> bool {
        self.pass.has_panicked()
    }

    /// Applies and answers messages that are due, in one pass through the filter. Returns false if
    /// there was none.
    ///
    /// # Errors
    /// [`ExchangeError`] if the batch that is due can never arrive, or a number arrives again; or,
    /// with [`OnPanic::Fail`], if the filter panicked. The server is then closed, and every later
    /// call returns the same error.
    pub(in crate::assembly) fn serve(&mut self) -> Result<bool, ExchangeError> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        let served = self.serve_open();
        if let Err(failed) = served {
            self.failed = Some(failed);
            // Peers must not wait for answers that will never be pushed, nor may a later pass mix
            // with the messages of this one.
            self.links.iter_mut().for_each(ServerLink::close);
        }
        served
    }

    fn serve_open(&mut self) -> Result<bool, ExchangeError> {
        self.gather();
        let served = !self.pass.is_empty();
        self.pass.answer(&mut self.links)?;
        let mut stalled = !served;
        for index in 0..self.links.len() {
            match self.front(index) {
                Front::LinkClosed => return Err(ExchangeError::Peer(index)),
                Front::Late(number) => return Err(ExchangeError::Repeated(number)),
                Front::Early | Front::Finish => {}
                Front::Due | Front::Empty => stalled = false,
            }
        }
        // Every link is at a later batch or has finished, so the batch that is due can never
        // arrive.
        if stalled && !self.is_finished() {
            return Err(ExchangeError::MissingBatch(self.next_batch));
        }
        Ok(served)
    }

    /// `None` if [`serve`](Self::serve) would answer a message or return an error; else what the
    /// owner is to be woken for. This is the condition that the owner parks on.
    ///
    /// Messages without keys are followed by a hint only. They bring this server nothing to do, as
    /// long as no link holds a message of a later batch: then they may be what it waits for.
    pub(in crate::assembly) fn attention(&self) -> Option<Attention> {
        if self.failed.is_some() {
            return None;
        }
        let mut stalled = true;
        let mut attention = Attention::Wakes;
        for index in 0..self.links.len() {
            match self.front(index) {
                Front::Due | Front::Late(_) | Front::LinkClosed => return None,
                Front::Empty => stalled = false,
                Front::Early => attention = Attention::WakesAndHints,
                Front::Finish => {}
            }
        }
        let missing = stalled && !self.is_finished();
        (!missing).then_some(attention)
    }

    /// Whether every node has finished and all of its messages are applied.
    pub(in crate::assembly) fn is_finished(&self) -> bool {
        (0..self.links.len()).all(|index| self.front(index) == Front::Finish)
    }

    fn front(&self, index: usize) -> Front {
        match self.links[index].requests.peek(0) {
            Err(PopError::Empty) => Front::Empty,
            Err(PopError::Closed) => Front::LinkClosed,
            Ok(request) => self.state_of(&request),
        }
    }

    fn state_of(&self, request: &Request) -> Front {
        let number = request.header.batch_number;
        match request.header.role {
            MessageRole::Finish => Front::Finish,
            MessageRole::Part | MessageRole::LastOfBatch if number == self.next_batch => Front::Due,
            MessageRole::Part | MessageRole::LastOfBatch if number < self.next_batch => {
                Front::Late(number)
            }
            MessageRole::Part | MessageRole::LastOfBatch => Front::Early,
        }
    }

    /// Gathers the messages that are due. A long pass keeps the prefetching busy across messages;
    /// only the first few lines of a pass are probed without it.
    fn gather(&mut self) {
        let count = self.links.len();
        // The end of a batch in one link makes the next batch due in another, so go round until a
        // whole round yields nothing.
        let mut unproductive = 0;
        while unproductive < count && !self.pass.is_full() {
            let link = &mut self.links[self.first];
            let before = link.gathered;
            let next_batch = &mut self.next_batch;
            // At most to the end of the batch.
            self.pass.gather(self.first, link, |header| {
                if header.role == MessageRole::Finish || header.batch_number != *next_batch {
                    return GatherStep::Leave;
                }
                if header.role == MessageRole::LastOfBatch {
                    *next_batch += 1;
                    return GatherStep::TakeLast;
                }
                GatherStep::Take
            });
            unproductive += 1;
            if link.gathered > before {
                unproductive = 0;
            }
            self.first = (self.first + 1) % count;
        }
    }
}
