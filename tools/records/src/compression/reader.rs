//! An input as plain bytes: compressed data is recognised by its first bytes and decompressed.
//!
//! A plain file is read straight into the buffer of the caller, as without this reader.

use std::fs::File;
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::sync::Arc;

use super::codec::{Codec, Detected, Detection, LONGEST_SIGNATURE};
use super::decompressor::Decompressor;
use crate::reading::{Read, read};
use crate::signals::{Patience, Signals};

pub use super::decompressor::loss_of_data;

/// The plain bytes of a file, read until a signal arrives.
#[derive(Debug)]
pub struct PlainBytes {
    state: State,
    signals: Option<Signals>,
    detection: Detection,
    /// The most threads that decompress it.
    threads: usize,
    /// The codec that the name of the file says.
    named: Option<Codec>,
    /// Whether the bytes are plain, in spite of the name.
    belies_name: bool,
    /// The option that reads the file as it is, if there is one.
    alternative: &'static str,
    /// The bytes read from the file, if it is plain.
    plain_bytes: u64,
    /// The plain bytes that are still to be passed over, and those of a plain file that were.
    skipped: u64,
    passed_over: u64,
}

#[derive(Debug)]
enum State {
    /// What was read does not decide yet how the file is compressed.
    Undecided {
        file: File,
        begin: Vec<u8>,
    },
    Plain {
        file: Arc<File>,
        /// Bytes read in order to decide, beyond the buffer of the first call.
        ahead: Vec<u8>,
    },
    Compressed(Decompressor),
    /// Decompression could not be started.
    Failed,
}

impl PlainBytes {
    /// A file; nothing is read yet. Without `signals`, none ends the reading.
    pub fn new(file: File, detection: Detection, signals: Option<Signals>) -> Self {
        Self {
            state: if detection == Detection::Off {
                let ahead = Vec::new();
                let file = Arc::new(file);
                State::Plain { file, ahead }
            } else {
                let begin = Vec::new();
                State::Undecided { file, begin }
            },
            signals,
            detection,
            threads: 1,
            named: None,
            belies_name: false,
            alternative: "",
            plain_bytes: 0,
            skipped: 0,
            passed_over: 0,
        }
    }

    /// Passes over so many plain bytes, which an earlier run has read. A compressed file is
    /// decompressed up to there.
    pub fn from(mut self, offset: u64) -> Self {
        self.skipped = offset;
        self
    }

