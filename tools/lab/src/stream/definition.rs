//! The definition of a stream: its length, its universe and the distribution of its keys.

use std::sync::Arc;

use echoless::{KeyHash, KeyHasher, SpecError};

use super::draws::Draws;
use super::recorded::RecordedKeys;

/// A stream of keys. Keys are the numbers below its universe, so that an exact oracle is an array.
///
/// The text form is `uniform:records=10M,distinct=0.6` (or `universe=12M` instead of the fraction
/// of distinct records) or `zipf:records=10M,universe=1M,exponent=1.1`.
///
/// # Examples
/// ```
/// use echoless_lab::stream::Stream;
/// let stream: Stream = "uniform:records=1M,distinct=0.6".parse()?;
/// assert_eq!(stream.records(), 1_000_000);
/// let mut draws = stream.draws(7);
/// let mut keys = [0; 100];
/// assert_eq!(draws.fill(&mut keys), 100);
/// assert!(keys.iter().all(|key| *key < stream.universe()));
///
/// let error = "uniform:records=1M,distinct=1.5".parse::<Stream>().unwrap_err();
/// assert_eq!(error.field, "distinct");
/// # Ok::<(), echoless::SpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Stream {
    pub(super) records: u64,
    pub(super) universe: u64,
    pub(super) distribution: Distribution,
}

/// The distribution of the keys.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Distribution {
    /// Every key is equally likely, with replacement.
    Uniform,
    /// Key r has the weight (r + 1)^-exponent, with replacement.
    Zipf { exponent: f64 },
    /// A recorded sequence. A key is its index among the distinct keys, in the order of their first
    /// arrival.
    Recorded(Arc<[u32]>),
}

impl Stream {
    /// `records` uniform draws from `0..universe`.
    ///
    /// # Errors
    /// [`SpecError`] if either is 0.
    pub fn uniform(records: u64, universe: u64) -> Result<Self, SpecError> {
        Ok(Self {
            records: above_zero("records", records)?,
            universe: above_zero("universe", universe)?,
            distribution: Distribution::Uniform,
        })
    }

    /// `records` uniform draws of which this fraction is expected to be distinct. The universe U
    /// solves fraction = (1 - e^(-N/U)) / (N/U) for N records.
    ///
    /// # Errors
    /// [`SpecError`] if there are no records, or the fraction is not between 0 and 1 (exclusive).
    pub fn with_distinct_fraction(records: u64, fraction: f64) -> Result<Self, SpecError> {
        if !(fraction > 0.0 && fraction < 1.0) {
            let allowed = "a fraction between 0 and 1 (exclusive)";
            return Err(SpecError::new("distinct", fraction.to_string(), allowed));
        }
        // Bisection over N/U, in which the right side is decreasing. 200 halvings of the exponent
        // range exhaust the precision of an `f64`.
        let distinct = |draws: f64| -(-draws).exp_m1() / draws;
        let (mut low, mut high) = (1e-9_f64, 1e9_f64);
        for _ in 0..200 {
            let middle = (low * high).sqrt();
            if distinct(middle) > fraction {
                low = middle;
            } else {
                high = middle;
            }
        }
        let universe = (records as f64 / low).round().max(1.0) as u64;
        Self::uniform(records, universe)
    }

    /// `records` draws from `0..universe` by a Zipf distribution.
    ///
    /// # Errors
    /// [`SpecError`] if there are no records, no keys, or the exponent is not above 0 and at most
    /// 10.
    pub fn zipf(records: u64, universe: u64, exponent: f64) -> Result<Self, SpecError> {
        if !(exponent > 0.0 && exponent <= 10.0) {
            let allowed = "a number above 0 and at most 10";
            return Err(SpecError::new("exponent", exponent.to_string(), allowed));
        }
        Ok(Self {
            records: above_zero("records", records)?,
            universe: above_zero("universe", universe)?,
            distribution: Distribution::Zipf { exponent },
        })
    }

    /// The stream of these keys, in their order. Keys of equal hash are one key. It takes 4 bytes
    /// of memory for each record.
    ///
    /// # Errors
    /// [`SpecError`] if there are no keys, or 2^32 or more distinct ones.
    ///
    /// # Examples
    /// ```
    /// use echoless::KeyHasher;
    /// use echoless_lab::stream::Stream;
    /// let stream = Stream::recorded([7, 9, 7].map(|id| KeyHasher::seeded(0).hash_u64(id)))?;
    /// assert_eq!((stream.records(), stream.universe()), (3, 2));
    /// # Ok::<(), echoless::SpecError>(())
    /// ```
    pub fn recorded(keys: impl IntoIterator<Item = KeyHash>) -> Result<Self, SpecError> {
        let mut recorded = RecordedKeys::default();
        for key in keys {
            recorded.push(key)?;
        }
        recorded.into_stream()
    }

    /// The records of a random part of the keys, about this fraction of them, in their order. The
    /// keys of a recorded stream keep their repeats, at distances that are shorter in the same
    /// proportion. Other streams are returned as they are. Fails if no record is left.
    pub(crate) fn thinned(&self, fraction: f64, seed: u64) -> Result<Self, SpecError> {
        let Distribution::Recorded(records) = &self.distribution else {
            return Ok(self.clone());
        };
        if fraction >= 1.0 {
            return Ok(self.clone());
        }
        let hasher = KeyHasher::seeded(seed);
        let least = (fraction * 2_f64.powi(64)) as u64;
        let keys = records.iter().map(|key| hasher.hash_u64(u64::from(*key)));
        Self::recorded(keys.filter(|hash| hash.get() < least))
    }

