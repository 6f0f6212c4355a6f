//! From the records of a chunk to key hashes.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use echoless::{KeyHash, KeyHasher};

use super::chunk::{Chunk, ClockStep, NO_TIME};
use super::compared::Compared;
use super::event_time::{JoinedFields, TimeExtractor, TimePlace, present, read_tick};
use super::fault::{FaultPolicy, Missing, Problem};
use super::field_set::{FieldSet, MissingField};
use super::format::{Format, SharedFormat};
use super::split::FieldBytes;
use super::tag::Tagger;
use crate::reading::CHUNK_BYTES;
use crate::time::format::TimeReader;

/// Finds the records of chunks and hashes their keys. A chunk depends on no other chunk, so clones
/// of a reader work in parallel.
#[derive(Debug, Clone)]
pub(crate) struct KeyReader {
    format: SharedFormat,
    extractor: KeyExtractor,
    /// Checks that records have room for a tag.
    tagger: Option<Arc<Tagger>>,
}

impl KeyReader {
    pub(crate) fn new(format: SharedFormat, extractor: KeyExtractor) -> Self {
        Self {
            format,
            extractor,
            tagger: None,
        }
    }

    /// Checks that records have room for the tags of this tagger, if there is one.
    pub(crate) fn with_tagger(mut self, tagger: Option<Arc<Tagger>>) -> Self {
        self.tagger = tagger;
        self
    }

    /// Finds the records of the chunk and hashes the key of each, up to the first faulty record.
    pub(crate) fn read(&mut self, chunk: &mut Chunk) {
        match chunk.incomplete {
            Some(problem) => chunk.reject_incomplete(problem),
            None => self.format.read(&mut self.extractor, chunk),
        }
        if let Some(tagger) = &self.tagger {
            tagger.check(chunk);
        }
    }
}

/// Extracts and hashes the key of one record.
#[derive(Debug, Clone)]
pub(crate) struct KeyExtractor {
    hasher: KeyHasher,
    /// The fields of the key; `None` if the whole record is the key.
    fields: Option<FieldSet>,
    faults: FaultPolicy,
    /// What of a key is compared; `None` is all of it.
    compared: Option<Compared>,
    /// The compared bytes of the current key, and the end of each field in them.
    compared_bytes: Vec<u8>,
    compared_ends: Vec<usize>,
    /// Where records have their times, if they have any.
    time: Option<TimeExtractor>,
    /// The fields of the current record that are in the key.
    chosen: Vec<FieldBytes>,
    /// The bytes of those of them that are not one piece of the record.
    scratch: Vec<u8>,
}

