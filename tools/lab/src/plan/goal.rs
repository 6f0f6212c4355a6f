//! Goals: what the error rates of a filter may be and what errors cost, and the ranks of filters by
//! that.

use std::cmp::Ordering;

use echoless::SpecError;

use super::prediction::Prediction;

/// The cost of one error of each kind, in any unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// The cost of a fresh record that is reported as a duplicate.
    pub false_positive: f64,
    /// The cost of a duplicate that is reported as fresh.
    pub false_negative: f64,
}

/// The goal of a plan: bounds of the rates, costs of errors, or both; by default a low sum of the
/// two rates.
///
/// # Examples
/// ```
/// use std::cmp::Ordering;
/// use echoless_lab::plan::{Goal, Prediction, Rates};
/// let goal = Goal::default().max_fpr(0.3).max_fnr(0.25);
/// let predicted = |fpr, fnr| Prediction::exact(Rates { fpr, fnr });
/// let meets = goal.rank(&predicted(0.25, 0.2), 2.0, 0.6);
/// let misses = goal.rank(&predicted(0.0, 0.5), 1.0, 0.6);
/// assert_eq!(meets.compare(&misses), Ordering::Less);
/// assert_eq!((meets.tightest, misses.tightest), (Some(0.25 / 0.3), Some(2.0)));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct Goal {
    /// The upper bound of the false positive rate, 0 to 1.
    pub max_fpr: Option<f64>,
    /// The upper bound of the false negative rate, 0 to 1.
    pub max_fnr: Option<f64>,
    /// The costs of errors. Candidates that meet the bounds are ranked by the cost per record.
    pub costs: Option<Costs>,
}

/// The probability that the hash of a fresh key is that of the only key before it: 2^-64, the least
/// bound of the false positive rate.
pub(super) const EQUAL_HASHES: f64 = 1.0 / (1_u128 << 64) as f64;

impl Goal {
    /// Sets the [bound of the false positive rate](Self#structfield.max_fpr); `None` removes it.
    #[must_use]
    pub fn max_fpr(mut self, bound: impl Into<Option<f64>>) -> Self {
        self.max_fpr = bound.into();
        self
    }

    /// Sets the [bound of the false negative rate](Self#structfield.max_fnr); `None` removes it.
    #[must_use]
    pub fn max_fnr(mut self, bound: impl Into<Option<f64>>) -> Self {
        self.max_fnr = bound.into();
        self
    }

    /// Sets the [costs of errors](Self#structfield.costs); `None` removes them.
    #[must_use]
    pub fn costs(mut self, costs: impl Into<Option<Costs>>) -> Self {
        self.costs = costs.into();
        self
    }

    /// Checks the ranges of bounds and costs.
    ///
    /// # Errors
    /// [`SpecError`] if a bound is not from 0 to 1, no filter can meet it, or a cost is negative,
    /// infinite or not a number.
    pub fn check(&self) -> Result<(), SpecError> {
        for (field, bound) in [("max-fpr", self.max_fpr), ("max-fnr", self.max_fnr)] {
            if let Some(bound) = bound.filter(|bound| !(0.0..=1.0).contains(bound)) {
                return Err(SpecError::new(
                    field,
                    bound.to_string(),
                    "a rate from 0 to 1",
                ));
            }
        }
        if let Some(bound) = self.max_fpr.filter(|fpr| *fpr > 0.0 && *fpr < EQUAL_HASHES) {
            let allowed = format!("0, or {EQUAL_HASHES:.1e} or more: hashes have 64 bits");
            return Err(SpecError::new("max-fpr", format!("{bound:e}"), allowed));
        }
        if (self.max_fpr, self.max_fnr) == (Some(0.0), Some(0.0)) {
            let allowed = "a rate above 0 beside max-fnr=0: hashes are equal by chance";
            return Err(SpecError::new("max-fpr", "0", allowed));
        }
        let costs = self.costs.map(|costs| {
            [
                ("cost-fpr", costs.false_positive),
                ("cost-fnr", costs.false_negative),
            ]
        });
        for (field, cost) in costs.into_iter().flatten() {
            if !(cost >= 0.0 && cost.is_finite()) {
                return Err(SpecError::new(field, cost.to_string(), "0 or more"));
            }
        }
        Ok(())
    }

