//! Inputs and outputs by name: `-` is a standard stream, everything is a plain [`File`] once open, and no file is read and written at once.
//!
//! Standard streams are used through a copy of their descriptor: the library's own handles buffer, and look for newlines, once more.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use same_file::Handle;

use crate::failure::Failure;

/// Where records come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

impl Source {
    /// What `path` means on the command line.
    pub(crate) fn from_path(path: PathBuf) -> Self {
        if path.as_os_str() == "-" {
            Self::Stdin
        } else {
            Self::File(path)
        }
    }

    /// The name in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".into(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Finds out what can be found out without reading, so that a bad name ends the run before it has written anything.
    ///
    /// Only regular files are opened for it: opening and closing a pipe would end its writer.
    pub(crate) fn check(&self) -> Result<(), Failure> {
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

    /// Opens it for reading.
    pub(crate) fn open(&self) -> Result<File, Failure> {
        let opened = match self {
            Self::Stdin => standard_input(),
            Self::File(path) => File::open(path),
        };
        opened.map_err(Failure::file(self.name()))
    }

    /// Its length in bytes, if that is known beforehand.
    pub(crate) fn len(&self) -> Option<u64> {
        let metadata = match self {
            Self::Stdin => standard_input().and_then(|file| file.metadata()),
            Self::File(path) => fs::metadata(path),
        };
        metadata
            .ok()
            .filter(fs::Metadata::is_file)
            .map(|metadata| metadata.len())
    }

    /// The length of all of these in bytes, if all are regular files; the largest number if it
    /// exceeds that.
    pub(crate) fn total_len(sources: &[Self]) -> Option<u64> {
        let lengths = sources.iter().map(Self::len);
        lengths.reduce(|sum, len| Some(sum?.saturating_add(len?)))?
    }

    fn handle(&self) -> io::Result<Handle> {
        match self {
            Self::Stdin => Handle::stdin(),
            Self::File(path) => Handle::from_path(path),
        }
    }
}

/// Where something is written.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Stdout,
    File(PathBuf),
}

impl Target {
    /// What an optional path means on the command line.
    pub(crate) fn from_path(path: Option<PathBuf>) -> Self {
        match path {
            Some(path) if path.as_os_str() != "-" => Self::File(path),
            _ => Self::Stdout,
        }
    }

    /// The name in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdout => "standard output".into(),
            Self::File(path) => path.display().to_string(),
        }
    }
}

/// A target that is open and fine, but not emptied yet.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) name: String,
    pub(crate) file: File,
    /// Whether this is standard output, by whatever name it was asked for.
    pub(crate) is_stdout: bool,
    /// Whether what the file held before has to go.
    holds_old: bool,
}

impl Opened {
    /// Throws away what the file held before the run.
    pub(crate) fn truncate(&mut self) -> Result<(), Failure> {
        if self.holds_old {
            self.holds_old = false;
            self.file
                .set_len(0)
                .map_err(Failure::file(self.name.as_str()))?;
        }
        Ok(())
    }
}

/// Opens targets, unless one of them is an input or was opened before. None is emptied by that: the run may still be refused.
#[derive(Debug)]
pub(crate) struct Targets {
    read: Vec<Handle>,
    written: Vec<Handle>,
    stdout_taken: bool,
}

impl Targets {
    /// For a run that reads these inputs.
    pub(crate) fn new<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Self {
        // Only what has a length loses something by being overwritten.
        let regular = sources.into_iter().filter(|source| source.len().is_some());
        Self {
            read: regular.filter_map(|source| source.handle().ok()).collect(),
            written: Vec::new(),
            stdout_taken: false,
        }
    }

    /// Opens a target.
    pub(crate) fn open(&mut self, target: &Target) -> Result<Opened, Failure> {
        let mut is_stdout = matches!(target, Target::Stdout);
        let file = match target {
            Target::Stdout => standard_output(),
            // It may still turn out to be an input.
            Target::File(path) => open_without_emptying(path),
        };
        let checked = file.and_then(|mut file| {
            let handle = Handle::from_file(file.try_clone()?)?;
            if !is_stdout && Handle::stdout().is_ok_and(|stdout| stdout == handle) {
                // The shell may have opened it to append.
                file = standard_output()?;
                is_stdout = true;
            }
            let regular = file.metadata()?.is_file();
            Ok((file, regular, handle))
        });
        let (file, regular, handle) = checked.map_err(Failure::file(target.name()))?;
        let same = |other| Failure::SameFile {
            name: target.name(),
            other,
        };
        if regular && self.read.contains(&handle) {
            return Err(same("an input"));
        }
        let asked_for_stdout = matches!(target, Target::Stdout);
        if regular && self.written.contains(&handle) || asked_for_stdout && self.stdout_taken {
            return Err(same("another output"));
        }
        self.written.push(handle);
        self.stdout_taken |= asked_for_stdout;
        Ok(Opened {
            name: target.name(),
            file,
            is_stdout,
            holds_old: regular && !is_stdout,
        })
    }
}

fn open_without_emptying(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

#[cfg(unix)]
fn standard_input() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

#[cfg(unix)]
fn standard_output() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

#[cfg(windows)]
fn standard_input() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdin().as_handle().try_clone_to_owned()?.into())
}

#[cfg(windows)]
fn standard_output() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdout().as_handle().try_clone_to_owned()?.into())
}
