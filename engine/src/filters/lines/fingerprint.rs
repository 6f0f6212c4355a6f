//! The specification of the default filter: a memory size and the highest false positive rate.

mod text;

use super::line_filter::LineFilter;
use super::plan::LinePlan;
use super::queue;
use crate::error::{BuildError, SpecError};
use crate::filters::replacement::Replacement;
use crate::isa::Kernel;
use crate::limits::open_fpr;
use crate::memory::LINE_BYTES;
use crate::partition::Partitioned;
use crate::theory::fingerprints::{FingerprintGeometry, SlotWidth};

/// The highest false positive rate unless another is set.
const DEFAULT_FPR: f64 = 1e-8;

/// The specification of a filter that keeps the most recent fingerprints of each cache line.
///
/// The filter uses the narrowest slots that keep the false positive rate, because a line holds more
/// keys in narrow slots. Cache lines touched per key: 1. By name the same filters are `qqht`,
/// `rowlru` and `qqhtd` with `form=line`; [`FilterSpec`](crate::FilterSpec) converts from this
/// type.
///
/// The text form is `fingerprint:fpr=1e-8,replacement=lru,memory=64MiB`, with `bits=32` instead of
/// `fpr` once a width is set; all but `memory` may be left out. In a file (serde) a specification
/// is this text. Values are checked when a text is parsed; a forced kernel is not part of it.
///
/// Source: rows of quotient hash tables (paper 002, section 3), each as wide as a cache line.
///
/// # Examples
/// ```
/// use echoless::{Filter, FingerprintSpec, KeyHasher, SlotWidth, Verdict};
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// let spec = FingerprintSpec::new(64 << 20).max_fpr(1e-3);
/// assert_eq!(spec.geometry()?.width, SlotWidth::Bits16);
/// let mut filter = spec.build()?;
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// assert_eq!(filter.observe_one(key), Verdict::Duplicate);
///
/// let spec: FingerprintSpec = "fingerprint:fpr=1e-3,memory=64MiB".parse()?;
/// assert_eq!(spec.to_string(), "fingerprint:fpr=1e-3,replacement=lru,memory=64MiB");
///
/// let error = spec.max_fpr(1e-15).geometry().unwrap_err();
/// assert!(error.to_string().starts_with("invalid fpr=1e-15: expected at least"));
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FingerprintSpec {
    memory_bytes: u64,
    max_fpr: f64,
    width: Option<SlotWidth>,
    replacement: Replacement,
    kernel: Option<Kernel>,
}

impl FingerprintSpec {
    /// A filter in `memory_bytes`, rounded down to whole lines of 64 bytes, with a false positive
    /// rate of at most 1e-8 and [`Replacement::Lru`].
    #[must_use]
    pub const fn new(memory_bytes: u64) -> Self {
        Self {
            memory_bytes,
            max_fpr: DEFAULT_FPR,
            width: None,
            replacement: Replacement::Lru,
            kernel: None,
        }
    }

    /// The smallest filter that misses a duplicate with probability at most `miss` while fewer than
    /// `keys` distinct keys came since its key was last seen, with a false positive rate of at most
    /// `max_fpr`. Its slots have the width that needs the least memory.
    ///
    /// Younger duplicates are missed less often: with a `miss` of 0.001, hardly any is missed up to
    /// half of that age. The width is set, as by [`slot_width`](Self::slot_width).
    ///
    /// # Errors
    /// [`SpecError`] if `miss` is not above 0 and at most 0.5, the rate is not between 0 and 1, or
    /// no slot is wide enough for it.
    ///
    /// # Examples
    /// ```
    /// use echoless::{Filter, FingerprintSpec};
    /// // Ten million calls, of which 1 in 1000 may be missed at that age.
    /// let spec = FingerprintSpec::for_keys(10_000_000, 0.001, 1e-8)?;
    /// let geometry = spec.geometry()?;
    /// assert_eq!(geometry.bytes() >> 20, 95);
    /// assert!(geometry.miss_age_keys() >= 1e7);
    /// assert!(geometry.full_fpr() <= 1e-8);
    /// # Ok::<(), echoless::SpecError>(())
    /// ```
    pub fn for_keys(keys: u64, miss: f64, max_fpr: f64) -> Result<Self, SpecError> {
        if !(miss > 0.0 && miss <= 0.5) {
            return Err(SpecError::new(
                "miss",
                miss.to_string(),
                "above 0 and at most 0.5",
            ));
        }
        open_fpr(max_fpr)?;
        let shapes = SlotWidth::ALL
            .iter()
            .map(|width| FingerprintGeometry::for_keys(keys, miss, *width));
        let fitting = shapes.clone().filter(|shape| shape.full_fpr() <= max_fpr);
        let Some(smallest) = fitting.min_by_key(|shape| shape.lines) else {
            let best = shapes
                .map(FingerprintGeometry::full_fpr)
                .fold(1.0, f64::min);
            let allowed = format!("at least {best:.1e} with {keys} keys and miss={miss}");
            return Err(SpecError::new("fpr", format!("{max_fpr:e}"), allowed));
        };
        let bytes = smallest.lines.saturating_mul(LINE_BYTES);
        let spec = Self::new(bytes).max_fpr(max_fpr);
        Ok(spec.slot_width(smallest.width))
    }

