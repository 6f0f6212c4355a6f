//! Reads that a signal ends, or that do not wait for data, and the buffers that they fill.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::num::NonZeroUsize;

use crate::failure::Failure;
use crate::files::Source;
use crate::signals::{Patience, Readiness, Signals};

/// The length of a chunk's buffer, unless a record is longer or there are many threads. The bytes
/// and the results of all stages fit in the second-level cache.
pub const CHUNK_BYTES: usize = 256 << 10;

/// The bytes of a chunk in which its records are counted, to estimate how many there are: the first
/// ones, or the last ones if the others are read later.
pub(crate) const SEARCHED_BYTES: usize = 4 << 10;

/// The outcome of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// So many bytes, 0 at the end.
    Bytes(usize),
    /// There is nothing to read yet, and the reader does not [wait](Patience).
    NotYet,
    /// A signal came first.
    Signal,
}

/// What became of a chunk that was to be filled with the next records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// It has records, or a fault.
    Chunk,
    /// No record is complete yet, and the reader does not [wait](Patience).
    NotYet,
    /// The stream has ended.
    End,
}

/// How long the buffer of a chunk is, and how much of it a read fills.
#[derive(Debug, Clone, Copy)]
pub struct BufferSizes {
    /// The bytes of a buffer without a long record.
    pub usual: usize,
    /// The length of the longest record allowed.
    pub longest: usize,
    /// The most bytes of a read.
    pub most: NonZeroUsize,
}

impl BufferSizes {
    /// Keeps at least half of the buffer free after `used` bytes. The buffer grows for long
    /// records, up to the longest, and shrinks to the usual length after them.
    ///
    /// # Errors
    /// [`Failure`] if the memory is not available.
    pub fn make_room(
        self,
        bytes: &mut Vec<u8>,
        used: usize,
        source: &Source,
    ) -> Result<(), Failure> {
        let mut wanted = self.usual;
        while wanted / 2 < used {
            wanted *= 2;
        }
        // One byte more than the longest record suffices to reject it.
        let wanted = wanted.min(self.longest.saturating_add(1).max(self.usual));
        if wanted > bytes.len() {
            bytes
                .try_reserve_exact(wanted - bytes.len())
                .map_err(|_| Failure::file(source.name())(ErrorKind::OutOfMemory.into()))?;
            bytes.resize(wanted, 0);
        } else if wanted < bytes.len() && used <= self.usual / 2 {
            bytes.truncate(wanted);
            bytes.shrink_to_fit();
        }
        Ok(())
    }

    /// The part of the buffer that the next read fills, after `used` bytes. It is no longer than a
    /// buffer without a long record: otherwise the read that finds the end of a long record would
    /// bring as many bytes of short ones.
    pub fn next_room(self, bytes: &mut [u8], used: usize) -> &mut [u8] {
        let room = &mut bytes[used..];
        let most = self.most.get().min(self.usual).min(room.len());
        &mut room[..most]
    }
}

/// Reads a part of a file, up to the end of the buffer or of the file, and leaves the position in the
/// file as it is. Returns how many bytes were read, also in front of an error.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> (usize, io::Result<()>) {
    use std::os::unix::fs::FileExt;
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (filled, Err(error)),
        }
    }
    (filled, Ok(()))
}

/// Reads the data that the file has, or that it waits for. Without `signals`, it always waits, and
/// no signal ends it.
pub(crate) fn read(
    file: &File,
    signals: Option<Signals>,
    patience: Patience,
    buffer: &mut [u8],
) -> io::Result<Read> {
    loop {
        let ready = match signals {
            Some(signals) => signals.wait_for(file, patience)?,
            None => Readiness::Data,
        };
        match ready {
            Readiness::Data => {}
            Readiness::NotYet => return Ok(Read::NotYet),
            Readiness::Signal => return Ok(Read::Signal),
        }
        match (&*file).read(buffer) {
            Err(error)
                if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            // A producer that the same signal ended may close its end before the wait above
            // returns, which then finds the end of the file alone. On the main thread, which gets
            // the signal, the handler has run by now. On another one, the end may still come first.
            Ok(0) if signals.is_some_and(|signals| signals.end_file()) => {
                return Ok(Read::Signal);
            }
            outcome => return outcome.map(Read::Bytes),
        }
    }
}
