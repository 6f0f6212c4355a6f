//! The specification of the default filter: a memory size and the highest false positive rate.

use super::filter::FilterSpec;
use crate::error::{BuildError, SpecError};
use crate::filters::lines::LineFilter;
use crate::filters::row::{Head, Named, OptionRow};
use crate::filters::units::WINDOW;
use crate::filters::{Form, Replacement};
use crate::isa::Kernel;
use crate::kernels::PAGE_LINES;
use crate::limits::open_fpr;
use crate::memory::LINE_BYTES;
use crate::options::{Allowed, Options, Value, names};
use crate::partition::Partitioned;
use crate::theory::dense::DenseGeometry;
use crate::theory::fingerprints::{FingerprintGeometry, SlotWidth};

/// The highest false positive rate unless another is set.
const DEFAULT_FPR: f64 = 1e-8;

/// The specification of a filter that keeps the most recent fingerprints of each cache line.
///
/// The filter uses the narrowest slots that keep the false positive rate, because a line holds more
/// keys in narrow slots. Cache lines touched per key: 1, or 2 in a [dense](Self::dense) filter. By
/// name the same filters are `qqht`, `rowlru` and `qqhtd` with `form=line`, `dense`, and `clocked`
/// with a [window](Self::window); [`FilterSpec`] converts from this type.
///
/// In text it is a [`FilterSpec`], `fingerprint:fpr=1e-8,replacement=lru,memory=64MiB`, or with
/// `bits=32` instead of `fpr`, `dense=true` or `window=600`; all but `memory` may be left out.
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
    dense: bool,
    window: Option<u64>,
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
            dense: false,
            window: None,
            kernel: None,
        }
    }

    /// Sets the highest false positive rate, between 0 and 1 (exclusive). It holds with every slot
    /// occupied. Without effect if a [width](Self::slot_width) is set.
    #[must_use]
    pub const fn max_fpr(mut self, rate: f64) -> Self {
        self.max_fpr = rate;
        self
    }

    /// Sets the width of a slot. The highest false positive rate has no effect then.
    #[must_use]
    pub const fn slot_width(mut self, width: SlotWidth) -> Self {
        self.width = Some(width);
        self
    }

    /// Sets which key a full line evicts. With [`Replacement::Fifo`] a key that is still in use is
    /// forgotten as soon as any other.
    #[must_use]
    pub const fn replacement(mut self, replacement: Replacement) -> Self {
        self.replacement = replacement;
        self
    }

    /// Gives a key two lines of a page to lie in, so that fewer keys are evicted early. The memory
    /// is rounded down to whole pages of 4 KiB. For LRU and FIFO, in slots of 16, 32 or 64 bits.
    ///
    /// # Examples
    /// ```
    /// use echoless::{Filter, FingerprintSpec};
    /// let spec = FingerprintSpec::new(64 << 20);
    /// let age = |spec: FingerprintSpec| spec.build().map(|it| it.report().miss_age.unwrap().age);
    /// assert!(age(spec.dense(true))? > 1.5 * age(spec)?);
    /// # Ok::<(), echoless::BuildError>(())
    /// ```
    #[must_use]
    pub const fn dense(mut self, dense: bool) -> Self {
        self.dense = dense;
        self
    }

    /// Remembers a key for this many ticks, from when it was last seen (LRU) or from when it was
    /// recorded (FIFO). The clock moves by [`Filter::advance_to`](crate::Filter::advance_to). In
    /// slots of 16, 32 or 64 bits.
    #[must_use]
    pub const fn window(mut self, ticks: u64) -> Self {
        self.window = Some(ticks);
        self
    }

    /// Forces a kernel, for tests and benchmarks. The default is the fastest one of this CPU.
    #[must_use]
    pub const fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// The number of lines and the width of the slots that meet this specification. Its formulas
    /// are those of a filter that is not dense and has no window.
    ///
    /// # Errors
    /// [`SpecError`] if the memory is less than one line, or than a page if dense, a value is
    /// outside its range, or no slot is wide enough for the rate.
    pub fn geometry(&self) -> Result<FingerprintGeometry, SpecError> {
        let (unit, name) = if self.dense {
            (PAGE_LINES as u64 * LINE_BYTES, "page")
        } else {
            (LINE_BYTES, "line")
        };
        let bytes = self.memory_bytes / unit * unit;
        if bytes == 0 {
            let asked = format!("{} B", self.memory_bytes);
            let allowed = format!("at least {unit} B (one {name})");
            return Err(SpecError::new("memory", asked, allowed));
        }
        let of_width = |width| FingerprintGeometry::new(bytes / LINE_BYTES, width);
        if let Some(width) = self.width {
            return self.named(of_width(width)).map(|_| of_width(width));
        }
        open_fpr(self.max_fpr)?;
        let mut best = 1.0_f64;
        for shape in self.widths().iter().map(|width| of_width(*width)) {
            let rate = self.named(shape)?.facts().fpr_limit.unwrap_or(1.0);
            if rate <= self.max_fpr {
                return Ok(shape);
            }
            best = best.min(rate);
        }
        let allowed = format!(
            "at least {best:.1e} with {} B of memory (64-bit key hashes set this floor; less \
             memory lowers it)",
            self.memory_bytes
        );
        Err(SpecError::new(
            "fpr",
            format!("{:e}", self.max_fpr),
            allowed,
        ))
    }

    /// The widths of slots, narrowest first.
    const fn widths(&self) -> &'static [SlotWidth] {
        if self.dense || self.window.is_some() {
            DenseGeometry::WIDTHS
        } else {
            SlotWidth::ALL
        }
    }

    /// The filter of this shape, by name.
    fn named(&self, shape: FingerprintGeometry) -> Result<FilterSpec, SpecError> {
        let replacement = self.replacement;
        let name = match (self.window, replacement) {
            (Some(_), Replacement::Qqhtd) => {
                let allowed = "lru or fifo with a window";
                return Err(SpecError::new("replacement", replacement.name(), allowed));
            }
            (Some(window), Replacement::Lru | Replacement::Fifo) => {
                let (refresh, dense) = (replacement == Replacement::Lru, self.dense);
                format!("clocked:window={window},refresh={refresh},dense={dense}")
            }
            (None, _) if self.dense => format!("dense:replacement={replacement}"),
            (None, _) => format!("{}:form=line", replacement.filter_name()),
        };
        let named: FilterSpec = format!("{name},bits={}", shape.width.bits()).parse()?;
        Ok(FilterSpec {
            kernel: self.kernel,
            ..named.memory(shape.bytes())
        })
    }

    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] as for [`geometry`](Self::geometry), or if the memory cannot be allocated.
    pub fn build(&self) -> Result<Box<dyn LineFilter>, BuildError> {
        FilterSpec::try_from(self)?.build_lines()
    }

    /// Builds the filter as `count` partitions, as
    /// [`FilterSpec::build_line_partitions`] does.
    ///
    /// # Errors
    /// [`BuildError`] as for [`build`](Self::build), or if `count` is not 1 to the number of lines.
    pub fn build_partitions(
        &self,
        count: usize,
    ) -> Result<Partitioned<Box<dyn LineFilter>>, BuildError> {
        FilterSpec::try_from(self)?.build_line_partitions(count)
    }
}