    /// The rank of a filter with this prediction that touches `lines` cache lines per key, on a
    /// stream of which `fresh_fraction` is fresh.
    #[must_use]
    pub fn rank(&self, predicted: &Prediction, lines: f64, fresh_fraction: f64) -> Rank {
        let rates = predicted.expected;
        let ratio = |rate: f64, bound: Option<f64>| {
            bound.map(|bound| if rate == 0.0 { 0.0 } else { rate / bound })
        };
        let ratios = [
            ratio(predicted.fpr.high, self.max_fpr),
            ratio(predicted.fnr.high, self.max_fnr),
        ];
        let tightest = ratios.into_iter().flatten().reduce(f64::max);
        let sum = rates.fpr + rates.fnr;
        let (objective, second) = match (self.costs, self.max_fpr, self.max_fnr) {
            (Some(costs), ..) => {
                let wrong = costs.false_positive * rates.fpr * fresh_fraction;
                let missed = costs.false_negative * rates.fnr * (1.0 - fresh_fraction);
                (wrong + missed, lines)
            }
            // Two bounds decide which filters are good enough; of these, the fastest is the best.
            (None, Some(_), Some(_)) => (lines, tightest.unwrap_or(0.0)),
            (None, Some(_), None) => (rates.fnr, lines),
            (None, None, Some(_)) => (rates.fpr, lines),
            (None, None, None) => (sum, lines),
        };
        Rank {
            tightest,
            objective,
            second,
        }
    }

    /// Describes the rank of a filter with this prediction, for people.
    #[must_use]
    pub fn why(&self, predicted: &Prediction, rank: &Rank) -> String {
        // Three digits behind the point would round small rates to equal texts, or to 0.
        let percent = |rate: f64| match 100.0 * rate {
            percent if percent > 0.0 && percent < 0.001 => format!("{percent:.2e} %"),
            percent if percent > 0.0 && percent < 0.1 => format!("{percent:.5} %"),
            percent => format!("{percent:.3} %"),
        };
        let rates = predicted.rates;
        let mut over = Vec::new();
        for (name, rate, high, bound) in [
            ("FPR", rates.fpr, predicted.fpr.high, self.max_fpr),
            ("FNR", rates.fnr, predicted.fnr.high, self.max_fnr),
        ] {
            let Some(bound) = bound.filter(|bound| high > *bound) else {
                continue;
            };
            over.push(if rate > bound {
                format!("{name} {} over {}", percent(rate), percent(bound))
            } else if high < 1.0 {
                format!(
                    "{name} shown below {}, not {}",
                    percent(high),
                    percent(bound)
                )
            } else {
                format!("{name} not shown")
            });
        }
        let mut reasons = Vec::new();
        match rank.tightest {
            None => {}
            Some(_) if !over.is_empty() => return over.join(", "),
            Some(ratio) if rank.has_room() => {
                reasons.push(format!("bounds met, {ratio:.2} of the tighter one used"));
            }
            Some(_) => reasons.push("bounds met without room".into()),
        }
        reasons.push(match (self.costs, self.max_fpr, self.max_fnr) {
            (Some(_), ..) => format!("errors cost {:.4e} per record", rank.objective),
            (None, Some(_), Some(_)) => format!("{:.1} lines per key", rank.objective),
            (None, Some(_), None) => format!("FNR {}", percent(rates.fnr)),
            (None, None, Some(_)) => format!("FPR {}", percent(rates.fpr)),
            (None, None, None) => format!("FPR + FNR {}", percent(rates.fpr + rates.fnr)),
        });
        reasons.join("; ")
    }
}

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

#[cfg(test)]
mod tests {
    use super::super::prediction::Rates;
    use super::*;
    use crate::oracle::Score;

    fn exact(fpr: f64, fnr: f64) -> Prediction {
        Prediction::exact(Rates { fpr, fnr })
    }

    /// The index of the best filter, each given as FPR, FNR and cache lines.
    fn best(goal: Goal, fresh_fraction: f64, filters: &[(f64, f64, f64)]) -> usize {
        let ranks: Vec<Rank> = filters
            .iter()
            .map(|(fpr, fnr, lines)| goal.rank(&exact(*fpr, *fnr), *lines, fresh_fraction))
            .collect();
        (0..filters.len())
            .min_by(|one, two| ranks[*one].compare(&ranks[*two]))
            .unwrap()
    }

    #[test]
    fn without_a_goal_the_sum_of_the_rates_decides() {
        let filters = [(0.3, 0.2, 1.0), (0.1, 0.35, 9.0), (0.0, 0.5, 1.0)];
        assert_eq!(best(Goal::default(), 0.5, &filters), 1);
        let equal = [(0.2, 0.1, 5.0), (0.1, 0.2, 4.0)];
        assert_eq!(best(Goal::default(), 0.5, &equal), 1);
    }

    #[test]
    fn costs_are_weighted_by_the_fraction_of_fresh_records() {
        let goal = Goal::default().costs(Costs {
            false_positive: 1.0,
            false_negative: 1.0,
        });
        let filters = [(0.2, 0.1, 1.0), (0.1, 0.2, 1.0)];
        assert_eq!(best(goal, 0.9, &filters), 1);
        assert_eq!(best(goal, 0.1, &filters), 0);
    }

    #[test]
    fn with_both_bounds_the_fastest_filter_with_room_wins() {
        let goal = Goal::default().max_fpr(0.1).max_fnr(0.1);
        let filters = [
            (0.01, 0.01, 8.0),
            (0.08, 0.08, 2.0),
            (0.095, 0.0, 1.0),
            (0.0, 0.2, 1.0),
        ];
        assert_eq!(best(goal, 0.5, &filters), 1);
        // If no filter has room, the one nearest to the bounds wins.
        assert_eq!(best(goal, 0.5, &filters[2..]), 0);
        assert_eq!(best(goal, 0.5, &[(0.5, 0.0, 1.0), (0.0, 0.3, 9.0)]), 1);
    }

