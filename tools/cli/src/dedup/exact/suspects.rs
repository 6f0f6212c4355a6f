//! Which keys have to be compared: those of which a filter cannot say that they occur once.

use std::sync::atomic::{AtomicU64, Ordering};

use echoless::memory::{AtomicWords, CacheLevel, Line, prefetch};
use echoless::{BuildError, FingerprintGeometry, KeyHash, Verdicts};

/// The parts of the hashes of a line that have a mark each, in the low bits of a word.
const PARTS: u32 = 53;

/// All marks of a word.
const ALL: u64 = (1 << PARTS) - 1;

/// One more fresh key, in the other 11 bits of a word. It is counted up to one more than a line has
/// slots, which are 64 at most, and each of 1024 threads may add one more before it sees that.
const FRESH: u64 = 1 << PARTS;

/// The keys whose words are prefetched together.
const BLOCK: usize = 64;

/// Marks for the keys that may occur again in a stream, by their hashes, from the verdicts of a
/// filter in lines that keeps what it has recorded until its line is full.
///
/// ```text
/// hash   | line (of the filter)                     | part, 0 to 52 | rest |
/// word    one for each line:  | fresh keys | a mark for each part |
/// ```
///
/// A key that occurs again is a duplicate to the filter, unless it was evicted; and a line evicts
/// nothing unless more keys were fresh in it than it has slots. So every key that occurs again has a
/// mark, or its line was overfull, and then all parts of that have one. One random line of the cache
/// for a key, beside that of the filter.
#[derive(Debug)]
pub(in crate::dedup) struct Suspects {
    words: AtomicWords,
    /// The words that are in use.
    lines: u64,
    /// The slots of a line.
    slots: u64,
    /// The fresh keys, evicted ones that came back among them.
    fresh: AtomicU64,
    /// All keys of the stream.
    observed: AtomicU64,
}

impl Suspects {
    /// No suspects yet, of a filter of this shape.
    pub(in crate::dedup) fn new(shape: FingerprintGeometry) -> Result<Self, BuildError> {
        Ok(Self {
            words: AtomicWords::zeroed(shape.lines.div_ceil(8))?,
            lines: shape.lines,
            slots: shape.width.slots().into(),
            fresh: AtomicU64::new(0),
            observed: AtomicU64::new(0),
        })
    }

    /// Takes the keys that these lines of the filter have already, from number `first` on. All keys
    /// of a full line are suspects: it may have evicted some.
    pub(in crate::dedup) fn count_lines(&mut self, first: u64, lines: &[Line]) {
        let bits = 64 / (self.slots / 8);
        let lowest = u64::MAX / (u64::MAX >> (64 - bits));
        let occupied = |mut word: u64| {
            // The lowest bit of each slot becomes whether it has any.
            let mut shift = bits / 2;
            while shift > 0 {
                word |= word >> shift;
                shift /= 2;
            }
            u64::from((word & lowest).count_ones())
        };
        let mut fresh = 0;
        for (word, line) in self.words[first as usize..].iter().zip(lines) {
            let occupied = line.0.iter().map(|word| occupied(*word)).sum::<u64>();
            let marks = if occupied == self.slots { ALL } else { 0 };
            word.store((occupied * FRESH) | marks, Ordering::Relaxed);
            fresh += occupied;
        }
        self.fresh.fetch_add(fresh, Ordering::Relaxed);
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        8 * self.lines
    }

    /// The index of the word of a key, and the key's mark in that.
    #[inline]
    fn place(&self, key: KeyHash) -> (usize, u64) {
        let product = u128::from(key.get()) * u128::from(self.lines);
        // What the multiplication that selects the line leaves is uniform.
        let part = (u128::from(product as u64) * u128::from(PARTS)) >> 64;
        ((product >> 64) as usize, 1 << part)
    }

