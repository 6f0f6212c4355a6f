//! A chunk: whole records of the stream and the results of each stage, in memory that is recycled.

mod rejection;
mod spread;

use std::iter;
use std::ops::Range;

use echoless::{Filter, KeyHash, Verdict, Verdicts};
use echoless_packets::framing::PacketBlock;
use echoless_packets::key::IgnoredFields;

use super::fault::{Fault, Problem};

/// The tick of a record without a time: it is earlier than every other, so the record is judged at
/// the clock.
pub(crate) const NO_TIME: i64 = i64::MIN;

/// The records of a chunk whose ends, hashes and other results are kept when it is recycled.
const KEPT_RECORDS: usize = 64 << 10;

/// The bytes that a record takes beside its own, at most and roughly: end, hash, tick and verdict,
/// in vectors that may be half empty, and the hash once more in the messages between threads.
const BYTES_PER_RECORD: usize = 64;

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
    /// Whether the header before the first record is that of the file, which is no record.
    pub(crate) has_file_header: bool,
    /// The index of the input that the records are from.
    pub(crate) source: usize,
    /// Whether the input begins here.
    pub(crate) opens_source: bool,
    /// The header of the stream, in its first chunk.
    pub(crate) header: Option<Vec<u8>>,
    /// The number of bytes of the stream read when the chunk was filled, and those of them that are
    /// not of known inputs.
    pub(crate) read_until: u64,
    pub(crate) input_until: u64,
    /// About how many records there are, before they are found; 0 if that is not needed.
    pub(crate) expected_records: usize,
    /// The terminator of the last record, or, if the input ends before it, of the last record in
    /// the stream that has one.
    pub(crate) terminator: &'static [u8],
    /// The end of every record.
    pub(crate) ends: Vec<usize>,
    /// The key hash of every record that has one, in order, up to the fault.
    pub(crate) hashes: Vec<KeyHash>,
    /// The indices of the records without a key hash, ascending.
    pub(crate) unkeyed: Vec<usize>,
    /// Whether the records without a key hash are the frame of a file that every output needs: the
    /// blocks of a capture that are no packets.
    pub(crate) frames: bool,
    /// The packet of every record that has a key hash, if the records are blocks of a capture.
    pub(crate) packets: Vec<PacketBlock>,
    /// The ignored fields of every packet, if they are reported.
    pub(crate) ignored: Vec<IgnoredFields>,
    /// The tick of every record that has a key hash, if records have times.
    pub(crate) ticks: Vec<i64>,
    /// The records whose tick is above those of all records before them in the chunk.
    pub(crate) steps: Vec<ClockStep>,
    /// The batches that the key hashes are judged in, in order.
    pub(crate) batches: Vec<TickBatch>,
    /// The number of the first of them in the stream.
    pub(crate) first_batch: u64,
    /// How many of them have their verdicts [collected](Self::collect).
    collected: usize,
    /// The tick of the batch of every key hash, filled where a filter gets all batches at once.
    batch_ticks: Vec<u64>,
    /// The clock before the chunk; `None` before the first record with a time.
    pub(crate) clock_before: Option<i64>,
    /// The first tick of the stream, if the clock has moved by the end of the chunk.
    pub(crate) first_tick: i64,
    /// The clock after the chunk.
    pub(crate) clock: Option<i64>,
    /// The number of records that are later than the window and the lateness allow.
    pub(crate) late: u64,
    /// The first faulty record; records after it are not read.
    pub(crate) fault: Option<Fault>,
    /// The faulty records that are set aside, ascending; they are among those without a key hash.
    pub(crate) rejected: Vec<Fault>,
    /// What is wrong with the one record of the chunk: its input ends inside it. It is set aside.
    pub(crate) incomplete: Option<Problem>,
    /// The verdict on every key hash.
    pub(crate) verdicts: Verdicts,
    /// One bit for each record, set for the first duplicate of its key; filled only for
    /// `--repeated`.
    pub(crate) repeated: Vec<u64>,
    /// The verdicts on the keys of one batch, while they are collected.
    part: Verdicts,
    /// The verdict on every record, filled only if some records have no key hash.
    spread: Vec<u64>,
    /// The same with the bits of the records without a key hash set, filled only for
    /// [`frames`](Self::frames).
    spread_framed: Vec<u64>,
    /// The verdict on every record with the bits of the rejected ones set, filled only if there are
    /// some.
    spread_withheld: Vec<u64>,
}

