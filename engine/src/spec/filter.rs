//! The specification of any filter: its kind and form, memory, seed and tracked fraction.

use std::fmt;
use std::str::FromStr;

use super::size::{format_bytes, parse_bytes};
use crate::error::{BuildError, SpecError};
use crate::filters::adapters::tracked::{Tracked, TrackedFraction};
use crate::filters::lines::{FingerprintSpec, LineAllocation, LineFilter, LinePlan};
use crate::filters::scattered::rows::{RowPolicy, RowSpec};
use crate::filters::{Filter, FilterKind, Form};
use crate::kernels::Kernel;
use crate::memory::LINE_BYTES;
use crate::options::Options;
use crate::partition::Partitioned;
use crate::theory::RateModel;
use crate::window::Window;

/// Everything that determines the verdicts of a filter: equal specifications and streams give equal
/// verdicts.
///
/// The text form is `name:key=value,key=value`. Besides its own options every filter has
///
/// | option | value | default |
/// |---|---|---|
/// | `memory` | a size in bytes such as `64MiB`; needed to build the filter | none |
/// | `form` | `scattered` or `line` | `scattered` |
/// | `seed` | the seed of the random choices | 0 |
/// | `tracked` | the fraction of the keys that the filter tracks, above 0 and at most 1 | 1 |
///
/// In a file (serde) a specification is a table of the same keys and `filter`, or the text form as
/// one string.
///
/// # Examples
/// ```
/// use echoless::{FilterSpec, KeyHash, Verdict};
/// let spec: FilterSpec = "rlbsbf:k=2,memory=1MiB,seed=7".parse()?;
/// assert_eq!(spec.to_string(), "rlbsbf:k=2,memory=1MiB,seed=7");
/// let mut filter = spec.build()?;
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Fresh);
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Duplicate);
///
/// let error = "rlbsbf:k=0,memory=1MiB".parse::<FilterSpec>()?.build().err().unwrap();
/// assert_eq!(error.to_string(), "invalid k=0: expected 1 to 64");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct FilterSpec {
    /// The mechanism and policy.
    pub kind: FilterKind,
    /// Scattered or line.
    pub form: Form,
    /// The memory in bytes; needed to build the filter. The line form rounds it down to whole lines
    /// of 64 bytes.
    pub memory: Option<u64>,
    /// The seed of the random choices.
    pub seed: u64,
    /// The fraction of the keys that the filter tracks.
    pub tracked: TrackedFraction,
    /// The kernel to run on; the best one if `None`. It changes no verdict and is not part of the
    /// text. Scattered forms have no kernels.
    pub kernel: Option<Kernel>,
}

/// The most lines of a line form: 2^32, which is 256 GiB.
///
/// The high bits of a hash select the line. Up to this number they are at most the upper half of
/// the hash, and positions within a line may come from the lower half (see `lines::layout`).
const MOST_LINES: u64 = 1 << 32;

impl FilterSpec {
    /// The scattered form of a filter, or the line form if there is no other; seed 0, all keys
    /// tracked, without memory.
    #[must_use]
    pub fn new(kind: impl Into<FilterKind>) -> Self {
        let kind = kind.into();
        Self {
            form: kind.default_form(),
            kind,
            memory: None,
            seed: 0,
            tracked: TrackedFraction::ALL,
            kernel: None,
        }
    }

    /// Sets the form.
    #[must_use]
    pub const fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Sets the memory, in bytes.
    #[must_use]
    pub const fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Sets the seed of the random choices.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Tracks this fraction of the keys.
    #[must_use]
    pub const fn tracked(mut self, fraction: TrackedFraction) -> Self {
        self.tracked = fraction;
        self
    }

