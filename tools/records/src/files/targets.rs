//! Outputs by name: no file is both read and written, and none is truncated while the run may still
//! be rejected.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use echoless::SpecError;
use echoless_durable::{KEYS_FOLDER, ReplacementFile, is_of_journal};
use same_file::Handle;

use super::descriptors::check_stdout;
use super::identity::FileId;
use super::inputs::Source;
use super::rotated::folder_of;
use super::standard_streams::{is_at_end_of_stdout, standard_output};
use crate::failure::Failure;
use crate::writing::OutputFile;

/// An output.
#[derive(Debug, Clone)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// The file at this path.
    File(PathBuf),
    /// A file that is read, and replaced once the run has ended well.
    Replaced(PathBuf),
}

impl Target {
    /// The output that an optional path names on the command line.
    pub fn from_path(path: Option<PathBuf>) -> Self {
        path.map_or(Self::Stdout, Self::from)
    }

    /// The file next to this one with the positions of its records: its name with `.jsonl` after
    /// it.
    ///
    /// # Errors
    /// [`SpecError`] of `option` if this is a standard stream or a device.
    pub fn record_positions(&self, option: &'static str) -> Result<Self, SpecError> {
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

    /// The path, unless this is standard output by one of its names.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(path) | Self::Replaced(path) => {
                Some(path).filter(|path| !names_stdout(path))
            }
        }
        .map(PathBuf::as_path)
    }

    /// The name in messages.
    pub fn name(&self) -> String {
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
pub struct Opened {
    /// The name in messages.
    pub name: String,
    /// Where the bytes go.
    pub file: OutputFile,
    /// Whether this is standard output, under any name.
    pub is_stdout: bool,
    /// The file, if it can be taken back: a regular one that is not standard output.
    pub id: Option<FileId>,
    /// The path of the file, if it has one.
    path: Option<PathBuf>,
    /// Whether the file still has its old content.
    holds_old: bool,
    /// Puts the file in the place of another one.
    replacement: Option<ReplacementFile>,
    /// That file as it was before it was read.
    replaced: Option<fs::Metadata>,
}

impl Opened {
    /// Whether another file can take the place of this one.
    pub const fn is_replaceable(&self) -> bool {
        self.holds_old
    }

    /// The folder that lists the file, if it has a path.
    pub fn folder(&self) -> Option<&Path> {
        self.path.as_deref().and_then(Path::parent)
    }

    /// Removes what is behind so many bytes, which earlier runs wrote and this one goes on with.
    ///
    /// # Errors
    /// [`Failure`] if the file cannot be cut.
    pub fn cut_to(&mut self, bytes: u64) -> Result<(), Failure> {
        self.holds_old = false;
        let cut = self.file.metadata().and_then(|metadata| {
            if metadata.len() > bytes {
                self.file.set_len(bytes)
            } else {
                Ok(())
            }
        });
        cut.map_err(Failure::file(self.name.as_str()))
    }

    /// Whether the path does not lead to this regular file any more.
    ///
    /// # Errors
    /// [`Failure`] if the path cannot be followed.
    pub fn has_moved(&self) -> Result<bool, Failure> {
        let Some(path) = self.path.as_deref().filter(|_| self.id.is_some()) else {
            return Ok(false);
        };
        match fs::metadata(path) {
            Ok(metadata) => Ok(FileId::of(&metadata) != self.id),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            Err(error) => Err(Failure::file(self.name.as_str())(error)),
        }
    }

    /// Opens the path of a regular file again, which is created if it is gone: to append, so that
    /// what another program cuts or appends meanwhile never leaves zeros or is overwritten, and to
    /// read what is there.
    ///
    /// # Errors
    /// [`Failure`] if that fails, or if the path leads to anything else now.
    pub fn open_to_append(&mut self) -> Result<(), Failure> {
        let Some(path) = self.path.as_deref().filter(|_| self.id.is_some()) else {
            return Ok(());
        };
        // A pipe would wait for its reader.
        let is_other = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        let opened = if is_other {
            Err(io::Error::other("is no regular file any more"))
        } else {
            let mut options = OpenOptions::new();
            options.read(true).append(true).create(true).open(path)
        };
        let opened = opened.and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(Failure::file(self.name.as_str()))?;
        self.id = FileId::of(&metadata);
        self.file = OutputFile::new(file);
        Ok(())
    }

    /// Removes the content of the file from before the run.
    ///
    /// # Errors
    /// [`Failure`] if the file cannot be truncated.
    pub fn truncate(&mut self) -> Result<(), Failure> {
        if self.holds_old {
            self.holds_old = false;
            self.file
                .set_len(0)
                .map_err(Failure::file(self.name.as_str()))?;
        }
        Ok(())
    }

    /// Puts the file, which is complete, in the place of the one that it replaces, if it does.
    ///
    /// # Errors
    /// [`Failure`] if the other file has changed meanwhile, or cannot be replaced.
    pub fn commit(&mut self) -> Result<(), Failure> {
        let Some(replacement) = self.replacement.take() else {
            return Ok(());
        };
        let now = self
            .path
            .as_deref()
            .and_then(|path| fs::metadata(path).ok());
        let state = |file: &fs::Metadata| (FileId::of(file), file.len(), file.modified().ok());
        let committed = if now.as_ref().map(state) == self.replaced.as_ref().map(state) {
            replacement.commit_to_disk()
        } else {
            let problem = "has changed meanwhile, and is left as it was";
            Err(io::Error::other(problem))
        };
        committed.map_err(Failure::file(self.name.as_str()))
    }

    /// Whether the file replaces another one that is still in its place.
    pub const fn is_uncommitted(&self) -> bool {
        self.replacement.is_some()
    }
}

/// Opens targets, unless one of them is an input or was opened before. Does not truncate them: the
/// run may still be rejected. Dropping this removes the files that were created, as long as they
/// are empty and [`keep`](Self::keep) was not called.
#[derive(Debug)]
pub struct Targets {
    /// The inputs that are regular files. None of them is held open, as there may be more of them
    /// than a process can open.
    read: Vec<Source>,
    /// The same of those whose records count as seen.
    known: Vec<Source>,
    /// The same of the files that options are read from.
    settings: Vec<Source>,
    /// The folder of the state.
    state: Option<PathBuf>,
    written: Vec<Handle>,
    /// The files that did not exist before.
    created: Vec<PathBuf>,
    stdout_taken: bool,
}

impl Targets {
    /// For a run that reads these inputs.
    pub fn new<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Self {
        Self {
            read: regular(sources),
            known: Vec::new(),
            settings: Vec::new(),
            state: None,
            written: Vec::new(),
            created: Vec::new(),
            stdout_taken: false,
        }
    }

    /// Some of the inputs are known: their records count as seen.
    pub fn with_known(mut self, known: &[Source]) -> Self {
        self.known = regular(known);
        self
    }

    /// Reads options from these files, too.
    pub fn with_settings(mut self, settings: &[Source]) -> Self {
        self.settings = regular(settings);
        self
    }

    /// Keeps a state in this folder.
    pub fn with_state(mut self, folder: Option<&Path>) -> Self {
        self.state = folder.map(Path::to_owned);
        self
    }

    /// Opens a target.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be opened, is read, or is written already.
    pub fn open(&mut self, target: &Target) -> Result<Opened, Failure> {
        self.open_as(target, false)
    }

    /// Creates a file where nothing is yet, also no link.
    ///
    /// # Errors
    /// [`Failure::File`] of [`AlreadyExists`](io::ErrorKind::AlreadyExists) if something is there;
    /// that of the system.
    pub fn create(&mut self, path: PathBuf) -> Result<Opened, Failure> {
        self.open_as(&Target::File(path), true)
    }

    fn open_as(&mut self, target: &Target, must_be_new: bool) -> Result<Opened, Failure> {
        let mut is_stdout = matches!(target, Target::Stdout);
        if let (Some(folder), Target::File(path) | Target::Replaced(path)) = (&self.state, target) {
            // Before it could be created there.
            check_outside_of_state(folder, path)?;
        }
        let mut replacement = None;
        let replaced = match target {
            Target::Replaced(path) => fs::metadata(path).ok(),
            Target::Stdout | Target::File(_) => None,
        };
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
                    Err(error) if must_be_new => Err(error),
                    // It exists, or there is another reason, which opening it shows.
                    Err(_) => open_without_truncating(path),
                }
            }
            Target::Replaced(path) => ReplacementFile::begin(path)
                .and_then(|begun| replacement.insert(begun).file().try_clone()),
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
        let is_regular = metadata.is_file();
        let same = |other: &str| Failure::SameFile {
            name: target.name(),
            other: other.into(),
        };
        let is_known = |source: &&Source| source.handle().is_ok_and(|known| known == handle);
        let is_input = |source: &Source| source.handle().is_ok_and(|input| input == handle);
        if is_regular && let Some(known) = self.known.iter().find(is_known) {
            let name = known.typed();
            return Err(same(&format!(
                "a file of --known; to add the records to it, end the command with | tee -a {name}"
            )));
        }
        if is_regular && self.read.iter().any(is_input) {
            return Err(same("an input"));
        }
        if let Some(folder) = &self.state
            && is_regular
            && state_files(folder).any(|file| is_input(&Source::File(file)))
        {
            return Err(of_state(target.name(), folder));
        }
        if is_regular && self.settings.iter().any(is_input) {
            return Err(same("a file that an option reads"));
        }
        let is_dash = matches!(target, Target::Stdout);
        let mixes = is_regular || is_pipe(&metadata);
        if mixes && self.written.contains(&handle) || is_dash && self.stdout_taken {
            return Err(same("another output"));
        }
        // Messages and the summary are written at the position of standard error, over what is
        // there; with `2>&1` that is the position of standard output, too.
        let is_stderr = is_regular && Handle::stderr().is_ok_and(|stderr| stderr == handle);
        if is_stderr && !(is_stdout && is_at_end_of_stdout()) {
            return Err(same("standard error"));
        }
        self.written.push(handle);
        self.stdout_taken |= is_dash;
        Ok(Opened {
            name: target.name(),
            file: OutputFile::new(file),
            is_stdout,
            id: FileId::of(&metadata).filter(|_| !is_stdout),
            path: match target {
                Target::Stdout => None,
                Target::File(path) | Target::Replaced(path) => Some(path.clone()),
            },
            holds_old: is_regular && !is_stdout,
            replacement,
            replaced,
        })
    }

    /// Keeps the files that were created, even if they are empty. Without this call, a run that
    /// fails leaves none that are.
    pub fn keep(&mut self) {
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

/// The files of the state in a folder.
fn state_files(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| is_of_journal(&entry.file_name()));
    files.map(|entry| entry.path())
}