impl TryFrom<&FingerprintSpec> for FilterSpec {
    type Error = SpecError;

    /// The same filter, by name. Its false positive rate becomes a slot width.
    ///
    /// # Errors
    /// [`SpecError`] as for [`FingerprintSpec::geometry`].
    ///
    /// # Examples
    /// ```
    /// use echoless::{FilterSpec, FingerprintSpec};
    /// let spec = FilterSpec::try_from(&FingerprintSpec::new(1 << 20).max_fpr(1e-3))?;
    /// let text = "rowlru:slots=32,bits=16,rows=packed,form=line,memory=1MiB";
    /// assert_eq!(spec.to_string(), text);
    /// assert_eq!("fingerprint:fpr=1e-3,memory=1MiB".parse(), Ok(spec));
    /// # Ok::<(), echoless::SpecError>(())
    /// ```
    fn try_from(spec: &FingerprintSpec) -> Result<Self, SpecError> {
        spec.named(spec.geometry()?)
    }
}

const OPTIONS: &[OptionRow] = &[
    OptionRow::new("bits", Allowed::Listed(&[8, 16, 32, 64])),
    OptionRow::new("fpr", Allowed::Rate),
    OptionRow::choice("replacement", &names(&Replacement::NAMED))
        .or(Value::Choice(Replacement::Lru as usize)),
    OptionRow::flag("dense", false),
    WINDOW.or(Value::Unset),
];

static HEAD: Head = Head {
    name: FingerprintSpec::NAME,
    options: |_| OPTIONS,
    complete: |named, _| match (named.given("bits"), named.decimal("fpr")) {
        (Some(_), Some(rate)) => {
            let allowed = "either bits or fpr";
            Err(SpecError::new("fpr", format!("{rate:e}"), allowed))
        }
        _ => Ok(()),
    },
};

impl FingerprintSpec {
    /// What precedes the options.
    pub(super) const NAME: &'static str = "fingerprint";

    /// The values are checked when the specification becomes a [`FilterSpec`].
    pub(super) fn from_options(mut options: Options) -> Result<Self, SpecError> {
        let named = Named::parse(&HEAD, Form::Line, &mut options)?;
        let memory = options.memory()?;
        options.finish()?;
        let width = named
            .given("bits")
            .map(|bits| SlotWidth::from_bits(bits as u32));
        Ok(Self {
            max_fpr: named.decimal("fpr").unwrap_or(DEFAULT_FPR),
            width: width.transpose()?,
            replacement: named.choice("replacement", &Replacement::NAMED),
            dense: named.flag("dense"),
            window: named.given("window"),
            ..Self::new(memory)
        })
    }
}
