//! The error of every command of this crate: one line for the terminal.

/// A failed benchmark: an invalid option, a file error or an unexpected count.
pub type Failure = Box<dyn std::error::Error>;
