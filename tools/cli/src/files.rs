//! Inputs and outputs by name. `-` is a standard stream, everything is a [`File`] once open, and no
//! file is both read and written.
//!
//! Standard streams are used through a duplicate of their descriptor: the handles of the standard
//! library would buffer again and search for newlines.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use echoless::SpecError;
use same_file::Handle;

use crate::descriptors::{check_stdin, check_stdout};
use crate::failure::Failure;
use crate::replacing::ReplacementFile;
use crate::shared_position::is_at_end_of_stdout;
use crate::writing::OutputFile;

/// An input.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Stdin,
    File(PathBuf),
}

impl Source {
    /// The inputs that these paths name; standard input without a path.
    pub(crate) fn all(paths: &[PathBuf]) -> Vec<Self> {
        if paths.is_empty() {
            return vec![Self::Stdin];
        }
        paths.iter().cloned().map(Self::from_path).collect()
    }

    /// The input that `path` names on the command line.
    pub(crate) fn from_path(path: PathBuf) -> Self {
        if path.as_os_str() == "-" {
            Self::Stdin
        } else {
            Self::File(path)
        }
    }

    /// The word on the command line that names the input.
    pub(crate) fn typed(&self) -> String {
        match self {
            Self::Stdin => "-".into(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Whether this is standard input, also a pipe by another name such as `/dev/stdin`. A regular
    /// file is read from its start under each name, so its names are different inputs.
    pub(crate) fn is_stdin(&self) -> bool {
        match self {
            Self::Stdin => true,
            Self::File(path) => is_pipe_of_stdin(path),
        }
    }

    /// The name in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".into(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Checks that the input can be read, so that a bad name ends the run before it writes
    /// anything.
    ///
    /// Only regular files are opened for that: opening and closing a named pipe would end its
    /// writer.
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

    /// Opens the input.
    pub(crate) fn open(&self) -> Result<File, Failure> {
        let opened = match self {
            Self::Stdin => check_stdin().and_then(|()| standard_input()),
            Self::File(path) => File::open(path),
        };
        opened.map_err(Failure::file(self.name()))
    }

    /// [Opens](Self::open) the input without waiting for the writer of a named pipe. The caller
    /// must wait for data before each read, or it takes a pipe without a writer for an empty file.
    pub(crate) fn open_at_once(&self) -> Result<File, Failure> {
        match self {
            Self::Stdin => self.open(),
            Self::File(path) => open_without_waiting(path).map_err(Failure::file(self.name())),
        }
    }

    /// The length in bytes, if the input is a regular file.
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
        Self::total_of(sources, Self::len)
    }

    /// The sum of these lengths, if all are known; the largest number if it exceeds that.
    pub(crate) fn total_of(sources: &[Self], len: impl Fn(&Self) -> Option<u64>) -> Option<u64> {
        let lengths = sources.iter().map(len);
        lengths.reduce(|sum, len| Some(sum?.saturating_add(len?)))?
    }

    fn handle(&self) -> io::Result<Handle> {
        match self {
            Self::Stdin => Handle::stdin(),
            Self::File(path) => Handle::from_path(path),
        }
    }
}

/// Whether a path names the pipe or socket that is standard input. It is not opened: that could
/// wait for the other end of a pipe.
#[cfg(unix)]
fn is_pipe_of_stdin(path: &Path) -> bool {
    use std::os::unix::fs::{FileTypeExt, MetadataExt};
    let stdin = standard_input().and_then(|file| file.metadata());
    let (Ok(stdin), Ok(file)) = (stdin, fs::metadata(path)) else {
        return false;
    };
    let kind = stdin.file_type();
    (kind.is_fifo() || kind.is_socket()) && (stdin.dev(), stdin.ino()) == (file.dev(), file.ino())
}

#[cfg(not(unix))]
fn is_pipe_of_stdin(_: &Path) -> bool {
    false
}

/// An output.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Stdout,
    File(PathBuf),
    /// A file that is read, and replaced once the run has ended well.
    Replaced(PathBuf),
}

impl Target {
    /// The output that an optional path names on the command line.
    pub(crate) fn from_path(path: Option<PathBuf>) -> Self {
        path.map_or(Self::Stdout, Self::from)
    }

    /// The file next to this one with the positions of its records: its name with `.jsonl` after
    /// it.
    ///
    /// # Errors
    /// [`SpecError`] of `option` if this is a standard stream or a device.
    pub(crate) fn record_positions(&self, option: &'static str) -> Result<Self, SpecError> {
        match self {
            Self::Stdout => Err(SpecError::new(option, "-", "the name of a file")),
            Self::File(path) if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) => {
                let path = path.display().to_string();
                Err(SpecError::new(option, path, "the name of a file"))
            }
            Self::File(path) | Self::Replaced(path) => {
                let mut name = path.clone().into_os_string();
                name.push(".jsonl");
                Ok(Self::File(name.into()))
            }
        }
    }

    /// The name in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdout => "standard output".into(),
            Self::File(path) | Self::Replaced(path) => path.display().to_string(),
        }
    }
}

/// The output that a path names on the command line.
impl From<PathBuf> for Target {
    fn from(path: PathBuf) -> Self {
        if path.as_os_str() == "-" {
            Self::Stdout
        } else {
            Self::File(path)
        }
    }
}

/// An output that is open but not truncated yet.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) name: String,
    pub(crate) file: OutputFile,
    /// Whether this is standard output, under any name.
    pub(crate) is_stdout: bool,
    /// Whether the file still has its old content.
    holds_old: bool,
    /// Puts the file in the place of another one.
    replacement: Option<ReplacementFile>,
}

impl Opened {
    /// Whether another file can take the place of this one.
    pub(crate) const fn is_replaceable(&self) -> bool {
        self.holds_old
    }

