//! The header of the stream: the first record of the first input. It passes through; its repetition in later inputs does not.

use super::chunk::Chunk;
use super::records::Framing;
use super::split::all_fields;
use crate::failure::Failure;

/// A byte order mark, which some programs put before the first name.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The header, once it was seen.
#[derive(Debug)]
pub(crate) struct Header {
    framing: Framing,
    record: Option<Vec<u8>>,
}

impl Header {
    /// The header of a stream of records that are framed like this.
    pub(crate) fn new(framing: Framing) -> Self {
        Self {
            framing,
            record: None,
        }
    }

    /// Takes the header off a chunk that opens an input, and keeps the stream's first.
    ///
    /// # Errors
    /// [`Failure`] if the input has another header than the first: its fields would not be the ones that were chosen.
    pub(crate) fn take_off(
        &mut self,
        chunk: &mut Chunk,
        name: impl Fn(usize) -> String,
    ) -> Result<(), Failure> {
        let bytes = &chunk.bytes[..chunk.filled];
        chunk.start = self.framing.first_end(bytes);
        let record = &bytes[..chunk.start];
        match &self.record {
            None => {
                self.record = Some(record.to_vec());
                Ok(())
            }
            Some(first) if self.framing.content(first) == self.framing.content(record) => Ok(()),
            Some(_) => Err(Failure::Data {
                name: name(chunk.source),
                unit: self.framing.unit(),
                number: 1,
                problem: "the header differs from that of the first input".into(),
            }),
        }
    }

    /// The header as it is written.
    pub(crate) fn record(&self) -> Option<&[u8]> {
        self.record.as_deref()
    }

    /// The names of the fields; none if there was no header.
    pub(crate) fn names(&self, delimiter: u8) -> Vec<Vec<u8>> {
        let Some(record) = &self.record else {
            return Vec::new();
        };
        let content = self.framing.content(record);
        let content = content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(content);
        all_fields(content, delimiter, !self.framing.is_plain())
    }
}
