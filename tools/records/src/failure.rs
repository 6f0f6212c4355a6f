//! The errors that end a run, and how a run ends: one line on standard error and an exit code.

use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use echoless::message::acts;
pub use echoless::message::{one_line, without_controls};
use echoless::{BuildError, ExchangeError, MemoryError, SpecError};
use echoless_durable::{ChangedOption, JournalError};
use thiserror::Error;

/// The exit code of a run with `--fail-on-duplicates` that found duplicates.
pub const FOUND_DUPLICATES: u8 = 1;

/// The exit code of a run with `--fail-on-loss` that lost packets.
pub const LOST_PACKETS: u8 = 3;

/// The exit code of a run that a signal ends is this plus the signal's number, as in shells.
pub const ENDED_BY_SIGNAL: u8 = 128;

/// The exit code of a run that failed.
pub const FAILED: u8 = 2;

/// The error that ended a run.
#[derive(Debug, Error)]
pub enum Failure {
    /// A command line that the parser rejects.
    #[error("{0}")]
    Usage(String),
    /// A failure of a run with options of an environment variable.
    #[error("{cause} (with {variable}={value})")]
    WithVariable {
        /// The name of the variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// The failure of the run.
        cause: Box<Failure>,
    },
    /// An option with an invalid value.
    #[error(transparent)]
    Option(#[from] SpecError),
    /// A filter that cannot be built.
    #[error(transparent)]
    Filter(BuildError),
    /// A filter that is larger than the memory.
    #[error("{0} (-m SIZE sets the memory of the filter)")]
    Memory(MemoryError),
    /// A measurement or a plan that failed.
    #[error("{0}")]
    Run(String),
    /// A file, or a standard stream, that cannot be opened, read or written.
    #[error("{name}: {source}")]
    File {
        /// The name of the file or stream.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A file that would be both read and written, or written twice.
    #[error("{name}: is also {other}")]
    SameFile {
        /// The name of the file or stream.
        name: String,
        /// What else it is.
        other: String,
    },
    /// Input that contradicts the options.
    #[error("{name}, {unit} {number}: {problem}")]
    Data {
        /// The name of the input.
        name: String,
        /// What `number` counts: lines, or records where these are not lines.
        unit: &'static str,
        /// The number of the line or record, from 1.
        number: u64,
        /// What is wrong.
        problem: String,
    },
    /// A capture file that cannot be read further, or a file header that cannot be written.
    #[error("{name}: {problem}")]
    Capture {
        /// The name of the file or stream.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// A side output whose reader closed its pipe: that output is incomplete.
    #[error("{name}: the reader closed the pipe before the output was complete")]
    CutOff {
        /// The name of the file or stream.
        name: String,
    },
    /// A state that cannot be read or written.
    #[error(transparent)]
    State(#[from] JournalError),
    /// A thread of this process has panicked: a bug.
    #[error("internal error: {0}")]
    Thread(#[from] ExchangeError),
    /// Something has panicked: a bug.
    #[error("internal error: {0}")]
    Panic(String),
    /// The reader of standard output closed the pipe, as `head` does. Not reported as an error.
    #[error("the reader of standard output closed the pipe")]
    ReaderGone,
}

impl From<ChangedOption> for Failure {
    fn from(error: ChangedOption) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Memory(error) => Self::Memory(error),
            other => Self::Filter(other),
        }
    }
}

impl Failure {
    /// Rejects an option that takes no value, or whose value is not at fault. `allowed` follows the
    /// word "expected".
    pub fn option(option: &str, allowed: impl Display) -> Self {
        Self::Usage(format!("invalid {option}: expected {allowed}"))
    }

    /// Names the option `-m` where the memory that was `typed` there is at fault.
    pub fn of_memory(self, typed: Option<&str>) -> Self {
        match (self, typed) {
            (Self::Option(error) | Self::Filter(BuildError::Spec(error)), Some(typed))
                if error.field == "memory" =>
            {
                Self::Option(SpecError {
                    field: "--memory",
                    asked: typed.into(),
                    ..error
                })
            }
            (failure, _) => failure,
        }
    }

    /// Whether the command line is at fault: the run has not begun then, and the files that it
    /// names may be mistaken.
    pub fn rejects_options(&self) -> bool {
        match self {
            Self::WithVariable { cause, .. } => cause.rejects_options(),
            Self::Usage(_) | Self::Option(_) | Self::Filter(_) | Self::SameFile { .. } => true,
            Self::Run(_)
            | Self::Memory(_)
            | Self::File { .. }
            | Self::Data { .. }
            | Self::Capture { .. }
            | Self::CutOff { .. }
            | Self::State(_)
            | Self::Thread(_)
            | Self::Panic(_)
            | Self::ReaderGone => false,
        }
    }

    /// Converts an error from opening or reading `name`.
    pub fn file(name: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let name = name.into();
        move |source| Self::File { name, source }
    }

    /// Converts an error from writing to `name`. Only on the `main_stream` is a closed pipe no
    /// error.
    pub fn writing(name: &str, main_stream: bool) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::BrokenPipe if main_stream => Self::ReaderGone,
            io::ErrorKind::BrokenPipe => Self::CutOff { name: name.into() },
            _ => Self::File {
                name: name.into(),
                source,
            },
        }
    }

    /// [`writing`](Self::writing) for standard output.
    pub fn writing_stdout(source: io::Error) -> Self {
        Self::writing("standard output", true)(source)
    }
}

/// The message of the first panic of this process.
static PANIC: OnceLock<String> = OnceLock::new();

/// Keeps the message of a panic for the one line that reports it, instead of writing it at once.
pub fn keep_panics() {
    panic::set_hook(Box::new(|panic| {
        let _ = PANIC.set(panic.to_string().replace('\n', " "));
    }));
}

/// Turns a panic into a failure, so what was judged before is written all the same.
///
/// # Errors
/// The failure of the run, or [`Failure::Panic`].
pub fn catch_panics<T>(run: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // A filter in the middle of an update is not used again; outputs have whole records.
    panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        let said = PANIC.get().map_or("a thread panicked", String::as_str);
        Err(Failure::Panic(said.into()))
    })
}

