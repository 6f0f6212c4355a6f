//! From the records of a chunk to key hashes.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use echoless::hash::{KeyDigest, KeyDigester};
use echoless::{KeyHash, KeyHasher, SpecError};

use super::chunk::{Chunk, ChunkKeys, ClockStep, NO_TIME};
use super::comments::{CommentLines, UnjudgedLines};
use super::compared::Compared;
use super::event_time::{JoinedFields, TimeExtractor, TimePlace, present, read_tick};
use super::fault::{Fate, Fault, FaultPolicy, Missing, Problem};
use super::field_list::{FieldList, HeaderNames};
use super::field_set::{
    FieldBytes, FieldOrder, FieldSet, KeyFields, MissingField, PickedFields, Position, Selected,
};
use super::format::Format;
use super::tag::Tagger;
use crate::compression::codec::Detection;
use crate::files::ContentDigest;
use crate::reading::CHUNK_BYTES;
use crate::time::format::TimeReader;

/// A format that the stages of a run share.
pub type SharedFormat = Arc<dyn ChunkFormat>;

/// A format with loops of its own for the records of a chunk.
pub trait ChunkFormat: Format {
    /// Finds the records of a chunk and hashes the key of each.
    fn read(&self, extractor: &mut KeyExtractor, chunk: &mut Chunk) {
        read_records(self, extractor, chunk);
    }

    /// The same format for inputs with comment lines that begin with `prefix`; `None` if this one
    /// finds their ends.
    fn with_comments(&self, _prefix: &[u8]) -> Option<SharedFormat> {
        None
    }

    /// The format of chunks with [`has_joined_values`](super::chunk::InputPart::has_joined_values).
    fn of_joined_values(&self) -> Option<&dyn ChunkFormat> {
        None
    }
}

/// The format of the records of a chunk, which are of an input of `format`.
pub(crate) fn format_of_chunk<'a>(
    format: &'a dyn ChunkFormat,
    chunk: &Chunk,
) -> &'a dyn ChunkFormat {
    let joined = (chunk.input.has_joined_values).then(|| format.of_joined_values());
    joined.flatten().unwrap_or(format)
}

/// Records, and the parts of them that are compared.
#[derive(Debug)]
pub struct RecordReading {
    /// The format of the records.
    pub format: SharedFormat,
    /// Whether compressed inputs are read as they are.
    pub as_they_are: bool,
    /// The length of the longest record allowed, in bytes, terminator included.
    pub(crate) max_record: usize,
    pub(crate) header: bool,
    /// Which lines are comments, if inputs may have any.
    pub(crate) comments: Option<Arc<CommentLines>>,
    /// Whether the first line of an input may announce them.
    pub(crate) announced_comments: bool,
    /// The fields to compare; `None` compares whole records.
    pub key: Option<FieldList>,
    /// The part of a key that is compared.
    pub(crate) compared: Compared,
    pub(crate) faults: FaultPolicy,
}

impl RecordReading {
    /// What inputs may be taken for by their first bytes.
    pub fn detection(&self) -> Detection {
        match (self.as_they_are, self.format.facts().is_text) {
            (true, _) => Detection::Off,
            (false, true) => Detection::Text,
            (false, false) => Detection::Binary,
        }
    }
}

/// Finds the records of chunks and hashes their keys. A chunk depends on no other chunk, so clones
/// of a reader work in parallel.
#[derive(Debug, Clone)]
pub struct KeyReader {
    format: SharedFormat,
    extractor: KeyExtractor,
    /// How the fields are chosen, and the number of the names that they are chosen by, if records
    /// may have other names of fields than those before.
    choice: Option<Arc<KeyChoice>>,
    names: u32,
    /// Checks that records have room for a tag.
    tagger: Option<Arc<Tagger>>,
}

impl KeyReader {
    pub(crate) fn new(format: SharedFormat, extractor: KeyExtractor) -> Self {
        Self {
            format,
            extractor,
            choice: None,
            names: 0,
            tagger: None,
        }
    }

