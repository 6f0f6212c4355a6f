//! The errors of the library: each says which field, what was asked and what is allowed.

use thiserror::Error;

/// A filter specification that cannot be met.
///
/// # Examples
/// ```
/// use echoless::SpecError;
/// let error = SpecError::new("memory", "16 B", "at least 64 B (one line)");
/// assert_eq!(error.to_string(), "memory: 16 B is not possible; allowed: at least 64 B (one line)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {asked} is not possible; allowed: {allowed}")]
pub struct SpecError {
    /// The name of the field, as the user wrote it.
    pub field: &'static str,
    /// What was asked for, with its unit.
    pub asked: String,
    /// What is possible instead.
    pub allowed: String,
}

impl SpecError {
    /// Says that `field` was asked to be `asked` where only `allowed` is possible.
    pub fn new(field: &'static str, asked: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self {
            field,
            asked: asked.into(),
            allowed: allowed.into(),
        }
    }
}

/// Memory that the machine does not grant.
#[derive(Debug, Error)]
#[error("memory: the machine does not grant {bytes} bytes ({reason})")]
pub struct MemoryError {
    /// What was asked for, in bytes.
    pub bytes: u64,
    /// What the machine said.
    pub reason: String,
}

/// Why a filter, or what runs it on several threads, could not be built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The specification contradicts itself or the limits of the filter.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The machine refused the memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The operating system rejected a thread.
    #[error("cannot start the thread of worker {worker}: {reason}")]
    Thread {
        /// The number of the worker, which is that of its partition.
        worker: usize,
        /// The error of the operating system.
        reason: std::io::Error,
    },
    /// The operating system rejected the core of a worker.
    #[error("cannot pin worker {worker} to core {core}")]
    Pinning {
        /// The number of the worker, which is that of its partition.
        worker: usize,
        /// The core, by the operating system's number.
        core: usize,
    },
}

/// A port or node cannot go on: another thread that it needs is gone, or the order of numbered
/// batches is broken.
///
/// # Examples
/// ```
/// use echoless::{FingerprintSpec, KeyHash, Disconnected, Mesh, Verdicts};
/// let whole = FingerprintSpec::new(1 << 20).build_partitions(1)?;
/// let mut node = Mesh::builder(whole).build()?.into_nodes().remove(0);
/// // No node submits batch 0.
/// let error = node.observe(1, &[KeyHash(7)], &mut Verdicts::new()).unwrap_err();
/// assert_eq!(error, Disconnected::MissingBatch(0));
/// assert!(error.to_string().starts_with("batch 0 was never submitted"));
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Disconnected {
    /// The owner of this partition is gone.
    #[error("partition {0} is disconnected: its owner panicked or was shut down")]
    Partition(usize),
    /// This node of a mesh is gone without finishing.
    #[error("node {0} of the mesh is disconnected: it panicked or was dropped before it finished")]
    Peer(usize),
    /// No node submitted the batch with this number, and none can any more.
    #[error("batch {0} was never submitted: batch numbers have no gaps, and rise within each node")]
    MissingBatch(u64),
    /// A batch with this number, or a later one of the same node, was submitted before.
    #[error(
        "batch {0} was submitted twice or after a later one: batch numbers are unique, and rise within each node"
    )]
    Repeated(u64),
}
