//! What a record format has to define: what it does, which is a [`Format`], and what it is, which
//! are its [`FormatFacts`].
//!
//! Cutting a stream into chunks has to stay cheap and sequential, while everything else is done per
//! chunk and in parallel. So two questions are separate: [`LastEnd`] finds the last whole record of
//! a growing buffer, [`Format::record_ends`] finds all records of a chunk.

use std::borrow::Cow;
use std::fmt::Debug;

use memchr::{memchr_iter, memrchr};

use super::fault::Problem;
use super::field_set::{FieldSet, Selected};
use super::quoting::Quoting;
use super::terminators::LF;

/// A record format. A record includes its terminator; its content does not.
///
/// A chunk is read in one virtual call: [`ChunkFormat`](super::keys::ChunkFormat) is compiled once
/// per format, so [`content`](Self::content) and [`select`](Self::select) are inlined into its
/// loops.
pub trait Format: Debug + Send + Sync {
    /// What the format is.
    fn facts(&self) -> &FormatFacts;

    /// The record without its terminator, if it has one.
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8];

    /// Appends the end of every record in `bytes[start..]`, which begins with a record and ends
    /// with one, terminated or not.
    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>);

    /// A search for the last whole record of a buffer that begins with a record.
    fn last_end(&self) -> Box<dyn LastEnd>;

    /// Appends the fields of a record's content that are in `fields` to `out`. A field that is not
    /// one piece of the content is assembled in its scratch memory.
    ///
    /// # Errors
    /// [`Problem::Lacks`] if the record lacks one of them. `out` then holds the fields before
    /// it; a format whose records may have fields after a missing one appends all, with
    /// `FieldBytes::Absent` for each missing one. Any other [`Problem`] if the content cannot be
    /// read.
    fn select(&self, fields: &FieldSet, content: &[u8], out: &mut Selected) -> Result<(), Problem>;

    /// The terminator of the last of these records, `None` if that one is not terminated.
    ///
    /// A format whose records need no terminator returns `Some(b"")`.
    fn terminator_of(&self, records: &[u8]) -> Option<&'static [u8]>;

    /// What makes a last record whole that lacks its terminator, `None` if it has it. `usual` is the
    /// terminator of other records.
    fn missing_end(&self, record: &[u8], usual: &'static [u8]) -> Option<&'static [u8]> {
        self.terminator_of(record).is_none().then_some(usual)
    }

    /// An upper bound of the number of records in `bytes`, which costs less than their ends. If the
    /// format `counts_in_parts`, one more than end in `bytes`.
    fn most_records(&self, bytes: &[u8]) -> usize;

    /// The first quote in a record that opens a field which probably has more than its author meant.
    fn stray_quote(&self, _record: &[u8]) -> Option<StrayQuote> {
        None
    }

    /// The option that reads what is inside of a record as records, if the record seems to hold
    /// those of a whole input.
    fn records_inside(&self, _record: &[u8]) -> Option<String> {
        None
    }

    /// A record as one that stands alone, on a line of its own, if records are parts of something
    /// else, such as an array with commas in between.
    fn alone<'a>(&self, _record: &'a [u8]) -> Option<&'a [u8]> {
        None
    }
}

/// The end of the first record of `bytes`.
pub(crate) fn first_end(format: &dyn Format, bytes: &[u8]) -> usize {
    let mut ends = Vec::new();
    format.record_ends(bytes, 0, &mut ends);
    ends.first().copied().unwrap_or(bytes.len())
}

/// The values of all fields of a record's content.
pub(crate) fn all_fields<F: Format + ?Sized>(format: &F, content: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Selected::default();
    // Selecting all fields cannot miss one.
    let _ = format.select(&FieldSet::all(), content, &mut all);
    all.values(content).map(<[u8]>::to_vec).collect()
}

