//! What the planner answers: filters in order, with what is predicted of each and why.

use echoless::FilterSpec;
use echoless::spec::Form;
use serde::Serialize;

use super::goal::{Rank, Rates};

/// Where a prediction comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// A formula.
    Formula,
    /// A simulation, scaled down.
    Simulation {
        /// The records it took.
        records: u64,
    },
}

/// A filter and what is predicted of it.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The filter, in the memory of the request.
    pub spec: FilterSpec,
    /// The rates to expect.
    pub rates: Rates,
    /// Where they come from.
    pub basis: Basis,
    /// Cache lines a key: see [`lines_touched`](super::lines_touched).
    pub lines: f64,
    /// How it stands to what was asked.
    pub rank: Rank,
    /// The same in words.
    pub why: String,
}

/// The ranking.
#[derive(Debug, Clone)]
pub struct Plan {
    /// All candidates that can be built, the best first.
    pub candidates: Vec<Candidate>,
}

impl Plan {
    /// The filter to use.
    #[must_use]
    pub fn first(&self) -> &Candidate {
        &self.candidates[0]
    }

    /// The best of each kind and form, in order.
    pub fn best_of_each(&self) -> impl Iterator<Item = &Candidate> {
        let mut seen = Vec::new();
        self.candidates.iter().filter(move |candidate| {
            let key = family(&candidate.spec);
            let new = !seen.contains(&key);
            if new {
                seen.push(key);
            }
            new
        })
    }
}

/// What counts as one filter in different settings.
pub(super) fn family(spec: &FilterSpec) -> (&'static str, Form) {
    (spec.kind.name(), spec.form)
}
