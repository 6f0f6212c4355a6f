//! A chunk: whole records of the stream and the results of each stage, in memory that is recycled.

mod clock;
mod edges;
mod keys;
mod rejection;
mod spread;
mod verdicts;

use std::ops::Range;
use std::sync::Arc;

use echoless::{ExchangeError, Filter, Ticket};

use self::clock::ChunkClock;
pub(crate) use self::edges::{Edge, ElementEdge};
pub(crate) use self::keys::{ChunkKeys, ClockStep};
use self::verdicts::ChunkVerdicts;
use super::comments::Announced;
use super::fault::{Fault, Problem};
use crate::partial::PartialInput;

/// The time of a record that has none: it is earlier than every other, so the record is judged at
/// the clock.
pub(crate) const NO_TIME: i64 = i64::MIN;

/// The records of a chunk whose ends, hashes and other results are kept when it is recycled.
const KEPT_RECORDS: usize = 64 << 10;

/// The bytes that a record takes beside its own, at most and roughly: end, hash, time, tick and
/// verdict, in vectors that may be half empty, and hash and tick once more by partition.
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
    /// The chunk on the clock of the stream.
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

    /// Passes the key hashes through a filter, and stores their verdicts.
    ///
    /// # Errors
    /// [`ExchangeError`] of the ticket.
    pub(crate) fn observe<F: Filter>(
        &mut self,
        ticket: Ticket<'_, F>,
    ) -> Result<(), ExchangeError> {
        let (hashes, verdicts) = (&self.keys.hashes, &mut self.verdicts.of_keys);
        if self.clock.ticks.is_empty() {
            ticket.observe(hashes, verdicts)
        } else {
            ticket.observe_at(&self.clock.ticks, hashes, verdicts)
        }
    }
}

#[cfg(test)]
mod tests {
    use echoless::{KeyHash, OrderedFilter, Partitioned, Partitioning};
    use proptest::prelude::*;

    use super::*;

    /// A chunk of `records` records of which some lack a key hash; the hash of a record is its
    /// index, and its tick twice that.
    pub(super) fn chunk(records: usize, unkeyed: &[usize]) -> Chunk {
        let keyed = (0..records as u64).filter(|record| !unkeyed.contains(&(*record as usize)));
        let mut chunk = Chunk::default();
        chunk.keys.hashes = keyed.clone().map(KeyHash::from_uniform).collect();
        chunk.clock.ticks = keyed.map(|record| 2 * record).collect();
        chunk.keys.unkeyed.extend(unkeyed);
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
        let mut chunk = chunk(records, &[0]);
        chunk.verdicts.of_keys.reset(records - 1);
        chunk.spread_verdicts();
        let verdicts = |chunk: &Chunk| {
            let verdicts = &chunk.verdicts;
            [verdicts.spread.capacity(), verdicts.repeated.capacity()]
        };
        chunk.verdicts.repeated.resize(records / 64, 0);
        assert!(verdicts(&chunk).iter().all(|words| 64 * words >= records));
        chunk.shrink(0);
        assert!(chunk.keys.hashes.capacity() <= KEPT_RECORDS);
        assert!(chunk.clock.ticks.capacity() <= KEPT_RECORDS);
        assert!(
            verdicts(&chunk)
                .iter()
                .all(|words| 64 * words <= KEPT_RECORDS)
        );
        assert_eq!(chunk.records(), 0);
    }

    proptest! {
        #[test]
        fn a_filter_gets_every_key_at_its_tick(records in 0usize..300, timed: bool) {
            let mut chunk = chunk(records, &[]);
            if !timed {
                chunk.clock.ticks.clear();
            }
            let partitioning = Partitioning::new(1, 1).unwrap();
            let whole = Partitioned::new(partitioning, vec![Recorder::default()]).unwrap();
            let filter = OrderedFilter::builder(whole).build();
            prop_assert_eq!(chunk.observe(filter.handle().ticket()), Ok(()));
            let whole = filter.shutdown().unwrap();
            let observed = &whole.filters()[0].observed;
            let expected = (0..records as u64).map(|key| (if timed { 2 * key } else { 0 }, key));
            prop_assert_eq!(observed, &expected.collect::<Vec<_>>());
            for record in 0..records {
                prop_assert_eq!(chunk.verdicts.of_keys.is_duplicate(record), record % 3 == 0);
            }
        }
    }
}
