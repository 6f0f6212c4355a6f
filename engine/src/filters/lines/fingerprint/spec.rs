//! From what a user asks (memory, highest false positive rate) to a filter, or to the numbers that stand in the way.

use std::ops::Range;

use super::lines::FingerprintLines;
use super::replacement::Replacement;
use super::sizing::{FingerprintGeometry, SlotWidth};
use crate::error::{BuildError, SpecError};
use crate::kernels::LineRange;
use crate::kernels::isa::{DetectedKernel, Kernel};
use crate::memory::{LINE_BYTES, LineArray, check_available};
use crate::partition::{Partitioned, Partitioning};

/// The specification of a [`FingerprintLines`] filter.
///
/// The narrowest slot that keeps the false positive rate is chosen, because narrow slots remember more keys.
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
            .into_iter()
            .map(|width| FingerprintGeometry { lines, width })
            .find(|shape| shape.full_fpr() <= self.max_fpr)
            .ok_or_else(|| self.rate_refused(lines))
    }

    fn rate_refused(&self, lines: u64) -> SpecError {
        let best = SlotWidth::ALL
            .into_iter()
            .map(|width| FingerprintGeometry { lines, width }.full_fpr())
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
    /// [`BuildError`] if the specification cannot be met or the machine does not grant the memory.
    pub fn build(&self) -> Result<FingerprintLines, BuildError> {
        check_available(self.memory_bytes)?;
        let shape = self.geometry()?;
        self.build_range(shape, 0..shape.lines)
    }

    /// Builds the filter as `count` partitions, each a contiguous range of its lines, for one owner each.
    ///
    /// The partition that [`Partitioning::partition_of`] names for a key judges it exactly as the whole filter would.
    ///
    /// # Errors
    /// [`BuildError`] as in [`build`](Self::build), or if there are fewer lines than partitions, or none.
    pub fn build_partitions(
        &self,
        count: usize,
    ) -> Result<Partitioned<FingerprintLines>, BuildError> {
        check_available(self.memory_bytes)?;
        let shape = self.geometry()?;
        let partitioning = Partitioning::new(shape.lines, count)?;
        let filters = (0..count)
            .map(|index| self.build_range(shape, partitioning.lines_of(index)))
            .collect::<Result<_, _>>()?;
        Ok(Partitioned::new(partitioning, filters)?)
    }

    fn build_range(
        &self,
        shape: FingerprintGeometry,
        lines: Range<u64>,
    ) -> Result<FingerprintLines, BuildError> {
        let kernel = self
            .kernel
            .map_or(Ok(DetectedKernel::best()), Kernel::grant)?;
        let range = LineRange {
            total: shape.lines,
            first: lines.start,
        };
        let lines = LineArray::zeroed(lines.end - lines.start)?;
        Ok(FingerprintLines::new(
            lines,
            range,
            shape.width,
            self.replacement,
            kernel,
        ))
    }
}
