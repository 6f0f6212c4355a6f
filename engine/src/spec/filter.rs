//! The specification of any filter: its kind and form, memory, seed and tracked fraction.

use std::fmt;
use std::str::FromStr;

use crate::error::{BuildError, SpecError};
use crate::filters::adapters::layers::Layers;
use crate::filters::adapters::tracked::{Tracked, TrackedFraction};
use crate::filters::adapters::{AdapterChain, AdapterSpec};
use crate::filters::lines::{FingerprintSpec, LineFilter};
use crate::filters::scattered::rows::{RowPolicy, RowSpec};
use crate::filters::{Filter, FilterKind, Form};
use crate::kernels::Kernel;
use crate::options::{Options, write_named};
use crate::partition::Partitioned;
use crate::size::{format_bytes, parse_bytes};

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
/// Adapters stand before the filter, outermost first, each followed by `/`:
/// `horizontal:slices=8/growing:fpr=0.01/bloom:k=8,memory=1MiB`. Memory, seed and tracked fraction
/// are given with the filter and are those of the whole.
///
/// The text of a [`FingerprintSpec`], the default filter, is accepted too, in the same places and
/// with its memory: `fingerprint:fpr=1e-8,memory=64MiB`. Without `form=line`, `rowlru`, `qqht` and
/// `qqhtd` are the small fingerprints of the paper, with false positives in percent.
///
/// In a file (serde) a specification is a table of the same keys, `filter`, and `adapters` (one
/// text) if there are any, or the text form as one string. In TOML:
///
/// ```toml
/// filter = "bloom"
/// k = 8
/// memory = "1MiB"
/// adapters = "horizontal:slices=8/growing:fpr=0.01"
/// ```
///
/// Each value is checked when a text is parsed. What several values or the machine decide, such as
/// whether the memory suffices, is checked when the filter is built.
///
/// # Examples
/// ```
/// use echoless::{FilterSpec, KeyHasher, Verdict};
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// let spec: FilterSpec = "rlbsbf:k=2,memory=1MiB,seed=7".parse()?;
/// assert_eq!(spec.to_string(), "rlbsbf:k=2,memory=1MiB,seed=7");
/// let mut filter = spec.build()?;
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// assert_eq!(filter.observe_one(key), Verdict::Duplicate);
///
/// let error = "rlbsbf:k=0,memory=1MiB".parse::<FilterSpec>().unwrap_err();
/// assert_eq!(error.to_string(), "invalid k=0: expected 1 to 64");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct FilterSpec {
    /// The adapters around the filter, outermost first. The memory, the seed and the tracked
    /// fraction are those of the whole.
    pub adapters: AdapterChain,
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

impl FilterSpec {
    /// The scattered form of a filter, or the line form if there is no other; seed 0, all keys
    /// tracked, without memory.
    #[must_use]
    pub fn new(kind: impl Into<FilterKind>) -> Self {
        let kind = kind.into();
        Self {
            adapters: AdapterChain::default(),
            form: kind.default_form(),
            kind,
            memory: None,
            seed: 0,
            tracked: TrackedFraction::ALL,
            kernel: None,
        }
    }

    /// Puts an adapter around the filter and its other adapters.
    ///
    /// # Errors
    /// [`SpecError`] if it has [`MOST_ADAPTERS`](crate::spec::MOST_ADAPTERS) already.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// use echoless::spec::HorizontalSpec;
    /// let spec: FilterSpec = "bloom:k=4".parse()?;
    /// let text = "horizontal:slices=8,failed=duplicate/bloom:k=4";
    /// assert_eq!(spec.inside(HorizontalSpec::new(8))?.to_string(), text);
    /// # Ok::<(), echoless::SpecError>(())
    /// ```
    pub fn inside(mut self, adapter: impl Into<AdapterSpec>) -> Result<Self, SpecError> {
        let outer = std::iter::once(adapter.into());
        let adapters: Vec<AdapterSpec> = outer.chain(self.adapters.iter().copied()).collect();
        self.adapters = AdapterChain::new(&adapters)?;
        Ok(self)
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
        Ok(self.track(self.needed_layers()?.build()?))
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
        let layers = self.partitioned_layers()?;
        let build = |lines| Ok(self.track(layers.build_lines(lines)?));
        layers.partition_plan()?.partitions(count, build)
    }

