//! Counters and error estimates of a shared filter.

use super::clock::SharedClock;
use super::filter::SharedFilter;
use super::spec::SharedLayout;
use super::stamped::FINGERPRINT_BITS;
use super::striped::StripedCount;
use crate::memory::LINE_BYTES;
use crate::report::{AgeOrigin, Cells, MissAge, RateSum, Report, SampleError, Tally};
use crate::sync::Ordering;
use crate::theory::fingerprints;

/// The most lines that a report reads: 4 MiB.
const SAMPLE_LINES: u64 = 1 << 16;

/// The lines of a sample that lie together: a page of 4 KiB, which costs one miss of the TLB, and
/// one page fault where the filter was never written.
const BLOCK_LINES: u64 = 64;

/// The words of a line.
const LINE_WORDS: u64 = LINE_BYTES / 8;

impl SharedFilter {
    /// Counters and error estimates of this filter, as those of other filters. It takes a few
    /// milliseconds, for any size of the filter: rows count the slots that are occupied, and
    /// of bits and of slots with a window, whose live ones are its cells, it reads 4 MiB at most,
    /// evenly spread and always the same lines. What it derives from fewer words than all has its
    /// error in `sample_error`. While one thread clears the filter and others observe keys, all
    /// counters are inexact, until it is cleared alone.
    ///
    /// A call that observes keys counts those that were fresh at its end. So `fresh` is exact once
    /// all calls have returned, and before that lacks keys of the calls under way, but is never too
    /// high. The same holds for `evictions`, which also lacks those that happen during the report.
    ///
    /// The keys observed are not counted: that would be one more write for each duplicate, which is
    /// not written at all otherwise. With rows, `evictions` and `miss_age` report what was
    /// forgotten and from which age on duplicates are missed; with a window also `window`,
    /// `expired` and `most_fpr`, the rate if all slots are live. [`SharedLayout::Bloom`] forgets
    /// nothing, and [`SharedLayout::Ageing`] forgets bits, not keys. A node below the root of a
    /// tree of them counts no keys, so `fresh` and the evictions of its rows are `None`.
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
        // The other way round than they are counted: no more evictions than fresh keys, and
        // `fresh - occupied` is at most the evictions so far.
        let evicted = self.evicted.as_ref().map(StripedCount::sum);
        let fresh = self.fresh.as_ref().map(StripedCount::sum);
        let (words, per_word) = (self.words.len() as u64, self.layout.cells());
        let total = words * u64::from(per_word);
        let counted = self.occupied.as_ref().map(StripedCount::sum);
        let (occupied, rates, sample_error) = match counted {
            Some(occupied) => {
                let occupied = occupied.min(total);
                (occupied, self.layout.rates_of_slots(occupied, words), None)
            }
            None => {
                let sample = self.sample(SAMPLE_LINES);
                let occupied = sample.mean(f64::from) * words as f64;
                let rates = sample.rates(self.layout);
                (
                    occupied.round() as u64,
                    rates,
                    sample.error(self.layout, words),
                )
            }
        };
        let (forgets_keys, since) = match self.layout {
            SharedLayout::Stamped { refresh: true, .. } => (true, AgeOrigin::LastSeen),
            SharedLayout::Row4x16 | SharedLayout::Row2x32 | SharedLayout::Stamped { .. } => {
                (true, AgeOrigin::Recorded)
            }
            SharedLayout::Bloom { .. } | SharedLayout::Ageing { .. } => {
                (false, AgeOrigin::Recorded)
            }
        };
        let evictions = match self.layout {
            // Every fresh key was recorded in a slot, so those that are not there were evicted.
            // Saturating, because calls under way have taken slots and not counted their keys yet.
            SharedLayout::Row4x16 | SharedLayout::Row2x32 => {
                fresh.map(|fresh| fresh.saturating_sub(occupied))
            }
            SharedLayout::Stamped { .. } => evicted,
            SharedLayout::Bloom { .. } => Some(0),
            SharedLayout::Ageing { .. } => None,
        };
        let clock = self.clock.as_ref();
        // As in lines: every fresh key takes a slot until it is evicted or expires.
        let expired = |evictions| Some(fresh?.saturating_sub(evictions).saturating_sub(occupied));
        let tally = Tally {
            fresh,
            evictions,
            cells: Some(Cells::new(occupied, total)),
            rates: Some(rates),
            ..Tally::new(self.memory_bytes())
        };
        let miss_age = forgets_keys.then(|| {
            let age = fingerprints::miss_age_keys(words, per_word, self.layout.fingerprint_bits());
            MissAge::new(age, since)
        });
        Report {
            look_ahead: self.tuner.measured(),
            slot_bits: forgets_keys.then_some(64 / per_word),
            miss_age,
            most_fpr: clock.map(|_| self.layout.rate(per_word)),
            window: clock.map(SharedClock::window),
            expired: clock.and_then(|_| expired(evictions?)),
            sample_error,
            ..Report::new(tally)
        }
    }

    /// The words of all lines, or of so many, in blocks that are evenly spread: a multiple of
    /// [`BLOCK_LINES`]. Keys spread evenly as well, by their hashes.
    fn sample(&self, most_lines: u64) -> WordSample {
        let lines = self.words.len() as u64 / LINE_WORDS;
        let count = lines.min(most_lines);
        let ages = self.clock.as_ref().map(|clock| clock.ages(clock.now()));
        let mut by_occupied = [0; 65];
        for index in 0..count {
            let line = if count == lines {
                index
            } else {
                let (block, offset) = (index / BLOCK_LINES, index % BLOCK_LINES);
                let blocks = u128::from(count / BLOCK_LINES);
                (u128::from(block) * u128::from(lines) / blocks) as u64 + offset
            };
            let first = (line * LINE_WORDS) as usize;
            for word in &self.words[first..first + LINE_WORDS as usize] {
                // Relaxed: a statistic over words that other threads may be updating. The words of
                // the keys in `fresh` are visible: see `StripedCount::sum`.
                let word = word.load(Ordering::Relaxed);
                let cells = match ages {
                    Some(ages) => ages.live(word),
                    None => self.layout.occupied(word),
                };
                by_occupied[cells as usize] += 1;
            }
        }
        WordSample { by_occupied }
    }
}

