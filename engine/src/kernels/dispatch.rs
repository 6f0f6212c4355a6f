//! From a kernel that is known at run time to a type: filters go through here.
//!
//! A filter dispatches when it is built. What it stores then is compiled for the kernel, so no
//! batch pays for the choice. For a single key it dispatches again.
//!
//! A kernel is `new(detected) -> Option<Self>`. Its field is private to the kernel's file, so the
//! only way to a token is through a [`DetectedKernel`](crate::isa::DetectedKernel), which itself
//! exists only after the CPU's features were detected. That makes the operations of a kernel safe
//! to call: they take the token as `self`, and each `unsafe` block in them cites it as its proof.

use std::fmt;

#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};
use super::{portable::Portable, scalar::Scalar, slot::SlotOps};
use crate::isa::{DetectedKernel, Kernel};

/// A kernel as a value. What a crate adds to the kernels takes their tokens as its proof.
#[derive(Debug, Clone, Copy)]
pub enum Token {
    /// Plain loops.
    Scalar,
    /// Vectors on any target.
    Portable,
    /// The proof that the CPU has AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// The proof that the CPU has AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

/// All that a kernel can do to a line.
pub trait LineOps: SlotOps + fmt::Debug + Send + Sync + 'static {}

impl<O: SlotOps + fmt::Debug + Send + Sync + 'static> LineOps for O {}

/// Something to do with the kernel as a type, for [`DetectedKernel::dispatch`].
pub trait ForKernel {
    type Output;
    fn call<O: LineOps>(self, ops: O) -> Self::Output;
}

impl DetectedKernel {
    /// Calls `with` with the operations of this kernel.
    #[inline]
    pub fn dispatch<W: ForKernel>(self, with: W) -> W::Output {
        match self.kernel() {
            Kernel::Portable => with.call(Portable),
            _ => self.dispatch_words(with),
        }
    }

    /// As [`dispatch`](Self::dispatch), for what works on whole words. The portable kernel's
    /// vectors hold two words, too few to gain anything, so it runs the scalar code.
    #[inline]
    pub fn dispatch_words<W: ForKernel>(self, with: W) -> W::Output {
        #[cfg(target_arch = "x86_64")]
        if let Some(ops) = Avx512::new(self) {
            return with.call(ops);
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(ops) = Avx2::new(self) {
            return with.call(ops);
        }
        with.call(Scalar)
    }
}

/// Defines a token and its way into its instruction set.
///
/// `$run` must be the function of `isa` that is compiled for the features of `$kernel`.
#[cfg(target_arch = "x86_64")]
macro_rules! token {
    ($(#[$docs:meta])* $token:ident, $kernel:expr, $run:path) => {
        $(#[$docs])*
        #[derive(Debug, Clone, Copy)]
        pub struct $token(());

        impl $token {
            /// The token, if this is the kernel that was detected.
            pub fn new(detected: $crate::isa::DetectedKernel) -> Option<Self> {
                (detected.kernel() == $kernel).then_some(Self(()))
            }
        }

        impl $crate::isa::TargetIsa for $token {
            #[inline]
            fn run<L: $crate::isa::HotLoop>(self, hot_loop: L) -> L::Output {
                debug_assert!($kernel.is_available());
                // SAFETY: `self` was made from a `DetectedKernel` of this kernel, so the CPU has
                // every feature that the function enables.
                unsafe { $run(hot_loop) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
pub(super) use token;
