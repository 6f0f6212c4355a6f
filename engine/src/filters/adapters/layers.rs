//! From a specification to a filter: the adapters from the outermost to the innermost, then the
//! filter itself. An adapter gets the layers under it and builds them as often as it needs.

use super::AdapterSpec;
use crate::error::{BuildError, SpecError};
use crate::filters::cell_table::CellTable;
use crate::filters::lines::{LineAllocation, LineFilter, LinePlan};
use crate::filters::{Filter, FilterKind, Form};
use crate::hash::KeyHash;
use crate::isa::Kernel;
use crate::memory::LINE_BYTES;
use crate::options::one_of;
use crate::partition::Partitioned;
use crate::theory::RateModel;
use crate::window::Window;

/// The most lines of a line form: 2^32, which is 256 GiB.
///
/// The high bits of a hash select the line. Up to this number they are at most the upper half of
/// the hash, and positions within a line may come from the lower half (see `lines::layout`).
const MOST_LINES: u64 = 1 << 32;

/// Adapters, outermost first, and the filter under them.
///
/// ```text
///   horizontal:slices=8 / growing:fpr=0.01 / bloom:k=8     memory=1MiB
///   ^ outer               ^ the layers under it, built 8 times in 128 KiB each
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layers<'a> {
    /// Each is `Some`.
    pub(crate) adapters: &'a [Option<AdapterSpec>],
    pub(crate) kind: FilterKind,
    pub(crate) form: Form,
    /// The memory of all layers together, in bytes.
    pub(crate) memory: u64,
    pub(crate) seed: u64,
    pub(crate) kernel: Option<Kernel>,
}

impl<'a> Layers<'a> {
    /// The outermost adapter and the layers under it; `None` if there is no adapter.
    pub(super) fn split(self) -> Option<(&'a AdapterSpec, Self)> {
        let (outer, adapters) = self.adapters.split_first()?;
        Some((outer.as_ref()?, Self { adapters, ..self }))
    }

    /// The number of adapters of this name: it differs from one to the next further out, so that
    /// nested ones can draw from different streams of a key hash.
    pub(super) fn count_of(self, name: &str) -> u64 {
        let adapters = self.adapters.iter().flatten();
        adapters.filter(|adapter| adapter.name() == name).count() as u64
    }

