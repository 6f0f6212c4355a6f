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
//! | `bits` | Bloom, BSBF, BSBFSD, RLBSBF | k ranges of 512/k bits |
//! | `bits` | RSBF | k ranges of 496/k bits, a count of 16 bits |
//! | `stable` | SBF | 504/d cells of d bits, a count of 8 bits |
//! | `fingerprint_stable` | FP-SBF | 64 or 32 cells of counter and fingerprint |
//! | `rows` | QHT | a row of 64 to 8 fingerprints, random victim |
//! | `rows` | QHTD | a row of 63 to 7 fingerprints, random victim, a count in the last slot |
//! | `queue` | QQHT, QQHTD, row-LRU | a row of 64 to 8 fingerprints, newest first |
//! | `dense` | FIFO and LRU | 31 to 8 fingerprints and a load; a key has two lines of a page |
//! | `clocked` | FIFO and LRU with a window | 28 to 7 fingerprints, a clock word; or dense |
//! | `stamped` | FIFO and LRU with a window | 16 or 8 fingerprints with stamps, newest first |
//!
//! An unchanged line repeats its draw, so a few recurring keys could cycle forever. Rules with
//! random draws that change a line for duplicates too therefore count their updates in the
//! line, and the count is part of the content that the next draw depends on. The other rules
//! have no count, so keys that recur and undo each other can stay missed. Measured for BSBF,
//! these are at most 2 keys in 1000 with up to 4 filters in a line and 1 in 100 with 8, where a
//! scattered filter misses none. FP-SBF in its repaired form misses as often as in its
//! scattered form, but the same keys up to twice as often.

mod ageing;
pub(super) mod bits;
mod branchless;
mod clock;
mod clocked;
mod dense;
mod expiry;
pub(super) mod fingerprint_stable;
mod layout;
mod line_filter;
mod plan;
mod queue;
mod random;
pub(super) mod rows;
mod rule;
mod rule_lines;
mod rule_loop;
pub(super) mod stable;
mod stamped;
mod timed;

pub use crate::kernels::LineRange;
pub use line_filter::{LineFilter, Progress};
pub(crate) use plan::{LineAllocation, LinePlan, MOST_LINES};

use super::row::FilterRow;

/// The list of filters that exist in lines alone. They follow the scattered ones.
pub(super) static FAMILIES: &[&[FilterRow]] = &[&timed::ROWS, &dense::ROWS];
