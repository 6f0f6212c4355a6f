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
//! A thread spins for its turn, and enters the queue only before it parks. The thread whose turn
//! ends wakes the one thread that is next, and no other: with many threads, waking all of them for
//! each turn would take longer than the turns. While no thread is parked and no ticket was dropped,
//! the queue is empty, and a turn that ends writes nothing but `next`: between two cores, each
//! further cache line that is written takes as long as tens of keys.
//!
//! **No wake-up and no dropped ticket is lost.** Each side writes, fences and then reads what the
//! other side wrote, as in [`Parker`]:
//!
//! ```text
//!   waits with ticket t, or drops it               ends the turn of ticket t - 1
//!   Q1  lock; queue; has_entries = true            E1  next = t
//!   Q2  fence(SeqCst)                              E2  fence(SeqCst)
//!   Q3  next == t? -> its turn, or leave it out    E3  has_entries? -> lock; settle
//! ```
//!
//! If Q2 comes before E2 in the order of all SeqCst fences, E3 reads the `true` of Q1, or the
//! `false` of a thread that has settled the entry since; if E2 comes before Q2, Q3 reads the `t` of
//! E1. For a thread that waits, Q2 and Q3 are P2 and P3 of its parker.
//!
//! Two threads may both settle the queue. That is the same as one of them, because it is done under
//! the lock, by the `next` that is read there: `next` is changed by the thread with that ticket, or
//! by one that holds the lock if the ticket was dropped, so by one of them only. A thread that
//! settles may wake another one for a `next` that a third thread has stored: it has read that
//! `next` before it wakes, so a parker that read an earlier one was parked before.

use std::collections::BTreeSet;
use std::time::Instant;

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering, fence, unpoisoned};
use crate::transport::{Attention, Doorbell, Parker, Wait};

/// The turns of the tickets at one partition.
#[derive(Debug)]
pub(super) struct Turns {
    /// The ticket whose turn it is. Padded, because waiting threads read it again and again, while
    /// the queue is written.
    next: CachePadded<AtomicU64>,
    /// The queue may have entries that a turn must settle when it ends. Written under the lock.
    has_entries: AtomicBool,
    queue: Mutex<TurnQueue>,
}

#[derive(Debug, Default)]
struct TurnQueue {
    /// The tickets of threads that park, in any order: at most one for each thread. Those below
    /// `next` are left over from threads that found their turn before they were woken.
    waiting: Vec<(u64, Doorbell)>,
    /// The tickets from `next` on that were dropped.
    dropped: BTreeSet<u64>,
}

