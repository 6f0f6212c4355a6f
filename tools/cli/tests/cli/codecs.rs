//! The codecs as their crates have them, to make inputs and to read outputs.

use std::io::{self, Cursor, Read, Write};

use bzip2::read::MultiBzDecoder;
use bzip2::write::BzEncoder;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use liblzma::read::XzDecoder;
use liblzma::stream::{LzmaOptions, Stream};
use liblzma::write::XzEncoder;
use lz4_flex::frame::{FrameDecoder, FrameEncoder, FrameInfo};

/// All codecs by name.
pub(crate) const CODECS: [&str; 5] = ["zstd", "gzip", "lz4", "xz", "bzip2"];

/// An encoder whose output can be taken bit by bit.
pub(crate) enum Encoder {
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Gzip(GzEncoder<Vec<u8>>),
    Lz4(FrameEncoder<Vec<u8>>),
    Xz(XzEncoder<Vec<u8>>),
    /// Only the end of a stream makes all of it decodable.
    Bzip2(Vec<u8>),
}

impl Encoder {
    pub(crate) fn new(codec: &str) -> Self {
        match codec {
            "zstd" => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
                encoder.include_checksum(true).unwrap();
                Self::Zstd(encoder)
            }
            "gzip" => Self::Gzip(GzEncoder::new(Vec::new(), flate2::Compression::new(6))),
            "lz4" => {
                let info = FrameInfo::new().content_checksum(true);
                Self::Lz4(FrameEncoder::with_frame_info(info, Vec::new()))
            }
            "xz" => Self::Xz(XzEncoder::new(Vec::new(), 1)),
            "bzip2" => Self::Bzip2(Vec::new()),
            other => unreachable!("{other} is no codec"),
        }
    }

    /// Everything written since the last call, so that it can be decoded.
    pub(crate) fn part(&mut self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Zstd(encoder) => {
                encoder.write_all(bytes).unwrap();
                encoder.flush().unwrap();
                std::mem::take(encoder.get_mut())
            }
            Self::Gzip(encoder) => {
                encoder.write_all(bytes).unwrap();
                encoder.flush().unwrap();
                std::mem::take(encoder.get_mut())
            }
            Self::Lz4(encoder) => {
                encoder.write_all(bytes).unwrap();
                encoder.flush().unwrap();
                std::mem::take(encoder.get_mut())
            }
            Self::Xz(encoder) => {
                encoder.write_all(bytes).unwrap();
                encoder.flush().unwrap();
                // The end of the block is written with the next call.
                encoder.flush().unwrap();
                std::mem::take(encoder.get_mut())
            }
            Self::Bzip2(output) => {
                let level = bzip2::Compression::best();
                let mut encoder = BzEncoder::new(std::mem::take(output), level);
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Zstd(encoder) => encoder.finish().unwrap(),
            Self::Gzip(encoder) => encoder.finish().unwrap(),
            Self::Lz4(encoder) => encoder.finish().unwrap(),
            Self::Xz(encoder) => encoder.finish().unwrap(),
            Self::Bzip2(output) => output,
        }
    }
}

/// The bytes as one frame, with a checksum.
pub(crate) fn compress(codec: &str, bytes: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new(codec);
    let mut frame = encoder.part(bytes);
    frame.extend(encoder.finish());
    frame
}

/// Codecs that inputs can have and outputs cannot.
pub(crate) const READ_ONLY: [&str; 3] = ["legacy lz4", "lzma", "lzip"];

/// The bytes in one of these codecs.
pub(crate) fn read_only(codec: &str, bytes: &[u8]) -> Vec<u8> {
    let options = LzmaOptions::new_preset(6).unwrap();
    let lzma = || {
        let stream = Stream::new_lzma_encoder(&options).unwrap();
        let mut encoder = XzEncoder::new_stream(Vec::new(), stream);
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    match codec {
        "legacy lz4" => {
            let mut file = b"\x02\x21\x4c\x18".to_vec();
            for block in bytes.chunks(8 << 20) {
                let block = lz4_flex::block::compress(block);
                file.extend((block.len() as u32).to_le_bytes());
                file.extend(block);
            }
            file
        }
        "lzma" => lzma(),
        "lzip" => {
            // The data of lzma, with its end mark, behind another header: 2^23 bytes of dictionary.
            let mut file = b"LZIP\x01\x17".to_vec();
            file.extend(&lzma()[13..]);
            let mut crc = flate2::Crc::new();
            crc.update(bytes);
            file.extend(crc.sum().to_le_bytes());
            file.extend((bytes.len() as u64).to_le_bytes());
            file.extend((file.len() as u64 + 8).to_le_bytes());
            file
        }
        other => unreachable!("{other} is no codec"),
    }
}

/// A decoder of all frames of a file.
pub(crate) fn decoder<'a>(codec: &str, file: impl Read + 'a) -> Box<dyn Read + 'a> {
    match codec {
        "zstd" => Box::new(zstd::stream::read::Decoder::new(file).unwrap()),
        "gzip" => Box::new(MultiGzDecoder::new(file)),
        "lz4" => Box::new(FrameDecoder::new(file)),
        "xz" => Box::new(XzDecoder::new_multi_decoder(file)),
        "bzip2" => Box::new(MultiBzDecoder::new(file)),
        other => unreachable!("{other} is no codec"),
    }
}

/// The plain bytes of a file that must not be cut.
#[track_caller]
pub(crate) fn decompress(codec: &str, file: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    decoder(codec, file).read_to_end(&mut plain).unwrap();
    if codec == "lz4" {
        // The decoder of the crate accepts a cut between blocks; an end mark of 0 and the
        // checksum of the content end a frame.
        assert_eq!(file[file.len() - 8..file.len() - 4], [0; 4]);
    }
    plain
}

/// A producer that hands out its parts one by one, each when it is asked to.
pub(crate) struct Parts {
    encoder: Encoder,
}

impl Parts {
    pub(crate) fn new(codec: &str) -> Self {
        Self {
            encoder: Encoder::new(codec),
        }
    }

    pub(crate) fn send(&mut self, pipe: &mut impl Write, plain: &[u8]) -> io::Result<()> {
        io::copy(&mut Cursor::new(self.encoder.part(plain)), pipe)?;
        pipe.flush()
    }

    pub(crate) fn end(self, pipe: &mut impl Write) -> io::Result<()> {
        pipe.write_all(&self.encoder.finish())
    }
}

/// Lines that fill several chunks and blocks, a third of them repeats.
pub(crate) fn lines() -> Vec<u8> {
    let line = |index: u64| {
        let id = if index % 3 == 1 { index / 7 } else { index };
        format!("{id},{:x}\n", id.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    };
    (0..60_000)
        .flat_map(|index| line(index).into_bytes())
        .collect()
}
