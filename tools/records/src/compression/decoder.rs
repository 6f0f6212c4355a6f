//! The decoders: from the bytes of a file to plain bytes, frame after frame until the file ends.
//!
//! A decoder returns what it can decode before it reads more of its file, so the data of a slow
//! producer is not held back. The adapters of the codec crates read first, and a bzip2 decoder
//! holds up to 900 kB; that is why the loop is here.

use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

use liblzma::stream::{Action, Status as XzStatus, Stream as XzStream};
use zstd::stream::raw::{Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

use super::codec::{Codec, Detected, Detection, LZMA_FIELDS, may_be_next_lzma};
use super::lz4::{Lz4, skip_frames};

/// The bytes that are read from a file at once. In tests, frames have some of them, too.
pub(super) const READ_BYTES: usize = if cfg!(test) { 256 } else { 128 << 10 };

/// A decoder of a file. Like any reader it returns 0 at the end of the last frame.
///
/// # Errors
/// Its `read` fails with what was wrong in the data, and with [`ErrorKind::UnexpectedEof`] if the
/// file ends inside a frame; everything decoded before is returned first.
pub(super) trait Decoder: Read + Send {
    /// The codec, once it is known.
    fn codec(&self) -> Option<Codec>;

    /// The number of bytes that are left behind the last frame, after its end was returned: they
    /// begin no frame.
    fn bytes_behind(&self) -> u64 {
        0
    }
}

/// A decoder of a file of this codec, also from between two of its frames on; without a codec, of
/// that of the first frame behind those that are skipped.
pub(super) fn decoder<'a, R: Read + Send + 'a>(
    codec: Option<Codec>,
    file: R,
) -> Box<dyn Decoder + 'a> {
    let file = BufReader::with_capacity(READ_BYTES, file);
    match codec {
        Some(codec) => decoder_of(codec, file),
        None => Box::new(BehindSkipped {
            file: Some(file),
            decoder: None,
        }),
    }
}

fn decoder_of<'a, R: Read + Send + 'a>(codec: Codec, file: BufReader<R>) -> Box<dyn Decoder + 'a> {
    // What the tools do with bytes behind the last frame: gzip, bzip2 and lzip ignore those that do
    // not begin like a frame, the others fail.
    let ignoring = |deciding, may_begin| Behind {
        deciding,
        may_begin,
        padded: true,
    };
    let failing = |padded| Behind {
        deciding: 0,
        may_begin: |_| true,
        padded,
    };
    let behind = match codec {
        Codec::Gzip => ignoring(2, |first| b"\x1f\x8b".starts_with(first)),
        Codec::Bzip2 => ignoring(3, |first| b"BZh".starts_with(first)),
        Codec::Lzip => ignoring(4, |first| b"LZIP".starts_with(first)),
        Codec::Zstd => failing(false),
        Codec::Xz => failing(true),
        // The format has one stream. What follows is another one only if it begins like that.
        Codec::Lzma => Behind {
            deciding: LZMA_FIELDS,
            may_begin: may_be_next_lzma,
            padded: false,
        },
        Codec::Lz4 => return Box::new(Lz4::new(file)),
    };
    Box::new(Frames::new(codec, behind, file))
}

impl<R: Read + Send> Decoder for Lz4<R> {
    fn codec(&self) -> Option<Codec> {
        Some(Codec::Lz4)
    }
}

/// A file that begins with frames which decoders of zstd and lz4 skip. The first other frame
/// decides which of them the file is.
struct BehindSkipped<'a, R: Read> {
    /// `None` once that frame was found.
    file: Option<BufReader<R>>,
    decoder: Option<Box<dyn Decoder + 'a>>,
}

