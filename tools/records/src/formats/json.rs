//! JSON: a value in each line, or values one after the other over any number of lines.
//!
//! Fields are the values on paths. Without any, a record is compared by its bytes and not parsed.
//!
//! Some programs write JSON lines without the newlines. An input of lines whose first one has
//! several values is one of them: each of its values is a record.

use std::sync::Arc;

use echoless::SpecError;

use super::json_lists::JsonLists;
use super::terminated::Lf;
use crate::chunk::Chunk;
use crate::fault::Problem;
use crate::field_set::{FieldSet, MissingField};
use crate::format::{
    BlankLineReading, ChosenFields, CommentSupport, Extent, FieldNames, Format, FormatBuild,
    FormatFacts, FormatName, LastEnd, SelectedFormat, TagStyle,
};
use crate::json::find::Node;
use crate::json::framing::{FirstLine, ValueScan, count_values};
use crate::json::lists::{ListPath, list_inside};
use crate::json::path::{KeyPaths, Path, parse_paths};
use crate::json::scan::{Invalid, Scan};
use crate::json::value::{ComparedPart, canonical, plain};
use crate::keys::{KeyExtractor, read_records};
use crate::split::FieldBytes;
use crate::terminators::{LF, LastTerminator, append_last};
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
pub(super) struct JsonValues {
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
            unit: "line",
            spans_lines: true,
            is_text: true,
            terminator: b"\n",
            record_bytes: None,
            depends_on_start: false,
            // Whether a bracket in the middle of a file opens a record is not known.
            counts_in_parts: false,
            file_header_end: None,
            blank_lines: BlankLineReading::SkippedWithFields,
            spaces_are_blank: true,
            comments: CommentSupport::Impossible,
            tag_style: Some(TagStyle::Member),
            field_names: FieldNames::Listed(paths.iter().map(name).collect()),
            extent: Extent::Unsaid,
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
        scratch: &mut Vec<u8>,
        chosen: &mut Vec<FieldBytes>,
    ) -> Result<(), Problem> {
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
        // Lines that are compared by their bytes are lines, whatever is in them.
        if self.values.paths.is_empty() {
            return self.lines.last_end();
        }
        Box::new(LastJsonEnd::Undecided(FirstLine::default()))
    }

    #[inline(always)]
    fn select(
        &self,
        fields: &FieldSet,
        content: &[u8],
        scratch: &mut Vec<u8>,
        chosen: &mut Vec<FieldBytes>,
    ) -> Result<(), Problem> {
        self.values.select_fields(fields, content, scratch, chosen)
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

    fn of_joined_values(&self) -> Option<&dyn Format> {
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
    fn select(
        &self,
        fields: &FieldSet,
        content: &[u8],
        scratch: &mut Vec<u8>,
        chosen: &mut Vec<FieldBytes>,
    ) -> Result<(), Problem> {
        let selected = self.select_fields(fields, content, scratch, chosen);
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

impl LastEnd for ValueScan {
    fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut last = None;
        self.scan(bytes, from, |end| last = Some(end));
        last
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
