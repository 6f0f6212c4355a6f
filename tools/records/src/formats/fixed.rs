//! Binary records of one length.

use echoless::SpecError;

use crate::binary::{BinaryFraming, binary_facts};
use crate::byte_ranges::ByteRanges;
use crate::fault::Problem;
use crate::format::{Extent, FormatFacts, LastEnd};
use crate::formats::{FormatBuild, FormatName};
use crate::number::parse_size;

pub(super) const FIXED: FormatName = FormatName {
    name: "fixed",
    value_name: Some("SIZE"),
    help: "records of SIZE bytes; --key takes byte ranges from 0 (0-15,24-31)",
    options: &[],
    build: FormatBuild::OwnFields(|value, fields| {
        // The message has the whole value, as it was typed.
        let length = parse_size("--format", value).map_err(|error| SpecError {
            asked: format!("fixed:{value}"),
            ..error
        })?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let ranges = ByteRanges::parse(fields, Some(length))?;
        Ok(ranges.format(Fixed { length }))
    }),
};

/// Records of `length` bytes, without terminators.
#[derive(Debug)]
struct Fixed {
    length: usize,
}

impl BinaryFraming for Fixed {
    fn facts(&self) -> FormatFacts {
        FormatFacts {
            record_bytes: Some(self.length),
            extent: Extent::Bytes,
            ..binary_facts()
        }
    }

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

    fn most_records(&self, bytes: &[u8]) -> usize {
        bytes.len().div_ceil(self.length)
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::new(LastWhole {
            length: self.length,
            rest: 0,
        })
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
