//! The keys of the speed measurements, hashed in batches as a caller would.

use echoless::{KeyHash, KeyHasher};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How many keys are hashed and observed in one call.
pub const BATCH: usize = 1024;

/// Draws are made in advance, as a draw takes longer than a verdict, and repeat after this many:
/// 32 MiB, more than most caches.
const DRAWS: usize = 1 << 23;

/// Of so many keys of [`StreamKind::Repeats`], the first is a new one.
pub const KEYS_FOR_A_NEW_ONE: u64 = 10;

/// The distribution of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    /// No key recurs.
    Distinct,
    /// Zipf draws, exponent 1, from 2^28 keys.
    Zipf,
    /// The same key again and again.
    Hot,
    /// Nine of ten keys are one of the last `span` new keys, each with the same probability.
    Repeats {
        /// How many new keys later a key still repeats, at least 1.
        span: u32,
    },
}

impl StreamKind {
    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Distinct => "distinct",
            Self::Zipf => "zipf 1.0",
            Self::Hot => "one hot key",
            Self::Repeats { .. } => "nine of ten repeat",
        }
    }
}

/// A stream of keys.
///
/// # Examples
/// ```
/// use echoless_bench::streams::{BATCH, Stream, StreamKind};
/// let mut stream = Stream::new(StreamKind::Distinct, 0);
/// let first = stream.batch().to_vec();
/// assert_eq!(first.len(), BATCH);
/// assert_ne!(stream.batch()[0], first[0]);
/// ```
#[derive(Debug)]
pub struct Stream {
    kind: StreamKind,
    hasher: KeyHasher,
    next: u64,
    draws: Vec<u32>,
    numbers: Vec<u64>,
    hashes: Vec<KeyHash>,
}

impl Stream {
    /// The stream of this kind and number. Distinct streams of different numbers share no key.
    ///
    /// # Panics
    /// If the span of [`StreamKind::Repeats`] is 0.
    #[must_use]
    pub fn new(kind: StreamKind, number: u64) -> Self {
        Self::with_batches(kind, number, BATCH)
    }

    /// The same with batches of another number of keys, a divisor of 2^23.
    ///
    /// # Panics
    /// As [`new`](Self::new), or if there is another number of keys.
    #[must_use]
    pub fn with_batches(kind: StreamKind, number: u64, keys: usize) -> Self {
        assert!(DRAWS.is_multiple_of(keys), "{keys} keys in a batch");
        let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
        let draws = match kind {
            StreamKind::Zipf => {
                let zipf = Zipf::new((1u64 << 28) as f64, 1.0).expect("valid parameters");
                let draw = |_| zipf.sample(&mut random) as u32;
                (0..DRAWS).map(draw).collect()
            }
            StreamKind::Repeats { span } => {
                let draw = |_| random.random_range(0..span);
                (0..DRAWS).map(draw).collect()
            }
            StreamKind::Distinct | StreamKind::Hot => Vec::new(),
        };
        Self {
            kind,
            hasher: KeyHasher::seeded(1),
            next: number << 48,
            draws,
            numbers: vec![0; keys],
            hashes: vec![KeyHash::from_uniform(0); keys],
        }
    }

    /// Rewinds the stream by `keys` keys, a number of whole batches. A Zipf stream rewinds within
    /// its precomputed draws.
    pub const fn rewind(&mut self, keys: u64) {
        self.next = self.next.wrapping_sub(keys);
    }

    /// The distribution of the keys.
    #[must_use]
    pub const fn kind(&self) -> StreamKind {
        self.kind
    }

    /// The keys of the next batch.
    pub fn batch(&mut self) -> &[KeyHash] {
        let (start, keys) = (self.next, self.numbers.len());
        self.next += keys as u64;
        match self.kind {
            StreamKind::Distinct => {
                for (number, value) in self.numbers.iter_mut().zip(start..) {
                    *number = value;
                }
            }
            StreamKind::Zipf => {
                let at = start as usize % DRAWS;
                for (value, draw) in self.numbers.iter_mut().zip(&self.draws[at..at + keys]) {
                    *value = u64::from(*draw);
                }
            }
            StreamKind::Repeats { .. } => {
                for (value, position) in self.numbers.iter_mut().zip(start..) {
                    let newest = position / KEYS_FOR_A_NEW_ONE;
                    let is_new = position.is_multiple_of(KEYS_FOR_A_NEW_ONE);
                    let back = u64::from(self.draws[position as usize % DRAWS]);
                    *value = newest.wrapping_sub(if is_new { 0 } else { back });
                }
            }
            StreamKind::Hot => {}
        }
        self.hasher.hash_u64s(&self.numbers, &mut self.hashes);
        &self.hashes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn larger_batches_have_the_same_keys() {
        for kind in [StreamKind::Distinct, StreamKind::Zipf] {
            let mut stream = Stream::new(kind, 3);
            stream.next = 0;
            let expected = [stream.batch().to_vec(), stream.batch().to_vec()].concat();
            let mut larger = Stream::with_batches(kind, 3, 2 * BATCH);
            larger.next = 0;
            assert_eq!(larger.batch(), expected);
            larger.rewind(2 * BATCH as u64);
            assert_eq!(larger.batch(), expected);
        }
    }

    #[test]
    fn nine_of_ten_keys_repeat_one_of_the_span() {
        let span = 500;
        let mut stream = Stream::new(StreamKind::Repeats { span }, 0);
        // How many keys were new before each key.
        let mut seen = HashMap::new();
        let mut repeats = 0;
        for position in 0..100 * BATCH as u64 {
            if position % BATCH as u64 == 0 {
                stream.batch();
            }
            let key = stream.hashes[position as usize % BATCH];
            let new = position / KEYS_FOR_A_NEW_ONE;
            if position.is_multiple_of(KEYS_FOR_A_NEW_ONE) {
                assert_eq!(seen.insert(key, new), None, "key {position}");
            } else if let Some(before) = seen.get(&key) {
                assert!(new - before < u64::from(span), "key {position}");
                repeats += 1;
            } else {
                // One from before the stream.
                assert!(new < u64::from(span), "key {position}");
            }
        }
        assert!(repeats > 80 * BATCH, "{repeats}");
    }
}
