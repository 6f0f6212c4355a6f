//! Records that end at one byte, wherever it occurs: lines, with or without CR, and NUL-terminated
//! records.

use std::sync::Arc;

use memchr::memchr_iter;

use crate::delimiter::Delimiter;
use crate::failure::Failure;
use crate::fault::Problem;
use crate::field_set::{FieldSet, Selected};
use crate::format::{
    BlankLineReading, CommentSupport, Format, FormatFacts, LastEnd, LastTerminator, TagStyle,
};
use crate::formats::{FormatBuild, FormatName, FormatOption};
use crate::keys::{ChunkFormat, SharedFormat};
use crate::split::{Blanks, Sequence, Splitter};
use crate::terminators::{CR, LF, append_ends};

/// Lines: a CR before the LF is content like any other byte. The delimiter must have no LF.
pub(crate) fn lines(delimiter: &Delimiter) -> Result<SharedFormat, Failure> {
    terminated::<LF, false>(delimiter)
}

pub(super) const LINES: FormatName = FormatName {
    name: "lines",
    value_name: None,
    help: "lines, as without this option",
    options: &["crlf"],
    build: FormatBuild::Delimited {
        option: None,
        delimiter: None,
    },
};

pub(super) const TSV: FormatName = FormatName {
    name: "tsv",
    value_name: None,
    help: "lines of fields between tabs, without quotes",
    options: &["crlf"],
    build: FormatBuild::Delimited {
        option: None,
        delimiter: Some(b'\t'),
    },
};

pub(super) const NULL: FormatOption = FormatOption {
    long: "null",
    short: Some('z'),
    help: "Records end at NUL instead of at newline",
    implies: &[],
    needs_delimiter: false,
    build: |delimiter| terminated::<0, false>(delimiter),
};

pub(super) const CRLF: FormatOption = FormatOption {
    long: "crlf",
    short: None,
    help: "A CR before the newline is part of the line ending, not of the record",
    implies: &[],
    needs_delimiter: false,
    build: |delimiter| terminated::<LF, true>(delimiter),
};

/// Lines that end at LF, with fields between bytes.
pub(super) type Lf = Terminated<LF, false, u8>;

/// Lines that end at LF, or at CR and LF, with fields between bytes. A lone CR is content.
pub(super) type CrLf = Terminated<LF, true, u8>;

/// Records that end at `END`, or, with `AFTER_CR`, at CR and `END`, with fields as a [`Splitter`]
/// finds them. All three are known to the compiler, so that each format has loops of its own.
#[derive(Debug)]
pub(super) struct Terminated<const END: u8, const AFTER_CR: bool, S> {
    splitter: S,
    facts: FormatFacts,
}

/// The format with this delimiter.
fn terminated<const END: u8, const AFTER_CR: bool>(
    delimiter: &Delimiter,
) -> Result<SharedFormat, Failure> {
    Ok(match delimiter {
        Delimiter::Byte(byte) => Arc::new(Terminated::<END, AFTER_CR, _>::new(*byte, delimiter)?),
        Delimiter::Sequence(bytes) => {
            let splitter = Sequence::new(bytes);
            Arc::new(Terminated::<END, AFTER_CR, _>::new(splitter, delimiter)?)
        }
        Delimiter::Blanks => Arc::new(Terminated::<END, AFTER_CR, _>::new(Blanks, delimiter)?),
    })
}

impl<const END: u8, const AFTER_CR: bool, S> Terminated<END, AFTER_CR, S> {
    fn new(splitter: S, delimiter: &Delimiter) -> Result<Self, Failure> {
        let reserved: &[u8] = if AFTER_CR { &[END, CR] } else { &[END] };
        delimiter.check(reserved)?;
        let is_line = END == LF;
        let facts = FormatFacts {
            unit: if is_line { "line" } else { "record" },
            spans_lines: false,
            terminator: if AFTER_CR { &[CR, END] } else { &[END] },
            counts_in_parts: true,
            blank_lines: BlankLineReading::Records,
            spaces_are_blank: true,
            comments: if is_line {
                CommentSupport::Announced
            } else {
                CommentSupport::Typed
            },
            tag_style: Some(TagStyle::Field(delimiter.written().into())),
            ..FormatFacts::LINES
        };
        Ok(Self { splitter, facts })
    }
}

impl<const END: u8, const AFTER_CR: bool> Terminated<END, AFTER_CR, u8> {
    /// Fields between bytes of this value.
    pub(super) fn with_byte(byte: u8) -> Result<Self, Failure> {
        Self::new(byte, &Delimiter::Byte(byte))
    }

    /// The same records in a format that is otherwise described by `facts`.
    pub(super) fn with_facts(self, facts: FormatFacts) -> Self {
        Self { facts, ..self }
    }
}

impl<const END: u8, const AFTER_CR: bool, S: Splitter> ChunkFormat
    for Terminated<END, AFTER_CR, S>
{
}

impl<const END: u8, const AFTER_CR: bool, S: Splitter> Format for Terminated<END, AFTER_CR, S> {
    fn facts(&self) -> &FormatFacts {
        &self.facts
    }

    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        match record {
            [content @ .., CR, end] if AFTER_CR && *end == END => content,
            [content @ .., end] if *end == END => content,
            _ => record,
        }
    }

    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        append_ends(bytes, start, END, ends);
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::new(LastTerminator(END))
    }

    #[inline(always)]
    fn select(&self, fields: &FieldSet, content: &[u8], out: &mut Selected) -> Result<(), Problem> {
        let selected = self.splitter.select(fields, content, &mut out.fields);
        selected.map_err(Problem::Lacks)
    }

    fn terminator_of(&self, records: &[u8]) -> Option<&'static [u8]> {
        match records {
            [.., CR, end] if AFTER_CR && *end == END => Some(&[CR, END]),
            [.., end] if *end == END => Some(&[END]),
            _ => None,
        }
    }

    fn most_records(&self, bytes: &[u8]) -> usize {
        memchr_iter(END, bytes).count() + 1
    }
}
