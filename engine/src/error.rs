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
    /// The machine refused a thread.
    #[error("worker {worker}: the machine does not grant a thread ({reason})")]
    Thread {
        /// The number of the worker.
        worker: usize,
        /// What the machine said.
        reason: std::io::Error,
    },
    /// The machine refused to run a thread on the core that was chosen for it.
    #[error("worker {worker}: the machine does not let it run on core {core}")]
    Pinning {
        /// The number of the worker.
        worker: usize,
        /// The core.
        core: usize,
    },
}

/// Another thread that was needed is gone, or the order of batches that all of them need is broken.
///
/// # Examples
/// ```
/// use echoless::{FingerprintSpec, KeyHash, Disconnected, Mesh, Verdicts};
/// let whole = FingerprintSpec::new(1 << 20).build_partitions(1)?;
/// let mut node = Mesh::new().nodes(whole)?.remove(0);
/// // Nobody brings batch 0.
/// let error = node.observe(1, &[KeyHash(7)], &mut Verdicts::new()).unwrap_err();
/// assert_eq!(error, Disconnected::MissingBatch(0));
/// assert!(error.to_string().starts_with("batch 0 was never submitted"));
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Disconnected {
    /// The owner of this partition panicked or was shut down.
    #[error("the owner of partition {0} is gone: it panicked or was shut down")]
    Partition(usize),
    /// This peer of a mesh went without finishing.
    #[error("node {0} of the mesh is gone: it panicked or was dropped before it finished")]
    Peer(usize),
    /// No node brought the batch of this number, and none will.
    #[error(
        "batch {0} was never submitted: batches are numbered without gaps, and each node's numbers rise"
    )]
    MissingBatch(u64),
    /// The batch of this number was brought before, or a later one was.
    #[error(
        "batch {0} was submitted again, or after a later one: each number is one batch's, and each node's numbers rise"
    )]
    Repeated(u64),
}
