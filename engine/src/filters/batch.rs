//! What a filter observes at a time: keys, and the ticks at which they are judged.

use crate::hash::KeyHash;
use crate::verdicts::{clear_tail, scatter};

/// When the keys of a batch are judged and recorded.
///
/// A stream has one clock, the largest event time seen so far; its first value is 0. So a tick
/// before the clock leaves the clock as it is. The meaning of a tick is the caller's: a second, a
/// millisecond, the number of a record. No filter reads a system clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ticks<'a> {
    /// At the clock as it is.
    Unmoved,
    /// At this tick, all of them.
    One(u64),
    /// Each at its own: as many ticks as keys, in any order. Afterwards the clock is at the latest
    /// of them.
    Each(&'a [u64]),
}

/// Some keys in the order of the stream, and [when](Ticks) they are judged.
///
/// A batch without keys at a tick moves the clock and does nothing else. So a filter that passes
/// its batches on to another one passes on the clock, too.
///
/// # Examples
/// ```
/// use echoless::{Batch, Filter, FilterSpec, KeyHasher};
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// let spec: FilterSpec = "stamped:window=10,memory=1MiB".parse()?;
/// let mut filter = spec.build()?;
/// let mut duplicates = [0];
/// filter.observe_batch(Batch::at_each(&[key; 4], &[5, 15, 15, 26]), &mut duplicates);
/// // The last one comes 11 ticks after the one before it.
/// assert_eq!(duplicates, [0b0110]);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    keys: &'a [KeyHash],
    ticks: Ticks<'a>,
}

impl<'a> Batch<'a> {
    /// Keys that are judged at the clock as it is.
    #[inline]
    #[must_use]
    pub const fn new(keys: &'a [KeyHash]) -> Self {
        let ticks = Ticks::Unmoved;
        Self { keys, ticks }
    }

    /// Keys that are judged at one tick.
    #[inline]
    #[must_use]
    pub const fn at(keys: &'a [KeyHash], tick: u64) -> Self {
        let ticks = Ticks::One(tick);
        Self { keys, ticks }
    }

    /// Keys that are judged each at its own tick. The verdicts are those of one batch after the
    /// other, of one key each.
    ///
    /// A stream with fine ticks has few keys of one tick, and a filter can only look ahead in the
    /// batch that it gets. Filters of lines look ahead across ticks; other filters take a run of
    /// equal ticks at a time.
    ///
    /// # Panics
    /// If `ticks` is not as long as `keys`.
    #[inline]
    #[must_use]
    pub const fn at_each(keys: &'a [KeyHash], ticks: &'a [u64]) -> Self {
        assert!(ticks.len() == keys.len(), "one tick for each key");
        let ticks = Ticks::Each(ticks);
        Self { keys, ticks }
    }

    /// The keys, in the order of the stream.
    #[inline]
    #[must_use]
    pub const fn keys(self) -> &'a [KeyHash] {
        self.keys
    }

    /// When the keys are judged.
    #[inline]
    #[must_use]
    pub const fn ticks(self) -> Ticks<'a> {
        self.ticks
    }

    /// Observes the keys one by one, for filters without a window and without a loop of their own:
    /// the ticks are not looked at. `observe` returns whether the key is a duplicate; `duplicates`
    /// is written as by [`Filter::observe_batch`](crate::Filter::observe_batch).
    ///
    /// # Panics
    /// If `duplicates` is not `keys.len().div_ceil(64)` words long.
    #[inline(always)]
    pub fn observe_each(self, duplicates: &mut [u64], mut observe: impl FnMut(KeyHash) -> bool) {
        self.check_length(duplicates);
        for (keys, word) in self.keys.chunks(64).zip(duplicates) {
            *word = 0;
            for (index, key) in keys.iter().enumerate() {
                *word |= u64::from(observe(*key)) << index;
            }
        }
    }

    /// Observes the keys in runs of equal ticks, for filters that move their clock between batches
    /// only. `observe` gets the tick of a run, or `None` if the clock does not move, the keys of
    /// the run, and the words for their verdicts.
    ///
    /// # Panics
    /// If `duplicates` is not `keys.len().div_ceil(64)` words long.
    pub fn observe_runs(
        self,
        duplicates: &mut [u64],
        mut observe: impl FnMut(Option<u64>, Batch<'a>, &mut [u64]),
    ) {
        self.check_length(duplicates);
        let ticks = match self.ticks {
            Ticks::Unmoved => return observe(None, self, duplicates),
            Ticks::One(tick) => return observe(Some(tick), Self::new(self.keys), duplicates),
            Ticks::Each(ticks) => ticks,
        };
        duplicates.fill(0);
        let mut part = Vec::new();
        let mut from = 0;
        for ticks in ticks.chunk_by(|one, next| one == next) {
            let end = from + ticks.len();
            part.clear();
            part.resize(ticks.len().div_ceil(64), 0);
            observe(Some(ticks[0]), Self::new(&self.keys[from..end]), &mut part);
            // A filter from outside this crate may set bits past its last key.
            clear_tail(&mut part, ticks.len());
            // A run begins at any bit of a word.
            scatter(&part, duplicates, |index| from + index);
            from = end;
        }
    }

    /// Panics unless `duplicates` has one bit for each key and no whole word more.
    #[inline(always)]
    pub(crate) fn check_length(self, duplicates: &[u64]) {
        assert_eq!(
            duplicates.len(),
            self.keys.len().div_ceil(64),
            "one verdict bit for each key"
        );
    }
}

impl<'a> From<&'a [KeyHash]> for Batch<'a> {
    fn from(keys: &'a [KeyHash]) -> Self {
        Self::new(keys)
    }
}

impl<'a, const N: usize> From<&'a [KeyHash; N]> for Batch<'a> {
    fn from(keys: &'a [KeyHash; N]) -> Self {
        Self::new(keys)
    }
}

impl<'a> From<&'a Vec<KeyHash>> for Batch<'a> {
    fn from(keys: &'a Vec<KeyHash>) -> Self {
        Self::new(keys)
    }
}
