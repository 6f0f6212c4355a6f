//! From the records of a chunk to key hashes.

use clap::ValueEnum;
use echoless::{KeyHash, KeyHasher};

use super::chunk::{Chunk, Fault, Problem};
use super::fields::FieldSet;
use super::format::{Format, SharedFormat};
use super::split::FieldBytes;

/// What to do with a record that lacks a field of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Missing {
    /// End the run with an error that names the file and the line
    Error,
    /// Pass the record on without a verdict
    Skip,
    /// Treat the missing field as an empty one
    Empty,
}

/// Finds the records of chunks and hashes their keys. A chunk depends on no other chunk, so clones
/// of a reader work in parallel.
#[derive(Debug, Clone)]
pub(crate) struct KeyReader {
    format: SharedFormat,
    extractor: KeyExtractor,
}

impl KeyReader {
    pub(crate) fn new(format: SharedFormat, extractor: KeyExtractor) -> Self {
        Self { format, extractor }
    }

    /// Finds the records of the chunk and hashes the key of each, up to the first faulty record.
    pub(crate) fn read(&mut self, chunk: &mut Chunk) {
        self.format.read(&mut self.extractor, chunk);
    }
}

/// Extracts and hashes the key of one record.
#[derive(Debug, Clone)]
pub(crate) struct KeyExtractor {
    hasher: KeyHasher,
    /// The fields of the key; `None` if the whole record is the key.
    fields: Option<FieldSet>,
    missing: Missing,
    /// The fields of the current record that are in the key.
    chosen: Vec<FieldBytes>,
    /// The bytes of those of them that are not one piece of the record.
    scratch: Vec<u8>,
}

impl KeyExtractor {
    pub(crate) fn new(hasher: KeyHasher, fields: Option<FieldSet>, missing: Missing) -> Self {
        Self {
            hasher,
            fields,
            missing,
            chosen: Vec::new(),
            scratch: Vec::new(),
        }
    }

    #[inline]
    fn key<F: Format + ?Sized>(
        &mut self,
        format: &F,
        fields: &FieldSet,
        content: &[u8],
    ) -> Result<KeyHash, Problem> {
        self.chosen.clear();
        self.scratch.clear();
        match format.select(fields, content, &mut self.scratch, &mut self.chosen) {
            Ok(()) => {}
            Err(lacking) if self.missing == Missing::Empty => {
                let empty = FieldBytes::Record { start: 0, end: 0 };
                let all = self.chosen.len() + fields.count_from(lacking.field);
                self.chosen.resize(all, empty);
            }
            Err(lacking) => return Err(Problem::Lacks(lacking)),
        }
        let (chosen, scratch) = (&self.chosen, &self.scratch);
        let fields = chosen.iter();
        let hash =
            (self.hasher).hash_fields(fields.map(|field| Some(field.bytes(content, scratch))));
        Ok(hash)
    }
}

/// Finds the records of a chunk and hashes their keys, in loops of the format's own.
pub(super) fn read_records<F: Format + ?Sized>(
    format: &F,
    extractor: &mut KeyExtractor,
    chunk: &mut Chunk,
) {
    let bytes = &chunk.bytes[..chunk.filled];
    format.record_ends(bytes, chunk.start.max(chunk.mark), &mut chunk.ends);
    match extractor.fields.take() {
        None => hash_records(format, &extractor.hasher, chunk),
        Some(fields) => {
            hash_fields(format, extractor, &fields, chunk);
            extractor.fields = Some(fields);
        }
    }
}

fn hash_records<F: Format + ?Sized>(format: &F, hasher: &KeyHasher, chunk: &mut Chunk) {
    let mut start = chunk.start;
    let hashes = chunk.ends.iter().map(|&end| {
        let record = &chunk.bytes[start..end];
        start = end;
        hasher.hash(format.content(record))
    });
    chunk.hashes.extend(hashes);
}

fn hash_fields<F: Format + ?Sized>(
    format: &F,
    extractor: &mut KeyExtractor,
    fields: &FieldSet,
    chunk: &mut Chunk,
) {
    let mut start = chunk.start.max(chunk.mark);
    for (record, &end) in chunk.ends.iter().enumerate() {
        let content = format.content(&chunk.bytes[start..end]);
        start = end;
        match extractor.key(format, fields, content) {
            Ok(hash) => chunk.hashes.push(hash),
            Err(_) if extractor.missing == Missing::Skip => chunk.unkeyed.push(record),
            Err(problem) => {
                chunk.fault = Some(Fault { record, problem });
                return;
            }
        }
    }
}
