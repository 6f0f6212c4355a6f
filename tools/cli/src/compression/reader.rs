//! An input as plain bytes: compressed data is recognised by its first bytes and decompressed.
//!
//! A plain file is read straight into the buffer of the caller, as without this reader.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use super::codec::{Codec, Detected, LONGEST_SIGNATURE};
use super::decompressor::Decompressor;
use crate::reading::read;
use crate::signals::Signals;

/// The plain bytes of a file, read until a signal arrives.
#[derive(Debug)]
pub(crate) struct PlainBytes {
    state: State,
    signals: Option<Arc<Signals>>,
    /// The bytes read from the file, if it is plain.
    plain_bytes: u64,
}

#[derive(Debug)]
enum State {
    /// Nothing was read yet.
    Unread(File),
    Plain(File),
    Compressed(Decompressor),
    /// Decompression could not be started.
    Failed,
}

impl PlainBytes {
    /// A file; nothing is read yet. With `as_it_is`, the file is taken for plain. Without
    /// `signals`, none ends the reading.
    pub(crate) fn new(file: File, as_it_is: bool, signals: Option<Arc<Signals>>) -> Self {
        Self {
            state: if as_it_is {
                State::Plain(file)
            } else {
                State::Unread(file)
            },
            signals,
            plain_bytes: 0,
        }
    }

    /// The number of bytes of the file that were read so far, compressed as they are.
    pub(crate) fn file_bytes(&self) -> u64 {
        match &self.state {
            State::Unread(_) | State::Plain(_) | State::Failed => self.plain_bytes,
            State::Compressed(decompressor) => decompressor.file_bytes(),
        }
    }

    /// Blocks until there is data and reads it, 0 bytes at the end; `None` if a signal arrives
    /// first. The first call needs a buffer of [`LONGEST_SIGNATURE`] bytes or more.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match &mut self.state {
            State::Unread(_) => self.read_first(buffer),
            State::Plain(file) => {
                let read = read(file, self.signals.as_deref(), buffer)?;
                self.plain_bytes += read.unwrap_or(0) as u64;
                Ok(read)
            }
            State::Compressed(decompressor) => decompressor.read(buffer),
            State::Failed => Ok(Some(0)),
        }
    }

    /// The first read. It ends as soon as the bytes decide how the file is compressed: a slow
    /// producer may have sent no more.
    fn read_first(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        debug_assert!(buffer.len() >= LONGEST_SIGNATURE);
        let State::Unread(mut file) = std::mem::replace(&mut self.state, State::Failed) else {
            return Ok(Some(0));
        };
        let mut len = 0;
        let detected = loop {
            let Some(read) = read(&mut file, self.signals.as_deref(), &mut buffer[len..])? else {
                self.state = State::Plain(file);
                return Ok(None);
            };
            len += read;
            match Codec::detect(&buffer[..len]) {
                Detected::Undecided if read > 0 => {}
                detected => break detected,
            }
        };
        self.plain_bytes = len as u64;
        match detected {
            Detected::Plain | Detected::Undecided => {
                self.state = State::Plain(file);
                Ok(Some(len))
            }
            Detected::Compressed(codec) => {
                let first = buffer[..len].to_vec();
                let signals = self.signals.clone();
                let decompressor = Decompressor::start(codec, first, file, signals)?;
                self.state = State::Compressed(decompressor);
                self.read(buffer)
            }
        }
    }
}

impl Read for PlainBytes {
    /// A signal ends the file.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(Self::read(self, buffer)?.unwrap_or(0))
    }
}