    /// The name of the outermost layer.
    pub(super) fn name(self) -> &'static str {
        match self.split() {
            Some((outer, _)) => outer.name(),
            None => self.kind.name(),
        }
    }

    /// The layers of part `index` of `count` equal parts: an equal share of the memory, and a seed
    /// of its own.
    pub(super) fn part(self, count: u32, index: u32) -> Self {
        Self {
            memory: self.memory / u64::from(count),
            seed: KeyHash(self.seed).remix(u64::from(index)),
            ..self
        }
    }

    /// Builds all layers.
    pub(crate) fn build(self) -> Result<Box<dyn Filter>, BuildError> {
        match (self.split(), self.form) {
            (Some((outer, inner)), _) => outer.build(inner),
            (None, Form::Scattered) => self.kind.build_scattered(self.memory, self.seed),
            (None, Form::Line) => Ok(self.plan()?.whole(|lines| self.build_lines(lines))?),
        }
    }

    /// Whether the verdicts are those of one line filter, so that ranges of its lines can have
    /// owners of their own.
    pub(crate) fn has_partitions(self) -> bool {
        self.form == Form::Line
            && match self.split() {
                None => true,
                Some((outer, inner)) => {
                    matches!(outer, AdapterSpec::Horizontal(_)) && inner.split().is_none()
                }
            }
    }

    /// The plan of a filter that [has partitions](Self::has_partitions), with its slices checked.
    pub(crate) fn partition_plan(self) -> Result<LinePlan, SpecError> {
        let plan = self.plan()?;
        if let Some((AdapterSpec::Horizontal(slices), _)) = self.split() {
            slices.check_lines(plan.buckets())?;
        }
        Ok(plan)
    }

    /// The line form as a plan of its lines, checked against [`MOST_LINES`].
    pub(crate) fn plan(self) -> Result<LinePlan, SpecError> {
        let bucket_lines = self.kind.bucket_lines();
        let (memory, lines) = (self.memory, self.memory / LINE_BYTES);
        let lines = lines - lines % bucket_lines;
        if !(1..=MOST_LINES).contains(&lines) {
            let allowed = match bucket_lines {
                1 => "64 B (one line) to 256 GiB (2^32 lines)",
                _ => "4096 B (one page) to 256 GiB (2^32 lines)",
            };
            return Err(SpecError::new("memory", format!("{memory} B"), allowed));
        }
        Ok(LinePlan {
            lines,
            bucket_lines,
            kernel: self.kernel,
            seed: self.seed,
        })
    }

    /// Builds a range of the lines of the filter under all adapters.
    pub(crate) fn build_lines(
        self,
        lines: LineAllocation,
    ) -> Result<Box<dyn LineFilter>, BuildError> {
        self.kind
            .build_lines(lines)
            .unwrap_or_else(|| Err(self.no_line_form().into()))
    }

    /// Builds the lines of the filter under all adapters as `count` partitions.
    pub(crate) fn partitions(
        self,
        count: usize,
    ) -> Result<Partitioned<Box<dyn LineFilter>>, BuildError> {
        self.plan()?
            .partitions(count, |lines| self.build_lines(lines))
    }

    /// The error about a filter without a line form. It names the filters that have one.
    fn no_line_form(self) -> SpecError {
        let names = FilterKind::names_of(Form::Line, FilterKind::has_line_form);
        let allowed = format!(
            "scattered for {}; the line form exists for {}",
            self.kind.name(),
            names.join(", ")
        );
        SpecError::new("form", "line", allowed)
    }

    /// Builds the filter as a table of cells, for the adapter `under`.
    ///
    /// # Errors
    /// [`BuildError`] if an adapter lies in between, or the filter is no table of cells.
    pub(super) fn cell_table(self, under: &'static str) -> Result<Box<dyn CellTable>, BuildError> {
        if self.split().is_none() {
            if self.form == Form::Line {
                let allowed = format!("scattered under {under}");
                return Err(SpecError::new("form", "line", allowed).into());
            }
            if let Some(table) = self.kind.build_cells(self.memory) {
                return table;
            }
        }
        // The smallest memory that holds a cell for each of 64 positions.
        let is_table = |kind: &FilterKind| kind.build_cells(64).is_some();
        let names = FilterKind::names_of(Form::Scattered, is_table);
        let allowed = format!("{}, whose keys have cells in one table", one_of(&names));
        Err(SpecError::new(under, self.name(), allowed).into())
    }

    /// The mean number of cache lines that a fresh key touches at most.
    pub(crate) fn cache_lines(self) -> f64 {
        match self.split() {
            Some((outer, inner)) => outer.cache_lines(inner),
            None => self.kind.cache_lines(self.form, self.memory),
        }
    }

    /// The formula for the error rates on uniform streams, if there is one.
    pub(crate) fn rate_model(self) -> Option<RateModel> {
        match self.split() {
            Some((outer, inner)) => outer.rate_model(inner),
            None => self.kind.rate_model(self.form, self.memory),
        }
    }

    /// The false positive rate that is never exceeded, if there is one below 1.
    pub(crate) fn fpr_limit(self) -> Option<f64> {
        let limit = match self.split() {
            Some((outer, inner)) => outer.fpr_limit(inner),
            None => self.kind.fpr_limit(self.form, self.memory),
        };
        limit.filter(|limit| *limit < 1.0)
    }

    /// The most memory, in bytes.
    pub(crate) fn most_memory(self) -> u64 {
        match (self.split(), self.form) {
            (Some((outer, inner)), _) => outer.most_memory(inner),
            (None, Form::Scattered) => self.kind.most_memory(),
            (None, Form::Line) => MOST_LINES * LINE_BYTES,
        }
    }

    /// How long a key is remembered, if the filter has a window.
    pub(crate) fn window(self) -> Option<Window> {
        match self.split() {
            Some((outer, inner)) => outer.window(inner),
            None => self.kind.window(),
        }
    }
}
