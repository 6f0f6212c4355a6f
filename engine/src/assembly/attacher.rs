//! Ports of a running engine: they attach at any time, from any thread.

use super::loss::LossPolicy;
use super::mailbox::{Event, Mailbox, Notifier};
use super::port::Port;
use super::rings::{Owner, RingOptions, link_pair};
use super::server::Attached;
use super::status::Status;
use crate::error::BuildError;
use crate::partition::Partitioning;
use crate::sync::{Arc, unmodelled, unpoisoned};
use crate::transport::{Doorbell, Parker};

/// Makes ports of a running engine. Clones make ports of the same engine, and every thread may hold
/// one.
///
/// # Examples
/// A thread for each client, with a port of its own as long as it lives.
/// ```
/// use echoless::{Engine, FingerprintSpec, KeyHasher, Verdicts};
/// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
/// let (engine, _) = Engine::builder(halves).build()?;
/// let duplicates: u64 = std::thread::scope(|scope| {
///     let client = |_| {
///         let attacher = engine.attacher();
///         scope.spawn(move || {
///             let mut port = attacher.attach().expect("memory for the rings");
///             let mut verdicts = Verdicts::new();
///             let key = KeyHasher::seeded(0).hash(b"call 17");
///             port.observe(&[key], &mut verdicts).map(|()| verdicts.count_duplicates())
///         })
///     };
///     let clients: Vec<_> = (0..3).map(client).collect();
///     clients.into_iter().map(|client| client.join().unwrap()).sum::<Result<u64, _>>()
/// })?;
/// assert_eq!(duplicates, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Attacher {
    engine: unmodelled::Arc<Attachable>,
}

/// What a port of an engine is built from.
#[derive(Debug)]
struct Attachable {
    partitioning: Partitioning,
    workers: Vec<AttachableWorker>,
    rings: RingOptions,
    policy: LossPolicy,
    indices: unmodelled::Arc<PortIndices>,
}

/// A worker as ports and the engine reach it.
#[derive(Debug)]
pub(super) struct AttachableWorker {
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) doorbell: Doorbell,
    pub(super) status: Arc<Status>,
}

impl Attacher {
    pub(super) fn new(
        partitioning: Partitioning,
        workers: Vec<AttachableWorker>,
        rings: RingOptions,
        policy: LossPolicy,
    ) -> Self {
        Self {
            engine: unmodelled::Arc::new(Attachable {
                partitioning,
                workers,
                rings,
                policy,
                indices: unmodelled::Arc::default(),
            }),
        }
    }

    /// A new port. It costs the memory of its rings, a pair for each worker; see
    /// [`EngineBuilder::ring_depth`](super::EngineBuilder::ring_depth). All of it is free again
    /// when the port is dropped and the workers have seen that. Wakes no thread and does not block.
    ///
    /// If the engine was shut down or dropped, or this process is a fork of the one that built it,
    /// the port exists, and rejects every batch with [`ExchangeError`](crate::ExchangeError).
    ///
    /// # Errors
    /// [`BuildError`] if the machine lacks the memory.
    pub fn attach(&self) -> Result<Port, BuildError> {
        let engine = &*self.engine;
        let ports = engine.indices.used() + 1;
        let depth = engine.rings.checked_depth(1, ports, engine.workers.len())?;
        self.attach_with(depth)
    }

    /// The first ports of an engine, `count` of them.
    ///
    /// # Errors
    /// As [`attach`](Self::attach), for all of them together; or if the depth of rings is invalid.
    pub(super) fn attach_first(&self, count: usize) -> Result<Vec<Port>, BuildError> {
        let engine = &*self.engine;
        let depth = engine
            .rings
            .checked_depth(count, count, engine.workers.len())?;
        (0..count).map(|_| self.attach_with(depth)).collect()
    }

    /// The workers, in the order of their partitions.
    pub(super) fn workers(&self) -> &[AttachableWorker] {
        &self.engine.workers
    }

    /// A port with rings of this depth.
    fn attach_with(&self, depth: usize) -> Result<Port, BuildError> {
        let engine = &*self.engine;
        let index = engine.indices.take();
        let parker = Parker::new();
        let mut links = Vec::new();
        for (partition, worker) in engine.workers.iter().enumerate() {
            let owner = Owner {
                partition,
                status: Arc::clone(&worker.status),
                doorbell: worker.doorbell.clone(),
            };
            let (mut to_worker, link) = link_pair(depth, &parker, owner)?;
            let mailbox = Arc::clone(&worker.mailbox);
            let notifier = Notifier::new(mailbox, unmodelled::Arc::clone(&index));
            let attached = Attached {
                link,
                mark: notifier.mark(),
                index: unmodelled::Arc::clone(&index),
            };
            to_worker.set_notifier(notifier);
            // In a fork there is no worker, and its mailbox may be half written.
            if !worker.status.is_forked() {
                worker.mailbox.post(Event::Attach(Box::new(attached)));
            }
            links.push(to_worker);
        }
        let wait = engine.rings.wait_with_clients(engine.workers.len());
        Ok(Port::new(
            engine.partitioning.clone(),
            links,
            parker,
            wait,
            engine.policy,
        ))
    }
}

/// The indices of the ports of an engine: small numbers, used again once a port and all of its
/// links are gone.
#[derive(Debug, Default)]
pub(super) struct PortIndices(unmodelled::Mutex<IndexPool>);

#[derive(Debug, Default)]
struct IndexPool {
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
        let mut pool = self.lock();
        let index = pool.free.pop().unwrap_or_else(|| {
            pool.count += 1;
            pool.count - 1
        });
        unmodelled::Arc::new(PortIndex {
            index,
            indices: unmodelled::Arc::clone(self),
        })
    }

    /// The number of indices in use.
    pub(super) fn used(&self) -> usize {
        let pool = self.lock();
        pool.count - pool.free.len()
    }

    fn lock(&self) -> unmodelled::MutexGuard<'_, IndexPool> {
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

#[cfg(test)]
mod tests {
    use std::thread::yield_now;

    use super::*;
    use crate::{Engine, FingerprintSpec, KeyHash, Verdicts};

    #[test]
    fn indices_of_dropped_ports_are_free_again() {
        let halves = FingerprintSpec::new(1 << 16).build_partitions(2).unwrap();
        let (engine, mut ports) = Engine::builder(halves).build().unwrap();
        let used = || engine.attacher().engine.indices.used();
        let mut verdicts = Verdicts::new();
        for _ in 0..3 {
            let mut more: Vec<_> = (0..100).map(|_| engine.attach().unwrap()).collect();
            assert_eq!(used(), 101);
            for port in more.iter_mut().step_by(2) {
                port.observe(&[KeyHash(1), KeyHash(u64::MAX)], &mut verdicts)
                    .unwrap();
            }
            drop(more);
            // The workers see it when they run the next time.
            while used() > 1 {
                yield_now();
            }
        }
        let engine_works = ports[0].observe(&[KeyHash(1)], &mut verdicts);
        assert_eq!((engine_works, verdicts.count_duplicates()), (Ok(()), 1));
    }

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
}
