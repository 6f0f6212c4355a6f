//! The errors of a filter: from what an audit found to estimates with bounds.

use echoless::Report;

use crate::gamma;
use crate::saved::saved;
use crate::series::SeriesCounts;
use crate::weighted_count::{BEYOND, Estimate, WeightedCount};

/// A mean number of mistaken keys that leaves hardly one.
const UNLIKELY: f64 = 0.01;

/// What an audit found: the input of [`ErrorEstimates`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorCounts {
    /// The number of `Fresh` verdicts.
    pub fresh: u64,
    /// The number of `Duplicate` verdicts.
    pub duplicates: u64,
    /// Missed duplicates that were all observed.
    pub surely_missed: u64,
    /// Missed duplicates of keys with an earlier `Fresh` verdict, observed in a sample of these.
    pub missed: WeightedCount,
    /// Missed duplicates of keys with only `Duplicate` verdicts before, observed in a sample of
    /// the keys.
    pub missed_unrecorded: WeightedCount,
    /// `Duplicate` verdicts on keys that had not been seen, observed in a sample of the keys.
    pub mistaken: WeightedCount,
    /// `Duplicate` verdicts on keys between the window and the end of its granule, observed in a
    /// sample of the keys: both verdicts are right there. Always 0 without a window.
    pub undecided: WeightedCount,
    /// How often a key was mistaken that was not mistaken within a window before, observed in a
    /// sample of the keys. Always 0 without a window.
    pub begun: WeightedCount,
    /// Verdicts as in `mistaken` on keys that are frequent, but were not followed for long enough
    /// to judge them without the sample. Always 0 without a window.
    pub mistaken_frequent: WeightedCount,
    /// What was found about keys that are mistaken again and again; `None` if a key is renewed when
    /// it is mistaken, and so mistaken only once. The other counts leave out the keys that are
    /// followed here.
    pub series: Option<SeriesCounts>,
}

impl ErrorCounts {
    /// No verdict yet. The sample of the keys has 1 in `weight` of them.
    pub(crate) const fn sampled(weight: u64) -> Self {
        Self {
            fresh: 0,
            duplicates: 0,
            surely_missed: 0,
            missed: WeightedCount::new(1),
            missed_unrecorded: WeightedCount::new(weight),
            mistaken: WeightedCount::new(weight),
            undecided: WeightedCount::new(1),
            begun: WeightedCount::new(1),
            mistaken_frequent: WeightedCount::new(1),
            series: None,
        }
    }

