//! The errors of the library.
//!
//! A rejected value is reported in one form everywhere: the field, the value and what is expected
//! instead. A caller can show the text to its user unchanged.

use std::error::Error;
use std::fmt;

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// The name of the field, as the user wrote it.
    pub field: &'static str,
    /// The rejected value, with its unit; two quotes if an option is empty, and empty if there is
    /// no value.
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

    /// As [`new`](Self::new), with quotes for a text that is given and empty: it is not missing.
    pub(crate) fn of_text(
        field: &'static str,
        text: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Self {
        let mut text = text.into();
        if text.is_empty() {
            text.push_str("\"\"");
        }
        Self::new(field, text, allowed)
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

impl Error for SpecError {}

/// An allocation that the operating system rejected, or would not be able to back with memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryError {
    /// The size of the allocation in bytes.
    pub bytes: u64,
    /// The reason, from the operating system or the allocator.
    pub reason: String,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot allocate {} bytes: {}", self.bytes, self.reason)
    }
}

impl Error for MemoryError {}

/// The reason why a filter, or the threads that run it, could not be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The specification contradicts itself or exceeds a limit of the filter.
    Spec(SpecError),
    /// The memory of the filter could not be allocated.
    Memory(MemoryError),
    /// The operating system rejected a thread.
    Thread {
        /// The number of the worker, which is that of its partition.
        worker: usize,
        /// The error of the operating system.
        reason: std::io::Error,
    },
    /// The operating system rejected the core of a worker.
    Pinning {
        /// The number of the worker, which is that of its partition.
        worker: usize,
        /// The core, by the operating system's number.
        core: usize,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
            Self::Thread { worker, reason } => {
                write!(f, "cannot start the thread of worker {worker}: {reason}")
            }
            Self::Pinning { worker, core } => {
                write!(f, "cannot pin worker {worker} to core {core}")
            }
        }
    }
}

impl Error for BuildError {
    /// The error of the operating system, if there is one.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Thread { reason, .. } => Some(reason),
            // Their texts are those of the errors inside.
            Self::Spec(error) => error.source(),
            Self::Memory(error) => error.source(),
            Self::Pinning { .. } => None,
        }
    }
}

impl From<SpecError> for BuildError {
    fn from(error: SpecError) -> Self {
        Self::Spec(error)
    }
}

impl From<MemoryError> for BuildError {
    fn from(error: MemoryError) -> Self {
        Self::Memory(error)
    }
}
