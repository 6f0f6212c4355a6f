//! One pass of a partition server: the messages that it gathered from its links, one probe of the
//! filter for all of their keys, and an answer to each.

use super::ServerLink;
use crate::assembly::exchange_error::ExchangeError;
use crate::assembly::message::{Answer, MessageHeader};
use crate::assembly::owned::{Judged, OwnedFilter, Panic};
use crate::assembly::partition_state::PartitionState;
use crate::filters::Filter;
use crate::hash::KeyHash;
use crate::sync::discard;
use crate::verdicts::bits_of_words;

/// The limit of messages in one pass, 4096 keys. After a pass the thread checks its stop flag, its
/// port and the other links again.
const MESSAGES_PER_PASS: usize = 64;

/// What a server does when its filter panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::assembly) enum OnPanic {
    /// It answers without verdicts until the partition is replaced.
    GoOn,
    /// It fails, and keeps the panic for the caller to resume.
    Fail,
}

/// What a server does with the message at the front of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GatherStep {
    /// The message joins the pass, and the next one may follow.
    Take,
    /// The message joins the pass, as the last one of this link.
    TakeLast,
    /// The message stays in its ring, and so do those behind it.
    Leave,
}

/// The links of a server by their index.
pub(super) trait Links {
    /// The link of a gathered message.
    fn link(&mut self, index: usize) -> &mut ServerLink;
}

/// The filter of a partition and the messages of the current pass.
#[derive(Debug)]
pub(super) struct Pass<F> {
    /// The first field: if the thread unwinds, the loss is set before anything else is dropped.
    owned: OwnedFilter<F>,
    on_panic: OnPanic,
    /// The panic of the filter, with [`OnPanic::Fail`].
    panic: Option<Panic>,
    /// The number of the partition.
    partition: usize,
    /// The latest tick of all messages gathered so far.
    tick: u64,
    /// The keys of the messages, in their order.
    keys: Vec<KeyHash>,
    /// The link and the number of keys of each message.
    messages: Vec<(usize, usize)>,
    /// The links with messages in this pass, each once.
    touched: Vec<usize>,
    /// The verdict bits, in the order of `keys`.
    verdicts: Vec<u64>,
}

impl<F: Filter> Pass<F> {
    pub(super) const fn new(partition: usize, owned: OwnedFilter<F>, on_panic: OnPanic) -> Self {
        Self {
            owned,
            on_panic,
            panic: None,
            partition,
            tick: 0,
            keys: Vec::new(),
            messages: Vec::new(),
            touched: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    /// The filter, or the message of its panic if the partition is lost.
    pub(super) fn into_filter(self) -> Result<F, String> {
        self.owned.into_filter()
    }

    pub(super) const fn partition(&self) -> usize {
        self.partition
    }

    pub(super) fn state(&self) -> &PartitionState<F> {
        self.owned.state()
    }

    /// The panic to resume, with [`OnPanic::Fail`].
    pub(super) const fn take_panic(&mut self) -> Option<Panic> {
        self.panic.take()
    }

    pub(super) const fn has_panicked(&self) -> bool {
        self.panic.is_some()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) const fn is_full(&self) -> bool {
        self.messages.len() >= MESSAGES_PER_PASS
    }

    /// Copies messages at the front of a link: `decide` is called with the header of each. Stops at
    /// a message that moves the clock, too, unless it is the first of the pass.
    pub(super) fn gather(
        &mut self,
        index: usize,
        link: &mut ServerLink,
        mut decide: impl FnMut(MessageHeader) -> GatherStep,
    ) {
        while !self.is_full() {
            let Ok(request) = link.requests.peek(link.gathered) else {
                return;
            };
            if request.header.tick > self.tick && !self.is_empty() {
                return;
            }
            let step = decide(request.header);
            if step == GatherStep::Leave {
                return;
            }
            self.tick = self.tick.max(request.header.tick);
            self.keys.extend_from_slice(request.keys());
            self.messages.push((index, request.keys().len()));
            if link.gathered == 0 {
                self.touched.push(index);
            }
            link.gathered += 1;
            if step == GatherStep::TakeLast {
                return;
            }
        }
    }

    /// Probes the filter with the gathered keys, and pushes the answer to each message with keys
    /// into its link. Does nothing if there are no messages.
    ///
    /// # Errors
    /// If the filter panicked, with [`OnPanic::Fail`]. No answer was pushed.
    pub(super) fn answer(&mut self, links: &mut impl Links) -> Result<(), ExchangeError> {
        if self.is_empty() {
            return Ok(());
        }
        self.verdicts.clear();
        self.verdicts
            .resize(self.keys.len().div_ceil(u64::BITS as usize), 0);
        let judged = self.owned.judge(self.tick, &self.keys, &mut self.verdicts);
        self.keys.clear();
        let unknown = match (judged, self.on_panic) {
            (Judged::Known, _) => false,
            (Judged::Panicked(panic), OnPanic::Fail) => {
                self.panic = Some(panic);
                return Err(ExchangeError::Panicked(self.partition));
            }
            (Judged::Panicked(panic), OnPanic::GoOn) => {
                discard(panic);
                true
            }
            (Judged::Lost, _) => true,
        };
        let mut start = 0;
        for (index, count) in self.messages.drain(..).filter(|(_, count)| *count > 0) {
            links.link(index).answers_of_pass.push(Answer {
                bits: bits_of_words(&self.verdicts, start, count),
                unknown,
            });
            start += count;
        }
        for index in self.touched.drain(..) {
            links.link(index).answer();
        }
        Ok(())
    }
}
