//! The order of the batches at one partition: which ticket is next, who waits for its turn, and
//! which tickets were dropped without a batch.
//!
//! ```text
//!   tickets       0    1    2    3    4    5    6
//!                 applied   |    |    |    dropped
//!                           |    |    waits
//!                           |    waits
//!                           next: has the partition, or is still to come
//!
//!   next = 2      waiting = [(3, doorbell), (4, doorbell)]      dropped = {5}
//! ```
//!
//! The thread whose turn ends wakes the one thread that is next, and no other: with many threads,
//! waking all of them for each turn would take longer than the turns.
//!
//! **No wake-up is lost.** `next` changes only under the lock of the queue. A thread that finds
//! another number in `next` enters the queue, and only then begins to wait, by the protocol of
//! [`Parker`]: it tests `next` again before it blocks. If `next` becomes its number before it is in
//! the queue, that test finds it; if after, the thread that ends the turn finds it in the queue.

use std::collections::BTreeSet;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, unpoisoned};
use crate::transport::{Doorbell, Parker, Wait};

/// The turns of the tickets at one partition.
#[derive(Debug)]
pub(super) struct Turns {
    /// The ticket whose turn it is. Padded, because waiting threads read it again and again, while
    /// the queue is written.
    next: CachePadded<AtomicU64>,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// The tickets that wait, in any order: at most one for each thread. Those below `next` are
    /// left over from threads that found their turn before they were woken.
    waiting: Vec<(u64, Doorbell)>,
    /// The tickets from `next` on that were dropped.
    dropped: BTreeSet<u64>,
}

/// The turn of a ticket. It ends when this is dropped, also by a panic.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    ticket: u64,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self {
            next: CachePadded::new(AtomicU64::new(0)),
            queue: Mutex::default(),
        }
    }

    /// Blocks until all lower tickets had their turns.
    pub(super) fn wait_for(&self, ticket: u64, parker: &mut Parker, wait: Wait) -> Turn<'_> {
        if !self.is_next(ticket) {
            self.lock().waiting.push((ticket, parker.doorbell()));
            parker.wait_until(wait, || self.is_next(ticket));
        }
        Turn {
            turns: self,
            ticket,
        }
    }

    /// Leaves out the turn of a ticket, unless it had it. Does not block.
    pub(super) fn skip(&self, ticket: u64) {
        let mut queue = self.lock();
        // Relaxed: it changes only under the lock.
        let next = self.next.load(Ordering::Relaxed);
        // Below it if a panic ended the turn.
        if ticket >= next {
            queue.dropped.insert(ticket);
        }
        if ticket == next {
            self.advance(queue, next);
        }
    }

    fn is_next(&self, ticket: u64) -> bool {
        // Acquire: pairs with the Release in `advance`, so the thread whose turn it is locks the
        // content of the partition after the thread before it.
        self.next.load(Ordering::Acquire) == ticket
    }

    /// Gives the turn to the first ticket from `ticket` on that was not dropped, and wakes the
    /// thread that waits with it.
    fn advance(&self, mut queue: MutexGuard<'_, Queue>, mut ticket: u64) {
        while queue.dropped.remove(&ticket) {
            ticket += 1;
        }
        // Release: pairs with the Acquire in `is_next`.
        self.next.store(ticket, Ordering::Release);
        let mut woken = None;
        queue.waiting.retain(|(waiting, doorbell)| {
            if *waiting == ticket {
                woken = Some(doorbell.clone());
            }
            *waiting > ticket
        });
        // Without the lock, which the woken thread may need next.
        drop(queue);
        if let Some(doorbell) = woken {
            doorbell.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        unpoisoned(self.queue.lock())
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.advance(self.turns.lock(), self.ticket + 1);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn dropped_tickets_are_left_out() {
        let turns = Turns::new();
        let mut parker = Parker::new();
        for ticket in [5, 1, 2, 0, 1] {
            turns.skip(ticket);
        }
        for ticket in [3, 4, 6] {
            // Would block if the turn were that of another ticket.
            drop(turns.wait_for(ticket, &mut parker, Wait::Shared));
        }
        assert!(turns.is_next(7));
        assert!(turns.lock().dropped.is_empty());
    }

    #[test]
    fn the_queue_keeps_no_thread_that_had_its_turn() {
        let turns = Turns::new();
        let parker = Parker::new();
        for ticket in [1, 2, 3] {
            turns.lock().waiting.push((ticket, parker.doorbell()));
        }
        for ticket in 0..3 {
            turns.skip(ticket);
        }
        assert!(turns.lock().waiting.is_empty());
    }
}
