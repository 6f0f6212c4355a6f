//! The errors of a filter, counted against the exact verdicts.

use serde::Serialize;

/// Counts of the arrivals that a filter answered, and of its errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Score {
    /// Arrivals of keys that are fresh by the oracle.
    pub distinct: u64,
    /// Fresh arrivals that the filter reported as duplicates.
    pub false_positives: u64,
    /// Arrivals of keys that are duplicates by the oracle.
    pub duplicates: u64,
    /// Duplicate arrivals that the filter reported as fresh.
    pub false_negatives: u64,
}

impl Score {
    /// Counts one arrival: the exact verdict and that of the filter.
    #[inline(always)]
    pub fn count(&mut self, duplicate: bool, answered_duplicate: bool) {
        self.distinct += u64::from(!duplicate);
        self.duplicates += u64::from(duplicate);
        self.false_positives += u64::from(!duplicate & answered_duplicate);
        self.false_negatives += u64::from(duplicate & !answered_duplicate);
    }

    /// The number of arrivals counted.
    #[must_use]
    pub const fn arrivals(&self) -> u64 {
        self.distinct + self.duplicates
    }

    /// The false positive rate: false positives per fresh arrival; 0 if there were none.
    #[must_use]
    pub fn fpr(&self) -> f64 {
        self.false_positives as f64 / self.distinct.max(1) as f64
    }

    /// The false negative rate: false negatives per duplicate arrival; 0 if there were none.
    #[must_use]
    pub fn fnr(&self) -> f64 {
        self.false_negatives as f64 / self.duplicates.max(1) as f64
    }

    /// The counts of both.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            distinct: self.distinct + other.distinct,
            false_positives: self.false_positives + other.false_positives,
            duplicates: self.duplicates + other.duplicates,
            false_negatives: self.false_negatives + other.false_negatives,
        }
    }

    /// The difference to `earlier`, an earlier state of the same score.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            distinct: self.distinct - earlier.distinct,
            false_positives: self.false_positives - earlier.false_positives,
            duplicates: self.duplicates - earlier.duplicates,
            false_negatives: self.false_negatives - earlier.false_negatives,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_conditional() {
        let mut score = Score::default();
        assert_eq!((score.fpr(), score.fnr()), (0.0, 0.0));
        for (duplicate, answer, times) in [
            (false, false, 3),
            (false, true, 1),
            (true, true, 6),
            (true, false, 2),
        ] {
            for _ in 0..times {
                score.count(duplicate, answer);
            }
        }
        assert_eq!((score.distinct, score.duplicates), (4, 8));
        assert_eq!((score.fpr(), score.fnr()), (0.25, 0.25));
        let mut more = score;
        more.count(false, true);
        let difference = more.since(&score);
        assert_eq!((difference.arrivals(), difference.false_positives), (1, 1));
        assert_eq!(score.plus(&difference), more);
    }
}
