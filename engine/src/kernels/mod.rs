//! What the hot path does to one line: find a fingerprint, push one in front; or treat it as 512 bits. One file for each instruction set.
//!
//! `scalar` is the oracle: every other kernel must leave the same bytes and give the same answers.
//! A vector kernel is a token that only exists where the CPU has the instructions, so its operations are safe to call.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod batch;
mod bits;
mod dispatch;
pub(crate) mod isa;
pub(crate) mod portable;
pub(crate) mod scalar;
mod select;
mod slot;

pub use batch::LineRange;
pub(crate) use batch::{BatchLoop, LineStep, Outcome};
pub(crate) use bits::{BitOps, Filters, LINE_BITS};
pub(crate) use dispatch::{ForKernel, LineOps};
pub use isa::Kernel;
pub(crate) use select::{GROUP, SelectOps};
pub(crate) use slot::{Slot, SlotOps};
