//! Files that grow, are rotated and truncated while they are read: `--follow`.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::identity::FileId;
use crate::failure;

/// How long a reader at the end of a file waits before it looks again.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// What a reader finds at the end of a file that it follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// Nothing yet, or more bytes.
    Open,
    /// The file is shorter than what was read of it.
    Truncated,
    /// Another file has its name, and this one is complete.
    Replaced,
}

impl AtEnd {
    /// Compares the followed name with the file that was read up to this position.
    ///
    /// A rotated file is complete once the new one has bytes: until then, its writer may still have
    /// the old one open.
    pub(crate) fn of(path: &Path, file: &File, position: u64) -> io::Result<Self> {
        // First: what is written to the old file before this is in its length below.
        let named = fs::metadata(path).ok();
        let own = file.metadata()?;
        if own.len() < position {
            return Ok(Self::Truncated);
        }
        let is_other = |named: &fs::Metadata| {
            let id = FileId::of(named);
            id.is_some() && id != FileId::of(&own) && named.len() > 0
        };
        Ok(
            if own.len() == position && named.as_ref().is_some_and(is_other) {
                Self::Replaced
            } else {
                Self::Open
            },
        )
    }
}

/// A file under another name in the folder of `path`.
#[derive(Debug, Default)]
pub(crate) struct Renamed {
    pub(crate) path: Option<PathBuf>,
    /// Files whose names are that of `path` and a number or a date, and which changed after this
    /// one: they may have been rotated after it.
    later: Vec<PathBuf>,
}

impl Renamed {
    /// Warns of files that may have had the name of `path` between this one and the present one.
    pub(crate) fn warn(&self, path: &Path) {
        let name = path.display();
        for later in &self.later {
            failure::warn(&format!(
                "{}: may have records in front of those of {name}, and is not read: give it as an \
                 input in front of {name}",
                later.display()
            ));
        }
    }

    /// Searches the folder for a file.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(crate) fn find(path: &Path, file: FileId) -> io::Result<Self> {
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let (mut found, mut similar) = (None, Vec::new());
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // A file may be removed meanwhile.
            let Ok(metadata) = fs::metadata(entry.path()) else {
                continue;
            };
            let (entry_name, modified) = (entry.file_name(), metadata.modified()?);
            let renamed = path.with_file_name(&entry_name);
            if FileId::of(&metadata) == Some(file) {
                found = Some((modified, renamed));
            } else if is_rotated(entry_name.as_encoded_bytes(), name) {
                similar.push((modified, renamed));
            }
        }
        let Some((since, path)) = found else {
            return Ok(Self::default());
        };
        similar.retain(|(modified, _)| *modified > since);
        similar.sort();
        Ok(Self {
            path: Some(path),
            later: similar.into_iter().map(|(_, path)| path).collect(),
        })
    }
}

/// Whether a name is another one and a number or a date: `log.1`, `log-20251125.gz`.
fn is_rotated(name: &[u8], of: &[u8]) -> bool {
    let rest = name.strip_prefix(of).unwrap_or_default();
    matches!(rest, [b'.' | b'-' | b'_', b'0'..=b'9', ..])
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_rotated_file_is_complete_once_the_new_one_has_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut writer = File::create(&path).unwrap();
        writer.write_all(b"abc").unwrap();
        let file = File::open(&path).unwrap();
        let at = |position| AtEnd::of(&path, &file, position).unwrap();
        assert_eq!(
            (at(2), at(3), at(4)),
            (AtEnd::Open, AtEnd::Open, AtEnd::Truncated)
        );
        let renamed = folder.path().join("log.1");
        fs::rename(&path, &renamed).unwrap();
        assert_eq!(at(3), AtEnd::Open);
        let mut new = File::create(&path).unwrap();
        assert_eq!(at(3), AtEnd::Open);
        writer.write_all(b"d").unwrap();
        new.write_all(b"e").unwrap();
        assert_eq!((at(3), at(4)), (AtEnd::Open, AtEnd::Replaced));

        let id = FileId::of(&file.metadata().unwrap()).unwrap();
        let found = Renamed::find(&path, id).unwrap();
        assert_eq!(found.path.as_deref(), Some(&*renamed));
        fs::remove_file(&renamed).unwrap();
        assert_eq!(Renamed::find(&path, id).unwrap().path, None);
    }
}
