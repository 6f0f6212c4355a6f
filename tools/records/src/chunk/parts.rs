//! The parts of a chunk that its records are cut from: its bytes, the input that they are of, its
//! header, and where its records are.

use crate::chunk::unread_part::UnreadPart;
use crate::fault::Problem;
use crate::field_list::HeaderNames;
use crate::files::{ContentDigest, OpenedFile};
use crate::format::ElementEdge;
use crate::partial::PartialInput;
use crate::restart::{Announced, InputRestart};

/// The records of a chunk whose ends, hashes and other results are kept when it is recycled.
pub(super) const KEPT_RECORDS: usize = 64 << 10;

/// Removes everything and keeps the memory of `kept` items.
pub(super) fn clear_list<T>(list: &mut Vec<T>, kept: usize) {
    list.clear();
    list.shrink_to(kept);
}

/// The bytes of a chunk.
///
/// ```text
/// buffer | mark | header | record 0 | record 1 | .. | record n-1 | room |
///               ^ mark   ^ start    ^ ends[0]                    ^ filled
/// ```
#[derive(Debug, Default)]
pub struct ChunkBytes {
    /// Its length is its capacity.
    pub buffer: Vec<u8>,
    /// The end of the last whole record.
    pub filled: usize,
    /// The end of what is in front of a header and the records: a byte order mark, or bytes of the
    /// chunk before.
    pub mark: usize,
    /// The start of the first record, after a byte order mark and a header.
    pub start: usize,
    /// What is not read yet.
    pub(crate) unread: Option<UnreadPart>,
}

impl ChunkBytes {
    /// All of them, up to the end of the last whole record.
    pub fn all(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// Those behind the mark.
    pub(crate) fn behind_mark(&self) -> &[u8] {
        &self.buffer[self.mark..self.filled]
    }

    /// Those in front of the records.
    pub(crate) fn head(&self) -> &[u8] {
        &self.buffer[..self.start]
    }

    /// Those of the records.
    pub(crate) fn of_records(&self) -> &[u8] {
        &self.buffer[self.start..self.filled]
    }

    /// Removes everything and keeps the memory.
    pub(super) fn clear(&mut self) {
        *self = Self {
            buffer: std::mem::take(&mut self.buffer),
            ..Self::default()
        };
    }

    /// Gives back the memory beyond the `usual` length.
    pub(super) fn shrink(&mut self, usual: usize) {
        self.buffer.truncate(usual);
        self.buffer.shrink_to(usual);
    }
}

/// The part of an input that a chunk is.
#[derive(Debug, Default)]
pub struct InputPart {
    /// The index of the input.
    pub source: usize,
    /// Whether the input begins here.
    pub is_first: bool,
    /// Whether the input ends here.
    pub is_last: bool,
    /// Where the input goes on, in the first chunk of one of which an earlier run has read a part.
    pub restart: Option<InputRestart>,
    /// Whether these are comment lines in front of a header that is still to come.
    pub awaits_header: bool,
    /// Its file, in a run with a state.
    pub file: InputFile,
    /// Whether the records are the blocks of a capture: those that are no packets are the frame of
    /// a file that every output needs.
    pub is_capture: bool,
    /// Whether the input ended and had no place that could hold a record.
    pub(crate) lacks_records: bool,
    /// The codec that the name of the input says, if its bytes are of none.
    pub(crate) belied_codec: Option<&'static str>,
    /// Whether no record has a field that is compared, so that all have the same key.
    pub(crate) has_no_key: bool,
    /// Whether records are values that follow one another, and not the lines of their format.
    pub has_joined_values: bool,
    /// What the first line of the input announces about comment lines.
    pub announced: Option<Announced>,
    /// What is wrong with the one record of the chunk: the input ends inside it. It is set aside.
    pub(crate) incomplete: Option<Problem>,
    /// Inputs that were left before their end, up to the end of the chunk.
    pub left: Vec<PartialInput>,
    /// The number of bytes of the stream read when the chunk was filled.
    pub read_until: u64,
    /// Those of them that are not of known inputs.
    pub input_until: u64,
}

/// The file of an input, in a run with a state.
#[derive(Debug, Default)]
pub struct InputFile {
    /// Which file it is, in the first chunk.
    pub opened: Option<Box<OpenedFile>>,
    /// Whether its reader makes the digest of its bytes.
    pub(crate) is_digested: bool,
    /// That of the bytes of the chunk.
    pub digest: Option<ContentDigest>,
    /// How far it is read, compressed as it is.
    pub read: u64,
    /// Its length, compressed as it is, in the last chunk.
    pub end: Option<u64>,
    /// Whether it is compressed.
    pub is_compressed: bool,
    /// The length of the last record, in the last chunk, if it has no terminator; 0 if it has one.
    pub unended: u64,
    /// Whether that record is a broken one, which was set aside.
    pub is_broken: bool,
    /// The length of the file, in the last chunk, if an unfinished record is left to the next run;
    /// and that of the record.
    pub left_at: Option<(u64, usize)>,
}

/// The header in front of the records of a chunk, and what the stream has of its own.
#[derive(Debug, Default)]
pub struct ChunkHeader {
    /// Whether it is that of the file, which is no record.
    pub(crate) is_of_file: bool,
    /// The header of the stream, with the byte order mark in front of it, in its first chunk.
    pub of_stream: Option<Vec<u8>>,
    /// The names of the fields, if the stream has a header.
    pub field_names: Option<HeaderNames>,
    /// Whether the chunk is the first of a stream without a header, and its byte order mark begins
    /// the main output.
    pub copies_mark: bool,
}

/// Where the records of a chunk are.
#[derive(Debug, Default)]
pub struct RecordLayout {
    /// The end of every record.
    pub ends: Vec<usize>,
    /// Where elements around records begin and end, in order.
    pub edges: Vec<ElementEdge>,
    /// The terminator of the last record, or, if the input ends before it, of the last record in
    /// the stream that has one.
    pub terminator: &'static [u8],
    /// About how many records there are, before they are found; 0 if that is not needed.
    pub expected: usize,
}

impl RecordLayout {
    /// Removes everything and keeps the memory of `kept` records.
    pub(super) fn clear(&mut self, kept: usize) {
        let Self {
            ends,
            edges,
            terminator,
            expected,
        } = self;
        clear_list(ends, kept);
        clear_list(edges, kept);
        *terminator = b"";
        *expected = 0;
    }
}
