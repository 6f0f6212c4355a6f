//! The errors of the library.
//!
//! A rejected value is reported in one form everywhere: the field, the value and what is expected
//! instead. A caller can show the text to its user unchanged.

use std::fmt;

use thiserror::Error;

/// A rejected or missing value of a specification.
///
/// # Examples
/// ```
/// use echoless::SpecError;
/// let error = SpecError::new("memory", "16 B", "at least 64 B (one line)");
/// assert_eq!(error.to_string(), "invalid memory=16 B: expected at least 64 B (one line)");
/// let error = SpecError::missing("memory", "a size such as 64MiB");
/// assert_eq!(error.to_string(), "missing memory: expected a size such as 64MiB");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct SpecError {
    /// The name of the field, as the user wrote it.
    pub field: &'static str,
    /// The rejected value, with its unit; empty if there is none.
    pub asked: String,
    /// The values that are accepted, as a phrase that follows "expected".
    pub allowed: String,
}

impl SpecError {
    /// Rejects the value `asked` of `field`. `allowed` follows the word "expected" in the message.
    pub fn new(field: &'static str, asked: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self {
            field,
            asked: asked.into(),
            allowed: allowed.into(),
        }
    }

    /// Reports that `field` has no value. `allowed` follows the word "expected" in the message.
    pub fn missing(field: &'static str, allowed: impl Into<String>) -> Self {
        Self::new(field, "", allowed)
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            asked,
            allowed,
        } = self;
        if asked.is_empty() {
            write!(f, "missing {field}: expected {allowed}")
        } else {
            write!(f, "invalid {field}={asked}: expected {allowed}")
        }
    }
}

/// An allocation that the operating system rejected, or would not be able to back with memory.
#[derive(Debug, Error)]
#[error("cannot allocate {bytes} bytes: {reason}")]
pub struct MemoryError {
    /// The size of the allocation in bytes.
    pub bytes: u64,
    /// The reason, from the operating system or the allocator.
    pub reason: String,
}

/// The reason why a filter, or the threads that run it, could not be built.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The specification contradicts itself or exceeds a limit of the filter.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The memory of the filter could not be allocated.
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
