//! The worker half: the owner of one partition, its links to all ports, and the order in which it
//! applies messages.
//!
//! A [pass](Pass) gathers all messages that are due into one array of keys; probes the filter
//! once for the whole array; and cuts the verdict bits into one answer for each message:
//!
//! ```text
//!   link 0: [a b c] [d]   link 1: [e f]
//!   keys:     a b c   d   e f            one pass, with lines prefetched across messages
//!   verdicts: 0 1 0   0   1 0            one bit for each key
//!   answers:  link 0 <- 0b010, link 0 <- 0b0, link 1 <- 0b01
//! ```
//!
//! A message with a later tick than the clock ends the pass: the keys before it are judged at the
//! clock as it is, and the next pass begins with the new tick.
//!
//! A pass in which the filter panics has changed the state of the server already, and its keys have
//! no verdicts. The server therefore goes on without the filter, and answers every message of this
//! and later passes with *unknown*, until the partition is replaced. No panic of a filter unwinds
//! through the server.
//!
//! Messages apply in the order of their arrival, from ports that come and go. Any number of ports may
//! be idle, so the server does not poll their rings. A port that has published messages enqueues its
//! index in the [mailbox](super::mailbox), and the server keeps a queue of the links that may hold
//! some:
//!
//! ```text
//!   mailbox:  attach link 7   ready 3   ready 7
//!   due:      3 7                          read in this order, up to a pass of messages each
//!   links:    0 . 2 3 . . . 7              by the index of the port; the links of ports that are
//!                                          gone are removed
//! ```

use std::collections::VecDeque;

use crate::assembly::attacher::PortIndex;
use crate::assembly::live_report::ReportRequest;
use crate::assembly::mailbox::{Event, Inbox, ReadyMark};
use crate::assembly::owned::{Judged, OwnedFilter};
use crate::assembly::rings::{Answer, Request};
use crate::filters::{Batch, Filter};
use crate::hash::KeyHash;
use crate::sync::{Arc, check, unmodelled};
use crate::transport::{Consumer, PopError, Producer};
use crate::verdicts::bits_of_words;

/// The owner of one partition of an engine.
#[derive(Debug)]
pub(super) struct ArrivalServer<F> {
    /// The first field: if the thread unwinds, the loss is set before the links close.
    pass: Pass<F>,
    inbox: Inbox,
    links: LinksByPort,
    /// The links that may hold messages or be closed.
    due: VecDeque<usize>,
    /// No new message is accepted.
    closed: bool,
}

impl<F: Filter> ArrivalServer<F> {
    /// A server that gets its links through the mailbox.
    pub(super) fn new(owned: OwnedFilter<F>, inbox: Inbox) -> Self {
        Self {
            pass: Pass::new(owned),
            inbox,
            links: LinksByPort::default(),
            due: VecDeque::new(),
            closed: false,
        }
    }

    /// The filter, or the message of its panic if the partition is lost.
    pub(super) fn into_filter(self) -> Result<F, String> {
        self.pass.into_filter()
    }

    /// Applies and answers messages, in one pass through the filter. Returns false if there was
    /// none.
    pub(super) fn serve(&mut self) -> bool {
        self.take_mail();
        for _ in 0..self.due.len() {
            let Some(index) = self.due.pop_front() else {
                break;
            };
            self.gather_from(index);
            if self.pass.is_full() {
                break;
            }
        }
        let served = !self.pass.is_empty();
        self.pass.answer(&mut self.links);
        served
    }

    /// Whether [`serve`](Self::serve) may find something to do. This is the condition that the
    /// worker parks on.
    pub(super) fn is_ready(&self) -> bool {
        !self.due.is_empty() || !self.inbox.is_empty()
    }

    /// Closes all rings to new messages, and accepts no further link. Messages that are in the
    /// rings already, or being pushed at this moment, can still be applied.
    pub(super) fn close(&mut self) {
        self.take_mail();
        self.closed = true;
        self.due.clear();
        for (index, slot) in self.links.0.iter_mut().enumerate() {
            if let Some(attached) = slot {
                attached.link.requests.close();
                self.due.push_back(index);
            }
        }
    }

