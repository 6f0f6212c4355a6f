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
mod bucket;
mod dispatch;
mod look_ahead;
pub(crate) mod portable;
pub(crate) mod scalar;
pub mod select;
mod slot;

pub use batch::Outcome;
pub(crate) use batch::{BLOCK, BatchCounts, BatchLoop, KnownPositions, LineStep, SingleVisit};
pub use bucket::{Bucket, LineRange};
pub(crate) use bucket::{MOST_LINES, PAGE_LINES, Page, PageKey};
pub(crate) use dispatch::ForKernel;
pub use dispatch::{LineOps, Token};
pub use look_ahead::LookAhead;
pub(crate) use look_ahead::{Tuner, Tunes};
pub use slot::{Slot, SlotOps};