/// Words of a filter, counted by how many of their cells are occupied.
#[derive(Debug)]
struct WordSample {
    by_occupied: [u64; 65],
}

impl WordSample {
    fn words(&self) -> u64 {
        self.by_occupied.iter().sum()
    }

    /// The mean of a function of the occupied cells of a word.
    fn mean(&self, value: impl Fn(u32) -> f64) -> f64 {
        let counts = (0..).zip(&self.by_occupied);
        let sum: f64 = counts
            .map(|(cells, words)| value(cells) * *words as f64)
            .sum();
        sum / self.words() as f64
    }

    fn rates(&self, layout: SharedLayout) -> RateSum {
        let mut rates = RateSum::default();
        for (cells, words) in (0..).zip(&self.by_occupied) {
            rates.push_equal(layout.rate(cells), *words);
        }
        rates
    }

    /// How far estimates for `all` words may be off; none if these are all.
    fn error(&self, layout: SharedLayout, all: u64) -> Option<SampleError> {
        let words = self.words();
        if words == all {
            return None;
        }
        // Keys select words independently of each other, so the words are a simple sample without
        // replacement. 1.96 standard errors hold 95 of 100 outcomes.
        let half_width = |value: &dyn Fn(u32) -> f64| {
            let mean = self.mean(value);
            let variance = self.mean(|cells| (value(cells) - mean).powi(2));
            let missing = 1.0 - words as f64 / all as f64;
            1.96 * (variance / words as f64 * missing).sqrt()
        };
        let cells = f64::from(layout.cells());
        Some(SampleError {
            fill: half_width(&|occupied| f64::from(occupied) / cells),
            expected_fpr: half_width(&|occupied| layout.rate(occupied)),
        })
    }
}

impl SharedLayout {
    /// The number of cells of a word: slots or bits.
    const fn cells(self) -> u32 {
        match self {
            Self::Row4x16 => 4,
            Self::Row2x32 | Self::Stamped { .. } => 2,
            Self::Bloom { .. } | Self::Ageing { .. } => 64,
        }
    }

    /// How many cells of a word are not zero.
    pub(super) fn occupied(self, word: u64) -> u32 {
        let bits = 64 / self.cells();
        let cell = |index: u32| word >> (index * bits) & (u64::MAX >> (64 - bits));
        match self {
            Self::Row4x16 | Self::Row2x32 | Self::Stamped { .. } => {
                (0..self.cells()).filter(|index| cell(*index) != 0).count() as u32
            }
            Self::Bloom { .. } | Self::Ageing { .. } => word.count_ones(),
        }
    }

    /// The bits of a fingerprint; of a cell without one, the bits of the cell.
    const fn fingerprint_bits(self) -> u32 {
        match self {
            Self::Stamped { .. } => FINGERPRINT_BITS,
            _ => 64 / self.cells(),
        }
    }

    /// The rates of words of slots, of which so many are occupied. The rate of a word is
    /// proportional to its slots, so it does not matter which words have them.
    fn rates_of_slots(self, occupied: u64, words: u64) -> RateSum {
        let per_word = u64::from(self.cells());
        let (full, left) = (occupied / per_word, occupied % per_word);
        let mut rates = RateSum::default();
        rates.push_equal(self.rate(per_word as u32), full);
        let partly = u64::from(left > 0);
        rates.push_equal(self.rate(left as u32), partly);
        rates.push_equal(0.0, words - full - partly);
        rates
    }

