//! The one error of all bindings: a number that programs compare, and a text for people.

use std::error::Error;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use echoless::assembly::SaveError;
use echoless::message::one_line;
use echoless::state::StateError;
use echoless::{BuildError, ExchangeError, MemoryError, SpecError};
use echoless_durable::JournalError;

/// What went wrong, as a number that is the same in every version. 0 is success in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub enum Code {
    /// An argument is NULL, misaligned, too long, or of another length than the others.
    InvalidArgument = 1,
    /// A specification or an option has a value that is not allowed.
    InvalidSpec = 2,
    /// The memory could not be allocated.
    OutOfMemory = 3,
    /// A file or another stream failed.
    Io = 4,
    /// A saved state is damaged, truncated, or no state.
    InvalidState = 5,
    /// A saved state is of another filter or of other key hashes.
    StateMismatch = 6,
    /// A thread could not be started or pinned.
    Thread = 7,
    /// A partition is lost: its filter panicked.
    PartitionLost = 8,
    /// The filter was shut down.
    Disconnected = 9,
    /// The call needs a port without batches in flight.
    InFlight = 10,
    /// The process is a fork of the one that built the filter.
    Forked = 11,
    /// The time of the call is over. Nothing was judged.
    TimedOut = 12,
    /// Another thread uses the handle, which one thread at a time may use.
    Busy = 13,
    /// The filter cannot do this, such as save its lines if it has none.
    Unsupported = 14,
    /// The library panicked: a defect. The handle rejects all later calls.
    Panicked = 15,
}

impl Code {
    /// The number.
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }
}

/// All codes, in the order of their numbers.
pub const CODES: [Code; 15] = [
    Code::InvalidArgument,
    Code::InvalidSpec,
    Code::OutOfMemory,
    Code::Io,
    Code::InvalidState,
    Code::StateMismatch,
    Code::Thread,
    Code::PartitionLost,
    Code::Disconnected,
    Code::InFlight,
    Code::Forked,
    Code::TimedOut,
    Code::Busy,
    Code::Unsupported,
    Code::Panicked,
];

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What programs compare.
    pub code: Code,
    /// One line for people: what, where, what is allowed. What it repeats of the caller has
    /// [no control characters](echoless::message::one_line).
    pub text: String,
}

impl Failure {
    /// A failure with this text, on one line.
    pub fn new(code: Code, text: impl AsRef<str>) -> Self {
        let text = one_line(text.as_ref());
        Self { code, text }
    }

    /// An argument that is not allowed, in the form of the library: `invalid count=3: expected 4`.
    pub fn argument(
        name: &'static str,
        value: impl fmt::Display,
        allowed: impl Into<String>,
    ) -> Self {
        let text = SpecError::new(name, value.to_string(), allowed).to_string();
        Self::new(Code::InvalidArgument, text)
    }

    /// The same failure with a file, at the beginning of its text.
    #[must_use]
    pub fn of_path(self, path: &Path) -> Self {
        Self::new(self.code, format!("{}: {}", path.display(), self.text))
    }
}

/// Runs a call of another language, where no panic may get: a panic becomes a failure.
///
/// # Errors
/// That of `run`; [`Code::Panicked`] if it panics.
pub fn catch<T>(run: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // What a panic leaves behind is in a handle, whose lock is poisoned by it.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        let text = format!("the library panicked: {}", text.unwrap_or("no message"));
        Err(Failure::new(Code::Panicked, text))
    })
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Failure {}

impl From<SpecError> for Failure {
    fn from(error: SpecError) -> Self {
        Self::new(Code::InvalidSpec, error.to_string())
    }
}

impl From<MemoryError> for Failure {
    fn from(error: MemoryError) -> Self {
        Self::new(Code::OutOfMemory, error.to_string())
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        let code = match error {
            BuildError::Spec(_) => Code::InvalidSpec,
            BuildError::Memory(_) => Code::OutOfMemory,
            BuildError::Thread { .. } | BuildError::Pinning { .. } => Code::Thread,
            // The enum grows with the library, in the same repository as this.
            _ => Code::InvalidSpec,
        };
        Self::new(code, error.to_string())
    }
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        let code = match error {
            StateError::Build(error) => return error.into(),
            StateError::Mismatch { .. } => Code::StateMismatch,
            StateError::Io(_) => Code::Io,
            _ => Code::InvalidState,
        };
        Self::new(code, error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(Code::Io, error.to_string())
    }
}

impl From<ExchangeError> for Failure {
    fn from(error: ExchangeError) -> Self {
        let code = match error {
            ExchangeError::Panicked(_) => Code::PartitionLost,
            ExchangeError::InFlight(_) => Code::InFlight,
            ExchangeError::Forked => Code::Forked,
            ExchangeError::TimedOut => Code::TimedOut,
            _ => Code::Disconnected,
        };
        Self::new(code, error.to_string())
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        let code = match error {
            JournalError::Io { .. } => Code::Io,
            _ => Code::InvalidState,
        };
        Self::new(code, error.to_string())
    }
}

impl From<SaveError> for Failure {
    fn from(error: SaveError) -> Self {
        match error {
            SaveError::State(error) => error.into(),
            SaveError::Exchange(error) => error.into(),
            SaveError::Busy => Self::new(Code::Busy, error.to_string()),
            // The output is too slow.
            SaveError::Keys(_) => Self::new(Code::Io, error.to_string()),
            _ => Self::new(Code::Unsupported, error.to_string()),
        }
    }
}
