//! Replacing a file as a whole, so that a crash leaves the old or the new content. Only a regular
//! file is ever replaced.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a file beside `path`, and gives it that name once it is complete and on the disk. Until
/// then, and after any error, the old file is as it was; a loss of power leaves the old or the new
/// one. [`ReplacementFile`] says what happens to links, modes and devices.
///
/// # Errors
/// That of `write`, or of [`ReplacementFile`].
///
/// # Examples
/// ```
/// use std::fs;
/// use std::io::{self, Write};
/// use echoless_durable::replace_file;
/// let path = std::env::temp_dir().join(format!("{}.replaced", std::process::id()));
/// replace_file(&path, |file| file.write_all(b"old"))?;
/// let failed: io::Result<()> = replace_file(&path, |file| {
///     file.write_all(b"half of the ne")?;
///     Err(io::Error::other("unplugged"))
/// });
/// assert!(failed.is_err());
/// assert_eq!(fs::read(&path)?, b"old");
/// # fs::remove_file(path)?;
/// # Ok::<(), io::Error>(())
/// ```
pub fn replace_file<T, E: From<io::Error>>(
    path: impl AsRef<Path>,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    let mut next = ReplacementFile::begin(path.as_ref())?;
    let written = write(&mut next.file)?;
    next.commit_to_disk()?;
    Ok(written)
}

/// The new content of a file, beside the old one until it takes its place.
///
/// - A symbolic link stays, and the file that it points to is replaced; if there is none, it is
///   created.
/// - The mode of an old file is kept, and so are its owner and group as far as this process may
///   give files away. Until then nobody else can read the new content. Other hard links of the old
///   file keep the old content.
/// - A pipe or a character device is never replaced: it is written to, and so is the end of a file
///   that is open in a process and named by that (`/dev/stdout`, `/proc/self/fd/3`). What was
///   written before an error stays there.
/// - Folders, sockets and block devices are errors.
///
/// Dropping it leaves the old file as it was, and nothing beside it. A process that is killed
/// leaves a file with a name of the form `.echoless-PID-N.new` in the folder.
///
/// # Examples
/// ```
/// use std::fs;
/// use std::io::Write;
/// use echoless_durable::ReplacementFile;
/// let path = std::env::temp_dir().join(format!("{}.begun", std::process::id()));
/// fs::write(&path, "old")?;
/// let next = ReplacementFile::begin(&path)?;
/// next.file().write_all(b"new")?;
/// assert_eq!(fs::read(&path)?, b"old");
/// next.commit_to_disk()?;
/// assert_eq!(fs::read(&path)?, b"new");
/// # fs::remove_file(path)?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct ReplacementFile {
    file: File,
    /// `None` if the file itself is written to.
    replaced: Option<Replaced>,
}

/// A file that is to be replaced.
#[derive(Debug)]
struct Replaced {
    /// The file itself, not a symbolic link to it.
    path: PathBuf,
    /// The one that was there when the new content was begun.
    old: Option<Metadata>,
    aside: Aside,
}

impl ReplacementFile {
    /// An empty new content.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) if the path is of something that can neither be
    /// replaced nor be written to; those of the system.
    pub fn begin(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let old = match fs::metadata(path) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let is_file = old.as_ref().is_none_or(Metadata::is_file);
        let Some(path) = followed(path)?.filter(|_| is_file) else {
            let file = open_stream(path, is_file)?;
            let replaced = None;
            return Ok(Self { file, replaced });
        };
        let (file, aside) = create_beside(&path, old.is_some())?;
        let replaced = Some(Replaced { path, old, aside });
        Ok(Self { file, replaced })
    }

    /// The file to write the new content to.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// [Commits](Self::commit) once the new content is on the disk, so that a loss of power leaves
    /// the old or the new one. Returns once the name is on the disk, too ([`sync_folder`]).
    ///
    /// # Errors
    /// As [`commit`](Self::commit). If the folder cannot be synced, the new one is in its place all
    /// the same.
    pub fn commit_to_disk(self) -> io::Result<()> {
        let Some(replaced) = &self.replaced else {
            return Ok(());
        };
        self.file.sync_all()?;
        let folder = folder_of(&replaced.path).to_owned();
        self.commit()?;
        sync_folder(&folder)
    }

    /// Gives the new content the name, the mode and the owner of the old one, in one step.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) if something that is no regular file has the name
    /// by now; those of the system. The old file is as it was.
    pub fn commit(self) -> io::Result<()> {
        let Some(Replaced {
            path,
            old,
            mut aside,
        }) = self.replaced
        else {
            return Ok(());
        };
        // The one that was there at first may have been removed, or have other permissions.
        let now = present(&path)?;
        if let Some(old) = now.or(old) {
            keep_owner(&self.file, &old);
            self.file.set_permissions(old.permissions())?;
        }
        // Before the rename, as some systems demand.
        drop(self.file);
        // Once more: the rename replaces links and devices, too.
        present(&path)?;
        fs::rename(&aside.0, &path)?;
        // It has another name now, and there is nothing to remove.
        aside.0 = PathBuf::new();
        Ok(())
    }
}

