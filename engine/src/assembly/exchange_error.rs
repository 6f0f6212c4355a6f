//! The error of ports, nodes and ordered filters: why a batch has no verdicts, or was not accepted.

use std::error::Error;
use std::fmt;

/// A port or node cannot go on, or not before a partition is replaced: another thread that it needs
/// is gone, its filter panicked, the order of numbered batches is broken, batches are in flight, or
/// the process was forked.
///
/// # Examples
/// ```
/// use echoless::{ExchangeError, FingerprintSpec, KeyHasher, Mesh, Verdicts};
/// let key = KeyHasher::seeded(0).hash_u64(7);
/// let whole = FingerprintSpec::new(1 << 20).build_partitions(1)?;
/// let mut node = Mesh::builder(whole).build()?.into_nodes().remove(0);
/// // No node submits batch 0.
/// let error = node.observe(1, &[key], &mut Verdicts::new()).unwrap_err();
/// assert_eq!(error, ExchangeError::MissingBatch(0));
/// assert!(error.to_string().starts_with("batch 0 was never submitted"));
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExchangeError {
    /// The filter of this partition panicked, or the thread that owns it did. See
    /// [`LossPolicy`](crate::LossPolicy).
    Panicked(usize),
    /// The owner of this partition is gone.
    Disconnected(usize),
    /// This node of a mesh is gone without finishing.
    Peer(usize),
    /// No node submitted the batch with this number, and none can any more.
    MissingBatch(u64),
    /// A batch with this number, or a later one of the same node, was submitted before.
    Repeated(u64),
    /// So many batches are in flight, and the call needs a port or node without any.
    InFlight(usize),
    /// This process is a fork of the one that built the engine, mesh or ordered filter. The other
    /// threads stayed there, so nothing is judged here: build another one after the fork.
    Forked,
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(partition) => {
                write!(f, "partition {partition} is lost: its owner panicked")
            }
            Self::Disconnected(partition) => write!(
                f,
                "partition {partition} is disconnected: its owner was shut down or dropped"
            ),
            Self::Peer(node) => write!(
                f,
                "node {node} of the mesh is disconnected: it failed or was dropped before it \
                 finished"
            ),
            Self::MissingBatch(number) => write!(
                f,
                "batch {number} was never submitted: batch numbers have no gaps, and rise within \
                 each node"
            ),
            Self::Repeated(number) => write!(
                f,
                "batch {number} was submitted twice or after a later one: batch numbers are \
                 unique, and rise within each node"
            ),
            Self::InFlight(batches) => write!(
                f,
                "{batches} batches are in flight: drain them, or take what is known of a failed \
                 one, first"
            ),
            Self::Forked => write!(
                f,
                "this process is a fork of the one with the threads of the filter: build the \
                 filter after the fork"
            ),
        }
    }
}

impl Error for ExchangeError {}
