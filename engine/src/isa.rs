//! Which instruction set the hot loops run on: detected once, or forced by name.
//!
//! A hot loop is written once as a [`HotLoop`]. [`TargetIsa::run`] compiles it for each instruction
//! set; the functions at the end of this file are the only place where code enters a
//! `#[target_feature]` function.

#![allow(unsafe_code)] // calling a `#[target_feature]` function; `DetectedKernel` proves it sound

use std::fmt;
use std::str::FromStr;

use crate::error::SpecError;
use crate::options::one_of;

/// An implementation of the hot loops. All of them give the same verdicts.
///
/// There is no NEON kernel: it could not be compiled and run where this was written. On aarch64 the
/// best kernel is [`Kernel::Portable`].
///
/// # Examples
/// ```
/// use echoless::Kernel;
/// assert!(Kernel::Scalar.is_available());
/// assert!(Kernel::best().is_available());
/// assert_eq!("avx2".parse::<Kernel>(), Ok(Kernel::Avx2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kernel {
    /// Plain loops: the oracle of the others.
    Scalar,
    /// 128-bit vectors of the `wide` crate, on any target.
    Portable,
    /// 256-bit vectors of x86-64.
    Avx2,
    /// 512-bit vectors of x86-64 (AVX-512 F, BW, DQ and VL): one register is one line.
    Avx512,
}

impl Kernel {
    /// Every kernel, slowest first.
    pub const ALL: &'static [Self] = &[Self::Scalar, Self::Portable, Self::Avx2, Self::Avx512];

    /// The fastest kernel that this CPU can run.
    #[must_use]
    pub fn best() -> Self {
        let mut fastest_first = Self::ALL.iter().rev();
        let best = fastest_first.find(|kernel| kernel.is_available());
        best.copied().unwrap_or(Self::Scalar)
    }

    /// Whether this CPU can run the kernel.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Scalar | Self::Portable => true,
            // BMI and POPCNT: every CPU with AVX2 has them, and the loops around the vectors use
            // them for verdict bits.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("popcnt")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }

    /// The proof that this CPU can run the kernel.
    ///
    /// # Errors
    /// [`SpecError`] if it cannot; the error names the kernels that it can run.
    pub fn detect(self) -> Result<DetectedKernel, SpecError> {
        if self.is_available() {
            return Ok(DetectedKernel(self));
        }
        let available = Self::ALL.iter().filter(|kernel| kernel.is_available());
        let names: Vec<&str> = available.map(|kernel| kernel.name()).collect();
        let allowed = format!("{} on this machine", names.join(", "));
        Err(SpecError::new("kernel", self.name(), allowed))
    }

    /// The name used on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for Kernel {
    type Err = SpecError;

    fn from_str(name: &str) -> Result<Self, SpecError> {
        let found = Self::ALL.iter().find(|kernel| kernel.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|kernel| kernel.name()).collect();
            SpecError::new("kernel", name, one_of(&names))
        })
    }
}

#[cfg(test)]
#[path = "../tests/kernels/mod.rs"]
pub(crate) mod tested;

/// A kernel that was found to run on this CPU; holding one is the proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DetectedKernel(Kernel);

/// A loop worth compiling once for each instruction set. Its `run` must be `#[inline(always)]`, and
/// so must everything it calls: a function that is not inlined is compiled for the base
/// instruction set.
pub trait HotLoop {
    /// The result.
    type Output;
    /// The loop.
    fn run(self) -> Self::Output;
}

/// A kernel as a type: possession proves that the CPU has the instruction set.
pub trait TargetIsa: Copy {
    /// Runs a loop, compiled for the instruction set.
    fn run<L: HotLoop>(self, hot_loop: L) -> L::Output;
}

impl DetectedKernel {
    /// The best kernel of this CPU.
    pub fn best() -> Self {
        Self(Kernel::best())
    }

    /// The kernel that was detected.
    pub const fn kernel(self) -> Kernel {
        self.0
    }

    /// Runs a loop that uses no kernel's operations, compiled for this kernel's instruction set.
    #[inline]
    pub fn run<L: HotLoop>(self, hot_loop: L) -> L::Output {
        debug_assert!(self.0.is_available());
        match self.0 {
            // SAFETY: a `DetectedKernel` is only made after `is_available` found every feature that
            // the function enables.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { run_avx2(hot_loop) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { run_avx512(hot_loop) },
            Kernel::Scalar | Kernel::Portable => hot_loop.run(),
            #[cfg(not(target_arch = "x86_64"))]
            Kernel::Avx2 | Kernel::Avx512 => hot_loop.run(),
        }
    }
}

/// Runs a loop, compiled for the instruction set of [`Kernel::Avx2`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(crate) fn run_avx2<L: HotLoop>(hot_loop: L) -> L::Output {
    hot_loop.run()
}

/// Runs a loop, compiled for the instruction set of [`Kernel::Avx512`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) fn run_avx512<L: HotLoop>(hot_loop: L) -> L::Output {
    hot_loop.run()
}