    /// The reader of records that have the names of the first header. Those of other names are read
    /// by the same choice of fields. Fails if a field is not in the header.
    pub(crate) fn of_choice(choice: KeyChoice) -> Result<Self, SpecError> {
        let reader = Self::new(choice.reading.format.clone(), choice.first_extractor()?);
        Ok(Self {
            choice: Some(Arc::new(choice)),
            ..reader
        })
    }

    /// Checks that records have room for the tags of this tagger, if there is one.
    pub(crate) fn with_tagger(mut self, tagger: Option<Arc<Tagger>>) -> Self {
        self.tagger = tagger;
        self
    }

    /// Reads what is not read yet of the chunk, finds its records and hashes the key of each, up to
    /// the first faulty record.
    pub fn read(&mut self, chunk: &mut Chunk) {
        if let Some(unread) = chunk.bytes.unread.take() {
            unread.read(chunk, &*self.format);
        }
        let number = (chunk.header.field_names.as_ref()).map_or(0, |names| names.number);
        let have_names = number == self.names || self.adopt_names(chunk);
        match chunk.input.incomplete {
            Some(problem) => chunk.reject_incomplete(problem),
            None => self.format.read(&mut self.extractor, chunk),
        }
        if !have_names {
            self.end_at_names(chunk);
        }
        if chunk.input.is_first {
            chunk.input.has_no_key = self.extractor.has_no_key(&*self.format, chunk);
        }
        if let Some(tagger) = &self.tagger {
            tagger.check(chunk);
        }
        if chunk.input.file.is_digested {
            chunk.input.file.digest = Some(ContentDigest::of(chunk.bytes.all()));
        }
    }
}

impl KeyReader {
    /// Appends the digest of each of these keys of a chunk, which this reader has
    /// [read](Self::read) last.
    pub fn digest_keys(
        &mut self,
        chunk: &Chunk,
        digester: &KeyDigester,
        keys: &[usize],
        digests: &mut Vec<KeyDigest>,
    ) {
        let format = format_of_chunk(&*self.format, chunk);
        let fields = self.extractor.fields.take();
        for key in keys {
            let record = chunk.record_of(*key);
            let content = format.content(chunk.bytes_of(record..record + 1));
            digests.push(
                self.extractor
                    .digest(format, fields.as_ref(), digester, content),
            );
        }
        self.extractor.fields = fields;
    }

    /// Chooses the fields by the names of a chunk. Returns whether they have all that are chosen.
    #[cold]
    fn adopt_names(&mut self, chunk: &Chunk) -> bool {
        let (Some(choice), Some(names)) = (&self.choice, &chunk.header.field_names) else {
            return true;
        };
        let Some(extractor) = choice.extractor(names) else {
            return false;
        };
        self.extractor = extractor;
        self.names = names.number;
        true
    }

    /// Ends the records of a chunk before the comment line with its names.
    #[cold]
    fn end_at_names(&self, chunk: &mut Chunk) {
        let problem = Problem::OtherNames;
        let announced = chunk.input.announced;
        let line = announced.and_then(|it| it.all_names(chunk, &*self.format).pop());
        let line = line.map_or(chunk.bytes.start, |(start, _)| start);
        let record = chunk.layout.ends.partition_point(|end| *end <= line);
        if record <= chunk.records() {
            chunk.end_at(Fault { record, problem });
        }
    }
}

/// How the fields of keys and times are chosen, by names that may change in the stream.
#[derive(Debug)]
pub(crate) struct KeyChoice {
    pub(crate) reading: Arc<RecordReading>,
    pub(crate) hasher: KeyHasher,
    /// The fields with the time of a record, in their order, and its reader.
    pub(crate) time: Option<(FieldList, TimeReader)>,
    /// The names of the fields in the first header.
    pub(crate) first: Arc<[Vec<u8>]>,
    /// Whether later records may have others.
    pub(crate) may_change: bool,
}

impl KeyChoice {
    /// The extractor of records with the names of the first header.
    fn first_extractor(&self) -> Result<KeyExtractor, SpecError> {
        let key = self.reading.key.as_ref();
        let key = key.map(|key| key.resolve(&self.first)).transpose()?;
        let numbers = |fields: &FieldList| {
            let numbers = fields.numbers(&self.first);
            numbers.map_err(|error| SpecError {
                field: "--time-field",
                ..error
            })
        };
        let time = self.time.as_ref().map(|(fields, _)| numbers(fields));
        Ok(self.with_fields(key, FieldOrder::default(), time.transpose()?))
    }

