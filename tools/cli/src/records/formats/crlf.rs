//! Lines that end at LF, or at CR and LF.

use std::sync::Arc;

use echoless::SpecError;

use crate::records::fields::{FieldSet, MissingField, check_delimiter};
use crate::records::format::{Format, FormatOption, LastEnd};
use crate::records::split::{FieldBytes, select_plain};
use crate::records::terminators::{CR, LF, LastTerminator, append_ends};

pub(super) const CRLF: FormatOption = FormatOption {
    long: "crlf",
    short: None,
    value_name: None,
    help: "A CR before the newline is part of the line ending, not of the record",
    implies: &[],
    needs_delimiter: false,
    build: |_, delimiter| Ok(Arc::new(CrLf::new(delimiter)?)),
};

/// Lines with or without CR. A lone CR is content.
#[derive(Debug)]
pub(super) struct CrLf {
    delimiter: u8,
}

impl CrLf {
    pub(super) fn new(delimiter: u8) -> Result<Self, SpecError> {
        check_delimiter(delimiter, &[LF, CR])?;
        Ok(Self { delimiter })
    }
}

impl Format for CrLf {
    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        match record {
            [content @ .., CR, LF] | [content @ .., LF] => content,
            _ => record,
        }
    }

    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        append_ends(bytes, start, LF, ends);
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::new(LastTerminator(LF))
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
        match records {
            [.., CR, LF] => Some(b"\r\n"),
            [.., LF] => Some(b"\n"),
            _ => None,
        }
    }

    fn default_terminator(&self) -> &'static [u8] {
        b"\r\n"
    }

    fn unit(&self) -> &'static str {
        "line"
    }
}
