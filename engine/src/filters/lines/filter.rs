//! The line filter: an array of lines, a [`Rule`] for the effect of a key on its line, and a
//! kernel.
//!
//! [`RuleLines`] is compiled for every pair of rule and kernel. [`LineAllocation::build`] selects
//! the pair once and returns a boxed [`LineFilter`], so that the only dynamic call is one per
//! batch:
//!
//! ```text
//! observe_words (dynamic call)
//!   -> BatchLoop, compiled for kernel O      prefetch, one line per key, pack verdicts
//!        -> Step::visit -> R::visit          inlined: the rule on the line, by the operations of O
//! ```

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

/// A filter whose state is a range of lines. Cache lines touched per key: 1.
///
/// # Examples
/// ```
/// use echoless::{Filter, FingerprintSpec, KeyHash, LineFilter};
/// let mut filter = FingerprintSpec::new(1 << 20).build()?;
/// let key = KeyHash(u64::MAX);
/// filter.observe_one(key);
/// let changed = filter.lines().iter().position(|line| line.0 != [0; 8]);
/// assert_eq!(changed, Some(filter.range().position(key)));
/// # Ok::<(), echoless::BuildError>(())
/// ```
pub trait LineFilter: Filter {
    /// The current content of the lines.
    fn lines(&self) -> &[Line];

    /// The position of these lines in the whole filter: all of it, or a partition.
    fn range(&self) -> LineRange;

    /// P, the number of cells that an update decrements; `None` if an update decrements none.
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

/// The algorithm of a line filter: when a key is a duplicate, and how it changes its line.
///
/// A rule must depend on nothing but itself, the key and the line. Verdicts are then the same for
/// any partitioning and on every kernel.
pub(super) trait Rule: Copy + fmt::Debug + Send + 'static {
    /// Whether evictions can be counted from [`Outcome::displaced`]. Most rules clear single bits
    /// or decrement counters and cannot attribute them to a key.
    const COUNTS_EVICTIONS: bool = false;

    /// Probes the line for the key and inserts the key. Must be `#[inline(always)]`, because the
    /// batch loop that it is inlined into is compiled with the features of the kernel.
    fn visit<O: LineOps>(self, ops: O, line: &mut Line, key: KeyHash) -> Outcome;

    /// Which of up to 64 visits evicted another key, one bit each, from the bits of their outcomes.
    #[inline(always)]
    fn evictions(_duplicates: u64, _displaced: u64) -> u64 {
        0
    }

    /// Whether the key would be reported as a duplicate.
    fn holds(self, line: &Line, key: KeyHash) -> bool;

    /// The cells of one line, occupied and in total.
    fn cells(self, line: &Line) -> Cells;

    /// The probability that a key of this line that was never seen would be reported as a
    /// duplicate. `lines` is the number of lines of the whole filter.
    fn fpr(self, line: &Line, lines: u64) -> f64;

    /// The cells of all lines, and the sum of their false positive rates. `total` is the number of
    /// lines of the whole filter. Reads all lines, unless the rule can derive both from `_counts`.
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

    /// P, the number of cells that an update decrements.
    fn decrements(self) -> Option<u32> {
        None
    }
}

/// The numbers of keys since the filter was built or cleared.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) observed: u64,
    pub(super) fresh: u64,
    /// 0 if the rule does not count evictions.
    pub(super) evictions: u64,
}

/// A rule on a range of lines, compiled for one kernel.
#[derive(Debug)]
struct RuleLines<O, R> {
    lines: LineArray,
    range: LineRange,
    rule: R,
    /// The token of the kernel, which proves that this CPU has its instructions.
    ops: O,
    /// The name of the same kernel, for reports.
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

    fn contains(&self, key: KeyHash) -> bool {
        self.rule.holds(&self.lines[self.range.position(key)], key)
    }

    fn clear(&mut self) {
        self.lines.fill(Line::EMPTY);
        self.counts = Counts::default();
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

/// A rule and its kernel, as a step of the batch loop.
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

/// The lines that one filter or partition will own, with the kernel and the seed to build it with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineAllocation {
    /// The first line, and the number of lines of the whole filter.
    range: LineRange,
    /// The number of lines of this filter or partition.
    lines: u64,
    kernel: DetectedKernel,
    /// The seed of the random choices.
    pub(super) seed: u64,
}

/// The size, kernel and seed of a line filter, before it is divided into allocations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinePlan {
    /// The number of lines of the whole filter, at least 1.
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
    /// [`BuildError`] if this CPU cannot run the kernel, the memory is not available, or `build`
    /// fails.
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
    /// As for [`whole`](Self::whole), or if `count` is not 1 to the number of lines.
    pub(crate) fn partitions<F>(
        self,
        count: usize,
        build: impl Fn(LineAllocation) -> Result<F, BuildError>,
    ) -> Result<Partitioned<F>, BuildError> {
        // Checked for the whole: each partition alone could fit where all of them do not.
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
    /// Allocates empty lines and returns the filter of this rule for the kernel.
    ///
    /// # Errors
    /// [`BuildError`] if the memory cannot be allocated.
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

/// The parts of a [`RuleLines`] before the kernel becomes a type.
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
