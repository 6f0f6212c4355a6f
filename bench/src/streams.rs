//! The keys that speed is measured with, hashed a batch at a time as a caller would.

use echoless::{KeyHash, KeyHasher};
use rand::SeedableRng;
use rand_distr::{Distribution, Zipf};
use rand_xoshiro::Xoshiro256PlusPlus;

/// How many keys are hashed and observed at a time.
pub const BATCH: usize = 1024;

/// How many Zipf draws are kept and gone through in a circle: too many for a cache, and to draw them takes longer than to judge them.
const DRAWS: usize = 1 << 22;

/// What the keys are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    /// Every key is new.
    Distinct,
    /// Zipf draws, exponent 1, from 2^28 keys.
    Zipf,
    /// One key, always the same.
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
    /// The stream of this kind and number; distinct streams of different numbers have no key in common.
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
            hashes: vec![KeyHash(0); BATCH],
        }
    }

    /// Has the stream repeat its last `keys` keys, a multiple of [`BATCH`]; of a Zipf stream, those of the circle.
    pub const fn go_back(&mut self, keys: u64) {
        self.next = self.next.wrapping_sub(keys);
    }

    /// The next keys.
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
