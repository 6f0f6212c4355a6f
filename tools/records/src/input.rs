//! Reads the inputs as one stream and cuts it into chunks of whole records.
//!
//! `sources.rs` opens one input after the other, `gather.rs` reads the current one until a record
//! is complete, or cuts off a part that is read later, and `cut.rs` makes a chunk of what was read.

mod cut;
mod gather;
mod sources;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;

use self::cut::Cutter;
use self::sources::{InputSources, OpenInput};
use super::chunk::Chunk;
use super::fault::{Fault, Problem};
use super::field_list::FieldList;
use super::restart::StreamRestart;
use super::tag::Tagger;
use crate::failure::{self, Failure};
use crate::files::Source;
use crate::keys::RecordReading;
use crate::partial::{PartialInput, PartialInputs};
use crate::reading::{CHUNK_BYTES, Filled};
use crate::signals::Patience;
use crate::time::format::TimeReader;

/// How a stream of records is read.
#[derive(Debug, Default)]
pub struct FeedOptions<'a> {
    /// What an earlier run has read: this one goes on behind it.
    pub restart: Option<&'a StreamRestart>,
    /// Whether an input that is cut or damaged ends the stream.
    pub strict: bool,
    /// The number of known inputs, which are the first ones: the outputs get nothing of them.
    pub known: usize,
    /// Whether the last input is waited for at its end, and its name is followed when it is
    /// rotated. A signal ends the stream.
    pub follows: bool,
    /// Whether nothing is told of the file that is followed.
    pub is_quiet: bool,
    /// The fields with the time of a record, in their order, and its reader.
    pub time: Option<(FieldList, TimeReader)>,
    /// Writes tags, for which records must have room.
    pub tagger: Option<Arc<Tagger>>,
    /// The threads that the chunks are for, if they are several, and the length of a chunk. As many
    /// threads decompress an input. Many chunks are under way: sets `RecordLayout::expected`.
    pub threads: Option<(usize, usize)>,
    /// Whether reads of plain files are left to the readers of the chunks. Nothing else may look at
    /// the bytes of a chunk before its reader; chunks that the feed has to look at are read there.
    pub defers_reads: bool,
    /// Whether signals are left to the system, so that they end the process and not the stream.
    pub leaves_signals: bool,
}

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
    pub(crate) fn new(
        sources: Vec<Source>,
        reading: &RecordReading,
        most: NonZeroUsize,
        options: &FeedOptions<'_>,
    ) -> Self {
        let mut sources = InputSources::new(sources, reading.detection());
        let mut cutter = Cutter::new(reading, CHUNK_BYTES, most);
        sources.known = options.known;
        sources.catches_signals = !options.leaves_signals;
        if let Some((threads, chunk_bytes)) = options.threads {
            sources.threads = threads;
            cutter.sizes.usual = chunk_bytes;
        }
        if let Some(stream) = options.restart {
            sources.restart(stream);
            cutter.restart(stream);
        }
        if options.follows {
            sources.follow(options.is_quiet);
        }
        Self {
            sources,
            current: None,
            cutter,
            partial: PartialInputs::new(options.strict),
        }
    }

    /// Whether chunks that follow may have bytes that are not read yet, since nothing but their
    /// reader looks at them.
    pub(crate) fn defer_reads(&mut self, defers_reads: bool) {
        self.cutter.defers_reads = defers_reads;
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