/// Makes the names in a folder durable; the empty path is the current folder.
///
/// A folder that cannot be read, or whose file system syncs none, is left to the system, and so are
/// all of them elsewhere than on Unix.
///
/// # Errors
/// Those of the system.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let folder = match File::open(or_current(folder)) {
        // Only its owner can open it, although others may change names in it.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(()),
        opened => opened?,
    };
    match folder.sync_all() {
        Err(error) if is_unsupported(&error) => Ok(()),
        synced => synced,
    }
}

/// Whether a file system says that it syncs no folders.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::InvalidInput | ErrorKind::Unsupported
    )
}

/// The regular file with this name, if there is any.
fn present(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(file) if file.is_file() => Ok(Some(file)),
        Ok(other) => Err(no_file(&other)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn no_file(found: &Metadata) -> io::Error {
    let kind = kind_of(found);
    let reason = format!("is {kind}: expected a file, a pipe or a character device");
    io::Error::new(ErrorKind::InvalidInput, reason)
}

#[cfg(unix)]
fn kind_of(found: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;

    let kind = found.file_type();
    if kind.is_dir() {
        "a folder"
    } else if kind.is_symlink() {
        "a symbolic link by now"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_block_device() {
        "a block device"
    } else if kind.is_char_device() {
        "a character device by now"
    } else if kind.is_fifo() {
        "a pipe by now"
    } else {
        "no file"
    }
}

#[cfg(not(unix))]
fn kind_of(_: &Metadata) -> &'static str {
    "no file"
}

/// Whether bytes can be written to it, and stay nowhere.
#[cfg(unix)]
fn is_stream(found: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;

    found.file_type().is_fifo() || found.file_type().is_char_device()
}

#[cfg(not(unix))]
fn is_stream(_: &Metadata) -> bool {
    false
}

/// Opens a pipe or a device, or a file that is open in a process. Waits for the reader of a pipe.
fn open_stream(path: &Path, is_file: bool) -> io::Result<File> {
    let is_as_expected = |found: &Metadata| is_stream(found) || is_file && found.is_file();
    let found = fs::metadata(path)?;
    if !is_as_expected(&found) {
        return Err(no_file(&found));
    }
    let file = OpenOptions::new().append(true).open(path)?;
    let opened = file.metadata()?;
    if is_as_expected(&opened) {
        Ok(file)
    } else {
        Err(no_file(&opened))
    }
}

/// The most links that are followed, as in Linux.
const MOST_LINKS: usize = 40;

/// What a symbolic link, or several one after the other, points to. `None` for a file that is open
/// in a process: the link to it holds no name that could be replaced.
fn followed(path: &Path) -> io::Result<Option<PathBuf>> {
    let mut path = path.to_owned();
    for _ in 0..=MOST_LINKS {
        let Ok(target) = fs::read_link(&path) else {
            return Ok(Some(path));
        };
        let folder = folder_of(&path);
        if fs::canonicalize(or_current(folder)).is_ok_and(|folder| folder.starts_with("/proc")) {
            return Ok(None);
        }
        path = folder.join(target);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Removes the file when it is dropped, unless its path is empty by then.
#[derive(Debug)]
struct Aside(PathBuf);

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // The error before is the one to report.
            let _ = fs::remove_file(&self.0);
        }
    }
}

const ASIDE_START: &str = ".echoless-";
const ASIDE_END: &str = ".new";

/// Whether a file of this name is new content that a killed process may have left. Where no other
/// process replaces files, it can be removed.
///
/// # Examples
/// ```
/// use echoless_durable::is_left_aside;
/// assert!(is_left_aside(".echoless-4711-0.new".as_ref()));
/// assert!(!is_left_aside("filter.new".as_ref()));
/// ```
#[must_use]
pub fn is_left_aside(name: &OsStr) -> bool {
    let numbers = name.to_str().and_then(|name| {
        let numbers = name.strip_prefix(ASIDE_START)?.strip_suffix(ASIDE_END)?;
        numbers.split_once('-')
    });
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// Creates a file in the same folder, whose name no other thread and no other process uses. A file
/// that will get the permissions of an old one is private until then.
fn create_beside(path: &Path, is_private: bool) -> io::Result<(File, Aside)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    if path.file_name().is_none() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "no name of a file"));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    if is_private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let _ = is_private;
    loop {
        // Relaxed: only the number must be new.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Not with the name of the file, which may have the greatest length already.
        let process = std::process::id();
        let aside = path.with_file_name(format!("{ASIDE_START}{process}-{number}{ASIDE_END}"));
        match options.open(&aside) {
            Ok(file) => return Ok((file, Aside(aside))),
            // That of a killed process with the same id.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Only the administrator may give files away: without that right, the new file belongs to the user
/// of this process, as with `sed -i`.
#[cfg(unix)]
fn keep_owner(next: &File, old: &Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};

    // The group may be kept even where the owner cannot.
    let _ = fchown(next, None, Some(old.gid()));
    let _ = fchown(next, Some(old.uid()), None);
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Metadata) {}

/// The folder of a path; that of a name alone is the current one.
fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// The folder of a relative path without folders is the current one.
fn or_current(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    }
}
