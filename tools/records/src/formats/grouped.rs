//! Records of several lines: a number of them, or those up to a blank one.
//!
//! The fields of a record are its lines. A CR before a newline is part of the line ending.
//!
//! ```text
//! lines:2       {"index":1} \n {"v":"a"} \n | {"index":2} \n {"v":"b"} \n
//! paragraphs    dn: cn=a \n mail: a@x \n \n | \n dn: cn=b \n \n
//! ```
//!
//! A paragraph ends behind the first blank line, so that it need not wait for the next one. More
//! blank lines begin the next paragraph and are none of its content; at the end of an input they
//! are blank records.

use std::ops::RangeInclusive;
use std::sync::Arc;

use echoless::SpecError;
use memchr::memchr_iter;

use crate::fault::Problem;
use crate::field_set::{FieldBytes, FieldSet, Selected};
use crate::format::{BlankLineReading, Format, FormatFacts, LastEnd};
use crate::formats::{FormatBuild, FormatName, SelectedFormat};
use crate::keys::ChunkFormat;
use crate::number::parse_whole;
use crate::split::PlainFields;
use crate::terminators::{CR, LF, append_last};

pub(super) const LINES_OF: FormatName = FormatName {
    name: "lines",
    value_name: Some("N"),
    help: "N lines together, such as the pairs of lines:2; --key takes the numbers of lines",
    options: &[],
    build: FormatBuild::OwnFields(|value, fields| {
        let number = parse_whole("--format", value, LINES).map_err(|error| SpecError {
            asked: format!("lines:{value}"),
            ..error
        })?;
        let lines = number as usize;
        let facts = facts(b"\n", BlankLineReading::Records);
        let format = Arc::new(LinesOf { lines, facts });
        SelectedFormat::listed(format, fields, false)
    }),
};

pub(super) const PARAGRAPHS: FormatName = FormatName {
    name: "paragraphs",
    value_name: None,
    help: "lines up to a blank one; --key takes the numbers of lines",
    options: &[],
    build: FormatBuild::OwnFields(|_, fields| {
        let facts = facts(b"\n\n", BlankLineReading::Skipped);
        SelectedFormat::listed(Arc::new(Paragraphs { facts }), fields, false)
    }),
};

/// The possible numbers of lines of a record.
const LINES: RangeInclusive<u64> = 1..=1000;

fn facts(terminator: &'static [u8], blank_lines: BlankLineReading) -> FormatFacts {
    FormatFacts {
        terminator,
        blank_lines,
        ..FormatFacts::LINES
    }
}

/// The bytes without a line ending at their end.
fn without_line_end(bytes: &[u8]) -> &[u8] {
    match bytes {
        [line @ .., CR, LF] | [line @ .., LF] => line,
        _ => bytes,
    }
}

/// The line ending that these bytes end with.
fn line_end(bytes: &[u8]) -> Option<&'static [u8]> {
    match bytes {
        [.., CR, LF] => Some(b"\r\n"),
        [.., LF] => Some(b"\n"),
        _ => None,
    }
}

fn select_lines(
    fields: &FieldSet,
    content: &[u8],
    chosen: &mut Vec<FieldBytes>,
) -> Result<(), Problem> {
    let lines = PlainFields::new(content, LF).map(|line| match line {
        FieldBytes::Record { start, end } if content[start..end].ends_with(&[CR]) => {
            FieldBytes::Record {
                start,
                end: end - 1,
            }
        }
        line => line,
    });
    (fields.select(lines, |line| chosen.push(line))).map_err(Problem::Lacks)
}

/// Records of so many lines.
#[derive(Debug)]
struct LinesOf {
    lines: usize,
    facts: FormatFacts,
}

impl ChunkFormat for LinesOf {}

impl Format for LinesOf {
    fn facts(&self) -> &FormatFacts {
        &self.facts
    }

    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        without_line_end(record)
    }

    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        let newlines = memchr_iter(LF, &bytes[start..]);
        let last_lines = newlines.skip(self.lines - 1).step_by(self.lines);
        ends.extend(last_lines.map(|newline| start + newline + 1));
        append_last(bytes, start, ends);
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::new(LastOfLines {
            lines: self.lines,
            newlines: 0,
            has_open_line: false,
        })
    }

    fn select(&self, fields: &FieldSet, content: &[u8], out: &mut Selected) -> Result<(), Problem> {
        select_lines(fields, content, &mut out.fields)
    }

    fn terminator_of(&self, records: &[u8]) -> Option<&'static [u8]> {
        line_end(records)
    }

    fn most_records(&self, bytes: &[u8]) -> usize {
        memchr_iter(LF, bytes).count() / self.lines + 1
    }
}

/// Counts the lines of the last record.
#[derive(Debug)]
struct LastOfLines {
    lines: usize,
    /// The newlines behind the last end.
    newlines: usize,
    /// Whether bytes follow the last newline.
    has_open_line: bool,
}

