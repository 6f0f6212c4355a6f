//! The verdicts on a chunk.

use echoless::{Verdict, Verdicts};

use super::KEPT_RECORDS;
use super::clock::TickBatch;

/// The verdicts on the key hashes and on the records of a chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkVerdicts {
    /// The verdict on every key hash.
    pub(crate) of_keys: Verdicts,
    /// One bit for each record, set for the first duplicate of its key; filled only for
    /// `--repeated`.
    pub(crate) repeated: Vec<u64>,
    /// How many batches have their verdicts [collected](Self::collect).
    collected: usize,
    /// The verdicts on the keys of one batch, while they are collected.
    part: Verdicts,
    /// The verdict on every record, filled only if some records have no key hash.
    pub(super) spread: Vec<u64>,
    /// The same with the bits of the frame set, filled only if there is one.
    pub(super) spread_framed: Vec<u64>,
    /// The verdict on every record with the bits of the rejected ones set, filled only if there are
    /// some.
    pub(super) spread_withheld: Vec<u64>,
}

impl ChunkVerdicts {
    /// Removes everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        let Self {
            of_keys,
            repeated,
            collected,
            part,
            spread,
            spread_framed,
            spread_withheld,
        } = self;
        of_keys.reset(0);
        repeated.clear();
        *collected = 0;
        part.reset(0);
        spread.clear();
        spread_framed.clear();
        spread_withheld.clear();
    }

    /// Removes everything if it has the memory of very many records.
    pub(super) fn shrink(&mut self) {
        let records = (self.of_keys.len()).max(64 * self.spread.len().max(self.repeated.len()));
        if records > KEPT_RECORDS {
            *self = Self::default();
        }
    }

    /// Collects the verdicts of these batches of `hashes` key hashes, as far as they are known.
    /// `poll` is called for one after the other, with the memory for its verdicts, until it returns
    /// false. Returns whether all batches are collected.
    pub(super) fn collect<E>(
        &mut self,
        batches: &[TickBatch],
        hashes: usize,
        mut poll: impl FnMut(&mut Verdicts) -> Result<bool, E>,
    ) -> Result<bool, E> {
        if self.collected == batches.len() {
            return Ok(true);
        }
        if batches.len() == 1 {
            let known = poll(&mut self.of_keys)?;
            self.collected = usize::from(known);
            return Ok(known);
        }
        let mut start = match self.collected {
            0 => {
                self.of_keys.reset(hashes);
                0
            }
            collected => batches[collected - 1].end,
        };
        for batch in &batches[self.collected..] {
            if !poll(&mut self.part)? {
                return Ok(false);
            }
            // Batches begin at any bit of a word. Only the set bits cost anything.
            for key in self.part.duplicates() {
                self.of_keys.set(start + key, Verdict::Duplicate);
            }
            start = batch.end;
            self.collected += 1;
        }
        Ok(true)
    }
}
