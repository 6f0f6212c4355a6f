//! How a thread reaches the filter: as a node of a mesh that owns one partition, or in turns at a
//! filter that is not partitioned.
//!
//! Either way the filter handles chunks in the order of their numbers, so the verdicts are those of
//! one thread.

use std::sync::{Arc, OnceLock};
use std::thread;

use echoless::transport::{Doorbell, Parker, Wait};
use echoless::{BuildError, ExchangeError, Filter, Mesh, Node, Partitioned};

use super::chunk_size::ChunkSize;
use super::locked_filter::{LockedFilter, WholeFilter};
use crate::records::chunk::Chunk;

/// A thread's access to the filter, and its way to wait for other threads.
pub(in crate::dedup) trait Worker: Send {
    /// The chunks of so many threads.
    fn chunk_size(threads: usize) -> ChunkSize;

    /// Submits the batches of this thread's next chunk.
    fn submit(&mut self, chunk: &Chunk) -> Result<(), ExchangeError>;

    /// Stores what is known of the verdicts of the oldest submitted chunk in it, and returns
    /// whether that is all. `is_next` is true if all chunks before it are delivered.
    fn poll(&mut self, chunk: &mut Chunk, is_next: bool) -> Result<bool, ExchangeError>;

    /// Waits until [`poll`](Self::poll) may return more of the oldest chunk, or, if the chunk
    /// `is_judged` and poll has returned all, until `is_next` holds: then this thread is
    /// [woken](Self::doorbell). It also returns if it finds that `other` holds, but nothing need
    /// wake it for that.
    fn wait(
        &mut self,
        is_judged: bool,
        is_next: impl FnMut() -> bool,
        other: impl FnMut() -> bool,
    ) -> Result<(), ExchangeError>;

    /// Waits until the condition holds. The thread that makes it true must wake this one by its
    /// [`doorbell`](Self::doorbell) afterwards.
    fn wait_until(&mut self, condition: impl FnMut() -> bool) -> Result<(), ExchangeError>;

    /// Judges a chunk that is not submitted, on the whole filter. No chunk may be under way.
    fn judge_alone(&mut self, chunk: &mut Chunk);

    /// A handle that wakes this thread.
    fn doorbell(&self) -> Doorbell;

    /// Finishes the work of this thread.
    fn finish(self) -> Result<(), ExchangeError>;
}

/// A node of a mesh, which can borrow the partitions of the others.
pub(in crate::dedup) struct MeshWorker<F> {
    node: Node<LockedFilter<F>>,
    whole: WholeFilter<F>,
}

/// A worker for each partition, and the whole filter that they share.
pub(in crate::dedup) fn mesh_workers<F: Filter>(
    parts: Partitioned<F>,
) -> Result<(Vec<MeshWorker<F>>, WholeFilter<F>), BuildError> {
    let (partitioning, filters) = parts.into_parts();
    let filters: Vec<LockedFilter<F>> = filters.into_iter().map(LockedFilter::new).collect();
    let nodes = Mesh::builder(Partitioned::new(partitioning.clone(), filters.clone())?).build()?;
    let whole = WholeFilter::new(partitioning, filters);
    let worker = |node| MeshWorker {
        node,
        whole: whole.clone(),
    };
    Ok((nodes.into_iter().map(worker).collect(), whole))
}

impl<F: Filter> Worker for MeshWorker<F> {
    fn chunk_size(threads: usize) -> ChunkSize {
        ChunkSize::of_mesh(threads)
    }

    fn submit(&mut self, chunk: &Chunk) -> Result<(), ExchangeError> {
        for (number, (tick, keys)) in (chunk.clock.first_batch..).zip(chunk.batches()) {
            self.node.submit_at(number, tick, keys)?;
        }
        Ok(())
    }

    fn poll(&mut self, chunk: &mut Chunk, _is_next: bool) -> Result<bool, ExchangeError> {
        chunk.collect(|verdicts| self.node.poll(verdicts))
    }

    fn wait(
        &mut self,
        is_judged: bool,
        mut is_next: impl FnMut() -> bool,
        mut other: impl FnMut() -> bool,
    ) -> Result<(), ExchangeError> {
        if is_judged {
            self.node.serve_until(|| is_next() || other())
        } else {
            self.node.serve_until_ready(other)
        }
    }

    fn wait_until(&mut self, condition: impl FnMut() -> bool) -> Result<(), ExchangeError> {
        self.node.serve_until(condition)
    }