    /// Whether the first half of a recorded stream has half of its distinct keys, to a hundredth of
    /// them. Others do.
    pub(crate) fn gains_keys_evenly(&self) -> bool {
        let Distribution::Recorded(records) = &self.distribution else {
            return true;
        };
        // Keys are numbered in the order of their first arrivals.
        let half = records[..records.len() / 2].iter().max();
        let half = half.map_or(0.0, |newest| f64::from(*newest) + 1.0);
        (half / self.universe as f64 - 0.5).abs() <= 0.01
    }

    /// The first `most` records of a recorded stream, and whether these are all. Other streams are
    /// returned as they are.
    pub(crate) fn first(self, most: u64) -> (Self, bool) {
        match &self.distribution {
            Distribution::Recorded(records) if most < self.records => (
                Self {
                    records: most,
                    distribution: Distribution::Recorded(records[..most as usize].into()),
                    ..self
                },
                false,
            ),
            Distribution::Recorded(_) | Distribution::Uniform | Distribution::Zipf { .. } => {
                (self, true)
            }
        }
    }

    /// The number of records.
    #[must_use]
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// The size of the universe: every key is below it.
    #[must_use]
    pub const fn universe(&self) -> u64 {
        self.universe
    }

    /// Returns `true` if the keys are uniform draws, the case that the formulas cover.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.distribution == Distribution::Uniform
    }

    /// Returns `true` if the keys were [recorded](Self::recorded).
    #[must_use]
    pub const fn is_recorded(&self) -> bool {
        matches!(self.distribution, Distribution::Recorded(_))
    }

    /// The expected number of distinct records of uniform draws, U (1 - e^(-N/U)); an upper bound
    /// for other distributions.
    #[must_use]
    pub fn expected_distinct(&self) -> f64 {
        let universe = self.universe as f64;
        match self.distribution {
            Distribution::Uniform => -universe * (-(self.records as f64) / universe).exp_m1(),
            Distribution::Zipf { .. } | Distribution::Recorded(_) => {
                universe.min(self.records as f64)
            }
        }
    }

    /// The draws of the stream. Equal seeds give equal draws.
    #[must_use]
    pub fn draws(&self, seed: u64) -> Draws {
        Draws::new(self.records, self.universe, self.distribution.clone(), seed)
    }
}

pub(super) fn above_zero(field: &'static str, count: u64) -> Result<u64, SpecError> {
    if count == 0 {
        return Err(SpecError::new(field, "0", "at least 1"));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn all(stream: &Stream, seed: u64) -> Vec<u64> {
        let mut keys = vec![0; stream.records() as usize + 1];
        let len = stream.draws(seed).fill(&mut keys);
        keys.truncate(len);
        keys
    }

    #[test]
    fn the_fraction_of_distinct_records_is_the_requested_one() {
        for fraction in [0.05, 0.15, 0.6, 0.9, 0.99] {
            let stream = Stream::with_distinct_fraction(400_000, fraction).unwrap();
            let keys: HashSet<u64> = all(&stream, 5).into_iter().collect();
            let measured = keys.len() as f64 / 400_000.0;
            assert!(
                (measured - fraction).abs() < 0.003,
                "{fraction}: {measured}"
            );
            let expected = stream.expected_distinct() / 400_000.0;
            assert!((expected - fraction).abs() < 1e-5, "{fraction}: {expected}");
        }
    }

    #[test]
    fn recorded_keys_are_drawn_in_order() {
        let stream = Stream::recorded([5, 5, 2, 9, 2].map(KeyHash::from_uniform)).unwrap();
        assert_eq!(all(&stream, 1), [0, 0, 1, 2, 1]);
        assert_eq!((stream.records(), stream.universe()), (5, 3));
        assert!(Stream::recorded([]).is_err());
    }

    #[test]
    fn a_thinned_stream_has_all_records_of_its_keys() {
        let keys = (0..60_000_u64).map(|i| KeyHash::from_uniform(i * i % 9973));
        let stream = Stream::recorded(keys).unwrap();
        let thin = stream.thinned(0.25, 3).unwrap();
        let fraction = thin.universe() as f64 / stream.universe() as f64;
        assert!((fraction - 0.25).abs() < 0.04, "{fraction}");
        let counts = |stream: &Stream| {
            let mut counts = vec![0; stream.universe() as usize];
            for key in all(stream, 1) {
                counts[key as usize] += 1;
            }
            counts.sort_unstable();
            counts
        };
        // Every key of the whole stream occurs 6, 12 or 13 times.
        let (all_counts, thin_counts) = (counts(&stream), counts(&thin));
        assert!(thin_counts.iter().all(|count| all_counts.contains(count)));
        assert_eq!(stream.thinned(1.0, 3).unwrap(), stream);
        assert!(stream.thinned(0.0, 3).is_err());
        let (part, is_all) = stream.clone().first(100);
        assert_eq!(
            (all(&part, 1), is_all),
            (all(&stream, 1)[..100].to_vec(), false)
        );
        assert_eq!(stream.clone().first(60_000), (stream, true));
    }

    #[test]
    fn zipf_draws_prefer_the_first_keys() {
        let stream = Stream::zipf(200_000, 1000, 1.0).unwrap();
        let keys = all(&stream, 2);
        let harmonic: f64 = (1..=1000).map(|rank| 1.0 / f64::from(rank)).sum();
        for key in [0, 1, 9] {
            let fraction = keys.iter().filter(|drawn| **drawn == key).count() as f64 / 200_000.0;
            let expected = 1.0 / ((key + 1) as f64 * harmonic);
            assert!((fraction / expected - 1.0).abs() < 0.1, "{key}: {fraction}");
        }
        assert!(keys.iter().all(|key| *key < 1000));
    }
}
