//! The default filter, specified by what a user knows: memory and highest false positive rate.

use super::filter::{LineFilter, LinePlan};
use super::queue;
use crate::error::{BuildError, SpecError};
use crate::filters::replacement::Replacement;
use crate::kernels::Kernel;
use crate::memory::LINE_BYTES;
use crate::partition::Partitioned;
use crate::theory::fingerprints::{FingerprintGeometry, SlotWidth};

/// The specification of a filter that keeps the most recent fingerprints of each cache line.
///
/// The narrowest slot that keeps the false positive rate is chosen, because narrow slots remember
/// more keys. One cache line is touched for each key. The same filters have names (`qqht`, `rowlru`,
/// `qqhtd` with `form=line`), which [`FilterSpec`](crate::FilterSpec) takes from such a
/// specification.
///
/// Source: rows of quotient hash tables (paper 002, section 3), each as wide as a cache line.
///
/// # Examples
/// ```
/// use echoless::{FingerprintSpec, SlotWidth};
/// let shape = FingerprintSpec::new(64 << 20).max_fpr(1e-3).geometry().unwrap();
/// assert_eq!(shape.width, SlotWidth::Bits16);
/// let refused = FingerprintSpec::new(64 << 20).max_fpr(1e-15).geometry().unwrap_err();
/// assert!(refused.to_string().starts_with("invalid fpr=1e-15: expected at least"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FingerprintSpec {
    memory_bytes: u64,
    max_fpr: f64,
    width: Option<SlotWidth>,
    replacement: Replacement,
    kernel: Option<Kernel>,
}

impl FingerprintSpec {
    /// A filter in `memory_bytes` (rounded down to whole lines of 64 bytes), at a false positive rate of at most 1e-8.
    #[must_use]
    pub const fn new(memory_bytes: u64) -> Self {
        Self {
            memory_bytes,
            max_fpr: 1e-8,
            width: None,
            replacement: Replacement::Fifo,
            kernel: None,
        }
    }

    /// The highest false positive rate allowed, with every slot taken.
    #[must_use]
    pub const fn max_fpr(mut self, rate: f64) -> Self {
        self.max_fpr = rate;
        self
    }

    /// Slots of exactly this width, whatever false positive rate they give.
    #[must_use]
    pub const fn slot_width(mut self, width: SlotWidth) -> Self {
        self.width = Some(width);
        self
    }

    /// How a full line ages.
    #[must_use]
    pub const fn replacement(mut self, replacement: Replacement) -> Self {
        self.replacement = replacement;
        self
    }

    /// Forces a kernel, for tests and benchmarks; the fastest one otherwise.
    #[must_use]
    pub const fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// The shape that this specification leads to.
    ///
    /// # Errors
    /// [`SpecError`] if the memory holds no line, the rate is not between 0 and 1, or no slot is wide enough for it.
    pub fn geometry(&self) -> Result<FingerprintGeometry, SpecError> {
        let lines = self.memory_bytes / LINE_BYTES;
        if lines == 0 {
            let asked = format!("{} B", self.memory_bytes);
            return Err(SpecError::new("memory", asked, "at least 64 B (one line)"));
        }
        if let Some(width) = self.width {
            return Ok(FingerprintGeometry { lines, width });
        }
        if !(self.max_fpr > 0.0 && self.max_fpr < 1.0) {
            let asked = self.max_fpr.to_string();
            return Err(SpecError::new(
                "fpr",
                asked,
                "a rate between 0 and 1 (exclusive)",
            ));
        }
        SlotWidth::ALL
            .iter()
            .map(|width| FingerprintGeometry::new(lines, *width))
            .find(|shape| shape.full_fpr() <= self.max_fpr)
            .ok_or_else(|| self.rate_refused(lines))
    }

    fn rate_refused(&self, lines: u64) -> SpecError {
        let best = SlotWidth::ALL
            .iter()
            .map(|width| FingerprintGeometry::new(lines, *width).full_fpr())
            .fold(1.0, f64::min);
        SpecError::new(
            "fpr",
            format!("{:e}", self.max_fpr),
            format!(
                "at least {best:.1e} with {} B of memory (64-bit key hashes set this floor; less memory lowers it)",
                self.memory_bytes
            ),
        )
    }

    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] if the specification cannot be met or the machine refuses the memory.
    pub fn build(&self) -> Result<Box<dyn LineFilter>, BuildError> {
        let geometry = self.geometry()?;
        self.plan(geometry)
            .whole(|allocation| queue::build(geometry.width, self.replacement, allocation))
    }

    /// Builds the filter as `count` partitions, each a contiguous range of its lines, for one owner
    /// each.
    ///
    /// The partition that [`Partitioning::partition_of`](crate::Partitioning::partition_of) returns
    /// for a key judges it exactly as the whole filter would.
    ///
    /// # Errors
    /// [`BuildError`] as in [`build`](Self::build), or if there are fewer lines than partitions, or
    /// no partition.
    pub fn build_partitions(
        &self,
        count: usize,
    ) -> Result<Partitioned<Box<dyn LineFilter>>, BuildError> {
        let geometry = self.geometry()?;
        let build = |allocation| queue::build(geometry.width, self.replacement, allocation);
        self.plan(geometry).partitions(count, build)
    }

    /// The policy of full lines.
    pub(crate) const fn policy(&self) -> Replacement {
        self.replacement
    }

    /// The kernel that was forced.
    pub(crate) const fn forced_kernel(&self) -> Option<Kernel> {
        self.kernel
    }

    /// Nothing in these lines is random, so their seed is 0.
    const fn plan(&self, geometry: FingerprintGeometry) -> LinePlan {
        LinePlan {
            lines: geometry.lines,
            kernel: self.kernel,
            seed: 0,
        }
    }
}
