//! Inputs by name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use same_file::Handle;

use super::descriptors::check_stdin;
use super::rotated::folder_of;
use super::standard_streams::standard_input;
use crate::failure::Failure;
use crate::reading::{self, Read};
use crate::signals::{Patience, Signals};

/// The bytes that are copied at once.
const COPIED_BYTES: usize = 256 << 10;

/// An input.
#[derive(Debug, Clone)]
pub enum Source {
    /// Standard input.
    Stdin,
    /// The file at this path.
    File(PathBuf),
    /// Network interfaces of these names, which are captured elsewhere.
    Interfaces(String),
    /// The copy of an input that can be read only once.
    Spooled(Arc<Spool>),
}

/// An input, and its bytes in a file without a name, which the system removes once it is closed, also
/// if the process is killed.
#[derive(Debug)]
pub struct Spool {
    of: Source,
    copy: File,
    /// Whether it ends where a signal has arrived.
    is_cut: bool,
}

impl Source {
    /// The inputs that these paths name; standard input without a path.
    pub fn all(paths: &[PathBuf]) -> Vec<Self> {
        if paths.is_empty() {
            return vec![Self::Stdin];
        }
        paths.iter().cloned().map(Self::from_path).collect()
    }

    /// The input that `path` names on the command line.
    pub fn from_path(path: PathBuf) -> Self {
        if path.as_os_str() == "-" {
            Self::Stdin
        } else {
            Self::File(path)
        }
    }

    /// The word on the command line that names the input.
    pub fn typed(&self) -> String {
        match self {
            Self::Stdin => "-".into(),
            Self::File(path) => path.display().to_string(),
            Self::Spooled(spool) => spool.of.typed(),
            Self::Interfaces(names) => names.clone(),
        }
    }

    /// Whether this is standard input, also a pipe by another name such as `/dev/stdin`. A regular
    /// file is read from its start under each name, so its names are different inputs.
    pub fn is_stdin(&self) -> bool {
        match self {
            Self::Stdin => true,
            Self::File(path) => is_pipe_of_stdin(path),
            Self::Spooled(spool) => spool.of.is_stdin(),
            Self::Interfaces(_) => false,
        }
    }

