//! Fills chunks with records, removes headers, and makes the reader of keys once the header is
//! read.

use std::num::NonZeroUsize;
use std::sync::Arc;

use echoless::{KeyHasher, SpecError};

use super::chunk::Chunk;
use super::fault::Fault;
use super::field_list::FieldList;
use super::header::Header;
use super::input::Input;
use super::keys::{KeyExtractor, KeyReader};
use super::position::{FaultReporter, InputPosition};
use super::reading::RecordReading;
use super::tag::Tagger;
use crate::failure::Failure;
use crate::files::Source;
use crate::reading::Filled;
use crate::signals::Patience;
use crate::time::format::TimeReader;

/// The bytes of a chunk in which its records are counted, to estimate how many there are.
const SAMPLE_BYTES: usize = 4 << 10;

/// Fills chunks, one after the other.
#[derive(Debug)]
pub(crate) struct RecordFeed {
    reading: Arc<RecordReading>,
    hasher: KeyHasher,
    /// The fields with the time of a record, in their order, and its reader.
    time: Option<(FieldList, TimeReader)>,
    tagger: Option<Arc<Tagger>>,
    /// Whether the records of each chunk are estimated, so that the chunks under way are bounded.
    estimates_records: bool,
    input: Input,
    /// The number of known inputs.
    known: usize,
    header: Option<Header>,
    /// Whether a chunk took the header of the outputs along.
    header_sent: bool,
    reader: Option<KeyReader>,
}

impl RecordFeed {
    /// The stream of these inputs. A read has at most `most` bytes.
    pub(crate) fn new(
        reading: Arc<RecordReading>,
        sources: Vec<Source>,
        hasher: KeyHasher,
        most: NonZeroUsize,
    ) -> Self {
        let format = &reading.format;
        let has_header = reading.header || format.has_file_header();
        Self {
            input: Input::new(sources, &reading, most),
            known: 0,
            header: has_header.then(|| Header::new(format.clone())),
            header_sent: false,
            reader: None,
            reading,
            hasher,
            time: None,
            tagger: None,
            estimates_records: false,
        }
    }

    /// Counts the first `known` inputs as known: the outputs get nothing of them.
    pub(crate) fn with_known(mut self, known: usize) -> Self {
        self.known = known;
        self.input = self.input.with_known(known);
        self
    }

    /// Reads the time of each record, too, if a field has it.
    pub(crate) fn with_time(mut self, time: Option<(FieldList, TimeReader)>) -> Self {
        if time.is_some() {
            self.input = self.input.reading_fields();
        }
        self.time = time;
        self
    }

    /// Checks that records have room for the tags of this tagger, if there is one.
    pub(crate) fn with_tagger(mut self, tagger: Option<Arc<Tagger>>) -> Self {
        self.tagger = tagger;
        self
    }

    /// Fills chunks of this length, of which many are under way, and sets
    /// [`Chunk::expected_records`].
    pub(crate) fn with_many_chunks(mut self, bytes: usize) -> Self {
        self.input = self.input.with_chunk_bytes(bytes);
        self.estimates_records = true;
        self
    }

    /// Leaves signals to the system, so that they end the process and not the stream.
    pub(crate) fn leaving_signals(mut self) -> Self {
        self.input = self.input.leaving_signals();
        self
    }

    /// Fills the chunk with the next records. After the first chunk, [`reader`](Self::reader)
    /// returns a reader.
    pub(crate) fn next(
        &mut self,
        chunk: &mut Chunk,
        patience: Patience,
    ) -> Result<Filled, Failure> {
        let filled = self.input.fill(chunk, patience)?;
        if filled != Filled::Chunk {
            return Ok(filled);
        }
        chunk.read_until = self.input.bytes_read();
        chunk.input_until = self.input.input_bytes_read();
        if let Some(header) = &mut self.header
            && chunk.opens_source
        {
            let name = |source| self.input.name(source);
            let incomplete = chunk.incomplete.map(|problem| Fault { record: 0, problem });
            if let Some(fault) = chunk.fault.or(incomplete) {
                let reporter = FaultReporter::new(self.reading.format.clone());
                let done = InputPosition::default();
                return Err(reporter.failure(chunk, fault, name(chunk.source), done));
            }
            header.remove_from(chunk, name)?;
        }
        if self.estimates_records {
            chunk.expected_records = self.expected_records(&chunk.bytes[chunk.start..chunk.filled]);
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
        Ok(Filled::Chunk)
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

    /// About how many records these bytes have, from the first of them: one thread at a time fills
    /// chunks, and all of them search their own.
    fn expected_records(&self, records: &[u8]) -> usize {
        let sample = &records[..records.len().min(SAMPLE_BYTES)];
        let found = self.reading.format.most_records(sample);
        found.saturating_mul(records.len()) / sample.len().max(1)
    }

    fn key_reader(&self) -> Result<KeyReader, Failure> {
        let reading = &self.reading;
        let names = self.header.as_ref().map(Header::names).unwrap_or_default();
        if let Some(tagger) = &self.tagger {
            tagger.check_header(&names)?;
        }
        let fields = match &reading.key {
            Some(key) => Some(key.resolve(&names)?),
            None => None,
        };
        let mut extractor = KeyExtractor::new(self.hasher.clone(), fields, reading.faults)
            .comparing(reading.compared);
        if let Some((fields, reader)) = &self.time {
            let numbers = fields.numbers(&names).map_err(|error| SpecError {
                field: "--time-field",
                ..error
            })?;
            extractor = extractor.with_time(&numbers, reader.clone());
        }
        let reader = KeyReader::new(reading.format.clone(), extractor);
        Ok(reader.with_tagger(self.tagger.clone()))
    }
}
