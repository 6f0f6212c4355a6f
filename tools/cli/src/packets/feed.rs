//! Reads capture files, or what is captured now, as one stream and cuts it into chunks of whole
//! blocks.
//!
//! The header of the first pcap file is the [header](super::header) of the stream. A file that is
//! cut or damaged ends there, and the next one follows.

use std::io;
use std::num::NonZeroUsize;

use echoless_packets::framing::{
    BlockKind, DEFAULT_MAX_BLOCK, Framer, Next, PacketBlock, set_section_length_unspecified,
};
use echoless_records::chunk::Chunk;
use echoless_records::compression::codec::Detection;
use echoless_records::compression::reader::{PlainBytes, loss_of_data};
use echoless_records::failure::Failure;
use echoless_records::files::Source;
use echoless_records::partial::{Loss, PartialInput, PartialInputs};
use echoless_records::reading::{BufferSizes, CHUNK_BYTES, Filled, Read};
use echoless_records::signals::{Patience, Signals};

use super::header::{PCAPNG, StreamHeader, framing_failure, loss_of};
use super::keys::PacketKeys;
use super::live::LiveInput;
use super::tag::has_options;
use crate::config::DedupConfig;

/// Fills chunks with the blocks of capture files, one file after the other.
#[derive(Debug)]
pub(crate) struct PacketFeed {
    sources: Vec<Source>,
    /// The index of the current file.
    at: usize,
    /// What is captured in the place of files, until it is opened.
    live: Option<LiveInput>,
    capture: Option<Capture>,
    /// The start of a block whose end is not read yet.
    tail: Vec<u8>,
    header: StreamHeader,
    /// The sections of the stream so far; a pcap file is one.
    sections: u32,
    /// The bytes of the files before the current one.
    bytes_before: u64,
    /// The error that ends the stream after the blocks in front of it.
    failure: Option<Failure>,
    /// The files that are cut or damaged.
    partial: PartialInputs,
    /// Set once the first input is opened.
    signals: Option<Signals>,
    /// The reader of keys.
    pub(crate) keys: PacketKeys,
    sizes: BufferSizes,
    /// The most threads that decompress a file.
    threads: usize,
}

/// A file that is being read.
#[derive(Debug)]
struct Capture {
    bytes: CaptureBytes,
    framer: Framer,
    /// The sections of the stream before this file.
    first_section: u32,
}

/// Where the bytes of a capture come from.
#[derive(Debug)]
enum CaptureBytes {
    File(PlainBytes),
    Live(Box<LiveInput>, Signals),
}

impl CaptureBytes {
    /// Reads some bytes. Packets that need not be framed are passed to `packet` with the offsets of
    /// their ends: all bytes of a read are theirs, or none.
    fn read(
        &mut self,
        patience: Patience,
        buffer: &mut [u8],
        packet: impl FnMut(PacketBlock, usize),
    ) -> io::Result<Read> {
        match self {
            Self::File(file) => file.read(patience, buffer),
            Self::Live(live, signals) => live.read(*signals, patience, buffer, packet),
        }
    }

    fn bytes_read(&self) -> u64 {
        match self {
            Self::File(file) => file.file_bytes(),
            Self::Live(live, _) => live.bytes,
        }
    }

    /// Whether the packets of the last read pass without a verdict.
    const fn is_behind(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Live(live, _) => live.is_behind,
        }
    }

    /// What is left of a file once a read has returned the end.
    fn bytes_behind(&self) -> Option<String> {
        match self {
            Self::File(file) => file.bytes_behind(),
            Self::Live(..) => None,
        }
    }

    fn take_gone(&mut self) -> Vec<String> {
        match self {
            Self::File(_) => Vec::new(),
            Self::Live(live, _) => live.take_gone(),
        }
    }
}

impl PacketFeed {
    /// The stream of the files of a run, or of what is captured in their place. A read has at most
    /// `most` bytes, and so many threads decompress a file.
    pub(crate) fn new(
        config: &DedupConfig,
        live: Option<LiveInput>,
        keys: PacketKeys,
        most: NonZeroUsize,
        threads: usize,
    ) -> Self {
        Self {
            sources: config.sources.clone(),
            at: 0,
            live,
            capture: None,
            tail: Vec::new(),
            header: config.stream_header.clone(),
            sections: 0,
            bytes_before: 0,
            failure: None,
            partial: PartialInputs::new(config.run.strict),
            signals: None,
            keys,
            sizes: BufferSizes {
                usual: CHUNK_BYTES,
                longest: DEFAULT_MAX_BLOCK,
                most,
            },
            threads,
        }
    }

    /// The bytes of the files that were read so far, compressed as they are.
    pub(crate) fn bytes_read(&self) -> u64 {
        let current = self.capture.as_ref();
        self.bytes_before + current.map_or(0, |capture| capture.bytes.bytes_read())
    }

