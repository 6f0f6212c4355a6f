//! Outputs that lose nothing silently: writes wait where another process made the file
//! non-blocking, as a pipe to a busy terminal may be, and errors at closing are reported.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, IoSlice, Seek, SeekFrom, Write};

/// A file that is written to, until it is closed.
#[derive(Debug)]
pub struct OutputFile(Option<File>);

impl OutputFile {
    pub(crate) const fn new(file: File) -> Self {
        Self(Some(file))
    }

    /// Closes the file. Some systems report only here that bytes were not stored: network file
    /// systems, or those with a quota. Does nothing if the file is closed.
    ///
    /// A file that is dropped is closed without a report.
    ///
    /// # Errors
    /// That of the system.
    pub fn close(&mut self) -> io::Result<()> {
        self.0.take().map_or(Ok(()), close)
    }

    /// Another handle of the file, with the same position.
    ///
    /// # Errors
    /// That of the system.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.file()?.try_clone().map(Self::new)
    }

    /// Another handle of the file for its bytes on the disk, if it is a regular file.
    ///
    /// # Errors
    /// That of the system.
    pub fn durable(&self) -> io::Result<Option<File>> {
        let file = self.file()?;
        let is_file = file.metadata()?.is_file();
        is_file.then(|| file.try_clone()).transpose()
    }

    /// Those of the open file.
    ///
    /// # Errors
    /// That of the system.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.file()?.metadata()
    }

    /// Cuts the file, or extends it with zeros.
    ///
    /// # Errors
    /// That of the system.
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        self.file()?.set_len(len)
    }

    fn file(&self) -> io::Result<&File> {
        self.0.as_ref().ok_or_else(closed)
    }

    /// Repeats a write until the file has room for at least one byte. Encoders take an interruption
    /// for a failure.
    fn patiently(
        &mut self,
        mut write: impl FnMut(&mut File) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let file = self.0.as_mut().ok_or_else(closed)?;
        loop {
            match write(file) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait_for_room(file)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }
}

fn closed() -> io::Error {
    io::Error::other("internal error: the file is closed")
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(|file| file.write(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.patiently(|file| file.write_vectored(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), File::flush)
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.0.as_mut().ok_or_else(closed)?.seek(position)
    }
}

fn close(file: File) -> io::Result<()> {
    match nix::unistd::close(file) {
        // The descriptor is free all the same.
        Ok(()) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits until the file has room, or its reader is gone.
fn wait_for_room(file: &File) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};

    match poll(&mut [PollFd::new(file, PollFlags::OUT)], None) {
        // A signal interrupts the wait; the next write finds out whether there is room.
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
