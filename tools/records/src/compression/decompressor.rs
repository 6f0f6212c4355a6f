//! Decompression on a thread of its own, so that it overlaps with what is done to the plain bytes.
//!
//! ```text
//! file -> decoder -> blocks -> reader
//!            ^                   |
//!            +- recycled blocks -+
//! ```
//!
//! The decoder has [threads of its own](super::frame_decoders) for a regular file of many frames.
//! A block is passed on as soon as the decoder returns something, full or not: the data of a slow
//! producer does not wait for a full block.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use thiserror::Error;

use super::codec::Codec;
use super::frame_decoders::FileDecoder;
use crate::partial::Loss;
use crate::reading::{self, CHUNK_BYTES};
use crate::signals::{Patience, Signals};

/// The number of blocks: one is read, one waits, one is filled.
const BLOCKS: usize = 3;

/// The thread that decompresses, seen from the thread that reads.
#[derive(Debug)]
pub(super) struct Decompressor {
    filled: Receiver<Block>,
    recycle: Sender<Block>,
    /// The block that is being read.
    block: Block,
    /// The bytes of the block that were read.
    taken: usize,
    /// The number of plain bytes that were read.
    offset: u64,
}

/// Plain bytes.
#[derive(Debug)]
struct Block {
    /// The buffer; its length is its capacity.
    bytes: Vec<u8>,
    filled: usize,
    /// The bytes of the file that were read by then.
    file_bytes: u64,
    /// The codec, once it is known.
    codec: Option<Codec>,
    /// What follows the bytes: more of them, or an end.
    end: Option<End>,
}

/// How a file ends.
#[derive(Debug)]
enum End {
    /// Behind the last frame, so many bytes are left.
    File {
        bytes_behind: u64,
    },
    Signal,
    Error(io::Error),
}

/// Compressed data that cannot be decoded further; everything before is decoded.
#[derive(Debug, Error)]
#[error(
    "the {codec} data is cut or damaged after byte {offset} of the decompressed file: {problem}"
)]
struct DamagedData {
    codec: &'static str,
    offset: u64,
    problem: String,
    is_cut: bool,
}

/// What is lost of an input that ends with this error: `None` if it is no error of its data.
pub fn loss_of_data(error: &io::Error) -> Option<Loss> {
    let damaged = error.get_ref()?.downcast_ref::<DamagedData>()?;
    Some(if damaged.is_cut {
        Loss::UnfinishedEnd
    } else {
        Loss::Records
    })
}

impl Decompressor {
    /// Starts to decompress a file that begins with `first`; these bytes are read already. Without
    /// a codec, it begins with frames that are skipped. Up to `threads` decode it.
    pub(super) fn start(
        codec: Option<Codec>,
        first: Vec<u8>,
        file: File,
        signals: Option<Signals>,
        threads: usize,
    ) -> io::Result<Self> {
        // The data of a producer that pauses must not wait for the end of its frame.
        let is_regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let ended_by_signal = Arc::new(AtomicBool::new(false));
        let watched = Watched {
            file,
            signals,
            ended_by_signal: Arc::clone(&ended_by_signal),
        };
        let (send, filled) = bounded(BLOCKS);
        let (recycle, recycled) = bounded(BLOCKS);
        for _ in 1..BLOCKS {
            // Cannot fail: the channel has room for all blocks.
            let _ = recycle.try_send(Block::default());
        }
        // Not joined: when the stream is abandoned, the thread may be blocked on a slow producer.
        thread::Builder::new()
            .name("echoless-unzip".into())
            .spawn(move || {
                let decoder = FileDecoder::new(codec, first, watched, threads, !is_regular);
                decompress(decoder, &ended_by_signal, &recycled, &send);
            })?;
        Ok(Self {
            filled,
            recycle,
            block: Block::default(),
            taken: 0,
            offset: 0,
        })
    }

    /// The bytes of the file that were read when the bytes returned last were decoded.
    pub(super) fn file_bytes(&self) -> u64 {
        self.block.file_bytes
    }

    /// The codec of the bytes that were read.
    pub(super) fn codec(&self) -> Option<Codec> {
        self.block.codec
    }