/// What a format is, for the stages of a run and their messages. Each format states all of it in
/// one place.
#[derive(Debug, Clone)]
pub struct FormatFacts {
    /// What error messages count to locate a record: lines, or records where these are not lines.
    pub(crate) unit: &'static str,
    /// Whether a record may have several lines, so that its number is not that of its first line.
    pub(crate) spans_lines: bool,
    /// Whether records are text, so that a byte order mark at the start of an input is one.
    pub(crate) is_text: bool,
    /// The terminator of a record that lacks one, where no earlier record of the stream has one.
    /// Empty if records need none.
    pub terminator: &'static [u8],
    /// The length of every record, if all have the same.
    pub(crate) record_bytes: Option<usize>,
    /// Whether where records are depends on all bytes of the input before them, so that a run
    /// cannot go on in the middle of one.
    pub depends_on_start: bool,
    /// Whether the records that end in a part of a file can be counted there.
    pub(crate) counts_in_parts: bool,
    /// Finds the end of the file header that an input begins with; `None` if files of the format
    /// have none. That of the first input is copied to the outputs, and those of others are
    /// dropped.
    pub file_header_end: Option<fn(&[u8]) -> usize>,
    pub(crate) blank_lines: BlankLineReading,
    /// Whether a line of white space alone is blank, as an empty one always is.
    pub(crate) spaces_are_blank: bool,
    pub(crate) comments: CommentSupport,
    /// How a verdict is written into a record; `None` if it has no room for one.
    pub tag_style: Option<TagStyle>,
    pub(crate) field_names: FieldNames,
    pub(crate) extent: Extent,
    /// What people are shown of a selected field.
    pub shown: fn(&[u8]) -> Cow<'_, [u8]>,
}

impl FormatFacts {
    /// Those of records of text that may have several lines. A format states what differs.
    pub(crate) const LINES: Self = Self {
        unit: "line",
        spans_lines: true,
        is_text: true,
        terminator: b"\n",
        record_bytes: None,
        depends_on_start: false,
        counts_in_parts: false,
        file_header_end: None,
        blank_lines: BlankLineReading::SkippedWithFields,
        spaces_are_blank: false,
        comments: CommentSupport::Impossible,
        tag_style: None,
        field_names: FieldNames::Numbers,
        extent: Extent::Fields,
        shown: |field| Cow::Borrowed(field),
    };

    /// The number of lines in `bytes`, in a format whose records may span several; `None` if the
    /// number of records locates a record.
    pub(crate) fn lines_in(&self, bytes: &[u8]) -> Option<u64> {
        (self.spans_lines).then(|| memchr_iter(LF, bytes).count() as u64)
    }

    /// Whether a record with this content is a blank line.
    pub(crate) fn is_blank(&self, content: &[u8]) -> bool {
        content.is_empty() || self.spaces_are_blank && content.trim_ascii().is_empty()
    }

    /// The name of a field, numbered from 0, in error messages.
    pub(crate) fn field_name(&self, field: usize) -> String {
        match &self.field_names {
            FieldNames::Numbers => format!("field {}", field + 1),
            FieldNames::Listed(names) => names[field].clone(),
        }
    }
}

/// What readers of a format do with blank lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlankLineReading {
    /// They are records like all others.
    Records,
    /// They are skipped if records are fields.
    SkippedWithFields,
    Skipped,
}

/// How error messages name fields.
#[derive(Debug, Clone)]
pub(crate) enum FieldNames {
    /// By their number, from 1 on.
    Numbers,
    /// By these names, in the order of their numbers.
    Listed(Vec<String>),
}

/// How error messages say the extent of a record that lacks a field.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Extent {
    Fields,
    Bytes,
    /// The bytes behind the length of the record.
    Payload,
    /// The number of fields says nothing.
    Unsaid,
}

impl Extent {
    /// The part of an error message about the extent: `extent` is the number in
    /// [`MissingField`](super::field_set::MissingField).
    pub(crate) fn clause(self, extent: usize) -> String {
        match self {
            Self::Fields => format!(": the record has {extent}"),
            Self::Bytes => format!(": the record has {extent} bytes"),
            Self::Payload => format!(": the record has {extent} bytes after its length"),
            Self::Unsaid => String::new(),
        }
    }
}

/// How inputs may have comment lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommentSupport {
    /// Records are not lines.
    Impossible,
    /// An option gives what they begin with.
    Typed,
    /// Or the first line of an input announces them.
    Announced,
}

/// How a verdict is written into a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TagStyle {
    /// A last field behind this delimiter.
    Field(Box<[u8]>),
    /// The last member of a JSON object.
    Member,
}

/// Finds the last whole record of a buffer and scans each byte once while the buffer grows.
pub trait LastEnd: Debug + Send {
    /// The end of the last whole record that ends in `bytes[from..]`; `bytes[..from]` was passed to
    /// an earlier call.
    fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize>;