    fn judge_alone(&mut self, chunk: &mut Chunk) {
        chunk.judge(&mut self.whole);
    }

    fn doorbell(&self) -> Doorbell {
        self.node.doorbell()
    }

    fn finish(self) -> Result<(), ExchangeError> {
        self.node.finish().map(drop)
    }
}

/// One of several threads that share a filter. The one whose chunk is next uses the filter while
/// the others read their chunks.
pub(in crate::dedup) struct SerialWorker<F> {
    number: usize,
    filter: LockedFilter<F>,
    shared: Arc<SharedState>,
    parker: Parker,
    wait: Wait,
}

struct SharedState {
    doorbells: Vec<Doorbell>,
    /// The number of a thread that panicked: its turn never ends.
    gone: OnceLock<usize>,
}

/// `count` workers that share one filter.
pub(in crate::dedup) fn serial_workers<F: Filter>(
    filter: &LockedFilter<F>,
    count: usize,
) -> Vec<SerialWorker<F>> {
    let parkers: Vec<Parker> = (0..count).map(|_| Parker::new()).collect();
    let shared = Arc::new(SharedState {
        doorbells: parkers.iter().map(Parker::doorbell).collect(),
        gone: OnceLock::new(),
    });
    let worker = |(number, parker)| SerialWorker {
        number,
        filter: filter.clone(),
        shared: Arc::clone(&shared),
        parker,
        wait: Wait::auto(count),
    };
    parkers.into_iter().enumerate().map(worker).collect()
}

impl<F: Filter> Worker for SerialWorker<F> {
    fn chunk_size(_threads: usize) -> ChunkSize {
        ChunkSize::IN_TURNS
    }

    fn submit(&mut self, _: &Chunk) -> Result<(), ExchangeError> {
        Ok(())
    }

    fn poll(&mut self, chunk: &mut Chunk, is_next: bool) -> Result<bool, ExchangeError> {
        if is_next {
            // It is delivered at once, so it is judged once.
            chunk.judge(&mut self.filter);
        }
        Ok(is_next)
    }

    fn wait(
        &mut self,
        _is_judged: bool,
        mut is_next: impl FnMut() -> bool,
        mut other: impl FnMut() -> bool,
    ) -> Result<(), ExchangeError> {
        self.wait_until(|| is_next() || other())
    }

    fn wait_until(&mut self, mut condition: impl FnMut() -> bool) -> Result<(), ExchangeError> {
        let gone = &self.shared.gone;
        self.parker
            .wait_until(self.wait, || condition() || gone.get().is_some());
        gone.get()
            .map_or(Ok(()), |peer| Err(ExchangeError::Peer(*peer)))
    }

    fn judge_alone(&mut self, chunk: &mut Chunk) {
        chunk.judge(&mut self.filter);
    }

    fn doorbell(&self) -> Doorbell {
        self.parker.doorbell()
    }

    fn finish(self) -> Result<(), ExchangeError> {
        Ok(())
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

    impl LockedFilter<Brittle> {
        fn count(&self) -> u64 {
            // Its memory grows by a byte with each key.
            self.memory_bytes()
        }
    }

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
            self.0
        }
    }

    fn one_key() -> Chunk {
        let mut chunk = Chunk::default();
        chunk.keys.hashes.push(KeyHash::from_uniform(0));
        chunk.one_batch(0);
        chunk
    }

    #[test]
    fn the_filter_is_used_in_the_turn_of_a_chunk_or_alone() {
        let filter = LockedFilter::new(Brittle(0));
        let mut workers = serial_workers(&filter, 2);
        let mut chunk = one_key();
        assert_eq!(workers[0].poll(&mut chunk, false), Ok(false));
        assert_eq!(filter.count(), 0);
        assert_eq!(workers[0].poll(&mut chunk, true), Ok(true));
        workers[1].judge_alone(&mut chunk);
        assert_eq!(filter.count(), 2);
    }

    #[test]
    fn waiting_ends_when_another_thread_panics() {
        let mut workers = serial_workers(&LockedFilter::new(Brittle(2)), 2);
        let (mut second, mut first) = (workers.pop().unwrap(), workers.pop().unwrap());
        let waiting = thread::spawn(move || second.wait_until(|| false));
        let panicking = thread::spawn(move || first.poll(&mut one_key(), true));
        assert!(panicking.join().is_err());
        assert_eq!(waiting.join().unwrap(), Err(ExchangeError::Peer(0)));
    }
}
