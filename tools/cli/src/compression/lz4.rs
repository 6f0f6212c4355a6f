//! The decoder of lz4 frames.
//!
//! That of the crate returns what it has decoded before it reads more, but it takes a file that is
//! cut between two blocks for one that has ended, and its buffers fit only frames with blocks of
//! one size. So each frame gets a decoder of its own, and the end of the file is checked.

use std::io::{self, BufReader, ErrorKind, Read};

use lz4_flex::frame::{self, FrameDecoder};

/// The frames of an lz4 file, one after the other.
pub(super) struct Lz4<R: Read> {
    /// `None` only while it is replaced.
    decoder: Option<FrameDecoder<Counted<R>>>,
    /// Whether the last frame has ended.
    between: bool,
}

/// A file, the number of bytes read from it, and whether it has ended.
struct Counted<R: Read> {
    file: BufReader<R>,
    bytes: u64,
    ended: bool,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.bytes += read as u64;
        self.ended |= read == 0;
        Ok(read)
    }
}

impl<R: Read> Lz4<R> {
    /// A decoder of all frames of the file.
    pub(super) fn new(file: BufReader<R>) -> Self {
        let file = Counted {
            file,
            bytes: 0,
            ended: false,
        };
        Self {
            decoder: Some(FrameDecoder::new(file)),
            between: false,
        }
    }
}

impl<R: Read> Lz4<R> {
    /// Skips the content of a frame whose header the decoder has read.
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        if let Some(decoder) = self.decoder.take() {
            let mut file = decoder.into_inner();
            if io::copy(&mut (&mut file).take(bytes), &mut io::sink())? < bytes {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.decoder = Some(FrameDecoder::new(file));
            self.between = true;
        }
        Ok(())
    }
}

/// The length of a frame that decoders skip, if the error reports one.
fn skippable(error: &io::Error) -> Option<u64> {
    match error.get_ref()?.downcast_ref()? {
        frame::Error::SkippableFrame(bytes) => Some(u64::from(*bytes)),
        _ => None,
    }
}

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.decoder {
            let before = decoder.get_ref().bytes;
            let read = match decoder.read(output) {
                Err(error) => match skippable(&error) {
                    Some(bytes) => {
                        self.skip(bytes)?;
                        continue;
                    }
                    None => return Err(error),
                },
                Ok(read) => read,
            };
            if read > 0 {
                self.between = false;
                return Ok(read);
            }
            // Nothing was decoded: a frame has ended, or the file.
            let file = decoder.get_ref();
            match (file.ended, self.between && file.bytes == before) {
                (false, _) => {
                    self.between = true;
                    let file = self.decoder.take().map(FrameDecoder::into_inner);
                    self.decoder = file.map(FrameDecoder::new);
                }
                (true, true) => return Ok(0),
                (true, false) => return Err(ErrorKind::UnexpectedEof.into()),
            }
        }
        Ok(0)
    }
}
