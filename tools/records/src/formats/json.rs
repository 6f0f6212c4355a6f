//! JSON: a value in each line, or values one after the other over any number of lines.
//!
//! Fields are the values on paths. Without any, a record is compared by its bytes and not parsed.
//!
//! Some programs write JSON lines without the newlines. An input of lines whose first one has
//! several values is one of them: each of its values is a record.

use std::sync::Arc;

use echoless::SpecError;
use memchr::memchr_iter;

use super::pieces::{LastPiece, PieceScan};
use super::terminated::Lf;
use super::{ChosenFields, FormatBuild, FormatName, SelectedFormat};
use crate::chunk::Chunk;
use crate::fault::Problem;
use crate::field_set::{FieldBytes, FieldSet, MissingField, Selected};
use crate::format::{
    BlankLineReading, CommentSupport, Edge, Extent, FieldNames, Format, FormatFacts, LastEnd,
    LastTerminator, Pieces, TagStyle,
};
use crate::json::find::Node;
use crate::json::framing::{FirstLine, ValueScan, count_values};
use crate::json::lists::{ListPath, ListPiece, ListScan, list_inside, without_comma};
use crate::json::path::{KeyPaths, Path, parse_paths};
use crate::json::scan::{Invalid, Scan};
use crate::json::value::{ComparedPart, canonical, plain, shown};
use crate::keys::{ChunkFormat, KeyExtractor, read_records};
use crate::quoting::Quoting;
use crate::terminators::{LF, append_last};
use crate::text_form::TextForm;

pub(super) const JSONL: FormatName = FormatName {
    name: "jsonl",
    value_name: None,
    help: "JSON lines; --key takes paths (id,user.name,items[0]), compared by value, or paths to leave out (!at)",
    options: &[],
    build: FormatBuild::OwnFields(|_, fields| {
        let (values, keys, times) = JsonValues::new(fields)?;
        let lines = Lf::with_byte(b',')?;
        let facts = FormatFacts {
            spans_lines: false,
            counts_in_parts: true,
            comments: CommentSupport::Typed,
            blank_lines: BlankLineReading::SkippedWithFields,
            ..values.facts.clone()
        };
        let format = Arc::new(JsonLines {
            lines: lines.with_facts(facts),
            values,
        });
        Ok(SelectedFormat::numbered(format, keys, times))
    }),
};

pub(super) const JSON: FormatName = FormatName {
    name: "json",
    value_name: None,
    help: "JSON values one after the other, with newlines in and between them or none; --key as with jsonl",
    options: &[],
    build: FormatBuild::OwnFields(|_, fields| {
        let (values, keys, times) = JsonValues::new(fields)?;
        Ok(SelectedFormat::numbered(Arc::new(values), keys, times))
    }),
};

pub(super) const JSON_IN: FormatName = FormatName {
    name: "json",
    value_name: Some("container=PATH"),
    help: "records in the arrays on a path of names, such as json:container=Records or data.items, or, with ., in an array that is the whole input; --key takes paths from a record on",
    options: &[],
    build: FormatBuild::OwnFields(|value, fields| {
        let Some(path) = value.strip_prefix("container=") else {
            let allowed = "json or json:container=PATH";
            return Err(SpecError::new("--format", format!("json:{value}"), allowed).into());
        };
        let path = ListPath::parse(path)?;
        let (values, keys, times) = JsonValues::new(fields)?;
        let format = Arc::new(JsonLists::new(path, values));
        Ok(SelectedFormat::numbered(format, keys, times))
    }),
};

/// Lines with a value each. CR is white space of JSON.
#[derive(Debug)]
struct JsonLines {
    lines: Lf,
    /// The values, and the format of inputs where they do not end at newlines.
    values: JsonValues,
}

/// Values that follow one another.
#[derive(Debug)]
struct JsonValues {
    /// The paths of the key, and then those of the time.
    paths: Vec<Path>,
    /// The number of paths of the key.
    keys: usize,
    /// What is left out of the value on each path of the key.
    excluded: Vec<Option<Node>>,
    /// The form in which strings of the key are compared.
    text: TextForm,
    root: Node,
    facts: FormatFacts,
}

