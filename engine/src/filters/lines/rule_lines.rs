//! A rule on an array of lines, as a filter. The [plan](super::plan) determines the number of
//! lines; the [loops](super::rule_loop) are compiled for every pair of rule and kernel.

use std::any::type_name;
use std::fmt;
use std::ops::Range;

use super::expiry::Expiry;
use super::line_filter::{LineFilter, Progress};
use super::plan::LineAllocation;
use super::rule::Rule;
use super::rule_loop::{RuleBatch, RuleLoops, for_kernel, observe_one};
use crate::error::BuildError;
use crate::filters::{Batch, Filter, Ticks};
use crate::hash::KeyHash;
use crate::isa::{DetectedKernel, HotLoop};
use crate::kernels::{BatchCounts, Bucket, LineRange, MOST_LINES, PAGE_LINES};
use crate::limits::within;
use crate::memory::{Line, LineArray};
use crate::report::{Cells, RateSum, Report, Tally};

/// A rule on a range of lines. The batch loop alone is compiled for a kernel.
#[derive(Debug)]
struct RuleLines<R: Rule> {
    lines: LineArray,
    range: LineRange,
    rule: R,
    kernel: DetectedKernel,
    loops: RuleLoops<R>,
    /// Without the tick, which the rule has.
    counts: Progress,
    /// The lines that have not expired in this era of the clock; `None` if all have.
    expiry: Option<Expiry<R>>,
    /// Whether lines may hold times. Those of a new filter do not, and expiry would touch its
    /// pages.
    holds_times: bool,
}

impl<R: Rule> RuleLines<R> {
    /// Prepares the lines that a batch will visit.
    #[inline(always)]
    fn prepare(&mut self, keys: &[KeyHash]) {
        if R::HAS_CLOCK
            && let Some(expiry) = &mut self.expiry
            && expiry.step(&mut self.lines, self.range, keys)
        {
            self.expiry = None;
        }
    }

    /// Counts a batch.
    fn count(&mut self, keys: &[KeyHash], counts: BatchCounts) {
        let observed = keys.len() as u64;
        self.holds_times = true;
        self.counts.observed += observed;
        self.counts.fresh += observed - counts.duplicates;
        self.counts.evictions += counts.evictions;
    }

    /// Observes keys each at its own tick, of the current era of the clock or before it, or without
    /// ticks at the clock as it is.
    fn observe_keys(&mut self, keys: &[KeyHash], ticks: &[u64], duplicates: &mut [u64]) {
        self.prepare(keys);
        let counts = self.loops.observe(RuleBatch {
            rule: self.rule,
            lines: &mut self.lines,
            range: self.range,
            keys,
            ticks,
            duplicates,
        });
        self.count(keys, counts);
        if let Some(latest) = ticks.iter().max() {
            // The loop moved a copy of the clock.
            self.rule.follow(*latest);
        }
    }

    /// The same with one key; true means duplicate.
    fn observe_key(&mut self, key: KeyHash) -> bool {
        self.prepare(&[key]);
        let bucket = R::Bucket::at_mut(&mut self.lines, self.range.position(key));
        let counts = observe_one(self.kernel, self.rule, bucket, key);
        self.count(&[key], counts);
        counts.duplicates == 1
    }

    /// Observes keys each at its own tick. Whole words of keys are one batch up to the next era.
    /// The keys of the word in which the clock enters a new era are observed one by one.
    fn observe_at_each(&mut self, keys: &[KeyHash], ticks: &[u64], duplicates: &mut [u64]) {
        let mut from = 0;
        while from < keys.len() {
            self.advance(ticks[from]);
            let era = self.rule.next_era();
            let in_era = ticks[from..].iter().position(|tick| *tick >= era);
            let end = in_era.map_or(keys.len(), |count| from + count / 64 * 64);
            if end > from {
                let words = &mut duplicates[from / 64..end.div_ceil(64)];
                self.observe_keys(&keys[from..end], &ticks[from..end], words);
                from = end;
                continue;
            }
            let end = keys.len().min(from + 64);
            let mut word = 0;
            for at in from..end {
                self.advance(ticks[at]);
                word |= u64::from(self.observe_key(keys[at])) << (at - from);
            }
            duplicates[from / 64] = word;
            from = end;
        }
    }