    /// The signal that ended the stream, if one did.
    pub(crate) fn ended_by(&self) -> Option<u8> {
        self.signals.as_ref()?.caught()
    }

    /// The files that were left before their end since the last chunk.
    pub(crate) fn take_partial_inputs(&mut self) -> Vec<PartialInput> {
        self.partial.take()
    }

    /// Fills the chunk with the next whole blocks of one file. The stream ends with the last file,
    /// or by a signal; an incomplete last block is then dropped.
    ///
    /// It returns as soon as a read contains the end of a block, so the packets of a slow capture
    /// do not wait for a full buffer. Fails if a file cannot be read, is no capture file, or cannot
    /// follow those before it; with `--strict` also if it is cut or damaged. The
    /// blocks before the error are returned first.
    pub(crate) fn next(
        &mut self,
        chunk: &mut Chunk,
        patience: Patience,
    ) -> Result<Filled, Failure> {
        chunk.clear();
        chunk.input.is_capture = true;
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        while let Some(source) = self.sources.get(self.at).cloned() {
            chunk.input.source = self.at;
            let mut capture = match self.capture.take() {
                Some(capture) => capture,
                None => self.open(&source)?,
            };
            let mut len = self.tail.len();
            self.sizes
                .make_room(&mut chunk.bytes.buffer, len, &source)?;
            chunk.bytes.buffer[..len].copy_from_slice(&self.tail);
            self.tail.clear();
            let at_end = loop {
                let room = self.sizes.next_room(&mut chunk.bytes.buffer, len);
                let (blocks, ends) = (&mut chunk.keys.packets.blocks, &mut chunk.layout.ends);
                let read = capture.bytes.read(patience, room, |block, end| {
                    blocks.push(block);
                    ends.push(end);
                });
                let read = match read {
                    Ok(read) => read,
                    Err(error) => {
                        let loss = loss_of_data(&error);
                        let failure = Failure::file(source.name())(error);
                        match loss {
                            Some(loss) => self.partial.leave(failure, loss)?,
                            None => return Err(failure),
                        }
                        break true;
                    }
                };
                for name in capture.bytes.take_gone() {
                    let error = io::Error::other("was removed while it was captured");
                    let left = self
                        .partial
                        .leave(Failure::file(name)(error), Loss::Records);
                    self.failure = self.failure.take().or(left.err());
                }
                chunk.input.read_until = self.bytes_before + capture.bytes.bytes_read();
                chunk.input.input_until = chunk.input.read_until;
                let read = match read {
                    Read::Bytes(read) => read,
                    Read::NotYet => {
                        self.tail.extend_from_slice(&chunk.bytes.buffer[..len]);
                        self.capture = Some(capture);
                        // The warning does not wait for packets.
                        chunk.input.left = self.partial.take();
                        return Ok(match chunk.input.left.is_empty() {
                            true => Filled::NotYet,
                            false => Filled::Chunk,
                        });
                    }
                    Read::Signal => {
                        self.capture = Some(capture);
                        return self.end();
                    }
                };
                if let Some(end) = chunk.layout.ends.last() {
                    // The parts of a block that come before packets are whole, and in a chunk.
                    debug_assert_eq!((len, *end), (0, read));
                    chunk.bytes.filled = read;
                    if capture.bytes.is_behind() {
                        chunk.leave_unjudged();
                    }
                    len = read;
                    break false;
                }
                len += read;
                if read == 0
                    && let Some(problem) = capture.bytes.bytes_behind()
                {
                    let failure = Failure::file(source.name())(io::Error::other(problem));
                    self.partial.leave(failure, Loss::Nothing)?;
                }
                let at_end = match self.frame(&mut capture, chunk, len, read == 0) {
                    Ok(at_end) => at_end,
                    Err(failure) if chunk.bytes.filled == 0 => return Err(failure),
                    Err(failure) => {
                        self.failure = Some(failure);
                        return Ok(Filled::Chunk);
                    }
                };
                if at_end || chunk.bytes.filled > 0 {
                    break at_end;
                }
                self.sizes
                    .make_room(&mut chunk.bytes.buffer, len, &source)?;
            };
            if at_end {
                self.bytes_before += capture.bytes.bytes_read();
                self.at += 1;
            } else {
                self.tail
                    .extend_from_slice(&chunk.bytes.buffer[chunk.bytes.filled..len]);
                self.capture = Some(capture);
            }
            if chunk.bytes.filled > 0 {
                chunk.layout.expected = chunk.layout.ends.len();
                chunk.input.left = self.partial.take();
                return Ok(Filled::Chunk);
            }
        }
        self.end()
    }

    /// The end of the stream, or the error that ends it.
    fn end(&mut self) -> Result<Filled, Failure> {
        self.failure.take().map_or(Ok(Filled::End), Err)
    }

