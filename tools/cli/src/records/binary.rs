//! What binary formats have in common: no terminators, no text, and fields that are byte ranges.
//! They differ in where records end, which is their [`BinaryFraming`].

use std::fmt::Debug;
use std::sync::Arc;

use super::byte_ranges::ByteRanges;
use super::fault::Problem;
use super::fields::FieldSet;
use super::format::{ChosenFields, Format, LastEnd, SelectedFormat};
use super::split::FieldBytes;

/// Where binary records end, and which part of one is its content; see [`Format`].
pub(super) trait BinaryFraming: Debug + Send + Sync + 'static {
    /// See [`Format::content`].
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8];

    /// See [`Format::record_ends`].
    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>);

    /// See [`Format::last_end`].
    fn last_end(&self) -> Box<dyn LastEnd>;

    /// See [`Format::extent`].
    fn extent(&self, bytes: usize) -> String;
}

/// A format of binary records.
#[derive(Debug)]
struct Binary<F> {
    framing: F,
    ranges: ByteRanges,
}

/// The format of this framing whose fields are `ranges`, which were parsed from `fields`.
pub(super) fn binary<F: BinaryFraming>(
    framing: F,
    ranges: ByteRanges,
    fields: &ChosenFields<'_>,
) -> SelectedFormat {
    let keys = ranges.keys();
    let format = Arc::new(Binary { framing, ranges });
    SelectedFormat::numbered(format, keys, fields.time.is_some())
}

impl<F: BinaryFraming> Format for Binary<F> {
    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        self.framing.content(record)
    }

    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        self.framing.record_ends(bytes, start, ends);
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        self.framing.last_end()
    }

    #[inline(always)]
    fn select(
        &self,
        fields: &FieldSet,
        content: &[u8],
        _scratch: &mut Vec<u8>,
        chosen: &mut Vec<FieldBytes>,
    ) -> Result<(), Problem> {
        self.ranges.select(fields, content, chosen)
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
        self.ranges.name(field)
    }

    fn extent(&self, fields: usize) -> String {
        self.framing.extent(fields)
    }
}
