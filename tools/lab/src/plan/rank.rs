//! The rank of a filter relative to a goal, which orders the candidates of a plan.

use std::cmp::Ordering;

/// The part of a bound that a rate may use to meet it with room. Predictions are not exact, and
/// streams differ.
const ROOM: f64 = 0.9;

/// The position of a filter relative to a goal; lower is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rank {
    /// The largest ratio of the upper end of a rate's interval to its bound; `None` without
    /// bounds. All bounds are shown to be met if it is at most 1.
    pub tightest: Option<f64>,
    /// The quantity to minimise among filters that meet the bounds with room: the cost of errors
    /// per record, a rate, the sum of both rates, or the cache lines per key.
    pub objective: f64,
    /// Breaks ties of the objective.
    pub(super) second: f64,
}

impl Rank {
    /// Returns `true` if every rate is shown to be at most 90 % of its bound.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.tightest.is_none_or(|ratio| ratio <= ROOM)
    }

    /// Returns `true` if every rate is shown to be at most its bound.
    #[must_use]
    pub fn meets_bounds(&self) -> bool {
        self.tightest.is_none_or(|ratio| ratio <= 1.0)
    }

    /// Orders ranks, `Less` for the better one.
    ///
    /// Filters that meet the bounds with room come first, by the objective; then all others, by how
    /// far they exceed the bounds.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        let missed = |rank: &Self| {
            if rank.has_room() {
                0.0
            } else {
                rank.tightest.unwrap_or(0.0)
            }
        };
        missed(self)
            .total_cmp(&missed(other))
            .then(self.objective.total_cmp(&other.objective))
            .then(self.second.total_cmp(&other.second))
    }
}
