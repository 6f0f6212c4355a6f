//! The server of a worker of an engine: it applies messages in the order of their arrival, from
//! ports that come and go.
//!
//! Any number of ports may be idle, so the server does not poll their rings. A port that has
//! published messages enqueues its index in the [mailbox](super::super::mailbox), and the server
//! keeps a queue of the links that may hold some:
//!
//! ```text
//!   mailbox:  attach link 7   ready 3   ready 7
//!   due:      3 7                          read in this order, up to a pass of messages each
//!   links:    0 . 2 3 . . . 7              by the index of the port; the links of ports that are
//!                                          gone are removed
//! ```

use std::collections::VecDeque;

use super::link::{Attached, LinksByPort};
use super::pass::Pass;
use crate::assembly::mailbox::{Event, Inbox};
use crate::assembly::owned::OwnedFilter;
use crate::filters::Filter;
use crate::transport::PopError;

/// The owner of one partition of an engine.
#[derive(Debug)]
pub(in crate::assembly) struct ArrivalServer<F> {
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
    pub(in crate::assembly) fn new(owned: OwnedFilter<F>, inbox: Inbox) -> Self {
        Self {
            pass: Pass::new(owned),
            inbox,
            links: LinksByPort::default(),
            due: VecDeque::new(),
            closed: false,
        }
    }

    /// The filter, or the message of its panic if the partition is lost.
    pub(in crate::assembly) fn into_filter(self) -> Result<F, String> {
        self.pass.into_filter()
    }

    /// Applies and answers messages, in one pass through the filter. Returns false if there was
    /// none.
    pub(in crate::assembly) fn serve(&mut self) -> bool {
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
    pub(in crate::assembly) fn is_ready(&self) -> bool {
        !self.due.is_empty() || !self.inbox.is_empty()
    }

    /// Closes all rings to new messages, and accepts no further link. Messages that are in the
    /// rings already, or being pushed at this moment, can still be applied.
    pub(in crate::assembly) fn close(&mut self) {
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
    pub(in crate::assembly) fn take_mail(&mut self) {
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
