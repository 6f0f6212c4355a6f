//! A filter without errors over the names of keys.

use echoless::{Batch, Filter, KeyHash, Tally};
use echoless_records::failure::Failure;

use super::names::UNNAMED;

/// The keys that were seen, by their [names](super::names::KeyNames): a bit for each, or the last
/// time in a stream with a window.
#[derive(Debug)]
pub(crate) struct ExactSet {
    /// By number: 64 bits, or a tick and 1 more.
    seen: Vec<u64>,
    window: Option<SetWindow>,
    tick: u64,
    /// The memory of the names beside it.
    beside_bytes: u64,
}

/// How long a key counts as seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SetWindow {
    /// The highest age, in ticks.
    pub(crate) ticks: u64,
    /// Whether a duplicate renews its key.
    pub(crate) refresh: bool,
}

impl SetWindow {
    /// The first tick at which a key may have been seen to count as seen at this one.
    pub(super) const fn first_seen_at(self, tick: u64) -> u64 {
        tick.saturating_sub(self.ticks)
    }
}

impl ExactSet {
    /// Without keys. Numbers take memory as they come.
    pub(crate) fn new(window: Option<SetWindow>) -> Self {
        Self {
            seen: Vec::new(),
            window,
            tick: 0,
            beside_bytes: 0,
        }
    }

    /// With memory for so many numbers, and so much beside it for the report.
    pub(super) fn with_room(mut self, numbers: u64, beside_bytes: u64) -> Result<Self, Failure> {
        let words = Self::bytes_of(self.window, numbers) / 8;
        let words = usize::try_from(words).unwrap_or(usize::MAX);
        let reserved = self.seen.try_reserve_exact(words);
        reserved.map_err(|error| Failure::file("the set of keys")(error.into()))?;
        self.seen.resize(words, 0);
        Ok(Self {
            beside_bytes,
            ..self
        })
    }

    /// The memory for so many numbers, in bytes.
    pub(super) fn bytes_of(window: Option<SetWindow>, numbers: u64) -> u64 {
        match window {
            None => 8 * numbers.div_ceil(64),
            Some(_) => numbers.saturating_mul(8),
        }
    }

    /// Adds the key with this number, with a window as seen at this tick, or later if it is there.
    pub(super) fn insert(&mut self, number: u64, tick: u64) {
        let (index, bit) = self.place_of(number);
        if index >= self.seen.len() {
            self.seen.resize(index + 1, 0);
        }
        let word = &mut self.seen[index];
        *word = match self.window {
            None => *word | bit,
            Some(_) => (tick + 1).max(*word),
        };
    }

    /// The word of a key that has a name, and the key's bit in it if there is no window.
    fn place(&self, key: KeyHash) -> Option<(usize, u64)> {
        (key != UNNAMED).then(|| self.place_of(key.get()))
    }

    /// As [`place`](Self::place), of the key with this number.
    const fn place_of(&self, number: u64) -> (usize, u64) {
        match self.window {
            None => ((number / 64) as usize, 1 << (number % 64)),
            Some(_) => (number as usize, 0),
        }
    }

    /// Whether a key with this word counts as seen.
    fn is_seen(&self, word: u64, bit: u64) -> bool {
        match self.window {
            None => word & bit != 0,
            Some(window) => word > 0 && self.tick - (word - 1) <= window.ticks,
        }
    }

    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let Some((index, bit)) = self.place(key) else {
            return false;
        };
        if index >= self.seen.len() {
            self.seen.resize(index + 1, 0);
        }
        let word = self.seen[index];
        let is_duplicate = self.is_seen(word, bit);
        let word = match self.window {
            None => word | bit,
            Some(window) if is_duplicate && !window.refresh => word,
            Some(_) => self.tick + 1,
        };
        self.seen[index] = word;
        is_duplicate
    }
}

impl Filter for ExactSet {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        batch.observe_runs(duplicates, |tick, batch, duplicates| {
            self.tick = tick.map_or(self.tick, |tick| self.tick.max(tick));
            batch.observe_each(duplicates, |key| self.observe_key(key));
        });
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.place(key).is_some_and(|(index, bit)| {
            let word = self.seen.get(index);
            word.is_some_and(|word| self.is_seen(*word, bit))
        })
    }

    fn clear(&mut self) {
        self.seen.fill(0);
    }

    fn tally(&self) -> Tally {
        Tally {
            evictions: Some(0),
            ..Tally::new(self.beside_bytes + 8 * self.seen.len() as u64)
        }
    }
}
