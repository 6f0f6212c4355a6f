//! The line filter: an array of lines, a [`Rule`] for the effect of a key on its bucket, and a
//! kernel. The [plan](super::plan) determines the number of lines.
//!
//! The loops are compiled for every pair of rule and kernel. [`LineAllocation::build`] selects the
//! loops of a batch once; a single key selects its code again, by the kernel:
//!
//! ```text
//! observe_words -> Batch::observe (two dynamic calls for a batch)
//!   -> BatchLoop or BlockLoop, for kernel O  prefetch, one line per key, pack verdicts
//!        -> Step::visit -> R::visit          inlined: the rule on the line, by the operations of O
//! observe_one (a dynamic call, and branches on the kernel)
//!   -> SingleVisit, for kernel O -> Step::visit -> R::visit
//! ```

use std::any::type_name;
use std::fmt;
use std::marker::PhantomData;
use std::slice;

use super::plan::LineAllocation;
use super::rule::{Counts, Rule};
use super::touched::Touched;
use crate::error::BuildError;
use crate::filters::Filter;
use crate::filters::filter::{check_length, check_ticks};
use crate::hash::KeyHash;
use crate::kernels::isa::DetectedKernel;
use crate::kernels::scalar::Scalar;
use crate::kernels::{
    BLOCK, BatchCounts, BatchLoop, BlockLoop, Bucket, ForKernel, LineOps, LineRange, LineStep,
    LookAhead, Outcome, SingleVisit,
};
use crate::memory::{CacheLevel, Line, LineArray};
use crate::report::{Report, Tally};
use crate::verdicts::Verdict;

/// A filter whose state is a range of lines. Cache lines touched per key: 1, or 2 of a page in
/// dense lines.
///
/// # Examples
/// ```
/// use echoless::{Filter, FingerprintSpec, KeyHasher, LineFilter};
/// let mut filter = FingerprintSpec::new(1 << 20).build()?;
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// filter.observe_one(key);
/// let changed = filter.lines().iter().position(|line| line.0 != [0; 8]);
/// assert_eq!(changed, Some(filter.range().position(key)));
/// # Ok::<(), echoless::BuildError>(())
/// ```
pub trait LineFilter: Filter + Sync {
    /// The current content of the lines.
    fn lines(&self) -> &[Line];

    /// The position of these lines in the whole filter: all of it, or a partition.
    fn range(&self) -> LineRange;

    /// The number of lines of a bucket: 1 if everything that a key reads or writes lies in its
    /// line, 64 if it lies in the aligned page of 64 lines around it.
    fn bucket_lines(&self) -> u64;

    /// The counts and the clock: with the lines, the whole state of the filter.
    fn progress(&self) -> Progress;

    /// The rule and its options as text, without the range, the kernel and the clock. Filters of
    /// one specification have equal texts; those of other line forms or options have different
    /// ones. For comparisons within a program: the text can change with every version.
    fn parameters(&self) -> String;

    /// Takes over the counts and the clock of a saved filter of the same specification, and
    /// returns the lines, which the caller overwrites with those of the saved one.
    /// [`SavedState`](crate::spec::SavedState) does both.
    fn resume(&mut self, progress: Progress) -> &mut [Line];

    /// P, the number of cells that an update decrements; `None` if an update decrements none.
    fn decrements(&self) -> Option<u32> {
        None
    }
}

/// The state of a line filter beside its lines.
///
/// # Examples
/// ```
/// use echoless::{Filter, FingerprintSpec, KeyHasher, LineFilter};
/// let mut filter = FingerprintSpec::new(1 << 20).build()?;
/// filter.observe_one(KeyHasher::seeded(0).hash(b"call 17"));
/// let progress = filter.progress();
/// assert_eq!((progress.observed, progress.fresh, progress.tick), (1, 1, 0));
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The keys that were observed since the filter was built or cleared.
    pub observed: u64,
    /// The fresh ones.
    pub fresh: u64,
    /// The keys that were evicted; 0 if the filter does not count them.
    pub evictions: u64,
    /// The clock, rounded down to a tick that the filter can distinguish from the one before; 0
    /// without a window.
    pub tick: u64,
}

impl<F: LineFilter + ?Sized> LineFilter for Box<F> {
    fn lines(&self) -> &[Line] {
        (**self).lines()
    }

