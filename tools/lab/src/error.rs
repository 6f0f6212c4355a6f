//! The errors of the lab.

use echoless::{BuildError, FilterSpec, SpecError};
use thiserror::Error;

/// The reason why a measurement, a plan or a figure failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// A filter could not be built.
    #[error("{spec}: {source}")]
    Filter {
        /// The specification of the filter.
        spec: Box<FilterSpec>,
        /// The reason.
        source: BuildError,
    },
    /// The exact oracle of the stream could not be built.
    #[error("the exact oracle: {0}")]
    Oracle(BuildError),
    /// A value of a request or of the options is out of its range.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A figure could not be drawn or written.
    #[error("{path}: {reason}")]
    Figure {
        /// The path of the file.
        path: String,
        /// The message of the drawing library.
        reason: String,
    },
}
