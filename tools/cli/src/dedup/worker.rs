//! A thread's way to the filter: a node of a mesh that owns one partition, or a turn at the one filter that cannot be cut.
//!
//! Either way chunks are judged in the order of their numbers, so the verdicts are those of one thread.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use echoless::transport::{Doorbell, Parker, Wait};
use echoless::{Disconnected, Filter, KeyHash, Node};

use crate::records::chunk::Chunk;

/// What a thread needs of the filter, and of the other threads while it waits.
pub(super) trait Worker: Send {
    type Filter: Filter;

    /// Takes note of the next chunk of this thread.
    fn hand_in(&mut self, number: u64, keys: &[KeyHash]) -> Result<(), Disconnected>;

    /// Judges the oldest chunk that was handed in, and waits for its turn to be delivered.
    fn judge(
        &mut self,
        chunk: &mut Chunk,
        is_turn: impl FnMut() -> bool,
    ) -> Result<(), Disconnected>;

    /// Waits until the condition holds. Whoever makes it true rings the [`doorbell`](Self::doorbell).
    fn wait_until(&mut self, condition: impl FnMut() -> bool) -> Result<(), Disconnected>;

    /// Wakes this thread.
    fn doorbell(&self) -> Doorbell;

    /// Ends the work of this thread, which nothing else is left to; gives back its part of the filter, if it has one.
    fn leave(self) -> Result<Option<Self::Filter>, Disconnected>;
}

impl<F: Filter> Worker for Node<F> {
    type Filter = F;

    fn hand_in(&mut self, number: u64, keys: &[KeyHash]) -> Result<(), Disconnected> {
        self.submit(number, keys)
    }

    fn judge(
        &mut self,
        chunk: &mut Chunk,
        is_turn: impl FnMut() -> bool,
    ) -> Result<(), Disconnected> {
        self.drain(&mut chunk.verdicts)?;
        self.serve_until(is_turn)
    }

    fn wait_until(&mut self, condition: impl FnMut() -> bool) -> Result<(), Disconnected> {
        self.serve_until(condition)
    }

    fn doorbell(&self) -> Doorbell {
        Self::doorbell(self)
    }

    fn leave(self) -> Result<Option<F>, Disconnected> {
        self.finish().map(Some)
    }
}

/// One of several threads that share a filter: whose turn it is judges its chunk, the others read theirs meanwhile.
pub(super) struct SerialWorker<F> {
    number: usize,
    table: Arc<SharedState<F>>,
    parker: Parker,
    wait: Wait,
}

struct SharedState<F> {
    filter: Mutex<F>,
    doorbells: Vec<Doorbell>,
    /// A thread that panicked: its turn never ends.
    gone: OnceLock<usize>,
}

/// So many workers at one filter.
pub(super) fn serial_workers<F: Filter>(filter: F, count: usize) -> Vec<SerialWorker<F>> {
    let parkers: Vec<Parker> = (0..count).map(|_| Parker::new()).collect();
    let table = Arc::new(SharedState {
        filter: Mutex::new(filter),
        doorbells: parkers.iter().map(Parker::doorbell).collect(),
        gone: OnceLock::new(),
    });
    let worker = |(number, parker)| SerialWorker {
        number,
        table: Arc::clone(&table),
        parker,
        wait: Wait::auto(count),
    };
    parkers.into_iter().enumerate().map(worker).collect()
}

impl<F: Filter> Worker for SerialWorker<F> {
    type Filter = F;

    fn hand_in(&mut self, _number: u64, _keys: &[KeyHash]) -> Result<(), Disconnected> {
        Ok(())
    }

    fn judge(
        &mut self,
        chunk: &mut Chunk,
        is_turn: impl FnMut() -> bool,
    ) -> Result<(), Disconnected> {
        self.wait_until(is_turn)?;
        // Nobody else has the turn, so nobody has the lock.
        let mut filter = (self.table.filter.lock()).unwrap_or_else(PoisonError::into_inner);
        filter.observe(&chunk.hashes, &mut chunk.verdicts);
        Ok(())
    }

    fn wait_until(&mut self, mut condition: impl FnMut() -> bool) -> Result<(), Disconnected> {
        let gone = &self.table.gone;
        self.parker
            .wait_until(self.wait, || condition() || gone.get().is_some());
        gone.get()
            .map_or(Ok(()), |peer| Err(Disconnected::Peer(*peer)))
    }

    fn doorbell(&self) -> Doorbell {
        self.parker.doorbell()
    }

    /// The last to leave has the filter.
    fn leave(self) -> Result<Option<F>, Disconnected> {
        let table = Arc::clone(&self.table);
        drop(self);
        let table = Arc::into_inner(table);
        Ok(table.map(|table| (table.filter.into_inner()).unwrap_or_else(PoisonError::into_inner)))
    }
}

impl<F> Drop for SerialWorker<F> {
    fn drop(&mut self) {
        if thread::panicking() && self.table.gone.set(self.number).is_ok() {
            for doorbell in &self.table.doorbells {
                doorbell.wake();
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

    fn judge_one_key(worker: &mut SerialWorker<Brittle>) -> Result<(), Disconnected> {
        let mut chunk = Chunk::default();
        chunk.hashes.push(KeyHash(0));
        worker.judge(&mut chunk, || true)
    }

    #[test]
    fn the_last_to_leave_has_the_filter() {
        let mut workers = serial_workers(Brittle(0), 2);
        for worker in &mut workers {
            judge_one_key(worker).unwrap();
        }
        let mut left = workers.into_iter().map(|worker| worker.leave().unwrap());
        assert!(left.next().unwrap().is_none());
        assert_eq!(left.next().unwrap().unwrap().0, 2);
    }

    #[test]
    fn nobody_waits_for_a_thread_that_panicked() {
        let mut workers = serial_workers(Brittle(2), 2);
        let (mut second, mut first) = (workers.pop().unwrap(), workers.pop().unwrap());
        let waiting = thread::spawn(move || second.wait_until(|| false));
        let panicking = thread::spawn(move || judge_one_key(&mut first));
        assert!(panicking.join().is_err());
        assert_eq!(waiting.join().unwrap(), Err(Disconnected::Peer(0)));
    }
}