    fn range(&self) -> LineRange {
        (**self).range()
    }

    fn bucket_lines(&self) -> u64 {
        (**self).bucket_lines()
    }

    fn progress(&self) -> Progress {
        (**self).progress()
    }

    fn parameters(&self) -> String {
        (**self).parameters()
    }

    fn resume(&mut self, progress: Progress) -> &mut [Line] {
        (**self).resume(progress)
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

/// A rule on a range of lines. The batch loop alone is compiled for a kernel.
#[derive(Debug)]
struct RuleLines<R: Rule> {
    lines: LineArray,
    range: LineRange,
    rule: R,
    kernel: DetectedKernel,
    /// The cache to prefetch into.
    into: CacheLevel,
    /// Chosen once, when the filter is built.
    batch: Box<dyn Batch<R>>,
    counts: Counts,
    /// The lines to sweep, if the rule sweeps.
    touched: Touched,
}

/// The batch loop of a rule, compiled for one kernel.
trait Batch<R: Rule>: fmt::Debug + Send + Sync {
    fn observe(
        &self,
        rule: R,
        lines: &mut [Line],
        range: LineRange,
        keys: &[KeyHash],
        duplicates: &mut [u64],
    ) -> BatchCounts;

    /// The same with a tick for each key, all of them in one era of the rule. Only for rules with a
    /// clock.
    fn observe_at(
        &self,
        rule: R,
        lines: &mut [Line],
        range: LineRange,
        keys: &[KeyHash],
        ticks: &[u64],
        duplicates: &mut [u64],
    ) -> BatchCounts;
}

/// The token of the kernel, which proves that this CPU has its instructions, and how far to look
/// ahead.
#[derive(Debug)]
struct Compiled<O> {
    ops: O,
    look_ahead: LookAhead,
}

impl<O: LineOps, R: Rule> Batch<R> for Compiled<O> {
    fn observe(
        &self,
        rule: R,
        lines: &mut [Line],
        range: LineRange,
        keys: &[KeyHash],
        duplicates: &mut [u64],
    ) -> BatchCounts {
        let step = Step {
            ops: self.ops,
            rule,
        };
        self.run(lines, range, keys, duplicates, step)
    }

    fn observe_at(
        &self,
        rule: R,
        lines: &mut [Line],
        range: LineRange,
        keys: &[KeyHash],
        ticks: &[u64],
        duplicates: &mut [u64],
    ) -> BatchCounts {
        if !R::HAS_CLOCK {
            unreachable!("ticks for a rule without a clock");
        }
        let step = TickedStep {
            step: Step {
                ops: self.ops,
                rule,
            },
            ticks: ticks.iter(),
        };
        self.run(lines, range, keys, duplicates, step)
    }
}

impl<O: LineOps> Compiled<O> {
    /// Runs a batch through the loop for its length.
    #[inline]
    fn run<S: LineStep>(
        &self,
        lines: &mut [Line],
        range: LineRange,
        keys: &[KeyHash],
        duplicates: &mut [u64],
        step: S,
    ) -> BatchCounts {
        if keys.len() > BLOCK {
            let look_ahead = self.look_ahead;
            self.ops.run(BatchLoop {
                lines,
                range,
                keys,
                duplicates,
                look_ahead,
                step,
            })
        } else {
            let into = self.look_ahead.into_cache(range.total);
            self.ops.run(BlockLoop {
                lines,
                range,
                keys,
                duplicates,
                into,
                step,
            })
        }
    }
}

impl<R: Rule> RuleLines<R> {
    /// Counts a batch, and notes its lines if they may be swept.
    fn count(&mut self, keys: &[KeyHash], counts: BatchCounts) {
        let observed = keys.len() as u64;
        self.counts.observed += observed;
        self.counts.fresh += observed - counts.duplicates;
        self.counts.evictions += counts.evictions;
        if R::HAS_CLOCK {
            self.touched.note::<R::Bucket>(self.range, keys);
        }
    }

    /// Observes keys at ticks of the current era of the clock, or before it.
    fn observe_in_era(&mut self, keys: &[KeyHash], ticks: &[u64], duplicates: &mut [u64]) {
        let (lines, range) = (&mut self.lines, self.range);
        let counts = (self.batch).observe_at(self.rule, lines, range, keys, ticks, duplicates);
        self.count(keys, counts);
        // The loop moved a copy of the clock, which ended at the latest tick.
        self.rule.follow(ticks.iter().copied().max().unwrap_or(0));
    }
}

impl<R: Rule> Filter for RuleLines<R> {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        let (lines, range) = (&mut self.lines, self.range);
        let counts = (self.batch).observe(self.rule, lines, range, keys, duplicates);
        self.count(keys, counts);
    }

    fn observe_one(&mut self, key: KeyHash) -> Verdict {
        let bucket = R::Bucket::at_mut(&mut self.lines, self.range.position(key));
        let rule = self.rule;
        let counts = on_kernel::<R, _>(self.kernel, OneKey { rule, bucket, key });
        self.count(&[key], counts);
        Verdict::from_bit(counts.duplicates == 1)
    }

    /// Whole words of keys are one batch up to the next sweep. The keys of the word in which the
    /// clock enters a new era are observed one by one.
    fn observe_words_at(&mut self, keys: &[KeyHash], ticks: &[u64], duplicates: &mut [u64]) {
        check_ticks(keys, ticks);
        check_length(keys, duplicates);
        if !R::HAS_CLOCK {
            return self.observe_words(keys, duplicates);
        }
        let mut from = 0;
        while from < keys.len() {
            self.advance_to(ticks[from]);
            let era = self.rule.next_era();
            let in_era = ticks[from..].iter().position(|tick| *tick >= era);
            let end = in_era.map_or(keys.len(), |count| from + count / 64 * 64);
            if end > from {
                let words = &mut duplicates[from / 64..end.div_ceil(64)];
                self.observe_in_era(&keys[from..end], &ticks[from..end], words);
                from = end;
                continue;
            }
            let end = keys.len().min(from + 64);
            let mut word = 0;
            for at in from..end {
                self.advance_to(ticks[at]);
                let duplicate = self.observe_one(keys[at]).is_duplicate();
                word |= u64::from(duplicate) << (at - from);
            }
            duplicates[from / 64] = word;
            from = end;
        }
    }

    fn advance_to(&mut self, tick: u64) {
        let before = self.rule;
        let passed = self.rule.advance_to(tick);
        // Empty lines hold no times, and a sweep would touch all pages of a new filter.
        if let Some(passed) = passed {
            let expire = |line: &mut Line| before.expire(line, passed);
            self.touched.sweep(&mut self.lines, expire);
        }
    }

    fn prefetch(&self, keys: &[KeyHash]) {
        for key in keys {
            R::Bucket::prefetch(&self.lines, self.range.position(*key), *key, self.into);
        }
    }

    fn contains(&self, key: KeyHash) -> bool {
        let bucket = R::Bucket::at(&self.lines, self.range.position(key));
        self.rule.holds(bucket, key)
    }

    fn clear(&mut self) {
        empty(&mut self.lines, &mut self.touched);
        self.counts = Counts::default();
        self.rule.restart();
    }

    fn memory_bytes(&self) -> u64 {
        self.lines.bytes()
    }

    // Not inlined into `report`: it would be a third copy for each rule.
    #[inline(never)]
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

    #[inline(never)]
    fn report_on(&self, tally: Tally) -> Report {
        Report {
            kernel: Some(self.kernel.kernel()),
            ..self.rule.estimates(tally)
        }
    }
}

/// Empties the lines. It is compiled once for all rules.
#[inline(never)]
fn empty(lines: &mut [Line], touched: &mut Touched) {
    lines.fill(Line::EMPTY);
    *touched = Touched::none();
}

/// A rule as text. It is compiled once for all rules.
#[inline(never)]
fn rule_text(name: &str, rule: &dyn fmt::Debug) -> String {
    format!("{name} {rule:?}")
}

impl<R: Rule> LineFilter for RuleLines<R> {
    fn lines(&self) -> &[Line] {
        &self.lines
    }

