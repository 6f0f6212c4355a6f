//! A chunk: whole records of the stream and the results of each stage, in memory that is recycled.

use std::ops::Range;

use echoless::{KeyHash, Verdicts};

use super::fields::MissingField;

/// Whole records of one input, in order, and the results of each stage.
///
/// ```text
/// bytes  | header | record 0 | record 1 | .. | record n-1 | room |
///                 ^ start    ^ ends[0]                    ^ filled
/// ```
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// The buffer; its length is its capacity.
    pub(crate) bytes: Vec<u8>,
    /// The end of the last whole record.
    pub(crate) filled: usize,
    /// The end of the byte order mark if the chunk begins with one, else 0.
    pub(crate) mark: usize,
    /// The start of the first record, after a header.
    pub(crate) start: usize,
    /// The index of the input that the records are from.
    pub(crate) source: usize,
    /// Whether the input begins here.
    pub(crate) opens_source: bool,
    /// The header of the stream, in its first chunk.
    pub(crate) header: Option<Vec<u8>>,
    /// The number of bytes of the stream read when the chunk was filled.
    pub(crate) read_until: u64,
    /// The terminator of the last record, or, if the input ends before it, of the last record in
    /// the stream that has one.
    pub(crate) terminator: &'static [u8],
    /// The end of every record.
    pub(crate) ends: Vec<usize>,
    /// The key hash of every record that has one, in order, up to the fault.
    pub(crate) hashes: Vec<KeyHash>,
    /// The indices of the records without a key hash, ascending.
    pub(crate) unkeyed: Vec<usize>,
    /// The first faulty record; records after it are not read.
    pub(crate) fault: Option<Fault>,
    /// The verdict on every key hash.
    pub(crate) verdicts: Verdicts,
    /// The verdict on every record, filled only if some records have no key hash.
    spread: Vec<u64>,
}

/// A record that ends the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) record: usize,
    pub(crate) problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    Lacks(MissingField),
    /// The bytes are not a record of the format, for this reason.
    Malformed(&'static str),
    /// The record is longer than this many bytes.
    TooLong(usize),
}

impl Chunk {
    /// Removes the records and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
        self.mark = 0;
        self.start = 0;
        self.opens_source = false;
        self.header = None;
        self.ends.clear();
        self.hashes.clear();
        self.unkeyed.clear();
        self.fault = None;
        self.verdicts.reset(0);
    }

    /// The number of records before the fault, with and without key hash.
    pub(crate) fn records(&self) -> usize {
        self.hashes.len() + self.unkeyed.len()
    }

    /// The offset of the first byte of a record.
    #[inline]
    pub(crate) fn record_start(&self, index: usize) -> usize {
        match index {
            0 => self.start,
            _ => self.ends[index - 1],
        }
    }

    /// The bytes of a range of records.
    #[inline]
    pub(crate) fn bytes_of(&self, records: Range<usize>) -> &[u8] {
        &self.bytes[self.record_start(records.start)..self.ends[records.end - 1]]
    }

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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_without_a_key_are_not_duplicates() {
        let mut chunk = Chunk {
            hashes: vec![KeyHash(0); 100],
            unkeyed: vec![0, 63, 64, 103],
            ..Chunk::default()
        };
        chunk.verdicts.reset(100);
        for key in 0..100 {
            chunk.verdicts.set(key, echoless::Verdict::Duplicate);
        }
        chunk.spread_verdicts();
        assert_eq!(chunk.duplicates(), [!1 & !(1 << 63), ((1 << 39) - 1) & !1]);
    }
}