    /// The extractor of records with these names, for keys that equal those of records with the
    /// names of the first header; `None` if names do not tell the fields. Records that are compared
    /// whole would be those of other fields.
    fn extractor(&self, names: &HeaderNames) -> Option<KeyExtractor> {
        if names.number == 0 {
            return self.first_extractor().ok();
        }
        let key = self.reading.key.as_ref().filter(|_| self.may_change);
        let (key, order) = key?.resolve_as(names)?;
        let time = match &self.time {
            Some((fields, _)) => Some(fields.numbers_as(names)?),
            None => None,
        };
        Some(self.with_fields(Some(key), order, time))
    }

    fn with_fields(
        &self,
        key: Option<KeyFields>,
        order: FieldOrder,
        time: Option<Vec<usize>>,
    ) -> KeyExtractor {
        let (fields, picked) = match key {
            Some(KeyFields { set, picked }) => (Some(set), picked),
            None => (None, None),
        };
        let extractor = KeyExtractor::new(self.hasher.clone(), fields, self.reading.faults)
            .comparing(self.reading.compared, picked, order)
            .with_comments(self.reading.comments.clone());
        match (time, &self.time) {
            (Some(numbers), Some((_, reader))) => extractor.with_time(&numbers, reader.clone()),
            _ => extractor,
        }
    }
}

/// Extracts and hashes the key of one record.
#[derive(Debug, Clone)]
pub struct KeyExtractor {
    hasher: KeyHasher,
    /// The fields of the key; `None` if the whole record is the key.
    fields: Option<FieldSet>,
    faults: FaultPolicy,
    /// What of a key is compared; `None` is all of it.
    comparison: Option<Box<Comparison>>,
    /// Which lines are comments, if inputs may have any.
    comments: Option<Arc<CommentLines>>,
    /// Where records have their times, if they have any.
    time: Option<TimeExtractor>,
    /// The fields of the current record that are in the key.
    chosen: Selected,
}

impl KeyExtractor {
    pub(crate) fn new(hasher: KeyHasher, fields: Option<FieldSet>, faults: FaultPolicy) -> Self {
        Self {
            hasher,
            fields,
            faults,
            comparison: None,
            comments: None,
            time: None,
            chosen: Selected::default(),
        }
    }

    /// Compares this part of each key, and of its fields those that are picked, in this order.
    fn comparing(
        mut self,
        compared: Compared,
        picked: Option<PickedFields>,
        order: FieldOrder,
    ) -> Self {
        let is_all = compared.is_all() && picked.is_none() && order.is_of_record();
        self.comparison = (!is_all).then(|| {
            Box::new(Comparison {
                compared,
                picked,
                order,
                bytes: Vec::new(),
                ends: Vec::new(),
            })
        });
        self
    }

