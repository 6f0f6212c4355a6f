//! Reads the inputs as one stream and cuts it in chunks of whole records.

use std::fs::File;
use std::io::{self, ErrorKind, Read};

use super::chunk::{Chunk, Fault, Problem};
use super::records::{Framing, LastEnd};
use crate::failure::Failure;
use crate::files::Source;
use crate::signals::Signals;

/// The length of a chunk's buffer, unless a record is longer. Bytes, hashes and all fit in the second-level cache.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// The inputs, read one after the other.
#[derive(Debug)]
pub(crate) struct Input {
    sources: Vec<Source>,
    /// Which source is read now.
    at: usize,
    file: Option<File>,
    /// The beginning of a record whose end was not read yet.
    tail: Vec<u8>,
    last_end: LastEnd,
    opens_source: bool,
    bytes: u64,
    /// From the first input on that is open: waiting for a pipe to be opened is not disturbed, so a signal then ends the process.
    signals: Option<Signals>,
}

impl Input {
    /// A stream of these inputs.
    pub(crate) fn new(sources: Vec<Source>, framing: Framing) -> Self {
        Self {
            sources,
            at: 0,
            file: None,
            tail: Vec::new(),
            last_end: LastEnd::new(framing),
            opens_source: true,
            bytes: 0,
            signals: None,
        }
    }

    /// The signal that ended the stream, if one did.
    pub(crate) fn ended_by(&self) -> Option<u8> {
        self.signals.as_ref()?.caught()
    }

    /// The name of an input, for messages.
    pub(crate) fn name(&self, source: usize) -> String {
        self.sources[source].name()
    }

    /// How many bytes were read.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Fills the chunk with the next whole records of one input; `false` at the end of the last input, or if a signal asks for the end:
    /// what was read of a record that had not ended by then is dropped.
    ///
    /// It returns as soon as one read brought the end of a record, so records of a slow producer do not wait for a full buffer.
    /// An input that ends inside of a quoted field gives a chunk without records and with a fault.
    pub(crate) fn fill(&mut self, chunk: &mut Chunk) -> Result<bool, Failure> {
        chunk.clear();
        while let Some(source) = self.sources.get(self.at) {
            let file = match &mut self.file {
                Some(file) => file,
                closed => closed.insert(source.open()?),
            };
            let signals = match &mut self.signals {
                Some(signals) => signals,
                none => none.insert(Signals::catch().map_err(Failure::file("signals"))?),
            };
            chunk.source = self.at;
            chunk.opens_source = self.opens_source;

            let mut len = self.tail.len();
            make_room(&mut chunk.bytes, len, source)?;
            chunk.bytes[..len].copy_from_slice(&self.tail);
            self.tail.clear();
            let at_end = loop {
                let read = read(file, signals, &mut chunk.bytes[len..])
                    .map_err(Failure::file(source.name()))?;
                let Some(read) = read else {
                    return Ok(false);
                };
                self.bytes += read as u64;
                let seen = len;
                len += read;
                if read == 0 {
                    break true;
                }
                if let Some(end) = self.last_end.find(&chunk.bytes[..len], seen) {
                    self.tail.extend_from_slice(&chunk.bytes[end..len]);
                    chunk.filled = end;
                    break false;
                }
                make_room(&mut chunk.bytes, len, source)?;
            };
            if at_end {
                if self.last_end.is_in_quotes() {
                    chunk.fault = Some(Fault {
                        record: 0,
                        problem: Problem::OpenQuote,
                    });
                } else {
                    chunk.filled = len;
                }
                self.file = None;
                self.at += 1;
                self.opens_source = true;
                self.last_end.reset();
            }
            if chunk.filled > 0 || chunk.fault.is_some() {
                self.opens_source = at_end;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Makes sure that at least half of the buffer is free behind `used` bytes: it grows for long records and shrinks after them.
fn make_room(bytes: &mut Vec<u8>, used: usize, source: &Source) -> Result<(), Failure> {
    let mut wanted = CHUNK_BYTES;
    while wanted / 2 < used {
        wanted *= 2;
    }
    if wanted > bytes.len() {
        bytes
            .try_reserve_exact(wanted - bytes.len())
            .map_err(|_| Failure::file(source.name())(ErrorKind::OutOfMemory.into()))?;
        bytes.resize(wanted, 0);
    } else if wanted < bytes.len() && used <= CHUNK_BYTES / 2 {
        bytes.truncate(wanted);
        bytes.shrink_to_fit();
    }
    Ok(())
}

/// Reads what there is as soon as there is something; `None` if a signal came first.
fn read(file: &mut File, signals: &Signals, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    while signals.wait_for(file)? {
        match file.read(buffer) {
            Err(error)
                if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            outcome => return outcome.map(Some),
        }
    }
    Ok(None)
}
