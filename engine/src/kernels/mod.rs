//! The operations of the hot path on one line, and the batch loop around them.
//!
//! A line is a row of fingerprints: find one, push one in front. Each instruction set has a file.
//!
//! `scalar` is the oracle: every other kernel leaves the same bytes and returns the same answers. A
//! vector kernel is a token that exists only where the CPU has the instructions, so its operations
//! are safe to call.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod batch;
mod block;
mod bucket;
mod dispatch;
mod line_range;
mod look_ahead;
pub(crate) mod portable;
pub(crate) mod scalar;
#[cfg(feature = "threads")]
mod select;
mod slot;
#[cfg(target_arch = "x86_64")]
mod token;

pub use batch::Outcome;
pub(crate) use batch::{BLOCK, BatchCounts, BatchLoop, LineStep};
pub(crate) use block::{BlockLoop, SingleVisit};
pub use bucket::Bucket;
pub(crate) use bucket::{PAGE_LINES, Page, PageKey};
pub(crate) use dispatch::ForKernel;
pub use dispatch::{LineOps, Token};
pub use line_range::LineRange;
pub use look_ahead::LookAhead;
pub(crate) use look_ahead::{Tuner, Tunes};
#[cfg(feature = "threads")]
pub(crate) use select::{GROUP, SelectOps};
pub use slot::{Slot, SlotOps};
