//! Splits one record into fields, plain or quoted, and removes the quotes.

use memchr::{Memchr, memchr, memchr_iter};

use super::fields::{FieldSet, MissingField};
use super::quoting::QUOTE;

/// Where the value of a field is: in the record, or, if it is not one piece of it, in the scratch
/// memory. A missing field has no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldBytes {
    Record { start: usize, end: usize },
    Scratch { start: usize, end: usize },
    Absent,
}

impl FieldBytes {
    #[inline]
    pub(crate) fn bytes<'a>(&self, record: &'a [u8], scratch: &'a [u8]) -> &'a [u8] {
        match *self {
            Self::Record { start, end } => &record[start..end],
            Self::Scratch { start, end } => &scratch[start..end],
            Self::Absent => &[],
        }
    }
}

/// Appends those fields of a record without quotes that are in `fields`.
///
/// # Errors
/// [`MissingField`] if the record ends before the last of them.
#[inline(always)]
pub(super) fn select_plain(
    fields: &FieldSet,
    content: &[u8],
    delimiter: u8,
    chosen: &mut Vec<FieldBytes>,
) -> Result<(), MissingField> {
    let all = PlainFields::new(content, delimiter);
    fields.select(all, |field| chosen.push(field))
}

/// The fields between the delimiters of a record.
pub(crate) struct PlainFields<'a> {
    delimiters: Memchr<'a>,
    start: usize,
    len: usize,
}

impl<'a> PlainFields<'a> {
    /// The fields of a record's content. An empty record has one field, which is empty.
    #[inline]
    pub(crate) fn new(content: &'a [u8], delimiter: u8) -> Self {
        Self {
            delimiters: memchr_iter(delimiter, content),
            start: 0,
            len: content.len(),
        }
    }
}

impl Iterator for PlainFields<'_> {
    type Item = FieldBytes;

    #[inline]
    fn next(&mut self) -> Option<FieldBytes> {
        if self.start > self.len {
            return None;
        }
        let end = self.delimiters.next().unwrap_or(self.len);
        let field = FieldBytes::Record {
            start: self.start,
            end,
        };
        self.start = end + 1;
        Some(field)
    }
}

/// The fields of a record with RFC 4180 quoting.
///
/// The bytes after a closing quote are copied unchanged, and so is a quote inside an unquoted
/// field.
pub(crate) struct QuotedFields<'a> {
    content: &'a [u8],
    delimiter: u8,
    start: usize,
    scratch: &'a mut Vec<u8>,
}

impl<'a> QuotedFields<'a> {
    /// The fields of a record's content. Values that are not one piece of it are appended to
    /// `scratch`.
    #[inline]
    pub(crate) fn new(content: &'a [u8], delimiter: u8, scratch: &'a mut Vec<u8>) -> Self {
        Self {
            content,
            delimiter,
            start: 0,
            scratch,
        }
    }

    /// The end of the unquoted bytes that begin at `from`.
    #[inline]
    fn unquoted_end(&self, from: usize) -> usize {
        memchr(self.delimiter, &self.content[from..]).map_or(self.content.len(), |at| from + at)
    }

    /// Removes the quotes of the field whose opening quote is just before `start`. Returns its
    /// value and the end of the field.
    fn quoted(&mut self, start: usize) -> (FieldBytes, usize) {
        let assembled = self.scratch.len();
        let mut piece = start;
        loop {
            let rest = &self.content[piece..];
            // The closing quote is missing only if the record was cut short.
            let quote = memchr(QUOTE, rest).map_or(self.content.len(), |at| piece + at);
            let after = (quote + 1).min(self.content.len());
            if self.content.get(after) == Some(&QUOTE) {
                // A doubled quote: keep the first, skip the second.
                self.scratch.extend_from_slice(&self.content[piece..after]);
                piece = after + 1;
                continue;
            }
            let end = self.unquoted_end(after);
            if assembled == self.scratch.len() && piece == start && end == after {
                return (FieldBytes::Record { start, end: quote }, end);
            }
            self.scratch.extend_from_slice(&self.content[piece..quote]);
            self.scratch.extend_from_slice(&self.content[after..end]);
            let content = FieldBytes::Scratch {
                start: assembled,
                end: self.scratch.len(),
            };
            return (content, end);
        }
    }
}

impl Iterator for QuotedFields<'_> {
    type Item = FieldBytes;

    #[inline]
    fn next(&mut self) -> Option<FieldBytes> {
        let start = self.start;
        if start > self.content.len() {
            return None;
        }
        let (field, end) = if self.content.get(start) == Some(&QUOTE) {
            self.quoted(start + 1)
        } else {
            let end = self.unquoted_end(start);
            (FieldBytes::Record { start, end }, end)
        };
        self.start = end + 1;
        Some(field)
    }
}