    /// Takes the verdicts of the filter on these keys.
    pub(super) fn mark(&self, keys: &[KeyHash], verdicts: &Verdicts) {
        // Relaxed: what threads add is looked at once they have ended.
        for (block, keys) in keys.chunks(BLOCK).enumerate() {
            // Locked instructions wait for each other's cache misses.
            for key in keys {
                prefetch(&self.words, self.place(*key).0, CacheLevel::L1);
            }
            for (index, key) in keys.iter().enumerate() {
                let (word, mark) = self.place(*key);
                let word = &self.words[word];
                let before = word.load(Ordering::Relaxed);
                if verdicts.is_duplicate(block * BLOCK + index) {
                    if before & mark == 0 {
                        word.fetch_or(mark, Ordering::Relaxed);
                    }
                } else if before / FRESH <= self.slots
                    && word.fetch_add(FRESH, Ordering::Relaxed) / FRESH >= self.slots
                {
                    word.fetch_or(ALL, Ordering::Relaxed);
                }
            }
        }
        let fresh = keys.len() as u64 - verdicts.count_duplicates();
        self.fresh.fetch_add(fresh, Ordering::Relaxed);
        let observed = keys.len() as u64;
        self.observed.fetch_add(observed, Ordering::Relaxed);
    }

    /// Estimates how many keys of the stream are suspects, without those that share the hash of
    /// another one. No thread marks any more.
    pub(super) fn estimate(&self) -> u64 {
        let observed = self.observed.load(Ordering::Relaxed) as f64;
        let mut of_full_lines = self.fresh.load(Ordering::Relaxed) as f64;
        let (mut of_marks, mut full_lines) = (0.0, 0.0);
        for word in self.words.iter().take(self.lines as usize) {
            let word = word.load(Ordering::Relaxed);
            let (marks, fresh) = (f64::from((word & ALL).count_ones()), (word / FRESH) as f64);
            if word & ALL != ALL {
                of_full_lines -= fresh;
                // Each mark is that of a key, and any other key may have one by chance.
                of_marks += marks + (fresh - marks).max(0.0) * marks / f64::from(PARTS);
            } else {
                full_lines += 1.0;
            }
        }
        // Of the keys that a full line had before, the stream has few.
        let of_full_lines = of_full_lines.min(observed * full_lines / self.lines as f64);
        (of_marks + of_full_lines).min(observed) as u64
    }

    /// Whether this key has to be compared.
    #[inline]
    pub(super) fn contain(&self, key: KeyHash) -> bool {
        let (word, mark) = self.place(key);
        self.words[word].load(Ordering::Relaxed) & mark != 0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use echoless::{Filter as _, FingerprintSpec, KeyHasher, LineFilter as _, SlotWidth};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_key_that_occurs_again_is_a_suspect(
            keys in vec(0_u64..3000, 1..4000),
            seed: u64,
            lines in 1_u64..300,
            width in prop::sample::select(SlotWidth::ALL),
            earlier in 0_usize..2000,
        ) {
            let shape = FingerprintGeometry::new(lines, width);
            let spec = FingerprintSpec::new(shape.bytes()).slot_width(shape.width);
            let mut filter = echoless::FilterSpec::try_from(&spec).unwrap().build_lines().unwrap();
            let hasher = KeyHasher::seeded(seed);
            let keys: Vec<KeyHash> = keys.into_iter().map(|key| hasher.hash_u64(key)).collect();
            let mut suspects = Suspects::new(shape).unwrap();
            let mut verdicts = Verdicts::new();
            let (earlier, keys) = keys.split_at(earlier.min(keys.len()));
            filter.observe(earlier, &mut verdicts);
            suspects.count_lines(0, filter.lines());
            for keys in keys.chunks(100) {
                filter.observe(keys, &mut verdicts);
                suspects.mark(keys, &verdicts);
            }
            let estimated = suspects.estimate() as f64;
            let mut counts = HashMap::new();
            for key in earlier.iter().chain(keys) {
                *counts.entry(*key).or_insert(0) += 1;
            }
            let is_of_now: HashSet<_> = keys.iter().collect();
            counts.retain(|key, _| is_of_now.contains(key));
            let mut found = 0.0;
            for (key, count) in counts {
                let is_suspect = suspects.contain(key);
                prop_assert!(is_suspect || count == 1, "{:?} occurs {} times", key, count);
                found += f64::from(u8::from(is_suspect));
            }
            // Evicted keys that come back count several times.
            prop_assert!(estimated >= 0.6 * found - 20.0, "{} of {}", estimated, found);
        }
    }
}
