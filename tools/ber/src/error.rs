//! What is wrong with the bytes of a record.

use thiserror::Error;

use crate::element::NoHeader;

/// Bytes that are no BER, or more deeply nested than [`MAX_DEPTH`](crate::MAX_DEPTH).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("invalid BER at byte {at} of the record: {problem}")]
pub struct Invalid {
    /// The offset of the faulty element from the start of the record.
    pub at: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl Invalid {
    /// The error for the element at `at` whose header cannot be read, in a value that has no more
    /// bytes.
    pub(crate) fn header(at: usize, error: NoHeader) -> Self {
        let problem = match error {
            NoHeader::Cut => "an element is cut off by the end of the value around it",
            NoHeader::Invalid(problem) => problem,
        };
        Self { at, problem }
    }

    pub(crate) const fn too_long(at: usize) -> Self {
        let problem = "an element is longer than the value around it";
        Self { at, problem }
    }

    pub(crate) const fn too_deep(at: usize) -> Self {
        let problem = "nested deeper than 32 levels";
        Self { at, problem }
    }

    pub(crate) const fn unfinished(at: usize) -> Self {
        let problem = "an indefinite length without end-of-contents";
        Self { at, problem }
    }
}
