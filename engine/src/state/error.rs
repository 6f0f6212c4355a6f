//! The reasons why a state cannot be saved or restored.

use std::error::Error;
use std::fmt;
use std::io;

use crate::error::{BuildError, SpecError};

/// The reason why a state could not be saved or restored.
#[derive(Debug)]
#[non_exhaustive]
pub enum StateError {
    /// The bytes are no state that this library can read: the reason. Checksums are right as far as
    /// it was read, or there are none: it is another file, comes from another version, or was not
    /// written as the format demands.
    Unreadable(String),
    /// A section has another content than was written.
    Damaged {
        /// Which one, such as `block of lines 16384 to 32767`.
        section: String,
        /// How that was found.
        reason: String,
    },
    /// The bytes end in the middle of a section, or where another one must follow.
    Truncated {
        /// Where they end, such as `the commit at byte 4242`.
        section: String,
    },
    /// The state differs from what the program expects.
    Mismatch {
        /// What differs, as the state has it: `bits=16,memory=1MiB`, without options that agree.
        saved: String,
        /// The same as the program expects it.
        expected: String,
    },
    /// The filter could not be built, or is not that of the specification.
    Build(BuildError),
    /// Reading or writing failed.
    Io(io::Error),
}

impl StateError {
    pub(super) fn damaged(section: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Damaged {
            section: section.into(),
            reason: reason.into(),
        }
    }

    pub(super) fn truncated(section: impl Into<String>) -> Self {
        Self::Truncated {
            section: section.into(),
        }
    }

    /// A section that was written as no program of this library does.
    pub(super) fn invalid(section: impl fmt::Display, reason: impl fmt::Display) -> Self {
        Self::Unreadable(format!("{section}: {reason}"))
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(reason) => write!(f, "cannot read the saved state: {reason}"),
            Self::Damaged { section, reason } => {
                write!(f, "cannot read the saved state: {section}: {reason}")
            }
            Self::Truncated { section } => {
                write!(f, "cannot read the saved state: it ends in {section}")
            }
            Self::Mismatch { saved, expected } => {
                write!(f, "invalid state with {saved}: expected {expected}")
            }
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
            _ => None,
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