    /// Removes the content of the file from before the run.
    pub(crate) fn truncate(&mut self) -> Result<(), Failure> {
        if self.holds_old {
            self.holds_old = false;
            self.file
                .set_len(0)
                .map_err(Failure::file(self.name.as_str()))?;
        }
        Ok(())
    }

    /// Puts the file, which is complete, in the place of the one that it replaces, if it does.
    pub(crate) fn commit(&mut self) -> Result<(), Failure> {
        let commit = self.replacement.take().map(ReplacementFile::commit_to_disk);
        commit
            .unwrap_or(Ok(()))
            .map_err(Failure::file(self.name.as_str()))
    }

    /// Whether the file replaces another one that is still in its place.
    pub(crate) const fn is_uncommitted(&self) -> bool {
        self.replacement.is_some()
    }
}

/// Opens targets, unless one of them is an input or was opened before. Does not truncate them: the
/// run may still be rejected. Dropping this removes the files that were created, as long as they
/// are empty and [`keep`](Self::keep) was not called.
#[derive(Debug)]
pub(crate) struct Targets {
    /// The inputs that are regular files. None of them is held open, as there may be more of them
    /// than a process can open.
    read: Vec<Source>,
    written: Vec<Handle>,
    /// The files that did not exist before.
    created: Vec<PathBuf>,
    stdout_taken: bool,
}

impl Targets {
    /// For a run that reads these inputs.
    pub(crate) fn new<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Self {
        // Only regular files lose data when they are overwritten.
        let regular = sources.into_iter().filter(|source| source.len().is_some());
        Self {
            read: regular.cloned().collect(),
            written: Vec::new(),
            created: Vec::new(),
            stdout_taken: false,
        }
    }

    /// Opens a target.
    pub(crate) fn open(&mut self, target: &Target) -> Result<Opened, Failure> {
        let mut is_stdout = matches!(target, Target::Stdout);
        let mut replacement = None;
        let file = match target {
            Target::Stdout => check_stdout().and_then(|()| standard_output()),
            // The file may turn out to be an input below, so it must not be truncated here.
            Target::File(path) if names_stdout(path) => {
                check_stdout().and_then(|()| open_without_truncating(path))
            }
            Target::File(path) => {
                match OpenOptions::new().write(true).create_new(true).open(path) {
                    Ok(file) => {
                        self.created.push(path.clone());
                        Ok(file)
                    }
                    // It exists, or there is another reason, which opening it shows.
                    Err(_) => open_without_truncating(path),
                }
            }
            Target::Replaced(path) => {
                ReplacementFile::begin(path).and_then(|begun| replacement.insert(begun).file())
            }
        };
        let checked = file.and_then(|mut file| {
            let handle = Handle::from_file(file.try_clone()?)?;
            if !is_stdout && Handle::stdout().is_ok_and(|stdout| stdout == handle) {
                // Use the shell's descriptor, which may be open for appending.
                file = standard_output()?;
                is_stdout = true;
            }
            let metadata = file.metadata()?;
            Ok((file, metadata, handle))
        });
        let (file, metadata, handle) = checked.map_err(Failure::file(target.name()))?;
        let regular = metadata.is_file();
        let same = |other| Failure::SameFile {
            name: target.name(),
            other,
        };
        let is_input = |source: &Source| source.handle().is_ok_and(|input| input == handle);
        if regular && self.read.iter().any(is_input) {
            return Err(same("an input"));
        }
        let is_dash = matches!(target, Target::Stdout);
        let mixes = regular || is_pipe(&metadata);
        if mixes && self.written.contains(&handle) || is_dash && self.stdout_taken {
            return Err(same("another output"));
        }
        // Messages and the summary are written at the position of standard error, over what is
        // there; with `2>&1` that is the position of standard output, too.
        let is_stderr = regular && Handle::stderr().is_ok_and(|stderr| stderr == handle);
        if is_stderr && !(is_stdout && is_at_end_of_stdout()) {
            return Err(same("standard error"));
        }
        self.written.push(handle);
        self.stdout_taken |= is_dash;
        Ok(Opened {
            name: target.name(),
            file: OutputFile::new(file),
            is_stdout,
            holds_old: regular && !is_stdout,
            replacement,
        })
    }

    /// Keeps the files that were created, even if they are empty. Without this call, a run that
    /// fails leaves none that are.
    pub(crate) fn keep(&mut self) {
        self.created.clear();
    }
}

impl Drop for Targets {
    fn drop(&mut self) {
        for path in self.created.drain(..) {
            if fs::metadata(&path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == 0) {
                // An empty file that stays does no harm, and the reason of the rejection matters.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Whether this is standard output by one of its names.
fn names_stdout(path: &Path) -> bool {
    let names = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    names.iter().any(|name| path == Path::new(name))
}

/// Writes to standard output.
pub(crate) fn write_stdout(text: &[u8]) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    check_stdout()
        .and_then(|()| output.write_all(text))
        .and_then(|()| output.flush())
        .map_err(Failure::writing_stdout)
}

fn open_without_truncating(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

/// Whether what two outputs write would be mixed by a reader.
#[cfg(unix)]
fn is_pipe(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.file_type().is_fifo() || metadata.file_type().is_socket()
}

#[cfg(not(unix))]
fn is_pipe(_: &fs::Metadata) -> bool {
    false
}

#[cfg(unix)]
fn open_without_waiting(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

    let mut options = OpenOptions::new();
    options.read(true);
    // Other files are opened as always: some devices behave differently with the flag.
    if fs::metadata(path)?.file_type().is_fifo() {
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
    options.open(path)
}

#[cfg(not(unix))]
fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::open(path)
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
