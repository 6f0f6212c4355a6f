//! The trait of line filters, and their state beside the lines.

use std::fmt;
use std::iter::Sum;
use std::ops::Range;

use crate::filters::Filter;
use crate::filters::filter::forward;
use crate::kernels::LineRange;
use crate::memory::Line;
use crate::report::Tally;

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
pub trait LineFilter: Filter {
    /// The current content of the lines. With a window, some may still hold keys that expired
    /// before the current era of the clock; see [`finish_expiry`](Self::finish_expiry).
    fn lines(&self) -> &[Line];

    /// Removes the expired keys that wait for a later call, so that the lines depend on nothing but
    /// the keys and ticks that were observed. Does nothing without a window.
    ///
    /// The times in lines have few bits. Whenever they are about to wrap around, at most once in
    /// fourteen windows, expired keys are removed from all lines, a step of some 30 us with each
    /// batch. This call takes the other steps at once: up to 150 ms for 512 MiB.
    fn finish_expiry(&mut self);

    /// The position of these lines in the whole filter: all of it, or a partition.
    fn range(&self) -> LineRange;

    /// The numbers of these lines in the whole filter.
    fn held(&self) -> Range<u64> {
        let first = self.range().first;
        first..first + self.lines().len() as u64
    }

    /// The number of lines of a bucket: 1 if everything that a key reads or writes lies in its
    /// line, 64 if it lies in the aligned page of 64 lines around it.
    fn bucket_lines(&self) -> u64;

    /// The counts and the clock: with the lines, the whole state of the filter.
    fn progress(&self) -> Progress;

    /// What of the [tally](Filter::tally) costs nothing: no line is read. `cells` and `rates` are
    /// `None` unless they follow from the counters.
    fn counters(&self) -> Tally;

    /// Reads some of these [`lines`](Self::lines), whole buckets of them: a tally of their memory,
    /// cells and rates, without counters. The sum of such tallies of all lines has the cells and
    /// the rates of the [tally](Filter::tally), unless those follow from the counters.
    ///
    /// # Panics
    /// If there are fewer lines, or they are no whole buckets.
    ///
    /// # Examples
    /// ```
    /// use echoless::{Filter, FilterSpec, LineFilter};
    /// let spec: FilterSpec = "clocked:window=600,memory=1MiB".parse()?;
    /// let filter = spec.build_lines()?;
    /// let half = filter.lines().len() / 2;
    /// let sum = filter.count_lines(0..half) + filter.count_lines(half..2 * half);
    /// let tally = filter.tally();
    /// assert_eq!((sum.cells, sum.rates), (tally.cells, tally.rates));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn count_lines(&self, lines: Range<usize>) -> Tally;

    /// The rule and its options as text, without the range, the kernel and the clock. Filters of
    /// one specification have equal texts; those of other line forms or options have different
    /// ones. For comparisons within a program: the text can change with every version.
    fn parameters(&self) -> String;

    /// Whether a duplicate can change lines. If not, a filter that observes the fresh keys alone,
    /// at the same clock, has the same lines; a log of its keys can leave out the duplicates.
    fn duplicates_change_lines(&self) -> bool;

    /// The first tick at which lines change without keys, because the clock enters a new era;
    /// `u64::MAX` without a window. Until then [copies](Self::copy_lines) of a line depend on
    /// nothing but the keys that select the line, and their ticks.
    fn next_era(&self) -> u64;

    /// Copies lines as if [`finish_expiry`](Self::finish_expiry) had been called, from `first` of
    /// these [`lines`](Self::lines) on.
    ///
    /// # Panics
    /// If there are fewer lines.
    fn copy_lines(&self, first: usize, into: &mut [Line]);

    /// Overwrites lines with those that were [copied](Self::copy_lines) from a filter of the same
    /// specification at the present clock, from `first` of these [`lines`](Self::lines) on.
    ///
    /// Calls [`finish_expiry`](Self::finish_expiry) before. The counts stay;
    /// [`set_counts`](Self::set_counts) sets them. [`echoless::state`](crate::state) does all of
    /// it.
    ///
    /// # Panics
    /// If there are fewer lines.
    fn load_lines(&mut self, first: usize, lines: &[Line]);

    /// As [`load_lines`](Self::load_lines) of empty lines, but only reads those that are empty
    /// already, so that pages without keys take no memory.
    ///
    /// # Panics
    /// If there are fewer lines.
    fn clear_lines(&mut self, lines: Range<usize>);

    /// Sets the counts. The clock stays: [`Filter::advance_to`] moves it.
    fn set_counts(&mut self, counts: Progress);
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

/// The sum of partitions at one point of the stream: all counts, and the latest clock.
impl Sum for Progress {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |sum, part| Self {
            observed: sum.observed.saturating_add(part.observed),
            fresh: sum.fresh.saturating_add(part.fresh),
            evictions: sum.evictions.saturating_add(part.evictions),
            tick: sum.tick.max(part.tick),
        })
    }
}

impl<F: LineFilter + ?Sized> LineFilter for Box<F> {
    forward! {
        &self:
        fn lines() -> &[Line];
        fn range() -> LineRange;
        fn bucket_lines() -> u64;
        fn progress() -> Progress;
        fn counters() -> Tally;
        fn count_lines(lines: Range<usize>) -> Tally;
        fn parameters() -> String;
        fn duplicates_change_lines() -> bool;
        fn next_era() -> u64;
        fn copy_lines(first: usize, into: &mut [Line]);
        &mut self:
        fn finish_expiry();
        fn load_lines(first: usize, lines: &[Line]);
        fn clear_lines(lines: Range<usize>);
        fn set_counts(counts: Progress);
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
