//! The reasons why a state cannot be saved or restored.

use std::error::Error;
use std::fmt;
use std::io;

use crate::error::{BuildError, SpecError};

/// The reason why a state could not be saved or restored.
#[derive(Debug)]
#[non_exhaustive]
pub enum StateError {
    /// The bytes are not a saved state that this library can read: the reason.
    Unreadable(String),
    /// The state differs from what the program expects.
    Mismatch {
        /// What differs, such as `key hasher`.
        what: &'static str,
        /// That of the state.
        saved: String,
        /// That of the program.
        expected: String,
    },
    /// The filter could not be built.
    Build(BuildError),
    /// Reading or writing failed.
    Io(io::Error),
}

impl StateError {
    pub(super) fn damaged() -> Self {
        Self::Unreadable("it is damaged: a checksum is wrong".into())
    }

    pub(super) fn mismatch(
        what: &'static str,
        saved: impl ToString,
        expected: impl ToString,
    ) -> Self {
        Self::Mismatch {
            what,
            saved: saved.to_string(),
            expected: expected.to_string(),
        }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(reason) => write!(f, "cannot read the saved state: {reason}"),
            Self::Mismatch {
                what,
                saved,
                expected,
            } => write!(
                f,
                "the {what} of the saved state differs: {saved}, expected {expected}"
            ),
            Self::Build(error) => error.fmt(f),
            Self::Io(error) => write!(f, "cannot read or write the saved state: {error}"),
        }
    }
}

impl Error for StateError {
    /// The error of the operating system, if there is one.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            // Its text is that of the error inside.
            Self::Build(error) => error.source(),
            Self::Unreadable(_) | Self::Mismatch { .. } => None,
        }
    }
}

impl From<BuildError> for StateError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl From<SpecError> for StateError {
    fn from(error: SpecError) -> Self {
        Self::Build(error.into())
    }
}

impl From<io::Error> for StateError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