impl<'a, R: Read + Send + 'a> Read for BehindSkipped<'a, R> {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        if let Some(mut file) = self.file.take()
            && let Some(magic) = skip_frames(&mut file, None)?
        {
            let codec = match Codec::detect(&magic, Detection::Binary) {
                Detected::Compressed(Codec::Lz4) => Codec::Lz4,
                // It reports bytes that are no frame.
                _ => Codec::Zstd,
            };
            // As much at once as without them: what comes in front of an error depends on it.
            let file = BufReader::with_capacity(READ_BYTES, Cursor::new(magic).chain(file));
            self.decoder = Some(decoder_of(codec, file));
        }
        self.decoder
            .as_mut()
            .map_or(Ok(0), |decoder| decoder.read(output))
    }
}

impl<'a, R: Read + Send + 'a> Decoder for BehindSkipped<'a, R> {
    fn codec(&self) -> Option<Codec> {
        self.decoder.as_ref()?.codec()
    }
}

/// The decoder of one frame: a gzip or lzip member, a zstd frame, a bzip2, xz or lzma stream.
enum Frame {
    Gzip(flate2::Decompress),
    Bzip2(bzip2::Decompress),
    Xz(XzStream),
    Zstd(ZstdDecoder<'static>),
}

/// What one call decoded.
struct Decoded {
    consumed: usize,
    produced: usize,
    /// Whether the frame has ended.
    outcome: io::Result<bool>,
}

impl Frame {
    /// The decoder of a frame of this codec.
    fn new(codec: Codec) -> io::Result<Self> {
        Ok(match codec {
            // 15 bits are the largest window of the format.
            Codec::Gzip => Self::Gzip(flate2::Decompress::new_gzip(15)),
            Codec::Bzip2 => Self::Bzip2(bzip2::Decompress::new(false)),
            Codec::Xz => Self::Xz(XzStream::new_stream_decoder(u64::MAX, 0)?),
            Codec::Lzma => Self::Xz(XzStream::new_lzma_decoder(u64::MAX)?),
            Codec::Lzip => Self::Xz(XzStream::new_lzip_decoder(u64::MAX, 0)?),
            Codec::Zstd => Self::Zstd(ZstdDecoder::new()?),
            // Its frames have decoders of their own.
            Codec::Lz4 => return Err(ErrorKind::Unsupported.into()),
        })
    }

    /// The bytes in and out so far, of a decoder that counts them.
    fn counts(&self) -> (u64, u64) {
        match self {
            Self::Gzip(decoder) => (decoder.total_in(), decoder.total_out()),
            Self::Bzip2(decoder) => (decoder.total_in(), decoder.total_out()),
            Self::Xz(decoder) => (decoder.total_in(), decoder.total_out()),
            Self::Zstd(_) => (0, 0),
        }
    }

    /// Decodes some of `input` into `output`. It may make no progress with an empty input.
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Decoded {
        let before = self.counts();
        let outcome = match self {
            Self::Gzip(decoder) => decoder
                .decompress(input, output, flate2::FlushDecompress::None)
                .map(|status| status == flate2::Status::StreamEnd)
                .map_err(io::Error::from),
            Self::Bzip2(decoder) => match decoder.decompress(input, output) {
                Ok(bzip2::Status::MemNeeded) => Err(ErrorKind::OutOfMemory.into()),
                Ok(status) => Ok(status == bzip2::Status::StreamEnd),
                Err(error) => Err(error.into()),
            },
            Self::Xz(decoder) => decoder
                .process(input, output, Action::Run)
                .map(|status| status == XzStatus::StreamEnd)
                .map_err(io::Error::from),
            Self::Zstd(decoder) => {
                let mut input = InBuffer::around(input);
                let mut output = OutBuffer::around(output);
                let outcome = decoder.run(&mut input, &mut output);
                return Decoded {
                    consumed: input.pos(),
                    produced: output.pos(),
                    // The decoder hints at the bytes that it needs next: none at the end of a frame.
                    outcome: outcome.map(|hint| hint == 0),
                };
            }
        };
        let after = self.counts();
        Decoded {
            // At most the lengths of the slices.
            consumed: (after.0 - before.0) as usize,
            produced: (after.1 - before.1) as usize,
            outcome,
        }
    }
}

/// What may stand behind a frame, beside the next one.
#[derive(Debug, Clone, Copy)]
struct Behind {
    /// How many bytes decide whether a next frame begins; 0 if any bytes are taken for a frame.
    deciding: usize,
    /// Whether one may begin with these bytes, which are fewer at the end of the file. Other bytes,
    /// and all behind them, are left.
    may_begin: fn(&[u8]) -> bool,
    /// Whether zero bytes may stand there, as on tapes.
    padded: bool,
}

/// The frames of a file, one after the other.
struct Frames<R: Read> {
    codec: Codec,
    /// `None` between two frames.
    frame: Option<Frame>,
    behind: Behind,
    /// The first bytes of the next frame, which decide that it is one, and are not decoded yet.
    begun: Vec<u8>,
    file: BufReader<R>,
    bytes_behind: u64,
    /// The error behind the bytes that the last call decoded.
    failed: Option<io::Error>,
}

impl<R: Read> Frames<R> {
    fn new(codec: Codec, behind: Behind, file: BufReader<R>) -> Self {
        Self {
            codec,
            frame: None,
            behind,
            begun: Vec::new(),
            file,
            bytes_behind: 0,
            failed: None,
        }
    }

