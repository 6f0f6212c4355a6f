//! Writes that wait: a file that another process made non-blocking, as a pipe to a busy terminal
//! may be, takes bytes as soon as it has room.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, IoSlice, Seek, SeekFrom, Write};

/// A file that is written to.
#[derive(Debug)]
pub(crate) struct OutputFile(File);

impl OutputFile {
    pub(crate) const fn new(file: File) -> Self {
        Self(file)
    }

    /// Another handle of the file, with the same position.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Self)
    }

    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    /// Cuts the file, or extends it with zeros.
    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    /// Repeats a write until the file has room for at least one byte.
    fn patiently(
        &mut self,
        mut write: impl FnMut(&mut File) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            match write(&mut self.0) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait_for_room(&self.0)?,
                outcome => return outcome,
            }
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(|file| file.write(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.patiently(|file| file.write_vectored(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.0.seek(position)
    }
}

/// Waits until the file has room, or its reader is gone.
#[cfg(unix)]
fn wait_for_room(file: &File) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};

    match poll(&mut [PollFd::new(file, PollFlags::OUT)], None) {
        // A signal interrupts the wait; the next write finds out whether there is room.
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn wait_for_room(_: &File) -> io::Result<()> {
    std::thread::yield_now();
    Ok(())
}
