//! A chunk: whole records of the stream and the results of each stage, in memory that is recycled.

mod clock;
mod edges;
mod keys;
mod rejection;
mod spread;
mod verdicts;

use std::iter;
use std::ops::Range;
use std::sync::Arc;

use echoless::{Filter, KeyHash, Verdicts};

use self::clock::ChunkClock;
pub(crate) use self::clock::TickBatch;
pub(crate) use self::edges::{Edge, ElementEdge};
use self::keys::ChunkKeys;
pub(crate) use self::keys::ClockStep;
use self::verdicts::ChunkVerdicts;
use super::comments::Announced;
use super::fault::{Fault, Problem};
use super::format::Format;
use crate::partial::PartialInput;

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
/// bytes  | mark | header | record 0 | record 1 | .. | record n-1 | room |
///               ^ mark   ^ start    ^ ends[0]                    ^ filled
/// ```
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// The buffer; its length is its capacity.
    pub(crate) bytes: Vec<u8>,
    /// The end of the last whole record.
    pub(crate) filled: usize,
    /// The end of the byte order mark if the chunk begins with one, else 0.
    pub(crate) mark: usize,
    /// The start of the first record, after a byte order mark and a header.
    pub(crate) start: usize,
    /// Whether the header before the first record is that of the file, which is no record.
    pub(crate) has_file_header: bool,
    /// The index of the input that the records are from.
    pub(crate) source: usize,
    /// Whether the input begins here, and whether it ends here.
    pub(crate) opens_source: bool,
    pub(crate) closes_source: bool,
    /// Whether the input ended and had no place that could hold a record.
    pub(crate) lacks_records: bool,
    /// Whether records are values that follow one another, and not the lines of their format.
    pub(crate) has_joined_values: bool,
    /// What the first line of the input announces about comment lines.
    pub(crate) announced: Option<Announced>,
    /// The names of the fields, if the stream has a header.
    pub(crate) field_names: Option<Arc<[Vec<u8>]>>,
    /// The header of the stream, with the byte order mark in front of it, in its first chunk.
    pub(crate) header: Option<Vec<u8>>,
    /// Whether the chunk is the first of a stream without a header, and its byte order mark begins
    /// the main output.
    pub(crate) copies_mark: bool,
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
    /// Whether the records are the blocks of a capture: those that are no packets are the frame of
    /// a file that every output needs.
    pub(crate) frames: bool,
    /// Where elements around records begin and end, in order.
    pub(crate) edges: Vec<ElementEdge>,
    /// The first faulty record; records after it are not read.
    pub(crate) fault: Option<Fault>,
    /// The faulty records that are set aside, ascending; they are among those without a key hash.
    pub(crate) rejected: Vec<Fault>,
    /// What is wrong with the one record of the chunk: its input ends inside it. It is set aside.
    pub(crate) incomplete: Option<Problem>,
    /// Inputs that were left before their end, up to the end of the chunk.
    pub(crate) partial_inputs: Vec<PartialInput>,
    /// The results of reading the records.
    pub(crate) keys: ChunkKeys,
    /// The chunk on the clock of the stream, and its batches.
    pub(crate) clock: ChunkClock,
    /// The results of the filter.
    pub(crate) verdicts: ChunkVerdicts,
}

impl Chunk {
    /// Removes the records and keeps the memory.
    pub(crate) fn clear(&mut self) {
        // All fields are named, so that none is forgotten.
        let Self {
            bytes: _,
            filled,
            mark,
            start,
            has_file_header,
            opens_source,
            closes_source,
            lacks_records,
            has_joined_values,
            announced,
            field_names,
            header,
            copies_mark,
            expected_records,
            ends,
            frames,
            edges,
            fault,
            rejected,
            incomplete,
            partial_inputs,
            keys,
            clock,
            verdicts,
            // Set whenever the chunk is filled.
            source: _,
            read_until: _,
            input_until: _,
            terminator: _,
        } = self;
        *filled = 0;
        *mark = 0;
        *start = 0;
        *has_file_header = false;
        *opens_source = false;
        *closes_source = false;
        *lacks_records = false;
        *has_joined_values = false;
        *announced = None;
        *field_names = None;
        *header = None;
        *copies_mark = false;
        *expected_records = 0;
        ends.clear();
        *frames = false;
        edges.clear();
        *fault = None;
        rejected.clear();
        *incomplete = None;
        partial_inputs.clear();
        keys.clear();
        clock.clear();
        verdicts.clear();
    }

    /// Removes the records and gives back the memory beyond a chunk of the `usual` length, which
    /// only long records need, or very many.
    pub(crate) fn shrink(&mut self, usual: usize) {
        self.verdicts.shrink();
        self.clear();
        self.bytes.truncate(usual);
        self.bytes.shrink_to(usual);
        self.ends.shrink_to(KEPT_RECORDS);
        self.rejected.shrink_to(KEPT_RECORDS);
        self.edges.shrink_to(KEPT_RECORDS);
        self.keys.shrink();
        self.clock.shrink();
    }

