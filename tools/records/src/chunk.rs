//! A chunk: whole records of the stream and the results of each stage, in memory that is recycled.

mod keys;
mod known;
mod parts;
mod turn;
mod unkeyed;
pub(crate) mod unread_part;
mod verdicts;

use std::io;
use std::ops::Range;

use echoless::{Batch, ExchangeError, KeyHash, LineFilter, Ticket, Verdicts};

use self::keys::ChunkClock;
pub use self::keys::{ChunkKeys, ClockStep, ConditionCounts, NO_TIME};
use self::known::KnownKeys;
use self::parts::KEPT_RECORDS;
pub use self::parts::{ChunkBytes, ChunkHeader, InputFile, InputPart, RecordLayout};
pub use self::turn::{ChunkTurn, RunPart};
use self::unkeyed::UnkeyedRecords;
use self::verdicts::ChunkVerdicts;
use super::fault::Fault;

/// The bytes that a record takes beside its own, at most and roughly: end, hash, time, tick and
/// verdict, in vectors that may be half empty, and hash and tick once more by partition.
const BYTES_PER_RECORD: usize = 64;

/// Whole records of one input, in order, and the results of each stage.
#[derive(Debug, Default)]
pub struct Chunk {
    /// The bytes of the records.
    pub bytes: ChunkBytes,
    /// Why the rest of the bytes could not be read. The records in front of it are in the chunk.
    pub failure: Option<io::Error>,
    /// What the chunk is of its input.
    pub input: InputPart,
    /// The header that comes before the records.
    pub header: ChunkHeader,
    /// Where records end.
    pub layout: RecordLayout,
    /// The results of reading the records.
    pub keys: ChunkKeys,
    /// The records without a key hash.
    pub unkeyed: UnkeyedRecords,
    /// The first faulty record that is not set aside; records after it are not read.
    pub fault: Option<Fault>,
    /// The chunk on the clock of the stream.
    pub clock: ChunkClock,
    /// The keys that other filters contain.
    pub known: KnownKeys,
    /// The results of the filters.
    pub verdicts: ChunkVerdicts,
    /// The filter behind the chunk, in a run with a state.
    pub turn: ChunkTurn,
}

impl Chunk {
    /// Removes the records and keeps the memory.
    pub fn clear(&mut self) {
        self.clear_keeping(usize::MAX);
    }

    /// Removes the records and keeps the memory of so many of them.
    fn clear_keeping(&mut self, kept: usize) {
        // All fields are named, so that none is forgotten.
        let Self {
            bytes,
            failure,
            input,
            header,
            layout,
            keys,
            unkeyed,
            fault,
            clock,
            known,
            verdicts,
            turn,
        } = self;
        bytes.clear();
        *failure = None;
        *input = InputPart::default();
        *header = ChunkHeader::default();
        layout.clear(kept);
        keys.clear(kept);
        unkeyed.clear(kept);
        *fault = None;
        clock.clear(kept);
        known.clear();
        verdicts.clear();
        *turn = ChunkTurn::default();
    }

    /// Removes the records and gives back the memory beyond a chunk of the `usual` length, which
    /// only long records need, or very many.
    pub fn shrink(&mut self, usual: usize) {
        self.verdicts.shrink();
        self.known.shrink();
        self.clear_keeping(KEPT_RECORDS);
        self.bytes.shrink(usual);
    }

    /// Cuts the chunk at the end of a record, before its records are found. Returns the rest.
    pub(crate) fn split_off(&mut self, end: usize) -> Self {
        debug_assert!(self.bytes.unread.is_none(), "a chunk that is not read yet");
        let rest = Self {
            bytes: ChunkBytes {
                buffer: self.bytes.buffer[end..self.bytes.filled].to_vec(),
                filled: self.bytes.filled - end,
                ..ChunkBytes::default()
            },
            input: InputPart {
                source: self.input.source,
                is_last: self.input.is_last,
                file: InputFile {
                    opened: None,
                    is_digested: self.input.file.is_digested,
                    digest: None,
                    read: self.input.file.read,
                    end: self.input.file.end.take(),
                    is_compressed: self.input.file.is_compressed,
                    unended: std::mem::take(&mut self.input.file.unended),
                    is_broken: std::mem::take(&mut self.input.file.is_broken),
                    left_at: self.input.file.left_at.take(),
                },
                has_joined_values: self.input.has_joined_values,
                announced: self.input.announced,
                read_until: self.input.read_until,
                input_until: self.input.input_until,
                ..InputPart::default()
            },
            layout: RecordLayout {
                terminator: self.layout.terminator,
                ..RecordLayout::default()
            },
            ..Self::default()
        };
        self.bytes.filled = end;
        self.input.is_last = false;
        rest
    }

