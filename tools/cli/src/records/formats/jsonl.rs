//! JSON Lines: a JSON value in each line.
//!
//! Fields are the values on paths. Without any, a line is compared by its bytes and not parsed.

use std::sync::Arc;

use super::terminated::Lf;
use crate::records::fault::Problem;
use crate::records::field_set::{FieldSet, MissingField};
use crate::records::format::{Format, FormatBuild, FormatName, LastEnd, SelectedFormat};
use crate::records::json::find::Node;
use crate::records::json::path::{Path, parse_paths};
use crate::records::json::scan::Scan;
use crate::records::json::value::{canonical, plain};
use crate::records::split::FieldBytes;
use crate::records::tag::TagStyle;

pub(super) const JSONL: FormatName = FormatName {
    name: "jsonl",
    value_name: None,
    help: "JSON lines; --key takes paths (id,user.name,items[0]), compared by value",
    options: &[],
    build: FormatBuild::OwnFields(|_, fields| {
        let key = fields.key.map(|text| parse_paths("--key", text));
        let mut paths = key.transpose()?.unwrap_or_default();
        let keys = paths.len();
        if let Some(text) = fields.time {
            paths.extend(parse_paths("--time-field", text)?);
        }
        let times = paths.len() - keys;
        let format = Arc::new(JsonLines {
            lines: Lf::with_byte(b',')?,
            root: Node::join(&paths),
            paths,
            keys,
        });
        Ok(SelectedFormat::numbered(format, keys, times))
    }),
};

/// Lines with a value each. CR is white space of JSON.
#[derive(Debug)]
struct JsonLines {
    lines: Lf,
    /// The paths of the key, and then those of the time.
    paths: Vec<Path>,
    /// The number of paths of the key.
    keys: usize,
    root: Node,
}

impl Format for JsonLines {
    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        self.lines.content(record)
    }

    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        self.lines.record_ends(bytes, start, ends);
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        self.lines.last_end()
    }

    #[inline(always)]
    fn select(
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
                    canonical(content, start, end, scratch).map_err(Problem::Json)?
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

    fn terminator_of(&self, records: &[u8]) -> Option<&'static [u8]> {
        self.lines.terminator_of(records)
    }

    fn default_terminator(&self) -> &'static [u8] {
        self.lines.default_terminator()
    }

    fn tag_style(&self) -> Option<TagStyle> {
        Some(TagStyle::Member)
    }

    fn unit(&self) -> &'static str {
        self.lines.unit()
    }

    fn field_name(&self, field: usize) -> String {
        format!("`{}`", self.paths[field].text)
    }

    fn extent(&self, _fields: usize) -> String {
        String::new()
    }
}
