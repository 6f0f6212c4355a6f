//! The trait that all filters share.

use std::fmt;

use super::sliced::Sliced;
use crate::hash::KeyHash;
use crate::report::{Report, Tally};
use crate::verdicts::{Verdict, Verdicts, clear_tail, scatter};

/// A duplicate filter: reports for each key of an endless stream whether the key was seen before,
/// in fixed memory.
///
/// Four methods are required. [`observe_words`](Self::observe_words) is the hot one: every other
/// observation goes through it, unless the filter implements that one, too, with the same verdicts
/// and counters. A filter with counters also implements [`tally`](Self::tally), and
/// one that can estimate its errors [`report_on`](Self::report_on).
///
/// A filter is `Send` and `Sync`, so threads can own one, call [`contains`](Self::contains) of the
/// same one, and pass the errors that return filters on as `Box<dyn Error + Send + Sync>`.
///
/// A filter around another one forwards every method that it does not change, those with defaults
/// too: without `advance_to` and `observe_words_at` a window never moves, without `tally` and
/// `report_on` the report is empty, without `prefetch` and `contains_each` it is slow, and without
/// `slices` and `slices_mut` slices cannot fail.
///
/// # Examples
/// An exact filter, for the tests of other filters. Its memory is not fixed.
/// ```
/// use std::collections::HashSet;
/// use echoless::{Filter, KeyHash, KeyHasher, Verdict};
///
/// struct Exact(HashSet<KeyHash>);
///
/// impl Filter for Exact {
///     fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
///         duplicates.fill(0);
///         for (index, key) in keys.iter().enumerate() {
///             duplicates[index / 64] |= u64::from(!self.0.insert(*key)) << (index % 64);
///         }
///     }
///
///     fn contains(&self, key: KeyHash) -> bool {
///         self.0.contains(&key)
///     }
///
///     fn clear(&mut self) {
///         self.0.clear();
///     }
///
///     fn memory_bytes(&self) -> u64 {
///         8 * self.0.capacity() as u64
///     }
/// }
///
/// let mut filter = Exact(HashSet::new());
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// assert_eq!(filter.observe_one(key), Verdict::Duplicate);
/// ```
pub trait Filter: Send + Sync {
    /// Probes and inserts each key in order, so that equal keys inside a batch are duplicates.
    ///
    /// Sets bit `i % 64` of `duplicates[i / 64]` if key `i` is a duplicate. Overwrites every word;
    /// bits past the last key are zero.
    ///
    /// # Panics
    /// If `duplicates` is not `keys.len().div_ceil(64)` words long, or a key belongs to another
    /// partition.
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]);

    /// Moves the filter's clock to `tick`, at which the next keys are judged and recorded. An
    /// earlier tick has no effect: a stream has one clock, the largest event time seen so far, and
    /// its first value is 0.
    ///
    /// A filter without a window has no clock and ignores the call. The meaning of a tick is the
    /// caller's: a second, a millisecond, the number of a record. No filter reads a system clock.
    fn advance_to(&mut self, _tick: u64) {}

    /// Probes and inserts each key in order at its own tick: the verdicts are those of
    /// [`advance_to`](Self::advance_to) and [`observe_words`](Self::observe_words) for one key
    /// after the other. Writes `duplicates` as `observe_words` does.
    ///
    /// `ticks` has the tick of every key. A tick before the clock leaves the clock as it is, so the
    /// ticks need not be sorted. Afterwards the clock is at the latest of them.
    ///
    /// A stream with fine ticks has few keys of one tick, and a filter can only look ahead in the
    /// batch that it gets. Filters of lines look ahead across ticks; other filters get a batch for
    /// each run of equal ticks.
    ///
    /// # Panics
    /// As `observe_words`, and if `ticks` is not as long as `keys`.
    ///
    /// # Examples
    /// ```
    /// use echoless::{Filter, FilterSpec, KeyHasher};
    /// let key = KeyHasher::seeded(0).hash_u64(17);
    /// let spec: FilterSpec = "stamped:window=10,memory=1MiB".parse()?;
    /// let mut filter = spec.build()?;
    /// let mut duplicates = [0];
    /// filter.observe_words_at(&[key; 4], &[5, 15, 15, 26], &mut duplicates);
    /// // The last one comes 11 ticks after the one before it.
    /// assert_eq!(duplicates, [0b0110]);
    /// # Ok::<(), echoless::BuildError>(())
    /// ```
    fn observe_words_at(&mut self, keys: &[KeyHash], ticks: &[u64], duplicates: &mut [u64]) {
        check_ticks(keys, ticks);
        check_length(keys, duplicates);
        duplicates.fill(0);
        let mut part = Vec::new();
        let mut from = 0;
        for ticks in ticks.chunk_by(|one, next| one == next) {
            let end = from + ticks.len();
            part.clear();
            part.resize(ticks.len().div_ceil(64), 0);
            self.advance_to(ticks[0]);
            self.observe_words(&keys[from..end], &mut part);
            // A filter from outside this crate may set bits past its last key.
            clear_tail(&mut part, ticks.len());
            // A run begins at any bit of a word.
            scatter(&part, duplicates, |index| from + index);
            from = end;
        }
    }

    /// Starts to load what the next observations of these keys touch. It is a hint without effect
    /// on verdicts, for callers whose batches are too short for the filter to look ahead in them,
    /// such as one that probes two filters for each key.
    ///
    /// Most filters ignore it. Filters of lines load one cache line for each key.
    ///
    /// # Examples
    /// ```
    /// use echoless::{Filter, FingerprintSpec, KeyHasher, Verdict};
    /// let key = KeyHasher::seeded(0).hash_u64(17);
    /// let mut filter = FingerprintSpec::new(1 << 20).build()?;
    /// filter.prefetch(&[key]);
    /// assert_eq!(filter.observe_one(key), Verdict::Fresh);
    /// # Ok::<(), echoless::BuildError>(())
    /// ```
    fn prefetch(&self, _keys: &[KeyHash]) {}

    /// Whether the key would be reported as a duplicate now. Changes nothing.
    ///
    /// # Panics
    /// If the key belongs to another partition.
    fn contains(&self, key: KeyHash) -> bool;

    /// Whether each key [would be a duplicate now](Self::contains), for the batch as it is: a key
    /// that occurs twice in it is not a duplicate for that. Changes nothing. Resizes `verdicts` to
    /// the batch.
    ///
    /// # Panics
    /// If a key belongs to another partition.
    ///
    /// # Examples
    /// ```
    /// use echoless::{Filter, FingerprintSpec, KeyHasher, Verdicts};
    /// let keys = ["a", "b", "b"].map(|key| KeyHasher::seeded(0).hash(key));
    /// let mut filter = FingerprintSpec::new(1 << 20).build()?;
    /// filter.observe_one(keys[0]);
    /// let mut verdicts = Verdicts::new();
    /// filter.contains_each(&keys, &mut verdicts);
    /// assert_eq!(verdicts.to_bools(), [true, false, false]);
    /// # Ok::<(), echoless::BuildError>(())
    /// ```
    fn contains_each(&self, keys: &[KeyHash], verdicts: &mut Verdicts) {
        verdicts.reset(keys.len());
        let words = verdicts.words_mut();
        // A word at a time: long enough for the cache misses of its keys to overlap.
        for (keys, word) in keys.chunks(64).zip(words) {
            self.prefetch(keys);
            for (index, key) in keys.iter().enumerate() {
                *word |= u64::from(self.contains(*key)) << index;
            }
        }
    }

    /// Removes all keys, and resets the counters and the clock.
    fn clear(&mut self);

    /// The memory of the filter's state, in bytes.
    fn memory_bytes(&self) -> u64;

    /// The counters so far. This may read the whole memory of the filter.
    fn tally(&self) -> Tally {
        Tally::new(self.memory_bytes())
    }

    /// The report of the whole filter that this one is a partition of. `tally` is the sum of the
    /// tallies of all partitions.
    fn report_on(&self, tally: Tally) -> Report {
        Report::new(tally)
    }

    /// The slices of the filter, if it has slices that can fail.
    fn slices(&self) -> Option<&dyn Sliced> {
        None
    }

    /// The slices of the filter, to fail and restore them.
    fn slices_mut(&mut self) -> Option<&mut dyn Sliced> {
        None
    }

    /// Counters and error estimates of this filter. This may read the whole memory of the filter.
    fn report(&self) -> Report {
        self.report_on(self.tally())
    }

    /// Probes and inserts the keys of a batch in order. Resizes `verdicts` to the batch.
    fn observe(&mut self, keys: &[KeyHash], verdicts: &mut Verdicts) {
        verdicts.reset(keys.len());
        self.observe_words(keys, verdicts.words_mut());
        verdicts.clear_tail();
    }

    /// Probes and inserts the keys of a batch in order, each [at its own
    /// tick](Self::observe_words_at). Resizes `verdicts` to the batch.
    ///
    /// # Panics
    /// If `ticks` is not as long as `keys`.
    fn observe_at(&mut self, keys: &[KeyHash], ticks: &[u64], verdicts: &mut Verdicts) {
        verdicts.reset(keys.len());
        self.observe_words_at(keys, ticks, verdicts.words_mut());
        verdicts.clear_tail();
    }

    /// Probes and inserts one key.
    fn observe_one(&mut self, key: KeyHash) -> Verdict {
        let mut word = [0];
        self.observe_words(&[key], &mut word);
        // A filter from outside this crate may set more bits than there are keys.
        Verdict::from_bit(word[0] & 1 == 1)
    }
}

