//! Files that are written beside the others, and get their names once they are complete.

use std::io::{self, Write};
use std::path::Path;

use crate::error::{At, JournalError};
use crate::storage::{Storage, StorageFile};

/// The bytes that are gathered before they are written.
const BUFFER_BYTES: usize = 256 << 10;

/// What is behind the name of a file until it is complete.
pub(crate) const ASIDE: &str = ".new";

/// The name of a file until it is complete.
pub(crate) fn aside_of(name: &str) -> String {
    format!("{name}{ASIDE}")
}

/// A file that gathers small sections.
///
/// Not a `BufWriter`: what was not committed must not be written when a journal is dropped that has
/// failed.
#[derive(Debug)]
pub(crate) struct Output {
    file: Box<dyn StorageFile>,
    buffer: Vec<u8>,
}

impl Output {
    pub(crate) fn new(file: Box<dyn StorageFile>) -> Self {
        Self {
            file,
            buffer: Vec::new(),
        }
    }

    /// Writes everything, and makes it durable.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        self.file.sync()
    }

    /// Drops what is not written, and cuts what was.
    #[cfg(feature = "journal")]
    pub(crate) fn cut(&mut self, size: u64) -> io::Result<()> {
        self.buffer.clear();
        self.file.truncate(size)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush()?;
            if bytes.len() > BUFFER_BYTES {
                return self.file.write(bytes);
            }
        }
        self.buffer.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Writes a file beside the others, and gives it its name once it is durable. `fill` gets the file,
/// and its path until then, and syncs it.
pub(crate) fn create_whole<T>(
    storage: &dyn Storage,
    folder: &Path,
    name: &str,
    fill: impl FnOnce(Output, &Path) -> Result<T, JournalError>,
) -> Result<T, JournalError> {
    let (path, aside) = (folder.join(name), folder.join(aside_of(name)));
    let output = Output::new(storage.create(&aside).at(&aside)?);
    let filled = fill(output, &aside).and_then(|filled| {
        storage.rename(&aside, &path).at(&path)?;
        Ok(filled)
    });
    // The error is the one to report.
    let filled = filled.inspect_err(|_| drop(storage.remove(&aside)))?;
    // A file whose name may not be durable must not be continued after all, so it goes away.
    let synced = storage.sync_folder(folder).at(folder);
    synced.inspect_err(|_| drop(storage.remove(&path)))?;
    Ok(filled)
}