    /// The memory of the chunk in bytes, roughly: before its records are found, with those that are
    /// expected.
    pub fn memory_bytes(&self) -> usize {
        let records = self.layout.expected.max(self.records());
        self.bytes.buffer.len() + BYTES_PER_RECORD * records
    }

    /// The number of records before the fault, with and without key hash, and pieces of the frame
    /// around them.
    pub fn records(&self) -> usize {
        self.keys.hashes.len() + self.unkeyed.all.len()
    }

    /// The number of records before the fault without the frame around them.
    pub fn own_records(&self) -> usize {
        self.keys.hashes.len() + self.unkeyed.own_records()
    }

    /// The offset of the first byte of a record.
    #[inline]
    pub fn record_start(&self, index: usize) -> usize {
        match index {
            0 => self.bytes.start,
            _ => self.layout.ends[index - 1],
        }
    }

    /// The bytes of a range of records.
    #[inline]
    pub fn bytes_of(&self, records: Range<usize>) -> &[u8] {
        &self.bytes.buffer[self.record_start(records.start)..self.layout.ends[records.end - 1]]
    }

    /// Passes the key hashes through a filter, and stores their verdicts. It does not get the keys
    /// that one of the `known` filters contains: these are duplicates. With known filters, there is
    /// no window.
    ///
    /// # Errors
    /// [`ExchangeError`] of the ticket.
    pub fn observe<F: RunPart>(
        &mut self,
        ticket: Ticket<'_, F>,
        known: &[Box<dyn LineFilter>],
    ) -> Result<(), ExchangeError> {
        let (mut hashes, mut verdicts) = (self.keys.judged(), &mut self.verdicts.of_keys);
        if !known.is_empty() {
            // In parallel: it changes nothing, and waits for no turn.
            self.known.find(known, hashes);
            (hashes, verdicts) = (&self.known.others, &mut self.known.of_others);
        }
        let batch = match &self.clock.ticks[..] {
            [] => Batch::new(hashes),
            ticks => Batch::at_each(hashes, ticks),
        };
        let observed = if F::HAS_STATE {
            let turn = &mut self.turn;
            let note = |partition, part: &F| part.note(turn, partition);
            ticket.observe_then(batch, verdicts, note)
        } else {
            ticket.observe(batch, verdicts)
        };
        if !known.is_empty() && observed.is_ok() {
            self.known.join(&mut self.verdicts.of_keys);
        }
        observed
    }

    /// The keys that the filter of the run has judged, with its verdicts: all keys, unless other
    /// filters contain some.
    pub fn judged(&self) -> (&[KeyHash], &Verdicts) {
        if self.known.is_empty() {
            (&self.keys.hashes, &self.verdicts.of_keys)
        } else {
            (&self.known.others, &self.known.of_others)
        }
    }
}

#[cfg(test)]
mod tests {
    use echoless::{Batch, Filter, KeyHash, OrderedFilter, Partitioned, Partitioning, Tally};
    use proptest::prelude::*;

    use super::*;

    /// A chunk of `records` records of which some lack a key hash; the hash of a record is its
    /// index, and its tick twice that.
    pub(super) fn chunk(records: usize, unkeyed: &[usize]) -> Chunk {
        let keyed = (0..records as u64).filter(|record| !unkeyed.contains(&(*record as usize)));
        let mut chunk = Chunk::default();
        chunk.keys.hashes = keyed.clone().map(KeyHash::from_uniform).collect();
        chunk.clock.ticks = keyed.map(|record| 2 * record).collect();
        chunk.unkeyed.all.extend(unkeyed);
        chunk
    }

    /// Records every key with the clock that it is observed at; every third key is a duplicate.
    #[derive(Default)]
    struct Recorder {
        clock: Option<u64>,
        observed: Vec<(Option<u64>, u64)>,
    }

    impl Filter for Recorder {
        fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
            batch.observe_runs(duplicates, |tick, batch, duplicates| {
                self.clock = self.clock.max(tick);
                batch.observe_each(duplicates, |key| {
                    self.observed.push((self.clock, key.get()));
                    key.get() % 3 == 0
                });
            });
        }

        fn contains(&self, _key: KeyHash) -> bool {
            false
        }

        fn clear(&mut self) {}

        fn tally(&self) -> Tally {
            Tally::default()
        }
    }

    impl RunPart for Recorder {
        const HAS_STATE: bool = false;

        fn note(&self, _: &mut ChunkTurn, _: usize) {}
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
            prop_assert_eq!(chunk.observe(filter.handle().ticket(), &[]), Ok(()));
            let whole = filter.shutdown().unwrap();
            let observed = &whole.filters()[0].observed;
            let expected = (0..records as u64).map(|key| (timed.then_some(2 * key), key));
            prop_assert_eq!(observed, &expected.collect::<Vec<_>>());
            for record in 0..records {
                prop_assert_eq!(chunk.verdicts.of_keys.is_duplicate(record), record % 3 == 0);
            }
        }
    }
}