impl LastEnd for LastOfLines {
    fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut last = None;
        for newline in memchr_iter(LF, &bytes[from..]) {
            self.newlines += 1;
            if self.newlines == self.lines {
                self.newlines = 0;
                last = Some(from + newline + 1);
            }
        }
        if let Some(byte) = bytes.last() {
            self.has_open_line = *byte != LF;
        }
        last
    }

    fn problem_at_end(&self) -> Option<Problem> {
        let lines = self.newlines + usize::from(self.has_open_line);
        let is_whole = lines == 0 || lines == self.lines;
        let problem = "the input ends before the last line of this record (--format lines:N)";
        (!is_whole).then_some(Problem::Malformed(problem))
    }

    fn reset(&mut self) {
        self.newlines = 0;
        self.has_open_line = false;
    }
}

/// Lines up to a blank one.
#[derive(Debug)]
struct Paragraphs {
    facts: FormatFacts,
}

/// Whether a paragraph, which may lack its end, ends with a blank line: behind a line, or as its
/// only one.
fn ends_blank(bytes: &[u8]) -> bool {
    line_end(bytes).is_some() && matches!(without_line_end(bytes), [] | [.., LF])
}

impl ChunkFormat for Paragraphs {}

impl Format for Paragraphs {
    fn facts(&self) -> &FormatFacts {
        &self.facts
    }

    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        let mut content = record;
        while let [CR, LF, rest @ ..] | [LF, rest @ ..] = content {
            content = rest;
        }
        while line_end(content).is_some() {
            content = without_line_end(content);
        }
        content
    }

    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        let found = |end| ends.push(start + end);
        LastParagraph::default().scan(&bytes[start..], 0, found);
        append_last(bytes, start, ends);
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::new(LastParagraph::default())
    }

    fn select(&self, fields: &FieldSet, content: &[u8], out: &mut Selected) -> Result<(), Problem> {
        select_lines(fields, content, &mut out.fields)
    }

    fn terminator_of(&self, records: &[u8]) -> Option<&'static [u8]> {
        let crlf = line_end(records)?.len() == 2;
        ends_blank(records).then_some(if crlf { b"\r\n\r\n" } else { b"\n\n" })
    }

    fn missing_end(&self, record: &[u8], usual: &'static [u8]) -> Option<&'static [u8]> {
        match line_end(record) {
            // Its last line is whole.
            Some(end) => (!ends_blank(record)).then_some(end),
            None => Some(usual),
        }
    }

    fn most_records(&self, bytes: &[u8]) -> usize {
        // A paragraph has a line and a blank one.
        memchr_iter(LF, bytes).count() / 2 + 1
    }
}

/// Finds the ends of paragraphs.
#[derive(Debug, Default)]
struct LastParagraph {
    /// Whether the paragraph has a line that is not blank.
    has_line: bool,
    /// The number of bytes of the line that goes on.
    open: usize,
}

impl LastParagraph {
    /// Scans `bytes[from..]` and passes every end to `found`; `bytes[..from]` was scanned by
    /// earlier calls.
    fn scan(&mut self, bytes: &[u8], from: usize, mut found: impl FnMut(usize)) {
        let mut line = from - self.open;
        for newline in memchr_iter(LF, &bytes[from..]) {
            let newline = from + newline;
            let is_blank = matches!(bytes[line..newline], [] | [CR]);
            line = newline + 1;
            if !is_blank {
                self.has_line = true;
            } else if self.has_line {
                self.has_line = false;
                found(line);
            }
        }
        self.open = bytes.len() - line;
    }
}

impl LastEnd for LastParagraph {
    fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut last = None;
        self.scan(bytes, from, |end| last = Some(end));
        last
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn paragraphs() -> Paragraphs {
        Paragraphs {
            facts: facts(b"\n\n", BlankLineReading::Skipped),
        }
    }

    proptest! {
        /// As awk reads them with an empty record separator.
        #[test]
        fn paragraphs_are_what_is_between_blank_lines(
            bytes in vec(prop::sample::select(b"ab\n\n\n".to_vec()), 0..60),
        ) {
            let format = paragraphs();
            let mut ends = Vec::new();
            format.record_ends(&bytes, 0, &mut ends);
            let starts = std::iter::once(0).chain(ends.iter().copied());
            let contents = starts.zip(&ends).map(|(start, end)| format.content(&bytes[start..*end]));
            let contents: Vec<&[u8]> = contents.filter(|content| !content.is_empty()).collect();
            let text = std::str::from_utf8(&bytes).unwrap();
            let pieces = text.split("\n\n").map(|piece| piece.trim_matches('\n'));
            let expected: Vec<&[u8]> =
                pieces.filter(|piece| !piece.is_empty()).map(str::as_bytes).collect();
            prop_assert_eq!(contents, expected);
        }
    }

    #[test]
    fn a_missing_end_is_what_makes_the_last_line_and_a_blank_one() {
        let format = paragraphs();
        for (record, terminator, missing) in [
            (&b"a"[..], None, Some(&b"\n\n"[..])),
            (b"a\n", None, Some(b"\n")),
            (b"a\r\n", None, Some(b"\r\n")),
            (b"a\n\n", Some(&b"\n\n"[..]), None),
            (b"a\r\n\r\n", Some(b"\r\n\r\n"), None),
            (b"\n", Some(b"\n\n"), None),
            (b"\r\n", Some(b"\r\n\r\n"), None),
        ] {
            assert_eq!(format.terminator_of(record), terminator, "{record:?}");
            assert_eq!(format.missing_end(record, b"\n\n"), missing, "{record:?}");
        }
    }
}
