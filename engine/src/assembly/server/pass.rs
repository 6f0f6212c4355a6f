//! One pass of a partition server: the messages that it gathered from its links, one probe of the
//! filter for all of their keys, and an answer to each.

use super::link::{LinksByPort, ServerLink};
use crate::assembly::live_report::ReportRequest;
use crate::assembly::message::Answer;
use crate::assembly::owned::{Judged, OwnedFilter};
use crate::filters::{Batch, Filter};
use crate::hash::KeyHash;
use crate::verdicts::bits_of_words;

/// The limit of messages in one pass, 4096 keys. After a pass the thread checks its stop flag, its
/// port and the other links again.
const MESSAGES_PER_PASS: usize = 64;

/// The filter of a partition and the messages of the current pass.
#[derive(Debug)]
pub(super) struct Pass<F> {
    /// The first field: if the thread unwinds, the loss is set before anything else is dropped.
    owned: OwnedFilter<F>,
    /// The latest tick of all messages gathered so far.
    tick: Option<u64>,
    /// Whether the keys of this pass are looked up, and not observed.
    looks_up: bool,
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
    pub(super) const fn new(owned: OwnedFilter<F>) -> Self {
        Self {
            owned,
            tick: None,
            looks_up: false,
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

    pub(super) const fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) const fn is_full(&self) -> bool {
        self.messages.len() >= MESSAGES_PER_PASS
    }

    /// Answers the engine's question for the counts of the partition.
    pub(super) fn report(&mut self, request: ReportRequest) {
        request.answer(&mut self.owned);
    }

    /// Copies messages at the front of a link, up to one that moves the clock, or looks up where
    /// those before observe or the other way round, unless it is the first of the pass.
    pub(super) fn gather(&mut self, index: usize, link: &mut ServerLink) {
        while !self.is_full() {
            let Ok(request) = link.requests.peek(link.gathered) else {
                return;
            };
            // No tick is less than any.
            let differs = request.tick > self.tick || request.looks_up != self.looks_up;
            if differs && !self.is_empty() {
                return;
            }
            self.looks_up = request.looks_up;
            self.tick = self.tick.max(request.tick);
            self.keys.extend_from_slice(request.keys());
            self.messages.push((index, request.keys().len()));
            if link.gathered == 0 {
                self.touched.push(index);
            }
            link.gathered += 1;
        }
    }

    /// Probes the filter with the gathered keys, and pushes the answer to each message with keys
    /// into its link. Does nothing if there are no messages.
    pub(super) fn answer(&mut self, links: &mut LinksByPort) {
        if self.is_empty() {
            return;
        }
        self.verdicts.clear();
        self.verdicts
            .resize(self.keys.len().div_ceil(u64::BITS as usize), 0);
        let keys = &*self.keys;
        let judged = if self.looks_up {
            self.owned.look_up(self.tick, keys, &mut self.verdicts)
        } else {
            let batch = (self.tick).map_or(Batch::new(keys), |tick| Batch::at(keys, tick));
            self.owned.judge(batch, self.tick, &mut self.verdicts)
        };
        self.keys.clear();
        let unknown = judged == Judged::Lost;
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
    }
}