    /// Moves the clock.
    fn advance(&mut self, tick: u64) {
        let before = self.rule;
        let passed = self.rule.advance_to(tick);
        if let Some(passed) = passed
            && self.holds_times
        {
            self.expiry = Expiry::begin(self.expiry.take(), before, passed, &mut self.lines);
        }
    }
}

/// Counts the cells of lines, compiled for the kernel: a report of a large filter reads all of it.
struct CountLines<'a, R> {
    rule: R,
    lines: &'a [Line],
    total: u64,
}

impl<R: Rule> HotLoop for CountLines<'_, R> {
    type Output = (Cells, RateSum);

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.rule.count(self.lines, self.total)
    }
}

impl<R: Rule> Filter for RuleLines<R> {
    // Not inlined into the methods that are derived from it: each would be another copy for each
    // rule.
    #[inline(never)]
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        batch.check_length(duplicates);
        match batch.ticks() {
            Ticks::Each(ticks) if R::HAS_CLOCK => {
                return self.observe_at_each(batch.keys(), ticks, duplicates);
            }
            Ticks::One(tick) => self.advance(tick),
            // A rule may have judged the batch before at ticks below its clock.
            Ticks::Unmoved if R::HAS_CLOCK => self.rule.follow(self.rule.tick()),
            Ticks::Each(_) | Ticks::Unmoved => {}
        }
        match (batch.keys(), duplicates) {
            ([], _) => {}
            ([key], [word]) => *word = u64::from(self.observe_key(*key)),
            (keys, duplicates) => self.observe_keys(keys, &[], duplicates),
        }
    }

    fn provide_memory(&self, share: usize, shares: usize) {
        self.lines.provide(share, shares);
    }

    fn prefetch(&self, keys: &[KeyHash]) {
        let cache = self.loops.look_ahead().cache();
        for key in keys {
            R::Bucket::prefetch(&self.lines, self.range.position(*key), *key, cache);
        }
    }

    fn contains(&self, key: KeyHash) -> bool {
        let position = self.range.position(key);
        let bucket = R::Bucket::at(&self.lines, position);
        if let Some(expiry) = &self.expiry {
            let first = position / R::Bucket::LINES * R::Bucket::LINES;
            let lines = expiry.expired(first, &self.lines[first..first + R::Bucket::LINES]);
            return R::Bucket::all(&lines)
                .iter()
                .any(|bucket| self.rule.holds(bucket, key));
        }
        self.rule.holds(bucket, key)
    }

    fn clear(&mut self) {
        empty(&mut self.lines);
        self.expiry = None;
        self.holds_times = false;
        self.counts = Progress::default();
        self.rule.restart();
    }

    fn memory_bytes(&self) -> u64 {
        self.lines.bytes()
    }

    fn tally(&self) -> Tally {
        let counters = self.counters();
        let counted = match counters.cells {
            Some(_) => counters,
            None => self.count_lines(0..self.lines.len()),
        };
        Tally {
            cells: counted.cells,
            rates: counted.rates,
            ..counters
        }
    }

    #[inline(never)]
    fn report_on(&self, tally: Tally) -> Report {
        Report {
            kernel: Some(self.kernel.kernel()),
            look_ahead: self.loops.measured_look_ahead(),
            ..self.rule.estimates(tally)
        }
    }
}

/// Empties the lines. It is compiled once for all rules.
#[inline(never)]
fn empty(lines: &mut [Line]) {
    lines.fill(Line::EMPTY);
}

