//! The filters in lines: the hash of a key selects a cache line, and everything that the key
//! reads or writes lies in this line.
//!
//! A line is a small filter of 512 bits, for the keys of its hash range. The future
//! of a line depends only on its own keys, in their order, and verdicts
//! are the same for any partitioning and on every kernel.
//!
//! ```text
//! key hash --high bits--> line 0 | line 1 | LINE 2 | line 3 | ...      one cache miss
//!          \                                  |
//!           --low bits, remixes--> positions and fingerprint within LINE 2
//! ```
//!
//! `fingerprint` has the lines of the engine, rows of fingerprints; the filters of the papers in lines
//! are in `echoless-papers`.

mod clock;
mod expiry;
pub(crate) mod fingerprint;
mod line_filter;
mod plan;
pub(crate) mod rule;
mod rule_lines;
mod rule_loop;

pub use crate::kernels::LineRange;
pub(crate) use crate::kernels::MOST_LINES;
pub use clock::Clock;
pub use line_filter::{LineFilter, Progress};
pub use plan::{LineAllocation, LinePlan};

use super::replacement;
use super::row::FilterRow;

/// The list of filters that exist in lines alone. They follow the scattered ones.
pub(super) static FAMILIES: &[&[FilterRow]] = &[&replacement::QUEUES, &fingerprint::spec::ROWS];