    /// Some of the plain bytes.
    pub(super) fn read(
        &mut self,
        patience: Patience,
        buffer: &mut [u8],
    ) -> io::Result<reading::Read> {
        while self.taken == self.block.filled {
            match self.block.end.take() {
                None => {}
                Some(end @ End::File { .. }) => {
                    self.block.end = Some(end);
                    return Ok(reading::Read::Bytes(0));
                }
                Some(End::Signal) => {
                    self.block.end = Some(End::Signal);
                    return Ok(reading::Read::Signal);
                }
                Some(End::Error(error)) => return Err(self.explained(&error)),
            }
            let panicked =
                || io::Error::other("internal error: the thread that decompresses has panicked");
            let next = match patience {
                Patience::Wait => self.filled.recv().map_err(|_| panicked())?,
                Patience::Try => match self.filled.try_recv() {
                    Ok(next) => next,
                    Err(TryRecvError::Empty) => return Ok(reading::Read::NotYet),
                    Err(TryRecvError::Disconnected) => return Err(panicked()),
                },
            };
            self.taken = 0;
            // Fails only after the thread has ended.
            let _ = self.recycle.send(std::mem::replace(&mut self.block, next));
        }
        let plain = &self.block.bytes[self.taken..self.block.filled];
        let read = plain.len().min(buffer.len());
        buffer[..read].copy_from_slice(&plain[..read]);
        self.taken += read;
        self.offset += read as u64;
        Ok(reading::Read::Bytes(read))
    }

    /// What is left of the file, once a read has returned the end.
    pub(super) fn bytes_behind(&self) -> Option<String> {
        match self.block.end {
            Some(End::File { bytes_behind }) if bytes_behind > 0 => Some(format!(
                "{bytes_behind} bytes of trailing garbage behind the {} data",
                self.codec_name()
            )),
            _ => None,
        }
    }

    /// The error of the decoder, with the position up to which its output is good.
    fn explained(&self, error: &io::Error) -> io::Error {
        // The limit of the decoder, and of the zstd tool without options.
        if self.block.codec == Some(Codec::Zstd) && error.to_string().contains("too much memory") {
            let problem = "the zstd data has a window of more than 128 MiB: decompress it with \
                           zstd -d --long=31";
            return io::Error::new(error.kind(), problem);
        }
        if let Some(code) = error.raw_os_error() {
            // The file cannot be read, with any data in it.
            return io::Error::from_raw_os_error(code);
        }
        if error.kind() == ErrorKind::OutOfMemory {
            return ErrorKind::OutOfMemory.into();
        }
        let damaged = DamagedData {
            codec: self.codec_name(),
            offset: self.offset,
            problem: error.to_string(),
            is_cut: error.kind() == ErrorKind::UnexpectedEof,
        };
        io::Error::new(error.kind(), damaged)
    }

    fn codec_name(&self) -> &'static str {
        // Only these skip frames.
        self.block.codec.map_or("zstd or lz4", Codec::name)
    }
}

impl Default for Block {
    fn default() -> Self {
        Self {
            bytes: vec![0; CHUNK_BYTES],
            filled: 0,
            file_bytes: 0,
            codec: None,
            end: None,
        }
    }
}

/// Fills blocks until the file ends or the reader is dropped.
fn decompress(
    mut decoder: FileDecoder<Watched>,
    ended_by_signal: &AtomicBool,
    recycled: &Receiver<Block>,
    send: &Sender<Block>,
) {
    while let Ok(mut block) = recycled.recv() {
        (block.filled, block.end) = loop {
            match decoder.fill(&mut block.bytes) {
                Ok(0) => {
                    let bytes_behind = decoder.bytes_behind();
                    break (0, Some(End::File { bytes_behind }));
                }
                Ok(read) => break (read, None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => break (0, Some(End::Error(error))),
            }
        };
        block.codec = decoder.codec();
        block.file_bytes = decoder.file_bytes();
        // Relaxed: this thread has read the end, behind those of the decoder.
        if block.end.is_some() && ended_by_signal.load(Ordering::Relaxed) {
            // A decoder takes the end of its input by a signal for a cut file.
            block.end = Some(End::Signal);
        }
        let ends = block.end.is_some();
        if send.send(block).is_err() || ends {
            return;
        }
    }
}

/// A file that ends where a signal arrives.
#[derive(Debug)]
struct Watched {
    file: File,
    signals: Option<Signals>,
    /// What a decoder hides from its caller.
    ended_by_signal: Arc<AtomicBool>,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = reading::read(&self.file, self.signals, Patience::Wait, buffer)?;
        let (read, by_signal) = match read {
            reading::Read::Bytes(read) => (read, false),
            reading::Read::NotYet | reading::Read::Signal => (0, true),
        };
        // Relaxed: the threads that read take turns, and the one that loads it is the last of them.
        self.ended_by_signal.store(by_signal, Ordering::Relaxed);
        Ok(read)
    }
}
