//! Filters that survive crashes: their keys and lines in a folder, with the position of the program
//! that observed them.
//!
//! A [`Journal`] appends the keys of each batch to a file, and commits them together with bytes of
//! the caller, such as its position in an input and the lengths of its outputs. After a crash it
//! returns the filter and these bytes as they were at the last commit, so no record is lost and
//! none passes twice. Its files have the sections of [`echoless::state`]: [`export`] makes a state
//! of a journal, [`import`] a journal of a state. [`show`] and [`verify`] read both.
//!
//! [`storage`] has the few operations with files and folders that all of this needs, and says when
//! each of them is durable. [`simulated`] is a storage in memory that lists what can be left of the
//! files after a power cut at any time, and lets operations fail: a tool for tests, also those of
//! programs that use a journal.

mod contents;
mod error;
mod journal;
mod segment;
mod segments;
pub mod simulated;
pub mod storage;

pub use contents::{Contents, FileContents, export, import, show, verify};
pub use error::JournalError;
pub use journal::{CopiedBlock, Cut, Journal, MOST_CALLER_BYTES, Opened, WantedBlock, progress_of};
pub use segment::Commit;
