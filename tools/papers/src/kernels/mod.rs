//! The operations of the kernels on a line as a set of 512 bits. The engine has those on a line as a
//! row of fingerprints, and the tokens that prove what the CPU has.
//!
//! `scalar` is the oracle: every other kernel leaves the same bytes and returns the same answers.
//! The portable kernel runs it, too: vectors of 128 bits hold two words of a line, too few to gain
//! anything over plain words.

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
mod scalar;

pub(crate) use lanes::{LANES, Numbers, Spread};
pub(crate) use ops::{BitOps, Filters, LINE_BITS};

/// Evaluates an expression with the [`BitOps`] of a kernel. The kernel is a constant where this is
/// compiled into a batch loop, so one arm remains of the match.
macro_rules! with_bits {
    ($ops:expr, |$bits:ident| $value:expr) => {
        match $ops.token() {
            #[cfg(target_arch = "x86_64")]
            echoless::extend::Token::Avx2($bits) => $value,
            #[cfg(target_arch = "x86_64")]
            echoless::extend::Token::Avx512($bits) => $value,
            echoless::extend::Token::Scalar | echoless::extend::Token::Portable => {
                let $bits = echoless::extend::Scalar;
                $value
            }
        }
    };
}

pub(crate) use with_bits;
