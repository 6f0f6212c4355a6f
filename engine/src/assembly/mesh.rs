//! A mesh: every thread is an ingest thread and a worker at once. It routes its own batches, and
//! serves its peers while it waits.

use super::link::PortLink;
use super::port::{BatchNumber, Port, WhileWaiting};
use super::rings::RingOptions;
use super::server::{Order, PartitionServer};
use crate::error::{BuildError, Disconnected};
use crate::filters::Filter;
use crate::hash::KeyHash;
use crate::partition::{Partitioned, Partitioning};
use crate::transport::{Doorbell, Parker, Wait};
use crate::verdicts::Verdicts;

/// The options of a [`Mesh`]; see [`Mesh::builder`].
///
/// # Examples
/// ```
/// use echoless::{FingerprintSpec, Mesh, transport::Wait};
/// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
/// let mesh = Mesh::builder(halves).ring_depth(64).wait(Wait::Shared).build()?;
/// assert_eq!(mesh.len(), 2);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug)]
pub struct MeshBuilder<F> {
    filter: Partitioned<F>,
    rings: RingOptions,
}

/// The nodes of a mesh, one for each partition of a filter, before they are moved to their threads.
///
/// Iterate over it, or take [`into_nodes`](Self::into_nodes), and move each [`Node`] to a thread of
/// its own.
#[derive(Debug)]
pub struct Mesh<F> {
    partitioning: Partitioning,
    nodes: Vec<Node<F>>,
}

impl<F: Filter> Mesh<F> {
    /// A builder of a mesh with a node for each partition of `filter`.
    #[must_use]
    pub fn builder(filter: Partitioned<F>) -> MeshBuilder<F> {
        MeshBuilder {
            filter,
            rings: RingOptions::default(),
        }
    }
}

impl<F> Mesh<F> {
    /// The number of nodes, and so of partitions.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Always false: a filter has at least one partition.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The map from keys to the nodes that own their partitions.
    #[must_use]
    pub const fn partitioning(&self) -> &Partitioning {
        &self.partitioning
    }

    /// The nodes, in the order of their partitions.
    #[must_use]
    pub fn into_nodes(self) -> Vec<Node<F>> {
        self.nodes
    }
}

impl<F> IntoIterator for Mesh<F> {
    type Item = Node<F>;
    type IntoIter = std::vec::IntoIter<Node<F>>;

    fn into_iter(self) -> Self::IntoIter {
        self.nodes.into_iter()
    }
}

impl<F: Filter> MeshBuilder<F> {
    /// The depth of each ring in messages of up to 64 keys: a power of two. The default is that of
    /// an [engine](crate::EngineBuilder::ring_depth).
    #[must_use]
    pub const fn ring_depth(mut self, messages: usize) -> Self {
        self.rings.depth = Some(messages);
        self
    }

    /// How nodes wait. The default is [`Wait::auto`] for the number of nodes.
    #[must_use]
    pub const fn wait(mut self, wait: Wait) -> Self {
        self.rings.wait = Some(wait);
        self
    }

    /// Connects the nodes. Starts no thread.
    ///
    /// # Errors
    /// [`BuildError`] if the ring depth is not a power of two, or the machine lacks the memory for
    /// the rings.
    pub fn build(self) -> Result<Mesh<F>, BuildError> {
        let (partitioning, filters) = self.filter.into_parts();
        let wait = self.rings.wait_among(filters.len());
        // A node has one parker for both halves: it is woken for answers to its port and for
        // requests to its server.
        let parkers: Vec<Parker> = filters.iter().map(|_| Parker::new()).collect();
        let (port_links, server_links) = self.rings.connect(&parkers, &parkers)?;
        let parts = filters
            .into_iter()
            .zip(port_links)
            .zip(server_links)
            .zip(parkers);
        let nodes = parts
            .map(|(((filter, port_links), server_links), parker)| Node {
                port: Port::new(partitioning.clone(), port_links, parker, wait),
                server: PartitionServer::new(filter, server_links, Order::Numbered),
                last: None,
            })
            .collect();
        Ok(Mesh {
            partitioning,
            nodes,
        })
    }
}