    /// The format of the records, which are of an input of `format`.
    pub(crate) fn format_of_records<'a>(&self, format: &'a dyn Format) -> &'a dyn Format {
        let joined = (self.has_joined_values).then(|| format.of_joined_values());
        joined.flatten().unwrap_or(format)
    }

    /// Cuts the chunk at the end of a record, before its records are found. Returns the rest.
    pub(crate) fn split_off(&mut self, end: usize) -> Self {
        let rest = Self {
            bytes: self.bytes[end..self.filled].to_vec(),
            filled: self.filled - end,
            source: self.source,
            closes_source: self.closes_source,
            has_joined_values: self.has_joined_values,
            announced: self.announced,
            read_until: self.read_until,
            input_until: self.input_until,
            terminator: self.terminator,
            ..Self::default()
        };
        self.filled = end;
        self.closes_source = false;
        rest
    }

    /// The memory of the chunk in bytes, roughly: before its records are found, with those that are
    /// expected.
    pub(crate) fn memory_bytes(&self) -> usize {
        let records = self.expected_records.max(self.records());
        self.bytes.len() + BYTES_PER_RECORD * records
    }

    /// The number of records before the fault, with and without key hash, and pieces of the frame
    /// around them.
    pub(crate) fn records(&self) -> usize {
        self.keys.hashes.len() + self.keys.unkeyed.len()
    }

    /// The number of records before the fault without the frame around them.
    pub(crate) fn own_records(&self) -> usize {
        self.records() - self.keys.frame_blocks.len() - self.keys.comments.len()
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
        self.clock.first_batch = number;
        self.clock.batches.clear();
        self.clock.batches.push(TickBatch {
            tick: 0,
            end: self.keys.hashes.len(),
        });
    }

    /// The key hashes of each batch, with its tick.
    pub(crate) fn batches(&self) -> impl Iterator<Item = (u64, &[KeyHash])> {
        let batches = &self.clock.batches;
        let starts = iter::once(0).chain(batches.iter().map(|batch| batch.end));
        let batches = batches.iter().zip(starts);
        batches.map(|(batch, start)| (batch.tick, &self.keys.hashes[start..batch.end]))
    }

    /// Passes the key hashes through a filter, which stores their verdicts.
    pub(crate) fn judge(&mut self, filter: &mut impl Filter) {
        let (hashes, verdicts) = (&self.keys.hashes, &mut self.verdicts.of_keys);
        let last = self.clock.batches.last().map_or(0, |batch| batch.tick);
        if self.clock.batches.len() > 1 {
            filter.observe_at(hashes, self.clock.ticks_of_keys(), verdicts);
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
        poll: impl FnMut(&mut Verdicts) -> Result<bool, E>,
    ) -> Result<bool, E> {
        (self.verdicts).collect(&self.clock.batches, self.keys.hashes.len(), poll)
    }
}

#[cfg(test)]
mod tests {
    use echoless::Verdict;
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
        let mut chunk = Chunk::default();
        chunk.keys.hashes = hashes;
        chunk.keys.unkeyed.extend(unkeyed);
        chunk.clock.batches = batches;
        chunk
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

    #[test]
    fn a_recycled_chunk_gives_back_the_memory_of_very_many_records() {
        let records = 4 * KEPT_RECORDS;
        let mut chunk = chunk(records, &[0], &[1, 2]);
        chunk.judge(&mut Recorder::default());
        chunk.spread_verdicts();
        let verdicts = |chunk: &Chunk| {
            let verdicts = &chunk.verdicts;
            [verdicts.spread.capacity(), verdicts.repeated.capacity()]
        };
        chunk.verdicts.repeated.resize(records / 64, 0);
        assert!(verdicts(&chunk).iter().all(|words| 64 * words >= records));
        chunk.shrink(0);
        assert!(chunk.keys.hashes.capacity() <= KEPT_RECORDS);
        assert!(
            verdicts(&chunk)
                .iter()
                .all(|words| 64 * words <= KEPT_RECORDS)
        );
        assert_eq!(chunk.records(), 0);
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
                prop_assert_eq!(chunk.verdicts.of_keys.is_duplicate(record), record % 3 == 0);
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
            for (batch, (_, step)) in chunk.clock.batches.iter_mut().zip(cuts.iter().cycle()) {
                clock += step;
                batch.tick = clock;
            }
            let expected: Vec<(u64, u64)> = chunk
                .batches()
                .flat_map(|(tick, keys)| keys.iter().map(move |key| (tick, key.get())))
                .collect();
            let last = chunk.clock.batches.last().map(|batch| batch.tick);
            let mut filter = Recorder::default();
            chunk.judge(&mut filter);
            prop_assert_eq!(filter.observed, expected);
            prop_assert_eq!(Some(filter.clock), last);
            for record in 0..records {
                prop_assert_eq!(chunk.verdicts.of_keys.is_duplicate(record), record % 3 == 0);
            }
        }
    }
}
