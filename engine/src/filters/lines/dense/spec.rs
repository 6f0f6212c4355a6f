//! The specification of dense lines: the width of a slot and the replacement policy.

use super::rule::DenseRule;
use super::slot::DenseSlot;
use crate::error::{BuildError, SpecError};
use crate::filters::kind::KindSpec;
use crate::filters::lines::{LineAllocation, LineFilter};
use crate::filters::replacement::{Fifo, Lru, Replacement};
use crate::filters::{Filter, Form, Workload};
use crate::kernels::PAGE_LINES;
use crate::limits::open_fpr;
use crate::memory::LINE_BYTES;
use crate::options::Options;
use crate::theory::RateModel;
use crate::theory::dense::DenseGeometry;
use crate::theory::fingerprints::SlotWidth;

/// The specification of a filter that keeps a key in one of two lines of its page: the form of
/// [`FingerprintSpec`](crate::FingerprintSpec) that remembers most keys in its memory.
///
/// Options in text: `replacement` (`lru` or `fifo`) and `bits` (16, 32 or 64), the width of a slot.
/// The memory is rounded down to whole pages of 4 KiB, and partitions are ranges of pages. Cache
/// lines touched per key: 2, both in one page.
///
/// Source: lines are rows of quotient hash tables (paper 002, section 3); a choice of two for each
/// key is that of Azar, Broder, Karlin, Upfal: Balanced Allocations, 1994.
///
/// # Examples
/// ```
/// use echoless::spec::DenseSpec;
/// use echoless::{FilterSpec, SlotWidth};
/// let spec = FilterSpec::new(DenseSpec::new(SlotWidth::Bits32)).memory(64 << 20);
/// assert_eq!(spec.to_string(), "dense:replacement=lru,bits=32,memory=64MiB");
/// let one_line: FilterSpec = "rowlru:slots=16,bits=32,form=line,memory=64MiB".parse()?;
/// let age = |spec: FilterSpec| spec.build().map(|filter| filter.report().miss_age.unwrap().age);
/// assert!(age(spec)? > 1.5 * age(one_line)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DenseSpec {
    /// Which key a full line evicts: LRU or FIFO.
    pub replacement: Replacement,
    /// The width of a slot in bits: 16, 32 or 64.
    pub bits: u32,
}

impl DenseSpec {
    /// Slots of this width, and LRU. A width of 8 bits is an error when the filter is built.
    #[must_use]
    pub const fn new(width: SlotWidth) -> Self {
        Self {
            replacement: Replacement::Lru,
            bits: width.bits(),
        }
    }

    /// The narrowest slots whose false positive rate, with every slot occupied, is at most
    /// `max_fpr` in `memory_bytes` of memory; LRU.
    ///
    /// # Errors
    /// [`SpecError`] if the memory is less than one page, or no slot is wide enough.
    ///
    /// # Examples
    /// ```
    /// use echoless::spec::DenseSpec;
    /// assert_eq!(DenseSpec::for_fpr(1 << 20, 1e-3)?.bits, 16);
    /// assert_eq!(DenseSpec::for_fpr(1 << 20, 1e-8)?.bits, 32);
    /// let error = DenseSpec::for_fpr(1 << 20, 1e-18).unwrap_err();
    /// assert!(error.to_string().starts_with("invalid fpr=1e-18: expected at least 7.1e-15"));
    /// # Ok::<(), echoless::SpecError>(())
    /// ```
    pub fn for_fpr(memory_bytes: u64, max_fpr: f64) -> Result<Self, SpecError> {
        open_fpr(max_fpr)?;
        let lines = memory_bytes / LINE_BYTES / PAGE_LINES as u64 * PAGE_LINES as u64;
        if lines == 0 {
            let allowed = "at least 4096 B (one page)";
            return Err(SpecError::new(
                "memory",
                format!("{memory_bytes} B"),
                allowed,
            ));
        }
        let rate = |width: SlotWidth| DenseGeometry::of_width(lines, width).full_fpr();
        let mut widths = DenseGeometry::WIDTHS.iter().copied();
        let found = widths.find(|width| rate(*width) <= max_fpr);
        found.map(Self::new).ok_or_else(|| {
            let best = rate(SlotWidth::Bits64);
            let allowed = format!("at least {best:.1e} with {memory_bytes} B of memory");
            SpecError::new("fpr", format!("{max_fpr:e}"), allowed)
        })
    }