    fn range(&self) -> LineRange {
        self.range
    }

    fn bucket_lines(&self) -> u64 {
        R::Bucket::LINES as u64
    }

    fn progress(&self) -> Progress {
        Progress {
            observed: self.counts.observed,
            fresh: self.counts.fresh,
            evictions: self.counts.evictions,
            tick: self.rule.tick(),
        }
    }

    fn parameters(&self) -> String {
        let mut rule = self.rule;
        rule.restart();
        // The type has the policy and the width of a slot, the fields all other options.
        rule_text(type_name::<R>(), &rule)
    }

    fn resume(&mut self, progress: Progress) -> &mut [Line] {
        self.counts = Counts {
            observed: progress.observed,
            fresh: progress.fresh,
            evictions: progress.evictions,
        };
        // No sweep: the lines that will be in place were swept before they were saved.
        self.rule.restart();
        self.rule.advance_to(progress.tick);
        self.touched = Touched::Many;
        &mut self.lines
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
    type Bucket = R::Bucket;

    #[inline(always)]
    fn visit(&mut self, bucket: &mut R::Bucket, key: KeyHash) -> Outcome {
        self.rule.visit(self.ops, bucket, key)
    }

    #[inline(always)]
    fn evictions(duplicates: u64, displaced: u64) -> u64 {
        R::evictions(duplicates, displaced)
    }

    const FINDS_LINES: bool = O::FINDS_LINES;

    const HAS_SHORT_VISITS: bool = R::HAS_SHORT_VISITS;
}

/// A step that moves the clock of its rule to the tick of each key.
struct TickedStep<'a, O, R> {
    step: Step<O, R>,
    /// The ticks of the keys that are not visited yet.
    ticks: slice::Iter<'a, u64>,
}

impl<O: LineOps, R: Rule> LineStep for TickedStep<'_, O, R> {
    type Bucket = R::Bucket;

