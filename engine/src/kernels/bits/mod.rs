//! A line as a set of 512 bits in registers, and what a kernel can do to it. One file for each instruction set.
//!
//! The compiler's own vectors would save these files, but it takes these operations apart into scalar pieces and branches on what nobody can
//! predict: 14 ns for an RLBSBF visit that takes 2 here.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod ops;
mod portable;
mod scalar;

pub(crate) use ops::{BitOps, Filters, LINE_BITS};