impl JsonValues {
    /// Values with these fields, and the numbers of the fields of the key and of the time.
    fn new(fields: &ChosenFields<'_>) -> Result<(Self, usize, usize), SpecError> {
        let key = fields.key.map(KeyPaths::parse).transpose()?;
        let (mut paths, excluded) = match &key {
            Some(key) => {
                let excluded = |whole: &Path| {
                    let below = key.excluded.iter().filter_map(|path| path.below(whole));
                    let paths: Vec<Path> = below.collect();
                    (!paths.is_empty()).then(|| Node::join(&paths))
                };
                let of_paths = key.compared.iter().map(excluded).collect();
                (key.compared.clone(), of_paths)
            }
            None => (Vec::new(), Vec::new()),
        };
        let keys = paths.len();
        if let Some(text) = fields.time {
            paths.extend(parse_paths("--time-field", text)?);
        }
        let times = paths.len() - keys;
        let name = |path: &Path| format!("`{}`", path.text);
        let facts = FormatFacts {
            // Whether a bracket in the middle of a file opens a record is not known.
            counts_in_parts: false,
            spaces_are_blank: true,
            // Between values, they are no values.
            blank_lines: BlankLineReading::Skipped,
            tag_style: Some(TagStyle::Member),
            field_names: FieldNames::Listed(paths.iter().map(name).collect()),
            extent: Extent::Unsaid,
            shown,
            ..FormatFacts::LINES
        };
        let values = Self {
            facts,
            root: Node::join(&paths),
            paths,
            keys,
            excluded,
            text: fields.text,
        };
        Ok((values, keys, times))
    }

    /// Appends the fields of a value that are in `fields`.
    #[inline(always)]
    fn select_fields(
        &self,
        fields: &FieldSet,
        content: &[u8],
        out: &mut Selected,
    ) -> Result<(), Problem> {
        let Selected {
            fields: chosen,
            scratch,
        } = out;
        chosen.resize(self.paths.len(), FieldBytes::Absent);
        let scan = Scan::new(content);
        scan.find(&self.root, chosen).map_err(Problem::Json)?;
        let mut lacking = None;
        for (field, found) in chosen.iter_mut().enumerate() {
            *found = match *found {
                FieldBytes::Record { start, end } if field < self.keys => {
                    let part = ComparedPart {
                        text: self.text,
                        excluded: self.excluded[field].as_ref(),
                    };
                    canonical(content, start, end, part, scratch).map_err(Problem::Json)?
                }
                // A time is read as text, so that its digits and its spelling stay.
                FieldBytes::Record { start, end } => plain(content, start, end, scratch),
                FieldBytes::Scratch { .. } | FieldBytes::Absent => {
                    if fields.contains(field) && lacking.is_none() {
                        let fields = self.paths.len();
                        lacking = Some(MissingField { field, fields });
                    }
                    FieldBytes::Absent
                }
            };
        }
        fields.retain(self.paths.len(), chosen);
        lacking.map_or(Ok(()), |lacking| Err(Problem::Lacks(lacking)))
    }
}

impl Format for JsonLines {
    fn facts(&self) -> &FormatFacts {
        self.lines.facts()
    }

    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        self.lines.content(record)
    }

    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        self.lines.record_ends(bytes, start, ends);
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        // Lines that are compared by their bytes are lines, with any content.
        if self.values.paths.is_empty() {
            return self.lines.last_end();
        }
        Box::new(LastJsonEnd::Undecided(FirstLine::default()))
    }

    #[inline(always)]
    fn select(&self, fields: &FieldSet, content: &[u8], out: &mut Selected) -> Result<(), Problem> {
        self.values.select_fields(fields, content, out)
    }

    fn terminator_of(&self, records: &[u8]) -> Option<&'static [u8]> {
        self.lines.terminator_of(records)
    }

    fn most_records(&self, bytes: &[u8]) -> usize {
        count_values(bytes) + 1
    }

    fn records_inside(&self, record: &[u8]) -> Option<String> {
        self.values.records_inside(record)
    }
}

impl ChunkFormat for JsonLines {
    fn of_joined_values(&self) -> Option<&dyn ChunkFormat> {
        Some(&self.values)
    }

    fn read(&self, extractor: &mut KeyExtractor, chunk: &mut Chunk) {
        if chunk.input.has_joined_values {
            read_records(&self.values, extractor, chunk);
        } else {
            read_records(self, extractor, chunk);
        }
    }
}