impl KeyExtractor {
    pub(crate) fn new(hasher: KeyHasher, fields: Option<FieldSet>, faults: FaultPolicy) -> Self {
        Self {
            hasher,
            fields,
            faults,
            compared: None,
            compared_bytes: Vec::new(),
            compared_ends: Vec::new(),
            time: None,
            chosen: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Compares this part of each key.
    pub(crate) fn comparing(mut self, compared: Compared) -> Self {
        self.compared = Some(compared).filter(|compared| !compared.is_all());
        self
    }

    /// Reads the time of each record, too. `numbers` are those of its fields, from 0, at least one.
    pub(crate) fn with_time(mut self, numbers: &[usize], reader: TimeReader) -> Self {
        let number = numbers[0];
        let place = match self.fields.as_ref().and_then(|fields| fields.with(number)) {
            _ if numbers.len() > 1 => TimePlace::Several(JoinedFields::new(numbers)),
            Some((joint, rank, in_key)) => {
                self.fields = Some(joint);
                TimePlace::Joint { rank, in_key }
            }
            None => TimePlace::Apart(FieldSet::of(numbers)),
        };
        self.time = Some(TimeExtractor {
            reader,
            number,
            place,
        });
        self
    }

    /// The tick and the key hash of a record.
    #[inline]
    fn timed_key<F: Format + ?Sized>(
        &mut self,
        format: &F,
        fields: Option<&FieldSet>,
        time: &mut TimeExtractor,
        record: &[u8],
        content: &[u8],
    ) -> Result<(i64, KeyHash), Problem> {
        let TimeExtractor {
            reader,
            number,
            place,
        } = time;
        let number = *number;
        let (tick, hash) = match place {
            &mut TimePlace::Joint { rank, in_key } => {
                let Some(fields) = fields else {
                    unreachable!("a joint set is that of the key");
                };
                let lacking = lacking_field(self.select(format, fields, content))?;
                let found = present(self.chosen.get(rank));
                let tick = read_tick(reader, number, found, content, &self.scratch, lacking);
                if let Some(lacking) = lacking {
                    let missing = fields.count_from(lacking.field);
                    let only_time = found.is_none() && !in_key && missing == 1;
                    if !only_time && self.faults.missing != Missing::Empty {
                        return Err(if lacking.field == number {
                            Problem::LacksTime(lacking)
                        } else {
                            Problem::Lacks(lacking)
                        });
                    }
                    self.chosen.resize(fields.count_from(0), FieldBytes::Absent);
                }
                if !in_key {
                    self.chosen.remove(rank);
                }
                (tick, self.hash(content))
            }
            TimePlace::Apart(field) => {
                let lacking = lacking_field(self.select(format, field, content))?;
                let found = present(self.chosen.first());
                let tick = read_tick(reader, number, found, content, &self.scratch, lacking);
                (tick, self.key_apart(format, fields, record, content)?)
            }
            TimePlace::Several(joined) => {
                let lacking = lacking_field(self.select(format, &joined.set, content))?;
                let bytes = (content, &self.scratch[..]);
                let tick = joined.read_tick(reader, number, &self.chosen, bytes, lacking);
                (tick, self.key_apart(format, fields, record, content)?)
            }
        };
        match tick {
            Ok(tick) => Ok((tick, hash)),
            Err(_) if self.faults.missing == Missing::Empty => Ok((NO_TIME, hash)),
            Err(problem) => Err(problem),
        }
    }

    /// Selects the fields of a record, as far as it has them.
    #[inline]
    fn select<F: Format + ?Sized>(
        &mut self,
        format: &F,
        fields: &FieldSet,
        content: &[u8],
    ) -> Result<(), Problem> {
        self.chosen.clear();
        self.scratch.clear();
        format.select(fields, content, &mut self.scratch, &mut self.chosen)
    }

    /// The hash of the selected fields.
    #[inline]
    fn hash(&mut self, content: &[u8]) -> KeyHash {
        if let Some(compared) = self.compared {
            return self.hash_compared(compared, content);
        }
        let (chosen, scratch) = (&self.chosen, &self.scratch);
        let fields = chosen.iter();
        (self.hasher).hash_fields(fields.map(|field| Some(field.bytes(content, scratch))))
    }

    /// The hash of what is compared of the selected fields. Out of line: without such options, a
    /// key pays one branch.
    #[inline(never)]
    fn hash_compared(&mut self, compared: Compared, content: &[u8]) -> KeyHash {
        self.compared_bytes.clear();
        self.compared_ends.clear();
        for field in &self.chosen {
            let field = field.bytes(content, &self.scratch);
            compared.append(field, &mut self.compared_bytes);
            self.compared_ends.push(self.compared_bytes.len());
        }
        let mut start = 0;
        let fields = self.compared_ends.iter().map(|end| {
            let field = &self.compared_bytes[start..*end];
            start = *end;
            Some(field)
        });
        self.hasher.hash_fields(fields)
    }

    /// The hash of a record that is compared whole.
    #[inline]
    fn whole(&mut self, content: &[u8]) -> KeyHash {
        let Some(compared) = self.compared else {
            return self.hasher.hash(content);
        };
        self.compared_bytes.clear();
        compared.append(content, &mut self.compared_bytes);
        self.hasher.hash(&self.compared_bytes)
    }

    /// The hash of the key of a record whose time is read in another pass.
    #[inline]
    fn key_apart<F: Format + ?Sized>(
        &mut self,
        format: &F,
        fields: Option<&FieldSet>,
        record: &[u8],
        content: &[u8],
    ) -> Result<KeyHash, Problem> {
        match fields {
            Some(fields) => self.key(format, fields, content),
            None => Ok(self.whole(format.content(record))),
        }
    }

    #[inline]
    fn key<F: Format + ?Sized>(
        &mut self,
        format: &F,
        fields: &FieldSet,
        content: &[u8],
    ) -> Result<KeyHash, Problem> {
        match self.select(format, fields, content) {
            Ok(()) => {}
            Err(Problem::Lacks(_)) if self.faults.missing == Missing::Empty => {
                self.chosen.resize(fields.count_from(0), FieldBytes::Absent);
            }
            Err(problem) => return Err(problem),
        }
        Ok(self.hash(content))
    }
}

/// The field that a record lacks, if that is all that is wrong with it.
#[inline]
fn lacking_field(selected: Result<(), Problem>) -> Result<Option<MissingField>, Problem> {
    match selected {
        Ok(()) => Ok(None),
        Err(Problem::Lacks(lacking)) => Ok(Some(lacking)),
        Err(problem) => Err(problem),
    }
}

/// Finds the records of a chunk and hashes their keys, in loops of the format's own.
pub(super) fn read_records<F: Format + ?Sized>(
    format: &F,
    extractor: &mut KeyExtractor,
    chunk: &mut Chunk,
) {
    if chunk.ends.is_empty() {
        let bytes = &chunk.bytes[..chunk.filled];
        format.record_ends(bytes, chunk.start.max(chunk.mark), &mut chunk.ends);
    }
    let fields = extractor.fields.take();
    let mut time = extractor.time.take();
    // The records between two pieces of the frame: all of them, in most formats.
    let frame = mem::take(&mut chunk.keys.frame_blocks);
    let mut from = 0;
    for piece in frame.iter().map(Some).chain([None]) {
        let records = from..piece.copied().unwrap_or(chunk.ends.len());
        if let Some(time) = &mut time {
            hash_timed(format, extractor, fields.as_ref(), time, chunk, records);
        } else if let Some(fields) = &fields {
            hash_fields(format, extractor, fields, chunk, records);
        } else {
            hash_records(format, extractor, chunk, records);
        }
        if chunk.fault.is_some() {
            break;
        }
        if let Some(piece) = piece {
            chunk.keys.unkeyed.push(*piece);
            from = piece + 1;
        }
    }
    chunk.keys.frame_blocks = frame;
    if let Some(fault) = chunk.fault {
        chunk
            .keys
            .frame_blocks
            .retain(|block| *block < fault.record);
    }
    extractor.time = time;
    extractor.fields = fields;
    // A long record may have made them long.
    extractor.scratch.shrink_to(CHUNK_BYTES);
    extractor.chosen.shrink_to(CHUNK_BYTES);
}

fn hash_timed<F: Format + ?Sized>(
    format: &F,
    extractor: &mut KeyExtractor,
    fields: Option<&FieldSet>,
    time: &mut TimeExtractor,
    chunk: &mut Chunk,
    records: Range<usize>,
) {
    let mut start = chunk.record_start(records.start);
    let mut latest = chunk.keys.steps.last().map_or(NO_TIME, |step| step.tick);
    for record in records {
        let end = chunk.ends[record];
        let bytes = &chunk.bytes[start..end];
        // A byte order mark is part of the record, but of no field.
        let content = format.content(&chunk.bytes[start.max(chunk.mark)..end]);
        start = end;
        let judged = match extractor.faults.blank_line(content) {
            Some(blank) => Err(blank),
            None => (extractor.timed_key(format, fields, time, bytes, content))
                .map_err(|problem| (extractor.faults.fate(problem), problem)),
        };
        match judged {
            Ok((tick, hash)) => {
                if tick > latest {
                    latest = tick;
                    let from = chunk.keys.hashes.len();
                    chunk.keys.steps.push(ClockStep { from, tick });
                }
                chunk.keys.hashes.push(hash);
                chunk.keys.ticks.push(tick);
            }
            Err((fate, problem)) => {
                if !chunk.set_aside(record, fate, problem) {
                    return;
                }
            }
        }
    }
}

fn hash_records<F: Format + ?Sized>(
    format: &F,
    extractor: &mut KeyExtractor,
    chunk: &mut Chunk,
    records: Range<usize>,
) {
    let mut start = chunk.record_start(records.start);
    let contents = chunk.ends[records].iter().map(|&end| {
        let record = &chunk.bytes[start..end];
        start = end;
        format.content(record)
    });
    if extractor.compared.is_some() {
        let hashes = contents.map(|content| extractor.whole(content));
        chunk.keys.hashes.extend(hashes);
    } else {
        let hasher = &extractor.hasher;
        let hashes = contents.map(|content| hasher.hash(content));
        chunk.keys.hashes.extend(hashes);
    }
}

fn hash_fields<F: Format + ?Sized>(
    format: &F,
    extractor: &mut KeyExtractor,
    fields: &FieldSet,
    chunk: &mut Chunk,
    records: Range<usize>,
) {
    let mut start = chunk.record_start(records.start).max(chunk.mark);
    for record in records {
        let end = chunk.ends[record];
        let content = format.content(&chunk.bytes[start..end]);
        start = end;
        let judged = match extractor.faults.blank_line(content) {
            Some(blank) => Err(blank),
            None => (extractor.key(format, fields, content))
                .map_err(|problem| (extractor.faults.fate(problem), problem)),
        };
        match judged {
            Ok(hash) => chunk.keys.hashes.push(hash),
            Err((fate, problem)) => {
                if !chunk.set_aside(record, fate, problem) {
                    return;
                }
            }
        }
    }
}