    /// Builds partition `index` of `count` alone, to take the place of a lost one.
    ///
    /// # Errors
    /// [`BuildError`] as for [`build_partitions`](Self::build_partitions), or if `index` is not
    /// less than `count`.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// let spec: FilterSpec = "rlbsbf:k=2,form=line,memory=1MiB".parse()?;
    /// assert_eq!(spec.build_partition(1, 2)?.memory_bytes(), 512 << 10);
    /// assert!(spec.build_partition(2, 2).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_partition(
        &self,
        index: usize,
        count: usize,
    ) -> Result<Box<dyn Filter>, BuildError> {
        let layers = self.partitioned_layers()?;
        let build = |lines| Ok(self.track(layers.build_lines(lines)?));
        layers.partition_plan()?.partition(index, count, build)
    }

    /// The layers, checked for partitions.
    fn partitioned_layers(&self) -> Result<Layers<'_>, SpecError> {
        if self.form != Form::Line {
            let allowed = "line, the form that can be partitioned";
            return Err(SpecError::new("form", self.form.to_string(), allowed));
        }
        if !self.has_partitions() {
            let allowed = "none, or horizontal alone, in a filter to be partitioned";
            return Err(SpecError::new(
                "adapters",
                self.adapters.to_string(),
                allowed,
            ));
        }
        self.needed_layers()
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
        self.check_bare()?;
        let layers = self.needed_layers()?;
        layers.plan()?.whole(|lines| layers.build_lines(lines))
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
        self.check_bare()?;
        self.needed_layers()?.partitions(count)
    }

    /// As [`build_lines`](Self::build_lines), but partition `index` of `count` alone, to take the
    /// place of a lost one.
    ///
    /// # Errors
    /// [`BuildError`] as for [`build_line_partitions`](Self::build_line_partitions), or if `index`
    /// is not less than `count`.
    pub fn build_line_partition(
        &self,
        index: usize,
        count: usize,
    ) -> Result<Box<dyn LineFilter>, BuildError> {
        self.check_bare()?;
        let layers = self.needed_layers()?;
        let build = |lines| layers.build_lines(lines);
        layers.plan()?.partition(index, count, build)
    }

    /// The adapters and the filter under them, in so much memory.
    pub(super) fn layers(&self, memory: u64) -> Layers<'_> {
        Layers {
            adapters: self.adapters.as_slice(),
            kind: self.kind,
            form: self.form,
            memory,
            seed: self.seed,
            kernel: self.kernel,
        }
    }

    pub(super) fn needed_layers(&self) -> Result<Layers<'_>, SpecError> {
        Ok(self.layers(self.needed_memory()?))
    }

    fn needed_memory(&self) -> Result<u64, SpecError> {
        let missing = || SpecError::missing("memory", "a size such as memory=64MiB");
        self.memory.ok_or_else(missing)
    }

    /// Checks that nothing lies between the caller and the lines.
    pub(super) fn check_bare(&self) -> Result<(), SpecError> {
        if !self.adapters.is_empty() {
            let allowed = "none, because access to the lines needs the filter itself";
            let adapters = self.adapters.to_string();
            return Err(SpecError::new("adapters", adapters, allowed));
        }
        if self.tracked == TrackedFraction::ALL {
            return Ok(());
        }
        let asked = self.tracked.get().to_string();
        let allowed = "1, because access to the lines needs a filter that tracks all keys";
        Err(SpecError::new("tracked", asked, allowed))
    }

    fn track(&self, filter: Box<dyn Filter>) -> Box<dyn Filter> {
        if self.tracked == TrackedFraction::ALL {
            filter
        } else {
            Box::new(Tracked::new(filter, self.tracked))
        }
    }

    pub(super) fn from_options(
        adapters: AdapterChain,
        name: &str,
        mut options: Options,
    ) -> Result<Self, SpecError> {
        if name == FingerprintSpec::NAME {
            let spec = FingerprintSpec::from_options(options)?;
            return Ok(Self {
                adapters,
                ..Self::try_from(&spec)?
            });
        }
        if AdapterSpec::names().any(|adapter| adapter == name) {
            let allowed = format!("a filter after {name}, as in {name}/bloom");
            return Err(SpecError::missing("filter", allowed));
        }
        let memory = options.take("memory");
        let form = match options.take("form") {
            Some(form) => form.parse()?,
            None => FilterKind::default_form_of(name),
        };
        let spec = Self {
            adapters,
            kind: FilterKind::parse(name, form, &mut options)?,
            form,
            memory: memory.map(|text| parse_bytes(&text)).transpose()?,
            seed: options.integer("seed", 0, 0..=u64::MAX)?,
            tracked: TrackedFraction::new(
                options
                    .number("tracked", TrackedFraction::ALLOWED)?
                    .unwrap_or(1.0),
            )?,
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
        if !self.adapters.is_empty() {
            write!(formatter, "{}/", self.adapters)?;
        }
        write_named(formatter, self.kind.name(), &self.options())
    }
}

impl FromStr for FilterSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (adapters, filter) = text.rsplit_once('/').unwrap_or(("", text));
        let adapters = if text.contains('/') && adapters.is_empty() {
            return Err(SpecError::missing("adapter", "a name before each /"));
        } else {
            adapters.parse()?
        };
        let (name, options) = filter.split_once(':').unwrap_or((filter, ""));
        Self::from_options(adapters, name.trim(), Options::parse(options)?)
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
        let geometry = spec.geometry()?;
        let (slots, bits) = (geometry.width.slots(), geometry.width.bits());
        let rows = RowSpec::new(slots, bits, RowPolicy::Queue(spec.policy()));
        Ok(Self {
            kernel: spec.forced_kernel(),
            ..Self::new(rows).form(Form::Line).memory(geometry.bytes())
        })
    }
}