impl Format for JsonValues {
    fn facts(&self) -> &FormatFacts {
        &self.facts
    }

    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        record.trim_ascii_end()
    }

    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        let found = |end| ends.push(start + end);
        ValueScan::default().scan(&bytes[start..], 0, found);
        append_last(bytes, start, ends);
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::new(ValueScan::default())
    }

    #[inline(always)]
    fn select(&self, fields: &FieldSet, content: &[u8], out: &mut Selected) -> Result<(), Problem> {
        let selected = self.select_fields(fields, content, out);
        selected.map_err(|problem| match problem {
            // A column says little about a value of many lines, or about one behind many others.
            Problem::Json(Invalid { at, problem }) => Problem::MalformedAt { at, problem },
            other => other,
        })
    }

    /// Values need no terminator, but for a number or a word at the end of an input.
    fn terminator_of(&self, records: &[u8]) -> Option<&'static [u8]> {
        match records {
            [.., LF] => Some(b"\n"),
            [.., b'}' | b']' | b'"' | b' ' | b'\t' | b'\r'] => Some(b""),
            _ => None,
        }
    }

    fn records_inside(&self, record: &[u8]) -> Option<String> {
        let path = list_inside(record)?;
        Some(format!("--format json:container={path}"))
    }

    fn most_records(&self, bytes: &[u8]) -> usize {
        let mut most = 1;
        ValueScan::default().scan(bytes, 0, |_| most += 1);
        most
    }
}

impl ChunkFormat for JsonValues {}

impl LastEnd for ValueScan {
    fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut last = None;
        self.scan(bytes, from, |end| last = Some(end));
        last
    }

    fn problem_at_end(&self) -> Option<Problem> {
        self.is_inside()
            .then_some(Problem::Malformed("the input ends inside of a value"))
    }

    fn reset(&mut self) {
        *self = Self::default();
    }
}

/// Finds the last record of an input of lines, or of one without newlines between its values.
#[derive(Debug)]
enum LastJsonEnd {
    /// All bytes so far are of the first line.
    Undecided(FirstLine),
    Lines,
    Joined(ValueScan),
}

impl LastEnd for LastJsonEnd {
    fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        if let Self::Undecided(first) = self {
            match first.has_several_values(bytes, from) {
                None => return None,
                Some(false) => *self = Self::Lines,
                Some(true) => {
                    let mut values = ValueScan::default();
                    let end = values.find(bytes, 0);
                    *self = Self::Joined(values);
                    return end;
                }
            }
        }
        match self {
            Self::Joined(values) => values.find(bytes, from),
            Self::Undecided(_) | Self::Lines => LastTerminator(LF).find(bytes, from),
        }
    }

    fn states(&self) -> &'static [Quoting] {
        match self {
            Self::Lines => LastTerminator(LF).states(),
            Self::Undecided(_) | Self::Joined(_) => &[],
        }
    }

    fn has_joined_values(&self) -> bool {
        matches!(self, Self::Joined(_))
    }

    fn reset(&mut self) {
        *self = Self::Undecided(FirstLine::default());
    }

    fn restart(&mut self, joined: bool) {
        *self = if joined {
            Self::Joined(ValueScan::default())
        } else {
            Self::Lines
        };
    }
}

/// The elements of the arrays on a path, or of an array that is all of the input. The comma in
/// front of a record is at its start: an output drops that of the first record which it gets of an
/// array.
#[derive(Debug)]
struct JsonLists {
    values: JsonValues,
    facts: FormatFacts,
    /// At the start of an input.
    scan: ListScan,
}

impl JsonLists {
    /// The elements, with the fields of these values.
    fn new(path: ListPath, values: JsonValues) -> Self {
        let facts = FormatFacts {
            terminator: b"",
            depends_on_start: true,
            // A tag is written without what is around the records.
            tag_style: None,
            ..values.facts().clone()
        };
        Self {
            values,
            facts,
            scan: ListScan::new(path),
        }
    }
}

