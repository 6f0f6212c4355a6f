//! How ports that come and go reach a worker that waits: they announce themselves in its mailbox.
//!
//! A port that has sent messages marks itself as announced and, if it was not, puts its index into
//! the mailbox; the worker takes the mark away before it reads the ring. So an index is in the
//! mailbox once, however many messages were sent, and no message is overlooked:
//!
//! ```text
//!   port                                     worker
//!   publish the message                      take an index from the mailbox
//!   was set = announced.swap(true)           announced.swap(false)
//!   if not: put the index in the mailbox     read the ring
//! ```
//!
//! The two swaps have an order. If the worker's comes later, it synchronizes with the port's, and
//! the worker finds the message. If it comes earlier, the port finds no mark and announces itself
//! again.
//!
//! A link to a new port comes through the mailbox as well, before the first announcement of its
//! port. If the worker is gone, nobody takes it out, so whoever comes second drops it: the sender
//! looks whether the worker is gone after it put the link in, and the worker empties the mailbox
//! after it said that it goes.

use super::server::Attached;
use crate::sync::{Arc, AtomicBool, Ordering, Queue, fence, unmodelled};

/// What a port says to a worker.
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

    /// Sends the link of a new port. Wakes nobody: the worker needs it once the port has sent a
    /// message. If the worker is gone, the link is dropped, which closes it.
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

/// Whether a port is in the mailbox, or about to be looked at.
#[derive(Debug)]
pub(super) struct Announced(AtomicBool);

impl Announced {
    /// Sets the mark, and returns whether it was set.
    pub(super) fn set(&self) -> bool {
        // AcqRel: pairs with `clear`. Release for the messages that were published before.
        self.0.swap(true, Ordering::AcqRel)
    }

    /// Takes the mark away. Messages of every announcement before it are visible then.
    pub(super) fn clear(&self) {
        // AcqRel: pairs with `set`. A swap, because a store would end the release sequence of the
        // announcements before it.
        self.0.swap(false, Ordering::AcqRel);
    }
}

/// A port's way into the mailbox of one worker.
#[derive(Debug)]
pub(super) struct Announcer {
    mailbox: Arc<Mailbox>,
    announced: Arc<Announced>,
    index: unmodelled::Arc<PortIndex>,
}

impl Announcer {
    pub(super) fn new(mailbox: Arc<Mailbox>, index: unmodelled::Arc<PortIndex>) -> Self {
        Self {
            mailbox,
            announced: Arc::new(Announced(AtomicBool::new(false))),
            index,
        }
    }

    /// The mark that the worker takes away.
    pub(super) fn announced(&self) -> Arc<Announced> {
        Arc::clone(&self.announced)
    }

    /// Announces what was published before. The worker may stay parked until it is woken.
    pub(super) fn announce(&self) {
        if !self.announced.set() {
            self.mailbox.events.push(Event::Ready(self.index.get()));
        }
    }
}

/// The indices of the ports of an engine: small numbers, used again once a port and all of its links
/// are gone.
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

    fn lock(&self) -> std::sync::MutexGuard<'_, Indices> {
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
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
        let announcer = Announcer::new(Arc::clone(&mailbox), indices.take());
        for _ in 0..2 {
            announcer.announce();
            announcer.announce();
            assert!(matches!(inbox.take(), Some(Event::Ready(0))));
            assert!(inbox.is_empty());
            announcer.announced().clear();
        }
    }
}