    /// What was found since an earlier state of the same audit.
    ///
    /// # Panics
    /// If `earlier` has more errors.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            fresh: self.fresh - earlier.fresh,
            duplicates: self.duplicates - earlier.duplicates,
            surely_missed: self.surely_missed - earlier.surely_missed,
            missed: self.missed.since(earlier.missed),
            missed_unrecorded: self.missed_unrecorded.since(earlier.missed_unrecorded),
            mistaken: self.mistaken.since(earlier.mistaken),
            undecided: self.undecided.since(earlier.undecided),
            begun: self.begun.since(earlier.begun),
            mistaken_frequent: self.mistaken_frequent.since(earlier.mistaken_frequent),
            series: (self.series.zip(earlier.series)).map(|(late, early)| late.since(early)),
        }
    }

    /// The estimates, within the limits that the `report` of the filter sets.
    ///
    /// - No more duplicates were missed than keys were evicted, if the filter counts evictions and
    ///   no key was mistaken for another: two verdicts of `Fresh` on a fingerprint have an eviction
    ///   between them.
    /// - The number of false duplicates has a Poisson distribution with a mean of at most
    ///   `expected_false_duplicates`, if the filter estimates that.
    /// - A fresh key is mistaken with a probability of at most `most_fpr`, if the filter knows
    ///   that.
    #[must_use]
    pub fn estimates(&self, report: Option<&Report>) -> ErrorEstimates {
        let expected = report.and_then(|report| report.expected_false_duplicates);
        let mistaken = self.false_duplicates(report);
        let limited = |expected: Option<f64>| {
            let Some(expected) = expected else {
                return mistaken.within(mistaken.low, self.duplicates);
            };
            let likely = most_events(expected).min(self.duplicates);
            // The bounds of the sample and those of the fill each are wrong now and then. Where
            // they hardly meet, one of them is, so no narrower range than that of the fill remains.
            let low = mistaken.low.min(least_events(expected));
            let low = low.max(self.surely_mistaken());
            let high = if mistaken.low > likely {
                mistaken.high
            } else {
                likely
            };
            let value = mistaken.value.min(likely);
            Estimate {
                value,
                low,
                ..mistaken
            }
            .within(low, high.min(self.duplicates))
        };
        let false_duplicates = limited(expected);
        let least = self.surely_missed + self.missed.observed + self.missed_unrecorded.observed;
        let sampled = self.missed.and(self.missed_unrecorded).estimate();
        let mut missed = Estimate {
            value: sampled.value.saturating_add(self.surely_missed),
            low: sampled.low.saturating_add(self.surely_missed),
            high: sampled.high.saturating_add(self.surely_missed),
        };
        // Keys with only `Duplicate` verdicts before were false duplicates at first.
        let separately = (self.missed.estimate().high)
            .saturating_add(self.surely_missed)
            .saturating_add(false_duplicates.high);
        missed.high = missed.high.min(separately);
        let evicted = match report.and_then(|report| report.tally.evictions) {
            None => u64::MAX,
            Some(0) => 0,
            Some(evictions) => evictions.saturating_add(false_duplicates.high),
        };
        let missed = missed.within(least, evicted.min(self.fresh));
        // The filter takes every fresh verdict for a key that it has never seen. Those that were
        // certainly missed duplicates are on seen keys: their part is subtracted. They come late,
        // when the filter is fuller and the rate higher than on average, so what remains is still a
        // bound.
        let new = (self.fresh - missed.low) as f64 / self.fresh.max(1) as f64;
        let expected = expected.map(|expected| expected * new);
        ErrorEstimates {
            fresh: self.fresh,
            duplicates: self.duplicates,
            missed_duplicates: missed,
            false_duplicates: limited(expected),
            undecided_duplicates: self.undecided_duplicates(report),
            most_false_duplicates: expected,
        }
    }
}

impl ErrorCounts {
    /// The false duplicates that were observed.
    fn surely_mistaken(&self) -> u64 {
        let followed = |series: &SeriesCounts| series.surely_mistaken - series.surely_at_end;
        let followed = self.series.as_ref().map_or(0, followed);
        self.mistaken.observed + self.mistaken_frequent.observed + followed
    }

    /// `Duplicate` verdicts on keys that no filter remembers.
    fn false_duplicates(&self, report: Option<&Report>) -> Estimate {
        let most_rate = report.and_then(|report| report.most_fpr);
        let hardly_any = most_rate.is_some_and(|rate| self.fresh as f64 * rate <= UNLIKELY);
        let sampled = self.mistaken.and(self.mistaken_frequent);
        let observed = sampled.observed;
        let mut found = sampled.estimate();
        if let Some(series) = &self.series {
            let others = (self.mistaken).estimate_grouped(series.others.mean_length());
            let rate = series.highest_rate(self.begun, self.fresh);
            let frequent = (series.unknown).most_mistaken(rate.min(most_rate.unwrap_or(1.0)));
            found.high = found.high.max(others.high.saturating_add(frequent));
        }
        if hardly_any {
            found = found.within(0, observed);
        }
        let Some(series) = &self.series else {
            return found;
        };
        found.plus(Estimate {
            low: series.surely_mistaken - series.surely_at_end,
            ..Estimate::exact(series.surely_mistaken)
        })
    }

    /// `Duplicate` verdicts on keys between the window and the end of its granule.
    fn undecided_duplicates(&self, report: Option<&Report>) -> Estimate {
        let mut found = self.undecided.estimate();
        if let Some(series) = &self.series {
            found = self.undecided.estimate_grouped(series.others.mean_length());
            // The verdicts of a frequent key are spread evenly over window and granule.
            let outside = report
                .and_then(|report| report.window)
                .map_or(1.0, |window| {
                    let granule = window.granule as f64;
                    granule / (window.ticks as f64 + granule)
                });
            let frequent = (series.unknown.verdicts as f64 * outside).ceil() as u64;
            found.high = found.high.saturating_add(frequent);
            found = found.plus(Estimate::exact(series.surely_undecided));
        }
        found.within(0, self.duplicates)
    }
}

