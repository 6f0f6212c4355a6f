//! The results of one filter on one stream.

use echoless::FilterSpec;
use serde::Serialize;
use serde_json::{Value, json};

use crate::oracle::Score;

/// The results of one filter on one stream.
#[derive(Debug, Clone, Serialize)]
pub struct Evaluation {
    /// The specification of the filter.
    pub spec: FilterSpec,
    /// The counts over the whole stream.
    pub score: Score,
    /// The distinct keys of the stream, also if a window counts a key as fresh again.
    #[serde(skip)]
    pub distinct_keys: u64,
    /// The duplicates by age, youngest first; empty unless [`EvalOptions::ages`] is on.
    ///
    /// [`EvalOptions::ages`]: super::EvalOptions::ages
    pub ages: Vec<AgeBin>,
    /// The state at each recorded point, in the order of the stream; the last one is its end.
    pub points: Vec<Point>,
    /// The memory of the filter in bytes.
    pub memory_bytes: u64,
    /// The fill at the end, 0 to 1; `None` if the filter does not report it.
    pub fill: Option<f64>,
    /// Wall-clock time in the filter, per key. The only field that differs from run to run.
    pub nanoseconds_per_key: f64,
}

impl Evaluation {
    /// Bits of memory per distinct key of the stream.
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        self.memory_bytes as f64 * 8.0 / self.distinct_keys.max(1) as f64
    }

    /// The evaluation as `echoless eval` and the Python package give it out.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut value = json!(self);
        value["name"] = json!(self.spec.to_string());
        value["fpr"] = json!(self.score.fpr());
        value["fnr"] = json!(self.score.fnr());
        value["bits_per_key"] = json!(self.bits_per_key());
        value
    }
}

/// The duplicates in a range of ages: the number of arrivals since the last one of the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AgeBin {
    /// The youngest age: a power of two.
    pub from: u64,
    /// One more than the oldest age: the next power of two.
    pub below: u64,
    /// The number of duplicates of these ages.
    pub duplicates: u64,
    /// The number of them that the filter reported as fresh.
    pub missed: u64,
}

impl AgeBin {
    /// The false negative rate at these ages; 0 if there were no duplicates.
    #[must_use]
    pub fn fnr(&self) -> f64 {
        self.missed as f64 / self.duplicates.max(1) as f64
    }
}

/// The state of a filter at one point of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// The number of records before this point.
    pub records: u64,
    /// The counts since the previous point. They show first what the rates converge to.
    pub recent: Score,
    /// The counts from the start of the stream.
    pub total: Score,
    /// The fill, 0 to 1; `None` if the filter does not report it.
    pub fill: Option<f64>,
}
