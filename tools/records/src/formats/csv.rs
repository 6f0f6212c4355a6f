//! CSV with quoted fields (RFC 4180), which may hold delimiters and newlines, and the dialect in
//! which a backslash makes the byte behind it content.

use std::sync::Arc;

use memchr::memmem::find_iter;
use memchr::{memchr, memchr_iter, memchr2};

use super::terminated::CrLf;
use crate::chunk::Chunk;
use crate::failure::Failure;
use crate::fault::Problem;
use crate::field_set::{FieldSet, Selected};
use crate::format::{
    CommentSupport, Format, FormatFacts, LastEnd, LastTerminator, StrayQuote, TagStyle,
};
use crate::formats::{FormatBuild, FormatName, FormatOption};
use crate::keys::{ChunkFormat, KeyExtractor, SharedFormat, read_records};
use crate::quoting::{BACKSLASH, CommentedQuoting, Dialect, QUOTE, Quoting, quoted_fields};
use crate::split::QuotedFields;
use crate::terminators::{CR, LF, append_last};

pub(super) const CSV: FormatOption = FormatOption {
    long: "csv",
    short: None,
    help: "Fields may be quoted (RFC 4180); quoted fields may hold delimiters, newlines and doubled quotes; implies --crlf",
    implies: &["crlf"],
    needs_delimiter: true,
    build: |delimiter| {
        let byte = delimiter.one_byte("--csv")?;
        delimiter.check(&[QUOTE])?;
        Ok(Arc::new(Csv::<false>::new(byte, None)?))
    },
};

pub(super) const CSV_BACKSLASH: FormatOption = FormatOption {
    long: "csv-backslash",
    short: None,
    help: "As --csv, and a backslash makes the byte behind it content, as in \"3.5\\\"\": a quote, a delimiter or a newline, as MySQL and Redshift write them",
    implies: &["csv", "crlf"],
    needs_delimiter: true,
    build: |delimiter| {
        let byte = delimiter.one_byte("--csv-backslash")?;
        delimiter.check(&[QUOTE, BACKSLASH])?;
        Ok(Arc::new(Csv::<true>::new(byte, None)?))
    },
};

pub(super) const NAMED_CSV: FormatName = FormatName {
    name: "csv",
    value_name: None,
    help: "as with --csv",
    options: &["csv", "crlf"],
    build: FormatBuild::Delimited {
        option: Some(&CSV),
        delimiter: None,
    },
};

/// A quoted field with more lines has probably swallowed records.
const LONG_FIELD_LINES: usize = 1000;

/// So has one with more bytes and a newline.
const LONG_FIELD_BYTES: usize = 1_000_000;

/// Lines with or without CR, except that a newline inside a quoted field ends no record. With
/// `ESCAPES`, neither does one behind a backslash.
#[derive(Debug)]
struct Csv<const ESCAPES: bool> {
    dialect: Dialect,
    /// What the format amounts to where there are no quotes.
    unquoted: CrLf,
    /// Finds the record ends if there are comment lines: quotes in them open no field.
    comments: Option<CommentedQuoting>,
}

impl<const ESCAPES: bool> Csv<ESCAPES> {
    fn new(delimiter: u8, comments: Option<CommentedQuoting>) -> Result<Self, Failure> {
        let facts = FormatFacts {
            counts_in_parts: true,
            comments: CommentSupport::Announced,
            tag_style: Some(TagStyle::Field([delimiter].into())),
            ..FormatFacts::LINES
        };
        Ok(Self {
            dialect: Dialect {
                delimiter,
                backslash: ESCAPES,
            },
            unquoted: CrLf::with_byte(delimiter)?.with_facts(facts),
            comments,
        })
    }
}

/// Whether the newline at the end of a record is content, behind a backslash that is none itself.
fn ends_escaped(record: &[u8]) -> bool {
    let before = record.strip_suffix(&[LF]).unwrap_or_default();
    let backslashes = before.iter().rev().take_while(|byte| **byte == BACKSLASH);
    backslashes.count() % 2 == 1
}

