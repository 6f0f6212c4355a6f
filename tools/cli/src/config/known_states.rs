//! Filters of other runs whose keys count as seen: `--known-state`.

use std::path::PathBuf;

use echoless::LineFilter;
use echoless_audit::{ErrorEstimates, Estimate};

use crate::args::{DedupArgs, key_options};

/// Filters that are only read, and what they must have in common with the run.
#[derive(Debug, Default)]
pub(crate) struct KnownStates {
    pub(crate) paths: Vec<PathBuf>,
    /// The options that decide what a key is, each with its value if it takes one.
    pub(crate) key_options: Vec<(String, Option<String>)>,
    /// The filters; read when the run begins.
    pub(crate) filters: Vec<Box<dyn LineFilter>>,
    /// How often each filter contains a key that it has never got; `None` if one does not say.
    pub(crate) rates: Option<Vec<f64>>,
}

impl KnownStates {
    pub(super) fn new(args: &DedupArgs) -> Self {
        Self {
            paths: args.known_state.clone(),
            key_options: key_options(&args.lasting()),
            ..Self::default()
        }
    }

    pub(crate) fn are_given(&self) -> bool {
        !self.paths.is_empty()
    }

    /// The probability that one of the filters contains a key that none has got.
    pub(crate) fn fpr(&self) -> Option<f64> {
        // Not 1 - (1 - a) * (1 - b): the rates are small, and their digits would be lost.
        let join = |all: f64, rate: &f64| all + rate - all * rate;
        Some(self.rates.as_ref()?.iter().fold(0.0, join))
    }

    /// The same for these filters and one with a rate of its own.
    pub(crate) fn joined_fpr(&self, own: f64) -> Option<f64> {
        if !self.are_given() {
            return Some(own);
        }
        self.fpr().map(|other| own + other - own * other)
    }

    /// The estimates of the filter of the run, with the false duplicates of these filters. No sample
    /// shows them, as their keys are in no record of the run: they follow from the rates of the
    /// filters.
    pub(crate) fn with_false_duplicates(&self, mut own: ErrorEstimates) -> ErrorEstimates {
        if !self.are_given() {
            return own;
        }
        // The keys that came through are those that are new to these filters, less the fraction
        // that was mistaken.
        let mistaken = |own_mistaken: f64| {
            let through = own.fresh as f64 + own_mistaken;
            let rate = self.fpr()?;
            Some(through * rate / (1.0 - rate).max(f64::MIN_POSITIVE))
        };
        own.most_false_duplicates =
            (own.most_false_duplicates).and_then(|most| Some(most + mistaken(most)?));
        let Estimate { value, low, high } = own.false_duplicates;
        own.false_duplicates = match mistaken(value as f64) {
            // A mean that leaves hardly one.
            Some(mean) if mean <= 0.01 => own.false_duplicates,
            // A Poisson count is beyond four deviations in less than 1 run of 1,000.
            Some(mean) => Estimate {
                value: value + mean.round() as u64,
                low,
                high: high.saturating_add((mean + 4.0 * mean.sqrt()).ceil() as u64 + 2),
            },
            None => Estimate {
                value: 0,
                low,
                high: u64::MAX,
            },
        };
        own
    }
}
