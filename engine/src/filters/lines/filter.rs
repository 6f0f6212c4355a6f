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
use std::marker::PhantomData;
use std::ops::Range;

use super::touched::TouchedBlocks;
use crate::error::BuildError;
use crate::filters::Filter;
use crate::hash::KeyHash;
use crate::kernels::isa::{DetectedKernel, Kernel};
use crate::kernels::{BatchCounts, BatchLoop, ForKernel, LineOps, LineRange, LineStep, Outcome};
use crate::memory::{LINE_BYTES, Line, LineArray, check_available, prefetch};
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

    /// Whether sweeps are so frequent that they must skip lines without times.
    const SWEEPS_OFTEN: bool = false;

    /// Moves the clock of the rule, if it has one. Returns how many units of it have passed if
    /// every line must [`expire`](Self::expire) them now, before its times wrap around.
    fn advance_to(&mut self, _tick: u64) -> Option<u64> {
        None
    }

    /// Ages a line by units of the clock. `self` has the clock from before they passed. Returns
    /// whether the line holds a time afterwards; an empty line holds none.
    fn expire(self, _line: &mut Line, _units: u64) -> bool {
        false
    }

    /// Moves the clock back to 0.
    fn restart(&mut self) {}

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

/// A rule on a range of lines. The batch loop alone is compiled for a kernel.
#[derive(Debug)]
struct RuleLines<R> {
    lines: LineArray,
    range: LineRange,
    rule: R,
    kernel: Kernel,
    /// Chosen once, when the filter is built.
    batch: Box<dyn Batch<R>>,
    counts: Counts,
    /// The lines that a sweep must visit; all if `None`.
    touched: Option<TouchedBlocks>,
}

/// The batch loop of a rule, compiled for one kernel.
trait Batch<R>: fmt::Debug + Send {
    fn observe(
        &self,
        rule: R,
        lines: &mut [Line],
        range: LineRange,
        keys: &[KeyHash],
        duplicates: &mut [u64],
    ) -> BatchCounts;
}

/// The token of the kernel, which proves that this CPU has its instructions.
#[derive(Debug)]
struct Compiled<O>(O);

impl<O: LineOps, R: Rule> Batch<R> for Compiled<O> {
    fn observe(
        &self,
        rule: R,
        lines: &mut [Line],
        range: LineRange,
        keys: &[KeyHash],
        duplicates: &mut [u64],
    ) -> BatchCounts {
        let ops = self.0;
        ops.run(BatchLoop {
            lines,
            range,
            keys,
            duplicates,
            step: Step { ops, rule },
        })
    }
}

impl<R: Rule> Filter for RuleLines<R> {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        let (lines, range) = (&mut self.lines, self.range);
        if R::SWEEPS_OFTEN
            && let Some(touched) = &mut self.touched
        {
            for key in keys {
                touched.touch(range.position(*key));
            }
        }
        let counts = (self.batch).observe(self.rule, lines, range, keys, duplicates);
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
        let Some(passed) = passed.filter(|_| self.counts.observed > 0) else {
            return;
        };
        let lines = &mut self.lines;
        let all = 0..lines.len();
        let mut expire = |range: Range<usize>| {
            lines[range].iter_mut().fold(false, |holds, line| {
                // Every line of the range is visited.
                before.expire(line, passed) || holds
            })
        };
        match &mut self.touched {
            Some(touched) => touched.sweep(expire),
            None => {
                expire(all);
            }
        }
    }

    fn prefetch(&self, keys: &[KeyHash]) {
        for key in keys {
            prefetch(&self.lines, self.range.position(*key));
        }
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.rule.holds(&self.lines[self.range.position(key)], key)
    }

    fn clear(&mut self) {
        self.lines.fill(Line::EMPTY);
        if let Some(touched) = &mut self.touched {
            touched.clear();
        }
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

impl<R: Rule> LineFilter for RuleLines<R> {
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
    /// Allocates the lines of a rule that compares slots.
    ///
    /// # Errors
    /// [`BuildError`] if the memory is not available.
    pub(super) fn build<R: Rule>(self, rule: R) -> Result<Box<dyn LineFilter>, BuildError> {
        self.allocate(rule, self.kernel.dispatch(ForRule(PhantomData::<R>)))
    }

    /// Allocates the lines of a rule that works on the bits of whole words.
    ///
    /// # Errors
    /// [`BuildError`] if the memory is not available.
    pub(super) fn build_words<R: Rule>(self, rule: R) -> Result<Box<dyn LineFilter>, BuildError> {
        self.allocate(rule, self.kernel.dispatch_words(ForRule(PhantomData::<R>)))
    }

    fn allocate<R: Rule>(
        self,
        rule: R,
        batch: Box<dyn Batch<R>>,
    ) -> Result<Box<dyn LineFilter>, BuildError> {
        let lines = LineArray::zeroed(self.lines)?;
        Ok(Box::new(RuleLines {
            touched: R::SWEEPS_OFTEN.then(|| TouchedBlocks::new(lines.len())),
            lines,
            range: self.range,
            rule,
            kernel: self.kernel.kernel(),
            batch,
            counts: Counts::default(),
        }))
    }
}

/// Picks the batch loop of a rule by the kernel.
struct ForRule<R>(PhantomData<R>);

impl<R: Rule> ForKernel for ForRule<R> {
    type Output = Box<dyn Batch<R>>;

    fn call<O: LineOps>(self, ops: O) -> Box<dyn Batch<R>> {
        Box::new(Compiled(ops))
    }
}