/// A number that a Poisson count of this mean exceeds with a probability of at most [`BEYOND`].
fn most_events(mean: f64) -> u64 {
    // The upper bound of a count `n` is the mean below which `n` or fewer events are improbable;
    // counts are exceeded where the lower bound of the next one is above the mean.
    let exceeds = |count: u64| gamma::quantile(count as f64 + 1.0, BEYOND) > mean;
    let (mut low, mut high) = (0, (mean + 12.0 * mean.sqrt() + 40.0) as u64);
    while low < high {
        let middle = u64::midpoint(low, high);
        if exceeds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// A number below which a Poisson count of this mean hardly ever is: three deviations.
fn least_events(mean: f64) -> u64 {
    (mean - 3.0 * mean.sqrt()).max(0.0) as u64
}

/// The estimated errors of a filter so far.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ErrorEstimates {
    /// The number of `Fresh` verdicts.
    pub fresh: u64,
    /// The number of `Duplicate` verdicts.
    pub duplicates: u64,
    /// Duplicates that the filter reported as fresh.
    pub missed_duplicates: Estimate,
    /// Fresh keys that the filter reported as duplicates. Keys of equal hash count as one key.
    pub false_duplicates: Estimate,
    /// Keys reported as duplicates after the window and before the end of its granule, where both
    /// verdicts are right; 0 without a window.
    pub undecided_duplicates: Estimate,
    /// An upper bound of the expected number of these, from the fill of the filter; `None` if it
    /// does not report one.
    pub most_false_duplicates: Option<f64>,
}

/// An estimated rate with bounds, between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateEstimate {
    /// The estimate.
    pub value: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl RateEstimate {
    /// The rate of `errors` among these and the right verdicts: `right` less the `others`, errors
    /// of the other kind.
    fn new(errors: Estimate, right: u64, others: Estimate) -> Option<Self> {
        let right = |others: u64| right.saturating_sub(others);
        let rate = |errors: u64, others: u64| match errors {
            // Also if nothing was right: of no keys none are errors.
            0 => 0.0,
            errors => errors as f64 / (errors + right(others)) as f64,
        };
        let rates = Self {
            value: rate(errors.value, others.value),
            low: rate(errors.low, others.low),
            high: rate(errors.high, others.high),
        };
        (errors.high + right(others.low) > 0).then_some(rates)
    }
}

impl ErrorEstimates {
    /// The estimated false negative rate: missed duplicates among all duplicates, with a window
    /// among those inside it. `None` if there was certainly no duplicate.
    ///
    /// # Examples
    /// ```
    /// use echoless_audit::Audit;
    /// use echoless::{Filter, FingerprintSpec, KeyHasher, Verdicts};
    /// // 1024 slots for 10,000 keys, each of which arrives twice.
    /// let mut filter = FingerprintSpec::new(4 << 10).build()?;
    /// let (mut audit, mut verdicts) = (Audit::new(), Verdicts::new());
    /// let hasher = KeyHasher::seeded(0);
    /// let keys: Vec<_> = (0..20_000u64).map(|key| hasher.hash_u64(key % 10_000)).collect();
    /// filter.observe(&keys, &mut verdicts);
    /// audit.observe(&keys, &verdicts);
    /// let errors = audit.estimates(Some(&filter.report()));
    /// assert!(errors.fnr().is_some_and(|fnr| fnr.low > 0.8 && fnr.high <= 1.0));
    /// assert!(errors.fpr().is_some_and(|fpr| fpr.high < 1e-2));
    /// # Ok::<(), echoless::BuildError>(())
    /// ```
    #[must_use]
    pub fn fnr(&self) -> Option<RateEstimate> {
        let outside = self.false_duplicates.plus(self.undecided_duplicates);
        RateEstimate::new(self.missed_duplicates, self.duplicates, outside)
    }

    /// The estimated false positive rate: false duplicates among all fresh keys. `None` if there
    /// was certainly no fresh key.
    #[must_use]
    pub fn fpr(&self) -> Option<RateEstimate> {
        RateEstimate::new(self.false_duplicates, self.fresh, self.missed_duplicates)
    }
}
saved! {
    ErrorCounts {
        fresh, duplicates, surely_missed, missed, missed_unrecorded, mistaken, undecided, begun,
        mistaken_frequent, series
    }
}

#[cfg(test)]
mod tests {
    use echoless::Tally;

    use super::*;

    /// No error among so many verdicts, all of them observed.
    fn counts(fresh: u64, duplicates: u64) -> ErrorCounts {
        ErrorCounts {
            fresh,
            duplicates,
            ..ErrorCounts::sampled(1)
        }
    }

    #[test]
    fn evictions_and_expected_rates_limit_the_errors() {
        let mut found = counts(1000, 500);
        found.missed.set_weight(64);
        found.mistaken.set_weight(64);
        let unlimited = found.estimates(None);
        assert_eq!(unlimited.missed_duplicates.high, 337);
        assert!(unlimited.missed_duplicates.is_unknown());
        let mut tally = Tally::new(64);
        let high = |tally, expected| {
            let mut report = Report::new(tally);
            report.expected_false_duplicates = expected;
            let estimates = found.estimates(Some(&report));
            (
                estimates.missed_duplicates.high,
                estimates.false_duplicates.high,
            )
        };
        assert_eq!(high(tally, None), (337, 337));
        assert_eq!(high(tally, Some(1e-6)), (337, 0));
        tally.evictions = Some(10);
        assert_eq!(high(tally, Some(1e-6)), (10, 0));
        // P(X > 3) is 0.0018 for a mean of 0.5, P(X > 2) is 0.0144.
        assert_eq!(high(tally, Some(0.5)), (13, 3));
        tally.evictions = Some(0);
        assert_eq!(high(tally, None), (0, 337));
    }

    #[test]
    fn where_fill_and_sample_contradict_each_other_the_bounds_span_both() {
        let mut found = counts(10_000, 50_000);
        found.mistaken.set_weight(64);
        for _ in 0..45 {
            found.mistaken.add();
        }
        let sampled = found.estimates(None).false_duplicates;
        let mut report = Report::new(Tally::new(64));
        report.expected_false_duplicates = Some(1600.0);
        let both = found.estimates(Some(&report)).false_duplicates;
        assert!(sampled.low > both.value && both.value > 1600, "{both:?}");
        assert_eq!((both.low, both.high), (1480, sampled.high));
        // Nor do they where they only just meet.
        report.expected_false_duplicates = Some(sampled.low as f64 - 100.0);
        let both = found.estimates(Some(&report)).false_duplicates;
        assert!(
            both.low + 200 < sampled.low && sampled.low < both.high,
            "{both:?}"
        );
        // Without a contradiction each narrows the other.
        report.expected_false_duplicates = Some(2500.0);
        let both = found.estimates(Some(&report)).false_duplicates;
        assert!(
            both.low == sampled.low && both.high < sampled.high,
            "{both:?}"
        );
    }

    #[test]
    fn parts_of_a_stream_have_their_own_errors() {
        let mut early = counts(100, 10);
        early.missed.add();
        early.missed.set_weight(4);
        let mut late = early;
        (late.fresh, late.duplicates) = (300, 40);
        for _ in 0..20 {
            late.missed.add();
        }
        let part = late.since(&early);
        assert_eq!((part.fresh, part.duplicates), (200, 30));
        assert_eq!(part.missed.estimate().value, 80);
        assert_eq!(early.since(&early).missed.estimate().value, 0);
    }

    #[test]
    fn rates_are_of_all_duplicates_and_of_all_fresh_keys() {
        let exactly = |rate: f64| {
            let (value, low, high) = (rate, rate, rate);
            Some(RateEstimate { value, low, high })
        };
        let mut found = counts(900, 100);
        let rates = |found: &ErrorCounts| {
            let errors = found.estimates(None);
            (errors.fnr(), errors.fpr())
        };
        assert_eq!(rates(&found), (exactly(0.0), exactly(0.0)));
        found.surely_missed = 100;
        assert_eq!(rates(&found), (exactly(0.5), exactly(0.0)));
        for _ in 0..50 {
            found.mistaken.add();
        }
        assert_eq!(rates(&found), (exactly(2.0 / 3.0), exactly(50.0 / 850.0)));
        assert_eq!(counts(1000, 0).estimates(None).fnr(), None);
        assert_eq!(counts(0, 0).estimates(None).fpr(), None);
    }
}
