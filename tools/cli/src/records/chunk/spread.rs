//! From verdicts on key hashes to verdicts on records.

use super::Chunk;

impl Chunk {
    /// Expands the verdicts on key hashes into verdicts on records. A record without a key is not a
    /// duplicate.
    ///
    /// ```text
    /// verdicts of the hashes   1 0 1 1
    /// records                  k k - k k      - lacks its key
    /// spread                   1 0 0 1 1
    /// ```
    pub(crate) fn spread_verdicts(&mut self) {
        if self.keys.unkeyed.is_empty() {
            return;
        }
        let records = self.records();
        self.verdicts.spread.clear();
        self.verdicts.spread.resize(records.div_ceil(64), 0);
        let mut unkeyed = self.keys.unkeyed.iter().copied().peekable();
        let mut keyed = 0;
        for record in 0..records {
            if unkeyed.next_if_eq(&record).is_none() {
                let duplicate = u64::from(self.verdicts.of_keys.is_duplicate(keyed));
                self.verdicts.spread[record / 64] |= duplicate << (record % 64);
                keyed += 1;
            }
        }
        if !self.keys.frame_blocks.is_empty() {
            self.verdicts
                .spread_framed
                .clone_from(&self.verdicts.spread);
            for record in &self.keys.frame_blocks {
                self.verdicts.spread_framed[record / 64] |= 1 << (record % 64);
            }
        }
        if !self.rejected.is_empty() {
            self.verdicts
                .spread_withheld
                .clone_from(&self.verdicts.spread);
            for fault in &self.rejected {
                self.verdicts.spread_withheld[fault.record / 64] |= 1 << (fault.record % 64);
            }
        }
    }

    /// One bit for each record, set for duplicates. [`spread_verdicts`](Self::spread_verdicts) must
    /// be called before.
    pub(crate) fn duplicates(&self) -> &[u64] {
        if self.keys.unkeyed.is_empty() {
            self.verdicts.of_keys.words()
        } else {
            &self.verdicts.spread
        }
    }

    /// [`duplicates`](Self::duplicates) and the rejected records: what is kept out of the
    /// main output.
    pub(crate) fn withheld(&self) -> &[u64] {
        if self.rejected.is_empty() {
            self.duplicates()
        } else {
            &self.verdicts.spread_withheld
        }
    }

    /// [`duplicates`](Self::duplicates), and the frame that they need around them.
    pub(crate) fn framed_duplicates(&self) -> &[u64] {
        if !self.keys.frame_blocks.is_empty() {
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
        chunk.keys.unkeyed = vec![0, 63, 64, 103];
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
        chunk.keys.frame_blocks = vec![0, 63, 103];
        chunk.spread_verdicts();
        assert_eq!(chunk.duplicates(), words);
        assert_eq!(chunk.framed_duplicates(), [u64::MAX, !1 & ((1 << 40) - 1)]);
    }
}
