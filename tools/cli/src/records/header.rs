//! The header of the stream: the first record of the first input. It passes through; its repetition in later inputs does not.

use super::bom;
use super::chunk::Chunk;
use super::framing::Framing;
use super::split::all_fields;
use crate::failure::Failure;

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
        chunk.start = chunk.mark + self.framing.first_end(&bytes[chunk.mark..]);
        let record = &bytes[..chunk.start];
        match &self.record {
            None => {
                self.record = Some(record.to_vec());
                Ok(())
            }
            Some(first) if self.content(first) == self.content(record) => Ok(()),
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
        all_fields(self.content(record), delimiter, !self.framing.is_plain())
    }

    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        bom::strip(self.framing.content(record))
    }
}
