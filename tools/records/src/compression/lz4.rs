//! The decoder of lz4 files: frames, legacy frames and frames that are skipped, in any order.
//!
//! The decoder of the crate returns what it has decoded before it reads more, but it takes a file
//! that is cut between two blocks for one that has ended, its buffers fit only frames with blocks
//! of one size, and it does not find the end of a legacy frame. So each frame gets a decoder of its
//! own, and the magic numbers are read here.

use std::io::{self, BufReader, Chain, Cursor, ErrorKind, Read};
use std::ops::Range;

use lz4_flex::block;
use lz4_flex::frame::FrameDecoder;

/// The magic numbers, as they are in files.
const FRAME: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
const LEGACY: [u8; 4] = [0x02, 0x21, 0x4c, 0x18];

/// The most plain bytes of a legacy block, and the most that they are compressed to.
const LEGACY_BLOCK: usize = 8 << 20;
const LONGEST_LEGACY: usize = LEGACY_BLOCK + LEGACY_BLOCK / 255 + 16;

/// The frames of an lz4 file, one after the other.
pub(super) struct Lz4<R: Read> {
    state: State<R>,
}

enum State<R: Read> {
    /// Between two frames; the magic number of the next one may be read already.
    Between(Tracked<R>, Option<[u8; 4]>),
    Frame(Box<FrameDecoder<FromMagic<R>>>),
    Legacy(Legacy<R>),
    /// The file has ended, or a frame is damaged.
    Ended,
}

/// A frame from its magic number on.
type FromMagic<R> = Chain<Cursor<[u8; 4]>, Tracked<R>>;

/// A file, and whether it has ended.
struct Tracked<R: Read> {
    file: BufReader<R>,
    ended: bool,
}

impl<R: Read> Read for Tracked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.ended |= read == 0;
        Ok(read)
    }
}

impl<R: Read> Lz4<R> {
    /// A decoder of all frames of the file.
    pub(super) fn new(file: BufReader<R>) -> Self {
        let ended = false;
        Self {
            state: State::Between(Tracked { file, ended }, None),
        }
    }

    /// Begins the next frame.
    fn begin(mut file: Tracked<R>, magic: Option<[u8; 4]>) -> io::Result<State<R>> {
        let Some(magic) = skip_frames(&mut file, magic)? else {
            return Ok(State::Ended);
        };
        match magic {
            FRAME => {
                let frame = FrameDecoder::new(Cursor::new(magic).chain(file));
                Ok(State::Frame(Box::new(frame)))
            }
            LEGACY => Ok(State::Legacy(Legacy::new(file))),
            _ => {
                let problem = "bytes that are no lz4 frame follow";
                Err(io::Error::new(ErrorKind::InvalidData, problem))
            }
        }
    }
}

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        loop {
            self.state = match std::mem::replace(&mut self.state, State::Ended) {
                State::Between(file, magic) => Self::begin(file, magic)?,
                State::Frame(mut decoder) => {
                    let read = decoder.read(output)?;
                    if read > 0 {
                        self.state = State::Frame(decoder);
                        return Ok(read);
                    }
                    let (_, file) = decoder.into_inner().into_inner();
                    if file.ended {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                    State::Between(file, None)
                }
                State::Legacy(mut legacy) => {
                    let read = legacy.read(output)?;
                    if read > 0 {
                        self.state = State::Legacy(legacy);
                        return Ok(read);
                    }
                    match legacy.next {
                        Some(magic) => State::Between(legacy.file, Some(magic)),
                        None => State::Ended,
                    }
                }
                State::Ended => return Ok(0),
            };
        }
    }
}

/// A legacy frame: blocks with their lengths, up to the end of the file or the next frame, whose
/// magic number is longer than any block.
struct Legacy<R: Read> {
    file: Tracked<R>,
    compressed: Vec<u8>,
    plain: Vec<u8>,
    /// The part of `plain` that is decoded and not read.
    rest: Range<usize>,
    /// The magic number behind the frame.
    next: Option<[u8; 4]>,
}

impl<R: Read> Legacy<R> {
    fn new(file: Tracked<R>) -> Self {
        Self {
            file,
            compressed: Vec::new(),
            plain: vec![0; LEGACY_BLOCK],
            rest: 0..0,
            next: None,
        }
    }
}

impl<R: Read> Read for Legacy<R> {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            let Some(word) = read_word(&mut self.file)? else {
                return Ok(0);
            };
            let length = u32::from_le_bytes(word) as usize;
            if length > LONGEST_LEGACY {
                self.next = Some(word);
                return Ok(0);
            }
            self.compressed.resize(length, 0);
            self.file.read_exact(&mut self.compressed)?;
            let decoded = block::decompress_into(&self.compressed, &mut self.plain);
            let invalid = |error| io::Error::new(ErrorKind::InvalidData, error);
            self.rest = 0..decoded.map_err(invalid)?;
        }
        let plain = &self.plain[self.rest.clone()];
        let read = plain.len().min(output.len());
        output[..read].copy_from_slice(&plain[..read]);
        self.rest.start += read;
        Ok(read)
    }
}

/// Reads up to the first frame that decoders do not skip, whose `magic` number may be read already.
/// Returns its magic number, `None` at the end of the file.
pub(super) fn skip_frames(
    file: &mut impl Read,
    mut magic: Option<[u8; 4]>,
) -> io::Result<Option<[u8; 4]>> {
    loop {
        let Some(next) = magic
            .take()
            .map_or_else(|| read_word(file), |magic| Ok(Some(magic)))?
        else {
            return Ok(None);
        };
        if !matches!(next, [0x50..=0x5f, 0x2a, 0x4d, 0x18]) {
            return Ok(Some(next));
        }
        let length = read_word(file)?.ok_or(ErrorKind::UnexpectedEof)?;
        let length = u64::from(u32::from_le_bytes(length));
        if io::copy(&mut file.by_ref().take(length), &mut io::sink())? < length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Reads four bytes, `None` at the end of the file.
fn read_word(file: &mut impl Read) -> io::Result<Option<[u8; 4]>> {
    let mut word = [0; 4];
    match file.read(&mut word)? {
        0 => Ok(None),
        read => {
            file.read_exact(&mut word[read..])?;
            Ok(Some(word))
        }
    }
}
