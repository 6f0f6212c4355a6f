//! What a journal and the outputs of a run do with files and folders, and the storage of the
//! operating system.
//!
//! An operation is not durable when it returns. The bytes and the length of a file are durable once
//! its [`sync`](StorageFile::sync) has returned `Ok`; a creation, a rename or a removal is durable
//! once [`sync_folder`](Storage::sync_folder) has. After a sync that failed, the data may be lost
//! although later syncs succeed.

use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Files in folders: of the operating system ([`RealStorage`]), or of a test.
///
/// # Examples
/// A file that replaces another one at once, also if the power fails in between.
/// ```
/// use std::io::Write;
/// use echoless_durable::storage::{RealStorage, Storage};
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let (storage, path) = (RealStorage, folder.join("name.new"));
/// let mut file = storage.create(&path)?;
/// file.write_all(b"content")?;
/// file.sync()?;
/// storage.rename(&path, &folder.join("name"))?;
/// storage.sync_folder(folder)?;
/// assert_eq!(storage.list(folder)?, ["name"]);
/// # std::io::Result::Ok(())
/// ```
pub trait Storage: Debug + Send + Sync {
    /// Creates an empty file to append to.
    ///
    /// # Errors
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if there is one; those of the system.
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>>;

    /// Opens an existing file to append to.
    ///
    /// # Errors
    /// [`NotFound`](io::ErrorKind::NotFound) if there is none; those of the system.
    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>>;

    /// Opens an existing file to read, at its beginning.
    ///
    /// # Errors
    /// [`NotFound`](io::ErrorKind::NotFound) if there is none; those of the system.
    fn read(&self, path: &Path) -> io::Result<Box<dyn ReadFile>>;

    /// The length of a file, in bytes.
    ///
    /// # Errors
    /// [`NotFound`](io::ErrorKind::NotFound) if there is none; those of the system.
    fn size(&self, path: &Path) -> io::Result<u64>;

    /// Renames a file within its folder. Replaces a file that has the new name, at once.
    ///
    /// # Errors
    /// Those of the system.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// [`NotFound`](io::ErrorKind::NotFound) if there is none; those of the system.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Creates a folder, unless it exists. It is durable once the folder around it is synced.
    ///
    /// # Errors
    /// Those of the system.
    fn create_folder(&self, folder: &Path) -> io::Result<()>;

    /// The names in a folder, sorted. The empty path is the current folder.
    ///
    /// # Errors
    /// [`NotFound`](io::ErrorKind::NotFound) if there is none; those of the system.
    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>>;

    /// Makes the creations, renames and removals in a folder durable.
    ///
    /// # Errors
    /// Those of the system.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Locks a file, which is created if necessary and stays, until the result is dropped or the
    /// process ends.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if another process, or this one, holds the lock;
    /// those of the system.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;
}

/// The file that is locked in the folder of a journal, or of exact keys.
pub const LOCK: &str = "lock";

/// Notes in a file that is locked that what it protects was committed, so that nothing begins anew
/// when the commit is lost.
///
/// # Errors
/// Those of the storage.
pub fn note_commit(storage: &dyn Storage, lock: &Path) -> io::Result<()> {
    // Elsewhere, nobody writes to a file that is locked.
    if cfg!(unix) && storage.size(lock)? == 0 {
        let mut file = storage.open(lock)?;
        file.write_all(b"begun\n")?;
        file.sync()?;
    }
    Ok(())
}

/// A file that is read, from its beginning or from anywhere.
pub trait ReadFile: Read + Seek + Send {}

impl<F: Read + Seek + Send> ReadFile for F {}

/// A file of a [`Storage`]. Writes append to its end and may be short.
pub trait StorageFile: Write + Debug + Send {
    /// Cuts the file to a length in bytes, at most its present one.
    ///
    /// # Errors
    /// Those of the system.
    fn truncate(&mut self, size: u64) -> io::Result<()>;

    /// Makes the bytes and the length durable.
    ///
    /// # Errors
    /// Those of the system. What was written since the last successful sync may be lost then,
    /// although later syncs succeed.
    fn sync(&mut self) -> io::Result<()>;
}

/// The storage of the operating system.
///
/// Folders are synced on Unix, as far as they can be read and their file system syncs any
/// ([`sync_folder`](crate::sync_folder)).
#[derive(Debug, Clone, Copy, Default)]
pub struct RealStorage;

impl Storage for RealStorage {
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(File::create_new(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        // Not `append`, with which Windows does not truncate.
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Box::new(file))
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        Ok(Box::new(File::open(path)?))
    }

    fn size(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        let folder = or_current(folder);
        match fs::create_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            result => result,
        }
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        let entries = fs::read_dir(or_current(folder))?;
        let mut names = entries
            .map(|entry| Ok(entry?.file_name()))
            .collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        crate::sync_folder(folder)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let mut options = OpenOptions::new();
        // The content does not matter, and a second process must not change the file.
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(file)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl StorageFile for File {
    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.set_len(size)?;
        self.seek(SeekFrom::End(0))?;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A folder of a relative path without folders is the current one.
fn or_current(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    }
}
