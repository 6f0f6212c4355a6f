//! The fields of one record, plain or quoted, and what they hold once quotes are taken off.

use memchr::{Memchr, memchr, memchr_iter};

const QUOTE: u8 = b'"';

/// What a field holds: a part of the record, or, where that was not one piece, a part of the scratch memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Record { start: usize, end: usize },
    Scratch { start: usize, end: usize },
}

impl Content {
    /// The bytes.
    #[inline]
    pub(crate) fn bytes<'a>(&self, record: &'a [u8], scratch: &'a [u8]) -> &'a [u8] {
        match *self {
            Self::Record { start, end } => &record[start..end],
            Self::Scratch { start, end } => &scratch[start..end],
        }
    }
}

/// The fields between the delimiters of a record.
pub(crate) struct PlainFields<'a> {
    delimiters: Memchr<'a>,
    start: usize,
    len: usize,
}

impl<'a> PlainFields<'a> {
    /// The fields of a record's content; an empty one has one field, an empty one.
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
    type Item = Content;

    #[inline]
    fn next(&mut self) -> Option<Content> {
        if self.start > self.len {
            return None;
        }
        let end = self.delimiters.next().unwrap_or(self.len);
        let field = Content::Record {
            start: self.start,
            end,
        };
        self.start = end + 1;
        Some(field)
    }
}

/// The fields of a record with RFC 4180 quoting.
///
/// What follows a closing quote is taken as it stands, as is a quote inside an unquoted field.
pub(crate) struct QuotedFields<'a> {
    content: &'a [u8],
    delimiter: u8,
    start: usize,
    scratch: &'a mut Vec<u8>,
}

impl<'a> QuotedFields<'a> {
    /// The fields of a record's content; those that are not one piece of it are appended to `scratch`.
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

    /// Takes the quotes off the field whose opening quote is just before `start`; gives its content and its end.
    fn quoted(&mut self, start: usize) -> (Content, usize) {
        let assembled = self.scratch.len();
        let mut piece = start;
        loop {
            let rest = &self.content[piece..];
            // Only a record that was cut short has no closing quote.
            let quote = memchr(QUOTE, rest).map_or(self.content.len(), |at| piece + at);
            let after = (quote + 1).min(self.content.len());
            if self.content.get(after) == Some(&QUOTE) {
                self.scratch.extend_from_slice(&self.content[piece..after]);
                piece = after + 1;
                continue;
            }
            let end = self.unquoted_end(after);
            if assembled == self.scratch.len() && piece == start && end == after {
                return (Content::Record { start, end: quote }, end);
            }
            self.scratch.extend_from_slice(&self.content[piece..quote]);
            self.scratch.extend_from_slice(&self.content[after..end]);
            let content = Content::Scratch {
                start: assembled,
                end: self.scratch.len(),
            };
            return (content, end);
        }
    }
}

impl Iterator for QuotedFields<'_> {
    type Item = Content;

    #[inline]
    fn next(&mut self) -> Option<Content> {
        let start = self.start;
        if start > self.content.len() {
            return None;
        }
        let (field, end) = if self.content.get(start) == Some(&QUOTE) {
            self.quoted(start + 1)
        } else {
            let end = self.unquoted_end(start);
            (Content::Record { start, end }, end)
        };
        self.start = end + 1;
        Some(field)
    }
}

/// What each field of a record's content holds; `delimiter` and quoting as in the stream it is from.
pub(crate) fn all_fields(content: &[u8], delimiter: u8, quoted: bool) -> Vec<Vec<u8>> {
    let mut scratch = Vec::new();
    let fields: Vec<Content> = if quoted {
        QuotedFields::new(content, delimiter, &mut scratch).collect()
    } else {
        PlainFields::new(content, delimiter).collect()
    };
    fields
        .iter()
        .map(|field| field.bytes(content, &scratch).to_vec())
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::records::framing::{Framing, LastEnd};

    fn quoted(content: &str) -> Vec<String> {
        all_fields(content.as_bytes(), b',', true)
            .into_iter()
            .map(|field| String::from_utf8(field).unwrap())
            .collect()
    }

    #[test]
    fn quotes_are_taken_off() {
        assert_eq!(quoted(""), [""]);
        assert_eq!(quoted("a,,b"), ["a", "", "b"]);
        assert_eq!(quoted(r#""a","b,c","#), ["a", "b,c", ""]);
        assert_eq!(quoted(r#""a""b","""""#), [r#"a"b"#, r#"""#]);
        assert_eq!(quoted("\"a\nb\",c"), ["a\nb", "c"]);
    }

    #[test]
    fn quotes_in_odd_places_stand_for_themselves() {
        assert_eq!(quoted(r#"a"b,c"#), [r#"a"b"#, "c"]);
        assert_eq!(quoted(r#""a"b,c"#), ["ab", "c"]);
        assert_eq!(quoted(r#""a""b"c"d"#), [r#"a"bc"d"#]);
    }

    proptest! {
        #[test]
        fn plain_fields_equal_a_split(
            content in vec(prop::sample::select(b"ab,,\"\r\0\xff".to_vec()), 0..100),
        ) {
            let split: Vec<Vec<u8>> = content.split(|byte| *byte == b',').map(<[u8]>::to_vec).collect();
            prop_assert_eq!(all_fields(&content, b',', false), split);
        }

        /// Records and fields, both against the `csv` crate. It drops empty lines and takes a lone CR for a line ending; the streams here have none.
        #[test]
        fn quoted_records_equal_the_csv_crate(
            mut bytes in vec(prop::sample::select(b"ab,,\"\"\"\n\xff".to_vec()), 0..200),
        ) {
            let mut ends = Vec::new();
            let framing = Framing::Csv { delimiter: b',' };
            let mut last_end = LastEnd::new(framing);
            last_end.find(&bytes, 0);
            if last_end.is_in_quotes() {
                bytes.push(QUOTE);
            }
            framing.record_ends(&bytes, 0, &mut ends);
            let mut start = 0;
            let mut records = Vec::new();
            for end in ends {
                let content = framing.content(&bytes[start..end]);
                if !content.is_empty() {
                    records.push(all_fields(content, b',', true));
                }
                start = end;
            }
            let mut reader = csv::ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .from_reader(bytes.as_slice());
            let expected: Vec<Vec<Vec<u8>>> = reader
                .byte_records()
                .map(|record| record.unwrap().iter().map(<[u8]>::to_vec).collect())
                .collect();
            prop_assert_eq!(records, expected);
        }
    }
}
