//! Files that are replaced as a whole: the new content goes to a temporary file beside the old one,
//! and takes its name once it is complete. Until then, and if that never happens, the old file is
//! as it was.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// The new content of a file. Dropping it removes the temporary file.
#[derive(Debug)]
pub(crate) struct ReplacementFile {
    next: NamedTempFile,
    /// The file itself, not a symbolic link to it.
    path: PathBuf,
}

impl ReplacementFile {
    /// An empty new content for this file, which exists.
    pub(crate) fn begin(path: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(path)?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        let next = tempfile::Builder::new()
            .prefix(".echoless-")
            .tempfile_in(folder)?;
        Ok(Self { next, path })
    }

    /// A handle to write the new content with.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.next.as_file().try_clone()
    }

    /// [Commits](Self::commit) once the new content is on the disk, so that not even a loss of
    /// power leaves neither the old nor the new one.
    pub(crate) fn commit_to_disk(self) -> io::Result<()> {
        self.next.as_file().sync_all()?;
        self.commit()
    }

    /// Gives the new content the name, the mode and, as far as the system allows, the owner of the
    /// old one, in one step.
    pub(crate) fn commit(self) -> io::Result<()> {
        let old = fs::metadata(&self.path)?;
        let next = self.next.as_file();
        keep_owner(next, &old);
        next.set_permissions(old.permissions())?;
        self.next.persist(&self.path)?;
        Ok(())
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