/// Locks a mutex even if a holder panicked: the panic itself ends the run.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first of two outcomes that failed. A reader that left is no failure of ours, so any other
/// failure comes before it.
///
/// # Errors
/// The first failure that is not [`Failure::ReaderGone`], else that one.
pub fn graver<T>(first: Result<T, Failure>, second: Result<(), Failure>) -> Result<T, Failure> {
    match (first, second) {
        (Ok(value), Ok(())) => Ok(value),
        (Ok(_) | Err(Failure::ReaderGone), Err(failure)) => Err(failure),
        (Err(failure), _) => Err(failure),
    }
}

/// Reports the outcome of a run and returns its exit code.
pub fn report(outcome: Result<ExitCode, Failure>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(failure) => {
            write_stderr(&format!("echoless: {}\n", one_line(&failure.to_string())));
            ExitCode::from(FAILED)
        }
    }
}

/// Writes a line to standard error about input that is read all the same.
pub fn warn(message: &str) {
    write_stderr(&format!("echoless: {}\n", one_line(message)));
}

/// Writes lines to standard error, [without control characters](without_controls) in them. Errors
/// are ignored: there is no other place to report them.
pub fn write_stderr(text: &str) {
    let lines = text.split('\n').map(without_controls).collect::<Vec<_>>();
    let _ = io::stderr().write_all(lines.join("\n").as_bytes());
}

/// JSON with escapes in place of the characters that act on a terminal. They are in strings,
/// so the values are the same.
pub fn visible_json(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for character in json.chars() {
        if !acts(character) || character == '\n' {
            plain.push(character);
        } else {
            // All of them are in the first plane of Unicode.
            let _ = write!(plain, "\\u{:04x}", u32::from(character));
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_failure_of_one_line() {
        let caught = catch_panics::<()>(|| panic!("expected by this test"));
        let message = caught.unwrap_err().to_string();
        assert!(message.starts_with("internal error: "), "{message}");
        assert_eq!(one_line(&message), message);
        assert!(catch_panics(|| Ok(())).is_ok());
    }
}
