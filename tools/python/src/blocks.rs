//! The calls that judge keys, long ones in blocks: the interpreter runs other threads meanwhile,
//! and signals are seen.

use echoless::hash::KeyDigest;
use echoless::{KeyHash, KeyHasher};
use echoless_foreign::{Failure, Keys, check_masks};
use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::errors::{raise, reserve};
use crate::keys::{Batch, Input};

/// The keys between two checks for signals, about 10 ms. A multiple of 64, so that a block has
/// words of its own.
const BLOCK: usize = 1 << 20;

/// Some of the keys of a batch.
struct Block<'a> {
    keys: &'a Batch,
    from: usize,
    len: usize,
}

impl Keys for Block<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn hash(&self, hasher: &KeyHasher, from: usize, hashes: &mut [KeyHash]) {
        self.keys.hash(hasher, self.from + from, hashes);
    }

    fn digests(&self) -> Result<Option<&[KeyDigest]>, Failure> {
        let digests = self.keys.digests()?;
        Ok(digests.map(|digests| &digests[self.from..self.from + self.len]))
    }
}

/// Judges the keys of a call: a bool for one key, an array for many. `judge` gets keys, their ticks
/// and the words of their verdicts, and returns the number of duplicates.
///
/// Many keys are judged block by block without the interpreter. If a signal handler raises an
/// exception, the blocks so far are judged and the others are not.
pub(crate) fn verdicts<'py>(
    py: Python<'py>,
    input: &Input,
    ticks: Option<&[u64]>,
    mut judge: impl FnMut(&dyn Keys, Option<&[u64]>, &mut [u64]) -> Result<u64, Failure> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    let keys = match input {
        Input::One(key) => {
            let count = judge(key, ticks, &mut [0]).map_err(raise)?;
            return Ok(PyBool::new(py, count == 1).to_owned().into_any());
        }
        Input::Many(keys) => keys,
    };
    let mut duplicates = Vec::new();
    let words = keys.len().div_ceil(64);
    reserve(&mut duplicates, words)?;
    duplicates.resize(words, 0);
    check_masks(keys.len(), ticks.map(<[u64]>::len), duplicates.len()).map_err(raise)?;
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
    keys.form.array(py, &duplicates, keys.len())
}