/// The report of a whole filter, from all of its partitions.
///
/// It equals the report of the undivided filter, apart from `huge_page_bytes`.
///
/// # Panics
/// If `partitions` is empty.
///
/// # Examples
/// ```
/// use echoless::{Filter, FingerprintSpec, KeyHasher, report_of};
/// let spec = FingerprintSpec::new(1 << 20);
/// let (mut whole, mut halves) = (spec.build()?, spec.build_partitions(2)?);
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// let owner = halves.partitioning().partition_of(key);
/// whole.observe_one(key);
/// halves.filters_mut()[owner].observe_one(key);
/// let (joint, whole) = (report_of(halves.filters()), whole.report());
/// assert_eq!((joint.tally.fresh, joint.fill()), (whole.tally.fresh, whole.fill()));
/// assert_eq!(joint.expected_fpr, whole.expected_fpr);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[must_use]
pub fn report_of<F: Filter>(partitions: &[F]) -> Report {
    let tally = partitions.iter().map(Filter::tally).sum();
    partitions[0].report_on(tally)
}

/// What is passed on to the filter behind a pointer: every method that a filter may implement
/// itself.
macro_rules! forward_to_pointee {
    () => {
        fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
            (**self).observe_words(keys, duplicates);
        }

        fn observe(&mut self, keys: &[KeyHash], verdicts: &mut Verdicts) {
            (**self).observe(keys, verdicts);
        }

        fn observe_at(&mut self, keys: &[KeyHash], ticks: &[u64], verdicts: &mut Verdicts) {
            (**self).observe_at(keys, ticks, verdicts);
        }

        fn observe_one(&mut self, key: KeyHash) -> Verdict {
            (**self).observe_one(key)
        }

        fn contains_each(&self, keys: &[KeyHash], verdicts: &mut Verdicts) {
            (**self).contains_each(keys, verdicts);
        }

        fn report(&self) -> Report {
            (**self).report()
        }

        fn advance_to(&mut self, tick: u64) {
            (**self).advance_to(tick);
        }

        fn observe_words_at(&mut self, keys: &[KeyHash], ticks: &[u64], duplicates: &mut [u64]) {
            (**self).observe_words_at(keys, ticks, duplicates);
        }

        fn prefetch(&self, keys: &[KeyHash]) {
            (**self).prefetch(keys);
        }

        fn contains(&self, key: KeyHash) -> bool {
            (**self).contains(key)
        }

        fn clear(&mut self) {
            (**self).clear();
        }

        fn memory_bytes(&self) -> u64 {
            (**self).memory_bytes()
        }

        fn tally(&self) -> Tally {
            (**self).tally()
        }

        fn report_on(&self, tally: Tally) -> Report {
            (**self).report_on(tally)
        }

        fn slices(&self) -> Option<&dyn Sliced> {
            (**self).slices()
        }

        fn slices_mut(&mut self) -> Option<&mut dyn Sliced> {
            (**self).slices_mut()
        }
    };
}

