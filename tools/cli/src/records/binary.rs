//! What binary formats have in common: no terminators, and no text. They differ in where records
//! end, which is their [`BinaryFraming`], and in what a field is, which is their [`BinaryFields`].

use std::fmt::Debug;

use super::fault::Problem;
use super::field_set::FieldSet;
use super::format::{Format, LastEnd};
use super::split::FieldBytes;

/// Where binary records end, and which part of one is its content; see [`Format`].
pub(super) trait BinaryFraming: Debug + Send + Sync + 'static {
    /// See [`Format::content`].
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8];

    /// See [`Format::record_ends`].
    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>);

    /// See [`Format::most_records`].
    fn most_records(&self, bytes: &[u8]) -> usize;

    /// See [`Format::last_end`].
    fn last_end(&self) -> Box<dyn LastEnd>;

    /// See [`Format::extent`].
    fn extent(&self, fields: usize) -> String;

    /// See [`Format::record_bytes`].
    fn record_bytes(&self) -> Option<usize> {
        None
    }

    /// See [`Format::records_inside`].
    fn records_inside(&self, _record: &[u8]) -> Option<String> {
        None
    }

    /// See [`Format::file_header_end`].
    fn file_header_end(&self, _bytes: &[u8]) -> Option<usize> {
        None
    }
}

/// The fields of binary records; see [`Format`].
pub(super) trait BinaryFields: Debug + Send + Sync + 'static {
    /// See [`Format::select`].
    fn select(
        &self,
        fields: &FieldSet,
        content: &[u8],
        scratch: &mut Vec<u8>,
        chosen: &mut Vec<FieldBytes>,
    ) -> Result<(), Problem>;

    /// See [`Format::field_name`].
    fn name(&self, field: usize) -> String;
}

/// A format of binary records.
#[derive(Debug)]
pub(super) struct Binary<R, F> {
    pub(super) framing: R,
    pub(super) fields: F,
}

impl<R: BinaryFraming, F: BinaryFields> Format for Binary<R, F> {
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
    fn select(
        &self,
        fields: &FieldSet,
        content: &[u8],
        scratch: &mut Vec<u8>,
        chosen: &mut Vec<FieldBytes>,
    ) -> Result<(), Problem> {
        self.fields.select(fields, content, scratch, chosen)
    }

    fn terminator_of(&self, _records: &[u8]) -> Option<&'static [u8]> {
        Some(b"")
    }

    fn default_terminator(&self) -> &'static [u8] {
        b""
    }

    fn unit(&self) -> &'static str {
        "record"
    }

    fn is_text(&self) -> bool {
        false
    }

    fn field_name(&self, field: usize) -> String {
        self.fields.name(field)
    }

    fn extent(&self, fields: usize) -> String {
        self.framing.extent(fields)
    }

    fn record_bytes(&self) -> Option<usize> {
        self.framing.record_bytes()
    }

    fn records_inside(&self, record: &[u8]) -> Option<String> {
        self.framing.records_inside(record)
    }

    fn file_header_end(&self, bytes: &[u8]) -> Option<usize> {
        self.framing.file_header_end(bytes)
    }
}