/// The clock moves here, unless it is at this tick or beyond already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockStep {
    /// The index of the record's key hash.
    pub(crate) from: usize,
    pub(crate) tick: i64,
}

/// Adjacent key hashes that are judged at one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TickBatch {
    /// The tick that the filter advances to, counted from the first of the stream; 0 leaves its
    /// clock as it is.
    pub(crate) tick: u64,
    /// The index after the last key hash.
    pub(crate) end: usize,
}

impl Chunk {
    /// Removes the records and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
        self.mark = 0;
        self.start = 0;
        self.has_file_header = false;
        self.opens_source = false;
        self.header = None;
        self.expected_records = 0;
        self.ends.clear();
        self.hashes.clear();
        self.unkeyed.clear();
        self.frames = false;
        self.packets.clear();
        self.ignored.clear();
        self.ticks.clear();
        self.steps.clear();
        self.batches.clear();
        self.collected = 0;
        self.late = 0;
        self.fault = None;
        self.rejected.clear();
        self.incomplete = None;
        self.verdicts.reset(0);
    }

    /// Removes the records and gives back the memory beyond a chunk of the `usual` length, which
    /// only long records need, or very many.
    pub(crate) fn shrink(&mut self, usual: usize) {
        self.clear();
        self.bytes.truncate(usual);
        self.bytes.shrink_to(usual);
        self.ends.shrink_to(KEPT_RECORDS);
        self.hashes.shrink_to(KEPT_RECORDS);
        self.unkeyed.shrink_to(KEPT_RECORDS);
        self.ticks.shrink_to(KEPT_RECORDS);
        self.steps.shrink_to(KEPT_RECORDS);
        self.batches.shrink_to(KEPT_RECORDS);
        self.batch_ticks.clear();
        self.batch_ticks.shrink_to(KEPT_RECORDS);
        self.rejected.shrink_to(KEPT_RECORDS);
    }

    /// The memory of the chunk in bytes, roughly: before its records are found, with those that are
    /// expected.
    pub(crate) fn memory_bytes(&self) -> usize {
        let records = self.expected_records.max(self.records());
        self.bytes.len() + BYTES_PER_RECORD * records
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

    /// Puts all key hashes into one batch, which leaves the clock of the filter as it is.
    pub(crate) fn one_batch(&mut self, number: u64) {
        self.first_batch = number;
        self.batches.clear();
        self.batches.push(TickBatch {
            tick: 0,
            end: self.hashes.len(),
        });
    }

    /// The key hashes of each batch, with its tick.
    pub(crate) fn batches(&self) -> impl Iterator<Item = (u64, &[KeyHash])> {
        let starts = iter::once(0).chain(self.batches.iter().map(|batch| batch.end));
        let batches = self.batches.iter().zip(starts);
        batches.map(|(batch, start)| (batch.tick, &self.hashes[start..batch.end]))
    }

    /// Passes the key hashes through a filter, which stores their verdicts.
    pub(crate) fn judge(&mut self, filter: &mut impl Filter) {
        let Self {
            hashes,
            batches,
            batch_ticks,
            verdicts,
            ..
        } = self;
        let last = batches.last().map_or(0, |batch| batch.tick);
        if batches.len() > 1 {
            batch_ticks.clear();
            for batch in batches {
                batch_ticks.resize(batch.end, batch.tick);
            }
            filter.observe_at(hashes, batch_ticks, verdicts);
            // The records of the last batches may all lack a key.
            filter.advance_to(last);
        } else {
            filter.advance_to(last);
            filter.observe(hashes, verdicts);
        }
    }

    /// Collects the verdicts of the batches, as far as they are known. `poll` is called for one
    /// after the other, with the memory for its verdicts, until it returns false. Returns whether
    /// all batches are collected.
    pub(crate) fn collect<E>(
        &mut self,
        mut poll: impl FnMut(&mut Verdicts) -> Result<bool, E>,
    ) -> Result<bool, E> {
        if self.collected == self.batches.len() {
            return Ok(true);
        }
        if self.batches.len() == 1 {
            let known = poll(&mut self.verdicts)?;
            self.collected = usize::from(known);
            return Ok(known);
        }
        let mut start = match self.collected {
            0 => {
                self.verdicts.reset(self.hashes.len());
                0
            }
            collected => self.batches[collected - 1].end,
        };
        for batch in &self.batches[self.collected..] {
            if !poll(&mut self.part)? {
                return Ok(false);
            }
            // Batches begin at any bit of a word. Only the set bits cost anything.
            for key in self.part.duplicates() {
                self.verdicts.set(start + key, Verdict::Duplicate);
            }
            start = batch.end;
            self.collected += 1;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A chunk of `records` records of which some lack a key hash; the hash of a record is its
    /// index.
    pub(super) fn chunk(records: usize, unkeyed: &[usize], ends: &[usize]) -> Chunk {
        let keyed = (0..records).filter(|record| !unkeyed.contains(record));
        let hashes: Vec<KeyHash> = keyed
            .map(|record| KeyHash::from_uniform(record as u64))
            .collect();
        let mut batches: Vec<TickBatch> = (ends.iter().map(|end| end % (hashes.len() + 1)))
            .chain([hashes.len()])
            .map(|end| TickBatch { tick: 1, end })
            .collect();
        batches.sort_by_key(|batch| batch.end);
        Chunk {
            hashes,
            unkeyed: unkeyed.to_vec(),
            batches,
            ..Chunk::default()
        }
    }

    /// Records every key with the clock that it is observed at; every third key is a duplicate.
    #[derive(Default)]
    struct Recorder {
        clock: u64,
        observed: Vec<(u64, u64)>,
    }

    impl Filter for Recorder {
        fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
            duplicates.fill(0);
            for (index, key) in keys.iter().enumerate() {
                self.observed.push((self.clock, key.get()));
                duplicates[index / 64] |= u64::from(key.get() % 3 == 0) << (index % 64);
            }
        }

        fn advance_to(&mut self, tick: u64) {
            self.clock = self.clock.max(tick);
        }

        fn contains(&self, _key: KeyHash) -> bool {
            false
        }

        fn clear(&mut self) {}

        fn memory_bytes(&self) -> u64 {
            0
        }
    }

    proptest! {
        #[test]
        fn the_verdicts_of_batches_are_joined_in_order(
            records in 0usize..300,
            ends in vec(0usize..300, 0..20),
            known in vec(any::<bool>(), 1..9),
        ) {
            let mut chunk = chunk(records, &[], &ends);
            let mut known = known.into_iter().chain([true]).cycle();
            let sent: Vec<Vec<KeyHash>> = chunk.batches().map(|(_, keys)| keys.to_vec()).collect();
            let mut sent = sent.into_iter();
            let mut poll = |verdicts: &mut Verdicts| {
                if known.next() == Some(false) {
                    return Ok(false);
                }
                let keys = sent.next().ok_or(())?;
                verdicts.reset(keys.len());
                for (index, key) in keys.iter().enumerate() {
                    if key.get() % 3 == 0 {
                        verdicts.set(index, Verdict::Duplicate);
                    }
                }
                Ok(true)
            };
            // The verdicts of some batches are known later.
            while !chunk.collect(&mut poll).map_err(|()| TestCaseError::fail("one too many"))? {}
            prop_assert_eq!(chunk.collect(&mut poll), Ok(true));
            prop_assert!(sent.next().is_none());
            for record in 0..records {
                prop_assert_eq!(chunk.verdicts.is_duplicate(record), record % 3 == 0);
            }
        }

        #[test]
        fn a_filter_gets_every_key_at_the_tick_of_its_batch(
            records in 0usize..300,
            cuts in vec((0usize..300, 1u64..4), 0..20),
        ) {
            let ends: Vec<usize> = cuts.iter().map(|(end, _)| *end).collect();
            let mut chunk = chunk(records, &[], &ends);
            let mut clock = 0;
            for (batch, (_, step)) in chunk.batches.iter_mut().zip(cuts.iter().cycle()) {
                clock += step;
                batch.tick = clock;
            }
            let expected: Vec<(u64, u64)> = chunk
                .batches()
                .flat_map(|(tick, keys)| keys.iter().map(move |key| (tick, key.get())))
                .collect();
            let last = chunk.batches.last().map(|batch| batch.tick);
            let mut filter = Recorder::default();
            chunk.judge(&mut filter);
            prop_assert_eq!(filter.observed, expected);
            prop_assert_eq!(Some(filter.clock), last);
            for record in 0..records {
                prop_assert_eq!(chunk.verdicts.is_duplicate(record), record % 3 == 0);
            }
        }
    }
}
