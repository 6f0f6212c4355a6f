//! From a specification to a filter: the adapters from the outermost to the innermost, then the
//! filter itself. An adapter gets the layers under it and builds them as often as it needs.

use super::adapter::AdapterRow;
use crate::error::{BuildError, SpecError};
use crate::filters::lines::{LineAllocation, LineFilter, LinePlan, MOST_LINES};
use crate::filters::row::{BuildLines, FilterRow, Named};
use crate::filters::{Facts, Filter, Form};
use crate::hash::KeyHash;
use crate::isa::Kernel;
use crate::memory::LINE_BYTES;
use crate::partition::Partitioned;

/// Adapters, outermost first, and the filter under them.
///
/// ```text
///   horizontal:slices=8 / growing:fpr=0.01 / bloom:k=8     memory=1MiB
///   ^ outer               ^ the layers under it, built 8 times in 128 KiB each
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Layers<'a> {
    /// Each is `Some`.
    pub adapters: &'a [Option<Named>],
    /// The filter under all adapters.
    pub kind: Named,
    /// The form of that filter.
    pub form: Form,
    /// The memory of all layers together, in bytes.
    pub memory: u64,
    /// The seed of the random choices.
    pub seed: u64,
    /// The kernel to run on; the best one if `None`.
    pub kernel: Option<Kernel>,
}

impl<'a> Layers<'a> {
    /// The outermost adapter and the layers under it; `None` if there is no adapter.
    pub fn split(self) -> Option<(&'a Named, Self)> {
        let (outer, adapters) = self.adapters.split_first()?;
        Some((outer.as_ref()?, Self { adapters, ..self }))
    }

    /// The number of adapters of this name: it differs from one to the next further out, so that
    /// nested ones can draw from different streams of a key hash.
    pub fn count_of(self, name: &str) -> u64 {
        let adapters = self.adapters.iter().flatten();
        adapters.filter(|adapter| adapter.name() == name).count() as u64
    }

    /// The row of the filter under all adapters.
    fn row(self) -> &'static FilterRow {
        FilterRow::of(&self.kind)
    }

    /// The name of the outermost layer.
    pub fn name(self) -> &'static str {
        match self.split() {
            Some((outer, _)) => outer.name(),
            None => self.kind.name(),
        }
    }

    /// The layers of part `index` of `count` equal parts: an equal share of the memory, and a seed
    /// of its own.
    pub fn part(self, count: u32, index: u32) -> Self {
        Self {
            memory: self.memory / u64::from(count),
            seed: KeyHash(self.seed).remix(u64::from(index)),
            ..self
        }
    }

    /// Builds all layers.
    pub fn build(self) -> Result<Box<dyn Filter>, BuildError> {
        match (self.split(), self.form) {
            (Some((outer, inner)), _) => (AdapterRow::of(outer).build)(outer, inner),
            (None, Form::Scattered) => match self.row().scattered {
                Some(build) => build(&self.kind, self.memory, self.seed),
                None => {
                    let allowed = format!("line, the only form of {}", self.kind.name());
                    Err(SpecError::new("form", "scattered", allowed).into())
                }
            },
            (None, Form::Line) => {
                let plan = self.plan()?;
                let filter = plan.range(0..plan.lines, |lines| self.build_lines(lines))?;
                Ok(filter)
            }
        }
    }

    /// Whether the verdicts are those of one line filter, so that ranges of its lines can have
    /// owners of their own.
    pub fn has_partitions(self) -> bool {
        self.form == Form::Line
            && self.row().lines.is_some()
            && match self.split() {
                None => true,
                Some((outer, inner)) => {
                    AdapterRow::of(outer).check_lines.is_some() && inner.split().is_none()
                }
            }
    }

    /// The plan of a filter that [has partitions](Self::has_partitions), with its slices checked.
    pub fn partition_plan(self) -> Result<LinePlan, SpecError> {
        let plan = self.plan()?;
        if let Some((outer, _)) = self.split()
            && let Some(check) = AdapterRow::of(outer).check_lines
        {
            check(outer, plan.buckets())?;
        }
        Ok(plan)
    }

    /// The line form as a plan of its lines, checked against the most lines, 2^32.
    pub fn plan(self) -> Result<LinePlan, SpecError> {
        let facts = self.row().facts(&self.kind, Form::Line, self.memory);
        let bucket_lines = facts.memory_unit / LINE_BYTES;
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

    /// How the lines of the filter under all adapters are built.
    pub fn line_form(self) -> Result<BuildLines, SpecError> {
        self.row().lines.ok_or_else(|| self.no_line_form())
    }

    /// Builds a range of the lines of the filter under all adapters.
    pub fn build_lines(self, lines: LineAllocation) -> Result<Box<dyn LineFilter>, BuildError> {
        self.line_form()?(&self.kind, lines)
    }

    /// Builds the lines of the filter under all adapters as `count` partitions.
    pub fn partitions(self, count: usize) -> Result<Partitioned<Box<dyn LineFilter>>, BuildError> {
        self.plan()?
            .partitions(count, |lines| self.build_lines(lines))
    }

    /// The error about a filter without a line form. It names the filters that have one.
    fn no_line_form(self) -> SpecError {
        let names = FilterRow::names_of(|row| row.lines.is_some());
        let allowed = format!(
            "scattered for {}; the line form exists for {}",
            self.kind.name(),
            names.join(", ")
        );
        SpecError::new("form", "line", allowed)
    }

    /// What is known of the layers. A rate of 1 is no limit.
    pub fn facts(self) -> Facts {
        let facts = match self.split() {
            Some((outer, inner)) => (AdapterRow::of(outer).facts)(outer, inner),
            None => self.row().facts(&self.kind, self.form, self.memory),
        };
        Facts {
            fpr_limit: facts.fpr_limit.filter(|limit| *limit < 1.0),
            ..facts
        }
    }
}