    #[inline(always)]
    fn visit(&mut self, bucket: &mut R::Bucket, key: KeyHash) -> Outcome {
        if let Some(tick) = self.ticks.next() {
            self.step.rule.follow(*tick);
        }
        self.step.visit(bucket, key)
    }

    #[inline(always)]
    fn evictions(duplicates: u64, displaced: u64) -> u64 {
        R::evictions(duplicates, displaced)
    }

    const FINDS_LINES: bool = O::FINDS_LINES;

    const HAS_SHORT_VISITS: bool = R::HAS_SHORT_VISITS;
}

impl LineAllocation {
    /// Allocates the lines of a rule.
    ///
    /// # Errors
    /// [`BuildError`] if the memory is not available.
    pub(super) fn build<R: Rule>(self, rule: R) -> Result<Box<dyn LineFilter>, BuildError> {
        Ok(Box::new(RuleLines {
            lines: LineArray::zeroed(self.lines)?,
            range: self.range,
            rule,
            kernel: self.kernel,
            into: self.look_ahead.into_cache(self.range.total),
            batch: on_kernel::<R, _>(self.kernel, ForRule(self.look_ahead, PhantomData)),
            counts: Counts::default(),
            touched: Touched::none(),
        }))
    }
}

/// Calls `with` with the operations of the kernel that a rule runs on.
#[inline]
fn on_kernel<R: Rule, W: ForKernel>(kernel: DetectedKernel, with: W) -> W::Output {
    // To compile all rules for all kernels takes minutes. The tests inside this crate and the
    // models are not about rules on kernels; those in `engine/tests` are.
    if cfg!(any(test, loom)) {
        with.call(Scalar)
    } else if R::HAS_PORTABLE_LOOP {
        kernel.dispatch(with)
    } else {
        kernel.dispatch_words(with)
    }
}

/// A single key and its bucket. Predicted branches on the kernel lead to its code, where a function
/// in a table would take two dependent loads.
struct OneKey<'a, R: Rule> {
    rule: R,
    bucket: &'a mut R::Bucket,
    key: KeyHash,
}

impl<R: Rule> ForKernel for OneKey<'_, R> {
    type Output = BatchCounts;

    #[inline(always)]
    fn call<O: LineOps>(self, ops: O) -> BatchCounts {
        let Self { rule, bucket, key } = self;
        let step = Step { ops, rule };
        ops.run(SingleVisit { bucket, key, step })
    }
}

/// Picks the batch loop of a rule by the kernel.
struct ForRule<R>(LookAhead, PhantomData<R>);

impl<R: Rule> ForKernel for ForRule<R> {
    type Output = Box<dyn Batch<R>>;

    fn call<O: LineOps>(self, ops: O) -> Box<dyn Batch<R>> {
        Box::new(Compiled {
            ops,
            look_ahead: self.0,
        })
    }
}
