//! Saved states: a filter in lines as bytes, for a program that goes on after a restart, with any
//! number of partitions.
//!
//! ```text
//!  bytes  8 "echoless"   4 version   4 length of the text   8 id of the key hasher
//!         8 observed     8 fresh     8 evictions            8 tick
//!         the specification as text                         8 checksum of all above
//!         all lines, 64 bytes each, in the order of key hashes
//!         8 checksum of everything, chained from line to line
//! ```
//!
//! Numbers and lines have the byte order of the machine: a state of the other byte order has a
//! version that is not known. Threads and kernels do not affect it, nor do partitions, except with
//! a window: a partition without keys for a while drops expired keys later. That changes no
//! verdict.

mod error;
mod format;
mod restore;
mod save;

pub use error::StateError;
pub use restore::SavedState;