    /// The probability that a new key is found in a word with so many occupied cells.
    fn rate(self, occupied: u32) -> f64 {
        let occupied = f64::from(occupied);
        match self {
            // One of the values is never used, and another one takes its keys.
            Self::Row4x16 | Self::Row2x32 | Self::Stamped { .. } => {
                occupied / 2_f64.powi(self.fingerprint_bits() as i32)
            }
            Self::Bloom { k } | Self::Ageing { k } => (occupied / 64.0).powi(k as i32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::KeyHash;
    use crate::shared::SharedSpec;
    use crate::verdicts::Verdicts;

    const LAYOUTS: [SharedLayout; 5] = [
        SharedLayout::Row4x16,
        SharedLayout::Row2x32,
        SharedLayout::Bloom { k: 2 },
        SharedLayout::Bloom { k: 6 },
        SharedLayout::Ageing { k: 4 },
    ];

    fn filled(bytes: u64, layout: SharedLayout, keys: u64, seed: u64) -> SharedFilter {
        let filter = SharedSpec::new(bytes).layout(layout).build().unwrap();
        let keys: Vec<KeyHash> = (0..keys)
            .map(|key| KeyHash(KeyHash(key ^ seed << 32).remix(1)))
            .collect();
        filter.observe(&keys, &mut Verdicts::new());
        filter
    }

    /// The counted slots are those of the words, and so are the rates.
    #[test]
    fn counted_slots_are_those_of_all_words() {
        for layout in &LAYOUTS[..2] {
            for keys in [0, 1, 7, 1000, 4000, 40_000] {
                let filter = filled(1 << 14, *layout, keys, 1);
                let (report, all) = (filter.report(), filter.sample(u64::MAX));
                let words = filter.words.len() as f64;
                let occupied = (all.mean(f64::from) * words).round() as u64;
                assert_eq!(report.tally.cells.unwrap().occupied, occupied);
                assert_eq!(report.tally.rates, Some(all.rates(*layout)));
                assert_eq!(report.sample_error, None);
            }
        }
    }

    /// A report reads no more, so its time has a limit.
    #[test]
    fn large_filters_are_sampled_and_small_ones_read() {
        for layout in &LAYOUTS[2..] {
            let all = SAMPLE_LINES * LINE_BYTES;
            for (bytes, is_sample) in [
                (1 << 20, false),
                (all, false),
                (all + 64, true),
                (2 * all, true),
            ] {
                let filter = filled(bytes, *layout, 100_000, 2);
                let sample = filter.sample(SAMPLE_LINES);
                assert!(sample.words() <= SAMPLE_LINES * LINE_WORDS);
                let report = filter.report();
                assert_eq!(report.sample_error.is_some(), is_sample);
                let words = filter.words.iter();
                let exact: u64 = words
                    .map(|word| u64::from(layout.occupied(word.load(Ordering::Relaxed))))
                    .sum();
                let cells = report.tally.cells.unwrap();
                assert_eq!(cells.total, bytes * 8);
                if !is_sample {
                    assert_eq!(cells.occupied, exact);
                }
                assert_eq!(report, filter.report());
            }
        }
    }

    #[test]
    fn the_errors_of_samples_hold_in_95_of_100_cases() {
        const SEEDS: u64 = 100;
        for layout in [LAYOUTS[1], LAYOUTS[3], LAYOUTS[4]] {
            for keys in [2000, 20_000] {
                let (mut fills, mut rates) = (0, 0);
                for seed in 0..SEEDS {
                    let filter = filled(1 << 15, layout, keys, seed);
                    let (all, sample) = (filter.sample(u64::MAX), filter.sample(1 << 7));
                    assert_eq!(all.words(), 1 << 12);
                    assert!(all.error(layout, 1 << 12).is_none());
                    let error = sample.error(layout, 1 << 12).unwrap();
                    let cells = f64::from(layout.cells());
                    let is_off = |value: &dyn Fn(u32) -> f64, most: f64| {
                        (sample.mean(value) - all.mean(value)).abs() > most
                    };
                    fills += u32::from(is_off(&|c| f64::from(c) / cells, error.fill));
                    rates += u32::from(is_off(&|c| layout.rate(c), error.expected_fpr));
                }
                // 5 of 100 are expected; that 13 or more are off has a probability of 2e-3. The
                // rates of bits have long tails, so that a sample misses the largest more often.
                assert!(fills < 13, "{layout:?} {keys}: {fills}");
                assert!(rates < 25, "{layout:?} {keys}: {rates}");
                assert!(
                    fills + rates > 0,
                    "{layout:?} {keys}: the errors are too wide"
                );
            }
        }
    }
}