/// One thread's share of a mesh: a port to every partition, and one partition of its own.
///
/// The batches of all nodes are numbered together, from 0 without gaps, and the numbers of each
/// node rise. Every partition applies the batches in the order of their numbers, so the verdicts
/// equal those of the undivided filter. Peers block until a node calls one of its methods again;
/// while it waits for something else, it can serve them in [`serve_until`](Self::serve_until).
///
/// # Examples
/// ```
/// use echoless::{FingerprintSpec, KeyHasher, Mesh, Verdicts};
/// let mesh = Mesh::builder(FingerprintSpec::new(1 << 20).build_partitions(2)?).build()?;
/// let hasher = KeyHasher::seeded(0);
/// let keys = [b"a", b"b", b"c"].map(|key| hasher.hash(key));
/// // Both nodes submit the same three keys: they are fresh in batch 0.
/// let duplicates: Vec<u64> = std::thread::scope(|scope| {
///     let run = |(number, mut node): (usize, echoless::Node<_>)| {
///         scope.spawn(move || {
///             let mut verdicts = Verdicts::new();
///             node.observe(number as u64, &keys, &mut verdicts).unwrap();
///             node.finish().unwrap();
///             verdicts.count_duplicates()
///         })
///     };
///     let threads: Vec<_> = mesh.into_iter().enumerate().map(run).collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).collect()
/// });
/// assert_eq!(duplicates, [0, 3]);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Node<F> {
    port: Port,
    server: PartitionServer<F>,
    /// The number of the last submitted batch.
    last: Option<u64>,
}

impl<F: Filter> WhileWaiting for PartitionServer<F> {
    fn work(&mut self) -> Result<bool, Disconnected> {
        self.serve()
    }

    fn has_work(&self) -> bool {
        self.is_ready()
    }
}

