//! The definition of a stream: its length, its universe and the distribution of its keys.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use echoless::spec::Options;
use echoless::{KeyHash, KeyHasher, SpecError};

use super::count::{format_count, parse_count};
use super::draws::Draws;

/// A stream of keys. Keys are the numbers below its universe, so that an exact oracle is an array.
///
/// The text form is `uniform:records=10M,distinct=0.6` (or `universe=12M` instead of the share of
/// distinct records) or `zipf:records=10M,universe=1M,exponent=1.1`.
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
    records: u64,
    universe: u64,
    distribution: Distribution,
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

    /// `records` uniform draws of which the share `share` is expected to be distinct. The universe
    /// U solves share = (1 - e^(-N/U)) / (N/U) for N records.
    ///
    /// # Errors
    /// [`SpecError`] if there are no records, or the share is not between 0 and 1 (exclusive).
    pub fn with_distinct_share(records: u64, share: f64) -> Result<Self, SpecError> {
        if !(share > 0.0 && share < 1.0) {
            let allowed = "a fraction between 0 and 1 (exclusive)";
            return Err(SpecError::new("distinct", share.to_string(), allowed));
        }
        // Bisection over N/U, in which the right side is decreasing. 200 halvings of the exponent
        // range exhaust the precision of an `f64`.
        let distinct = |draws: f64| -(-draws).exp_m1() / draws;
        let (mut low, mut high) = (1e-9_f64, 1e9_f64);
        for _ in 0..200 {
            let middle = (low * high).sqrt();
            if distinct(middle) > share {
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

    /// The records of a random part of the keys, about the share `share` of them, in their order.
    /// The keys of a recorded stream keep their repeats, at distances that are shorter by the same
    /// share. Other streams are returned as they are.
    ///
    /// # Errors
    /// [`SpecError`] if no record is left.
    pub(crate) fn thinned(&self, share: f64, seed: u64) -> Result<Self, SpecError> {
        let Distribution::Recorded(records) = &self.distribution else {
            return Ok(self.clone());
        };
        if share >= 1.0 {
            return Ok(self.clone());
        }
        let hasher = KeyHasher::seeded(seed);
        let least = (share * 2_f64.powi(64)) as u64;
        let keys = records.iter().map(|key| hasher.hash_u64(u64::from(*key)));
        Self::recorded(keys.filter(|hash| hash.get() < least))
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

/// The keys of a recorded stream, while they are collected: 4 bytes for each record, and up to 40
/// for each distinct key.
///
/// # Examples
/// ```
/// use echoless::KeyHasher;
/// use echoless_lab::stream::RecordedKeys;
/// let mut keys = RecordedKeys::default();
/// for key in [7, 9, 7] {
///     keys.push(KeyHasher::seeded(0).hash_u64(key))?;
/// }
/// assert_eq!(keys.records(), 3);
/// assert_eq!(keys.into_stream()?.universe(), 2);
/// # Ok::<(), echoless::SpecError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct RecordedKeys {
    /// The index of each distinct key.
    indices: HashMap<KeyHash, u32>,
    records: Vec<u32>,
}

impl RecordedKeys {
    /// Adds the key of the next record.
    ///
    /// # Errors
    /// [`SpecError`] if there are 2^32 distinct keys.
    pub fn push(&mut self, key: KeyHash) -> Result<(), SpecError> {
        let next = self.indices.len();
        let index = match self.indices.entry(key) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => *entry.insert(u32::try_from(next).map_err(|_| {
                SpecError::new("input", "2^32 distinct keys", "fewer distinct keys")
            })?),
        };
        self.records.push(index);
        Ok(())
    }

    /// The number of records so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records.len() as u64
    }

    /// The stream of these keys.
    ///
    /// # Errors
    /// [`SpecError`] if there are none.
    pub fn into_stream(self) -> Result<Stream, SpecError> {
        Ok(Stream {
            records: above_zero("records", self.records())?,
            universe: self.indices.len() as u64,
            distribution: Distribution::Recorded(self.records.into()),
        })
    }
}

fn above_zero(field: &'static str, count: u64) -> Result<u64, SpecError> {
    if count == 0 {
        return Err(SpecError::new(field, "0", "at least 1"));
    }
    Ok(count)
}

impl FromStr for Stream {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let mut options = Options::parse(options)?;
        let mut count = |field| {
            let text = options.take(field);
            text.map(|text| parse_count(field, &text)).transpose()
        };
        let missing = |field, example| SpecError::missing(field, example);
        let records = count("records")?;
        let universe = count("universe")?;
        let records = |example| records.ok_or_else(|| missing("records", example));
        let stream = match name {
            "uniform" => {
                let records = records("a count, as in uniform:records=10M,distinct=0.6")?;
                let distinct: Option<f64> = options.number("distinct", "a number")?;
                match (distinct, universe) {
                    (Some(share), None) => Self::with_distinct_share(records, share)?,
                    (None, Some(universe)) => Self::uniform(records, universe)?,
                    (share, _) => {
                        let asked = share.map_or(String::new(), |share| share.to_string());
                        let allowed = "either distinct or universe, not both";
                        return Err(SpecError::new("distinct", asked, allowed));
                    }
                }
            }
            "zipf" => {
                let records = records("a count, as in zipf:records=10M,universe=1M")?;
                let universe = universe.ok_or_else(|| {
                    missing("universe", "a count, as in zipf:records=10M,universe=1M")
                })?;
                Self::zipf(
                    records,
                    universe,
                    options.decimal("exponent", 1.0, 0.0..=10.0)?,
                )?
            }
            _ => return Err(SpecError::new("stream", name, "uniform or zipf")),
        };
        options.finish()?;
        Ok(stream)
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let records = format_count(self.records);
        let universe = format_count(self.universe);
        match &self.distribution {
            Distribution::Uniform => {
                write!(formatter, "uniform:records={records},universe={universe}")
            }
            Distribution::Zipf { exponent } => write!(
                formatter,
                "zipf:records={records},universe={universe},exponent={exponent}"
            ),
            Distribution::Recorded(_) => write!(
                formatter,
                "{records} recorded keys, {universe} of them distinct"
            ),
        }
    }
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
    fn the_share_of_distinct_records_is_the_requested_one() {
        for share in [0.05, 0.15, 0.6, 0.9, 0.99] {
            let stream = Stream::with_distinct_share(400_000, share).unwrap();
            let keys: HashSet<u64> = all(&stream, 5).into_iter().collect();
            let measured = keys.len() as f64 / 400_000.0;
            assert!((measured - share).abs() < 0.003, "{share}: {measured}");
            let expected = stream.expected_distinct() / 400_000.0;
            assert!((expected - share).abs() < 1e-5, "{share}: {expected}");
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
        let share = thin.universe() as f64 / stream.universe() as f64;
        assert!((share - 0.25).abs() < 0.04, "{share}");
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
            let share = keys.iter().filter(|drawn| **drawn == key).count() as f64 / 200_000.0;
            let expected = 1.0 / ((key + 1) as f64 * harmonic);
            assert!((share / expected - 1.0).abs() < 0.1, "{key}: {share}");
        }
        assert!(keys.iter().all(|key| *key < 1000));
    }

    #[test]
    fn formatted_streams_parse_to_the_same_stream() {
        for text in [
            "uniform:records=10M,universe=12345",
            "zipf:records=3k,universe=1M,exponent=1.25",
        ] {
            let stream: Stream = text.parse().unwrap();
            assert_eq!(stream.to_string(), text);
        }
    }

    #[test]
    fn errors_name_the_field() {
        for (text, field) in [
            ("", "stream"),
            ("normal:records=1", "stream"),
            ("uniform", "records"),
            ("uniform:records=0,distinct=0.5", "records"),
            ("uniform:records=1k", "distinct"),
            ("uniform:records=1k,distinct=1", "distinct"),
            ("uniform:records=1k,distinct=0", "distinct"),
            ("uniform:records=1k,distinct=x", "distinct"),
            ("uniform:records=1k,distinct=0.5,universe=10", "distinct"),
            ("uniform:records=1k,universe=0", "universe"),
            ("uniform:records=1k,distinct=0.5,colour=red", "option"),
            ("uniform:records", "option"),
            ("zipf:universe=5", "records"),
            ("zipf:records=5", "universe"),
            ("zipf:records=5,universe=5,exponent=0", "exponent"),
            ("zipf:records=5,universe=5,exponent=11", "exponent"),
        ] {
            let error = text.parse::<Stream>().expect_err(text);
            assert_eq!(error.field, field, "{text}: {error}");
        }
    }
}
