//! Series of verdicts that are wrong together, in a filter that does not renew keys.
//!
//! ```text
//! arrivals of a key   x  x x x  x x x x x x  x x
//! verdicts            F  D D D  D D D D D F  D D     F: Fresh, D: Duplicate
//! remembered for      |-----------|             |------
//! series              |1----------||2-----||3-----
//! ```
//!
//! A series begins with an arrival that the filter does not remember. The verdict on it is `Fresh`
//! (series 1 and 3), and the duplicates that follow are right; or the key is mistaken for another
//! one (series 2), is not recorded, and so is mistaken again and again. Whether a series is
//! mistaken depends on the hash of its key, not on its length. The rate of mistaken series is
//! therefore known from many short ones, and limits how many duplicates of unknown series are
//! wrong.

use crate::saved::saved;
use crate::weighted_count::{BEYOND, WeightedCount, weighted_quantile};

/// The verdicts of a number of series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeriesSum {
    /// All verdicts.
    pub(crate) verdicts: u64,
    /// The sum of the squared lengths of the series.
    squares: u128,
}

impl SeriesSum {
    /// Adds a verdict to a series that has so many. It stands for `weight` verdicts of as many
    /// series.
    pub(crate) fn add(&mut self, earlier: u64, weight: u64) {
        self.verdicts = self.verdicts.saturating_add(weight);
        self.squares += u128::from(weight) * (2 * u128::from(earlier) + 1);
    }

    /// The number of verdicts that lie in a series with a verdict chosen at random, on average; 1
    /// if there is none.
    pub(crate) fn mean_length(self) -> f64 {
        (self.squares.max(1) as f64 / self.verdicts.max(1) as f64).max(1.0)
    }

    /// A number that is hardly exceeded by the verdicts of the series of which each is mistaken at
    /// this rate.
    pub(crate) fn most_mistaken(self, rate: f64) -> u64 {
        let (sum, squares) = (self.verdicts as f64, self.squares as f64);
        let mean = sum * rate;
        // As many series of equal length vary as much: hardly one is mistaken.
        if mean * mean <= BEYOND * squares * rate {
            return 0;
        }
        let high = weighted_quantile(mean, squares * rate, 1.0 - BEYOND);
        (high.ceil() as u64).min(self.verdicts)
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            verdicts: self.verdicts - earlier.verdicts,
            squares: self.squares - earlier.squares,
        }
    }
}

/// What an audit found about series of verdicts. All verdicts are either of frequent keys, which
/// are followed one by one, or of the others, of which a sample is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeriesCounts {
    /// `Duplicate` verdicts on frequent keys that had not been seen, or not for so long that no
    /// filter remembers them.
    pub surely_mistaken: u64,
    /// Those of them at the very tick at which the granule ends. If a tick is several keys, or a
    /// time, they may lie a part of a tick before the end, where both verdicts are right.
    pub surely_at_end: u64,
    /// `Duplicate` verdicts on frequent keys between the window and the end of its granule.
    pub surely_undecided: u64,
    /// Mistaken series of frequent keys.
    pub surely_begun: u64,
    /// `Duplicate` verdicts on frequent keys of which the beginning of the series was not observed.
    pub unknown: SeriesSum,
    /// The verdicts on other keys, estimated from a sample of these.
    pub others: SeriesSum,
}

impl SeriesCounts {
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            surely_mistaken: self.surely_mistaken - earlier.surely_mistaken,
            surely_at_end: self.surely_at_end - earlier.surely_at_end,
            surely_undecided: self.surely_undecided - earlier.surely_undecided,
            surely_begun: self.surely_begun - earlier.surely_begun,
            unknown: self.unknown.since(earlier.unknown),
            others: self.others.since(earlier.others),
        }
    }

    /// The highest probable rate of mistaken series: those that `begun` counts in the sample and
    /// those of frequent keys, among all series.
    pub(crate) fn highest_rate(&self, begun: WeightedCount, fresh: u64) -> f64 {
        let begun = (begun.estimate().high).saturating_add(self.surely_begun) as f64;
        begun / (begun + fresh as f64).max(1.0)
    }
}

saved! {
    SeriesSum { verdicts, squares }
    SeriesCounts { surely_mistaken, surely_at_end, surely_undecided, surely_begun, unknown, others }
}
