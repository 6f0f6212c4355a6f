//! The header of the stream: the first record of the first input. It is copied to the outputs;
//! equal headers of later inputs are dropped. The file header of a format, which has no names, is
//! copied in the same way.

use super::bom;
use super::chunk::Chunk;
use super::format::SharedFormat;
use crate::failure::Failure;

/// The header of the stream, once it is read.
#[derive(Debug)]
pub(crate) struct Header {
    format: SharedFormat,
    record: Option<Vec<u8>>,
    /// The input that it is from.
    source: usize,
}

impl Header {
    pub(crate) fn new(format: SharedFormat) -> Self {
        Self {
            format,
            record: None,
            source: 0,
        }
    }

    /// Removes the header from a chunk that opens an input, and keeps the stream's first.
    ///
    /// # Errors
    /// [`Failure`] if the header differs from the first one: the key would mean other fields.
    pub(crate) fn remove_from(
        &mut self,
        chunk: &mut Chunk,
        name: impl Fn(usize) -> String,
    ) -> Result<(), Failure> {
        let bytes = &chunk.bytes[..chunk.filled];
        let file_header = self.format.file_header_end(bytes);
        chunk.has_file_header = file_header.is_some();
        chunk.start =
            file_header.unwrap_or_else(|| chunk.mark + self.format.first_end(&bytes[chunk.mark..]));
        let record = &bytes[..chunk.start];
        match &self.record {
            None => {
                self.record = Some(record.to_vec());
                self.source = chunk.source;
                Ok(())
            }
            // It is about the file, not about the fields, so each file has another one.
            Some(_) if chunk.has_file_header => Ok(()),
            Some(first) if self.content(first) == self.content(record) => Ok(()),
            Some(first) => {
                let (first, own) = (self.content(first), self.content(record));
                let end =
                    |header: &[u8]| header.strip_suffix(b"\r").map_or(header.len(), <[u8]>::len);
                let by_cr = first[..end(first)] == own[..end(own)];
                let hint = if by_cr {
                    " by a CR at its end (--crlf and --csv allow that)"
                } else {
                    ""
                };
                Err(Failure::Data {
                    name: name(chunk.source),
                    unit: self.format.unit(),
                    number: 1,
                    problem: format!(
                        "the header differs from that of {}{hint}",
                        name(self.source)
                    ),
                    choices: &[&["--header"]],
                })
            }
        }
    }

    /// The names of the fields; none before the header is read.
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        let record = self.record.as_deref();
        let record = record.filter(|_| !self.format.has_file_header());
        record.map_or(Vec::new(), |record| {
            self.format.all_fields(self.content(record))
        })
    }

    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        bom::strip(self.format.content(record))
    }
}
