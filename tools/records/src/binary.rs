//! What binary formats have in common: no terminators, and no text. They differ in where records
//! end, which is their [`BinaryFraming`], and in what a field is, which is their [`BinaryFields`].

use std::fmt::Debug;

use super::fault::Problem;
use super::field_set::{FieldSet, Selected};
use super::format::{BlankLineReading, Extent, FieldNames, Format, FormatFacts, LastEnd};
use super::keys::ChunkFormat;

/// Where binary records end, and which part of one is its content; see [`Format`].
pub(super) trait BinaryFraming: Debug + Send + Sync + 'static {
    /// See [`Format::facts`]. The names of the fields are those of [`BinaryFields`].
    fn facts(&self) -> FormatFacts {
        binary_facts()
    }

    /// See [`Format::content`].
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8];

    /// See [`Format::record_ends`].
    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>);

    /// See [`Format::most_records`].
    fn most_records(&self, bytes: &[u8]) -> usize;

    /// See [`Format::last_end`].
    fn last_end(&self) -> Box<dyn LastEnd>;

    /// See [`Format::records_inside`].
    fn records_inside(&self, _record: &[u8]) -> Option<String> {
        None
    }
}

/// What binary formats have in common. A framing states what differs.
pub(super) fn binary_facts() -> FormatFacts {
    FormatFacts {
        unit: "record",
        spans_lines: false,
        is_text: false,
        terminator: b"",
        blank_lines: BlankLineReading::Records,
        extent: Extent::Unsaid,
        ..FormatFacts::LINES
    }
}

/// The fields of binary records; see [`Format`].
pub(super) trait BinaryFields: Debug + Send + Sync + 'static {
    /// See [`Format::select`].
    fn select(&self, fields: &FieldSet, content: &[u8], out: &mut Selected) -> Result<(), Problem>;

    /// The names of the fields in error messages.
    fn names(&self) -> Vec<String>;
}

/// A format of binary records.
#[derive(Debug)]
pub(super) struct Binary<R, F> {
    framing: R,
    fields: F,
    facts: FormatFacts,
}

impl<R: BinaryFraming, F: BinaryFields> Binary<R, F> {
    pub(super) fn new(framing: R, fields: F) -> Self {
        let facts = FormatFacts {
            field_names: FieldNames::Listed(fields.names()),
            ..framing.facts()
        };
        Self {
            framing,
            fields,
            facts,
        }
    }
}

impl<R: BinaryFraming, F: BinaryFields> ChunkFormat for Binary<R, F> {}

impl<R: BinaryFraming, F: BinaryFields> Format for Binary<R, F> {
    fn facts(&self) -> &FormatFacts {
        &self.facts
    }

    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        self.framing.content(record)
    }

    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        self.framing.record_ends(bytes, start, ends);
    }

    fn most_records(&self, bytes: &[u8]) -> usize {
        self.framing.most_records(bytes)
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        self.framing.last_end()
    }

    #[inline(always)]
    fn select(&self, fields: &FieldSet, content: &[u8], out: &mut Selected) -> Result<(), Problem> {
        self.fields.select(fields, content, out)
    }

    fn terminator_of(&self, _records: &[u8]) -> Option<&'static [u8]> {
        Some(b"")
    }

    fn records_inside(&self, record: &[u8]) -> Option<String> {
        self.framing.records_inside(record)
    }
}
