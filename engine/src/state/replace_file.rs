//! Replacing a file as a whole, so that a crash leaves the old or the new content.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a file beside `path`, and gives it that name once it is complete and on the disk. Until
/// then, and after any error, the old file is as it was; a loss of power leaves the old or the new
/// one.
///
/// The permissions of an old file are kept, and a symbolic link still points to the file. After an
/// error nothing is left beside it. A process that is killed leaves a file with the name of `path`
/// and the ending `.PID-N.new`.
///
/// # Errors
/// That of `write`, or of the operating system.
///
/// # Examples
/// ```
/// use std::fs;
/// use std::io::{self, Write};
/// use echoless::state::replace_file;
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
    let path = resolved(path.as_ref())?;
    let old = match fs::metadata(&path) {
        Ok(old) => Some(old.permissions()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let (mut file, mut aside) = create_beside(&path, old.is_some())?;
    let written = write(&mut file)?;
    if let Some(permissions) = old {
        file.set_permissions(permissions)?;
    }
    file.sync_all()?;
    // Before the rename, as some systems demand.
    drop(file);
    fs::rename(&aside.0, &path)?;
    // It has another name now, and there is nothing to remove.
    aside.0 = PathBuf::new();
    sync_folder(&path)?;
    Ok(written)
}

/// The file that a symbolic link points to.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        // A new file, or a link to none.
        Err(error) if error.kind() == ErrorKind::NotFound => match fs::read_link(path) {
            Ok(target) => Ok(path.parent().unwrap_or(Path::new("")).join(target)),
            Err(_) => Ok(path.to_owned()),
        },
        other => other,
    }
}

/// Removes the file when it is dropped, unless its path is empty by then.
struct Aside(PathBuf);

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.0.as_os_str().is_empty() {
            // The error before is the one to report.
            let _ = fs::remove_file(&self.0);
        }
    }
}

/// Creates a file in the same folder, whose name no other thread and no other process uses. A file
/// that will get the permissions of an old one is private until then.
fn create_beside(path: &Path, is_private: bool) -> io::Result<(File, Aside)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let Some(name) = path.file_name() else {
        let reason = format!("{} is no file", path.display());
        return Err(io::Error::new(ErrorKind::InvalidInput, reason));
    };
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
        let mut aside = name.to_owned();
        aside.push(format!(".{}-{number}.new", std::process::id()));
        let aside = path.with_file_name(aside);
        match options.open(&aside) {
            Ok(file) => return Ok((file, Aside(aside))),
            // That of a killed process with the same id.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes the names in a folder to the disk. Other systems than Unix open no folders.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}