    fn open(&mut self, source: &Source) -> Result<Capture, Failure> {
        let catch = || Signals::catch().map_err(Failure::file("signals"));
        let (bytes, signals) = if let Some(live) = self.live.take() {
            let signals = catch()?;
            (CaptureBytes::Live(Box::new(live), signals), signals)
        } else {
            let (file, signals) = (source.open_at_once()?, catch()?);
            let bytes = PlainBytes::new(file, Detection::Binary, Some(signals));
            (
                CaptureBytes::File(bytes.decompressed_on(self.threads)),
                signals,
            )
        };
        self.signals = Some(signals);
        Ok(Capture {
            bytes,
            framer: Framer::new(),
            first_section: self.sections,
        })
    }

    /// Appends the blocks of `chunk.bytes.buffer[..len]` to the chunk. `last` is true if the file
    /// ends there. Returns whether the end of the file is reached, or nothing behind can be framed.
    fn frame(
        &mut self,
        capture: &mut Capture,
        chunk: &mut Chunk,
        len: usize,
        last: bool,
    ) -> Result<bool, Failure> {
        let Capture {
            framer,
            first_section,
            ..
        } = capture;
        let mut is_old = framer.is_old_pcap();
        // A framer numbers the sections of its own file.
        let placed = |mut packet: PacketBlock| {
            packet.interface.section = packet.interface.section.saturating_add(*first_section);
            packet
        };
        loop {
            while let Some((end, packet)) =
                framer.next_packet(&chunk.bytes.buffer[..len], chunk.bytes.filled)
            {
                chunk.bytes.filled = end;
                chunk.keys.packets.blocks.push(placed(packet));
                chunk.layout.ends.push(end);
            }
            let opens_file = framer.offset() == 0;
            let (range, kind) =
                match framer.next_block(&chunk.bytes.buffer[..len], chunk.bytes.filled, last) {
                    Ok(Next::Block { range, kind }) => (range, kind),
                    Ok(Next::NeedMore(_)) => return Ok(false),
                    Ok(Next::End) => return Ok(true),
                    Err(error) => {
                        let failure = framing_failure(&self.sources[self.at], &error);
                        return match loss_of(&error) {
                            Some(loss) => self.partial.leave(failure, loss).map(|()| true),
                            None => Err(failure),
                        };
                    }
                };
            if opens_file {
                is_old = framer.is_old_pcap();
            }
            if is_old {
                framer.upgrade(&mut chunk.bytes.buffer[range.clone()], &kind);
            }
            if opens_file {
                self.begin(chunk, range.end)?;
            }
            chunk.bytes.filled = range.end;
            match kind {
                BlockKind::Packet(packet) => {
                    if self.keys.tags() && !has_options(&chunk.bytes.buffer[range.clone()]) {
                        chunk.bytes.filled = range.start;
                        return Err(self.untaggable("a simple packet block"));
                    }
                    chunk.keys.packets.blocks.push(placed(packet));
                }
                BlockKind::Header => {
                    self.sections = self.sections.saturating_add(1);
                    if chunk.bytes.start == range.end {
                        // The header of a pcap file is no block of the stream.
                        continue;
                    }
                    // The outputs have other blocks behind the header than the input, and which
                    // ones is not known when the header is written.
                    set_section_length_unspecified(&mut chunk.bytes.buffer[range.clone()]);
                    chunk.add_frame_block();
                }
                BlockKind::Interface(_) | BlockKind::Other(_) => {
                    chunk.add_frame_block();
                }
            }
            chunk.layout.ends.push(range.end);
        }
    }

    /// Takes the header of a pcap file, which is `chunk.bytes.buffer[..end]`, off the chunk. Fails
    /// if this file cannot follow those before it.
    fn begin(&mut self, chunk: &mut Chunk, end: usize) -> Result<(), Failure> {
        chunk.input.is_first = true;
        let header = &chunk.bytes.buffer[..end];
        if self.keys.tags() && !header.starts_with(&PCAPNG) {
            return Err(self.untaggable("a pcap file"));
        }
        if !header.starts_with(&PCAPNG) {
            chunk.bytes.start = end;
        }
        self.header.join(&self.sources[self.at], header)?;
        if !self.header.is_written {
            let written = self.header.write(header);
            chunk.header.of_stream = (chunk.bytes.start > 0).then_some(written);
        }
        Ok(())
    }

    /// The error of an input whose packets cannot have comments.
    fn untaggable(&self, found: &str) -> Failure {
        Failure::Capture {
            name: self.sources[self.at].name(),
            problem: format!(
                "invalid --tag with {found}: expected pcapng files with enhanced packet blocks, \
                 the only packets that can have a comment"
            ),
        }
    }
}