impl<F: Filter + ?Sized> Filter for Box<F> {
    forward_to_pointee!();
}

/// A borrowed filter, for a function that takes one by value.
impl<F: Filter + ?Sized> Filter for &mut F {
    forward_to_pointee!();
}

impl fmt::Debug for dyn Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("Filter");
        fields.field("memory_bytes", &self.memory_bytes());
        fields.finish_non_exhaustive()
    }
}

/// Observes a batch key by key, for filters without a batch loop of their own. `observe` returns
/// whether the key is a duplicate.
///
/// # Panics
/// If `duplicates` is not `keys.len().div_ceil(64)` words long.
#[inline(always)]
pub(super) fn observe_each(
    keys: &[KeyHash],
    duplicates: &mut [u64],
    mut observe: impl FnMut(KeyHash) -> bool,
) {
    check_length(keys, duplicates);
    for (keys, word) in keys.chunks(64).zip(duplicates) {
        *word = 0;
        for (index, key) in keys.iter().enumerate() {
            *word |= u64::from(observe(*key)) << index;
        }
    }
}

/// The tally of a filter whose only counter is that of its cells.
pub(super) fn tally_of_cells(memory_bytes: u64, cells: crate::report::Cells) -> Tally {
    Tally {
        cells: Some(cells),
        ..Tally::new(memory_bytes)
    }
}

/// Panics unless every key has a tick.
#[inline(always)]
pub(super) fn check_ticks(keys: &[KeyHash], ticks: &[u64]) {
    assert_eq!(ticks.len(), keys.len(), "one tick for each key");
}

/// Panics unless `duplicates` has one bit for each key and no whole word more.
#[inline(always)]
pub(super) fn check_length(keys: &[KeyHash], duplicates: &[u64]) {
    assert_eq!(
        duplicates.len(),
        keys.len().div_ceil(64),
        "one verdict bit for each key"
    );
}
