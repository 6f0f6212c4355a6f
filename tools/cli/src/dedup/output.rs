//! Writes runs of records straight out of a chunk, many in one system call.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Write};

use super::chunk::Chunk;
use super::records::Framing;
use super::runs::Runs;
use crate::failure::Failure;

/// How many runs go into one system call; no system takes more than 1024.
const RUNS_AT_ONCE: usize = 512;

/// A file that records are written to. Nothing is held back: after a call, all that was given is written.
#[derive(Debug)]
pub(crate) struct Sink {
    name: String,
    file: File,
    framing: Framing,
    /// Whether what was written ends in a record without terminator.
    unterminated: bool,
    bytes: u64,
}

impl Sink {
    /// A sink for records that are framed like this.
    pub(crate) fn new(name: String, file: File, framing: Framing) -> Self {
        Self {
            name,
            file,
            framing,
            unterminated: false,
            bytes: 0,
        }
    }

    /// How many bytes were written.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the runs of a chunk's records.
    pub(crate) fn write_runs(&mut self, chunk: &Chunk, runs: Runs<'_>) -> Result<(), Failure> {
        self.write_all(runs.map(|records| chunk.bytes_of(records)))
    }

    /// Writes one record.
    pub(crate) fn write_record(&mut self, record: &[u8]) -> Result<(), Failure> {
        self.write_all(Some(record).into_iter())
    }

    /// Writes what is no record.
    pub(crate) fn write_text(&mut self, text: &str) -> Result<(), Failure> {
        self.file
            .write_all(text.as_bytes())
            .map_err(Failure::writing(&self.name))
    }

    fn write_all<'a>(&mut self, mut pieces: impl Iterator<Item = &'a [u8]>) -> Result<(), Failure> {
        let mut slices = [IoSlice::new(&[]); RUNS_AT_ONCE];
        loop {
            let mut filled = 0;
            let mut last = None;
            // Records never run together: the terminator that the input did not have comes when it is known that more follows.
            let reserved = usize::from(self.unterminated);
            for (slice, piece) in slices[reserved..].iter_mut().zip(&mut pieces) {
                *slice = IoSlice::new(piece);
                last = piece.last();
                filled += 1;
            }
            let Some(last) = last else {
                return Ok(());
            };
            if self.unterminated {
                slices[0] = IoSlice::new(self.framing.full_terminator());
            }
            self.bytes += write_slices(&mut self.file, &mut slices[..reserved + filled])
                .map_err(Failure::writing(&self.name))?;
            self.unterminated = *last != self.framing.terminator();
            if reserved + filled < RUNS_AT_ONCE {
                return Ok(());
            }
        }
    }
}

/// Writes all of the slices and tells how many bytes that were.
fn write_slices(file: &mut impl Write, mut slices: &mut [IoSlice<'_>]) -> io::Result<u64> {
    let mut bytes = 0;
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes += written as u64;
                IoSlice::advance_slices(&mut slices, written);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}
