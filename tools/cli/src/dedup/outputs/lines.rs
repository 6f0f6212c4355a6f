//! Lines, or records, that are made for an output instead of being copied out of a chunk.

use echoless_records::position::RecordPosition;
use serde::Serialize;

/// Lines one behind the other.
#[derive(Debug, Default)]
pub(in crate::dedup) struct Lines {
    pub(super) bytes: Vec<u8>,
    /// The length of each: a write that fails leaves whole ones.
    pub(super) lengths: Vec<u64>,
}

impl Lines {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.lengths.clear();
    }

    /// Appends a line with this content.
    pub(super) fn push(&mut self, content: &[u8]) {
        self.bytes.extend_from_slice(content);
        self.bytes.push(b'\n');
        self.lengths.push(content.len() as u64 + 1);
    }

    /// Appends a line of JSON.
    pub(in crate::dedup) fn push_json(&mut self, content: &impl Serialize) {
        let before = self.bytes.len();
        serde_json::to_writer(&mut self.bytes, content).unwrap_or_else(|error| {
            unreachable!("numbers and text are always JSON, and memory takes all: {error}")
        });
        self.bytes.push(b'\n');
        self.lengths.push((self.bytes.len() - before) as u64);
    }

    /// Appends the position of a record of this input, and why it is listed.
    pub(super) fn push_position(
        &mut self,
        input: &str,
        position: RecordPosition,
        reason: Option<&str>,
    ) {
        #[derive(Serialize)]
        struct Line<'a> {
            input: &'a str,
            record: u64,
            offset: u64,
            bytes: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<&'a str>,
        }
        self.push_json(&Line {
            input,
            record: position.number,
            offset: position.offset,
            bytes: position.bytes,
            reason,
        });
    }
}
