//! Records that end at one byte, wherever it occurs: lines (LF) and NUL-terminated records.

use std::sync::Arc;

use echoless::SpecError;

use crate::records::fields::{FieldSet, MissingField, check_delimiter};
use crate::records::format::{Format, FormatOption, LastEnd, SharedFormat};
use crate::records::split::{FieldBytes, select_plain};
use crate::records::terminators::{LastTerminator, append_ends};

/// Lines: a CR before the LF is content like any other byte.
///
/// # Errors
/// [`SpecError`] if the delimiter is LF.
pub(crate) fn lines(delimiter: u8) -> Result<SharedFormat, SpecError> {
    Terminated::<b'\n'>::shared(delimiter)
}

/// Records that end at NUL.
pub(super) const NULL: FormatOption = FormatOption {
    long: "null",
    short: Some('z'),
    value_name: None,
    help: "Records end at NUL instead of at newline",
    implies: &[],
    needs_delimiter: false,
    build: |_, delimiter| Terminated::<0>::shared(delimiter),
};

/// Records that end at `END`. A constant, so that each terminator has its own loops.
#[derive(Debug)]
struct Terminated<const END: u8> {
    delimiter: u8,
}

impl<const END: u8> Terminated<END> {
    fn shared(delimiter: u8) -> Result<SharedFormat, SpecError> {
        check_delimiter(delimiter, &[END])?;
        Ok(Arc::new(Self { delimiter }))
    }
}

impl<const END: u8> Format for Terminated<END> {
    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        record.strip_suffix(&[END]).unwrap_or(record)
    }

    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        append_ends(bytes, start, END, ends);
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::new(LastTerminator(END))
    }

    #[inline(always)]
    fn select(
        &self,
        fields: &FieldSet,
        content: &[u8],
        _scratch: &mut Vec<u8>,
        chosen: &mut Vec<FieldBytes>,
    ) -> Result<(), MissingField> {
        select_plain(fields, content, self.delimiter, chosen)
    }

    fn terminator_of(&self, records: &[u8]) -> Option<&'static [u8]> {
        records.ends_with(&[END]).then_some(&[END])
    }

    fn default_terminator(&self) -> &'static [u8] {
        &[END]
    }

    fn unit(&self) -> &'static str {
        if END == b'\n' { "line" } else { "record" }
    }
}
