//! The verdicts on a chunk.

use echoless::Verdicts;

use super::KEPT_RECORDS;

/// The verdicts on the key hashes and on the records of a chunk.
#[derive(Debug, Default)]
pub(crate) struct ChunkVerdicts {
    /// The verdict on every key hash.
    pub(crate) of_keys: Verdicts,
    /// One bit for each record, set for the first duplicate of its key; filled only for
    /// `--repeated`.
    pub(crate) repeated: Vec<u64>,
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
            spread,
            spread_framed,
            spread_withheld,
        } = self;
        of_keys.reset(0);
        repeated.clear();
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
}
