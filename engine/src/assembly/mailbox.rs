//! The mailbox of a worker: ports that come and go enqueue there which rings it has to read.
//!
//! A port that has published messages sets its mark and, if the mark was not set, enqueues its
//! index; the worker clears the mark before it reads the ring. So an index is enqueued once,
//! however many messages were published, and no message is overlooked:
//!
//! ```text
//!   port                                 worker
//!   publish the message                  dequeue an index
//!   was_set = mark.swap(true)            mark.swap(false)
//!   if !was_set: enqueue the index       read the ring
//! ```
//!
//! The two swaps have an order. If the worker's comes later, it synchronises with the port's, and
//! the worker finds the message. If it comes earlier, the port finds no mark and enqueues its index
//! again.
//!
//! The link to a new port is enqueued as well, before the first index of its port, and so is a
//! question of the engine. If the worker is gone, it dequeues nothing, so each side empties the
//! queue after its own step: the sender if it finds the mailbox closed after it enqueued a link or
//! a question, and the worker after it closed the mailbox.

use super::attacher::PortIndex;
use super::live_report::ReportRequest;
use super::server::Attached;
use crate::sync::{Arc, AtomicBool, Ordering, Queue, fence, unmodelled};

/// What a port enqueues for a worker.
#[derive(Debug)]
pub(super) enum Event {
    /// The link of a new port.
    Attach(Box<Attached>),
    /// The ring of the port with this index may hold messages, or is closed.
    Ready(usize),
    /// The engine asks for the counts of the partition.
    Report(Box<ReportRequest>),
}

/// The sender's end of a mailbox.
#[derive(Debug)]
pub(super) struct Mailbox {
    events: Queue<Event>,
    /// The worker is gone.
    closed: AtomicBool,
}

impl Mailbox {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            events: Queue::new(),
            closed: AtomicBool::new(false),
        })
    }

    /// Enqueues the link of a new port, or a question of the engine. Wakes no thread: the worker
    /// needs a link once the port has published a message. If the worker is gone, the event is
    /// dropped, which closes a link and answers a question.
    pub(super) fn post(&self, event: Event) {
        self.events.push(event);
        // SeqCst: pairs with the fence in `Inbox::drop`. Either the worker finds the event there,
        // or this thread reads that it is gone.
        fence(Ordering::SeqCst);
        // Relaxed: the fence orders it.
        if self.closed.load(Ordering::Relaxed) {
            self.empty();
        }
    }

    fn empty(&self) {
        while self.events.pop().is_some() {}
    }
}

/// The worker's end of a mailbox.
#[derive(Debug)]
pub(super) struct Inbox(Arc<Mailbox>);

impl Inbox {
    pub(super) const fn new(mailbox: Arc<Mailbox>) -> Self {
        Self(mailbox)
    }

    pub(super) fn take(&self) -> Option<Event> {
        self.0.events.pop()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.events.is_empty()
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // Relaxed and SeqCst: see `Mailbox::post`.
        self.0.closed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.0.empty();
    }
}

/// Set while the index of a port is in the mailbox, or the worker is about to read its ring.
#[derive(Debug)]
pub(super) struct ReadyMark(AtomicBool);

impl ReadyMark {
    /// Sets the mark, and returns whether it was set.
    pub(super) fn set(&self) -> bool {
        // AcqRel: pairs with `clear`. Release for the messages that were published before.
        self.0.swap(true, Ordering::AcqRel)
    }

    /// Clears the mark. Messages that were published before it was set are visible then.
    pub(super) fn clear(&self) {
        // AcqRel: pairs with `set`. A swap and not a store: it must read what `set` wrote to
        // synchronise with it.
        self.0.swap(false, Ordering::AcqRel);
    }
}

/// A port's way into the mailbox of one worker.
#[derive(Debug)]
pub(super) struct Notifier {
    mailbox: Arc<Mailbox>,
    mark: Arc<ReadyMark>,
    index: unmodelled::Arc<PortIndex>,
}

impl Notifier {
    pub(super) fn new(mailbox: Arc<Mailbox>, index: unmodelled::Arc<PortIndex>) -> Self {
        Self {
            mailbox,
            mark: Arc::new(ReadyMark(AtomicBool::new(false))),
            index,
        }
    }

    /// The mark that the worker clears.
    pub(super) fn mark(&self) -> Arc<ReadyMark> {
        Arc::clone(&self.mark)
    }

    /// Enqueues the index of the port for what it has published or closed. Does not wake the
    /// worker.
    pub(super) fn notify(&self) {
        if !self.mark.set() {
            self.mailbox.events.push(Event::Ready(self.index.get()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly::attacher::PortIndices;

    #[test]
    fn a_port_is_in_the_mailbox_once() {
        let mailbox = Mailbox::new();
        let inbox = Inbox::new(Arc::clone(&mailbox));
        let indices = unmodelled::Arc::new(PortIndices::default());
        let notifier = Notifier::new(Arc::clone(&mailbox), indices.take());
        for _ in 0..2 {
            notifier.notify();
            notifier.notify();
            assert!(matches!(inbox.take(), Some(Event::Ready(0))));
            assert!(inbox.is_empty());
            notifier.mark().clear();
        }
    }
}
