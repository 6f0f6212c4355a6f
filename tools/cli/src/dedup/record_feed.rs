//! Fills chunks with records, removes headers, and makes the reader of keys once the header is
//! read.

use std::num::NonZeroUsize;
use std::sync::Arc;

use echoless::{KeyHasher, SpecError};

use super::input::Input;
use crate::config::{Clock, RecordConfig, WindowConfig};
use crate::failure::Failure;
use crate::files::Source;
use crate::records::chunk::Chunk;
use crate::records::fault::Fault;
use crate::records::header::Header;
use crate::records::keys::{KeyExtractor, KeyReader};
use crate::records::position::{FaultReporter, InputPosition};
use crate::time::format::TimeReader;

/// Fills chunks, one after the other.
#[derive(Debug)]
pub(crate) struct RecordFeed {
    config: Arc<RecordConfig>,
    hasher: KeyHasher,
    window: Option<WindowConfig>,
    input: Input,
    /// The number of known inputs.
    known: usize,
    header: Option<Header>,
    /// Whether a chunk took the header of the outputs along.
    header_sent: bool,
    reader: Option<KeyReader>,
}

impl RecordFeed {
    /// The stream of these inputs, of which the first `known` ones are known.
    pub(crate) fn new(
        config: Arc<RecordConfig>,
        sources: Vec<Source>,
        known: usize,
        hasher: KeyHasher,
        window: Option<WindowConfig>,
        read_bytes: NonZeroUsize,
    ) -> Self {
        let format = &config.format;
        Self {
            input: Input::new(
                sources,
                known,
                config.as_they_are,
                format.clone(),
                config.max_record,
                config.faults.rejects,
                read_bytes,
            ),
            known,
            header_sent: false,
            header: (config.header || format.has_file_header())
                .then(|| Header::new(format.clone())),
            reader: None,
            config,
            hasher,
            window,
        }
    }

    /// Fills the chunk with the next records; returns `false` at the end of the stream. After the
    /// first chunk, [`reader`](Self::reader) returns a reader.
    pub(crate) fn next(&mut self, chunk: &mut Chunk) -> Result<bool, Failure> {
        if !self.input.fill(chunk)? {
            return Ok(false);
        }
        chunk.read_until = self.input.bytes_read();
        chunk.input_until = self.input.input_bytes_read();
        if let Some(header) = &mut self.header
            && chunk.opens_source
        {
            let name = |source| self.input.name(source);
            let incomplete = chunk.incomplete.map(|problem| Fault { record: 0, problem });
            if let Some(fault) = chunk.fault.or(incomplete) {
                let reporter = FaultReporter::new(self.config.format.clone());
                let done = InputPosition::default();
                return Err(reporter.failure(chunk, fault, name(chunk.source), done));
            }
            header.remove_from(chunk, name)?;
        }
        if self.reader.is_none() {
            self.reader = Some(self.key_reader()?);
        }
        // The outputs get the header of the first input that is written, in its own spelling.
        if !self.header_sent && chunk.source >= self.known {
            self.header_sent = true;
            let own = || chunk.bytes[..chunk.start].to_vec();
            chunk.header = self.header.as_ref().map(|_| own());
        }
        Ok(true)
    }

    /// The reader of keys. It exists once the header with the names of fields is read.
    pub(crate) const fn reader(&self) -> Option<&KeyReader> {
        self.reader.as_ref()
    }

    /// The bytes of the inputs that were read so far, compressed as they are, without the known
    /// inputs.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.input.input_bytes_read()
    }

    /// The signal that ended the stream, if one did.
    pub(crate) fn ended_by(&self) -> Option<u8> {
        self.input.ended_by()
    }

    fn key_reader(&self) -> Result<KeyReader, Failure> {
        let config = &self.config;
        let names = self.header.as_ref().map(Header::names);
        let fields = match &config.key {
            Some(key) => Some(key.resolve(&names.clone().unwrap_or_default())?),
            None => None,
        };
        let mut extractor = KeyExtractor::new(self.hasher.clone(), fields, config.faults);
        if let Some(window) = &self.window
            && let Clock::Field(time) = &window.clock
        {
            let field = time.field.resolve(&names.unwrap_or_default());
            let field = field.map_err(|error| SpecError {
                field: "--time-field",
                ..error
            })?;
            // A time is at most `i64::MAX` long, and so is a tick of it.
            let reader = TimeReader::new(time.format.clone(), window.resolution as i64);
            extractor = extractor.with_time(field, reader);
        }
        let reader = KeyReader::new(config.format.clone(), extractor);
        Ok(reader.with_tagger(config.tagger.clone()))
    }
}
