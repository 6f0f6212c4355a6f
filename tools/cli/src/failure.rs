//! What can end a run early, and how a run ends: one line on standard error and an exit code.

use std::io::{self, Write};
use std::process::ExitCode;

use echoless::{BuildError, Disconnected, SpecError};
use echoless_lab::LabError;
use thiserror::Error;

/// The exit code of a run that found duplicates under `--fail-on-duplicates`.
pub(crate) const FOUND_DUPLICATES: u8 = 1;

/// The exit code of a run that a signal ended is this and the signal's number, as shells have it.
pub(crate) const ENDED_BY_SIGNAL: u8 = 128;

/// The exit code of a run that could not be done.
const FAILED: u8 = 2;

/// Why a run ended early.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The command line makes no sense to the parser.
    #[error("{0}")]
    Usage(String),
    /// An option whose value is not possible.
    #[error(transparent)]
    Option(#[from] SpecError),
    /// A filter that cannot be had.
    #[error(transparent)]
    Filter(#[from] BuildError),
    /// A measurement or a plan that cannot be made.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A file, or a standard stream, that cannot be opened, read or written.
    #[error("{name}: {source}")]
    File { name: String, source: io::Error },
    /// A file that would be read and written, or written twice.
    #[error("{name}: is also {other}")]
    SameFile { name: String, other: &'static str },
    /// Input that is not what the options say.
    #[error("{name}, {unit} {number}: {problem}")]
    Data {
        name: String,
        /// What `number` counts: lines, or records where these are not lines.
        unit: &'static str,
        number: u64,
        problem: String,
    },
    /// A side output whose reader has gone: what was written there is not all.
    #[error("{name}: the reader has gone before all was written")]
    CutOff { name: String },
    /// A thread of this process is gone, which only a defect of the program explains.
    #[error("internal error: {0}")]
    Thread(#[from] Disconnected),
    /// The thread that reads the input is gone, which only a defect of the program explains.
    #[error("internal error: the thread that reads the input has panicked")]
    Feed,
    /// Whoever read standard output has gone, as readers do that have seen enough; nobody is left to tell.
    #[error("the reader of standard output has gone")]
    ReaderGone,
}

impl Failure {
    /// Turns an error about reading or opening `name` into a failure.
    pub(crate) fn file(name: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let name = name.into();
        move |source| Self::File { name, source }
    }

    /// Turns an error about writing to `name` into a failure. Only the reader of the `main_stream` may go away and nothing is wrong.
    pub(crate) fn writing(name: &str, main_stream: bool) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::BrokenPipe if main_stream => Self::ReaderGone,
            io::ErrorKind::BrokenPipe => Self::CutOff { name: name.into() },
            _ => Self::File {
                name: name.into(),
                source,
            },
        }
    }

    /// As [`writing`](Self::writing), to standard output.
    pub(crate) fn writing_stdout(source: io::Error) -> Self {
        Self::writing("standard output", true)(source)
    }
}

/// Says how a run ended.
pub(crate) fn report(outcome: Result<ExitCode, Failure>) -> ExitCode {
    match outcome {
        Ok(code) => code,
        Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Err(failure) => {
            tell(&format!("echoless: {failure}\n"));
            ExitCode::from(FAILED)
        }
    }
}

/// Writes to standard error. If nobody reads that, there is nobody to tell.
pub(crate) fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