    /// Takes what is in the mailbox: new links, links that may hold messages, and questions.
    pub(super) fn take_mail(&mut self) {
        while let Some(event) = self.inbox.take() {
            match event {
                // Dropped, which closes it: new ports must not keep a worker from its end.
                Event::Attach(_) if self.closed => {}
                Event::Attach(attached) => {
                    let index = attached.index.get();
                    let links = &mut self.links.0;
                    if links.len() <= index {
                        links.resize_with(index + 1, || None);
                    }
                    links[index] = Some(*attached);
                }
                // If the port is gone, its index has no link, or that of a newer port. Reading that
                // ring once more does no harm.
                Event::Ready(index) => self.due.push_back(index),
                Event::Report(request) => self.pass.report(*request),
            }
        }
    }

    /// Gathers the messages of a link, as far as they fit in the pass. It stays due while it has
    /// more, and is removed when its port is gone.
    fn gather_from(&mut self, index: usize) {
        let Some(slot) = self.links.0.get_mut(index) else {
            return;
        };
        let Some(Attached { link, mark, .. }) = slot else {
            return;
        };
        // Before the ring is read: for a message that is missed now, the index is enqueued again.
        mark.clear();
        self.pass.gather(index, link);
        let front = link.requests.peek(link.gathered).map(drop);
        match front {
            Err(PopError::Empty) => {}
            // A link is removed after the pass in which its last messages are answered.
            Err(PopError::Closed) if link.gathered == 0 => *slot = None,
            Ok(()) | Err(PopError::Closed) => {
                // If the port has just set the mark itself, the mailbox has its index already.
                if !mark.set() {
                    self.due.push_back(index);
                }
            }
        }
    }
}

/// The limit of messages in one pass, 4096 keys. After a pass the thread checks its stop flag, its
/// port and the other links again.
const MESSAGES_PER_PASS: usize = 64;

/// The filter of a partition and the messages of the current pass.
#[derive(Debug)]
struct Pass<F> {
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
    const fn new(owned: OwnedFilter<F>) -> Self {
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
    fn into_filter(self) -> Result<F, String> {
        self.owned.into_filter()
    }

    const fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    const fn is_full(&self) -> bool {
        self.messages.len() >= MESSAGES_PER_PASS
    }

    /// Answers the engine's question for the counts of the partition.
    fn report(&mut self, request: ReportRequest) {
        request.answer(&mut self.owned);
    }

    /// Copies messages at the front of a link, up to one that moves the clock, or looks up where
    /// those before observe or the other way round, unless it is the first of the pass.
    fn gather(&mut self, index: usize, link: &mut ServerLink) {
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
    fn answer(&mut self, links: &mut LinksByPort) {
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

/// The server's ends of the rings from and to one port.
#[derive(Debug)]
pub(super) struct ServerLink {
    requests: Consumer<Request>,
    answers: Producer<Answer>,
    /// How many messages at the front of `requests` belong to the current pass. They are released
    /// only when their answers are ready.
    gathered: usize,
    /// The answers of the current pass, in the order of the messages.
    answers_of_pass: Vec<Answer>,
}

impl ServerLink {
    pub(super) const fn new(requests: Consumer<Request>, answers: Producer<Answer>) -> Self {
        Self {
            requests,
            answers,
            gathered: 0,
            answers_of_pass: Vec::new(),
        }
    }

    /// Releases the messages of the current pass, and pushes their answers.
    fn answer(&mut self) {
        // First, so that the wake for the answers covers this room, too.
        self.requests.release_without_notify(self.gathered);
        self.gathered = 0;
        if self.answers_of_pass.is_empty() {
            // No thread waits for an answer, but the port may wait for room.
            self.answers.hint();
            return;
        }
        let count = self.answers_of_pass.len();
        // The port never has more requests unanswered than `answers` has slots, so this fails only
        // if the port is gone.
        let pushed = self.answers.push_batch(self.answers_of_pass.drain(..));
        check!(pushed == Ok(count) || self.answers.is_closed());
    }
}

/// A link on its way to its server.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) link: ServerLink,
    pub(super) mark: Arc<ReadyMark>,
    /// Keeps the index from other ports while the link exists.
    pub(super) index: unmodelled::Arc<PortIndex>,
}

/// The links by the index of their port.
#[derive(Debug, Default)]
struct LinksByPort(Vec<Option<Attached>>);

impl LinksByPort {
    /// The link of a gathered message.
    fn link(&mut self, index: usize) -> &mut ServerLink {
        let slot = self.0[index].as_mut();
        &mut slot
            .expect("a link stays while its messages are in a pass")
            .link
    }
}
