//! How a run ended, as its statistics report it.

use echoless_records::failure::{Failure, one_line};
use serde::Serialize;

/// How a run ended, or that it goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Ending {
    /// Whether the whole input was read and written.
    complete: bool,
    reason: &'static str,
    /// The message of the error that ended the run.
    error: Option<String>,
}

impl Ending {
    /// The run goes on, or was killed since.
    pub(crate) const RUNNING: Self = Self::new(false, "running");
    /// A signal ended the input.
    pub(crate) const SIGNAL: Self = Self::new(false, "signal");
    /// The reader of the main output left.
    pub(crate) const READER_LEFT: Self = Self::new(false, "reader left");
    /// Everything was read and written.
    pub(crate) const END_OF_INPUT: Self = Self::new(true, "end of input");

    const fn new(complete: bool, reason: &'static str) -> Self {
        Self {
            complete,
            reason,
            error: None,
        }
    }

    /// The run failed.
    pub(crate) fn failed(failure: &Failure) -> Self {
        Self::with_error(&failure.to_string())
    }

    /// The run failed with this message, or has lost records for this reason.
    pub(crate) fn with_error(message: &str) -> Self {
        Self {
            error: Some(one_line(message)),
            ..Self::new(false, "error")
        }
    }
}