    /// Reads up to the next frame; returns `false` at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            let input = self.file.fill_buf()?;
            let is_start = self.begun.is_empty();
            if self.behind.padded && is_start && input.first() == Some(&0) {
                let zeros = input.iter().take_while(|byte| **byte == 0).count();
                self.file.consume(zeros);
                continue;
            }
            // The deciding bytes may come in pieces.
            let lacking = self.behind.deciding - self.begun.len();
            let piece = &input[..input.len().min(lacking)];
            let at_end = input.is_empty();
            if at_end && is_start {
                return Ok(false);
            }
            self.begun.extend_from_slice(piece);
            let len = piece.len();
            self.file.consume(len);
            if self.begun.len() < self.behind.deciding && !at_end {
                continue;
            }
            if !(self.behind.may_begin)(&self.begun) {
                let begun = std::mem::take(&mut self.begun).len() as u64;
                // To the end, so that no producer finds a closed pipe.
                self.bytes_behind = begun + io::copy(&mut self.file, &mut io::sink())?;
                return Ok(false);
            }
            if at_end {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.frame = Some(Frame::new(self.codec)?);
            return Ok(true);
        }
    }
}

impl<R: Read + Send> Decoder for Frames<R> {
    fn codec(&self) -> Option<Codec> {
        Some(self.codec)
    }

