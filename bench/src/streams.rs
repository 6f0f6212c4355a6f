//! The keys of the speed measurements, hashed in batches as a caller would.

use echoless::{KeyHash, KeyHasher};
use rand::SeedableRng;
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How many keys are hashed and observed in one call.
pub const BATCH: usize = 1024;

/// Zipf draws are made in advance, as a draw takes longer than a verdict, and repeat after this
/// many, which exceed the caches.
const DRAWS: usize = 1 << 22;

/// The distribution of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    /// No key recurs.
    Distinct,
    /// Zipf draws, exponent 1, from 2^28 keys.
    Zipf,
    /// The same key again and again.
    Hot,
}

impl StreamKind {
    /// The name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Distinct => "distinct",
            Self::Zipf => "zipf 1.0",
            Self::Hot => "one hot key",
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
    draws: Vec<u64>,
    numbers: Vec<u64>,
    hashes: Vec<KeyHash>,
}

impl Stream {
    /// The stream of this kind and number. Distinct streams of different numbers share no key.
    ///
    /// # Panics
    /// Never: the Zipf parameters are valid.
    #[must_use]
    pub fn new(kind: StreamKind, number: u64) -> Self {
        let draws = if kind == StreamKind::Zipf {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
            let zipf = Zipf::new((1u64 << 28) as f64, 1.0).expect("valid parameters");
            (0..DRAWS)
                .map(|_| zipf.sample(&mut random) as u64)
                .collect()
        } else {
            Vec::new()
        };
        Self {
            kind,
            hasher: KeyHasher::seeded(1),
            next: number << 48,
            draws,
            numbers: vec![0; BATCH],
            hashes: vec![KeyHash::from_uniform(0); BATCH],
        }
    }

    /// Rewinds the stream by `keys` keys, a multiple of [`BATCH`]. A Zipf stream rewinds within its
    /// precomputed draws.
    pub const fn rewind(&mut self, keys: u64) {
        self.next = self.next.wrapping_sub(keys);
    }

    /// The next [`BATCH`] keys.
    pub fn batch(&mut self) -> &[KeyHash] {
        let start = self.next;
        self.next += BATCH as u64;
        match self.kind {
            StreamKind::Distinct => {
                for (number, value) in self.numbers.iter_mut().zip(start..) {
                    *number = value;
                }
            }
            StreamKind::Zipf => {
                let at = start as usize % DRAWS;
                self.numbers.copy_from_slice(&self.draws[at..at + BATCH]);
            }
            StreamKind::Hot => {}
        }
        self.hasher.hash_u64s(&self.numbers, &mut self.hashes);
        &self.hashes
    }
}
