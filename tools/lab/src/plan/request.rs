//! The input of the planner.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::goal::Goal;
use crate::stream::Stream;

/// A stream, a memory and a goal.
///
/// # Examples
/// ```
/// use echoless_lab::plan::{Goal, PlanRequest};
/// use echoless_lab::stream::Stream;
/// let stream = Stream::with_distinct_fraction(1_000_000, 0.6)?;
/// let request = PlanRequest::new(stream, 1 << 20).goal(Goal::default().max_fpr(0.01)).seed(7);
/// assert_eq!((request.memory, request.records, request.seed), (1 << 20, 1_000_000, 7));
/// # Ok::<(), echoless::SpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PlanRequest {
    /// The memory of the filter in bytes.
    pub memory: u64,
    /// The number of records of the whole stream; by default the length of `stream`.
    pub records: u64,
    /// The whole stream as uniform draws, or a recorded sample of it. A sample is simulated in a
    /// memory that is smaller by the ratio of the two lengths.
    pub stream: Stream,
    /// A key is a duplicate only if its last arrival is at most this many records ago; unlimited by
    /// default. With a window the stream counts as endless: rates are those of filters that have
    /// been in use for long, no tracked fractions are tried, and no filters that do not
    /// [settle](echoless::spec::Facts::settles).
    pub window: Option<u64>,
    /// The goal that ranks candidates; by default a low sum of both rates.
    pub goal: Goal,
    /// Seed of streams and filters, and of the specifications in the plan; 1 by default.
    pub seed: u64,
    /// The CPU time that simulations may take, 10 seconds by default. It is nominal: a model of
    /// the cost of a record turns it into a number of records, so that the plan is the same on
    /// every machine.
    pub budget: Duration,
    /// Number of threads for simulations; 1 by default. The plan does not depend on it.
    pub threads: NonZeroUsize,
}

impl PlanRequest {
    /// A request for a filter of `memory` bytes on `stream`, with a default for everything else.
    #[must_use]
    pub fn new(stream: Stream, memory: u64) -> Self {
        Self {
            memory,
            records: stream.records(),
            stream,
            window: None,
            goal: Goal::default(),
            seed: 1,
            budget: Duration::from_secs(10),
            threads: NonZeroUsize::MIN,
        }
    }

    /// Sets the [memory](Self#structfield.memory) in bytes.
    #[must_use]
    pub const fn memory(mut self, memory: u64) -> Self {
        self.memory = memory;
        self
    }

    /// Sets the [number of records](Self#structfield.records) of the whole stream.
    #[must_use]
    pub const fn records(mut self, records: u64) -> Self {
        self.records = records;
        self
    }

    /// Sets the [window](Self#structfield.window), in records; `None` removes it.
    #[must_use]
    pub fn window(mut self, window: impl Into<Option<u64>>) -> Self {
        self.window = window.into();
        self
    }

    /// Sets the [goal](Self#structfield.goal).
    #[must_use]
    pub const fn goal(mut self, goal: Goal) -> Self {
        self.goal = goal;
        self
    }

    /// Sets the [seed](Self#structfield.seed).
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the [budget](Self#structfield.budget).
    #[must_use]
    pub const fn budget(mut self, budget: Duration) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the [number of threads](Self#structfield.threads).
    #[must_use]
    pub const fn threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = threads;
        self
    }
}
