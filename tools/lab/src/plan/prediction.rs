//! The error rates of a filter, and what is known of them before it has run on a stream.

use serde::Serialize;

use super::interval::Interval;
use crate::oracle::Score;

/// The error rates of a filter on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rates {
    /// The false positive rate: false positives per fresh arrival.
    pub fpr: f64,
    /// The false negative rate: false negatives per duplicate arrival.
    pub fnr: f64,
}

/// Predicted rates, with the interval of each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// The predicted rates.
    pub rates: Rates,
    /// The rates that rank filters of which none is known to exceed a bound: the predicted ones,
    /// with half an error more, so that no simulation without errors ranks before a formula.
    pub expected: Rates,
    /// The interval of the false positive rate. Bounds are compared with its upper end.
    pub fpr: Interval,
    /// The interval of the false negative rate.
    pub fnr: Interval,
}

impl Prediction {
    /// A prediction without noise, from a formula.
    #[must_use]
    pub const fn exact(rates: Rates) -> Self {
        Self {
            rates,
            expected: rates,
            fpr: Interval::exact(rates.fpr),
            fnr: Interval::exact(rates.fnr),
        }
    }

    /// A prediction from counted errors. `limit` is a proven upper bound of the false positive
    /// rate.
    #[must_use]
    pub fn counted(score: &Score, limit: Option<f64>) -> Self {
        let limit = limit.unwrap_or(1.0);
        let expected = |errors: u64, arrivals: u64| (errors as f64 + 0.5) / (arrivals as f64 + 1.0);
        Self {
            rates: Rates {
                fpr: score.fpr().min(limit),
                fnr: score.fnr(),
            },
            expected: Rates {
                fpr: expected(score.false_positives, score.distinct).min(limit),
                fnr: expected(score.false_negatives, score.duplicates),
            },
            fpr: Interval::counted(score.false_positives, score.distinct).up_to(limit),
            fnr: Interval::counted(score.false_negatives, score.duplicates),
        }
    }

    /// The same rates, if nothing shows that they are those of the whole stream.
    #[must_use]
    pub const fn not_shown(self) -> Self {
        Self {
            fpr: Interval::ALL,
            fnr: Interval::ALL,
            ..self
        }
    }

    /// Returns `false` for a prediction that is [not shown](Self::not_shown).
    pub(super) fn is_shown(&self) -> bool {
        (self.fpr, self.fnr) != (Interval::ALL, Interval::ALL)
    }

    /// The same rates, as if they were known: the best that further simulations may show.
    #[must_use]
    pub const fn hoped(self) -> Self {
        Self {
            fpr: Interval::exact(self.rates.fpr),
            fnr: Interval::exact(self.rates.fnr),
            ..self
        }
    }
}
