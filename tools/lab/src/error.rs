//! What can go wrong in the lab.

use echoless::{BuildError, FilterSpec, SpecError};
use thiserror::Error;

/// Why a measurement or a plan could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// A filter that cannot be built.
    #[error("{spec}: {source}")]
    Filter {
        /// The filter, as it was named.
        spec: Box<FilterSpec>,
        /// Why.
        source: BuildError,
    },
    /// The exact oracle of the stream cannot be had.
    #[error("the exact oracle: {0}")]
    Oracle(BuildError),
    /// A request that makes no sense.
    #[error(transparent)]
    PlanRequest(#[from] SpecError),
    /// A figure that cannot be drawn or written.
    #[error("{path}: {reason}")]
    Figure {
        /// The file.
        path: String,
        /// What the drawing library said.
        reason: String,
    },
}
