//! The result of the planner: ranked candidates, with the prediction and the reason of each.

use echoless::FilterSpec;
use echoless::spec::Form;
use serde::Serialize;
use serde_json::{Value, json};

use super::goal::Rank;
use super::prediction::Prediction;

/// The basis of a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// A formula, without noise.
    Formula,
    /// A simulation, in less memory if the stream is shorter.
    Simulation {
        /// The number of simulated records.
        records: u64,
        /// Whether the simulation shows the rates of the whole stream. It does not if the budget
        /// was too small for that, or if the rates were still increasing.
        shown: bool,
    },
}

impl Basis {
    /// The name, and the number of simulated records.
    pub(crate) const fn parts(self) -> (&'static str, Option<u64>) {
        match self {
            Self::Formula => ("formula", None),
            Self::Simulation { records, .. } => ("simulation", Some(records)),
        }
    }
}

/// A filter and its predicted rates.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The filter, with the memory of the request.
    pub spec: FilterSpec,
    /// The predicted rates, and their intervals.
    pub predicted: Prediction,
    /// The basis of the rates.
    pub basis: Basis,
    /// Cache lines touched per key; see [`Facts::cache_lines`](echoless::spec::Facts::cache_lines).
    pub lines: f64,
    /// The position relative to the goal.
    pub rank: Rank,
    /// The rank in words, for people.
    pub why: String,
    /// The rank that the filter would have if its rates were known to be the predicted ones.
    pub hope: Rank,
}

impl Candidate {
    /// Whether the rates are those of the whole stream.
    #[must_use]
    pub const fn is_shown(&self) -> bool {
        match self.basis {
            Basis::Formula => true,
            Basis::Simulation { shown, .. } => shown,
        }
    }

    /// The candidate as `echoless plan` and the Python package give it out.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let predicted = &self.predicted;
        let (basis, records) = self.basis.parts();
        json!({
            "name": self.spec.to_string(),
            "fpr": predicted.rates.fpr,
            "fpr_low": predicted.fpr.low,
            "fpr_high": predicted.fpr.high,
            "fnr": predicted.rates.fnr,
            "fnr_low": predicted.fnr.low,
            "fnr_high": predicted.fnr.high,
            "shown": self.is_shown(),
            "basis": basis,
            "simulated_records": records,
            "lines_per_key": self.lines,
            "meets_bounds": self.rank.meets_bounds(),
            "why": self.why,
        })
    }
}

/// The ranked candidates.
#[derive(Debug, Clone)]
pub struct Plan {
    /// All candidates that can be built, best first. Never empty.
    pub candidates: Vec<Candidate>,
}

impl Plan {
    /// The best candidate.
    #[must_use]
    pub fn first(&self) -> &Candidate {
        &self.candidates[0]
    }

    /// The best candidate, if its rates are shown and meet all bounds.
    #[must_use]
    pub fn recommended(&self) -> Option<&Candidate> {
        Some(self.first()).filter(|first| first.is_shown() && first.rank.meets_bounds())
    }

    /// The best candidate of each kind and form, best first.
    pub fn best_of_each(&self) -> impl Iterator<Item = &Candidate> {
        let mut families = Vec::new();
        self.candidates.iter().filter(move |candidate| {
            let key = family(&candidate.spec);
            let first = !families.contains(&key);
            if first {
                families.push(key);
            }
            first
        })
    }
}

/// The kind and form of a filter: candidates that share both differ only in parameters.
pub(super) fn family(spec: &FilterSpec) -> (&'static str, Form) {
    (spec.name(), spec.form)
}
