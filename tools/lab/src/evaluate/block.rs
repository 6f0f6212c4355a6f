//! The stream in blocks of keys, with their hashes and exact verdicts.
//!
//! A block is made once for all filters: they share the draws, the hashing and the oracle.

use echoless::{KeyHash, KeyHasher};

use crate::oracle::{Oracle, Truth};
use crate::stream::{Draws, Stream};

/// The most keys in a block. Filters take turns on a block, and each evicts the others from the
/// caches: a block is long enough that refilling them costs little.
const BLOCK: usize = 1 << 15;

/// The blocks of a stream, in order. The buffers are reused from block to block.
#[derive(Debug)]
pub(super) struct Blocks {
    draws: Draws,
    oracle: Oracle,
    hasher: KeyHasher,
    keys: Vec<u64>,
    hashes: Vec<KeyHash>,
    truths: Vec<Truth>,
}

impl Blocks {
    pub(super) fn new(stream: &Stream, oracle: Oracle, seed: u64) -> Self {
        Self {
            draws: stream.draws(seed),
            oracle,
            hasher: KeyHasher::seeded(seed),
            keys: vec![0; BLOCK],
            hashes: vec![KeyHash::from_uniform(0); BLOCK],
            truths: vec![Truth::Fresh; BLOCK],
        }
    }

    /// The number of distinct keys so far.
    pub(super) const fn distinct_keys(&self) -> u64 {
        self.oracle.distinct_keys()
    }

    /// The hashes of the next block, at most `most` of them, and the exact verdict on each.
    pub(super) fn next(&mut self, most: u64) -> (&[KeyHash], &[Truth]) {
        let most = most.min(BLOCK as u64) as usize;
        let len = self.draws.fill(&mut self.keys[..most]);
        let keys = &self.keys[..len];
        self.hasher.hash_u64s(keys, &mut self.hashes[..len]);
        for (key, truth) in keys.iter().zip(&mut self.truths) {
            *truth = self.oracle.observe(*key);
        }
        (&self.hashes[..len], &self.truths[..len])
    }
}
