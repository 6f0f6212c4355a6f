//! The start of the data path: fills chunks in the order of the stream, and provides the reader of
//! their keys.

use std::num::NonZeroUsize;
use std::sync::Arc;

use echoless_records::chunk::Chunk;
use echoless_records::failure::Failure;
use echoless_records::feed::{FeedOptions, RecordFeed};
use echoless_records::field_list::FieldList;
use echoless_records::keys::KeyReader;
use echoless_records::partial::PartialInput;
use echoless_records::reading::Filled;
use echoless_records::signals::Patience;
use echoless_records::time::format::TimeReader;

use super::backwards::{BackwardFeed, reverse};
use super::exact::ExactStage;
use super::threads::division::CHUNK_BYTES;
use crate::config::{ClockSource, Content, DedupConfig, WindowConfig};
use crate::packets::feed::PacketFeed;
use crate::packets::keys::PacketKeys;

/// The order in which the records of the inputs come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forwards,
    /// From the last one to the first, for [`Keep`](crate::config::Keep).
    Backwards,
}

/// How a stream ended.
#[derive(Debug, Default)]
pub(crate) struct StreamEnd {
    /// The signal that ended it, if one did.
    pub(crate) signal: Option<u8>,
    /// The bytes of the inputs that were read, compressed as they are, without the known inputs.
    pub(crate) bytes_read: u64,
    /// The inputs that were left before their end, behind the last chunk.
    pub(crate) partial_inputs: Vec<PartialInput>,
}

/// Fills chunks, one after the other.
#[derive(Debug)]
pub(crate) enum Feed {
    Records(Box<RecordFeed>),
    Backwards(Box<BackwardFeed>),
    Packets(Box<PacketFeed>),
}

/// Finds the keys of a chunk and hashes them. A chunk depends on no other chunk, so clones of a
/// reader work in parallel.
#[derive(Debug, Clone)]
pub(crate) enum ChunkReader {
    Records(Box<KeyReader>),
    Backwards(Box<KeyReader>),
    Packets(PacketKeys),
}

impl ChunkReader {
    /// Hashes the key of each record of the chunk, up to the first faulty one.
    pub(super) fn read(
        &mut self,
        chunk: &mut Chunk,
        exact: Option<ExactStage<'_>>,
    ) -> Result<(), Failure> {
        match self {
            Self::Records(reader) | Self::Backwards(reader) => {
                reader.read(chunk);
                if let Some(exact) = exact {
                    exact.read(reader, chunk)?;
                }
            }
            Self::Packets(reader) => reader.read(chunk),
        }
        if let Self::Backwards(_) = self {
            reverse(chunk);
        }
        Ok(())
    }
}

/// The most bytes of a read if a scattered filter has a window of time. What was read is judged
/// before a signal ends the run, and such a filter may sweep its memory between any two records.
const SWEPT_BYTES: NonZeroUsize = NonZeroUsize::new(4 << 10).expect("not 0");

impl Feed {
    /// The stream of the inputs that the configuration names, for so many threads: one has one
    /// chunk, several have longer ones, whose records are estimated.
    pub(crate) fn new(config: &DedupConfig, direction: Direction, threads: usize) -> Self {
        let hasher = config.run.hasher.clone();
        let timed = (config.window.as_ref()).is_some_and(|window| window.clock.is_time());
        let most = if timed && !config.filter.has_partitions() {
            config.run.read_bytes.min(SWEPT_BYTES)
        } else {
            config.run.read_bytes
        };
        match &config.content {
            Content::Records(records) => {
                let reading = Arc::clone(&records.reading);
                let sources = config.sources.clone();
                let is_backwards = direction == Direction::Backwards;
                let options = FeedOptions {
                    restart: config.restart.as_ref(),
                    strict: config.run.strict,
                    known: config.known,
                    follows: config.follow,
                    is_quiet: config.run.quiet,
                    time: config.window.as_ref().and_then(time_of_records),
                    tagger: records.tagger.clone(),
                    threads: (threads > 1).then_some((threads, CHUNK_BYTES)),
                    // The worker with the turn to fill reads only what it must. A state has to know
                    // what is in its inputs.
                    defers_reads: threads > 1 && config.state.is_none() && !is_backwards,
                    leaves_signals: false,
                };
                let feed = RecordFeed::new(reading, sources, hasher, most, options);
                if is_backwards {
                    let feed = BackwardFeed::new(config.sources.clone(), feed);
                    Self::Backwards(Box::new(feed))
                } else {
                    Self::Records(Box::new(feed))
                }
            }
            // The feed finds the blocks itself, and the threads exchange no messages.
            Content::Packets(packets) => {
                let window = config.window.as_ref();
                let timed = window.filter(|window| window.clock.is_time());
                // A time is at most `i64::MAX` long, and so is a tick of it.
                let resolution = timed.map(|window| window.resolution as i64);
                let keys = PacketKeys::new(Arc::clone(&packets.reading), resolution, hasher);
                let live = packets.live.as_ref();
                let live = live.and_then(|live| live.input(&config.run));
                let feed = PacketFeed::new(config, live, keys, most, threads);
                Self::Packets(Box::new(feed))
            }
        }
    }

    /// Fills the chunk with the next records. After the first chunk, [`reader`](Self::reader)
    /// returns a reader.
    pub(crate) fn next(
        &mut self,
        chunk: &mut Chunk,
        patience: Patience,
    ) -> Result<Filled, Failure> {
        match self {
            Self::Records(feed) => feed.next(chunk, patience),
            Self::Backwards(feed) => feed.next(chunk),
            Self::Packets(feed) => feed.next(chunk, patience),
        }
    }

    /// A reader of keys. It exists once the header with the names of fields is read.
    pub(crate) fn reader(&self) -> Option<ChunkReader> {
        match self {
            Self::Records(feed) => {
                let reader = feed.reader()?.clone();
                Some(ChunkReader::Records(Box::new(reader)))
            }
            Self::Backwards(feed) => {
                let reader = feed.reader.clone()?;
                Some(ChunkReader::Backwards(Box::new(reader)))
            }
            Self::Packets(feed) => Some(ChunkReader::Packets(feed.keys.clone())),
        }
    }

    /// How the stream ended, once it has.
    pub(crate) fn end(&mut self) -> StreamEnd {
        let (signal, bytes_read, partial_inputs) = match self {
            Self::Records(feed) => (
                feed.ended_by(),
                feed.bytes_read(),
                feed.take_partial_inputs(),
            ),
            Self::Backwards(feed) => (feed.ended_by(), feed.bytes_read, Vec::new()),
            Self::Packets(feed) => (
                feed.ended_by(),
                feed.bytes_read(),
                feed.take_partial_inputs(),
            ),
        };
        StreamEnd {
            signal,
            bytes_read,
            partial_inputs,
        }
    }
}

/// The fields with the time of a record, and its reader, if the window is a time.
fn time_of_records(window: &WindowConfig) -> Option<(FieldList, TimeReader)> {
    match &window.clock {
        ClockSource::Field(time) => {
            // A time is at most `i64::MAX` long, and so is a tick of it. Positions in a year or day
            // become ticks in the order of the stream.
            let resolution = match time.format.period() {
                Some(_) => 1,
                None => window.resolution as i64,
            };
            let reader = TimeReader::new(time.format.clone(), resolution);
            Some((time.fields.clone(), reader))
        }
        ClockSource::Records | ClockSource::Packets | ClockSource::Keys => None,
    }
}
