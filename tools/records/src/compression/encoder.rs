//! The encoders: from plain bytes to the frames of a codec.

use std::io::{self, Write};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use liblzma::stream::{Check, Stream as XzStream};
use liblzma::write::XzEncoder;
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use zstd::stream::write::Encoder as ZstdEncoder;

use super::codec::{Codec, Compression};

/// An encoder that writes to `W`. What it writes depends only on the bytes of each call.
pub(super) enum Encoder<W: Write> {
    Gzip(GzEncoder<W>),
    Zstd(ZstdEncoder<'static, W>),
    Lz4(Box<FrameEncoder<W>>),
    Xz(XzEncoder<W>),
    Bzip2(Bzip2<W>),
}

impl<W: Write> Encoder<W> {
    /// An encoder that begins a frame. Frames have checksums of their content.
    pub(super) fn new(compression: Compression, output: W) -> io::Result<Self> {
        let level = compression.level;
        Ok(match compression.codec {
            Codec::Gzip => Self::Gzip(GzEncoder::new(output, flate2::Compression::new(level))),
            Codec::Zstd => {
                // A level is at most 22.
                let mut encoder = ZstdEncoder::new(output, level as i32)?;
                encoder.include_checksum(true)?;
                Self::Zstd(encoder)
            }
            Codec::Lz4 => {
                let info = FrameInfo::new()
                    .block_size(BlockSize::Max256KB)
                    .block_mode(BlockMode::Linked)
                    .content_checksum(true);
                Self::Lz4(Box::new(FrameEncoder::with_frame_info(info, output)))
            }
            Codec::Xz => {
                let stream = XzStream::new_easy_encoder(level, Check::Crc64)?;
                Self::Xz(XzEncoder::new_stream(output, stream))
            }
            Codec::Bzip2 => Self::Bzip2(Bzip2::new(output, level)),
            Codec::Lzma | Codec::Lzip => return Err(io::ErrorKind::Unsupported.into()),
        })
    }

    /// Encodes the bytes.
    pub(super) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
            Self::Lz4(encoder) => encoder.write_all(bytes),
            Self::Xz(encoder) => encoder.write_all(bytes),
            Self::Bzip2(encoder) => encoder.write_all(bytes),
        }
    }

    /// Writes enough that everything encoded so far can be decoded.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.flush(),
            Self::Zstd(encoder) => encoder.flush(),
            Self::Lz4(encoder) => encoder.flush(),
            Self::Xz(encoder) => {
                encoder.flush()?;
                // The crate writes the end of the flushed block only with its next call.
                encoder.flush()
            }
            Self::Bzip2(encoder) => encoder.end_stream(),
        }
    }

    /// Ends the frame.
    pub(super) fn finish(self) -> io::Result<W> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
            Self::Lz4(encoder) => Ok(encoder.finish()?),
            Self::Xz(encoder) => encoder.finish(),
            Self::Bzip2(encoder) => encoder.finish(),
        }
    }
}

/// Streams of bzip2. The blocks of a stream are not aligned to bytes, so the last one cannot be
/// decoded before the stream goes on or ends: flushing ends it.
pub(super) struct Bzip2<W: Write> {
    level: u32,
    stream: Option<BzEncoder<W>>,
    /// The output, while there is no stream.
    output: Option<W>,
}

impl<W: Write> Bzip2<W> {
    fn new(output: W, level: u32) -> Self {
        Self {
            level,
            stream: Some(BzEncoder::new(output, bzip2::Compression::new(level))),
            output: None,
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(output) = self.output.take() {
            let level = bzip2::Compression::new(self.level);
            self.stream = Some(BzEncoder::new(output, level));
        }
        match &mut self.stream {
            Some(stream) => stream.write_all(bytes),
            None => Err(ended_by_error()),
        }
    }

    fn end_stream(&mut self) -> io::Result<()> {
        if let Some(stream) = self.stream.take() {
            self.output = Some(stream.finish()?);
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<W> {
        self.end_stream()?;
        self.output.ok_or_else(ended_by_error)
    }
}

fn ended_by_error() -> io::Error {
    io::Error::other("an earlier error has ended the bzip2 stream")
}