impl<const ESCAPES: bool> Format for Csv<ESCAPES> {
    fn facts(&self) -> &FormatFacts {
        self.unquoted.facts()
    }

    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        if ESCAPES && ends_escaped(record) {
            return record;
        }
        self.unquoted.content(record)
    }

    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        let found = |end| ends.push(start + end);
        let bytes_from_start = &bytes[start..];
        match &self.comments {
            None => Quoting::default().scan(bytes_from_start, 0, self.dialect, found),
            Some(comments) => {
                (comments.clone()).scan(bytes_from_start, 0, self.dialect, found);
            }
        }
        append_last(bytes, start, ends);
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::new(LastQuotedEnd::<ESCAPES> {
            dialect: self.dialect,
            quoting: Quoting::default(),
            comments: self.comments.clone(),
        })
    }

    #[inline(always)]
    fn select(&self, fields: &FieldSet, content: &[u8], out: &mut Selected) -> Result<(), Problem> {
        let delimiter = self.dialect.delimiter;
        let Selected {
            fields: chosen,
            scratch,
        } = out;
        let all = QuotedFields::<ESCAPES>::new(content, delimiter, scratch);
        let selected = fields.select(all, |field| chosen.push(field));
        selected.map_err(Problem::Lacks)
    }

    fn terminator_of(&self, records: &[u8]) -> Option<&'static [u8]> {
        if ESCAPES && ends_escaped(records) {
            return None;
        }
        self.unquoted.terminator_of(records)
    }

    fn most_records(&self, bytes: &[u8]) -> usize {
        self.unquoted.most_records(bytes)
    }

    fn stray_quote(&self, record: &[u8]) -> Option<StrayQuote> {
        let fields = quoted_fields(record, self.dialect);
        fields.into_iter().find_map(|field| {
            let at = field.start - 1;
            let field = &record[field];
            let newlines = memchr_iter(LF, field).count();
            let is_by_backslash = !ESCAPES && has_escaped_end(field, self.dialect.delimiter);
            let is_long = newlines > LONG_FIELD_LINES || field.len() > LONG_FIELD_BYTES;
            (newlines > 0 && (is_by_backslash || is_long)).then_some(StrayQuote {
                at,
                is_by_backslash,
            })
        })
    }
}

impl<const ESCAPES: bool> ChunkFormat for Csv<ESCAPES> {
    fn with_comments(&self, prefix: &[u8]) -> Option<SharedFormat> {
        // The delimiter was accepted before.
        let delimiter = self.dialect.delimiter;
        let commented = Self::new(delimiter, Some(CommentedQuoting::new(prefix))).ok()?;
        Some(Arc::new(commented))
    }

    fn read(&self, extractor: &mut KeyExtractor, chunk: &mut Chunk) {
        // Most chunks have no quote, and searching for one is cheaper than scanning for pairs.
        if find_quoting::<ESCAPES>(chunk.bytes.of_records()).is_none() {
            read_records(&self.unquoted, extractor, chunk);
        } else {
            read_records(self, extractor, chunk);
        }
    }
}

/// The first byte that is more than content in the middle of a line.
fn find_quoting<const ESCAPES: bool>(bytes: &[u8]) -> Option<usize> {
    if ESCAPES {
        memchr2(QUOTE, BACKSLASH, bytes)
    } else {
        memchr(QUOTE, bytes)
    }
}

/// Whether a quoted field of several lines seems to have an end in its middle where a backslash
/// makes quotes content: the value ended with one.
fn has_escaped_end(field: &[u8], delimiter: u8) -> bool {
    find_iter(field, b"\\\"\"").any(|at| match field.get(at + 3) {
        Some(&CR) => field.get(at + 4) == Some(&LF),
        Some(byte) => *byte == LF || *byte == delimiter,
        None => false,
    })
}

#[derive(Debug)]
struct LastQuotedEnd<const ESCAPES: bool> {
    dialect: Dialect,
    quoting: Quoting,
    /// In the place of `quoting`, if there are comment lines.
    comments: Option<CommentedQuoting>,
}