impl<F: Filter> Node<F> {
    /// Submits the batch with this number; [`drain`](Self::drain) or [`poll`](Self::poll) returns
    /// its verdicts later. Serves peers while it blocks for room in the rings. The number of
    /// batches in flight is unlimited.
    ///
    /// # Errors
    /// [`Disconnected`] if a peer is gone without [`finish`](Self::finish), the number that is due
    /// was skipped, or a number was used twice; every later call then returns an error as well. A
    /// number that is not greater than the last one of this node is [`Disconnected::Repeated`],
    /// too, but that call has no effect.
    ///
    /// # Panics
    /// If the batch has 2^32 keys or more.
    ///
    /// # Examples
    /// The next batch is submitted while the verdicts of earlier ones are in flight; a single node
    /// may submit all batches.
    /// ```
    /// use echoless::{FingerprintSpec, KeyHasher, Mesh, Verdicts};
    /// let halves = FingerprintSpec::new(1 << 20).build_partitions(2)?;
    /// let mut nodes = Mesh::builder(halves).build()?.into_nodes();
    /// let idle = nodes.pop().unwrap();
    /// let mut busy = nodes.pop().unwrap();
    /// let mut duplicates = 0;
    /// std::thread::scope(|scope| {
    ///     // Serves its partition until the other node finishes.
    ///     scope.spawn(|| idle.finish().unwrap());
    ///     let mut verdicts = Verdicts::new();
    ///     for number in 0..10 {
    ///         let keys: Vec<_> = (0..100).map(|key| KeyHasher::seeded(0).hash_u64(key)).collect();
    ///         busy.submit(number, &keys)?;
    ///         while busy.poll(&mut verdicts)? {
    ///             duplicates += verdicts.count_duplicates();
    ///         }
    ///     }
    ///     while busy.drain(&mut verdicts)? {
    ///         duplicates += verdicts.count_duplicates();
    ///     }
    ///     busy.finish()
    /// })?;
    /// assert_eq!(duplicates, 900);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit(&mut self, number: u64, keys: &[KeyHash]) -> Result<(), Disconnected> {
        self.submit_at(number, 0, keys)
    }

    /// As [`submit`](Self::submit), at a tick: every partition moves its clock to `tick` before it
    /// judges the keys; see [`Filter::advance_to`].
    ///
    /// Partitions apply ticks in the order of the batch numbers, as the undivided filter would. A
    /// stream has one clock: the tick of a batch is the largest event time of it and of all batches
    /// of lower numbers. An earlier tick has no effect, like the tick 0.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    ///
    /// # Panics
    /// As [`submit`](Self::submit).
    pub fn submit_at(
        &mut self,
        number: u64,
        tick: u64,
        keys: &[KeyHash],
    ) -> Result<(), Disconnected> {
        self.port.check_connected()?;
        if self.last.is_some_and(|last| number <= last) {
            return Err(Disconnected::Repeated(number));
        }
        self.last = Some(number);
        self.port
            .submit_while_serving(BatchNumber::Number(number), tick, keys, &mut self.server)
    }

    /// Serves peers until the verdicts of the oldest batch in flight are complete, writes them to
    /// `verdicts` and returns true. Returns false if no batch is in flight.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn drain(&mut self, verdicts: &mut Verdicts) -> Result<bool, Disconnected> {
        self.port.drain_while_serving(verdicts, &mut self.server)
    }

    /// Serves peers once. Then writes the verdicts of the oldest batch [in flight](Self::in_flight)
    /// to `verdicts` and returns true, if they are complete. Returns false if they are not complete
    /// yet, or no batch is in flight.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn poll(&mut self, verdicts: &mut Verdicts) -> Result<bool, Disconnected> {
        // The port keeps the error, and returns it after the verdicts that are complete.
        self.port.work(&mut self.server).ok();
        self.port.poll(verdicts)
    }

    /// How many batches were submitted and their verdicts not yet returned.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.port.in_flight()
    }

    /// Submits the batch with this number, and serves peers until its verdicts are complete.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    ///
    /// # Panics
    /// If other batches are in flight, or the batch has 2^32 keys or more.
    pub fn observe(
        &mut self,
        number: u64,
        keys: &[KeyHash],
        verdicts: &mut Verdicts,
    ) -> Result<(), Disconnected> {
        self.port.check_idle()?;
        self.submit(number, keys)?;
        self.drain(verdicts).map(|_| ())
    }

    /// Serves peers until the condition holds. The thread that makes the condition true must wake
    /// this node's [`doorbell`](Self::doorbell) afterwards.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    ///
    /// # Examples
    /// ```
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use echoless::{FingerprintSpec, Mesh};
    /// let mesh = Mesh::builder(FingerprintSpec::new(1 << 20).build_partitions(1)?).build()?;
    /// let mut node = mesh.into_nodes().remove(0);
    /// let (has_input, doorbell) = (AtomicBool::new(false), node.doorbell());
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         has_input.store(true, Ordering::Release);
    ///         doorbell.wake();
    ///     });
    ///     node.serve_until(|| has_input.load(Ordering::Acquire))
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn serve_until(&mut self, mut condition: impl FnMut() -> bool) -> Result<(), Disconnected> {
        self.port.check_connected()?;
        while !condition() {
            if !self.port.work(&mut self.server)? {
                self.port.wait_for_answers(&self.server, |_| condition());
                self.port.collect()?;
            }
        }
        Ok(())
    }

    /// Wakes this node from [`serve_until`](Self::serve_until).
    #[must_use]
    pub fn doorbell(&self) -> Doorbell {
        self.port.doorbell()
    }

    /// Announces that this node submits no more batches, serves its peers until all of them finish,
    /// and returns the filter of its partition.
    ///
    /// On success, all batches of this node are recorded in all partitions. Verdicts that were not
    /// returned before are dropped.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn finish(mut self) -> Result<F, Disconnected> {
        self.port.check_connected()?;
        self.port.send_finish(&mut self.server)?;
        // That all peers finished is not enough: one may have panicked after that, before it
        // applied this node's last batches.
        let finished = |server: &PartitionServer<F>, links: &[PortLink]| {
            server.is_finished() && links.iter().all(PortLink::is_answered)
        };
        while !finished(&self.server, self.port.links()) {
            if !self.port.work(&mut self.server)? {
                let server = &self.server;
                self.port
                    .wait_for_answers(server, |links| finished(server, links));
                self.port.collect()?;
            }
        }
        Ok(self.server.into_filter())
    }
}