    /// The name in messages.
    pub fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".into(),
            Self::File(path) => path.display().to_string(),
            Self::Spooled(spool) => spool.of.name(),
            Self::Interfaces(names) => names.clone(),
        }
    }

    /// The extension of its name, if it has one.
    pub(crate) fn extension(&self) -> Option<&str> {
        match self {
            Self::Stdin | Self::Interfaces(_) => None,
            Self::File(path) => path.extension()?.to_str(),
            Self::Spooled(spool) => spool.of.extension(),
        }
    }

    /// Checks that the input can be read, so that a bad name ends the run before it writes
    /// anything.
    ///
    /// Only regular files are opened for that: opening and closing a named pipe would end its
    /// writer.
    ///
    /// # Errors
    /// [`Failure`] if it cannot.
    pub fn check(&self) -> Result<(), Failure> {
        let Self::File(path) = self else {
            return Ok(());
        };
        let checked = fs::metadata(path).and_then(|metadata| {
            if metadata.is_dir() {
                Err(io::ErrorKind::IsADirectory.into())
            } else if metadata.is_file() {
                File::open(path).map(drop)
            } else {
                Ok(())
            }
        });
        checked.map_err(Failure::file(self.name()))
    }

    /// Whether there is no file of this name, and its folder may get one.
    pub fn is_to_come(&self) -> bool {
        let Self::File(path) = self else {
            return false;
        };
        let is_missing =
            fs::metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        is_missing && folder_of(path).is_dir()
    }

    /// Opens the input.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be opened.
    pub fn open(&self) -> Result<File, Failure> {
        self.open_file().map_err(Failure::file(self.name()))
    }

    /// As [`open`](Self::open), with an error that does not name the input.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open_file(&self) -> io::Result<File> {
        match self {
            Self::Stdin => check_stdin().and_then(|()| standard_input()),
            Self::File(path) => File::open(path),
            Self::Spooled(spool) => spool.open(),
            Self::Interfaces(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// [Opens](Self::open) the input without waiting for the writer of a named pipe. The caller
    /// must wait for data before each read, or it takes a pipe without a writer for an empty file.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be opened.
    pub fn open_at_once(&self) -> Result<File, Failure> {
        match self {
            Self::Stdin | Self::Spooled(_) | Self::Interfaces(_) => self.open(),
            Self::File(path) => open_without_waiting(path).map_err(Failure::file(self.name())),
        }
    }

    /// Whether the input can be read several times: a regular file with a name, a folder or a
    /// missing file, which is reported when it is [checked](Self::check), or a copy.
    pub fn is_rereadable(&self) -> bool {
        match self {
            Self::Stdin | Self::Interfaces(_) => false,
            Self::File(path) => {
                fs::metadata(path).map_or(true, |metadata| metadata.is_file() || metadata.is_dir())
            }
            Self::Spooled(_) => true,
        }
    }

    /// Whether the input is standard input or a pipe with a name. A device may have no end.
    pub fn is_pipe(&self) -> bool {
        match self {
            Self::Stdin => true,
            Self::File(path) => is_pipe(path),
            Self::Spooled(_) | Self::Interfaces(_) => false,
        }
    }

    /// Copies the input, which can be read only once, to a file in this folder, up to its end or to
    /// a signal.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be read, or the folder has no room for it.
    pub fn spool(&self, folder: &Path, signals: Signals) -> Result<Self, Failure> {
        let copy_of = || format!("a copy of {} in {}", self.name(), folder.display());
        let input = self.open_at_once()?;
        let mut copy = tempfile::tempfile_in(folder).map_err(Failure::file(copy_of()))?;
        let mut bytes = vec![0; COPIED_BYTES];
        loop {
            let read = reading::read(&input, Some(signals), Patience::Wait, &mut bytes);
            let Read::Bytes(read @ 1..) = read.map_err(Failure::file(self.name()))? else {
                break;
            };
            copy.write_all(&bytes[..read])
                .map_err(Failure::file(copy_of()))?;
        }
        let of = self.clone();
        let is_cut = signals.caught().is_some();
        Ok(Self::Spooled(Arc::new(Spool { of, copy, is_cut })))
    }

    /// Whether the input is a copy that ends where a signal has arrived, maybe inside a record.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(self, Self::Spooled(spool) if spool.is_cut)
    }

    /// The length in bytes, if the input is a regular file.
    pub fn length(&self) -> Option<u64> {
        let metadata = match self {
            Self::Stdin => standard_input().and_then(|file| file.metadata()),
            Self::File(path) => fs::metadata(path),
            Self::Spooled(spool) => spool.copy.metadata(),
            Self::Interfaces(_) => return None,
        };
        metadata
            .ok()
            .filter(fs::Metadata::is_file)
            .map(|metadata| metadata.len())
    }

    /// The length of all of these in bytes, if all are regular files; the largest number if it
    /// exceeds that.
    pub fn total_len(sources: &[Self]) -> Option<u64> {
        Self::total_of(sources, Self::length)
    }

    /// The sum of these lengths, if all are known; the largest number if it exceeds that.
    pub fn total_of(sources: &[Self], len: impl Fn(&Self) -> Option<u64>) -> Option<u64> {
        let lengths = sources.iter().map(len);
        lengths.reduce(|sum, len| Some(sum?.saturating_add(len?)))?
    }

    pub(super) fn handle(&self) -> io::Result<Handle> {
        match self {
            Self::Stdin => Handle::stdin(),
            Self::File(path) => Handle::from_path(path),
            Self::Spooled(spool) => Handle::from_file(spool.open()?),
            Self::Interfaces(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl Spool {
    /// Opens the copy at its start.
    fn open(&self) -> io::Result<File> {
        // A thread that decompresses may still read for the pass before, at a position of its own.
        #[cfg(target_os = "linux")]
        if let Ok(file) = File::open(format!("/proc/self/fd/{}", self.copy.as_raw_fd())) {
            return Ok(file);
        }
        // All that have it open share one position.
        let mut copy = self.copy.try_clone()?;
        copy.rewind()?;
        Ok(copy)
    }
}

/// Whether a path names the pipe or socket that is standard input. It is not opened: that could
/// wait for the other end of a pipe.
fn is_pipe_of_stdin(path: &Path) -> bool {
    let stdin = standard_input().and_then(|file| file.metadata());
    let (Ok(stdin), Ok(file)) = (stdin, fs::metadata(path)) else {
        return false;
    };
    let kind = stdin.file_type();
    (kind.is_fifo() || kind.is_socket()) && (stdin.dev(), stdin.ino()) == (file.dev(), file.ino())
}

fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

pub(super) fn open_without_waiting(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    // Other files are opened as always: some devices behave differently with the flag.
    if fs::metadata(path)?.file_type().is_fifo() {
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
    options.open(path)
}
