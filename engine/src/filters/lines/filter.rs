//! The filter of lines: an array of lines, a rule for what a key does to its own, and a kernel.
//!
//! [`RuleLines`] is compiled for every pair of rule and kernel. The pair is chosen once, in
//! [`LineAllocation::build`]; what comes out is a [`LineFilter`] behind a box.

use std::fmt;
use std::ops::Range;

use crate::error::BuildError;
use crate::filters::Filter;
use crate::hash::KeyHash;
use crate::kernels::isa::{DetectedKernel, Kernel};
use crate::kernels::{BatchLoop, ForKernel, LineOps, LineRange, LineStep, Outcome};
use crate::memory::{LINE_BYTES, Line, LineArray, check_available};
use crate::partition::{Partitioned, Partitioning};
use crate::report::{Cells, RateSum, Report, Tally};

/// A filter whose state is a range of lines. One cache line is touched for each key.
pub trait LineFilter: Filter {
    /// The lines as they are now.
    fn lines(&self) -> &[Line];

    /// Which of the whole filter's lines they are: all, or those of a partition.
    fn range(&self) -> LineRange;

    /// P, the cells that an update decrements; `None` if the filter decrements none.
    fn decrements(&self) -> Option<u32> {
        None
    }
}

impl<F: LineFilter + ?Sized> LineFilter for Box<F> {
    fn lines(&self) -> &[Line] {
        (**self).lines()
    }

    fn range(&self) -> LineRange {
        (**self).range()
    }

    fn decrements(&self) -> Option<u32> {
        (**self).decrements()
    }
}

impl fmt::Debug for dyn LineFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("LineFilter");
        fields.field("lines", &self.lines().len());
        fields.field("range", &self.range());
        fields.finish_non_exhaustive()
    }
}

/// What a key does to its line, and what the line must hold for the key to be a duplicate.
pub(super) trait Rule: Copy + fmt::Debug + Send + 'static {
    /// Whether [`Outcome::displaced`] tells which keys were evicted. Bits and counters fade, so
    /// most rules cannot tell.
    const COUNTS_EVICTIONS: bool = false;

    /// Moves the clock of the rule, if it has one. Returns how many units of it have passed if
    /// every line must [`expire`](Self::expire) them now, before its times wrap around.
    fn advance_to(&mut self, _tick: u64) -> Option<u64> {
        None
    }

    /// Ages a line by units of the clock. `self` has the clock from before they passed.
    fn expire(self, _line: &mut Line, _units: u64) {}

    /// Moves the clock back to 0.
    fn restart(&mut self) {}

    /// Tests and records the key. Must be `#[inline(always)]`.
    fn visit<O: LineOps>(self, ops: O, line: &mut Line, key: KeyHash) -> Outcome;

    /// Of up to 64 visits, one bit each, those that evicted another key.
    #[inline(always)]
    fn evictions(_duplicates: u64, _displaced: u64) -> u64 {
        0
    }

    /// Whether the key would be a duplicate.
    fn holds(self, line: &Line, key: KeyHash) -> bool;

    /// The cells of one line, and how many of them hold something.
    fn cells(self, line: &Line) -> Cells;

    /// The probability that a key that was never seen, of this line among `lines`, would be
    /// reported as a duplicate.
    fn fpr(self, line: &Line, lines: u64) -> f64;

    /// The cells of all lines and the sum of their false positive rates.
    fn count(self, lines: &[Line], total: u64, _counts: Counts) -> (Cells, Option<RateSum>) {
        let mut cells = Cells::new(0, 0);
        let mut rates = RateSum::default();
        for line in lines {
            let here = self.cells(line);
            cells.occupied += here.occupied;
            cells.total += here.total;
            rates.push(self.fpr(line, total));
        }
        (cells, Some(rates))
    }

    /// The estimates that follow from a tally.
    fn estimates(self, tally: Tally) -> Report {
        Report::new(tally)
    }

    /// The cells that an update decrements.
    fn decrements(self) -> Option<u32> {
        None
    }
}

/// What the filter has counted since it was built or cleared.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) observed: u64,
    pub(super) fresh: u64,
    pub(super) evictions: u64,
}

/// Any rule on a range of lines, compiled for one kernel.
#[derive(Debug)]
struct RuleLines<O, R> {
    lines: LineArray,
    range: LineRange,
    rule: R,
    ops: O,
    kernel: Kernel,
    counts: Counts,
}