    /// Sets which key a full line evicts: [`Replacement::Lru`] or [`Replacement::Fifo`].
    #[must_use]
    pub const fn replacement(mut self, replacement: Replacement) -> Self {
        self.replacement = replacement;
        self
    }

    /// The shape of a filter in so much memory.
    ///
    /// # Errors
    /// [`SpecError`] if the slots are not 16, 32 or 64 bits wide.
    pub fn geometry(self, memory_bytes: u64) -> Result<DenseGeometry, SpecError> {
        let lines = memory_bytes / LINE_BYTES;
        DenseGeometry::new(lines - lines % PAGE_LINES as u64, self.bits)
    }
}

/// Builds dense lines.
pub(in crate::filters) fn build(
    spec: &DenseSpec,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    let replacement = spec.replacement;
    match DenseGeometry::new(allocation.total_lines(), spec.bits)?.width() {
        SlotWidth::Bits16 => build_width::<u16>(replacement, allocation),
        SlotWidth::Bits32 => build_width::<u32>(replacement, allocation),
        SlotWidth::Bits64 => build_width::<u64>(replacement, allocation),
        SlotWidth::Bits8 => unreachable!("a geometry has none of 8 bits"),
    }
}

fn build_width<S: DenseSlot>(
    replacement: Replacement,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    let lines = allocation.total_lines();
    match replacement {
        Replacement::Fifo => allocation.build(DenseRule::<S, Fifo>::new(lines)),
        Replacement::Lru => allocation.build(DenseRule::<S, Lru>::new(lines)),
        Replacement::Qqhtd => {
            let asked = replacement.to_string();
            Err(SpecError::new("replacement", asked, "fifo or lru").into())
        }
    }
}

impl KindSpec for DenseSpec {
    const NAMES: &'static [&'static str] = &["dense"];
    const DEFAULT_FORM: Form = Form::Line;

    fn parse(_name: &str, _form: Form, options: &mut Options) -> Result<Self, SpecError> {
        let default = Self::new(SlotWidth::Bits32);
        let policies = [Replacement::Lru, Replacement::Fifo];
        let named = policies.map(|policy| (policy.name(), policy));
        let replacement = options.choice("replacement", &named)?;
        let bits = options
            .listed("bits", &[16, 32, 64])?
            .unwrap_or(default.bits);
        Ok(Self { replacement, bits })
    }

    fn name(&self) -> &'static str {
        "dense"
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        vec![
            ("replacement", self.replacement.to_string()),
            ("bits", self.bits.to_string()),
        ]
    }

    fn build_scattered(&self, _memory: u64, _seed: u64) -> Result<Box<dyn Filter>, BuildError> {
        let allowed = "line, the only form of dense";
        Err(SpecError::new("form", Form::Scattered.to_string(), allowed).into())
    }

    fn cache_lines(&self, _memory_bytes: u64) -> f64 {
        2.0
    }

    fn bucket_lines(&self) -> u64 {
        PAGE_LINES as u64
    }

    fn rate_model(&self, _form: Form, _memory_bytes: u64) -> Option<RateModel> {
        None
    }

    fn fpr_limit(&self, _form: Form, memory_bytes: u64) -> Option<f64> {
        Some(self.geometry(memory_bytes).ok()?.full_fpr())
    }

    fn settles(&self) -> bool {
        true
    }

    fn scaled(self, _scale: f64) -> Self {
        self
    }

    fn grid(_workload: &Workload) -> Vec<String> {
        ["lru", "fifo"]
            .iter()
            .flat_map(|replacement| {
                [16, 32, 64].map(|bits| format!("dense:replacement={replacement},bits={bits}"))
            })
            .collect()
    }
}
