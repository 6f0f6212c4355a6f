//! The beginning of the data path: chunks in the order of the stream, headers taken off, and the reader of their keys.

use std::sync::Arc;

use super::chunk::Chunk;
use super::header::Header;
use super::input::Input;
use super::job::Job;
use super::keys::KeyReader;
use super::place::Place;
use crate::failure::Failure;

/// Fills chunks, one after the other.
#[derive(Debug)]
pub(crate) struct Feed {
    job: Arc<Job>,
    input: Input,
    header: Option<Header>,
    reader: Option<KeyReader>,
}

impl Feed {
    /// The stream that the job names.
    pub(crate) fn new(job: Arc<Job>) -> Self {
        Self {
            input: Input::new(job.sources.clone(), job.framing, job.max_record),
            header: job.header.then(|| Header::new(job.framing)),
            reader: None,
            job,
        }
    }

    /// Fills the chunk with the next records; `false` at the end of the stream. From the first chunk on there is a [`reader`](Self::reader).
    pub(crate) fn next(&mut self, chunk: &mut Chunk) -> Result<bool, Failure> {
        if !self.input.fill(chunk)? {
            return Ok(false);
        }
        chunk.read_until = self.input.bytes();
        if let Some(header) = &mut self.header
            && chunk.opens_source
        {
            let name = |source| self.input.name(source);
            if let Some(fault) = chunk.fault {
                let place = Place::new(self.job.framing);
                return Err(place.failure(chunk, fault, name(chunk.source)));
            }
            header.take_off(chunk, name)?;
        }
        if self.reader.is_none() {
            self.reader = Some(self.key_reader()?);
            let header = self.header.as_ref().and_then(Header::record);
            chunk.header = header.map(<[u8]>::to_vec);
        }
        Ok(true)
    }

    /// The reader of keys, once the header that has their names was seen.
    pub(crate) fn reader(&mut self) -> Option<&mut KeyReader> {
        self.reader.as_mut()
    }

    /// The signal that ended the stream, if one did.
    pub(crate) fn ended_by(&self) -> Option<u8> {
        self.input.ended_by()
    }

    fn key_reader(&self) -> Result<KeyReader, Failure> {
        let job = &self.job;
        let names = self
            .header
            .as_ref()
            .map(|header| header.names(job.delimiter));
        let fields = match &job.key {
            Some(key) => Some(key.resolve(&names.unwrap_or_default())?),
            None => None,
        };
        Ok(KeyReader::new(
            job.hasher.clone(),
            job.framing,
            job.delimiter,
            fields,
            job.missing,
        ))
    }
}