impl<O: LineOps, R: Rule> Filter for RuleLines<O, R> {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        let counts = self.ops.run(BatchLoop {
            lines: &mut self.lines,
            range: self.range,
            keys,
            duplicates,
            step: Step {
                ops: self.ops,
                rule: self.rule,
            },
        });
        let observed = keys.len() as u64;
        self.counts.observed += observed;
        self.counts.fresh += observed - counts.duplicates;
        self.counts.evictions += counts.evictions;
    }

    fn advance_to(&mut self, tick: u64) {
        let before = self.rule;
        let passed = self.rule.advance_to(tick);
        // Empty lines hold no times. The first tick of a stream usually lies far from 0, and a
        // sweep would touch all pages of a new filter.
        if let Some(passed) = passed
            && self.counts.observed > 0
        {
            for line in self.lines.iter_mut() {
                before.expire(line, passed);
            }
        }
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.rule.holds(&self.lines[self.range.position(key)], key)
    }

    fn clear(&mut self) {
        self.lines.fill(Line::EMPTY);
        self.counts = Counts::default();
        self.rule.restart();
    }

    fn memory_bytes(&self) -> u64 {
        self.lines.bytes()
    }

    fn tally(&self) -> Tally {
        let total = self.range.total;
        let (cells, rates) = self.rule.count(&self.lines, total, self.counts);
        let Counts {
            observed,
            fresh,
            evictions,
        } = self.counts;
        Tally {
            huge_page_bytes: Some(self.lines.huge_page_bytes()),
            observed: Some(observed),
            fresh: Some(fresh),
            evictions: R::COUNTS_EVICTIONS.then_some(evictions),
            cells: Some(cells),
            rates,
            ..Tally::new(self.lines.bytes())
        }
    }

    fn report_on(&self, tally: Tally) -> Report {
        Report {
            kernel: Some(self.kernel),
            ..self.rule.estimates(tally)
        }
    }
}

impl<O: LineOps, R: Rule> LineFilter for RuleLines<O, R> {
    fn lines(&self) -> &[Line] {
        &self.lines
    }

    fn range(&self) -> LineRange {
        self.range
    }

    fn decrements(&self) -> Option<u32> {
        self.rule.decrements()
    }
}

/// A rule as the batch loop sees it.
struct Step<O, R> {
    ops: O,
    rule: R,
}

impl<O: LineOps, R: Rule> LineStep for Step<O, R> {
    #[inline(always)]
    fn visit(&self, line: &mut Line, key: KeyHash) -> Outcome {
        self.rule.visit(self.ops, line, key)
    }

    #[inline(always)]
    fn evictions(duplicates: u64, displaced: u64) -> u64 {
        R::evictions(duplicates, displaced)
    }
}

/// The lines that one filter or partition owns, and what it is built with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineAllocation {
    /// Where the lines begin, and how many the whole filter has.
    range: LineRange,
    /// How many lines this filter owns.
    lines: u64,
    kernel: DetectedKernel,
    /// The seed of the random choices.
    pub(super) seed: u64,
}

/// A filter of whole lines, before it is divided into allocations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinePlan {
    /// The lines of the whole filter, at least one.
    pub(crate) lines: u64,
    /// The kernel to run on; the best one if `None`.
    pub(crate) kernel: Option<Kernel>,
    /// The seed of the random choices.
    pub(crate) seed: u64,
}

impl LinePlan {
    /// Builds the whole filter.
    ///
    /// # Errors
    /// [`BuildError`] if this CPU lacks the kernel, the memory is refused, or `build` fails.
    pub(crate) fn whole<F>(
        self,
        build: impl Fn(LineAllocation) -> Result<F, BuildError>,
    ) -> Result<F, BuildError> {
        check_available(self.lines * LINE_BYTES)?;
        build(self.allocation(0..self.lines)?)
    }

    /// Builds the filter as `count` partitions, each a contiguous range of its lines.
    ///
    /// # Errors
    /// As [`whole`](Self::whole), or if there are fewer lines than partitions, or no partition.
    pub(crate) fn partitions<F>(
        self,
        count: usize,
        build: impl Fn(LineAllocation) -> Result<F, BuildError>,
    ) -> Result<Partitioned<F>, BuildError> {
        // Each partition alone might still fit.
        check_available(self.lines * LINE_BYTES)?;
        let partitioning = Partitioning::new(self.lines, count)?;
        let filters = (0..count)
            .map(|index| build(self.allocation(partitioning.lines_of(index))?))
            .collect::<Result<_, _>>()?;
        Ok(Partitioned::new(partitioning, filters)?)
    }

    fn allocation(self, lines: Range<u64>) -> Result<LineAllocation, BuildError> {
        Ok(LineAllocation {
            range: LineRange {
                total: self.lines,
                first: lines.start,
            },
            lines: lines.end - lines.start,
            kernel: self
                .kernel
                .map_or(Ok(DetectedKernel::best()), Kernel::detect)?,
            seed: self.seed,
        })
    }
}

impl LineAllocation {
    /// Allocates the lines and puts the rule to work on them.
    ///
    /// # Errors
    /// [`BuildError`] if the machine refuses the memory.
    pub(super) fn build(self, rule: impl Rule) -> Result<Box<dyn LineFilter>, BuildError> {
        let lines = LineArray::zeroed(self.lines)?;
        Ok(self.kernel.dispatch(BuildLines {
            lines,
            range: self.range,
            rule,
            kernel: self.kernel.kernel(),
        }))
    }
}

/// A filter whose kernel is not a type yet.
struct BuildLines<R> {
    lines: LineArray,
    range: LineRange,
    rule: R,
    kernel: Kernel,
}

impl<R: Rule> ForKernel for BuildLines<R> {
    type Output = Box<dyn LineFilter>;

    fn call<O: LineOps>(self, ops: O) -> Box<dyn LineFilter> {
        Box::new(RuleLines {
            lines: self.lines,
            range: self.range,
            rule: self.rule,
            ops,
            kernel: self.kernel,
            counts: Counts::default(),
        })
    }
}
