//! A mesh: every thread is an ingest thread and a worker at once. Builds and connects its nodes.

use super::loss_policy::LossPolicy;
use super::node::Node;
use super::owned::OwnedFilter;
use super::partition_state::PartitionState;
use super::port::Port;
use super::rings::RingOptions;
use super::server::{NumberedServer, OnPanic};
use super::status::Status;
use crate::error::BuildError;
use crate::filters::Filter;
use crate::partition::{Partitioned, Partitioning};
use crate::sync::Arc;
use crate::transport::{Parker, Wait};

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
    policy: LossPolicy,
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
            policy: LossPolicy::default(),
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

    /// What happens if the filter of a partition panics. The default is [`LossPolicy::Error`]: the
    /// panic goes on in the thread of the node, and the mesh ends. With the other policies, the
    /// node catches the panic and goes on without its filter.
    #[must_use]
    pub const fn on_loss(mut self, policy: LossPolicy) -> Self {
        self.policy = policy;
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
        let statuses: Vec<Arc<Status>> = filters.iter().map(|_| Status::new()).collect();
        let (port_links, server_links) = self.rings.connect(&parkers, &parkers, &statuses)?;
        let on_panic = match self.policy {
            LossPolicy::Error => OnPanic::Fail,
            LossPolicy::AsDuplicate | LossPolicy::AsFresh => OnPanic::GoOn,
        };
        let parts = filters
            .into_iter()
            .zip(port_links)
            .zip(server_links)
            .zip(parkers)
            .zip(statuses)
            .enumerate();
        let nodes = parts
            .map(
                |(index, ((((filter, port_links), server_links), parker), status))| {
                    let owned = OwnedFilter::new(filter, PartitionState::new(status));
                    Node::new(
                        Port::new(partitioning.clone(), port_links, parker, wait, self.policy),
                        NumberedServer::new(index, owned, server_links, on_panic),
                    )
                },
            )
            .collect();
        Ok(Mesh {
            partitioning,
            nodes,
        })
    }
}