impl<const ESCAPES: bool> LastEnd for LastQuotedEnd<ESCAPES> {
    fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        if self.comments.is_none()
            && matches!(self.quoting, Quoting::Outside | Quoting::Inside)
            && find_quoting::<ESCAPES>(&bytes[from..]).is_none()
        {
            return match self.quoting {
                Quoting::Outside => LastTerminator(LF).find(bytes, from),
                _ => None,
            };
        }
        let mut last = None;
        let found = |end| last = Some(end);
        match &mut self.comments {
            None => self.quoting.scan(bytes, from, self.dialect, found),
            Some(comments) => comments.scan(bytes, from, self.dialect, found),
        }
        last
    }

    /// The state of a search among comment lines also says how much of their prefix was there.
    fn states(&self) -> &'static [Quoting] {
        match self.comments {
            None if ESCAPES => Quoting::ALL,
            None => Quoting::WITHOUT_BACKSLASH,
            Some(_) => &[],
        }
    }

    fn state(&self) -> Quoting {
        self.quoting
    }

    fn set_state(&mut self, state: Quoting) {
        self.quoting = state;
    }

    fn problem_at_end(&self) -> Option<Problem> {
        let quoting = self
            .comments
            .as_ref()
            .map_or(self.quoting, CommentedQuoting::quoting);
        Some(Problem::Malformed(match quoting {
            Quoting::Outside | Quoting::AtQuote | Quoting::Escaped => return None,
            Quoting::Inside | Quoting::Escape { inside: true } => {
                "a quoted field that begins in this record does not end"
            }
            Quoting::Escape { inside: false } => "the input ends behind a backslash",
        }))
    }

    fn reset(&mut self) {
        self.quoting = Quoting::default();
        if let Some(comments) = &mut self.comments {
            comments.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::delimiter::Delimiter;
    use crate::format::all_fields;

    fn format() -> SharedFormat {
        (CSV.build)(&Delimiter::default()).unwrap()
    }

    #[test]
    fn an_open_quote_is_a_problem_until_it_is_closed() {
        let mut last_end = format().last_end();
        assert_eq!(last_end.find(b"a,b\n\"c\nd", 0), Some(4));
        assert!(last_end.problem_at_end().is_some());
        assert_eq!(last_end.find(b"a,b\n\"c\nd\"\n", 8), Some(10));
        assert!(last_end.problem_at_end().is_none());
    }

    #[test]
    fn quotes_in_comment_lines_open_no_field() {
        let bytes = b"a,b\n#\"x\n#,\"y\n\"c\n#d\",e\n\"#\"\n#\"z";
        let expected = [4, 8, 13, 22, 26, 29];
        let format = format().with_comments(b"#").unwrap();
        let mut ends = Vec::new();
        format.record_ends(bytes, 0, &mut ends);
        assert_eq!(ends, expected);
        for size in 1..bytes.len() {
            let mut last_end = format.last_end();
            let mut found = None;
            for from in (0..bytes.len()).step_by(size) {
                let until = bytes.len().min(from + size);
                found = last_end.find(&bytes[..until], from).or(found);
            }
            assert_eq!(found, Some(26), "{size}");
            assert_eq!(last_end.problem_at_end(), None);
        }
        // A prefix of several bytes may arrive in pieces, and its first ones alone are a record.
        let format = format.with_comments(b"//").unwrap();
        let mut last_end = format.last_end();
        assert_eq!(last_end.find(b"/", 0), None);
        assert_eq!(last_end.find(b"//\"\n/", 1), Some(4));
        assert_eq!(last_end.find(b"/,\"\n\"\n", 1), Some(6));
        assert_eq!(last_end.find(b"/", 0), None);
        assert_eq!(last_end.find(b"/,\"\n", 1), None);
        assert!(last_end.problem_at_end().is_some());
    }

    #[test]
    fn backslashes_make_the_byte_behind_them_content() {
        let format = (CSV_BACKSLASH.build)(&Delimiter::default()).unwrap();
        for (content, expected) in [
            ("", &[""][..]),
            (r#"1,"size 3.5\"",x"#, &["1", "size 3.5\"", "x"]),
            (r#""a\"",b\""#, &["a\"", "b\""]),
            (r#""a""b\"""#, &["a\"b\""]),
            (r#"a\,b,\",\""#, &["a,b", "\"", "\""]),
            ("a\\\nb,\"c\\\r\nd\"", &["a\nb", "c\r\nd"]),
            // Those in front of other bytes stay, so that no two values become one.
            (r#"\N,\\N,"\\","\n""#, &[r"\N", r"\\N", r"\\", r"\n"]),
            (r#""a"b\,c",d"#, &["ab,c\"", "d"]),
            ("a\\", &["a\\"]),
        ] {
            let fields = all_fields(&*format, content.as_bytes());
            let expected: Vec<&[u8]> = expected.iter().map(|field| field.as_bytes()).collect();
            assert_eq!(fields, expected, "{content}");
        }
        // Where values have no other byte behind a backslash, Python and the crate csv agree.
        let text = "1,\"size 3.5\\\"\"\n2,\"b\\\\\"\n3,\"c\\\"\n\"\n";
        let mut ends = Vec::new();
        format.record_ends(text.as_bytes(), 0, &mut ends);
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .escape(Some(b'\\'))
            .from_reader(text.as_bytes());
        assert_eq!(ends.len(), reader.byte_records().count());
        assert_eq!(ends[0], text.find("2,").unwrap());
        for (text, is_open) in [("\"a\\\"", true), ("a\\", true), ("a\\\n", false)] {
            let mut last_end = format.last_end();
            assert_eq!(last_end.find(text.as_bytes(), 0), None);
            assert_eq!(last_end.problem_at_end().is_some(), is_open, "{text}");
        }
    }

    proptest! {
        /// Compares records and fields with the `csv` crate. It drops empty lines and treats a lone
        /// CR as a line ending; the streams here have none.
        #[test]
        fn records_and_fields_equal_those_of_the_csv_crate(
            mut bytes in vec(prop::sample::select(b"ab,,\"\"\"\n\xff".to_vec()), 0..200),
        ) {
            let format = format();
            let mut ends = Vec::new();
            let mut last_end = format.last_end();
            last_end.find(&bytes, 0);
            if last_end.problem_at_end().is_some() {
                bytes.push(QUOTE);
            }
            format.record_ends(&bytes, 0, &mut ends);
            let mut start = 0;
            let mut records = Vec::new();
            for end in ends {
                let content = format.content(&bytes[start..end]);
                if !content.is_empty() {
                    records.push(all_fields(&*format, content));
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
