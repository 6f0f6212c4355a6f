//! The specification of a growing filter: the rate of each filter, its threshold and its size.

use super::Growing;
use crate::error::{BuildError, SpecError};
use crate::filters::adapters::adapter::AdapterKind;
use crate::filters::adapters::layers::Layers;
use crate::filters::{Filter, FilterKind, Form};
use crate::limits::{open_unit, rate_text};
use crate::options::{Options, name_of};
use crate::size::{format_bytes, parse_bytes};
use crate::theory::RateModel;

/// The most filters at a time: every fresh key probes all of them.
const MOST_FILTERS: u64 = 1024;

/// The number of filters that fill the memory, unless the size of one is given.
const FILTERS: u64 = 8;

/// The condition on which a filter is full (paper 001, section 5). m is the number of its cells, k
/// that of a key's cells, p the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Threshold {
    /// More than z = m p^(1/k) set cells.
    #[default]
    Density,
    /// More than n = -(m/k) ln(1 - p^(1/k)) keys inserted since it was opened. With a window keys
    /// leave a filter uncounted, so a filter is opened earlier than by density.
    Cardinality,
}

const THRESHOLDS: [(&str, Threshold); 2] = [
    ("density", Threshold::Density),
    ("cardinality", Threshold::Cardinality),
];

/// The parameters of a growing filter, except its memory.
///
/// The filters are [Bloom filters](crate::spec::BitsSpec), or
/// [timing Bloom filters](crate::spec::TimerSpec) for a window: then the number of filters follows
/// the number of keys in the window (section 5).
///
/// # Examples
/// ```
/// use echoless::spec::{Ageing, BitsSpec, GrowingSpec};
/// use echoless::{Filter, KeyHasher};
/// let hasher = KeyHasher::seeded(0);
/// let bloom = BitsSpec::new(4, Ageing::Never);
/// let mut filter = GrowingSpec::new(0.01).step(1 << 10).build(bloom, 4 << 10)?;
/// for key in (0..2000).map(|id| hasher.hash_u64(id)) {
///     filter.observe_one(key);
/// }
/// assert_eq!((filter.filters(), filter.dropped()), (3, 0));
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct GrowingSpec {
    /// p: the FPR at which a filter is full. With j filters a key that was never seen is reported
    /// as a duplicate with a probability of at most about j p.
    pub fpr: f64,
    /// The condition on which a filter is full.
    pub threshold: Threshold,
    /// The memory of one filter, in bytes; an eighth of the whole if `None`.
    pub step: Option<u64>,
}

impl GrowingSpec {
    /// Filters of an eighth of the memory, full by density at this rate.
    #[must_use]
    pub const fn new(fpr: f64) -> Self {
        Self {
            fpr,
            threshold: Threshold::Density,
            step: None,
        }
    }

    /// Sets the condition on which a filter is full.
    #[must_use]
    pub const fn threshold(mut self, threshold: Threshold) -> Self {
        self.threshold = threshold;
        self
    }

    /// The memory of one filter, in bytes.
    #[must_use]
    pub const fn step(mut self, bytes: u64) -> Self {
        self.step = Some(bytes);
        self
    }

    /// Builds a growing filter of filters of this kind, in `memory_bytes` at most.
    ///
    /// # Errors
    /// [`BuildError`] if the rate is not between 0 and 1, a filter is larger than the memory or too
    /// small for one key, more than 1024 filters would fill the memory, the kind is no table of
    /// cells, or the memory cannot be allocated.
    pub fn build(
        self,
        kind: impl Into<FilterKind>,
        memory_bytes: u64,
    ) -> Result<Growing, BuildError> {
        self.build_over(Layers {
            adapters: &[],
            kind: kind.into(),
            form: Form::Scattered,
            memory: memory_bytes,
            seed: 0,
            kernel: None,
        })
    }

    fn build_over(self, inner: Layers<'_>) -> Result<Growing, BuildError> {
        open_unit("fpr", self.fpr)?;
        if inner.memory == 0 {
            return Err(SpecError::new("memory", "0 B", "at least 1 B, for one filter").into());
        }
        let (size, most) = self.filters_in(inner.memory);
        if !(1..=MOST_FILTERS).contains(&most) {
            let least = inner.memory.div_ceil(MOST_FILTERS).max(1);
            let allowed = format!("{least} B to {} B, the memory", inner.memory);
            return Err(SpecError::new("step", format!("{size} B"), allowed).into());
        }
        let one = Layers {
            memory: size,
            ..inner
        };
        let first = one.cell_table(Self::NAME)?;
        let kind = inner.kind;
        let open = move || kind.build_cells(size)?.ok();
        Growing::new(
            self,
            first,
            Box::new(open),
            most as usize,
            inner.kind.window(),
        )
    }

    /// The memory of one filter of the whole, in bytes, and how many filters fit.
    fn filters_in(self, memory: u64) -> (u64, u64) {
        let size = self.step.unwrap_or(memory / FILTERS);
        (size, memory.checked_div(size).unwrap_or(0))
    }
}

impl AdapterKind for GrowingSpec {
    const NAME: &'static str = "growing";
    /// A duplicate changes no cell.
    const RENEWS_KEYS: bool = false;

    fn parse(options: &mut Options) -> Result<Self, SpecError> {
        Ok(Self {
            fpr: options.rate("fpr")?.unwrap_or(0.01),
            threshold: options.choice("threshold", &THRESHOLDS)?,
            step: (options.take("step"))
                .map(|text| parse_bytes(&text))
                .transpose()
                .map_err(|error| SpecError {
                    field: "step",
                    ..error
                })?,
        })
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = vec![
            ("fpr", rate_text(self.fpr)),
            ("threshold", name_of(&THRESHOLDS, &self.threshold)),
        ];
        options.extend(self.step.map(|bytes| ("step", format_bytes(bytes))));
        options
    }

    fn build(&self, inner: Layers<'_>) -> Result<Box<dyn Filter>, BuildError> {
        Ok(Box::new(self.build_over(inner)?))
    }

    /// Those of every filter, once there are as many as fit in the memory.
    fn cache_lines(&self, inner: Layers<'_>) -> f64 {
        let (size, most) = self.filters_in(inner.memory);
        let one = Layers {
            memory: size,
            ..inner
        };
        most.max(1) as f64 * one.cache_lines()
    }

    fn rate_model(&self, _inner: Layers<'_>) -> Option<RateModel> {
        None
    }

    /// None: the thresholds bound the rate of a filter by its fill, not on any stream.
    fn fpr_limit(&self, _inner: Layers<'_>) -> Option<f64> {
        None
    }

    fn most_memory(&self, inner: Layers<'_>) -> u64 {
        match self.step {
            None => inner.most_memory().saturating_mul(FILTERS),
            Some(step) => step.saturating_mul(MOST_FILTERS),
        }
    }

    fn scaled(self, scale: f64) -> Self {
        let step = (self.step).map(|step| (step as f64 / scale).round().max(1.0) as u64);
        Self { step, ..self }
    }
}
