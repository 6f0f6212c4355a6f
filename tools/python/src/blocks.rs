//! Long calls in blocks: the interpreter runs other threads meanwhile, and signals are seen.

use echoless::{KeyHash, KeyHasher};
use echoless_foreign::{Failure, Keys};
use pyo3::prelude::*;

use crate::errors::raise;

/// The keys between two checks for signals, about 10 ms. A multiple of 64, so that a block has
/// words of its own.
const BLOCK: usize = 1 << 20;

/// Some of the keys of a batch.
pub(crate) struct Block<'a, K> {
    keys: &'a K,
    from: usize,
    len: usize,
}

impl<K: Keys> Keys for Block<'_, K> {
    fn len(&self) -> usize {
        self.len
    }

    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        self.keys.hash(hasher, self.from + from, hashes);
    }
}

/// Judges all keys, block by block without the interpreter. `judge` gets the keys of a block, its
/// ticks and the words of its verdicts. If a signal handler raises an exception, the blocks so far
/// are judged and the others are not.
pub(crate) fn judge<K: Keys + Sync>(
    py: Python<'_>,
    keys: &K,
    ticks: Option<&[u64]>,
    mut judge: impl FnMut(&Block<'_, K>, Option<&[u64]>, &mut [u64]) -> Result<u64, Failure> + Send,
) -> PyResult<Vec<u64>> {
    let mut duplicates = vec![0; keys.len().div_ceil(64)];
    for (number, words) in duplicates.chunks_mut(BLOCK / 64).enumerate() {
        if number > 0 {
            py.check_signals()?;
        }
        let from = number * BLOCK;
        let len = BLOCK.min(keys.len() - from);
        let block = Block { keys, from, len };
        let ticks = ticks.map(|ticks| &ticks[from..from + len]);
        py.detach(|| judge(&block, ticks, words)).map_err(raise)?;
    }
    Ok(duplicates)
}
