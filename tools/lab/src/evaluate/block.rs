//! A block of the stream: keys, their hashes and the truth about them, made once for all filters.

use echoless::{KeyHash, KeyHasher};

use crate::oracle::{Oracle, Truth};
use crate::stream::{Draws, Stream};

/// Keys of a block at most: enough that filters which take turns on a block mark_lost little of what caches hold for each of them.
const BLOCK: usize = 1 << 15;

/// The stream, block by block.
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
            hashes: vec![KeyHash(0); BLOCK],
            truths: vec![Truth::Fresh; BLOCK],
        }
    }

    /// The next hashes of the stream, at most `most`, and the truth about each.
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
