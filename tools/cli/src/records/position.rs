//! Where in an input a record is: its line, counted only as far as an error needs it.

use memchr::memchr_iter;

use super::chunk::{Chunk, Fault, Problem};
use super::framing::Framing;
use crate::failure::Failure;
use crate::number::binary_bytes;

/// How far the stream was passed on, for messages about records.
#[derive(Debug)]
pub(crate) struct RecordPosition {
    framing: Framing,
    /// Terminators passed in this input.
    passed: u64,
}

impl RecordPosition {
    /// At the beginning of a stream of records that are framed like this.
    pub(crate) fn new(framing: Framing) -> Self {
        Self { framing, passed: 0 }
    }

    /// Counts a chunk that is done with.
    pub(crate) fn pass(&mut self, chunk: &Chunk) {
        if chunk.opens_source {
            self.passed = 0;
        }
        self.passed += if self.framing.is_plain() {
            chunk.ends.len() as u64 + u64::from(chunk.start > 0)
        } else {
            self.terminators(&chunk.bytes[..chunk.filled])
        };
    }

    /// Says where in the input `name` the fault is.
    pub(crate) fn failure(&self, chunk: &Chunk, fault: Fault, name: String) -> Failure {
        let passed = if chunk.opens_source { 0 } else { self.passed };
        let before = self.terminators(&chunk.bytes[..chunk.record_start(fault.record)]);
        let problem = match fault.problem {
            Problem::OpenQuote => "a quoted field that begins in this record does not end".into(),
            Problem::TooLong(longest) => format!(
                "the record that begins here is longer than {} (--max-record)",
                binary_bytes(longest as f64)
            ),
            Problem::Lacks(lacking) => format!(
                "field {} of the key is missing: the record has {} (--missing skip or empty allows that)",
                lacking.field + 1,
                lacking.fields
            ),
        };
        Failure::Data {
            name,
            unit: self.framing.unit(),
            number: passed + before + 1,
            problem,
        }
    }

    fn terminators(&self, bytes: &[u8]) -> u64 {
        memchr_iter(self.framing.terminator(), bytes).count() as u64
    }
}
