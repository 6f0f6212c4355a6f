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
//! The link to a new port is enqueued as well, before the first index of its port. If the worker is
//! gone, it dequeues nothing, so each side empties the queue after its own step: the sender if it
//! finds the mailbox closed after it enqueued a link, and the worker after it closed the mailbox.

use super::server::Attached;
use crate::sync::{Arc, AtomicBool, Ordering, Queue, fence, unmodelled, unpoisoned};

/// What a port enqueues for a worker.
#[derive(Debug)]
pub(super) enum Event {
    /// The link of a new port.
    Attach(Box<Attached>),
    /// The ring of the port with this index may hold messages, or is closed.
    Ready(usize),
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

    /// Enqueues the link of a new port. Wakes no thread: the worker needs the link once the port
    /// has published a message. If the worker is gone, the link is dropped, which closes it.
    pub(super) fn attach(&self, attached: Box<Attached>) {
        self.events.push(Event::Attach(attached));
        // SeqCst: pairs with the fence in `Inbox::drop`. Either the worker finds the link there, or
        // this thread reads that it is gone.
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
        // Relaxed and SeqCst: see `Mailbox::attach`.
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

/// The indices of the ports of an engine: small numbers, used again once a port and all of its
/// links are gone.
#[derive(Debug, Default)]
pub(super) struct PortIndices(unmodelled::Mutex<Indices>);

#[derive(Debug, Default)]
struct Indices {
    free: Vec<usize>,
    /// How many indices there are.
    count: usize,
}

/// The index of a port. It is free again when the last owner drops it.
#[derive(Debug)]
pub(super) struct PortIndex {
    index: usize,
    indices: unmodelled::Arc<PortIndices>,
}

impl PortIndices {
    /// An index that no other port has.
    pub(super) fn take(self: &unmodelled::Arc<Self>) -> unmodelled::Arc<PortIndex> {
        let mut indices = self.lock();
        let index = indices.free.pop().unwrap_or_else(|| {
            indices.count += 1;
            indices.count - 1
        });
        unmodelled::Arc::new(PortIndex {
            index,
            indices: unmodelled::Arc::clone(self),
        })
    }

    /// The number of indices in use.
    pub(super) fn used(&self) -> usize {
        let indices = self.lock();
        indices.count - indices.free.len()
    }

    fn lock(&self) -> unmodelled::MutexGuard<'_, Indices> {
        unpoisoned(self.0.lock())
    }
}

impl PortIndex {
    pub(super) const fn get(&self) -> usize {
        self.index
    }
}

impl Drop for PortIndex {
    fn drop(&mut self) {
        self.indices.lock().free.push(self.index);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_used_again_once_its_last_owner_is_gone() {
        let indices = unmodelled::Arc::new(PortIndices::default());
        let (first, second) = (indices.take(), indices.take());
        let link = unmodelled::Arc::clone(&first);
        assert_eq!((first.get(), second.get(), indices.used()), (0, 1, 2));
        drop(first);
        assert_eq!(indices.take().get(), 2);
        drop(link);
        assert_eq!(indices.used(), 1);
        let mut again = [indices.take(), indices.take()].map(|index| index.get());
        again.sort_unstable();
        assert_eq!(again, [0, 2]);
    }

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
