//! Filters that survive crashes: their keys and lines in a folder, with the position of the program
//! that observed them.
//!
//! A [`Journal`] appends the keys of each batch to a file, and commits them together with bytes of
//! the caller, such as its position in an input and the lengths of its outputs. After a crash it
//! returns the filter and these bytes as they were at the last commit, so no record is lost and
//! none passes twice. Its files have the sections of [`echoless::state`]: [`export`] makes a state
//! of a journal, [`import`] a journal of a state. [`show`] and [`verify`] read both.
//!
//! # Sinks
//! Filter and sink must be at one point of the stream after a crash. How depends on the sink:
//!
//! | the sink | order | after a crash |
//! |---|---|---|
//! | can be truncated: a file | write and sync records, commit with the length | truncate it to the length of the commit |
//! | has transactions: a database | commit with the position, then a transaction of rows and position | [open the journal at](Journal::open_at) the position of the database |
//! | neither: a pipe, a queue, a mail | deliver each record with its position in the stream, wait for the answer, commit with the position | deliver again from the position of the commit; the receiver drops positions that it has |
//!
//! All three hold because verdicts are a function of the keys before: **judging the same
//! stream again from a commit gives the same verdicts**, for any batches, threads and partitions.
//! So what is done twice is done identically, and it is enough to know where to begin.
//!
//! - *Which of two stores decides?* The one that cannot be taken back, the database. A crash
//!   between its transaction and the commit in front of it leaves the journal one commit ahead, and
//!   `open_at` cuts that off. A journal that is behind, because it was damaged or removed, catches
//!   up: the keys from its position to that of the database are observed again, without writing
//!   rows. A journal that is further ahead, because the database is an older copy, is [an
//!   error](JournalError::NoCommit), and is built anew in the same way. The transaction must be on
//!   the disk when it returns (SQLite: `synchronous=FULL`). `examples/sqlite.rs` is this program.
//! - *A sink that cannot truncate* gets some records twice, and never different ones: the records
//!   with their positions are a journal that can be replayed any number of times. Without a
//!   receiver that knows positions, no program can deliver exactly once.
//!
//! # Several threads, and why there are no reservations
//! A batch whose sink has not answered could reserve its keys, so that they are unknown to other
//! batches until it commits or aborts. Tickets and ports have no such calls, as they add nothing:
//!
//! - *A record that must be written sooner or later* needs no reservation. Its key is observed, and
//!   the thread delivers the record, again after an error, while other threads judge and deliver
//!   later batches, in parallel and in any order. The journal gets the keys in the order of the
//!   tickets, and **a commit waits until the sink has answered for all batches before its
//!   position**. A later batch that took the key for seen was right: either the record is delivered
//!   before the commit that covers both, or there is no such commit, and both are judged again,
//!   with the same verdicts. What later batches had delivered comes again with the same positions.
//! - *A record that may be given up, so that a later one with its key must pass* makes the verdicts
//!   of the later batch depend on an answer of the sink. That batch cannot be judged before the
//!   answer, with reservations or without: an unknown key only moves the wait into the caller. The
//!   wait is that of a [`Ticket`](echoless::Ticket): `contains_each`, write, `observe` those that
//!   were written. Batches of other keys wait, too, but for the keys of one filter only: sinks that
//!   give up records often, and slowly, take a filter each, by the hash of the key.
//! - A reservation would need memory outside of the lines, and its abort a key that leaves its line
//!   again, where another one was evicted for it meanwhile. Then the lines depend on the time of
//!   the answers, and no journal of keys leads to them.
//!
//! # Parts for other programs
//! [`replace_file`] writes a file, such as a saved filter, so that a crash leaves the old or the new
//! one. [`Verified`] has verdicts without errors: it asks a set of all keys, such as a
//! [`DigestStore`], where a filter may be wrong.
//!
//! [`storage`] has the few operations with files and folders that all of this needs, and says when
//! each of them is durable.

#[cfg(feature = "journal")]
mod chain;
#[cfg(feature = "journal")]
mod contents;
mod digests;
mod error;
#[cfg(feature = "journal")]
mod journal;
mod options;
mod replace_file;
#[cfg(feature = "journal")]
mod segment;
#[cfg(feature = "journal")]
mod segments;
pub mod storage;
mod verified;
mod whole;

#[cfg(feature = "journal")]
pub use chain::MOST_CALLER_BYTES;
#[cfg(feature = "journal")]
pub use contents::{Contents, FileContents, export, import, show, verify};
pub use digests::{DigestHasher, DigestStore, KEYS_FOLDER, Kept};
pub use error::JournalError;
#[cfg(feature = "journal")]
pub use journal::{CopiedBlock, Cut, Journal, Opened, WantedBlock, progress_of};
pub use options::{
    ChangedOption, Decides, LastingOption, check_hasher, check_options, decides, meaning,
};
pub use replace_file::{ReplacementFile, is_left_aside, replace_file, sync_folder};
#[cfg(feature = "journal")]
pub use segment::{Commit, is_of_journal};
pub use verified::{DigestSet, Verified};
