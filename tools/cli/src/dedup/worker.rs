//! How a thread reaches the filter: as a node of a mesh that owns one partition, or in turns at a
//! filter that is not partitioned.
//!
//! Either way the filter handles chunks in the order of their numbers, so the verdicts are those of
//! one thread.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use echoless::transport::{Doorbell, Parker, Wait};
use echoless::{ExchangeError, Filter, Node};

use crate::records::chunk::Chunk;

/// A thread's access to the filter, and its way to wait for other threads.
pub(super) trait Worker: Send {
    type Filter: Filter;

    /// Submits the batches of this thread's next chunk.
    fn submit(&mut self, chunk: &Chunk) -> Result<(), ExchangeError>;

    /// Stores the verdicts of the oldest submitted chunk in it, and waits until `is_next` holds:
    /// the chunk is then the next one to deliver.
    fn observe(
        &mut self,
        chunk: &mut Chunk,
        is_next: impl FnMut() -> bool,
    ) -> Result<(), ExchangeError>;

    /// Waits until the condition holds. The thread that makes it true must ring the
    /// [`doorbell`](Self::doorbell) afterwards.
    fn wait_until(&mut self, condition: impl FnMut() -> bool) -> Result<(), ExchangeError>;

    /// A handle that wakes this thread.
    fn doorbell(&self) -> Doorbell;

    /// Finishes the work of this thread. Returns its part of the filter, if it owns one.
    fn finish(self) -> Result<Option<Self::Filter>, ExchangeError>;
}

impl<F: Filter> Worker for Node<F> {
    type Filter = F;

    fn submit(&mut self, chunk: &Chunk) -> Result<(), ExchangeError> {
        for (number, (tick, keys)) in (chunk.first_batch..).zip(chunk.batches()) {
            self.submit_at(number, tick, keys)?;
        }
        Ok(())
    }

    fn observe(
        &mut self,
        chunk: &mut Chunk,
        is_next: impl FnMut() -> bool,
    ) -> Result<(), ExchangeError> {
        chunk.collect(|verdicts| self.drain(verdicts).map(|_| ()))?;
        self.serve_until(is_next)
    }

    fn wait_until(&mut self, condition: impl FnMut() -> bool) -> Result<(), ExchangeError> {
        self.serve_until(condition)
    }

    fn doorbell(&self) -> Doorbell {
        Self::doorbell(self)
    }

    fn finish(self) -> Result<Option<F>, ExchangeError> {
        Self::finish(self).map(Some)
    }
}

/// One of several threads that share a filter. The one whose chunk is next uses the filter while
/// the others read their chunks.
pub(super) struct SerialWorker<F> {
    number: usize,
    shared: Arc<SharedState<F>>,
    parker: Parker,
    wait: Wait,
}

struct SharedState<F> {
    filter: Mutex<F>,
    doorbells: Vec<Doorbell>,
    /// The number of a thread that panicked: its turn never ends.
    gone: OnceLock<usize>,
}

/// `count` workers that share one filter.
pub(super) fn serial_workers<F: Filter>(filter: F, count: usize) -> Vec<SerialWorker<F>> {
    let parkers: Vec<Parker> = (0..count).map(|_| Parker::new()).collect();
    let shared = Arc::new(SharedState {
        filter: Mutex::new(filter),
        doorbells: parkers.iter().map(Parker::doorbell).collect(),
        gone: OnceLock::new(),
    });
    let worker = |(number, parker)| SerialWorker {
        number,
        shared: Arc::clone(&shared),
        parker,
        wait: Wait::auto(count + 1),
    };
    parkers.into_iter().enumerate().map(worker).collect()
}

impl<F: Filter> Worker for SerialWorker<F> {
    type Filter = F;

    fn submit(&mut self, _: &Chunk) -> Result<(), ExchangeError> {
        Ok(())
    }

    fn observe(
        &mut self,
        chunk: &mut Chunk,
        is_next: impl FnMut() -> bool,
    ) -> Result<(), ExchangeError> {
        self.wait_until(is_next)?;
        // Never blocks: the other threads lock only in their turns.
        let mut filter = (self.shared.filter.lock()).unwrap_or_else(PoisonError::into_inner);
        chunk.judge(&mut *filter);
        Ok(())
    }

    fn wait_until(&mut self, mut condition: impl FnMut() -> bool) -> Result<(), ExchangeError> {
        let gone = &self.shared.gone;
        self.parker
            .wait_until(self.wait, || condition() || gone.get().is_some());
        gone.get()
            .map_or(Ok(()), |peer| Err(ExchangeError::Peer(*peer)))
    }

    fn doorbell(&self) -> Doorbell {
        self.parker.doorbell()
    }

    /// Returns the filter to the last thread that finishes.
    fn finish(self) -> Result<Option<F>, ExchangeError> {
        let shared = Arc::clone(&self.shared);
        drop(self);
        let shared = Arc::into_inner(shared);
        Ok(shared
            .map(|shared| (shared.filter.into_inner()).unwrap_or_else(PoisonError::into_inner)))
    }
}

impl<F> Drop for SerialWorker<F> {
    fn drop(&mut self) {
        if thread::panicking() && self.shared.gone.set(self.number).is_ok() {
            for doorbell in &self.shared.doorbells {
                doorbell.wake();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use echoless::KeyHash;

    use super::*;

    /// Counts the keys it observes, and panics on the third.
    struct Brittle(u64);

    impl Filter for Brittle {
        fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
            duplicates.fill(0);
            self.0 += keys.len() as u64;
            assert!(self.0 < 3, "expected by this test");
        }

        fn contains(&self, _key: KeyHash) -> bool {
            false
        }

        fn clear(&mut self) {}

        fn memory_bytes(&self) -> u64 {
            0
        }
    }

    fn observe_one_key(worker: &mut SerialWorker<Brittle>) -> Result<(), ExchangeError> {
        let mut chunk = Chunk::default();
        chunk.hashes.push(KeyHash::from_uniform(0));
        chunk.one_batch(0);
        worker.observe(&mut chunk, || true)
    }

    #[test]
    fn the_last_to_finish_gets_the_filter() {
        let mut workers = serial_workers(Brittle(0), 2);
        for worker in &mut workers {
            observe_one_key(worker).unwrap();
        }
        let mut left = workers.into_iter().map(|worker| worker.finish().unwrap());
        assert!(left.next().unwrap().is_none());
        assert_eq!(left.next().unwrap().unwrap().0, 2);
    }

    #[test]
    fn waiting_ends_when_another_thread_panics() {
        let mut workers = serial_workers(Brittle(2), 2);
        let (mut second, mut first) = (workers.pop().unwrap(), workers.pop().unwrap());
        let waiting = thread::spawn(move || second.wait_until(|| false));
        let panicking = thread::spawn(move || observe_one_key(&mut first));
        assert!(panicking.join().is_err());
        assert_eq!(waiting.join().unwrap(), Err(ExchangeError::Peer(0)));
    }
}