    /// Decompresses a regular file on up to so many threads, if it has several frames.
    pub fn decompressed_on(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// The file has a name with this extension. If that is the one of a codec, a file that ends
    /// before its bytes decide is a cut one, and one with other bytes is
    /// [noted](Self::belied_codec).
    pub(crate) fn named(mut self, extension: Option<&str>) -> Self {
        self.named = extension.and_then(Codec::of_extension);
        self
    }

    /// The codec that the name of the file says, if its bytes are plain.
    pub(crate) fn belied_codec(&self) -> Option<Codec> {
        self.named.filter(|_| self.belies_name)
    }

    /// Names `--no-decompress` in the error for a format that is not decoded.
    pub(crate) fn or_as_it_is(mut self) -> Self {
        self.alternative = ", or --no-decompress";
        self
    }

    /// The number of bytes of the file that were read so far, compressed as they are.
    pub fn file_bytes(&self) -> u64 {
        match &self.state {
            State::Undecided { .. } | State::Plain { .. } | State::Failed => self.plain_bytes,
            State::Compressed(decompressor) => decompressor.file_bytes(),
        }
    }

    /// The position in the file: the bytes that were read and those that were passed over.
    pub(crate) fn file_position(&self) -> u64 {
        self.file_bytes() + self.passed_over
    }

    /// The codec of the bytes that were read, `None` if the file is plain.
    pub(crate) fn codec(&self) -> Option<Codec> {
        match &self.state {
            State::Compressed(decompressor) => decompressor.codec(),
            State::Undecided { .. } | State::Plain { .. } | State::Failed => None,
        }
    }

    /// The file, if it is plain.
    pub(crate) fn plain_file(&self) -> Option<&File> {
        match &self.state {
            State::Undecided { file, .. } => Some(file),
            State::Plain { file, .. } => Some(file),
            State::Compressed(_) | State::Failed => None,
        }
    }

    /// The file, if it is plain, of which parts may be read elsewhere. `None` if a signal has arrived,
    /// or bytes of it wait here: then, [`read`](Self::read) says what is to be done.
    pub(crate) fn divisible(&self) -> Option<&Arc<File>> {
        let State::Plain { file, ahead } = &self.state else {
            return None;
        };
        let is_stopped = (self.signals).is_some_and(|signals| signals.caught().is_some());
        let is_divisible = !is_stopped && self.skipped == 0 && ahead.is_empty();
        is_divisible.then_some(file)
    }

    /// Counts a part of a plain file that is read elsewhere, whose first bytes are counted already.
    pub(crate) const fn count_part(&mut self, bytes: usize, counted: usize) {
        self.plain_bytes = self.plain_bytes - counted as u64 + bytes as u64;
    }

    /// Goes on in a plain file at `offset`, which so many bytes that are counted are behind.
    pub(crate) fn go_back(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        let State::Plain { file, .. } = &self.state else {
            return Err(ErrorKind::Unsupported.into());
        };
        (&**file).seek(SeekFrom::Start(offset))?;
        self.plain_bytes -= bytes;
        Ok(())
    }

    /// What is left of the file once a read has returned the end: bytes that are not of the codec.
    pub fn bytes_behind(&self) -> Option<String> {
        match &self.state {
            State::Compressed(decompressor) => decompressor.bytes_behind(),
            State::Undecided { .. } | State::Plain { .. } | State::Failed => None,
        }
    }

    /// Reads up to the end of the buffer, of the data, or to a signal. Returns the number of bytes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(Patience::Wait, &mut buffer[filled..])? {
                Read::Bytes(0) | Read::NotYet | Read::Signal => break,
                Read::Bytes(read) => filled += read,
            }
        }
        Ok(filled)
    }

    /// Reads the data that is there, or waits for some.
    ///
    /// # Errors
    /// If the file cannot be read, or its data is damaged or not decoded.
    pub fn read(&mut self, patience: Patience, buffer: &mut [u8]) -> io::Result<Read> {
        while self.skipped > 0 {
            if let State::Plain { file, ahead } = &mut self.state
                && ahead.is_empty()
            {
                let rest = std::mem::take(&mut self.skipped);
                // Less than the length of the file, which was checked.
                (&**file).seek(SeekFrom::Current(rest.cast_signed()))?;
                self.passed_over += rest;
                break;
            }
            let most = buffer
                .len()
                .min(usize::try_from(self.skipped).unwrap_or(usize::MAX));
            match self.read_on(patience, &mut buffer[..most])? {
                Read::Bytes(0) => {
                    let problem = "ends before the place that the state has reached";
                    return Err(io::Error::new(ErrorKind::UnexpectedEof, problem));
                }
                Read::Bytes(read) => {
                    let read = read as u64;
                    self.skipped -= read;
                    if let State::Plain { .. } = self.state {
                        self.plain_bytes -= read;
                        self.passed_over += read;
                    }
                }
                other => return Ok(other),
            }
        }
        self.read_on(patience, buffer)
    }

    fn read_on(&mut self, patience: Patience, buffer: &mut [u8]) -> io::Result<Read> {
        match &mut self.state {
            State::Undecided { .. } => self.read_first(patience, buffer),
            State::Plain { ahead, .. } if !ahead.is_empty() => {
                let len = ahead.len().min(buffer.len());
                buffer[..len].copy_from_slice(&ahead[..len]);
                ahead.drain(..len);
                Ok(Read::Bytes(len))
            }
            State::Plain { file, .. } => {
                let read = read(file, self.signals, patience, buffer)?;
                if let Read::Bytes(read) = read {
                    self.plain_bytes += read as u64;
                }
                Ok(read)
            }
            State::Compressed(decompressor) => decompressor.read(patience, buffer),
            State::Failed => Ok(Read::Bytes(0)),
        }
    }

    /// The first read. It ends as soon as the bytes decide how the file is compressed: a slow
    /// producer may have sent no more.
    fn read_first(&mut self, patience: Patience, buffer: &mut [u8]) -> io::Result<Read> {
        let state = std::mem::replace(&mut self.state, State::Failed);
        let State::Undecided { file, begin } = state else {
            return Ok(Read::Bytes(0));
        };
        let mut len = begin.len().min(buffer.len());
        buffer[..len].copy_from_slice(&begin[..len]);
        let mut ahead = begin[len..].to_vec();
        let detected = loop {
            let mut more = [0; LONGEST_SIGNATURE];
            // A buffer shorter than a signature is full before its bytes decide.
            let full = len == buffer.len();
            let room = if full { &mut more } else { &mut buffer[len..] };
            let read = match read(&file, self.signals, patience, room)? {
                Read::Bytes(read) => read,
                Read::NotYet => {
                    let begin = [&buffer[..len], &ahead].concat();
                    self.state = State::Undecided { file, begin };
                    return Ok(Read::NotYet);
                }
                Read::Signal => {
                    let file = Arc::new(file);
                    self.state = State::Plain { file, ahead };
                    return Ok(Read::Signal);
                }
            };
            if full {
                ahead.extend_from_slice(&more[..read]);
            } else {
                len += read;
            }
            let decided = if ahead.is_empty() {
                Codec::detect(&buffer[..len], self.detection)
            } else {
                Codec::detect(&[&buffer[..len], &ahead].concat(), self.detection)
            };
            match decided {
                Detected::Undecided if read > 0 => {}
                decided => break decided,
            }
        };
        let first = [&buffer[..len], &ahead].concat();
        let detected = match (detected, self.named) {
            // The end of the file, within what tells the codec.
            (Detected::Undecided, Some(codec)) if !first.is_empty() && codec.may_begin(&first) => {
                Detected::Compressed(codec)
            }
            (detected, _) => detected,
        };
        match detected {
            Detected::Plain | Detected::Undecided => {
                self.belies_name = self.named.is_some() && !first.is_empty();
                self.plain_bytes = (len + ahead.len()) as u64;
                let file = Arc::new(file);
                self.state = State::Plain { file, ahead };
                Ok(Read::Bytes(len))
            }
            Detected::Foreign(command) => Err(not_decoded(command, self.alternative)),
            Detected::Compressed(_) | Detected::Skippable => {
                let codec = match detected {
                    Detected::Compressed(codec) => Some(codec),
                    _ => None,
                };
                let (signals, threads) = (self.signals, self.threads);
                let decompressor = Decompressor::start(codec, first, file, signals, threads)?;
                self.state = State::Compressed(decompressor);
                // What is decompressed already may be all for now.
                self.read_on(patience, buffer)
            }
        }
    }
}