    /// Passes comment lines.
    fn with_comments(mut self, comments: Option<Arc<CommentLines>>) -> Self {
        self.comments = comments;
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
        content: &[u8],
    ) -> Result<(i64, KeyHash), Problem> {
        let TimeExtractor {
            reader,
            number,
            place,
        } = time;
        let number = *number;
        let mut tick_of = |found, scratch: &[u8], lacking| {
            read_tick(reader, number, found, content, scratch, lacking)
        };
        let (tick, hash) = match place {
            &mut TimePlace::Joint { rank, in_key } => {
                let Some(fields) = fields else {
                    unreachable!("a joint set is that of the key");
                };
                let lacking = lacking_field(self.select(format, fields, content))?;
                let found = present(self.chosen.fields.get(rank));
                let tick = tick_of(found, &self.chosen.scratch, lacking);
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
                    (self.chosen.fields).resize(fields.count_from(0), FieldBytes::Absent);
                }
                if !in_key {
                    self.chosen.fields.remove(rank);
                }
                (tick, self.hash(content)?)
            }
            TimePlace::Apart(field) => {
                let lacking = lacking_field(self.select(format, field, content))?;
                let found = present(self.chosen.fields.first());
                let tick = tick_of(found, &self.chosen.scratch, lacking);
                (tick, self.key_apart(format, fields, content)?)
            }
            TimePlace::Several(joined) => {
                let lacking = lacking_field(self.select(format, &joined.set, content))?;
                let bytes = (content, &self.chosen.scratch[..]);
                let tick = joined.read_tick(reader, number, &self.chosen.fields, bytes, lacking);
                (tick, self.key_apart(format, fields, content)?)
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
        self.chosen.fields.clear();
        self.chosen.scratch.clear();
        format.select(fields, content, &mut self.chosen)
    }

    /// Whether no record of several has a field that is compared, as with `!1` where records have
    /// one field. The first one tells that of nearly all inputs.
    fn has_no_key(&mut self, format: &dyn ChunkFormat, chunk: &Chunk) -> bool {
        let Some(fields) = self.fields.take() else {
            return false;
        };
        let format = format_of_chunk(format, chunk);
        let mut picked =
            (self.comparison.as_ref()).and_then(|comparison| comparison.picked.clone());
        let mut has_none = |extractor: &mut Self, hash| {
            let record = chunk.record_of(hash);
            let content = format.content(chunk.bytes_of(record..record + 1));
            let selected = extractor.select(format, &fields, content);
            let chosen = &mut extractor.chosen.fields;
            let picked = picked
                .as_mut()
                .map_or(Ok(()), |picked| picked.pick(chosen, true));
            selected.is_ok() && picked.is_ok() && chosen.is_empty()
        };
        let keys = chunk.keys.hashes.len();
        let found =
            keys > 1 && fields.required() == 0 && (0..keys).all(|hash| has_none(self, hash));
        self.fields = Some(fields);
        found
    }

    /// The hash of the selected fields.
    #[inline]
    fn hash(&mut self, content: &[u8]) -> Result<KeyHash, Problem> {
        if self.comparison.is_some() {
            return self.hash_compared(content);
        }
        Ok(self.hasher.of_fields(self.chosen.values(content)))
    }

    /// The hash of what is compared of the selected fields. Out of line: without such options, a
    /// key pays one branch.
    #[inline(never)]
    fn hash_compared(&mut self, content: &[u8]) -> Result<KeyHash, Problem> {
        let comparison = self.comparison.as_deref_mut();
        of_chosen(
            &self.hasher,
            comparison,
            &mut self.chosen,
            self.faults,
            content,
        )
    }

    /// The hash of a record that is compared whole.
    #[inline]
    fn whole(&mut self, content: &[u8]) -> KeyHash {
        of_whole(&self.hasher, self.comparison.as_deref_mut(), content)
    }

    /// The digest of the key of a record, which has one.
    fn digest<F: Format + ?Sized>(
        &mut self,
        format: &F,
        fields: Option<&FieldSet>,
        digester: &KeyDigester,
        content: &[u8],
    ) -> KeyDigest {
        let Some(fields) = fields else {
            return of_whole(digester, self.comparison.as_deref_mut(), content);
        };
        if self.select(format, fields, content).is_err() {
            // It lacks the time only, or what it lacks is empty.
            (self.chosen.fields).resize(fields.count_from(0), FieldBytes::Absent);
        }
        let place = self.time.as_ref().map(|time| &time.place);
        if let Some(&TimePlace::Joint {
            rank,
            in_key: false,
        }) = place
        {
            self.chosen.fields.remove(rank);
        }
        let comparison = self.comparison.as_deref_mut();
        let digest = of_chosen(digester, comparison, &mut self.chosen, self.faults, content);
        digest.unwrap_or_else(|_| unreachable!("a key that was hashed"))
    }

    /// The hash of the key of a record whose time is read in another pass.
    #[inline]
    fn key_apart<F: Format + ?Sized>(
        &mut self,
        format: &F,
        fields: Option<&FieldSet>,
        content: &[u8],
    ) -> Result<KeyHash, Problem> {
        match fields {
            Some(fields) => self.key(format, fields, content),
            None => Ok(self.whole(content)),
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
                (self.chosen.fields).resize(fields.count_from(0), FieldBytes::Absent);
            }
            Err(problem) => return Err(problem),
        }
        self.hash(content)
    }
}