/// The turn of a ticket. It ends when this is dropped, also by a panic.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    ticket: u64,
    has_ended: bool,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self {
            next: CachePadded::new(AtomicU64::new(0)),
            has_entries: AtomicBool::new(false),
            queue: Mutex::default(),
        }
    }

    /// Blocks until all lower tickets had their turns, or, without a turn, until the deadline.
    pub(super) fn wait_for(
        &self,
        ticket: u64,
        deadline: Option<Instant>,
        parker: &mut Parker,
        wait: Wait,
    ) -> Option<Turn<'_>> {
        let mut attention = || (!self.is_next(ticket)).then_some(Attention::Wakes);
        if !self.is_next(ticket) && !parker.spin_while(wait, &mut attention) {
            self.enter(|queue| queue.waiting.push((ticket, parker.doorbell())));
            if !parker.park_while(deadline, wait, attention) {
                // The next wait enters again. If the turn comes now, that one finds it.
                self.enter(|queue| queue.waiting.retain(|(waiting, _)| *waiting != ticket));
                return None;
            }
        }
        Some(Turn {
            turns: self,
            ticket,
            has_ended: false,
        })
    }

    /// Leaves out the turn of a ticket, which was not taken. Does not block.
    pub(super) fn skip(&self, ticket: u64) {
        self.enter(|queue| {
            queue.dropped.insert(ticket);
        });
        // Q2. SeqCst: pairs with the fence in the drop of `Turn`.
        fence(Ordering::SeqCst);
        self.settle();
    }

    fn is_next(&self, ticket: u64) -> bool {
        // Acquire: pairs with the Release in `Turn::end` and `settle`, so the thread whose turn it
        // is locks the content of the partition after the thread before it.
        self.next.load(Ordering::Acquire) == ticket
    }

    /// Q1.
    fn enter(&self, with: impl FnOnce(&mut TurnQueue)) {
        let mut queue = self.lock();
        with(&mut queue);
        // Relaxed: the fences order it.
        self.has_entries.store(true, Ordering::Relaxed);
    }

    /// Leaves out the dropped tickets that are next, and wakes the thread that waits with the one
    /// behind them.
    #[cold]
    fn settle(&self) {
        let mut queue = self.lock();
        // Acquire, and Release below: the thread whose turn it becomes is ordered behind the one
        // whose turn has ended.
        let mut next = self.next.load(Ordering::Acquire);
        while queue.dropped.remove(&next) {
            next += 1;
            self.next.store(next, Ordering::Release);
        }
        let mut woken = None;
        queue.waiting.retain(|(waiting, doorbell)| {
            if *waiting == next {
                woken = Some(doorbell.clone());
            }
            *waiting > next
        });
        let is_empty = queue.waiting.is_empty() && queue.dropped.is_empty();
        // Relaxed: under the lock, as in `enter`.
        self.has_entries.store(!is_empty, Ordering::Relaxed);
        // Without the lock, which the woken thread may need next.
        drop(queue);
        if let Some(doorbell) = woken {
            doorbell.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, TurnQueue> {
        unpoisoned(self.queue.lock())
    }
}

impl Turn<'_> {
    /// E1: gives the turn to the next ticket. A thread that parks for it is woken only when this is
    /// dropped: the fence takes as long as `next` takes to another core, unless the thread does
    /// something else in between.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
        // Release: pairs with the Acquire in `is_next`.
        self.turns.next.store(self.ticket + 1, Ordering::Release);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end();
        }
        // E2. SeqCst: pairs with the fences in `skip` and in `Parker::park_unless`.
        fence(Ordering::SeqCst);
        // E3. Relaxed: the fence above orders it.
        if self.turns.has_entries.load(Ordering::Relaxed) {
            self.turns.settle();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_tickets_are_left_out() {
        let turns = Turns::new();
        let mut parker = Parker::new();
        for ticket in [5, 1, 2, 0] {
            turns.skip(ticket);
        }
        assert!(turns.is_next(3));
        for ticket in [3, 4, 6] {
            // Would block if the turn were that of another ticket.
            drop(turns.wait_for(ticket, None, &mut parker, Wait::Shared));
        }
        assert!(turns.is_next(7));
        assert!(turns.lock().dropped.is_empty());
        assert!(!turns.has_entries.load(Ordering::Relaxed));
    }

    #[test]
    fn a_wait_that_times_out_leaves_nothing_and_takes_no_turn() {
        let turns = Turns::new();
        let mut parker = Parker::new();
        for _ in 0..2 {
            let turn = turns.wait_for(1, Some(Instant::now()), &mut parker, Wait::Shared);
            assert!(turn.is_none());
            assert!(turns.lock().waiting.is_empty());
        }
        drop(turns.wait_for(0, None, &mut parker, Wait::Shared));
        let turn = turns.wait_for(1, Some(Instant::now()), &mut parker, Wait::Shared);
        assert!(turn.is_some());
        drop(turn);
        assert!(!turns.has_entries.load(Ordering::Relaxed));
    }

    #[test]
    fn the_queue_keeps_no_thread_that_had_its_turn() {
        let turns = Turns::new();
        let parker = Parker::new();
        for ticket in [1, 2, 3] {
            turns.enter(|queue| queue.waiting.push((ticket, parker.doorbell())));
        }
        for ticket in 0..3 {
            turns.skip(ticket);
        }
        assert!(turns.lock().waiting.is_empty());
        assert!(!turns.has_entries.load(Ordering::Relaxed));
    }
}