/// Empties the lines that are not empty. It is compiled once for all rules.
#[inline(never)]
fn empty_changed(lines: &mut [Line]) {
    for line in lines {
        if line.differs_from(&Line::EMPTY) {
            *line = Line::EMPTY;
        }
    }
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

    fn finish_expiry(&mut self) {
        if let Some(expiry) = self.expiry.take() {
            expiry.finish(&mut self.lines);
        }
    }

    fn range(&self) -> LineRange {
        self.range
    }

    fn bucket_lines(&self) -> u64 {
        R::Bucket::LINES as u64
    }

    fn progress(&self) -> Progress {
        Progress {
            tick: self.rule.tick(),
            ..self.counts
        }
    }

    fn counters(&self) -> Tally {
        let Progress {
            observed,
            fresh,
            evictions,
            ..
        } = self.counts;
        Tally {
            observed: Some(observed),
            fresh: Some(fresh),
            evictions: R::COUNTS_EVICTIONS.then_some(evictions),
            cells: self.rule.counted_cells(self.lines.len(), self.counts),
            ..Tally::new(self.lines.bytes())
        }
    }

    // Not inlined into `tally`: it would be another copy for each rule.
    #[inline(never)]
    fn count_lines(&self, lines: Range<usize>) -> Tally {
        let count = |lines: &[Line]| {
            let (cells, rates) = self.kernel.run(CountLines {
                rule: self.rule,
                lines,
                total: self.range.total,
            });
            Tally {
                cells: Some(cells),
                rates: Some(rates),
                ..Tally::new(size_of_val(lines) as u64)
            }
        };
        let counted = &self.lines[lines.clone()];
        assert!(
            [lines.start, lines.end].map(|line| line % R::Bucket::LINES) == [0, 0],
            "lines {}..{} are no whole buckets of {}",
            lines.start,
            lines.end,
            R::Bucket::LINES,
        );
        match &self.expiry {
            None => count(counted),
            // In parts, because each of them is a copy.
            Some(expiry) => (lines.step_by(PAGE_LINES).zip(counted.chunks(PAGE_LINES)))
                .map(|(first, lines)| count(&expiry.expired(first, lines)))
                .sum(),
        }
    }

    fn parameters(&self) -> String {
        let mut rule = self.rule;
        rule.restart();
        // The type has the policy and the width of a slot, the fields all other options.
        rule_text(type_name::<R>(), &rule)
    }

    fn duplicates_change_lines(&self) -> bool {
        self.rule.duplicates_change_lines()
    }

    fn next_era(&self) -> u64 {
        self.rule.next_era()
    }

    fn copy_lines(&self, first: usize, into: &mut [Line]) {
        into.copy_from_slice(&self.lines[first..][..into.len()]);
        if let Some(expiry) = &self.expiry {
            expiry.expire_copy(first, into);
        }
    }

    fn load_lines(&mut self, first: usize, lines: &[Line]) {
        self.finish_expiry();
        self.holds_times = true;
        self.lines[first..][..lines.len()].copy_from_slice(lines);
    }

    fn clear_lines(&mut self, lines: Range<usize>) {
        self.finish_expiry();
        empty_changed(&mut self.lines[lines]);
    }

    fn set_counts(&mut self, counts: Progress) {
        self.counts = counts;
    }
}

impl LineAllocation {
    /// Allocates the lines of a rule.
    ///
    /// # Errors
    /// [`BuildError`] if the whole filter has more than 2^32 lines, or the memory is not available.
    pub fn build<R: Rule>(self, rule: R) -> Result<Box<dyn LineFilter>, BuildError> {
        within("lines", self.range.total, 1..=MOST_LINES)?;
        Ok(Box::new(RuleLines {
            lines: LineArray::zeroed(self.lines)?,
            range: self.range,
            rule,
            kernel: self.kernel,
            loops: for_kernel(self.kernel, self.range.total),
            counts: Progress::default(),
            expiry: None,
            holds_times: false,
        }))
    }
}
