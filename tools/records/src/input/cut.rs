//! Makes chunks of what was read: where the last record of each ends, and how an input ends.

use std::num::NonZeroUsize;

use super::gather::Gathered;
use super::sources::OpenInput;
use crate::chunk::Chunk;
use crate::compression::codec::Codec;
use crate::fault::Fault;
use crate::format::{Format, LastEnd};
use crate::keys::{RecordReading, SharedFormat, format_of_chunk};
use crate::reading::BufferSizes;
use crate::restart::StreamRestart;
use crate::terminators::known_terminator;

/// The format of the stream, and where it is in its records.
#[derive(Debug)]
pub(super) struct Cutter {
    pub(super) format: SharedFormat,
    pub(super) sizes: BufferSizes,
    /// Whether an incomplete record at the end of an input is set aside.
    rejects: bool,
    /// Whether each input begins with a header. A byte order mark alone counts as an empty input.
    has_header: bool,
    /// Whether a state follows the stream.
    has_state: bool,
    /// Whether an unfinished last record of the one input is left to the next run, and the length
    /// at which an earlier run has left it.
    leaves_unfinished: bool,
    left_at: Option<u64>,
    /// The bytes that this run leaves to the next one, which counts them.
    pub(super) left_bytes: u64,
    pub(super) last_end: Box<dyn LastEnd>,
    /// The terminator of the last record that had one.
    pub(super) terminator: &'static [u8],
    /// Whether the next record is longer than the longest.
    pub(super) is_overlong: bool,
    /// Whether reads may be left to the readers of the chunks.
    pub(super) defers_reads: bool,
}

impl Cutter {
    /// Cuts chunks of `usual` bytes. A read has at most `most`.
    pub(super) fn new(reading: &RecordReading, usual: usize, most: NonZeroUsize) -> Self {
        let format = reading.format.clone();
        Self {
            sizes: BufferSizes {
                usual,
                longest: reading.max_record,
                most,
            },
            rejects: reading.faults.rejects,
            has_header: reading.header,
            has_state: false,
            leaves_unfinished: false,
            left_at: None,
            left_bytes: 0,
            last_end: format.last_end(),
            terminator: format.facts().terminator,
            format,
            is_overlong: false,
            defers_reads: false,
        }
    }

    /// Goes on behind what an earlier run has read.
    pub(super) fn restart(&mut self, stream: &StreamRestart) {
        self.has_state = true;
        self.leaves_unfinished = stream.leaves_unfinished;
        self.left_at = stream.left_at;
        // Without a record before, it is that of the format.
        let terminator = known_terminator(&stream.terminator);
        if let Some(terminator) = terminator.filter(|terminator| !terminator.is_empty()) {
            self.terminator = terminator;
        }
    }

    /// Begins an input.
    pub(super) fn open(&mut self, input: &OpenInput) {
        if let Some(restart) = &input.restart {
            self.last_end.restart(restart.joined_values);
        }
    }

