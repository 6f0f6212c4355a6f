//! What the planner is asked.

use std::num::NonZeroUsize;

use super::goal::Goal;
use crate::stream::Stream;

/// A stream, a memory and what is asked of a filter there.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanRequest {
    /// The memory of the filter in bytes.
    pub memory: u64,
    /// The records of the whole stream.
    pub records: u64,
    /// What the stream is like: uniform draws at its full length, or a sample of it, which is run in a memory as much smaller as it is shorter.
    pub stream: Stream,
    /// Only keys that arrived at most so many records ago make duplicates; then the stream counts as endless, and no tracked shares are tried.
    pub window: Option<u64>,
    /// What is asked for.
    pub goal: Goal,
    /// Seeds streams and filters; the specifications of the plan have it.
    pub seed: u64,
    /// Threads that simulate.
    pub threads: NonZeroUsize,
}
