//! The trait that all filters share.

use std::fmt;

use super::batch::Batch;
use super::sliced::Sliced;
use crate::hash::KeyHash;
use crate::report::{Report, Tally};
use crate::verdicts::{Verdict, Verdicts};

/// A duplicate filter: reports for each key of an endless stream whether the key was seen before,
/// in fixed memory.
///
/// Five methods are required. [`observe_batch`](Self::observe_batch) is the hot one: it has the
/// keys and their ticks, and every other observation, the clock included, goes through it. So a
/// filter around another one forwards the required methods, and nothing else can be forgotten:
/// [`prefetch`](Self::prefetch), [`contains_each`](Self::contains_each) and
/// [`memory_bytes`](Self::memory_bytes) only make a filter faster, [`slices`](Self::slices) are those
/// of few filters, and nothing implements the rest.
///
/// A filter is `Send` and `Sync`, so threads can own one, call [`contains`](Self::contains) of the
/// same one, and pass the errors that return filters on as `Box<dyn Error + Send + Sync>`.
///
/// # Examples
/// An exact filter, for the tests of other filters. Its memory is not fixed.
/// ```
/// use std::collections::HashSet;
/// use echoless::{Batch, Filter, KeyHash, KeyHasher, Tally, Verdict};
///
/// struct Exact(HashSet<KeyHash>);
///
/// impl Filter for Exact {
///     fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
///         batch.observe_each(duplicates, |key| !self.0.insert(key));
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
///     fn tally(&self) -> Tally {
///         Tally::new(8 * self.0.capacity() as u64)
///     }
/// }
///
/// let mut filter = Exact(HashSet::new());
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// assert_eq!(filter.observe_one(key), Verdict::Duplicate);
/// ```
pub trait Filter: Send + Sync {
    /// Probes and inserts each key in order, so that equal keys inside a batch are duplicates. A
    /// filter with a window moves its clock to the [ticks](super::Ticks) of the batch, also if the
    /// batch has no keys; a filter without one ignores them.
    ///
    /// Sets bit `i % 64` of `duplicates[i / 64]` if key `i` is a duplicate. Overwrites every word;
    /// bits past the last key are zero.
    ///
    /// # Panics
    /// If `duplicates` is not `keys.len().div_ceil(64)` words long, or a key belongs to another
    /// partition.
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]);

    /// Whether the key would be reported as a duplicate now. Changes nothing.
    ///
    /// # Panics
    /// If the key belongs to another partition.
    fn contains(&self, key: KeyHash) -> bool;

    /// Removes all keys, and resets the counters and the clock.
    fn clear(&mut self);

    /// The counters so far; [`Tally::new`] with the memory alone, if the filter has none. This may
    /// read the whole memory of the filter.
    fn tally(&self) -> Tally;

    /// The report of the whole filter that this one is a partition of. `tally` is the sum of the
    /// tallies of all partitions. Filters implement it if they estimate anything.
    fn report_on(&self, tally: Tally) -> Report {
        Report::new(tally)
    }

    /// The memory of the filter's state, in bytes. Filters implement it if their tally reads
    /// memory.
    fn memory_bytes(&self) -> u64 {
        self.tally().memory_bytes
    }

    /// Starts to load what the next observations of these keys touch. It is a hint without effect
    /// on verdicts, for callers whose batches are too short for the filter to look ahead in them,
    /// such as one that probes two filters for each key.
    ///
    /// Most filters ignore it. Filters of lines load one cache line for each key.
    fn prefetch(&self, _keys: &[KeyHash]) {}

    /// Has the system provide one of `shares` shares of the filter's memory now and not when keys
    /// first touch it, so that several threads can do it before a long stream begins: a GiB takes
    /// one of them a tenth of a second. It is a hint without effect on verdicts.
    ///
    /// Most filters ignore it. Filters of lines follow it on Linux, from version 5.14 on.
    ///
    /// # Examples
    /// ```
    /// use echoless::{Filter, FingerprintSpec, KeyHasher, Verdict};
    /// let mut filter = FingerprintSpec::new(64 << 20).build()?;
    /// std::thread::scope(|scope| {
    ///     let filter = &filter;
    ///     for share in 0..2 {
    ///         scope.spawn(move || filter.provide_memory(share, 2));
    ///     }
    /// });
    /// assert_eq!(filter.observe_one(KeyHasher::seeded(0).hash_u64(17)), Verdict::Fresh);
    /// # Ok::<(), echoless::BuildError>(())
    /// ```
    fn provide_memory(&self, _share: usize, _shares: usize) {}

    /// The slices of the filter, if it is made of slices that can fail.
    fn slices(&self) -> Option<&dyn Sliced> {
        None
    }

    /// As [`slices`](Self::slices), to fail and restore them.
    fn slices_mut(&mut self) -> Option<&mut dyn Sliced> {
        None
    }

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

    /// Counters and error estimates of this filter. This may read the whole memory of the filter.
    fn report(&self) -> Report {
        self.report_on(self.tally())
    }

    /// Moves the filter's clock to `tick`: a [batch](Batch::at) without keys. An earlier tick has
    /// no effect, and neither has any without a window.
    fn advance_to(&mut self, tick: u64) {
        self.observe_batch(Batch::at(&[], tick), &mut []);
    }

    /// Probes and inserts the keys of a batch in order. Resizes `verdicts` to the batch.
    fn observe(&mut self, keys: &[KeyHash], verdicts: &mut Verdicts) {
        verdicts.reset(keys.len());
        self.observe_batch(Batch::new(keys), verdicts.words_mut());
        verdicts.clear_tail();
    }

    /// Probes and inserts the keys of a batch in order, each [at its own tick](Batch::at_each).
    /// Resizes `verdicts` to the batch.
    ///
    /// # Panics
    /// If `ticks` is not as long as `keys`.
    fn observe_at(&mut self, keys: &[KeyHash], ticks: &[u64], verdicts: &mut Verdicts) {
        let batch = Batch::at_each(keys, ticks);
        verdicts.reset(keys.len());
        self.observe_batch(batch, verdicts.words_mut());
        verdicts.clear_tail();
    }

    /// Probes and inserts one key.
    fn observe_one(&mut self, key: KeyHash) -> Verdict {
        let mut word = [0];
        self.observe_batch(Batch::new(&[key]), &mut word);
        // A filter from outside this crate may set more bits than there are keys.
        Verdict::from_bit(word[0] & 1 == 1)
    }
}

