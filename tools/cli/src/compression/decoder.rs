//! The decoders: from the bytes of a file to plain bytes, frame after frame until the file ends.
//!
//! A decoder returns what it can decode before it reads more of its file, so the data of a slow
//! producer is not held back. The adapters of the codec crates read first, and a bzip2 decoder
//! holds up to 900 kB; that is why the loop is here.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use liblzma::stream::{Action, Status as XzStatus, Stream as XzStream};
use zstd::stream::raw::{Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

use super::codec::Codec;
use super::lz4::Lz4;

/// The bytes that are read from a file at once.
const READ_BYTES: usize = 128 << 10;

/// A decoder of this codec. Like any reader it returns 0 at the end of the last frame.
///
/// # Errors
/// An error if the decoder has no memory. Its `read` fails with what was wrong in the data, and
/// with [`ErrorKind::UnexpectedEof`] if the file ends inside a frame; everything decoded before is
/// returned first.
pub(super) fn decoder<R: Read + Send + 'static>(
    codec: Codec,
    file: R,
) -> io::Result<Box<dyn Read + Send>> {
    let file = BufReader::with_capacity(READ_BYTES, file);
    Ok(match codec {
        Codec::Gzip => Box::new(Frames::new(Gzip::new, true, file)?),
        Codec::Zstd => Box::new(Frames::new(Zstd::new, false, file)?),
        Codec::Bzip2 => Box::new(Frames::new(Bzip2::new, false, file)?),
        Codec::Xz => Box::new(Frames::new(Xz::new, true, file)?),
        Codec::Lz4 => Box::new(Lz4::new(file)),
    })
}

/// The decoder of one frame: a gzip member, a zstd frame, a bzip2 or xz stream.
trait Frame: Sized {
    /// Decodes some of `input` into `output`. It may make no progress with an empty input.
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Decoded;
}

/// What one call decoded.
struct Decoded {
    consumed: usize,
    produced: usize,
    /// Whether the frame has ended.
    outcome: io::Result<bool>,
}

impl Decoded {
    /// The result of a decoder that counts its bytes: its counts before and after, in and out.
    fn counted(before: (u64, u64), after: (u64, u64), outcome: io::Result<bool>) -> Self {
        Self {
            // At most the lengths of the slices.
            consumed: (after.0 - before.0) as usize,
            produced: (after.1 - before.1) as usize,
            outcome,
        }
    }
}

struct Gzip(flate2::Decompress);

impl Gzip {
    fn new() -> io::Result<Self> {
        // 15 bits are the largest window of the format.
        Ok(Self(flate2::Decompress::new_gzip(15)))
    }

    fn counts(&self) -> (u64, u64) {
        (self.0.total_in(), self.0.total_out())
    }
}

impl Frame for Gzip {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Decoded {
        let before = self.counts();
        let outcome = self
            .0
            .decompress(input, output, flate2::FlushDecompress::None)
            .map(|status| match status {
                flate2::Status::Ok | flate2::Status::BufError => false,
                flate2::Status::StreamEnd => true,
            });
        Decoded::counted(before, self.counts(), outcome.map_err(io::Error::from))
    }
}

struct Bzip2(bzip2::Decompress);

impl Bzip2 {
    fn new() -> io::Result<Self> {
        Ok(Self(bzip2::Decompress::new(false)))
    }

    fn counts(&self) -> (u64, u64) {
        (self.0.total_in(), self.0.total_out())
    }
}

impl Frame for Bzip2 {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Decoded {
        let before = self.counts();
        let outcome = match self.0.decompress(input, output) {
            Ok(bzip2::Status::StreamEnd) => Ok(true),
            Ok(bzip2::Status::MemNeeded) => Err(ErrorKind::OutOfMemory.into()),
            // All but the first are states of a compressor.
            Ok(
                bzip2::Status::Ok
                | bzip2::Status::RunOk
                | bzip2::Status::FlushOk
                | bzip2::Status::FinishOk,
            ) => Ok(false),
            Err(error) => Err(error.into()),
        };
        Decoded::counted(before, self.counts(), outcome)
    }
}

