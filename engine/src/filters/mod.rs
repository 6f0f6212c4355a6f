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
//!   mechanism ([`Filter`]), declare the file in `mod.rs` beside it and add the kind to the list
//!   below;
//! - a line form, write a file in `lines` with its rule and a `build` function, declare the file in
//!   `lines/mod.rs` and add `build` to the list below, at the kind that it is a form of;
//! - an adapter, write a file in `adapters` with its specification (`AdapterKind`) and its
//!   mechanism, declare the file in `adapters/mod.rs` and add the adapter to the list there;
//! - a replacement policy for rows, write a type in `replacement.rs` and add it to the list there.

pub mod adapters;
mod cell_table;
mod filter;
mod kind;
pub mod lines;
mod random;
mod replacement;
pub mod scattered;
mod sliced;
mod units;

pub use filter::{Filter, report_of};
pub use kind::{Form, Workload};
pub use replacement::Replacement;
pub use sliced::{SliceCounts, Sliced};

use crate::error::{BuildError, SpecError};
use crate::options::Options;
use crate::theory::RateModel;
use crate::window::Window;
use cell_table::CellTable;
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