    /// Cuts what was read of the input behind its last whole record, and keeps the rest as its
    /// tail. The input ends with the chunk if that [`is_last`](crate::chunk::InputPart::is_last).
    /// Returns whether there is anything in the chunk.
    pub(super) fn cut(&mut self, chunk: &mut Chunk, input: &mut OpenInput, read: Gathered) -> bool {
        let Gathered { len, at_end, .. } = read;
        chunk.input.file.is_compressed = input.file.codec().is_some();
        chunk.input.file.is_digested = self.has_state;
        let belied = input.file.belied_codec().filter(|_| chunk.input.is_first);
        chunk.input.belied_codec = belied.map(Codec::name);
        chunk.input.file.read = input.file.file_position();
        chunk.input.has_joined_values = self.last_end.has_joined_values();
        let format = format_of_chunk(&*self.format, chunk);
        let unfinished = &chunk.bytes.buffer[chunk.bytes.mark..len];
        let sets_aside = self.rejects && self.last_end.may_be_set_aside();
        let problem_at_end = self.last_end.problem_at_end();
        let is_broken = sets_aside && !read.is_cut && problem_at_end.is_some();
        let leaves = at_end && self.leaves(format, input, unfinished, is_broken);
        if leaves {
            let left_at = (input.file.file_position(), unfinished.len());
            chunk.input.file.left_at = Some(left_at);
        }
        // The end of a cut input is none of its last record.
        let ends_whole = at_end && !read.is_cut && !leaves;
        // Where a malformed record ends is unknown, so it cannot be set aside.
        let problem = problem_at_end.filter(|_| ends_whole);
        if ends_whole && (problem.is_none() || sets_aside) {
            chunk.bytes.filled = len;
        }
        if let Some(pieces) = self.last_end.pieces() {
            chunk.take_pieces(pieces);
        }
        // By its first bytes, however many follow in this read.
        let begins_malformed = self.last_end.is_malformed() && !self.last_end.is_malformed_inside();
        let incomplete = if begins_malformed {
            0
        } else {
            len - chunk.bytes.filled
        };
        if let Some(start) = first_overlong(chunk, incomplete, format, self.sizes.longest) {
            chunk.bytes.filled = start;
            chunk.cut_pieces(start);
            self.is_overlong = true;
        } else if at_end {
            if sets_aside {
                chunk.input.incomplete = problem;
            } else {
                chunk.fault = problem.map(|problem| Fault { record: 0, problem });
            }
            chunk.input.is_last = true;
            let ends = self.has_state && !leaves;
            chunk.input.file.end = ends.then(|| input.file.file_position());
            chunk.input.lacks_records =
                ends_whole && problem.is_none() && self.last_end.lacks_records();
            self.last_end.reset();
        } else {
            (input.tail).extend_from_slice(&chunk.bytes.buffer[chunk.bytes.filled..len]);
        }
        // A chunk without records has no mark, unless it is all of the input.
        let is_mark_alone = ends_whole && len == chunk.bytes.mark && !self.has_header;
        if chunk.bytes.filled <= chunk.bytes.mark && !is_mark_alone {
            chunk.bytes.filled = 0;
            chunk.bytes.mark = 0;
        }
        chunk.bytes.start = chunk.bytes.mark;
        if leaves {
            self.left_bytes = (len - chunk.bytes.filled) as u64;
        }
        // A state has to know that an input has ended.
        // Half of a header is none: the next run begins with it.
        let leaves_records = leaves && !(self.has_header && input.begins);
        let tells_end = self.has_state && at_end && (!chunk.input.is_first || leaves_records);
        let has_something =
            chunk.bytes.filled > 0 || chunk.fault.is_some() || chunk.input.lacks_records;
        let is_filled = has_something || tells_end;
        if is_filled {
            input.begins = false;
            chunk.input.restart = input.restart.take();
            chunk.input.file.opened = input.opened.take();
            self.end_with_terminator(chunk);
        }
        is_filled
    }

    /// Whether the bytes behind the last whole record, at the end of the input, are left to the
    /// next run. Those of a `broken` record would be set aside.
    fn leaves(
        &self,
        format: &dyn Format,
        input: &OpenInput,
        unfinished: &[u8],
        is_broken: bool,
    ) -> bool {
        let lacks_terminator =
            || format.facts().is_text && format.terminator_of(unfinished).is_none();
        self.leaves_unfinished
            && !input.is_known
            && !unfinished.is_empty()
            && input.length.is_some()
            && input.file.codec().is_none()
            && (is_broken || lacks_terminator())
            && self.left_at != Some(input.file.file_position())
    }

    /// Tells the terminator of the last record, and whether that record lacks it.
    fn end_with_terminator(&mut self, chunk: &mut Chunk) {
        let format = format_of_chunk(&*self.format, chunk);
        let records = chunk.bytes.behind_mark();
        let lacks_end = chunk.input.file.end.is_some() && !records.is_empty();
        let terminator = format.terminator_of(records);
        if lacks_end && chunk.input.incomplete.is_some() {
            chunk.input.file.unended = records.len() as u64;
            chunk.input.file.is_broken = true;
        } else if lacks_end && terminator.is_none() {
            chunk.input.file.unended = unended_bytes(format, records);
        }
        chunk.layout.terminator = match terminator {
            // Between such records nothing is missing, wherever the chunk ends.
            Some(_) if chunk.input.has_joined_values => b"",
            Some(terminator) => {
                self.terminator = terminator;
                terminator
            }
            None => self.terminator,
        };
    }
}

/// The length of the last of these records.
fn unended_bytes(format: &dyn Format, records: &[u8]) -> u64 {
    let mut ends = Vec::new();
    format.record_ends(records, 0, &mut ends);
    let start = ends.len().checked_sub(2).map_or(0, |before| ends[before]);
    (records.len() - start) as u64
}

/// The start of the first record longer than `longest`, among the chunk's records and the
/// incomplete one after them, which has so many bytes so far.
fn first_overlong(
    chunk: &Chunk,
    incomplete: usize,
    format: &dyn Format,
    longest: usize,
) -> Option<usize> {
    // A chunk is rarely longer than the longest record allowed; only then search its records.
    if chunk.bytes.filled > longest {
        let mut ends = chunk.layout.ends.clone();
        let bytes = chunk.bytes.all();
        let header = format
            .facts()
            .file_header_end
            .filter(|_| chunk.input.is_first);
        let mut start = header.map_or(chunk.bytes.mark, |end| end(bytes));
        if ends.is_empty() {
            format.record_ends(bytes, start, &mut ends);
        }
        for (index, end) in ends.into_iter().enumerate() {
            if end - start > longest && !chunk.unkeyed.is_frame(index) {
                return Some(start);
            }
            start = end;
        }
    }
    (incomplete > longest).then_some(chunk.bytes.filled)
}
