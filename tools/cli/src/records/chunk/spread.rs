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
        if self.unkeyed.is_empty() {
            return;
        }
        let records = self.records();
        self.spread.clear();
        self.spread.resize(records.div_ceil(64), 0);
        let mut unkeyed = self.unkeyed.iter().copied().peekable();
        let mut keyed = 0;
        for record in 0..records {
            if unkeyed.next_if_eq(&record).is_none() {
                let duplicate = u64::from(self.verdicts.is_duplicate(keyed));
                self.spread[record / 64] |= duplicate << (record % 64);
                keyed += 1;
            }
        }
        if self.frames {
            self.spread_framed.clone_from(&self.spread);
            for record in &self.unkeyed {
                self.spread_framed[record / 64] |= 1 << (record % 64);
            }
        }
        if !self.rejected.is_empty() {
            self.spread_withheld.clone_from(&self.spread);
            for fault in &self.rejected {
                self.spread_withheld[fault.record / 64] |= 1 << (fault.record % 64);
            }
        }
    }

    /// One bit for each record, set for duplicates. [`spread_verdicts`](Self::spread_verdicts) must
    /// be called before.
    pub(crate) fn duplicates(&self) -> &[u64] {
        if self.unkeyed.is_empty() {
            self.verdicts.words()
        } else {
            &self.spread
        }
    }

    /// [`duplicates`](Self::duplicates) and the rejected records: what is kept out of the
    /// main output.
    pub(crate) fn withheld(&self) -> &[u64] {
        if self.rejected.is_empty() {
            self.duplicates()
        } else {
            &self.spread_withheld
        }
    }

    /// [`duplicates`](Self::duplicates), and the frame that they need around them.
    pub(crate) fn framed_duplicates(&self) -> &[u64] {
        if self.frames && !self.unkeyed.is_empty() {
            &self.spread_framed
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
        let mut chunk = Chunk {
            hashes: vec![KeyHash::from_uniform(0); 100],
            unkeyed: vec![0, 63, 64, 103],
            ..Chunk::default()
        };
        chunk.verdicts.reset(100);
        for key in 0..100 {
            chunk.verdicts.set(key, echoless::Verdict::Duplicate);
        }
        chunk.spread_verdicts();
        let words = [!1 & !(1 << 63), ((1 << 39) - 1) & !1];
        assert_eq!(chunk.duplicates(), words);
        assert_eq!(chunk.framed_duplicates(), words);
        chunk.frames = true;
        chunk.spread_verdicts();
        assert_eq!(chunk.duplicates(), words);
        assert_eq!(chunk.framed_duplicates(), [u64::MAX, (1 << 40) - 1]);
    }
}
