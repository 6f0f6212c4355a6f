//! Binary records of one length.

use std::sync::Arc;

use crate::number::parse_size;
use crate::records::byte_ranges::ByteRanges;
use crate::records::chunk::Problem;
use crate::records::fields::FieldSet;
use crate::records::format::{Format, FormatBuild, FormatName, LastEnd, SelectedFormat};
use crate::records::split::FieldBytes;

pub(super) const FIXED: FormatName = FormatName {
    name: "fixed",
    value_name: Some("SIZE"),
    help: "records of SIZE bytes; --key takes byte ranges from 0 (0-15,24-31)",
    options: &[],
    build: FormatBuild::OwnFields(|value, fields| {
        let length = parse_size("--format fixed", value)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let ranges = ByteRanges::parse(fields, Some(length))?;
        let keys = ranges.keys();
        let format = Arc::new(Fixed { length, ranges });
        Ok(SelectedFormat::numbered(
            format,
            keys,
            fields.time.is_some(),
        ))
    }),
};

/// Records of `length` bytes, without terminators.
#[derive(Debug)]
struct Fixed {
    length: usize,
    ranges: ByteRanges,
}

impl Format for Fixed {
    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        record
    }

    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        let records = bytes[start..].chunks(self.length);
        ends.extend(records.scan(start, |end, record| {
            *end += record.len();
            Some(*end)
        }));
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::new(LastWhole {
            length: self.length,
            rest: 0,
        })
    }

    #[inline(always)]
    fn select(
        &self,
        fields: &FieldSet,
        content: &[u8],
        _scratch: &mut Vec<u8>,
        chosen: &mut Vec<FieldBytes>,
    ) -> Result<(), Problem> {
        self.ranges.select(fields, content, chosen)
    }

    fn terminator_of(&self, _records: &[u8]) -> Option<&'static [u8]> {
        Some(b"")
    }

    fn default_terminator(&self) -> &'static [u8] {
        b""
    }

    fn unit(&self) -> &'static str {
        "record"
    }

    fn is_text(&self) -> bool {
        false
    }

    fn field_name(&self, field: usize) -> String {
        self.ranges.name(field)
    }

    fn extent(&self, fields: usize) -> String {
        format!(": the record has {fields} bytes")
    }
}

#[derive(Debug)]
struct LastWhole {
    length: usize,
    /// The number of bytes after the last whole record.
    rest: usize,
}

impl LastEnd for LastWhole {
    fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        self.rest = bytes.len() % self.length;
        let end = bytes.len() - self.rest;
        (end > from).then_some(end)
    }

    fn problem_at_end(&self) -> Option<Problem> {
        (self.rest > 0).then_some(Problem::CutShort {
            has: self.rest,
            needs: Some(self.length as u64),
        })
    }

    fn reset(&mut self) {
        self.rest = 0;
    }
}