struct Xz(XzStream);

impl Xz {
    fn new() -> io::Result<Self> {
        Ok(Self(XzStream::new_stream_decoder(u64::MAX, 0)?))
    }

    fn counts(&self) -> (u64, u64) {
        (self.0.total_in(), self.0.total_out())
    }
}

impl Frame for Xz {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Decoded {
        let before = self.counts();
        let outcome = self.0.process(input, output, Action::Run);
        let outcome = outcome.map(|status| status == XzStatus::StreamEnd);
        Decoded::counted(before, self.counts(), outcome.map_err(io::Error::from))
    }
}

struct Zstd(ZstdDecoder<'static>);

impl Zstd {
    fn new() -> io::Result<Self> {
        Ok(Self(ZstdDecoder::new()?))
    }
}

impl Frame for Zstd {
    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Decoded {
        let mut input = InBuffer::around(input);
        let mut output = OutBuffer::around(output);
        let outcome = self.0.run(&mut input, &mut output);
        Decoded {
            consumed: input.pos(),
            produced: output.pos(),
            // The decoder hints at the bytes that it needs next: none at the end of a frame.
            outcome: outcome.map(|hint| hint == 0),
        }
    }
}

/// The frames of a file, one after the other.
struct Frames<F, R: Read> {
    new: fn() -> io::Result<F>,
    /// `None` between two frames.
    frame: Option<F>,
    /// Whether zero bytes may stand between frames and at the end, as on tapes.
    padded: bool,
    file: BufReader<R>,
    /// The error behind the bytes that the last call decoded.
    failed: Option<io::Error>,
}

impl<F: Frame, R: Read> Frames<F, R> {
    fn new(new: fn() -> io::Result<F>, padded: bool, file: BufReader<R>) -> io::Result<Self> {
        Ok(Self {
            new,
            frame: Some(new()?),
            padded,
            file,
            failed: None,
        })
    }

    /// Reads up to the next frame; returns `false` at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        loop {
            let input = self.file.fill_buf()?;
            let zeros = input.iter().take_while(|byte| **byte == 0 && self.padded);
            let (zeros, len) = (zeros.count(), input.len());
            self.file.consume(zeros);
            if zeros < len {
                self.frame = Some((self.new)()?);
                return Ok(true);
            }
            if len == 0 {
                return Ok(false);
            }
        }
    }
}

impl<F: Frame, R: Read> Read for Frames<F, R> {
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
            let input = self.file.buffer();
            let had_input = !input.is_empty();
            let decoded = frame.decode(input, output);
            self.file.consume(decoded.consumed);
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
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::codec::Compression;
    use super::super::encoder::Encoder;
    use super::*;

    /// Frames of these parts, one after the other, each flushed in its middle.
    fn frames(codec: Codec, parts: &[Vec<u8>]) -> Vec<u8> {
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

    /// The plain bytes, read so many at a time, and the error behind them.
    fn decoded(codec: Codec, file: Vec<u8>, at_once: usize) -> (Vec<u8>, Option<ErrorKind>) {
        let mut decoder = decoder(codec, Short(io::Cursor::new(file), at_once)).unwrap();
        let (mut plain, mut buffer) = (Vec::new(), vec![0; at_once]);
        loop {
            match decoder.read(&mut buffer) {
                Ok(0) => return (plain, None),
                Ok(read) => plain.extend_from_slice(&buffer[..read]),
                Err(error) => return (plain, Some(error.kind())),
            }
        }
    }

    /// Some parts that compress, and some that do not.
    fn parts() -> impl Strategy<Value = Vec<Vec<u8>>> {
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
            for codec in Codec::ALL {
                let (plain, error) = decoded(codec, frames(codec, &parts), at_once);
                prop_assert_eq!((plain, error), (parts.concat(), None), "{:?}", codec);
            }
        }

        #[test]
        fn a_cut_anywhere_is_found(part in vec(any::<u8>(), 1..500), cut: prop::sample::Index) {
            for codec in Codec::ALL {
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
            for codec in Codec::ALL {
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
    }
}
