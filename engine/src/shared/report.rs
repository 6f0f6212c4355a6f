//! Counters and error estimates of a shared filter.

use super::filter::SharedFilter;
use super::layout::SharedLayout;
use super::striped::StripedCount;
use crate::report::{AgeOrigin, Cells, MissAge, RateSum, Report, Tally};
use crate::sync::Ordering;
use crate::theory::fingerprints;

impl SharedFilter {
    /// Counters and error estimates of this filter, as those of other filters, computed by a pass
    /// over all words. While one thread clears the filter and others observe keys, all counters are
    /// inexact, until it is cleared alone.
    ///
    /// A call that observes keys counts those that were fresh at its end. So `fresh` is exact once
    /// all calls have returned, and before that lacks keys of the calls under way, but is never too
    /// high. The same holds for `evictions`, which also lacks those that happen during the report.
    ///
    /// The keys observed are not counted: that would be one more write for each duplicate, which is
    /// not written at all otherwise. With rows, `evictions` and `miss_age` report what was
    /// forgotten and from which age on duplicates are missed. [`SharedLayout::Bloom`] forgets
    /// nothing, and [`SharedLayout::Ageing`] forgets bits, not keys. A node below the root of a
    /// [`SharedTree`](crate::SharedTree) counts no keys, so `fresh` and the evictions of its rows
    /// are `None`.
    ///
    /// # Examples
    /// ```
    /// use echoless::{KeyHasher, SharedSpec};
    /// let filter = SharedSpec::new(1 << 10).build()?; // 512 fingerprints
    /// let hasher = KeyHasher::seeded(0);
    /// for id in 0..1000 {
    ///     filter.observe_one(hasher.hash_u64(id));
    /// }
    /// let report = filter.report();
    /// let tally = report.tally;
    /// assert!(tally.fresh > Some(990) && tally.evictions >= Some(480));
    /// assert!(report.fill() > Some(0.98));
    /// # Ok::<(), echoless::BuildError>(())
    /// ```
    #[must_use]
    pub fn report(&self) -> Report {
        // Before the words are read, whose cells only fill: `fresh - occupied` is then at most the
        // evictions so far. Read afterwards, it would count the keys that are recorded meanwhile in
        // empty cells as well.
        let fresh = self.fresh.as_ref().map(StripedCount::sum);
        let (mut occupied, mut rates) = (0, RateSum::default());
        for word in self.words.iter() {
            // Relaxed: a statistic over words that other threads may be updating. The words of the
            // keys in `fresh` are visible: see `StripedCount::sum`.
            let cells = self.layout.occupied(word.load(Ordering::Relaxed));
            occupied += u64::from(cells);
            rates.push(self.layout.rate(cells));
        }
        let words = self.words.len() as u64;
        let per_word = self.layout.cells();
        let forgets_keys = match self.layout {
            SharedLayout::Row4x16 | SharedLayout::Row2x32 => true,
            SharedLayout::Bloom { .. } | SharedLayout::Ageing { .. } => false,
        };
        let evictions = match self.layout {
            // Every fresh key was recorded in a slot, so those that are not there were evicted.
            // Saturating, because calls under way have recorded keys that are not counted yet.
            SharedLayout::Row4x16 | SharedLayout::Row2x32 => {
                fresh.map(|fresh| fresh.saturating_sub(occupied))
            }
            SharedLayout::Bloom { .. } => Some(0),
            SharedLayout::Ageing { .. } => None,
        };
        let tally = Tally {
            fresh,
            evictions,
            cells: Some(Cells::new(occupied, words * u64::from(per_word))),
            rates: Some(rates),
            ..Tally::new(self.memory_bytes())
        };
        let miss_age = forgets_keys.then(|| {
            let age = fingerprints::miss_age_keys(words, per_word, 64 / per_word);
            MissAge::new(age, AgeOrigin::Recorded)
        });
        Report {
            slot_bits: forgets_keys.then_some(64 / per_word),
            miss_age,
            ..Report::new(tally)
        }
    }

    /// The current probability that a key never observed before is a duplicate, computed by a pass
    /// over all words.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        self.report().expected_fpr.unwrap_or(0.0)
    }
}

impl SharedLayout {
    /// The number of cells of a word: slots or bits.
    const fn cells(self) -> u32 {
        match self {
            Self::Row4x16 => 4,
            Self::Row2x32 => 2,
            Self::Bloom { .. } | Self::Ageing { .. } => 64,
        }
    }

    /// How many cells of a word are not zero.
    fn occupied(self, word: u64) -> u32 {
        let bits = 64 / self.cells();
        let cell = |index: u32| word >> (index * bits) & (u64::MAX >> (64 - bits));
        match self {
            Self::Row4x16 | Self::Row2x32 => {
                (0..self.cells()).filter(|index| cell(*index) != 0).count() as u32
            }
            Self::Bloom { .. } | Self::Ageing { .. } => word.count_ones(),
        }
    }

    /// The probability that a new key is found in a word with so many occupied cells.
    fn rate(self, occupied: u32) -> f64 {
        let occupied = f64::from(occupied);
        match self {
            // One of the 2^16 or 2^32 values is never used, and another one takes its keys.
            Self::Row4x16 => occupied / 2_f64.powi(16),
            Self::Row2x32 => occupied / 2_f64.powi(32),
            Self::Bloom { k } | Self::Ageing { k } => (occupied / 64.0).powi(k as i32),
        }
    }
}
