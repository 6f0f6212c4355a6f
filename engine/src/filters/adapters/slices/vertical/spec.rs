//! The specification of vertical slices, and the heuristics for keys with cells in failed ones.

use super::filter::Vertical;
use crate::error::{BuildError, SpecError};
use crate::filters::Filter;
use crate::filters::adapters::AdapterSpec;
use crate::filters::adapters::adapter::AdapterKind;
use crate::filters::adapters::layers::Layers;
use crate::filters::adapters::slices::cut::Cut;
use crate::filters::adapters::slices::horizontal::{FailedKeys, HorizontalSpec};
use crate::filters::adapters::slices::path::MOST_SLICES;
use crate::limits::{MOST_HASHES, within};
use crate::options::{Options, name_of, one_of};
use crate::theory::RateModel;

/// The verdict on a key some of whose cells lie in failed slices (paper 001, section 3.2).
///
/// A key whose cells are all live is a duplicate if and only if all of them are set, except with
/// [`Hybrid`](Self::Hybrid).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MissingCells {
    /// Missing cells count as set: a duplicate if all live cells are set.
    #[default]
    Set,
    /// A key with a missing cell is fresh.
    Fresh,
    /// The paper's heuristic, as published: a duplicate if at least `least` live cells are set. It
    /// ignores that a live cell that is not set proves a key fresh, so with `least` below k the FPR
    /// is higher than without failures, even if no slice has failed; keys taken for duplicates are
    /// not recorded.
    Hybrid {
        /// x, 1 to k.
        least: u32,
    },
    /// The heuristic without that flaw: a duplicate if all live cells are set and there are at
    /// least `least` of them.
    Repaired {
        /// x, 1 to k.
        least: u32,
    },
}

/// How the slices of a key are probed (paper 001, section 3.2). The verdicts are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Probing {
    /// All at once: a request to each slice, and an answer from each.
    #[default]
    Parallel,
    /// In turn, each slice passing the request on; the one at which the verdict is certain, as at
    /// the first cell that is not set, answers.
    Pipelined,
}

const PROBINGS: [(&str, Probing); 2] = [
    ("parallel", Probing::Parallel),
    ("pipelined", Probing::Pipelined),
];

const FAILED: [&str; 4] = ["duplicate", "fresh", "hybrid", "repaired"];

/// The parameters of vertical slices.
///
/// While no slice has failed, the verdicts are those of the table itself, except with
/// [`MissingCells::Hybrid`]. The bits of a key in a [Bloom filter](crate::spec::BitsSpec) lie in k
/// ranges of M/k bits, one in each; the timers of a key under
/// [`TimerSpec`](crate::spec::TimerSpec) lie anywhere in the table.
///
/// # Examples
/// ```
/// use echoless::{Filter, FilterSpec, KeyHasher, Verdict};
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// let text = "vertical:slices=40,failed=repaired,least=3/bloom:k=8,memory=1KiB";
/// let spec: FilterSpec = text.parse()?;
/// let mut filter = spec.build()?;
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// // Any five slices can fail, as long as three bits of the key are left.
/// for slice in 0..5 {
///     filter.slices_mut().unwrap().fail(&[slice])?;
/// }
/// assert_eq!(filter.observe_one(key), Verdict::Duplicate);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerticalSpec {
    /// S: the number of slices (1 to 65536, and at most one for each cell).
    pub slices: u32,
    /// The verdict on keys with cells in failed slices.
    pub failed: MissingCells,
    /// How slices are probed.
    pub probing: Probing,
}

impl VerticalSpec {
    /// `slices` slices, probed in parallel; missing cells count as set.
    #[must_use]
    pub const fn new(slices: u32) -> Self {
        Self {
            slices,
            failed: MissingCells::Set,
            probing: Probing::Parallel,
        }
    }

    /// The verdict on keys with cells in failed slices.
    #[must_use]
    pub const fn failed(mut self, failed: MissingCells) -> Self {
        self.failed = failed;
        self
    }

    /// How slices are probed.
    #[must_use]
    pub const fn probing(mut self, probing: Probing) -> Self {
        self.probing = probing;
        self
    }

