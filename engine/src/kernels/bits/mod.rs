//! A line as a set of 512 bits in registers, and the operations of a kernel on it. One file for
//! each instruction set.
//!
//! The compiler's own vectors would replace these files, but it splits these operations into scalar
//! pieces and branches on bits that no predictor can guess: 14 ns for an RLBSBF visit that takes 2
//! ns here.
//!
//! There is no form in the 128-bit vectors of `wide`: the portable kernel uses the scalar one.

/// The body of a safe method of a token `self` that only computes on registers.
#[cfg(target_arch = "x86_64")]
macro_rules! registers {
    ($body:expr) => {
        // SAFETY: `self` is the token of the kernel and proves its instructions. Only registers are
        // touched.
        unsafe { $body }
    };
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod lanes;
mod ops;
mod portable;
mod scalar;

pub(crate) use lanes::{LANES, Numbers, Spread};
pub(crate) use ops::{BitOps, Filters, LINE_BITS};