    fn bytes_behind(&self) -> u64 {
        self.bytes_behind
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        loop {
            let Some(frame) = &mut self.frame else {
                if self.next_frame()? {
                    continue;
                }
                return Ok(0);
            };
            let input = if self.begun.is_empty() {
                self.file.buffer()
            } else {
                &self.begun
            };
            let had_input = !input.is_empty();
            let decoded = frame.decode(input, output);
            if self.begun.is_empty() {
                self.file.consume(decoded.consumed);
            } else {
                self.begun.drain(..decoded.consumed);
            }
            let stuck = decoded.consumed == 0 && decoded.produced == 0;
            match decoded.outcome {
                Ok(true) => self.frame = None,
                Ok(false) if !stuck => {}
                Ok(false) if had_input => return Err(ErrorKind::InvalidData.into()),
                Ok(false) => {
                    if self.file.fill_buf()?.is_empty() {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) if decoded.produced == 0 => return Err(error),
                Err(error) => self.failed = Some(error),
            }
            if decoded.produced > 0 {
                return Ok(decoded.produced);
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::codec::Compression;
    use super::super::encoder::Encoder;
    use super::*;

    /// Frames of these parts, one after the other, each flushed in its middle.
    pub(in super::super) fn frames(codec: Codec, parts: &[Vec<u8>]) -> Vec<u8> {
        let compression = Compression::parse("--compress", codec.name()).unwrap();
        parts.iter().fold(Vec::new(), |frames, part| {
            let mut encoder = Encoder::new(compression, frames).unwrap();
            let (start, end) = part.split_at(part.len() / 2);
            encoder.write_all(start).unwrap();
            encoder.flush().unwrap();
            encoder.write_all(end).unwrap();
            encoder.finish().unwrap()
        })
    }

    /// A file whose reads return at most so many bytes.
    struct Short(io::Cursor<Vec<u8>>, usize);

    impl Read for Short {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(self.1);
            self.0.read(&mut buffer[..most])
        }
    }

    /// The plain bytes, read so many at a time, and the error behind them; [`ErrorKind::Other`] if
    /// bytes are left that begin no frame.
    fn decoded(codec: Codec, file: Vec<u8>, at_once: usize) -> (Vec<u8>, Option<ErrorKind>) {
        decoded_as(Some(codec), file, at_once)
    }

    /// The same of a file that may begin with frames that are skipped, without a codec.
    fn decoded_as(
        codec: Option<Codec>,
        file: Vec<u8>,
        at_once: usize,
    ) -> (Vec<u8>, Option<ErrorKind>) {
        let mut decoder = decoder(codec, Short(io::Cursor::new(file), at_once));
        let (mut plain, mut buffer) = (Vec::new(), vec![0; at_once]);
        loop {
            match decoder.read(&mut buffer) {
                Ok(0) if decoder.bytes_behind() > 0 => return (plain, Some(ErrorKind::Other)),
                Ok(0) => return (plain, None),
                Ok(read) => plain.extend_from_slice(&buffer[..read]),
                Err(error) => return (plain, Some(error.kind())),
            }
        }
    }

    /// Some parts that compress, and some that do not.
    pub(in super::super) fn parts() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let repeated = (any::<u8>(), 0..5000_usize).prop_map(|(byte, len)| vec![byte; len]);
        vec(prop_oneof![vec(any::<u8>(), 0..500), repeated], 1..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn frames_are_decoded_with_reads_of_any_length(
            parts in parts(),
            at_once in 1..3000_usize,
        ) {
            for codec in Codec::WRITTEN {
                let (plain, error) = decoded(codec, frames(codec, &parts), at_once);
                prop_assert_eq!((plain, error), (parts.concat(), None), "{:?}", codec);
            }
        }

        #[test]
        fn a_cut_anywhere_is_found(part in vec(any::<u8>(), 1..500), cut: prop::sample::Index) {
            for codec in Codec::WRITTEN {
                let mut file = frames(codec, std::slice::from_ref(&part));
                // An empty file is not compressed, and a second frame may be missing as a whole.
                let one_frame = codec != Codec::Bzip2;
                let cut = 1 + cut.index(file.len() - 1);
                file.truncate(cut);
                let (plain, error) = decoded(codec, file, 64);
                prop_assert!(part.starts_with(&plain));
                if one_frame {
                    prop_assert_eq!(error, Some(ErrorKind::UnexpectedEof), "{:?} {}", codec, cut);
                }
            }
        }

        #[test]
        fn damage_never_ends_in_a_loop_or_a_panic(
            parts in parts(),
            flips in vec((any::<prop::sample::Index>(), 1..=255_u8), 1..4),
        ) {
            for codec in Codec::WRITTEN {
                let mut file = frames(codec, &parts);
                for (at, flip) in &flips {
                    let at = at.index(file.len());
                    file[at] ^= flip;
                }
                let (plain, error) = decoded(codec, file, 1000);
                // A few bytes of a header may differ without any harm.
                prop_assert!(error.is_some() || plain == parts.concat(), "{:?}", codec);
            }
        }

        #[test]
        fn frames_that_are_skipped_come_before_any_frame(
            parts in parts(),
            skipped in vec((0..16_u8, prop_oneof![0..20_usize, 0..300_000_usize]), 1..4),
            at_once in 1..3000_usize,
        ) {
            let skipped: Vec<Vec<u8>> = (skipped.into_iter())
                .map(|(kind, length)| skippable(kind, length))
                .collect();
            for codec in [Codec::Lz4, Codec::Zstd] {
                let frames: Vec<u8> = (parts.chunks(1).zip(skipped.iter().cycle()))
                    .flat_map(|(part, skipped)| [&skipped[..], &frames(codec, part)].concat())
                    .collect();
                let file = [skipped.concat(), frames, skipped.concat()].concat();
                let found = decoded_as(None, file.clone(), at_once);
                prop_assert_eq!(found, (parts.concat(), None), "{:?}", codec);
                let cut = file[..file.len() - 1].to_vec();
                let (_, error) = decoded_as(None, cut, at_once);
                prop_assert_eq!(error, Some(ErrorKind::UnexpectedEof), "{:?}", codec);
            }
        }

        #[test]
        fn lz4_files_mix_frames_and_legacy_frames(
            parts in vec((0..3_u8, vec(any::<u8>(), 1..2000)), 1..6),
            at_once in 1..3000_usize,
        ) {
            let (mut file, mut plain) = (Vec::new(), Vec::new());
            for (kind, part) in &parts {
                match kind {
                    0 => file.extend(skippable(3, part.len())),
                    1 => file.extend(legacy(part)),
                    _ => file.extend(frames(Codec::Lz4, std::slice::from_ref(part))),
                }
                if *kind > 0 {
                    plain.extend_from_slice(part);
                }
            }
            let lz4 = Some(Codec::Lz4);
            prop_assert_eq!(decoded_as(lz4, file.clone(), at_once), (plain.clone(), None));
            let (whole, error) = decoded_as(lz4, [&file[..], b"else"].concat(), at_once);
            // Behind a legacy frame, they are longer than a block, too.
            prop_assert_eq!((whole, error), (plain, Some(ErrorKind::InvalidData)));
            file.truncate(file.len() - 1);
            let (_, error) = decoded_as(lz4, file, at_once);
            prop_assert_eq!(error, Some(ErrorKind::UnexpectedEof));
        }

        #[test]
        fn bytes_that_begin_no_frame_are_left(
            part in vec(any::<u8>(), 0..500),
            zeros in 0..600_usize,
            behind in vec(any::<u8>(), 0..20),
            at_once in 1..3000_usize,
        ) {
            for (codec, magic) in [(Codec::Gzip, &b"\x1f\x8b"[..]), (Codec::Bzip2, b"BZh")] {
                let frame = frames(codec, std::slice::from_ref(&part));
                for behind in [&behind[..], b"", magic, &magic[..1], b"plain text"] {
                    let file = [&frame[..], &vec![0; zeros], behind].concat();
                    let (plain, error) = decoded(codec, file, at_once);
                    prop_assert_eq!(&plain, &part);
                    let first = behind.iter().position(|byte| *byte != 0);
                    let behind = &behind[first.unwrap_or(behind.len())..];
                    let expected = if behind.is_empty() {
                        None
                    } else if magic.starts_with(behind) {
                        Some(ErrorKind::UnexpectedEof)
                    } else if behind.starts_with(magic) {
                        // Almost certainly damaged; where is up to the decoder.
                        error.filter(|error| *error != ErrorKind::Other)
                    } else {
                        Some(ErrorKind::Other)
                    };
                    prop_assert_eq!(error, expected, "{:?} {:?}", codec, behind);
                }
            }
        }
    }

    pub(in super::super) fn skippable(kind: u8, length: usize) -> Vec<u8> {
        let header = [0x50 + kind, 0x2a, 0x4d, 0x18];
        let bytes = (length as u32).to_le_bytes();
        [&header[..], &bytes, &vec![b'\n'; length]].concat()
    }

    /// A legacy frame of lz4 with one block.
    pub(in super::super) fn legacy(part: &[u8]) -> Vec<u8> {
        let block = lz4_flex::block::compress(part);
        let length = (block.len() as u32).to_le_bytes();
        [&[0x02, 0x21, 0x4c, 0x18][..], &length, &block].concat()
    }
}