    /// S' and the table: the pieces of a slice if a horizontal adapter lies in between, else 1.
    fn pieces(inner: Layers<'_>) -> Result<(u32, Layers<'_>), SpecError> {
        match inner.split() {
            Some((AdapterSpec::Horizontal(pieces), table)) => {
                if pieces.failed != FailedKeys::Duplicate {
                    let allowed = "duplicate inside vertical slices, whose own policy decides";
                    return Err(SpecError::new("failed", "fresh", allowed));
                }
                let HorizontalSpec { slices, .. } = *pieces;
                Ok((within("slices", slices, 1..=MOST_SLICES)?, table))
            }
            Some(_) | None => Ok((1, inner)),
        }
    }

    /// Whether the verdicts are those of the table while no slice has failed.
    fn is_exact(self, inner: Layers<'_>) -> bool {
        !matches!(self.failed, MissingCells::Hybrid { .. }) && inner.split().is_none()
    }
}

impl AdapterKind for VerticalSpec {
    const NAME: &'static str = "vertical";
    /// A duplicate changes no cell.
    const RENEWS_KEYS: bool = false;

    fn parse(options: &mut Options) -> Result<Self, SpecError> {
        let slices = options.integer("slices", 8, 1..=MOST_SLICES)?;
        let name = options.take("failed").unwrap_or_else(|| FAILED[0].into());
        let least = |options: &mut Options| options.integer("least", 1, 1..=MOST_HASHES);
        let failed = match name.as_str() {
            "duplicate" => MissingCells::Set,
            "fresh" => MissingCells::Fresh,
            "hybrid" => MissingCells::Hybrid {
                least: least(options)?,
            },
            "repaired" => MissingCells::Repaired {
                least: least(options)?,
            },
            _ => return Err(SpecError::new("failed", name, one_of(&FAILED))),
        };
        Ok(Self {
            slices,
            failed,
            probing: options.choice("probe", &PROBINGS)?,
        })
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let (failed, least) = match self.failed {
            MissingCells::Set => (FAILED[0], None),
            MissingCells::Fresh => (FAILED[1], None),
            MissingCells::Hybrid { least } => (FAILED[2], Some(least)),
            MissingCells::Repaired { least } => (FAILED[3], Some(least)),
        };
        let mut options = vec![
            ("slices", self.slices.to_string()),
            ("failed", failed.to_owned()),
        ];
        options.extend(least.map(|least| ("least", least.to_string())));
        options.push(("probe", name_of(&PROBINGS, &self.probing)));
        options
    }

    fn build(&self, inner: Layers<'_>) -> Result<Box<dyn Filter>, BuildError> {
        within("slices", self.slices, 1..=MOST_SLICES)?;
        let (pieces, table) = Self::pieces(inner)?;
        let table = table.cell_table(Self::NAME)?;
        let parts = u64::from(self.slices) * u64::from(pieces);
        if parts > table.len() {
            let allowed = format!("1 to {} (one cell in each piece)", table.len());
            let asked = if pieces == 1 {
                parts.to_string()
            } else {
                format!("{} of {pieces} pieces", self.slices)
            };
            return Err(SpecError::new("slices", asked, allowed).into());
        }
        match self.failed {
            MissingCells::Set | MissingCells::Fresh => {}
            MissingCells::Hybrid { least } | MissingCells::Repaired { least } => {
                within("least", least, 1..=table.hashes() as u32)?;
            }
        }
        let cut = Cut::new(table.len(), self.slices, pieces);
        Ok(Box::new(Vertical::new(table, cut, *self, inner.window())))
    }

    fn cache_lines(&self, inner: Layers<'_>) -> f64 {
        inner.kind.cache_lines(inner.form, inner.memory)
    }

    fn rate_model(&self, inner: Layers<'_>) -> Option<RateModel> {
        self.is_exact(inner).then(|| inner.rate_model()).flatten()
    }

    fn fpr_limit(&self, inner: Layers<'_>) -> Option<f64> {
        self.is_exact(inner).then(|| inner.fpr_limit()).flatten()
    }

    fn most_memory(&self, inner: Layers<'_>) -> u64 {
        inner.kind.most_memory()
    }
}
