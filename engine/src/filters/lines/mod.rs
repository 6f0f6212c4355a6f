//! The filters in lines: the hash of a key selects a cache line, and everything that the key
//! reads or writes lies in this line.
//!
//! A line is a small filter of 512 bits, for the keys of its hash range. A policy that needs
//! the fill, a count of arrivals or a random bit of the whole filter takes that of the line
//! instead. Random choices are drawn from the key hash, the seed and the content of the line.
//! The future of a line therefore depends only on its own keys, in their order, and verdicts
//! are the same for any partitioning and on every kernel.
//!
//! ```text
//! key hash --high bits--> line 0 | line 1 | LINE 2 | line 3 | ...      one cache miss
//!          \                                  |
//!           --low bits, remixes--> positions and fingerprint within LINE 2
//! ```
//!
//! | rule | filters | in a line |
//! |---|---|---|
//! | `queue` | QQHT, QQHTD, row-LRU | a row of 64 to 8 fingerprints, newest first |
//! | `dense` | FIFO and LRU | 31 to 8 fingerprints and a load; a key has two lines of a page |
//! | `clocked` | FIFO and LRU with a window | 28 to 7 fingerprints, a clock word; or dense |
//! | `stamped` | FIFO and LRU with a window | 16 or 8 fingerprints with stamps, newest first |

mod branchless;
mod clock;
mod clocked;
mod dense;
mod expiry;
mod line_filter;
mod plan;
pub(crate) mod queue;
pub mod rows;
pub(crate) mod rule;
mod rule_lines;
mod rule_loop;
mod stamped;
mod timed;

pub use crate::kernels::LineRange;
pub use clock::Clock;
pub use line_filter::{LineFilter, Progress};
pub(crate) use plan::MOST_LINES;
pub use plan::{LineAllocation, LinePlan};

use super::replacement;
use super::row::FilterRow;

/// The list of filters that exist in lines alone. They follow the scattered ones.
pub(super) static FAMILIES: &[&[FilterRow]] = &[&replacement::QUEUES, &timed::ROWS, &dense::ROWS];
