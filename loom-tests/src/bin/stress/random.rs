//! The random choices of a scenario.

use echoless::{KeyHash, KeyHasher};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A generator; threads of a scenario get generators of their own.
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    /// Another generator.
    pub(crate) fn split(&mut self) -> Self {
        Self::seeded(self.0.next_u64())
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.0.next_u64() % end as u64) as usize
    }

    /// Whether one of `chances` equal chances came out.
    pub(crate) fn once_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }

    /// Keys among `universe` keys.
    pub(crate) fn keys(&mut self, count: usize, universe: usize) -> Vec<KeyHash> {
        let hasher = KeyHasher::seeded(0);
        (0..count)
            .map(|_| hasher.hash_u64(self.below(universe) as u64))
            .collect()
    }
}
