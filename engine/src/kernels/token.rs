//! The tokens of the vector kernels: values that exist only where the CPU has the instructions.
//!
//! A kernel is `new(detected) -> Option<Self>`. Its field is private to the kernel's file, so the
//! only way to a token is through a [`DetectedKernel`](crate::isa::DetectedKernel), which itself
//! exists only after the CPU's features were detected. That makes the operations of a kernel safe
//! to call: they take the token as `self`, and each `unsafe` block in them cites it as its proof.

/// Defines a token and its way into its instruction set.
///
/// `$run` must be the function of `isa` that is compiled for the features of `$kernel`.
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
            const FINDS_LINES: bool = true;

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

pub(super) use token;
