//! Every thread is ingest and worker in one: it routes its own batches, and serves its peers while it waits.

use super::link::PortLink;
use super::port::{BatchNumber, Port, WhileWaiting};
use super::rings::Rings;
use super::server::{Order, PartitionServer};
use crate::error::{BuildError, Disconnected};
use crate::filters::Filter;
use crate::hash::KeyHash;
use crate::partition::Partitioned;
use crate::transport::{Doorbell, Parker, Wait};
use crate::verdicts::Verdicts;

/// How a mesh is set up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mesh {
    rings: Rings,
}

impl Mesh {
    /// A mesh with default rings, whose nodes wait as the number of cores suggests.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many messages of up to 64 keys fit in each ring: a power of two; unless given, as for an
    /// [engine](crate::EngineBuilder::ring_depth).
    #[must_use]
    pub const fn ring_depth(mut self, messages: usize) -> Self {
        self.rings.depth = Some(messages);
        self
    }

    /// How nodes wait.
    #[must_use]
    pub const fn wait(mut self, wait: Wait) -> Self {
        self.rings.wait = Some(wait);
        self
    }

    /// One node for each partition; each is to be moved to a thread of its own.
    ///
    /// # Errors
    /// [`BuildError`] if the ring depth is no power of two or the memory for the rings is not granted.
    pub fn nodes<F: Filter>(self, filter: Partitioned<F>) -> Result<Vec<Node<F>>, BuildError> {
        let (partitioning, filters) = filter.into_parts();
        let wait = self.rings.wait_among(filters.len());
        let parkers: Vec<Parker> = filters.iter().map(|_| Parker::new()).collect();
        let (port_links, server_links) = self.rings.connect(&parkers, &parkers)?;
        let parts = filters
            .into_iter()
            .zip(port_links)
            .zip(server_links)
            .zip(parkers);
        Ok(parts
            .map(|(((filter, port_links), server_links), parker)| Node {
                port: Port::new(partitioning.clone(), port_links, parker, wait),
                server: PartitionServer::new(filter, server_links, Order::Numbered),
                last: None,
            })
            .collect())
    }
}

/// One thread's share of a mesh: a port to every partition, and one partition of its own.
///
/// All batches of all nodes are numbered from 0 without gaps, each node's numbers rise, and every partition applies them in that
/// order; so the verdicts are those of the undivided filter. A node must come back to one of its calls for its peers to go on; while it
/// waits for something else, it can do so in [`serve_until`](Self::serve_until).
///
/// # Examples
/// ```
/// use echoless::{FingerprintSpec, KeyHasher, Mesh, Verdicts};
/// let nodes = Mesh::new().nodes(FingerprintSpec::new(1 << 20).build_partitions(2)?)?;
/// let hasher = KeyHasher::seeded(0);
/// let keys = [b"a", b"b", b"c"].map(|key| hasher.hash(key));
/// // Both nodes bring the same three keys: batch 0 has them first.
/// let duplicates: Vec<u64> = std::thread::scope(|scope| {
///     let run = |(number, mut node): (usize, echoless::Node<_>)| {
///         scope.spawn(move || {
///             let mut verdicts = Verdicts::new();
///             node.observe(number as u64, &keys, &mut verdicts).unwrap();
///             node.finish().unwrap();
///             verdicts.count_duplicates()
///         })
///     };
///     let threads: Vec<_> = nodes.into_iter().enumerate().map(run).collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).collect()
/// });
/// assert_eq!(duplicates, [0, 3]);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Node<F> {
    port: Port,
    server: PartitionServer<F>,
    /// The number of the batch that was submitted last.
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
    /// Hands in the batch of this number; its verdicts come from [`drain`](Self::drain) or [`poll`](Self::poll). Serves peers where it has
    /// to wait. Verdicts are kept until they are taken, however many there are.
    ///
    /// # Errors
    /// [`Disconnected`] if a peer is gone without [`finish`](Self::finish), a number that is due was left out, or one came twice; from then on every
    /// call says so. A number that is not above the last one of this node is [`Disconnected::Repeated`], too, but that call alone has no effect.
    ///
    /// # Panics
    /// If the batch has 2^32 keys or more.
    ///
    /// # Examples
    /// While the verdicts of one batch are on their way, the next is handed in; one node may bring all there is.
    /// ```
    /// use echoless::{FingerprintSpec, KeyHasher, Mesh, Verdicts};
    /// let mut nodes = Mesh::new().nodes(FingerprintSpec::new(1 << 20).build_partitions(2)?)?;
    /// let idle = nodes.pop().unwrap();
    /// let mut busy = nodes.pop().unwrap();
    /// let mut duplicates = 0;
    /// std::thread::scope(|scope| {
    ///     // It serves its partition until the other one is through.
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
        self.port.check_whole()?;
        if self.last.is_some_and(|last| number <= last) {
            return Err(Disconnected::Repeated(number));
        }
        self.last = Some(number);
        self.port
            .submit_while_serving(BatchNumber::Number(number), keys, &mut self.server)
    }

    /// The verdicts of the oldest batch that was submitted and not taken, serving peers until they are complete; false if there is
    /// none.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn drain(&mut self, verdicts: &mut Verdicts) -> Result<bool, Disconnected> {
        self.port.drain_while_serving(verdicts, &mut self.server)
    }

    /// The verdicts of the oldest batch that was submitted and not taken, if they are complete; true if they were. False if they are not
    /// yet, or nothing is [in flight](Self::in_flight). Serves peers once.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn poll(&mut self, verdicts: &mut Verdicts) -> Result<bool, Disconnected> {
        // An error comes from the port, after the verdicts that are complete.
        self.port.work(&mut self.server).ok();
        self.port.poll(verdicts)
    }

    /// How many batches were submitted and not taken.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.port.in_flight()
    }

    /// Hands in the batch of this number and waits for its verdicts, serving peers meanwhile.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    ///
    /// # Panics
    /// If batches are in flight: their verdicts come first. Or if the batch has 2^32 keys or more.
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

    /// Serves peers until the condition holds. Whoever makes it true must ring this node's [`doorbell`](Self::doorbell) afterwards.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    ///
    /// # Examples
    /// ```
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use echoless::{FingerprintSpec, Mesh};
    /// let mut node = Mesh::new().nodes(FingerprintSpec::new(1 << 20).build_partitions(1)?)?.remove(0);
    /// let (there_is_input, doorbell) = (AtomicBool::new(false), node.doorbell());
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| {
    ///         there_is_input.store(true, Ordering::Release);
    ///         doorbell.ring();
    ///     });
    ///     node.serve_until(|| there_is_input.load(Ordering::Acquire))
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn serve_until(&mut self, mut condition: impl FnMut() -> bool) -> Result<(), Disconnected> {
        self.port.check_whole()?;
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

    /// Says that this node brings no more batches, serves its peers until they have said so too, and gives the partition back.
    ///
    /// If it succeeds, all batches of this node are recorded in all partitions. Verdicts that were not taken before are gone.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn finish(mut self) -> Result<F, Disconnected> {
        self.port.check_whole()?;
        self.port.send_finish(&mut self.server)?;
        // A peer may have said farewell and be lost before it came to the batches in flight.
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
