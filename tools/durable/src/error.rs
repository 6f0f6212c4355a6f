//! The reasons why a journal cannot be opened, continued or read.

use std::io;
use std::path::{Path, PathBuf};

use echoless::state::StateError;

/// The reason why a call of a [`Journal`](crate::Journal), or about one, failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another process, or this one, has the journal open.
    #[error("the journal {} is in use by another process", .0.display())]
    Locked(PathBuf),
    /// A folder has a journal already, or a file a state.
    #[error("invalid target {}: expected a folder without a journal", .0.display())]
    Occupied(PathBuf),
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
    /// A file is damaged, or is of another filter.
    #[error("{}: {error}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, with the section.
        #[source]
        error: StateError,
    },
    /// The files of a folder do not belong together.
    #[error("{}: {reason}", path.display())]
    Segments {
        /// The first one that does not fit.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// No commit that the files lead to is [wanted](crate::Journal::open_at).
    #[error("the journal {} has no commit as old as the one that is wanted", .0.display())]
    NoCommit(PathBuf),
    /// An earlier call failed. The last commit before it stands; open the journal again.
    #[error("the journal {} has failed before: open it again", .0.display())]
    Failed(PathBuf),
}

impl JournalError {
    pub(crate) fn segments(path: &Path, reason: impl Into<String>) -> Self {
        Self::Segments {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

/// The path as an error names it: the current folder has none.
fn named(path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() {
        ".".into()
    } else {
        path.to_owned()
    }
}

/// Adds a path to an error.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T, JournalError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T, JournalError> {
        self.map_err(|error| JournalError::Io {
            path: named(path),
            error,
        })
    }
}

impl<T> At<T> for Result<T, StateError> {
    fn at(self, path: &Path) -> Result<T, JournalError> {
        self.map_err(|error| match error {
            StateError::Io(error) => JournalError::Io {
                path: named(path),
                error,
            },
            error => JournalError::State {
                path: path.to_owned(),
                error,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_folder_has_a_name_in_errors() {
        let failed = || io::Error::other("unplugged");
        let error = Err::<(), _>(failed()).at(Path::new("")).unwrap_err();
        assert_eq!(error.to_string(), ".: unplugged");
        let error = Err::<(), _>(StateError::Io(failed())).at(Path::new(""));
        assert_eq!(error.unwrap_err().to_string(), ".: unplugged");
    }
}
