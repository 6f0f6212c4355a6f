//! From a kernel that is known at run time to a type: filters go through here.
//!
//! A filter dispatches when it is built. What it stores then is compiled for the kernel, so no
//! batch pays for the choice. For a single key it dispatches again.

use std::fmt;

#[cfg(target_arch = "x86_64")]
use super::{avx2::Avx2, avx512::Avx512};
use super::{bits::BitOps, portable::Portable, scalar::Scalar, slot::SlotOps};
use crate::isa::{DetectedKernel, Kernel};

/// All that a kernel can do to a line.
pub(crate) trait LineOps: SlotOps + BitOps + fmt::Debug + Send + Sync + 'static {}

impl<O: SlotOps + BitOps + fmt::Debug + Send + Sync + 'static> LineOps for O {}

/// Something to do with the kernel as a type, for [`DetectedKernel::dispatch`].
pub(crate) trait ForKernel {
    type Output;
    fn call<O: LineOps>(self, ops: O) -> Self::Output;
}

impl DetectedKernel {
    /// Calls `with` with the operations of this kernel.
    #[inline]
    pub(crate) fn dispatch<W: ForKernel>(self, with: W) -> W::Output {
        match self.kernel() {
            Kernel::Portable => with.call(Portable),
            _ => self.dispatch_words(with),
        }
    }

    /// As [`dispatch`](Self::dispatch), for what works on whole words. The portable kernel's
    /// vectors hold two words, too few to gain anything, so it runs the scalar code.
    #[inline]
    pub(crate) fn dispatch_words<W: ForKernel>(self, with: W) -> W::Output {
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