fn of_state(name: String, folder: &Path) -> Failure {
    let other = format!("a file of the state {}", folder.display());
    Failure::SameFile { name, other }
}

/// Checks that a path does not name a file that the state in a folder has, or may make.
///
/// # Errors
/// [`Failure::SameFile`] if it does.
pub fn check_outside_of_state(folder: &Path, path: &Path) -> Result<(), Failure> {
    // A link to a file that is not there creates it.
    let resolved = fs::canonicalize(path).unwrap_or_else(|_| linked(path));
    let is_inside =
        |folder: &Path| same_file::is_same_file(folder_of(&resolved), folder).unwrap_or(false);
    let is_own = resolved.file_name().is_some_and(is_of_journal) && is_inside(folder);
    if is_own || is_inside(&folder.join(KEYS_FOLDER)) {
        return Err(of_state(path.display().to_string(), folder));
    }
    Ok(())
}

/// What a link to no file names, or several one after the other; else the path itself.
fn linked(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // No system follows more.
    for _ in 0..40 {
        let Ok(target) = fs::read_link(&path) else {
            break;
        };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}

/// The regular files among these, also one that is waited for: only they lose data when they are
/// overwritten.
fn regular<'a>(sources: impl IntoIterator<Item = &'a Source>) -> Vec<Source> {
    let is_regular = |source: &&Source| source.length().is_some() || source.is_to_come();
    let regular = sources.into_iter().filter(is_regular);
    regular.cloned().collect()
}

/// Whether this is standard output by one of its names.
fn names_stdout(path: &Path) -> bool {
    let names = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
    names.iter().any(|name| path == Path::new(name))
}

fn open_without_truncating(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

/// Whether what two outputs write would be mixed by a reader.
fn is_pipe(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.file_type().is_fifo() || metadata.file_type().is_socket()
}
