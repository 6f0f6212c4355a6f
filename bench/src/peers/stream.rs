//! A stream with labels: distinct keys, and repeats of earlier ones at a given fraction and
//! distance.

use echoless::{KeyHash, KeyHasher};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How many keys are generated, and then observed, at a time.
pub(super) const CHUNK: usize = 1 << 14;

/// The number of the first key that no stream contains: streams count from 0.
const NEVER_SEEN: u64 = 1 << 48;

/// Keys, each labelled as distinct or as a repeat.
///
/// # Examples
/// ```
/// use echoless_bench::peers::LabelledStream;
/// let mut stream = LabelledStream::new(0.25, 1000);
/// let (keys, repeats) = stream.chunk();
/// // The first key cannot be a repeat.
/// assert_eq!(repeats[0] & 1, 0);
/// let repeated: u32 = repeats.iter().map(|word| word.count_ones()).sum();
/// assert!((f64::from(repeated) / keys.len() as f64 - 0.25).abs() < 0.02);
/// ```
#[derive(Debug)]
pub struct LabelledStream {
    /// A key whose 32 random bits are below this becomes a repeat.
    repeat_below: u64,
    window: u64,
    distinct: u64,
    random: Xoshiro256PlusPlus,
    hasher: KeyHasher,
    numbers: Vec<u64>,
    hashes: Vec<KeyHash>,
    repeats: Vec<u64>,
}

impl LabelledStream {
    /// A stream in which a fraction of `repeats` (0 to 1) repeats one of the youngest `window`
    /// distinct keys, each with the same probability.
    #[must_use]
    pub fn new(repeats: f64, window: u64) -> Self {
        Self {
            repeat_below: (repeats * 2f64.powi(32)) as u64,
            window,
            distinct: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(0),
            hasher: KeyHasher::seeded(1),
            numbers: vec![0; CHUNK],
            hashes: vec![KeyHash::from_uniform(0); CHUNK],
            repeats: vec![0; CHUNK / 64],
        }
    }

    /// The next keys; bit `i % 64` of word `i / 64` is set if key `i` repeats an earlier one.
    pub fn chunk(&mut self) -> (&[KeyHash], &[u64]) {
        self.repeats.fill(0);
        for (index, number) in self.numbers.iter_mut().enumerate() {
            let random = self.random.next_u64();
            if random & 0xffff_ffff < self.repeat_below && self.distinct > 0 {
                let reach = self.distinct.min(self.window);
                *number = self.distinct - 1 - (((random >> 32) * reach) >> 32);
                self.repeats[index / 64] |= 1 << (index % 64);
            } else {
                *number = self.distinct;
                self.distinct += 1;
            }
        }
        self.hasher.hash_u64s(&self.numbers, &mut self.hashes);
        (&self.hashes, &self.repeats)
    }

    /// How many distinct keys the stream has returned.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    /// The `index`-th distinct key of the stream.
    #[must_use]
    pub fn key(&self, index: u64) -> KeyHash {
        self.hasher.hash_u64(index)
    }

    /// A key that no stream contains, a different one for each `index`.
    #[must_use]
    pub fn absent_key(&self, index: u64) -> KeyHash {
        self.hasher.hash_u64(NEVER_SEEN + index)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn labels_are_correct() {
        let mut stream = LabelledStream::new(0.3, 500);
        let (mut seen, mut youngest) = (HashSet::new(), Vec::new());
        for _ in 0..3 {
            let (keys, repeats) = stream.chunk();
            for (index, key) in keys.iter().enumerate() {
                let repeat = repeats[index / 64] >> (index % 64) & 1 == 1;
                assert_eq!(repeat, !seen.insert(*key));
                if repeat {
                    let window: &[KeyHash] = &youngest[youngest.len().saturating_sub(500)..];
                    assert!(window.contains(key));
                } else {
                    youngest.push(*key);
                }
            }
        }
        assert_eq!(stream.distinct(), seen.len() as u64);
        assert_eq!(stream.key(7), youngest[7]);
        assert!((0..100).all(|index| !seen.contains(&stream.absent_key(index))));
    }
}
