//! A thread's way to the filter: a node of a mesh that owns one partition, or a turn at the one filter that cannot be cut.
//!
//! Either way chunks are judged in the order of their numbers, so the verdicts are those of one thread.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use echoless::transport::{Doorbell, Sleeper, Wait};
use echoless::{Filter, KeyHash, Lost, Node};

use super::chunk::Chunk;

/// What a thread needs of the filter, and of the other threads while it waits.
pub(super) trait Seat: Send {
    type Filter: Filter;

    /// Takes note of the next chunk of this thread.
    fn hand_in(&mut self, number: u64, keys: &[KeyHash]) -> Result<(), Lost>;

    /// Judges the oldest chunk that was handed in, and waits for its turn to be delivered.
    fn judge(&mut self, chunk: &mut Chunk, is_turn: impl FnMut() -> bool) -> Result<(), Lost>;

    /// Waits until the condition holds. Whoever makes it true rings the [`doorbell`](Self::doorbell).
    fn wait_until(&mut self, condition: impl FnMut() -> bool) -> Result<(), Lost>;

    /// Wakes this thread.
    fn doorbell(&self) -> Doorbell;

    /// Ends the work of this thread, which nothing else is left to; gives back its part of the filter, if it has one.
    fn leave(self) -> Result<Option<Self::Filter>, Lost>;
}

impl<F: Filter> Seat for Node<F> {
    type Filter = F;

    fn hand_in(&mut self, number: u64, keys: &[KeyHash]) -> Result<(), Lost> {
        self.submit(number, keys)
    }

    fn judge(&mut self, chunk: &mut Chunk, is_turn: impl FnMut() -> bool) -> Result<(), Lost> {
        self.drain(&mut chunk.verdicts)?;
        self.serve_until(is_turn)
    }

    fn wait_until(&mut self, condition: impl FnMut() -> bool) -> Result<(), Lost> {
        self.serve_until(condition)
    }

    fn doorbell(&self) -> Doorbell {
        Self::doorbell(self)
    }

    fn leave(self) -> Result<Option<F>, Lost> {
        self.finish().map(Some)
    }
}

/// One of several threads that share a filter: whose turn it is judges its chunk, the others read theirs meanwhile.
pub(super) struct TurnSeat<F> {
    number: usize,
    table: Arc<Table<F>>,
    sleeper: Sleeper,
    wait: Wait,
}

struct Table<F> {
    filter: Mutex<F>,
    doorbells: Vec<Doorbell>,
    /// A thread that panicked: its turn never ends.
    gone: OnceLock<usize>,
}

/// So many seats at one filter.
pub(super) fn in_turn<F: Filter>(filter: F, count: usize) -> Vec<TurnSeat<F>> {
    let sleepers: Vec<Sleeper> = (0..count).map(|_| Sleeper::new()).collect();
    let table = Arc::new(Table {
        filter: Mutex::new(filter),
        doorbells: sleepers.iter().map(Sleeper::doorbell).collect(),
        gone: OnceLock::new(),
    });
    let seat = |(number, sleeper)| TurnSeat {
        number,
        table: Arc::clone(&table),
        sleeper,
        wait: Wait::auto(count),
    };
    sleepers.into_iter().enumerate().map(seat).collect()
}

impl<F: Filter> Seat for TurnSeat<F> {
    type Filter = F;

    fn hand_in(&mut self, _number: u64, _keys: &[KeyHash]) -> Result<(), Lost> {
        Ok(())
    }

    fn judge(&mut self, chunk: &mut Chunk, is_turn: impl FnMut() -> bool) -> Result<(), Lost> {
        self.wait_until(is_turn)?;
        // Nobody else has the turn, so nobody has the lock.
        let mut filter = (self.table.filter.lock()).unwrap_or_else(PoisonError::into_inner);
        filter.observe(&chunk.hashes, &mut chunk.verdicts);
        Ok(())
    }

    fn wait_until(&mut self, mut condition: impl FnMut() -> bool) -> Result<(), Lost> {
        let gone = &self.table.gone;
        self.sleeper
            .wait_until(self.wait, || condition() || gone.get().is_some());
        gone.get().map_or(Ok(()), |peer| Err(Lost::Peer(*peer)))
    }

    fn doorbell(&self) -> Doorbell {
        self.sleeper.doorbell()
    }

    /// The last to leave has the filter.
    fn leave(self) -> Result<Option<F>, Lost> {
        let table = Arc::clone(&self.table);
        drop(self);
        let table = Arc::into_inner(table);
        Ok(table.map(|table| (table.filter.into_inner()).unwrap_or_else(PoisonError::into_inner)))
    }
}

impl<F> Drop for TurnSeat<F> {
    fn drop(&mut self) {
        if thread::panicking() && self.table.gone.set(self.number).is_ok() {
            for doorbell in &self.table.doorbells {
                doorbell.ring();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts the keys it has judged, and panics on the third.
    struct Brittle(u64);

    impl Filter for Brittle {
        fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
            duplicates.fill(0);
            self.0 += keys.len() as u64;
            assert!(self.0 < 3, "as this test wants it");
        }

        fn contains(&self, _key: KeyHash) -> bool {
            false
        }

        fn clear(&mut self) {}

        fn memory_bytes(&self) -> u64 {
            0
        }
    }

    fn judge_one_key(seat: &mut TurnSeat<Brittle>) -> Result<(), Lost> {
        let mut chunk = Chunk::default();
        chunk.hashes.push(KeyHash(0));
        seat.judge(&mut chunk, || true)
    }

    #[test]
    fn the_last_to_leave_has_the_filter() {
        let mut seats = in_turn(Brittle(0), 2);
        for seat in &mut seats {
            judge_one_key(seat).unwrap();
        }
        let mut left = seats.into_iter().map(|seat| seat.leave().unwrap());
        assert!(left.next().unwrap().is_none());
        assert_eq!(left.next().unwrap().unwrap().0, 2);
    }

    #[test]
    fn nobody_waits_for_a_thread_that_panicked() {
        let mut seats = in_turn(Brittle(2), 2);
        let (mut second, mut first) = (seats.pop().unwrap(), seats.pop().unwrap());
        let waiting = thread::spawn(move || second.wait_until(|| false));
        let panicking = thread::spawn(move || judge_one_key(&mut first));
        assert!(panicking.join().is_err());
        assert_eq!(waiting.join().unwrap(), Err(Lost::Peer(0)));
    }
}
