//! Reads the inputs as one stream and cuts it into chunks of whole records.
//!
//! `sources.rs` opens one input after the other, `gather.rs` reads the current one until a record
//! is complete, or cuts off a part that is read later, and `cut.rs` makes a chunk of what was read.

mod cut;
mod gather;
mod sources;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use self::cut::Cutter;
use self::sources::{InputSources, OpenInput};
use super::chunk::Chunk;
use super::fault::{Fault, Problem};
use super::restart::StreamRestart;
use crate::failure::{self, Failure};
use crate::files::Source;
use crate::keys::RecordReading;
use crate::partial::{PartialInput, PartialInputs};
use crate::reading::{CHUNK_BYTES, Filled};
use crate::signals::Patience;

/// The inputs, read one after the other.
#[derive(Debug)]
pub(crate) struct Input {
    sources: InputSources,
    /// The current one, once it is open.
    current: Option<OpenInput>,
    cutter: Cutter,
    /// The inputs that are cut or damaged.
    partial: PartialInputs,
}

impl Input {
    /// A stream of these inputs. If faulty records are set aside, an incomplete record at the end
    /// of an input does not end the stream. A read has at most `most` bytes.
    pub(crate) fn new(sources: Vec<Source>, reading: &RecordReading, most: NonZeroUsize) -> Self {
        Self {
            sources: InputSources::new(sources, reading.detection()),
            current: None,
            cutter: Cutter::new(reading, CHUNK_BYTES, most),
            partial: PartialInputs::new(false),
        }
    }

    /// If `strict`, an input that is cut or damaged ends the stream.
    pub(crate) fn with_strict(mut self, strict: bool) -> Self {
        self.partial = PartialInputs::new(strict);
        self
    }

    /// Counts the first `known` inputs as known.
    pub(crate) fn with_known(mut self, known: usize) -> Self {
        self.sources.known = known;
        self
    }

    /// Goes on behind what an earlier run has read, and tells which files the inputs are.
    pub(crate) fn restart(mut self, stream: &StreamRestart) -> Self {
        self.sources.restart(stream);
        self.cutter.restart(stream);
        self
    }

    /// Waits at the end of the last input for more, and goes on with the next file of its name when
    /// it is rotated. A signal ends the stream.
    pub(crate) fn following(mut self, is_quiet: bool) -> Self {
        self.sources.follow(is_quiet);
        self
    }

    /// Decompresses files on up to so many threads.
    pub(crate) fn with_threads(mut self, threads: usize) -> Self {
        self.sources.threads = threads;
        self
    }

    /// Fills chunks of this length, if reads and records allow it.
    pub(crate) fn with_chunk_bytes(mut self, bytes: usize) -> Self {
        self.cutter.sizes.usual = bytes;
        self
    }

    /// Whether chunks that follow may have bytes that are not read yet, since nothing but their
    /// reader looks at them.
    pub(crate) fn defer_reads(&mut self, defers_reads: bool) {
        self.cutter.defers_reads = defers_reads;
    }

    /// Leaves signals to the system, so that they end the process and not the stream.
    pub(crate) fn leaving_signals(mut self) -> Self {
        self.sources.catches_signals = false;
        self
    }

    /// The inputs that were left before their end since the last call.
    pub(crate) fn take_partial_inputs(&mut self) -> Vec<PartialInput> {
        self.partial.take()
    }

    /// The signal that ended the stream, if one did.
    pub(crate) fn ended_by(&self) -> Option<u8> {
        self.sources.signals.as_ref()?.caught()
    }

    /// The name of an input, for messages.
    pub(crate) fn name(&self, source: usize) -> String {
        self.sources.all[source].name()
    }

    /// The bytes of the inputs that were read so far, compressed as they are.
    pub(crate) fn bytes_read(&self) -> u64 {
        let current = self.current.as_ref();
        self.sources.bytes_before + current.map_or(0, |current| current.file.file_bytes())
    }

    /// [`bytes_read`](Self::bytes_read) without those of the known inputs, and without those that
    /// are left to the next run.
    pub(crate) fn input_bytes_read(&self) -> u64 {
        if self.sources.at < self.sources.known {
            return 0;
        }
        self.bytes_read() - self.sources.known_bytes - self.cutter.left_bytes
    }

    /// Fills the chunk with the next whole records of one input. The stream ends with the last
    /// input, or by a signal; an incomplete last record is then dropped.
    ///
    /// It returns as soon as a read contains the end of a record, so the records of a slow producer
    /// do not wait for a full buffer. An input that ends inside a quoted field or a record with
    /// a length, or a record that is too long, yields a chunk without records and with a fault.
    /// If faulty records are set aside, the former is a chunk of that record alone. An input that
    /// is cut or damaged ends behind its last whole record.
    pub(crate) fn fill(
        &mut self,
        chunk: &mut Chunk,
        patience: Patience,
    ) -> Result<Filled, Failure> {
        chunk.clear();
        while self.sources.at < self.sources.all.len() {
            chunk.input.source = self.sources.at;
            chunk.bytes.mark = 0;
            chunk.input.is_last = false;
            if self.cutter.is_overlong {
                chunk.fault = Some(Fault {
                    record: 0,
                    problem: Problem::TooLong(self.cutter.sizes.longest),
                });
                return Ok(Filled::Chunk);
            }
            let Some(current) = &mut self.current else {
                match self.sources.open(patience)? {
                    ControlFlow::Continue(opened) => {
                        self.cutter.open(&opened);
                        self.current = Some(opened);
                    }
                    ControlFlow::Break(filled) => return Ok(filled),
                }
                continue;
            };
            if let ControlFlow::Break(filled) =
                current.defer(&self.sources, &mut self.cutter, chunk)?
            {
                return Ok(filled);
            }
            let (sources, partial) = (&mut self.sources, &mut self.partial);
            let gathered = current.gather(sources, &mut self.cutter, partial, chunk, patience)?;
            let gathered = match gathered {
                ControlFlow::Continue(gathered) => gathered,
                ControlFlow::Break(filled) => return Ok(filled),
            };
            let is_filled = (self.cutter).cut(chunk, current, gathered);
            if let Some((_, bytes)) = chunk.input.file.left_at.filter(|_| !is_filled) {
                failure::warn(&format!(
                    "{}: no header ends in its {bytes} bytes, which are left to the next run",
                    self.sources.current().name()
                ));
            }
            if chunk.input.is_last {
                self.sources.close(&current.file);
                self.current = None;
            }
            if is_filled {
                return Ok(Filled::Chunk);
            }
        }
        Ok(Filled::End)
    }
}