/// The report of a whole filter, from all of its partitions. It equals that of the undivided
/// filter.
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

/// Methods that pass on to what a pointer points to.
macro_rules! forward {
    (
        &self: $(fn $name:ident($($value:ident: $type:ty),*) $(-> $result:ty)?;)*
        &mut self: $(fn $mut_name:ident($($mut_value:ident: $mut_type:ty),*) $(-> $mut_result:ty)?;)*
    ) => {
        $(fn $name(&self, $($value: $type),*) $(-> $result)? {
            (**self).$name($($value),*)
        })*
        $(fn $mut_name(&mut self, $($mut_value: $mut_type),*) $(-> $mut_result)? {
            (**self).$mut_name($($mut_value),*)
        })*
    };
}
pub(super) use forward;

/// What is passed on to the filter behind a pointer: all that a filter may implement.
macro_rules! forward_to_pointee {
    () => {
        forward! {
            &self:
            fn contains(key: KeyHash) -> bool;
            fn tally() -> Tally;
            fn report_on(tally: Tally) -> Report;
            fn memory_bytes() -> u64;
            fn prefetch(keys: &[KeyHash]);
            fn provide_memory(share: usize, shares: usize);
            fn contains_each(keys: &[KeyHash], verdicts: &mut Verdicts);
            fn slices() -> Option<&dyn Sliced>;
            &mut self:
            fn observe_batch(batch: Batch<'_>, duplicates: &mut [u64]);
            fn clear();
            fn slices_mut() -> Option<&mut dyn Sliced>;
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