    /// Forces a kernel, for tests and benchmarks.
    #[must_use]
    pub const fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] if the memory is not set, a value is outside its range, or the memory cannot
    /// be allocated.
    pub fn build(&self) -> Result<Box<dyn Filter>, BuildError> {
        let filter = match self.form {
            Form::Scattered => self
                .kind
                .build_scattered(self.needed_memory()?, self.seed)?,
            Form::Line => self.plan()?.whole(|lines| self.build_range(lines))?,
        };
        Ok(self.track(filter))
    }

    /// Builds the filter as `count` partitions, each a contiguous range of its lines, for one owner
    /// each.
    ///
    /// The partition that [`Partitioning::partition_of`](crate::Partitioning::partition_of) returns
    /// for a key gives it the verdict of the whole filter.
    ///
    /// # Errors
    /// [`BuildError`] as for [`build`](Self::build), or if the form is scattered, or `count` is not
    /// 1 to the number of lines.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// use echoless::spec::Form;
    /// let spec: FilterSpec = "rlbsbf:k=2,form=line,memory=1MiB".parse()?;
    /// let parts = spec.build_partitions(2)?;
    /// assert_eq!(parts.partitioning().count(), 2);
    /// assert!(spec.form(Form::Scattered).build_partitions(2).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_partitions(
        &self,
        count: usize,
    ) -> Result<Partitioned<Box<dyn Filter>>, BuildError> {
        if self.form != Form::Line {
            let allowed = "line, the form that can be partitioned";
            return Err(SpecError::new("form", self.form.to_string(), allowed).into());
        }
        self.plan()?
            .partitions(count, |lines| Ok(self.track(self.build_range(lines)?)))
    }

    /// Builds the line form of this filter and gives access to its lines. Ignores
    /// [`form`](Self#structfield.form).
    ///
    /// # Errors
    /// [`BuildError`] as for [`build`](Self::build), or if not all keys are tracked.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// let spec: FilterSpec = "bloom:k=4,memory=64B".parse()?;
    /// assert_eq!(spec.build_lines()?.lines().len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_lines(&self) -> Result<Box<dyn LineFilter>, BuildError> {
        self.check_all_tracked()?;
        self.plan()?.whole(|lines| self.build_range(lines))
    }

    /// As [`build_lines`](Self::build_lines), in `count` partitions.
    ///
    /// # Errors
    /// [`BuildError`] as for [`build_lines`](Self::build_lines), or if `count` is not 1 to the
    /// number of lines.
    pub fn build_line_partitions(
        &self,
        count: usize,
    ) -> Result<Partitioned<Box<dyn LineFilter>>, BuildError> {
        self.check_all_tracked()?;
        self.plan()?
            .partitions(count, |lines| self.build_range(lines))
    }

    /// The mean number of cache lines that a fresh key touches at most. Keys that are not tracked
    /// touch none and do not count in the mean.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// let lines = |text: &str| text.parse::<FilterSpec>().map(|spec| spec.cache_lines());
    /// assert_eq!(lines("rlbsbf:k=2,memory=1MiB"), Ok(4.0));
    /// assert_eq!(lines("rlbsbf:k=2,form=line,memory=1MiB"), Ok(1.0));
    /// ```
    #[must_use]
    pub fn cache_lines(&self) -> f64 {
        self.kind.cache_lines(self.form, self.memory.unwrap_or(0))
    }

    /// The formula for the error rates on a uniform stream of the tracked keys, if there is one and
    /// the memory is set.
    #[must_use]
    pub fn rate_model(&self) -> Option<RateModel> {
        self.kind.rate_model(self.form, self.memory?)
    }

    /// The false positive rate that the filter never exceeds on any stream; `None` if there is no
    /// such limit below 1, or the memory is not set.
    ///
    /// For fingerprints it is the number of slots searched times the probability that a fingerprint
    /// equals that of another key, and for a buffer that guesses, the rate of its guesses. A
    /// simulation of a million records cannot measure a rate of one in a billion, so a planner
    /// needs this limit. In the line form it accounts for the hash bits that select the line
    /// ([`FingerprintGeometry::full_fpr`](crate::FingerprintGeometry::full_fpr)). Exact buffers
    /// confuse only keys of equal hashes, which do not count here.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// let limit = |text: &str| text.parse::<FilterSpec>().unwrap().fpr_limit();
    /// let narrow = limit("qqht:slots=16,bits=32,memory=1MiB");
    /// assert!((narrow.unwrap() - 3.7e-9).abs() < 1e-10);
    /// // 2^14 lines leave 50 bits of a hash, for slots of any width.
    /// let wide = limit("qqht:slots=8,bits=64,form=line,memory=1MiB");
    /// assert_eq!(wide, Some(8.0 / 2_f64.powi(50)));
    /// assert_eq!(limit("lru:memory=1MiB"), Some(0.0));
    /// assert_eq!(limit("rlbsbf:memory=1MiB"), None);
    /// ```
    #[must_use]
    pub fn fpr_limit(&self) -> Option<f64> {
        self.kind
            .fpr_limit(self.form, self.memory?)
            .filter(|limit| *limit < 1.0)
    }

    /// The most memory that the filter can have, in bytes, on a machine that has as much.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// let most = |text: &str| text.parse::<FilterSpec>().map(|spec| spec.most_memory());
    /// assert_eq!(most("rowlru:form=line"), Ok(256 << 30));
    /// assert_eq!(most("lru"), Ok(24 * u64::from(u32::MAX)));
    /// ```
    #[must_use]
    pub fn most_memory(&self) -> u64 {
        match self.form {
            Form::Scattered => self.kind.most_memory(),
            Form::Line => MOST_LINES * LINE_BYTES,
        }
    }

    /// How long the filter remembers a key, if it has a window in ticks and its parameters are
    /// valid. ([`bdbf`](crate::spec::DecayingSpec) counts its window in records by itself.)
    ///
    /// # Examples
    /// ```
    /// use echoless::{FilterSpec, Window};
    /// let window = |text: &str| text.parse::<FilterSpec>().unwrap().window();
    /// assert_eq!(window("clocked:window=1000"), Some(Window::new(1000, 200)));
    /// assert_eq!(window("stamped:window=1000"), Some(Window::new(1000, 1)));
    /// assert_eq!(window("rowlru"), None);
    /// ```
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        self.kind.window()
    }

    fn needed_memory(&self) -> Result<u64, SpecError> {
        let missing = || SpecError::missing("memory", "a size such as memory=64MiB");
        self.memory.ok_or_else(missing)
    }

    fn check_all_tracked(&self) -> Result<(), SpecError> {
        if self.tracked == TrackedFraction::ALL {
            return Ok(());
        }
        let asked = self.tracked.get().to_string();
        let allowed = "1, because access to the lines needs a filter that tracks all keys";
        Err(SpecError::new("tracked", asked, allowed))
    }

    /// The line form as a plan of its lines, checked against [`MOST_LINES`].
    fn plan(&self) -> Result<LinePlan, SpecError> {
        let memory = self.needed_memory()?;
        let lines = memory / LINE_BYTES;
        if !(1..=MOST_LINES).contains(&lines) {
            let allowed = "64 B (one line) to 256 GiB (2^32 lines)";
            return Err(SpecError::new("memory", format!("{memory} B"), allowed));
        }
        Ok(LinePlan {
            lines,
            kernel: self.kernel,
            seed: self.seed,
        })
    }

    fn build_range(&self, lines: LineAllocation) -> Result<Box<dyn LineFilter>, BuildError> {
        self.kind
            .build_lines(lines)
            .unwrap_or_else(|| Err(self.no_line_form().into()))
    }

    /// The error about a filter without a line form. It names the filters that have one.
    fn no_line_form(&self) -> SpecError {
        let default = |name| Self::from_options(name, Options::parse("form=line").ok()?).ok();
        let with_lines = FilterKind::names()
            .filter(|name| default(name).is_some_and(|spec| spec.kind.has_line_form()));
        let with_lines: Vec<&str> = with_lines.collect();
        let name = self.kind.name();
        let allowed = format!(
            "scattered for {name}; the line form exists for {}",
            with_lines.join(", ")
        );
        SpecError::new("form", "line", allowed)
    }

    fn track(&self, filter: Box<dyn Filter>) -> Box<dyn Filter> {
        if self.tracked == TrackedFraction::ALL {
            filter
        } else {
            Box::new(Tracked::new(filter, self.tracked))
        }
    }

    pub(super) fn from_options(name: &str, mut options: Options) -> Result<Self, SpecError> {
        let memory = options.take("memory");
        let form = match options.take("form") {
            Some(form) => form.parse()?,
            None => FilterKind::default_form_of(name),
        };
        let spec = Self {
            kind: FilterKind::parse(name, form, &mut options)?,
            form,
            memory: memory.map(|text| parse_bytes(&text)).transpose()?,
            seed: options.integer("seed", 0, 0..=u64::MAX)?,
            tracked: TrackedFraction::new(options.decimal("tracked", 1.0)?)?,
            kernel: None,
        };
        options.finish()?;
        Ok(spec)
    }

    /// The options of the text form: those of the kind, then the common ones that differ from their
    /// defaults.
    pub(super) fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = self.kind.options();
        if self.form != self.kind.default_form() {
            options.push(("form", self.form.to_string()));
        }
        options.extend(self.memory.map(|bytes| ("memory", format_bytes(bytes))));
        if self.seed != 0 {
            options.push(("seed", self.seed.to_string()));
        }
        if self.tracked != TrackedFraction::ALL {
            options.push(("tracked", self.tracked.get().to_string()));
        }
        options
    }
}

impl fmt::Display for FilterSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.kind.name())?;
        for (index, (key, value)) in self.options().iter().enumerate() {
            let separator = if index == 0 { ':' } else { ',' };
            write!(formatter, "{separator}{key}={value}")?;
        }
        Ok(())
    }
}

impl FromStr for FilterSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        Self::from_options(name.trim(), Options::parse(options)?)
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
    /// let text = "qqht:slots=32,bits=16,rows=packed,form=line,memory=1MiB";
    /// assert_eq!(spec.to_string(), text);
    /// # Ok::<(), echoless::SpecError>(())
    /// ```
    fn try_from(spec: &FingerprintSpec) -> Result<Self, SpecError> {
        let geometry = spec.geometry()?;
        let (slots, bits) = (geometry.width.slots(), geometry.width.bits());
        let rows = RowSpec::new(slots, bits, RowPolicy::Queue(spec.policy()));
        Ok(Self {
            kernel: spec.forced_kernel(),
            ..Self::new(rows).form(Form::Line).memory(geometry.bytes())
        })
    }
}
