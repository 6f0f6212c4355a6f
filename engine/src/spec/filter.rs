//! The specification: a kind of filter, its form, memory, seed and tracked share.

use std::fmt;
use std::str::FromStr;

use super::kind::FilterKind;
use super::options::{Options, name_of, value_of};
use super::size::{format_bytes, parse_bytes};
use crate::error::{BuildError, SpecError};
use crate::filters::Filter;
use crate::filters::adapters::tracked::{Tracked, TrackedFraction};
use crate::filters::lines::fingerprint::FingerprintSpec;
use crate::filters::lines::{LineKind, LineSpec};
use crate::partition::Partitioned;

/// Where the bits of a key lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Form {
    /// All over the memory, as published.
    #[default]
    Scattered,
    /// In one cache line that the key's hash picks. Such a filter can be cut into partitions.
    Line,
}

const FORMS: [(&str, Form); 2] = [("scattered", Form::Scattered), ("line", Form::Line)];

impl fmt::Display for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&name_of(&FORMS, self))
    }
}

impl FromStr for Form {
    type Err = SpecError;

    fn from_str(name: &str) -> Result<Self, SpecError> {
        value_of("form", &FORMS, name)
    }
}

/// Everything that decides a filter's verdicts: equal specifications and streams give equal verdicts.
///
/// In text, `name:key=value,key=value`; every filter takes `memory` (as in `64MiB`), `seed` (default 0), `tracked` (the share of the keys that is
/// followed, default 1) and `form` besides its own options. In a file (serde), a table of the same keys and `filter`, or the text itself.
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
pub struct FilterSpec {
    kind: FilterKind,
    form: Form,
    memory: Option<u64>,
    seed: u64,
    tracked: TrackedFraction,
}

impl FilterSpec {
    /// The scattered form of a filter, seed 0, all keys tracked, its memory still to be said.
    #[must_use]
    pub const fn new(kind: FilterKind) -> Self {
        Self {
            kind,
            form: Form::Scattered,
            memory: None,
            seed: 0,
            tracked: TrackedFraction::ALL,
        }
    }

    /// In this form.
    #[must_use]
    pub const fn with_form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// In so many bytes.
    #[must_use]
    pub const fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Its random choices drawn from this seed.
    #[must_use]
    pub const fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Following this share of the keys.
    #[must_use]
    pub const fn with_tracked(mut self, share: TrackedFraction) -> Self {
        self.tracked = share;
        self
    }

    /// The mechanism and policy.
    #[must_use]
    pub const fn kind(&self) -> FilterKind {
        self.kind
    }

    /// The form.
    #[must_use]
    pub const fn form(&self) -> Form {
        self.form
    }

    /// The memory in bytes, if it was said.
    #[must_use]
    pub const fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// The seed of the random choices.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The share of the keys that is followed.
    #[must_use]
    pub const fn tracked(&self) -> TrackedFraction {
        self.tracked
    }

    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] if the memory was not said, a value is outside its range, or the machine refuses the memory.
    pub fn build(&self) -> Result<Box<dyn Filter>, BuildError> {
        let filter = match self.form {
            Form::Scattered => self
                .kind
                .build_scattered(self.needed_memory()?, self.seed)?,
            Form::Line => self.all_keys_line_spec()?.build()?,
        };
        Ok(self.track(filter))
    }

    /// Builds the filter as `count` partitions, each a contiguous range of its lines, for one owner each.
    ///
    /// The partition that [`Partitioning::partition_of`](crate::Partitioning::partition_of) names for a key judges it exactly as the whole filter would.
    ///
    /// # Errors
    /// [`BuildError`] as in [`build`](Self::build), or if the form is scattered, or there are fewer lines than partitions, or none.
    ///
    /// # Examples
    /// ```
    /// use echoless::{Engine, FilterSpec};
    /// let spec: FilterSpec = "rlbsbf:k=2,form=line,memory=1MiB".parse()?;
    /// let parts = spec.build_partitions(2)?;
    /// assert_eq!(parts.partitioning().count(), 2);
    ///
    /// let scattered = spec.with_form(echoless::spec::Form::Scattered);
    /// let error = scattered.build_partitions(2).err().unwrap();
    /// assert_eq!(error.to_string(), "invalid form=scattered: expected line, the form that can be partitioned");
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
        let parts = self.all_keys_line_spec()?.build_partitions(count)?;
        let (partitioning, filters) = parts.into_parts();
        let filters = filters.into_iter().map(|filter| self.track(filter));
        Ok(Partitioned::new(partitioning, filters.collect())?)
    }

    /// The line form of this filter, for what else can be asked of it; whether this specification is of the scattered form or of the line form does
    /// not matter.
    ///
    /// # Errors
    /// [`SpecError`] if the memory was not said, this filter has no line form, or only a share of the keys is tracked, which a [`LineSpec`] cannot
    /// say.
    ///
    /// # Examples
    /// ```
    /// use echoless::{Filter, FilterSpec};
    /// let scattered: FilterSpec = "bloom:k=4,memory=64B".parse()?;
    /// assert_eq!(scattered.line_spec()?.build()?.lines().len(), 1);
    ///
    /// let shared: FilterSpec = "bloom:k=4,memory=64B,tracked=0.5".parse()?;
    /// let error = shared.line_spec().err().unwrap();
    /// assert_eq!(error.to_string(), "invalid tracked=0.5: expected 1, because a bare line form tracks every key");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn line_spec(&self) -> Result<LineSpec, SpecError> {
        if self.tracked != TrackedFraction::ALL {
            let asked = self.tracked.get().to_string();
            let allowed = "1, because a bare line form tracks every key";
            return Err(SpecError::new("tracked", asked, allowed));
        }
        self.all_keys_line_spec()
    }

    /// The line form without the tracked share, which is for the caller to add.
    fn all_keys_line_spec(&self) -> Result<LineSpec, SpecError> {
        let kind = LineKind::try_from(self.kind)?;
        Ok(LineSpec::new(kind, self.needed_memory()?).seed(self.seed))
    }

    /// The same filter as [`FingerprintLines`](crate::FingerprintLines), which report more of themselves; `None` if it is none of them.
    #[must_use]
    pub fn fingerprints(&self) -> Option<FingerprintSpec> {
        let whole = self.form == Form::Line && self.tracked == TrackedFraction::ALL;
        self.line_spec().ok().filter(|_| whole)?.fingerprints()
    }

    fn needed_memory(&self) -> Result<u64, SpecError> {
        let missing = || SpecError::missing("memory", "a size such as memory=64MiB");
        self.memory.ok_or_else(missing)
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
        let form = options.choice("form", &FORMS)?;
        let spec = Self {
            kind: FilterKind::from_options(name, form, &mut options)?,
            form,
            memory: memory.map(|text| parse_bytes(&text)).transpose()?,
            seed: options.integer("seed", 0, 0..=u64::MAX)?,
            tracked: TrackedFraction::new(options.decimal("tracked", 1.0)?)?,
        };
        options.finish()?;
        Ok(spec)
    }

    /// The options that differ from the defaults of every filter, after those of this one.
    pub(super) fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = self.kind.options();
        if self.form != Form::default() {
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
