//! Side files with the positions of records: a line of JSON for each.

use echoless_records::failure::Failure;
use echoless_records::position::RecordPosition;
use serde::Serialize;

use super::sink::Sink;

/// A file with the positions of some records of the stream.
#[derive(Debug)]
pub(super) struct RecordPositionsFile {
    sink: Sink,
    /// The lines of the current chunk.
    lines: Vec<u8>,
    /// The length of each.
    lengths: Vec<u64>,
}

#[derive(Serialize)]
struct Line<'a> {
    input: &'a str,
    record: u64,
    offset: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl RecordPositionsFile {
    pub(super) fn new(sink: Sink) -> Self {
        Self {
            sink,
            lines: Vec::new(),
            lengths: Vec::new(),
        }
    }

    /// The file as an output.
    pub(super) const fn sink(&mut self) -> &mut Sink {
        &mut self.sink
    }

    /// Truncates the file. Call it only once nothing can reject the run any more.
    pub(super) fn truncate(&mut self) -> Result<(), Failure> {
        self.sink.truncate()
    }

    /// Closes the file.
    pub(super) fn close(&mut self) -> Result<(), Failure> {
        self.sink.close()
    }

    /// Adds the position of a record of this input, and why it is listed.
    pub(super) fn add(&mut self, input: &str, position: RecordPosition, reason: Option<&str>) {
        let line = Line {
            input,
            record: position.number,
            offset: position.offset,
            bytes: position.bytes,
            reason,
        };
        let before = self.lines.len();
        let written = serde_json::to_writer(&mut self.lines, &line);
        written.unwrap_or_else(|error| {
            unreachable!("numbers and text are always JSON, and memory takes all: {error}")
        });
        self.lines.push(b'\n');
        self.lengths.push((self.lines.len() - before) as u64);
    }

    /// Writes the lines that were added.
    pub(super) fn write(&mut self) -> Result<(), Failure> {
        let lengths = self.lengths.iter().copied();
        let written = self.sink.write_assembled(&self.lines, lengths, b"");
        self.lines.clear();
        self.lengths.clear();
        written
    }
}
