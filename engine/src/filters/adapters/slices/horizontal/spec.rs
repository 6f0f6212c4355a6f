//! The specification of horizontal slices.

use super::filter::{Chooser, Horizontal};
use crate::error::{BuildError, SpecError};
use crate::filters::Filter;
use crate::filters::adapters::adapter::AdapterKind;
use crate::filters::adapters::layers::Layers;
use crate::filters::adapters::slices::path::MOST_SLICES;
use crate::limits::within;
use crate::memory::check_available;
use crate::options::{Options, name_of};
use crate::theory::RateModel;

/// The first of the [`KeyHash::remix`](crate::KeyHash::remix) streams that choose the slice of a
/// key, one stream for each level of nested horizontal slices. No filter draws positions from them,
/// so the keys of a slice are spread over it as all keys are over a filter.
const SLICE_STREAMS: u64 = 0x736c_6963_6573_0000;

/// The verdict on a key whose slice has failed (paper 001, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum FailedKeys {
    /// Duplicate: more false positives, no false negatives.
    #[default]
    Duplicate,
    /// Fresh: false negatives, no more false positives.
    Fresh,
}

/// The names of the policies.
const FAILED: [(&str, FailedKeys); 2] = [
    ("duplicate", FailedKeys::Duplicate),
    ("fresh", FailedKeys::Fresh),
];

/// The parameters of horizontal slices.
///
/// The slices of a line filter are ranges of its lines
/// ([`Partitioning`](crate::Partitioning)), and its verdicts are those of the undivided filter
/// while no slice has failed. For all other filters, S filters of M/S bytes are built, and a hash
/// that is independent of their positions chooses among them.
///
/// # Examples
/// ```
/// use echoless::{Filter, FilterSpec, KeyHasher};
/// let hasher = KeyHasher::seeded(0);
/// let spec: FilterSpec = "horizontal:slices=4/rowlru:form=line,memory=1KiB".parse()?;
/// let whole: FilterSpec = "rowlru:form=line,memory=1KiB".parse()?;
/// let (mut sliced, mut whole) = (spec.build()?, whole.build()?);
/// for key in (0..1000).map(|id| hasher.hash_u64(id % 300)) {
///     assert_eq!(sliced.observe_one(key), whole.observe_one(key));
/// }
/// assert_eq!(sliced.report().fill(), whole.report().fill());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HorizontalSpec {
    /// S: the number of slices (1 to 65536; in the line form at most one for each line).
    pub slices: u32,
    /// The verdict on a key whose slice has failed.
    pub failed: FailedKeys,
}

impl HorizontalSpec {
    /// `slices` slices; keys of a failed one are duplicates.
    #[must_use]
    pub const fn new(slices: u32) -> Self {
        Self {
            slices,
            failed: FailedKeys::Duplicate,
        }
    }

    /// The verdict on a key whose slice has failed.
    #[must_use]
    pub const fn failed(mut self, failed: FailedKeys) -> Self {
        self.failed = failed;
        self
    }

    /// Checks the number of slices of a line filter.
    pub(in crate::filters::adapters) fn check_lines(self, lines: u64) -> Result<(), SpecError> {
        within("slices", self.slices, 1..=MOST_SLICES)?;
        if u64::from(self.slices) > lines {
            let allowed = format!("1 to {lines} (one line each)");
            return Err(SpecError::new("slices", self.slices.to_string(), allowed));
        }
        Ok(())
    }

    /// Whether the slices are ranges of the lines of one filter.
    fn cuts_lines(inner: Layers<'_>) -> bool {
        inner.has_partitions() && inner.split().is_none()
    }
}

impl AdapterKind for HorizontalSpec {
    const NAME: &'static str = "horizontal";
    const RENEWS_KEYS: bool = true;

    fn parse(options: &mut Options) -> Result<Self, SpecError> {
        Ok(Self {
            slices: options.integer("slices", 8, 1..=MOST_SLICES)?,
            failed: options.choice("failed", &FAILED)?,
        })
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        vec![
            ("slices", self.slices.to_string()),
            ("failed", name_of(&FAILED, &self.failed)),
        ]
    }

    fn build(&self, inner: Layers<'_>) -> Result<Box<dyn Filter>, BuildError> {
        let count = within("slices", self.slices, 1..=MOST_SLICES)?;
        let (chooser, slices) = if Self::cuts_lines(inner) {
            self.check_lines(inner.plan()?.buckets())?;
            let (partitioning, slices) = inner.partitions(count as usize)?.into_parts();
            let boxed = slices.into_iter().map(|slice| slice as Box<dyn Filter>);
            (Chooser::Lines(partitioning), boxed.collect())
        } else {
            // Each slice alone could fit where all of them do not.
            check_available(inner.memory)?;
            let slices = (0..count).map(|index| build_slice(inner, count, index));
            let chooser = Chooser::Hash {
                stream: SLICE_STREAMS + inner.count_of(Self::NAME),
                count: u64::from(count),
            };
            (chooser, slices.collect::<Result<_, _>>()?)
        };
        Ok(Box::new(Horizontal::new(slices, chooser, self.failed)))
    }

    /// Those of a slice.
    fn cache_lines(&self, inner: Layers<'_>) -> f64 {
        if Self::cuts_lines(inner) {
            return inner.cache_lines();
        }
        inner.part(self.slices.max(1), 0).cache_lines()
    }

    /// That of a line filter, whose verdicts do not change. Other slices fill unevenly, and have no
    /// formula.
    fn rate_model(&self, inner: Layers<'_>) -> Option<RateModel> {
        Self::cuts_lines(inner)
            .then(|| inner.rate_model())
            .flatten()
    }

    /// While no slice has failed: each key is judged by one slice.
    fn fpr_limit(&self, inner: Layers<'_>) -> Option<f64> {
        if Self::cuts_lines(inner) {
            return inner.fpr_limit();
        }
        inner.part(self.slices.max(1), 0).fpr_limit()
    }

    fn most_memory(&self, inner: Layers<'_>) -> u64 {
        if Self::cuts_lines(inner) {
            return inner.most_memory();
        }
        inner.most_memory().saturating_mul(u64::from(self.slices))
    }
}

/// Builds one of `count` slices. An error about its memory states that it is that of a slice.
fn build_slice(inner: Layers<'_>, count: u32, index: u32) -> Result<Box<dyn Filter>, BuildError> {
    inner
        .part(count, index)
        .build()
        .map_err(|error| match error {
            BuildError::Spec(error) if error.field == "memory" => {
                let allowed = format!("enough for {count} slices, each {}", error.allowed);
                SpecError::new("memory", format!("{} B", inner.memory), allowed).into()
            }
            error => error,
        })
}