/// What of a key is compared, and how.
#[derive(Debug, Clone)]
struct Comparison {
    compared: Compared,
    /// The fields that are compared, if only the whole record tells which these are.
    picked: Option<PickedFields>,
    /// The order in which they are compared.
    order: FieldOrder,
    /// The compared bytes of the current key, and the end of each field in them.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// A function of keys: the hash, or a digest.
trait KeyFunction {
    type Output;

    fn of_bytes(&self, key: &[u8]) -> Self::Output;

    fn of_fields<'a>(&self, fields: impl Iterator<Item = &'a [u8]>) -> Self::Output;
}

impl KeyFunction for KeyHasher {
    type Output = KeyHash;

    #[inline(always)]
    fn of_bytes(&self, key: &[u8]) -> KeyHash {
        self.hash(key)
    }

    #[inline(always)]
    fn of_fields<'a>(&self, fields: impl Iterator<Item = &'a [u8]>) -> KeyHash {
        self.hash_fields(fields.map(Some))
    }
}

impl KeyFunction for KeyDigester {
    type Output = KeyDigest;

    fn of_bytes(&self, key: &[u8]) -> KeyDigest {
        self.digest(key)
    }

    fn of_fields<'a>(&self, fields: impl Iterator<Item = &'a [u8]>) -> KeyDigest {
        self.digest_fields(fields.map(Some))
    }
}

/// The function of what is compared of the selected fields.
#[inline(always)]
fn of_chosen<K: KeyFunction>(
    function: &K,
    comparison: Option<&mut Comparison>,
    chosen: &mut Selected,
    faults: FaultPolicy,
    content: &[u8],
) -> Result<K::Output, Problem> {
    let Some(comparison) = comparison else {
        return Ok(function.of_fields(chosen.values(content)));
    };
    if let Some(picked) = &mut comparison.picked {
        let fields = chosen.fields.len();
        let may_lack = faults.missing == Missing::Empty;
        let picked = picked.pick(&mut chosen.fields, may_lack);
        picked.map_err(|position| match position {
            Position::FromStart(field) => Problem::Lacks(MissingField { field, fields }),
            Position::FromEnd(field) => Problem::LacksFromEnd(MissingField { field, fields }),
        })?;
    }
    comparison.order.apply(&mut chosen.fields);
    if comparison.compared.is_all() {
        return Ok(function.of_fields(chosen.values(content)));
    }
    let Comparison {
        compared,
        bytes,
        ends,
        ..
    } = comparison;
    bytes.clear();
    ends.clear();
    for field in chosen.values(content) {
        compared.append(field, bytes);
        ends.push(bytes.len());
    }
    let mut start = 0;
    let fields = ends.iter().map(|end| {
        let field = &bytes[start..*end];
        start = *end;
        field
    });
    Ok(function.of_fields(fields))
}