impl Format for JsonLists {
    fn facts(&self) -> &FormatFacts {
        &self.facts
    }

    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        without_comma(record)
    }

    /// The ends of all pieces of an input from its start on. Chunks have theirs from
    /// [`LastPiece`].
    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        let pieces = self.scan.clone().scan(&bytes[start..], 0, |_, end| {
            ends.push(start + end);
        });
        // What is wrong behind the last one is said where chunks are cut.
        let _ = pieces;
        append_last(bytes, start, ends);
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::new(LastPiece::new(self.scan.clone()))
    }

    #[inline(always)]
    fn select(&self, fields: &FieldSet, content: &[u8], out: &mut Selected) -> Result<(), Problem> {
        self.values.select(fields, content, out)
    }

    fn terminator_of(&self, _records: &[u8]) -> Option<&'static [u8]> {
        Some(b"")
    }

    fn most_records(&self, bytes: &[u8]) -> usize {
        // Each record but the first of an array has a comma, each array a piece before and one
        // behind it.
        let commas = memchr_iter(b',', bytes).count();
        commas + 3 * memchr_iter(b'[', bytes).count() + 2
    }

    fn alone<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        Some(without_comma(record))
    }
}

impl ChunkFormat for JsonLists {}

impl PieceScan for ListScan {
    fn find_pieces(
        &mut self,
        bytes: &[u8],
        start: usize,
        from: usize,
        found: &mut Pieces,
    ) -> (usize, Option<Problem>) {
        let mut last = start;
        let scanned = self.scan(bytes, from, |piece, end| {
            last = end;
            found.push(end, piece == ListPiece::Record);
            match piece {
                ListPiece::Opens { objects } => found.push_edge(Edge::OpensList { objects }),
                ListPiece::Closes => found.push_edge(Edge::Closes),
                ListPiece::Record | ListPiece::Frame => {}
            }
        });
        // What is in front of the damage does not depend on how the bytes arrive.
        if let Err(Invalid { at, .. }) = scanned
            && self.is_in_frame()
            && at > last
        {
            last = at;
            found.push(at, false);
        }
        let invalid = scanned
            .err()
            .map(|Invalid { at, problem }| Problem::MalformedAt {
                at: at - last,
                problem,
            });
        (last, invalid)
    }

    fn problem_at_end(&self, _rest: usize) -> Option<Problem> {
        (!self.is_outside()).then_some(Problem::Malformed(
            "the input ends inside of the value that this is a part of",
        ))
    }

    fn is_outside(&self) -> bool {
        self.is_outside()
    }

    fn lacks_records(&self) -> bool {
        self.has_begun() && !self.has_list()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The ends of records, the end of all pieces, and where damage follows, of a text that arrives
    /// in parts of this size.
    fn found(path: &str, bytes: &[u8], size: usize) -> (Vec<usize>, usize, Option<usize>) {
        let scan = ListScan::new(ListPath::parse(path).unwrap());
        let mut last = LastPiece::new(scan);
        let (mut records, mut end) = (Vec::new(), 0);
        for from in (0..bytes.len()).step_by(size) {
            let until = bytes.len().min(from + size);
            end = last.find(&bytes[..until], from).unwrap_or(end);
            let pieces = last.pieces().unwrap();
            let is_record = |piece: &usize| !pieces.frame.contains(piece);
            records.extend(
                (0..pieces.ends.len())
                    .filter(is_record)
                    .map(|piece| pieces.ends[piece]),
            );
            *pieces = Pieces::default();
        }
        let damage = match last.problem_at_end() {
            Some(Problem::MalformedAt { at, .. }) => Some(end + at),
            _ => None,
        };
        (records, end, damage)
    }

    proptest! {
        #[test]
        fn what_is_in_front_of_damage_does_not_depend_on_how_the_bytes_arrive(
            bytes in vec(prop::sample::select(b"{}[]\"\\ \n1a,:".to_vec()), 0..60),
            start in prop::sample::select(vec!["", "[1", "{\"a\":[1]", "{\"a\":1}"]),
            size in 1_usize..9,
        ) {
            let bytes = [start.as_bytes(), &bytes].concat();
            for path in [".", "a"] {
                let (records, end, damage) = found(path, &bytes, 100);
                let mut pieces = found(path, &bytes, size);
                if damage.is_none() {
                    // A record may begin in the rest.
                    pieces.1 = end;
                }
                prop_assert_eq!((records, end, damage), pieces);
            }
        }
    }
}
