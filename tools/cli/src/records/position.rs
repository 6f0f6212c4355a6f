//! Where in an input a record is, for error messages: its line, counted only as far as they need
//! it.

use super::chunk::{Chunk, Fault, Problem};
use super::format::SharedFormat;
use crate::failure::Failure;
use crate::number::binary_bytes;

/// The position up to which the stream is done.
#[derive(Debug)]
pub(crate) struct RecordPosition {
    format: SharedFormat,
    /// Lines or records of the current input that are done.
    passed: u64,
    /// Bytes of the current input that are done.
    bytes: u64,
}

impl RecordPosition {
    /// The start of a stream.
    pub(crate) fn new(format: SharedFormat) -> Self {
        Self {
            format,
            passed: 0,
            bytes: 0,
        }
    }

    /// Counts a whole chunk as done.
    pub(crate) fn pass(&mut self, chunk: &Chunk) {
        if chunk.opens_source {
            self.passed = 0;
            self.bytes = 0;
        }
        self.bytes += chunk.filled as u64;
        self.passed += self.units_before(chunk, chunk.ends.len(), chunk.filled);
    }

    /// The error for a faulty record of the input `name`.
    pub(crate) fn failure(&self, chunk: &Chunk, fault: Fault, name: String) -> Failure {
        let (passed, bytes) = if chunk.opens_source {
            (0, 0)
        } else {
            (self.passed, self.bytes)
        };
        let start = chunk.record_start(fault.record);
        let before = self.units_before(chunk, fault.record, start);
        let problem = match fault.problem {
            Problem::Malformed(problem) => problem.into(),
            Problem::MalformedAt { at, problem } => {
                let offset = bytes + start as u64;
                format!("{problem}: byte {at} of the record at byte offset {offset}")
            }
            Problem::Json(invalid) => format!(
                "invalid JSON at column {}: {}",
                invalid.at + 1,
                invalid.problem
            ),
            Problem::TooLong(longest) => format!(
                "the record that begins here is longer than {} (--max-record)",
                binary_bytes(longest as f64)
            ),
            Problem::CutShort { has, needs } => {
                let part = match needs {
                    Some(needs) => format!("after {has} of {needs} bytes"),
                    None => "inside the length".into(),
                };
                let offset = bytes + start as u64;
                format!("the input ends {part} of the record at byte offset {offset}")
            }
            Problem::LacksTime(lacking) => format!(
                "{}, the time, is missing{} (--missing skip or empty allows that)",
                self.format.field_name(lacking.field),
                self.format.extent(lacking.fields)
            ),
            Problem::NoTime(field) => format!(
                "{} is not a time of --time-format (--missing skip or empty allows that)",
                self.format.field_name(field)
            ),
            Problem::Late => {
                "the record is later than window and lateness allow (--late judge or pass allows that)"
                    .into()
            }
            Problem::Lacks(lacking) => format!(
                "{} of the key is missing{} (--missing skip or empty allows that)",
                self.format.field_name(lacking.field),
                self.format.extent(lacking.fields)
            ),
        };
        Failure::Data {
            name,
            unit: self.format.unit(),
            number: passed + before + 1,
            problem,
        }
    }

    /// Lines or records before record number `records` of a chunk, which begins at byte `end`.
    fn units_before(&self, chunk: &Chunk, records: usize, end: usize) -> u64 {
        // A header is a record, though not one of `chunk.ends`; that of a file is none.
        let header = chunk.start > 0 && !self.format.has_file_header();
        (self.format)
            .lines_in(&chunk.bytes[..end])
            .unwrap_or(records as u64 + u64::from(header))
    }
}