    /// The states that the search may have in front of a part of the input that begins anywhere. It
    /// finds the ends in such a part from one of them and the byte before. Empty if a search
    /// needs more than that.
    fn states(&self) -> &'static [Quoting] {
        &[]
    }

    /// The state behind the bytes that are searched.
    fn state(&self) -> Quoting {
        Quoting::Outside
    }

    /// Goes on in a part, in front of which the search has this state.
    fn set_state(&mut self, _: Quoting) {}

    /// What is wrong with the last record if the input ends with the buffer.
    fn problem_at_end(&self) -> Option<Problem> {
        None
    }

    /// Whether no bytes that follow can make the last record valid:
    /// [`problem_at_end`](Self::problem_at_end) then returns the reason.
    fn is_malformed(&self) -> bool {
        false
    }

    /// Whether a record can be found [malformed](Self::is_malformed) anywhere in it, and not only by
    /// the bytes that it begins with.
    fn is_malformed_inside(&self) -> bool {
        false
    }

    /// Whether the last record can be set aside if the input ends with the buffer: where it ends is
    /// known.
    fn may_be_set_aside(&self) -> bool {
        !self.is_malformed()
    }

    /// What was found of the buffer, in a format whose records cannot be found in a chunk alone.
    fn pieces(&mut self) -> Option<&mut Pieces> {
        None
    }

    /// Whether the input, which ends here, has bytes and no place that could hold a record.
    fn lacks_records(&self) -> bool {
        false
    }

    /// Whether the values of the input follow one another without newlines, unlike those of the
    /// format.
    fn has_joined_values(&self) -> bool {
        false
    }

    /// Starts over with a new buffer.
    fn reset(&mut self) {}

    /// Starts over behind a record of an input, whose values follow one another if `joined`.
    fn restart(&mut self, _joined: bool) {
        self.reset();
    }
}

/// Finds the last record of a format in which this byte always ends a record.
#[derive(Debug)]
pub(super) struct LastTerminator(pub(super) u8);

impl LastEnd for LastTerminator {
    fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        memrchr(self.0, &bytes[from..]).map(|at| from + at + 1)
    }

    fn states(&self) -> &'static [Quoting] {
        &[Quoting::Outside]
    }
}

/// The pieces of a buffer that are found.
#[derive(Debug, Default)]
pub struct Pieces {
    /// Their ends, behind a byte order mark.
    pub(crate) ends: Vec<usize>,
    /// Those that are no records.
    pub(crate) frame: Vec<usize>,
    /// Where elements around records begin and end.
    pub(crate) edges: Vec<ElementEdge>,
}

impl Pieces {
    /// Appends a piece. One that is no record goes on with another one that has no edge.
    pub(crate) fn push(&mut self, end: usize, is_record: bool) {
        let last = self.ends.len().wrapping_sub(1);
        let has_edges = self.edges.last().is_some_and(|edge| edge.piece == last);
        if !is_record && self.frame.last() == Some(&last) && !has_edges {
            self.ends[last] = end;
        } else {
            self.push_alone(end, is_record);
        }
    }

    /// Appends a piece that is not joined with the one before.
    pub(crate) fn push_alone(&mut self, end: usize, is_record: bool) {
        self.ends.push(end);
        if !is_record {
            self.frame.push(self.ends.len() - 1);
        }
    }

    /// Notes an edge of the last piece.
    pub(crate) fn push_edge(&mut self, edge: Edge) {
        let piece = self.ends.len() - 1;
        self.edges.push(ElementEdge { piece, edge });
    }
}

/// The begin or the end of an element around records, whose length is that of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementEdge {
    /// The index of the piece, a record or a part of the frame, that has the begin, or behind which
    /// the end is.
    pub piece: usize,
    /// What begins or ends.
    pub edge: Edge,
}

/// What begins or ends between the pieces of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The piece consists of the tag and the length of the element.
    Opens {
        /// The offset of the length in the bytes of the chunk.
        length_at: usize,
        /// The length of the content in the input; `None` if it is indefinite.
        length: Option<u64>,
    },
    /// An array of records opens behind the piece, inside of so many objects.
    OpensList {
        /// The number of objects around the array.
        objects: usize,
    },
    /// The innermost open element ends.
    Closes,
}

