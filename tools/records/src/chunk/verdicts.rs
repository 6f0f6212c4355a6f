//! The verdicts on a chunk: on its key hashes, and from these on its records.

use echoless::Verdicts;

use super::Chunk;
use super::parts::KEPT_RECORDS;

/// The verdicts on the key hashes and on the records of a chunk.
#[derive(Debug, Default)]
pub struct ChunkVerdicts {
    /// The verdict on every key hash.
    pub of_keys: Verdicts,
    /// One bit for each record, set for the first duplicate of its key; filled only for
    /// `--repeated`.
    pub repeated: Vec<u64>,
    /// The verdict on every record, filled only if some records have no key hash.
    pub(super) spread: Vec<u64>,
    /// The same with the bits of the frame set, filled only if there is one.
    spread_framed: Vec<u64>,
    /// The verdict on every record with the bits of the rejected ones set, filled only if there are
    /// some.
    spread_withheld: Vec<u64>,
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

impl Chunk {
    /// Expands the verdicts on key hashes into verdicts on records. A record without a key is not a
    /// duplicate.
    ///
    /// ```text
    /// verdicts of the hashes   1 0 1 1
    /// records                  k k - k k      - lacks its key
    /// spread                   1 0 0 1 1
    /// ```
    pub fn spread_verdicts(&mut self) {
        if self.unkeyed.all.is_empty() {
            return;
        }
        let records = self.records();
        self.verdicts.spread.clear();
        self.verdicts.spread.resize(records.div_ceil(64), 0);
        let mut unkeyed = self.unkeyed.all.iter().copied().peekable();
        let mut keyed = 0;
        for record in 0..records {
            if unkeyed.next_if_eq(&record).is_none() {
                let duplicate = u64::from(self.verdicts.of_keys.is_duplicate(keyed));
                self.verdicts.spread[record / 64] |= duplicate << (record % 64);
                keyed += 1;
            }
        }
        if !self.unkeyed.frame.is_empty() {
            self.verdicts
                .spread_framed
                .clone_from(&self.verdicts.spread);
            for record in &self.unkeyed.frame {
                self.verdicts.spread_framed[record / 64] |= 1 << (record % 64);
            }
        }
        if !self.unkeyed.rejected.is_empty() {
            self.verdicts
                .spread_withheld
                .clone_from(&self.verdicts.spread);
            for fault in &self.unkeyed.rejected {
                self.verdicts.spread_withheld[fault.record / 64] |= 1 << (fault.record % 64);
            }
        }
    }

    /// One bit for each record, set for duplicates. [`spread_verdicts`](Self::spread_verdicts) must
    /// be called before.
    pub fn duplicates(&self) -> &[u64] {
        if self.unkeyed.all.is_empty() {
            self.verdicts.of_keys.words()
        } else {
            &self.verdicts.spread
        }
    }

    /// [`duplicates`](Self::duplicates) and the rejected records: what is kept out of the
    /// main output.
    pub fn withheld(&self) -> &[u64] {
        if self.unkeyed.rejected.is_empty() {
            self.duplicates()
        } else {
            &self.verdicts.spread_withheld
        }
    }

    /// [`duplicates`](Self::duplicates), and the frame that they need around them.
    pub fn framed_duplicates(&self) -> &[u64] {
        if !self.unkeyed.frame.is_empty() {
            &self.verdicts.spread_framed
        } else {
            self.duplicates()
        }
    }
}

#[cfg(test)]
mod tests {
    use echoless::KeyHash;

    use super::*;

    #[test]
    fn records_without_a_key_are_not_duplicates() {
        let mut chunk = Chunk::default();
        chunk.keys.hashes = vec![KeyHash::from_uniform(0); 100];
        chunk.unkeyed.all = vec![0, 63, 64, 103];
        chunk.verdicts.of_keys.reset(100);
        for key in 0..100 {
            chunk
                .verdicts
                .of_keys
                .set(key, echoless::Verdict::Duplicate);
        }
        chunk.spread_verdicts();
        let words = [!1 & !(1 << 63), ((1 << 39) - 1) & !1];
        assert_eq!(chunk.duplicates(), words);
        assert_eq!(chunk.framed_duplicates(), words);
        chunk.unkeyed.frame = vec![0, 63, 103];
        chunk.spread_verdicts();
        assert_eq!(chunk.duplicates(), words);
        assert_eq!(chunk.framed_duplicates(), [u64::MAX, !1 & ((1 << 40) - 1)]);
    }
}
