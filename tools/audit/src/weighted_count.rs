//! Numbers that are estimated from a sample: counts of weighted events, and their bounds.

use crate::gamma;
use crate::saved::saved;

/// The probability that the truth is beyond one of the two bounds, for each of them. Both hold with
/// 99 %: the 95 % that are promised leave room for rates, which depend on two estimates, and for
/// what the model neglects, such as weights that depend on the stream.
pub(crate) const BEYOND: f64 = 0.005;

/// An estimated number with bounds that hold on at least 95 of 100 streams.
///
/// # Examples
/// ```
/// use echoless_audit::Estimate;
/// assert!(Estimate::exact(7).is_exact());
/// // Nothing was observed: only the upper bound is meaningful.
/// assert!(Estimate { value: 0, low: 0, high: 59 }.is_unknown());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// The estimate. Where no limit but the sample's applies, its mean over all choices of the
    /// sample is the truth.
    pub value: u64,
    /// The lower bound.
    pub low: u64,
    /// The upper bound.
    pub high: u64,
}

impl Estimate {
    /// A number that is known.
    #[must_use]
    pub const fn exact(count: u64) -> Self {
        Self {
            value: count,
            low: count,
            high: count,
        }
    }

    /// Whether the number is known.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        self.low == self.high
    }

    /// Whether no event was observed though there may have been some. Only the upper bound is
    /// meaningful then.
    #[must_use]
    pub const fn is_unknown(self) -> bool {
        self.value == 0 && self.high > 0
    }

    /// The sum of two numbers, with bounds that hold if those of both do.
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            value: self.value.saturating_add(other.value),
            low: self.low.saturating_add(other.low),
            high: self.high.saturating_add(other.high),
        }
    }

    /// At most `most`, and at least `least` as far as that allows.
    pub(crate) fn within(self, least: u64, most: u64) -> Self {
        let high = self.high.max(least).min(most);
        let low = self.low.max(least).min(high);
        Self {
            value: self.value.clamp(low, high),
            low,
            high,
        }
    }
}

/// A number of events of which each is observed with a probability of `1 / weight`. The weight may
/// rise from event to event.
///
/// # Examples
/// ```
/// use echoless_audit::WeightedCount;
/// let mut events = WeightedCount::new(16);
/// events.add();
/// let estimate = events.estimate();
/// assert_eq!(estimate.value, 16);
/// assert!(estimate.low < 2 && estimate.high > 80);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightedCount {
    pub(crate) observed: u64,
    /// The sum of the weights.
    sum: u64,
    /// The estimated variance of the sum: the sum of `weight * (weight - 1)`.
    variance: u128,
    /// The weight of the next event.
    weight: u64,
}

impl WeightedCount {
    /// No event, and the weight of the next one, 1 or more. With a weight of 1 the count is exact.
    #[must_use]
    pub const fn new(weight: u64) -> Self {
        Self {
            observed: 0,
            sum: 0,
            variance: 0,
            weight,
        }
    }

    /// Counts an event that was observed.
    pub fn add(&mut self) {
        self.observed += 1;
        self.sum = self.sum.saturating_add(self.weight);
        self.variance += u128::from(self.weight) * u128::from(self.weight - 1);
    }

    /// Counts an event that was observed together with this many earlier ones of the same key: all
    /// of them are observed, or none is. Their estimates do not balance each other, so they vary as
    /// one event that counts as often.
    ///
    /// # Examples
    /// ```
    /// use echoless_audit::WeightedCount;
    /// let (mut many_keys, mut one_key) = (WeightedCount::new(16), WeightedCount::new(16));
    /// for earlier in 0..100 {
    ///     many_keys.add();
    ///     one_key.add_after(earlier);
    /// }
    /// let (many_keys, one_key) = (many_keys.estimate(), one_key.estimate());
    /// assert_eq!(many_keys.value, one_key.value);
    /// assert!(many_keys.low > 1000 && many_keys.high < 2100);
    /// // Of one key, not much more is sure than what was observed.
    /// assert!(one_key.low == 100 && one_key.high > 5000);
    /// ```
    pub fn add_after(&mut self, earlier: u64) {
        self.add();
        // The variance grows with the square of the events of the key: n^2 - (n - 1)^2 = 2 (n - 1)
        // + 1.
        let weight = u128::from(self.weight);
        self.variance += 2 * u128::from(earlier) * weight * (weight - 1);
    }

    /// Sets the weight of the next events. It never falls.
    pub fn set_weight(&mut self, weight: u64) {
        self.weight = self.weight.max(weight);
    }

    /// The number of events, with the bounds of Fay and Feuer (1997) for sums of weighted Poisson
    /// counts. If all weights are equal, these are the exact bounds of Garwood (1936).
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        self.estimate_grouped(1.0)
    }

    /// The number of events of which so many, on average, are observed together or not at all.
    pub(crate) fn estimate_grouped(&self, size: f64) -> Estimate {
        let (sum, variance) = (self.sum as f64, self.variance as f64);
        let low = weighted_quantile(sum, variance, BEYOND);
        // Events that were not observed may have weighed as much as the next one does.
        let weight = self.weight as f64 * size;
        let unseen = if self.weight > 1 { weight } else { 0.0 };
        let grouped = if size > 1.0 {
            (weight - size) * sum
        } else {
            0.0
        };
        let more = variance.max(grouped) + weight * (weight - size);
        let high = weighted_quantile(sum + unseen, more, 1.0 - BEYOND);
        Estimate {
            value: self.sum,
            low: low.floor() as u64,
            high: high.ceil() as u64,
        }
        .within(self.observed, u64::MAX)
    }

    /// The events since an earlier state of this count.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            observed: self.observed - earlier.observed,
            sum: self.sum - earlier.sum,
            variance: self.variance - earlier.variance,
            weight: self.weight,
        }
    }

    /// The events of both counts.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            observed: self.observed + other.observed,
            sum: self.sum.saturating_add(other.sum),
            variance: self.variance + other.variance,
            weight: self.weight.max(other.weight),
        }
    }
}

/// The quantile of a gamma distribution with this mean and variance; the mean if that is 0.
pub(crate) fn weighted_quantile(mean: f64, variance: f64, probability: f64) -> f64 {
    if variance == 0.0 {
        return mean;
    }
    let scale = variance / mean;
    scale * gamma::quantile(mean / scale, probability)
}

saved! {
    WeightedCount { observed, sum, variance, weight }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_weights_have_the_bounds_of_garwood() {
        let mut events = WeightedCount::new(1 << 20);
        assert_eq!(events.estimate().low, 0);
        // A Poisson mean of ln(200) = 5.298 gives no event with a probability of 0.005.
        assert!((5_555_600..5_555_800).contains(&events.estimate().high));
        for _ in 0..10 {
            events.add();
        }
        let estimate = events.estimate();
        assert_eq!(estimate.value, 10 << 20);
        let unit = f64::from(1 << 20);
        assert!((estimate.low as f64 / unit - 3.717).abs() < 0.001);
        assert!((estimate.high as f64 / unit - 21.398).abs() < 0.001);
    }

    #[test]
    fn counts_of_weight_1_are_exact() {
        let mut events = WeightedCount::new(1);
        for count in 0..3 {
            assert_eq!(events.estimate(), Estimate::exact(count));
            events.add();
        }
        events.set_weight(2);
        let estimate = events.estimate();
        assert_eq!((estimate.value, estimate.low), (3, 3));
        assert!((7..14).contains(&estimate.high), "{estimate:?}");
    }
}
