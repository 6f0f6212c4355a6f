//! Saved states: filters in lines and shared filters as bytes, for programs that go on after a
//! restart, with any number of partitions.
//!
//! A filter is its lines at one point of the stream and the keys after it. One format says both: a
//! sequence of **sections**, each with a checksum that continues that of the section before, so a
//! damaged, missing, repeated or exchanged one is found.
//!
//! | section | holds |
//! |---|---|
//! | [`Header`] | the specification of the filter, the hasher of its keys, which lines follow |
//! | [`Block`] | the content of up to 16,384 lines after all keys before it |
//! | [`Keys`] | keys that were observed, with their ticks |
//! | [`Commit`] | the counts, and bytes of the caller |
//! | [`End`](Section::End) | nothing: the state is complete |
//!
//! [`FilterSpec::save`](crate::FilterSpec::save) writes a state, a **part** of its lines with
//! [`save_part`](crate::FilterSpec::save_part); [`StateReader::restore`] restores it, and
//! [`restore_parts`] several parts, or the whole in partitions. [`SharedFilter::save`](crate::SharedFilter::save) writes the state of a shared
//! filter, which other threads may use meanwhile. Programs with logs of their own write sections
//! with [`StateWriter`], read them with [`StateReader`] and apply them with [`Replay`].
//!
//! States are the same on machines of both byte orders, for any number of partitions and on every
//! kernel. As a page for programs in other languages:
//!
#![doc = include_str!("../../FORMAT.md")]

mod error;
mod header;
mod reader;
mod replay;
mod restore;
mod save;
mod section;
mod spec;
mod writer;

pub use error::StateError;
pub use header::Header;
pub use reader::StateReader;
pub use replay::Replay;
pub use restore::{Restored, restore_parts};
#[cfg(feature = "threads")]
pub(crate) use save::check_filters;
pub use save::write_lines;
pub use section::{
    Block, Commit, Keys, MOST_BLOCK_LINES, MOST_COMMIT_BYTES, Mark, Section, checksum,
};
pub use spec::StateSpec;
pub use writer::StateWriter;
