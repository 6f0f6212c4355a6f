//! The filters: the trait that all of them implement, and one list of all kinds.
//!
//! | module | holds |
//! |---|---|
//! | [`scattered`] | the filters as published: the bits of a key lie all over the memory |
//! | [`lines`] | their line forms: all that a key reads and writes lies in one cache line |
//! | [`adapters`] | filters around another filter |
//!
//! To add
//!
//! - a scattered filter, write a file in `scattered` with its specification (`KindSpec`) and its
//!   mechanism ([`Filter`]), declare the file below and add the kind to the list;
//! - a line form, write a file in `lines` with its rule and a `build` function, declare the file
//!   below and add `build` to the list, at the kind that it is a form of;
//! - an adapter, write a file in `adapters` with its specification (`AdapterKind`) and its
//!   mechanism, declare the file in `adapters/mod.rs` and add the adapter to the list there;
//! - a replacement policy for rows, write a type in `replacement.rs` and add it to the list there.

pub mod adapters;
mod cells;
mod filter;
mod kind;
mod random;
mod replacement;
mod sliced;
mod units;

pub mod scattered {
    //! The filters as published: positions scattered over the whole memory, random choices from one
    //! seeded generator.
    //!
    //! They are the reference for the line forms, and they reproduce the tables of the papers.
    //! Correctness comes before speed here. Five mechanisms, each with a choice of policy, cover
    //! all that have no window by event time:
    //!
    //! | module | mechanism | policy | filters |
    //! |---|---|---|---|
    //! | [`bits`] | k bit filters | how bits age | Bloom, RSBF, BSBF, BSBFSD, RLBSBF |
    //! | [`cells`] | packed counters | which counters decay, and when | SBF, FP-SBF, `b_DBF` |
    //! | [`rows`] | fingerprint rows | victim, effect of a hit | SQF, QHT family, row-LRU, cuckoo |
    //! | [`generations`] | two Bloom filters | when they rotate | A2, double buffering |
    //! | [`buffers`] | an exact LRU buffer | the verdict of a miss | LRU, `FPBuffering` |
    //!
    //! Those with a window in ticks have a mechanism each: [`windows`] holds timers (TBF, equal
    //! timers), the jumping window (GBF) and age-partitioned slices (APBF).

    pub mod bits;
    pub mod buffers;
    pub mod cells;
    pub mod generations;
    pub(crate) mod random;
    pub mod rows;
    mod storage;
    pub mod windows;
}

pub mod lines {
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
    pub(super) mod dense;
    mod fingerprint;
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
    pub(super) mod timed;
    mod touched;

    pub use crate::kernels::LineRange;
    pub use dense::DenseSpec;
    pub use fingerprint::FingerprintSpec;
    pub use line_filter::{LineFilter, Progress};
    pub(crate) use plan::{LineAllocation, LinePlan};
    pub use timed::{TimedSpec, Timing};
}

pub use filter::{Filter, report_of};
pub use kind::{Form, Workload};
pub use replacement::Replacement;
pub use sliced::{SliceCounts, Sliced};

use crate::error::{BuildError, SpecError};
use crate::options::Options;
use crate::theory::RateModel;
use crate::window::Window;
use cells::CellTable;
use kind::{BuildLines, KindSpec, kinds, unknown_name};
use lines::{DenseSpec, LineAllocation, LineFilter, TimedSpec};
use scattered::bits::BitsSpec;
use scattered::buffers::BufferSpec;
use scattered::cells::{DecayingSpec, FingerprintStableSpec, StableSpec};
use scattered::generations::GenerationSpec;
use scattered::rows::{CuckooSpec, RowSpec, SqfSpec};
use scattered::windows::{AgePartitionedSpec, JumpingSpec, TimerSpec};

// The only list of kinds: names, parsing, building and the planner's grid all follow from it.
kinds! {
    /// `bloom`, `rsbf`, `bsbf`, `bsbfsd`, `rlbsbf`.
    Bits(BitsSpec), line: Some(lines::bits::build);
    /// `sbf`.
    Stable(StableSpec), line: Some(lines::stable::build);
    /// `fpsbf`.
    FingerprintStable(FingerprintStableSpec), line: Some(lines::fingerprint_stable::build);
    /// `bdbf`.
    Decaying(DecayingSpec), line: None;
    /// `sqf`.
    Sqf(SqfSpec), line: None;
    /// `qht`, `qhtd`, `qqht`, `qqhtd`, `rowlru`.
    Rows(RowSpec), line: Some(lines::rows::build);
    /// `cuckoo`.
    Cuckoo(CuckooSpec), line: None;
    /// `a2`, `dbuf`.
    Generations(GenerationSpec), line: None;
    /// `lru`, `fpbuffer`.
    Buffer(BufferSpec), line: None;
    /// `tbf`.
    Timers(TimerSpec), line: None;
    /// `gbf`.
    Jumping(JumpingSpec), line: None;
    /// `apbf`.
    AgePartitioned(AgePartitionedSpec), line: None;
    /// `clocked`, `stamped`.
    Timed(TimedSpec), line: Some(lines::timed::build);
    /// `dense`.
    Dense(DenseSpec), line: Some(lines::dense::build);
}
