//! What was measured of one filter on one stream.

use echoless::FilterSpec;
use serde::Serialize;

use crate::oracle::Score;

/// What a filter did on a stream.
#[derive(Debug, Clone, Serialize)]
pub struct Evaluation {
    /// The filter.
    pub spec: FilterSpec,
    /// All its answers.
    pub score: Score,
    /// Its answers to duplicates by age, youngest first; empty if ages were not asked for.
    pub ages: Vec<AgeBin>,
    /// How it went on, from the beginning of the stream to its end.
    pub points: Vec<Point>,
    /// The memory of its state.
    pub memory_bytes: u64,
    /// The share of its cells that are taken at the end, where the filter tells.
    pub load: Option<f64>,
    /// Time spent in the filter, by the wall clock. It is the one field that differs from run to run.
    pub nanoseconds_per_key: f64,
}

impl Evaluation {
    /// Bits of memory for each distinct key of the stream.
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        self.memory_bytes as f64 * 8.0 / self.score.distinct.max(1) as f64
    }
}

/// The duplicates whose key arrived last so many arrivals ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AgeBin {
    /// The youngest age: a power of two.
    pub from: u64,
    /// One more than the oldest age: the next power of two.
    pub below: u64,
    /// How many there were.
    pub duplicates: u64,
    /// How many of them were missed.
    pub missed: u64,
}

impl AgeBin {
    /// The share that was missed; 0 if there were none.
    #[must_use]
    pub fn fnr(&self) -> f64 {
        self.missed as f64 / self.duplicates.max(1) as f64
    }
}

/// The state of affairs somewhere in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// The records before it.
    pub records: u64,
    /// The answers since the point before: what the rates converge to is seen here first.
    pub recent: Score,
    /// All answers so far.
    pub total: Score,
    /// The share of cells that are taken, where the filter tells.
    pub load: Option<f64>,
}