/// A quote that probably opens another field than its author meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrayQuote {
    /// The offset in the record.
    pub(crate) at: usize,
    /// Whether quotes behind backslashes seem to be content there. If not, the field is so long
    /// that it seems to have swallowed records: a quote is missing, or one too many.
    pub(crate) is_by_backslash: bool,
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::formats::tests::{CSV, CSV_BACKSLASH, Example, all, delimited};

    fn ends(format: &dyn Format, bytes: &[u8]) -> Vec<usize> {
        let mut ends = Vec::new();
        format.record_ends(bytes, 0, &mut ends);
        ends
    }

    /// One byte at a time, straight from the definitions.
    fn model(name: &str, terminator: u8, bytes: &[u8]) -> Vec<usize> {
        let mut ends = Vec::new();
        let (csv, escapes) = (name.starts_with(CSV), name == CSV_BACKSLASH);
        let (mut inside, mut field_start) = (false, true);
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            let quotes = csv && byte == b'"';
            if escapes && byte == b'\\' {
                at += 2;
                field_start = false;
                continue;
            }
            if inside && quotes && bytes.get(at + 1) == Some(&b'"') {
                at += 1;
            } else if inside && quotes {
                inside = false;
            } else if !inside && quotes && field_start {
                inside = true;
            } else if !inside && byte == terminator {
                ends.push(at + 1);
            }
            field_start = !inside && (byte == b',' || byte == b'\n');
            at += 1;
        }
        if ends.last().copied().unwrap_or(0) < bytes.len() {
            ends.push(bytes.len());
        }
        ends
    }

    /// Noise that few formats accept, and quoted fields with an occasional stray quote, long enough
    /// for whole blocks.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let noise = prop::sample::select(b"ab,\"\"\"\n\n\r\0\xff\\".to_vec());
        let pieces = prop_oneof![
            40 => prop::sample::select(vec![
                ",", ",\"a,b\nc\",", "\n", "\r\n", "\"\"", "\n\"a\"\"b\"\n", "long enough", ",\"\"\"\n\"\"\",",
                ",\"\\\"\n\",", "\\\n",
            ]),
            1 => Just("\""),
            1 => Just("\"stray\""),
        ];
        prop_oneof![
            vec(noise, 0..200),
            vec(pieces, 0..120).prop_map(|pieces| pieces.concat().into_bytes()),
        ]
    }

    proptest! {
        #[test]
        fn record_ends_equal_the_model(bytes in bytes()) {
            for (name, format) in delimited() {
                let terminator = format.facts().terminator.last().copied().unwrap();
                let expected = model(name, terminator, &bytes);
                prop_assert_eq!(ends(&*format, &bytes), expected, "{}", name);
            }
        }

        #[test]
        fn the_last_end_does_not_depend_on_how_the_bytes_arrive(
            bytes in bytes(),
            sizes in vec(prop_oneof![1usize..20, 1usize..300], 1..50),
        ) {
            for Example { name, format, .. } in all() {
                let mut last_end = format.last_end();
                let (mut scanned, mut last) = (0, 0);
                for size in sizes.iter().cycle().take(bytes.len()) {
                    let until = bytes.len().min(scanned + size);
                    last = last_end.find(&bytes[..until], scanned).unwrap_or(last);
                    scanned = until;
                }
                let whole = format.last_end().find(&bytes, 0).unwrap_or(0);
                prop_assert_eq!(last, whole, "{}", name);
                // At most one record follows the last end, and it is not terminated.
                let ends = ends(&*format, &bytes);
                prop_assert!(ends.iter().filter(|end| **end > whole).count() <= 1);
                prop_assert!(whole == 0 || ends.contains(&whole));
            }
        }

        #[test]
        fn there_are_no_more_records_than_the_bound(bytes in bytes()) {
            for Example { name, format, .. } in all() {
                let records = ends(&*format, &bytes).len();
                let most = format.most_records(&bytes);
                prop_assert!(records <= most && most <= bytes.len() + 1, "{}: {}", name, most);
            }
        }
    }

    #[test]
    fn terminators_are_not_content() {
        for (name, record, content) in [
            ("lf", &b"a\r\n"[..], &b"a\r"[..]),
            ("crlf", b"a\r\n", b"a"),
            ("crlf", b"a\n", b"a"),
            ("crlf", b"a\r", b"a\r"),
            ("csv", b"a\r\n", b"a"),
            ("csv-backslash", b"a\\\\\r\n", b"a\\\\"),
            ("csv-backslash", b"a\\\n", b"a\\\n"),
            ("null", b"a\n\0", b"a\n"),
        ] {
            let (_, format) = delimited().into_iter().find(|(it, _)| *it == name).unwrap();
            assert_eq!(format.content(record), content, "{name}");
        }
        for (name, format) in delimited() {
            let terminator = format.facts().terminator;
            assert_eq!(format.content(b"a"), b"a", "{name}");
            assert_eq!(format.content(terminator), b"", "{name}");
            assert_eq!(format.terminator_of(terminator), Some(terminator), "{name}");
            assert_eq!(format.terminator_of(b"a"), None, "{name}");
        }
    }
}