/// The function of what is compared of a whole record.
#[inline(always)]
fn of_whole<K: KeyFunction>(
    function: &K,
    comparison: Option<&mut Comparison>,
    content: &[u8],
) -> K::Output {
    let Some(comparison) = comparison else {
        return function.of_bytes(content);
    };
    comparison.bytes.clear();
    comparison.compared.append(content, &mut comparison.bytes);
    function.of_bytes(&comparison.bytes)
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
pub(crate) fn read_records<F: Format + ?Sized>(
    format: &F,
    extractor: &mut KeyExtractor,
    chunk: &mut Chunk,
) {
    if chunk.layout.ends.is_empty() {
        let bytes = chunk.bytes.all();
        format.record_ends(bytes, chunk.bytes.start, &mut chunk.layout.ends);
    }
    let (faults, announced) = (extractor.faults, chunk.input.announced);
    let comments = extractor.comments.clone();
    let prefix = (comments.as_ref()).and_then(|comments| comments.prefix(announced));
    let unjudged = UnjudgedLines::new(faults, prefix);
    // The records between two pieces of the frame: all of them, in most formats.
    let frame = mem::take(&mut chunk.unkeyed.frame);
    let mut from = 0;
    for piece in frame.iter().map(Some).chain([None]) {
        let records = from..piece.copied().unwrap_or(chunk.layout.ends.len());
        // Each call has loops of its own, so that where all lines are judged, none pays for it.
        match &unjudged {
            None if extractor.fields.is_none() && extractor.time.is_none() => {
                hash_records(format, extractor, chunk, records);
            }
            None => hash_all(format, extractor, |_| None, chunk, records),
            Some(unjudged) => {
                let fate = |content: &[u8]| unjudged.fate(format, content);
                hash_all(format, extractor, fate, chunk, records);
            }
        }
        if chunk.fault.is_some() {
            break;
        }
        if let Some(piece) = piece {
            chunk.unkeyed.all.push(*piece);
            from = piece + 1;
        }
    }
    chunk.unkeyed.frame = frame;
    if let Some(fault) = chunk.fault {
        (chunk.unkeyed.frame).retain(|block| *block < fault.record);
    }
    // A long record may have made them long.
    extractor.chosen.scratch.shrink_to(CHUNK_BYTES);
    extractor.chosen.fields.shrink_to(CHUNK_BYTES);
}

/// Hashes the keys of records whose ends are found. `unjudged` is what happens to a record with
/// this content that is not judged.
#[inline(always)]
fn hash_all<F: Format + ?Sized>(
    format: &F,
    extractor: &mut KeyExtractor,
    unjudged: impl Fn(&[u8]) -> Option<Fate>,
    chunk: &mut Chunk,
    records: Range<usize>,
) {
    let fields = extractor.fields.take();
    let push = |keys: &mut ChunkKeys, hash| keys.hashes.push(hash);
    if let Some(mut time) = extractor.time.take() {
        let mut latest = chunk.keys.steps.last().map_or(NO_TIME, |step| step.time);
        let key = |extractor: &mut KeyExtractor, content: &[u8]| {
            extractor.timed_key(format, fields.as_ref(), &mut time, content)
        };
        let push = |keys: &mut ChunkKeys, (time, hash)| {
            if time > latest {
                latest = time;
                let from = keys.hashes.len();
                keys.steps.push(ClockStep { from, time });
            }
            keys.hashes.push(hash);
            keys.times.push(time);
        };
        hash_each(format, extractor, unjudged, chunk, records, key, push);
        extractor.time = Some(time);
    } else if let Some(fields) = &fields {
        let key =
            |extractor: &mut KeyExtractor, content: &[u8]| extractor.key(format, fields, content);
        hash_each(format, extractor, unjudged, chunk, records, key, push);
    } else {
        let key = |extractor: &mut KeyExtractor, content: &[u8]| Ok(extractor.whole(content));
        hash_each(format, extractor, unjudged, chunk, records, key, push);
    }
    extractor.fields = fields;
}

/// Reads the key of each record, and keeps it by `push`, up to the first record that ends the run.
/// Each use has a loop of its own.
fn hash_each<F: Format + ?Sized, K>(
    format: &F,
    extractor: &mut KeyExtractor,
    unjudged: impl Fn(&[u8]) -> Option<Fate>,
    chunk: &mut Chunk,
    records: Range<usize>,
    mut key: impl FnMut(&mut KeyExtractor, &[u8]) -> Result<K, Problem>,
    mut push: impl FnMut(&mut ChunkKeys, K),
) {
    let mut start = chunk.record_start(records.start);
    for record in records {
        let end = chunk.layout.ends[record];
        let content = format.content(&chunk.bytes.buffer[start..end]);
        start = end;
        let judged = match unjudged(content) {
            Some(fate) => Err(fate),
            None => key(extractor, content).map_err(|problem| extractor.faults.fate(problem)),
        };
        match judged {
            Ok(key) => push(&mut chunk.keys, key),
            Err(fate) => {
                if !chunk.set_aside(record, fate) {
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
    let contents = chunk.layout.ends[records].iter().map(|&end| {
        let record = &chunk.bytes.buffer[start..end];
        start = end;
        format.content(record)
    });
    if extractor.comparison.is_some() {
        let hashes = contents.map(|content| extractor.whole(content));
        chunk.keys.hashes.extend(hashes);
    } else {
        let hasher = &extractor.hasher;
        let hashes = contents.map(|content| hasher.hash(content));
        chunk.keys.hashes.extend(hashes);
    }
}