    #[test]
    fn with_one_bound_the_other_rate_decides() {
        let goal = Goal::default().max_fnr(0.1);
        assert_eq!(
            best(
                goal,
                0.5,
                &[(0.3, 0.0, 1.0), (0.2, 0.05, 9.0), (0.1, 0.1, 1.0)]
            ),
            1
        );
        let goal = Goal::default().max_fpr(0.0);
        assert_eq!(best(goal, 0.5, &[(1e-9, 0.0, 1.0), (0.0, 0.9, 1.0)]), 1);
    }

    #[test]
    fn reasons_name_the_deciding_quantity() {
        let goal = Goal::default().max_fpr(0.1).max_fnr(0.1);
        let why = |goal: &Goal, fpr, fnr| {
            let predicted = exact(fpr, fnr);
            goal.why(&predicted, &goal.rank(&predicted, 3.0, 0.5))
        };
        assert_eq!(why(&goal, 0.2, 0.05), "FPR 20.000 % over 10.000 %");
        assert_eq!(
            why(&goal, 0.05, 0.02),
            "bounds met, 0.50 of the tighter one used; 3.0 lines per key"
        );
        assert!(why(&goal, 0.05, 0.099).starts_with("bounds met without room; "));
        assert_eq!(why(&Goal::default(), 0.05, 0.02), "FPR + FNR 7.000 %");
        assert_eq!(why(&Goal::default(), 0.0, 0.0), "FPR + FNR 0.000 %");
        for (bound, rate, expected) in [
            (1e-9, 1.04e-9, "FPR 1.04e-7 % over 1.00e-7 %"),
            (1e-9, 2e-6, "FPR 2.00e-4 % over 1.00e-7 %"),
            (1.5e-5, 2e-5, "FPR 0.00200 % over 0.00150 %"),
            (5e-4, 0.002, "FPR 0.200 % over 0.05000 %"),
            (0.0, 1e-9, "FPR 1.00e-7 % over 0.000 %"),
        ] {
            assert_eq!(why(&Goal::default().max_fpr(bound), rate, 0.0), expected);
        }
    }

    #[test]
    fn bounds_are_compared_with_the_upper_end() {
        let score = |false_positives, false_negatives| Score {
            distinct: 1000,
            false_positives,
            duplicates: 2000,
            false_negatives,
        };
        let none = Prediction::counted(&score(0, 0), None);
        assert_eq!(none.rates, Rates { fpr: 0.0, fnr: 0.0 });
        assert_eq!(none.expected.fpr, 0.5 / 1001.0);
        assert!(none.fpr.high > 0.003 && none.fnr.high > 0.003);
        // A proven limit is kept; nothing else narrows an interval.
        let limited = Prediction::counted(&score(0, 100), Some(1e-9));
        assert_eq!((limited.expected.fpr, limited.fpr.high), (1e-9, 1e-9));
        assert_eq!(limited.rates.fnr, 0.05);
        assert!(limited.fnr.low < 0.05 && limited.fnr.high > 0.05);
        // Nine errors count as any other number.
        let few = Prediction::counted(&score(9, 0), Some(0.5));
        assert_eq!(few.rates.fpr, 0.009);
        assert!(few.fpr.high > 0.02);

        let goal = Goal::default().max_fpr(0.005);
        let why = |predicted: &Prediction| goal.why(predicted, &goal.rank(predicted, 1.0, 0.5));
        assert!(!goal.rank(&none, 1.0, 0.5).meets_bounds());
        assert_eq!(why(&none), "FPR shown below 0.688 %, not 0.500 %");
        assert_eq!(why(&none.not_shown()), "FPR not shown");
        assert!(goal.rank(&none.hoped(), 1.0, 0.5).has_room());
        assert!(goal.rank(&limited, 1.0, 0.5).has_room());
    }

    #[test]
    fn impossible_goals_name_the_field() {
        let costs = |false_positive, false_negative| {
            Goal::default().costs(Costs {
                false_positive,
                false_negative,
            })
        };
        for (goal, field) in [
            (Goal::default().max_fpr(1.5), "max-fpr"),
            (Goal::default().max_fnr(f64::NAN), "max-fnr"),
            (Goal::default().max_fpr(0.0).max_fnr(0.0), "max-fpr"),
            (Goal::default().max_fpr(1e-300), "max-fpr"),
            (costs(-1.0, 1.0), "cost-fpr"),
            (costs(1.0, f64::INFINITY), "cost-fnr"),
        ] {
            assert_eq!(goal.check().map_err(|error| error.field), Err(field));
        }
        assert_eq!(costs(0.0, 2.0).check(), Ok(()));
    }
}
