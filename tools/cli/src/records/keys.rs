//! From the records of a chunk to key hashes.

use clap::ValueEnum;
use echoless::{KeyHash, KeyHasher};

use super::chunk::{Chunk, Fault, Problem};
use super::fields::FieldSet;
use super::framing::Framing;
use super::split::{Content, PlainFields, QuotedFields};

/// What becomes of a record that lacks a field of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Missing {
    /// End the run, naming file and line
    Error,
    /// Pass the record on without judging it
    Skip,
    /// Take the missing field for an empty one
    Empty,
}

/// Finds the records of chunks and hashes their keys. It knows nothing of other chunks, so clones of it can work side by side.
#[derive(Debug, Clone)]
pub(crate) struct KeyReader {
    hasher: KeyHasher,
    framing: Framing,
    delimiter: u8,
    /// The fields of the key; `None` takes the whole record.
    fields: Option<FieldSet>,
    missing: Missing,
    /// The chosen fields of the record at hand.
    chosen: Vec<Content>,
    /// Those of them that are not one piece of the record.
    scratch: Vec<u8>,
}

impl KeyReader {
    /// A reader of records that are framed and split like this.
    pub(crate) fn new(
        hasher: KeyHasher,
        framing: Framing,
        delimiter: u8,
        fields: Option<FieldSet>,
        missing: Missing,
    ) -> Self {
        Self {
            hasher,
            framing,
            delimiter,
            fields,
            missing,
            chosen: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Finds the records of the chunk and hashes the key of each, up to the first that is at fault.
    pub(crate) fn read(&mut self, chunk: &mut Chunk) {
        let bytes = &chunk.bytes[..chunk.filled];
        let framing = self.framing.simplified_for(&bytes[chunk.start..]);
        framing.record_ends(bytes, chunk.start.max(chunk.mark), &mut chunk.ends);
        match self.fields.take() {
            None => self.hash_records(framing, chunk),
            Some(fields) => {
                self.hash_fields(framing, &fields, chunk);
                self.fields = Some(fields);
            }
        }
    }

    fn hash_records(&self, framing: Framing, chunk: &mut Chunk) {
        let mut start = chunk.start;
        let records = chunk.ends.iter().map(|&end| {
            let record = &chunk.bytes[start..end];
            start = end;
            record
        });
        // The match is outside of the loop, so each framing has its own.
        let hash = |framing: Framing| move |record| self.hasher.hash(framing.content(record));
        match framing {
            Framing::Lf => chunk.hashes.extend(records.map(hash(Framing::Lf))),
            Framing::Nul => chunk.hashes.extend(records.map(hash(Framing::Nul))),
            Framing::CrLf | Framing::Csv { .. } => {
                chunk.hashes.extend(records.map(hash(Framing::CrLf)));
            }
        }
    }

    fn hash_fields(&mut self, framing: Framing, fields: &FieldSet, chunk: &mut Chunk) {
        let mut start = chunk.start.max(chunk.mark);
        for (index, &end) in chunk.ends.iter().enumerate() {
            let content = framing.content(&chunk.bytes[start..end]);
            start = end;
            match self.key(framing, fields, content) {
                Ok(hash) => chunk.hashes.push(hash),
                Err(_) if self.missing == Missing::Skip => chunk.unkeyed.push(index),
                Err(problem) => {
                    chunk.fault = Some(Fault {
                        record: index,
                        problem,
                    });
                    return;
                }
            }
        }
    }

    #[inline]
    fn key(
        &mut self,
        framing: Framing,
        fields: &FieldSet,
        content: &[u8],
    ) -> Result<KeyHash, Problem> {
        self.chosen.clear();
        self.scratch.clear();
        let take = |field| self.chosen.push(field);
        let selected = match framing {
            Framing::Csv { delimiter } => fields.select(
                QuotedFields::new(content, delimiter, &mut self.scratch),
                take,
            ),
            _ => fields.select(PlainFields::new(content, self.delimiter), take),
        };
        match selected {
            Ok(()) => {}
            Err(lacking) if self.missing == Missing::Empty => {
                let empty = Content::Record { start: 0, end: 0 };
                let all = self.chosen.len() + fields.count_from(lacking.field);
                self.chosen.resize(all, empty);
            }
            Err(lacking) => return Err(Problem::Lacks(lacking)),
        }
        let (chosen, scratch) = (&self.chosen, &self.scratch);
        Ok(self.hasher.hash_fields(
            chosen
                .iter()
                .map(|field| Some(field.bytes(content, scratch))),
        ))
    }
}