    /// Sets the highest false positive rate, between 0 and 1 (exclusive). It holds with every slot
    /// occupied.
    #[must_use]
    pub const fn max_fpr(mut self, rate: f64) -> Self {
        self.max_fpr = rate;
        self
    }

    /// Sets the width of a slot. The highest false positive rate has no effect then.
    #[must_use]
    pub const fn slot_width(mut self, width: SlotWidth) -> Self {
        self.width = Some(width);
        // So that specifications of equal filters and texts are equal.
        self.max_fpr = DEFAULT_FPR;
        self
    }

    /// Sets which key a full line evicts. With [`Replacement::Fifo`] a key that is still in use is
    /// forgotten as soon as any other.
    #[must_use]
    pub const fn replacement(mut self, replacement: Replacement) -> Self {
        self.replacement = replacement;
        self
    }

    /// Forces a kernel, for tests and benchmarks. The default is the fastest one of this CPU.
    #[must_use]
    pub const fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// The number of lines and the width of the slots that meet this specification.
    ///
    /// # Errors
    /// [`SpecError`] if the memory is less than one line, the rate is not between 0 and 1, or no
    /// slot is wide enough for it.
    pub fn geometry(&self) -> Result<FingerprintGeometry, SpecError> {
        let lines = self.memory_bytes / LINE_BYTES;
        if lines == 0 {
            let asked = format!("{} B", self.memory_bytes);
            return Err(SpecError::new("memory", asked, "at least 64 B (one line)"));
        }
        if let Some(width) = self.width {
            return Ok(FingerprintGeometry { lines, width });
        }
        open_fpr(self.max_fpr)?;
        SlotWidth::ALL
            .iter()
            .map(|width| FingerprintGeometry::new(lines, *width))
            .find(|shape| shape.full_fpr() <= self.max_fpr)
            .ok_or_else(|| self.rate_too_low(lines))
    }

    /// The error about a rate below that of the widest slot.
    fn rate_too_low(&self, lines: u64) -> SpecError {
        let best = SlotWidth::ALL
            .iter()
            .map(|width| FingerprintGeometry::new(lines, *width).full_fpr())
            .fold(1.0, f64::min);
        SpecError::new(
            "fpr",
            format!("{:e}", self.max_fpr),
            format!(
                "at least {best:.1e} with {} B of memory (64-bit key hashes set this floor; \
                 less memory lowers it)",
                self.memory_bytes
            ),
        )
    }

    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] as for [`geometry`](Self::geometry), or if the memory cannot be allocated, or
    /// a variable of the [environment](crate#environment) is invalid.
    pub fn build(&self) -> Result<Box<dyn LineFilter>, BuildError> {
        let geometry = self.geometry()?;
        self.plan(geometry)
            .whole(|allocation| queue::build(geometry.width, self.replacement, allocation))
    }

    /// Builds the filter as `count` partitions, each a contiguous range of its lines, for one owner
    /// each.
    ///
    /// The partition that [`Partitioning::partition_of`](crate::Partitioning::partition_of) returns
    /// for a key gives it the verdict of the whole filter.
    ///
    /// # Errors
    /// [`BuildError`] as for [`build`](Self::build), or if `count` is not 1 to the number of lines.
    pub fn build_partitions(
        &self,
        count: usize,
    ) -> Result<Partitioned<Box<dyn LineFilter>>, BuildError> {
        let geometry = self.geometry()?;
        let build = |allocation| queue::build(geometry.width, self.replacement, allocation);
        self.plan(geometry).partitions(count, build)
    }

    /// Builds partition `index` of `count` alone, to take the place of a lost one.
    ///
    /// # Errors
    /// [`BuildError`] as for [`build_partitions`](Self::build_partitions), or if `index` is not
    /// less than `count`.
    pub fn build_partition(
        &self,
        index: usize,
        count: usize,
    ) -> Result<Box<dyn LineFilter>, BuildError> {
        let geometry = self.geometry()?;
        let build = |allocation| queue::build(geometry.width, self.replacement, allocation);
        self.plan(geometry).partition(index, count, build)
    }

    /// Which key a full line evicts.
    pub(crate) const fn policy(&self) -> Replacement {
        self.replacement
    }

    /// The kernel set by [`kernel`](Self::kernel).
    pub(crate) const fn forced_kernel(&self) -> Option<Kernel> {
        self.kernel
    }

    /// The plan of the lines. Nothing in them is random, so their seed is 0.
    const fn plan(&self, geometry: FingerprintGeometry) -> LinePlan {
        LinePlan {
            lines: geometry.lines,
            bucket_lines: 1,
            kernel: self.kernel,
            seed: 0,
        }
    }
}