/// The error of a file in a format that `command` decompresses. `alternative` is what else helps.
pub(super) fn not_decoded(command: &str, alternative: &str) -> io::Error {
    io::Error::new(
        ErrorKind::Unsupported,
        format!(
            "compressed in a format that is not decoded: expected its plain bytes on standard \
             input, as from {command}{alternative}"
        ),
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_length_of_the_buffer_does_not_matter() {
        let gzip = |bytes: &[u8]| {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        };
        for (content, plain) in [
            (&b""[..], &b""[..]),
            (b"B", b"B"),
            (b"BZh91AY&S", b"BZh91AY&S"),
            (b"BZh91AY&s and more", b"BZh91AY&s and more"),
            (&gzip(b"some text"), b"some text"),
        ] {
            let path = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(path.path(), content).unwrap();
            for len in 1..=20 {
                let file = path.reopen().unwrap();
                let mut bytes = PlainBytes::new(file, Detection::Text, None);
                let (mut found, mut buffer) = (Vec::new(), vec![0; len]);
                while let Read::Bytes(read @ 1..) = bytes.read(Patience::Wait, &mut buffer).unwrap()
                {
                    found.extend_from_slice(&buffer[..read]);
                }
                assert_eq!(bytes.bytes_behind(), None);
                assert_eq!((len, found.as_slice()), (len, plain));
                assert_eq!(bytes.file_bytes(), content.len() as u64);
            }
        }
    }
}
