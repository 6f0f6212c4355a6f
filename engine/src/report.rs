//! Counters of a filter, the error estimates that follow from them, and how long a filter with a
//! window remembers a key.
//!
//! The counters of partitions can be added, their estimates cannot. Each partition therefore
//! returns a [`Tally`], and the estimates of a [`Report`] are computed from the sum of the tallies.
//! The report of a partitioned filter equals that of the undivided one, bit for bit.

use std::iter::Sum;
use std::ops::Add;

use crate::isa::Kernel;
use crate::kernels::LookAhead;

/// How many cells of a filter are occupied. A cell is a bit, a counter or a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cells {
    /// The number of cells that are not zero.
    pub occupied: u64,
    /// The number of all cells.
    pub total: u64,
}

impl Cells {
    /// `occupied` of `total` cells.
    #[must_use]
    pub const fn new(occupied: u64, total: u64) -> Self {
        Self { occupied, total }
    }

    /// The fraction of the cells that is occupied, 0 to 1; not a number if there are no cells.
    #[must_use]
    pub fn fill(self) -> f64 {
        self.occupied as f64 / self.total as f64
    }
}

/// The sum of the expected false positive rates of single lines, or of slices that keys are spread
/// over evenly.
///
/// It counts units of 2^-64, because a sum of integers does not depend on the order of its terms. A
/// sum of floats would differ in its last digits from one number of partitions to another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateSum {
    /// The sum, in units of 2^-64. It cannot overflow with fewer than 2^64 lines.
    rates: u128,
    lines: u64,
}

impl RateSum {
    /// Adds the rate of one more line.
    pub fn push(&mut self, rate: f64) {
        self.push_equal(rate, 1);
    }

    /// Adds the rate of so many lines.
    pub fn push_equal(&mut self, rate: f64, lines: u64) {
        self.rates += (rate * 2_f64.powi(64)) as u128 * u128::from(lines);
        self.lines += lines;
    }

    /// The mean rate of a line, 0 to 1; not a number if there are no lines.
    #[must_use]
    pub fn mean(self) -> f64 {
        self.rates as f64 / 2_f64.powi(64) / self.lines as f64
    }
}

/// Counters of a filter or of one of its partitions, since it was built or cleared. The tallies of
/// partitions can be summed. A counter is `None` if the filter does not maintain it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// The memory of the filter's state, in bytes.
    pub memory_bytes: u64,
    /// The number of keys observed, fresh and duplicate.
    pub observed: Option<u64>,
    /// The number of keys reported as fresh.
    pub fresh: Option<u64>,
    /// Keys that were evicted, in a filter with a window before they expired. While this is 0, no
    /// duplicate of a recorded key was missed. In a filter with a window whose duplicates do not
    /// renew their keys, a new key that was mistaken for another one is not recorded, and is
    /// missed once the other one has expired.
    pub evictions: Option<u64>,
    /// Keys that needed a failed slice, so that a policy took part in their verdicts.
    pub unavailable: Option<u64>,
    /// The cells, occupied and in total.
    pub cells: Option<Cells>,
    /// The expected false positive rates of the lines.
    pub rates: Option<RateSum>,
}

impl Tally {
    /// The tally of a filter without counters.
    #[must_use]
    pub fn new(memory_bytes: u64) -> Self {
        Self {
            memory_bytes,
            ..Self::default()
        }
    }
}

/// The sum of two counters; `None` if either is.
fn both<T>(left: Option<T>, right: Option<T>, add: impl Fn(T, T) -> T) -> Option<T> {
    Some(add(left?, right?))
}

impl Add for Tally {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let sum = |left, right| both(left, right, |left: u64, right| left + right);
        Self {
            memory_bytes: self.memory_bytes + other.memory_bytes,
            observed: sum(self.observed, other.observed),
            fresh: sum(self.fresh, other.fresh),
            evictions: sum(self.evictions, other.evictions),
            unavailable: sum(self.unavailable, other.unavailable),
            cells: both(self.cells, other.cells, |left, right| Cells {
                occupied: left.occupied + right.occupied,
                total: left.total + right.total,
            }),
            rates: both(self.rates, other.rates, |left, right| RateSum {
                rates: left.rates + right.rates,
                lines: left.lines + right.lines,
            }),
        }
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.reduce(Add::add).unwrap_or_default()
    }
}

/// The age at which 1 duplicate in 1000 is missed: younger duplicates are missed less often, older
/// ones more often. It counts distinct keys. In dense lines with LRU it is a bound from
/// measurements: at most 1 in 1000 was missed. In dense lines with a window it is lower
/// [in windows](Self::in_window) with more keys.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct MissAge {
    /// The age, in distinct keys.
    pub age: f64,
    /// The moment from which the age counts.
    pub since: AgeOrigin,
    /// The age in windows with far more keys than the memory holds. It is less than `age` only in
    /// dense lines with a window.
    pub least: f64,
}

impl MissAge {
    /// An age of `age` distinct keys, in windows of any number of keys.
    #[must_use]
    pub const fn new(age: f64, since: AgeOrigin) -> Self {
        Self {
            age,
            since,
            least: age,
        }
    }

    /// Sets the age in windows with far more keys than the memory holds.
    #[must_use]
    pub const fn least(mut self, age: f64) -> Self {
        self.least = age;
        self
    }

    /// The age in a window of so many distinct keys. For dense lines with a window it is a bound
    /// from measurements, in windows with more keys than `age`.
    ///
    /// # Examples
    /// ```
    /// use echoless::{AgeOrigin, MissAge};
    /// let age = MissAge::new(1e6, AgeOrigin::Recorded);
    /// assert_eq!(age.in_window(50_000_000), 1e6);
    /// let dense = age.least(4e5);
    /// assert_eq!(dense.in_window(900_000), 1e6);
    /// assert_eq!(dense.in_window(3_000_000), 7e5);
    /// assert_eq!(dense.in_window(5_000_000), 4e5);
    /// ```
    #[must_use]
    #[inline]
    pub fn in_window(&self, keys: u64) -> f64 {
        /// In windows of so many times the age and more, the bound is that of one line a key.
        const MOST_OVERLOAD: f64 = 5.0;
        let overload = keys as f64 / self.age;
        let part = ((overload - 1.0) / (MOST_OVERLOAD - 1.0)).clamp(0.0, 1.0);
        self.age - (self.age - self.least) * part
    }
}

/// How far what a filter reports may be off, because it has read only a sample of its memory: the
/// half widths of intervals that hold the exact values in 95 of 100 cases.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SampleError {
    /// Of the [fill](Report::fill), as a fraction of all cells.
    pub fill: f64,
    /// Of the [rate](Report::expected_fpr). In a filter with few keys the rate comes from few
    /// words, and then this holds the exact value less often.
    pub expected_fpr: f64,
}

/// The moment from which the age of a key counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgeOrigin {
    /// The last arrival of the key, as users mean it (LRU).
    LastSeen,
    /// The arrival that recorded the key (FIFO). A key that is seen again and again is forgotten
    /// all the same.
    Recorded,
}

/// Counters and error estimates of a filter. A value is `None` if the filter cannot estimate it.
/// The default has no counters and no estimates.
///
/// # Examples
/// ```
/// use echoless::{Filter, FingerprintSpec, KeyHasher};
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// let mut filter = FingerprintSpec::new(1 << 20).max_fpr(1e-8).build()?;
/// filter.observe_one(key);
/// let report = filter.report();
/// assert_eq!((report.tally.observed, report.tally.fresh), (Some(1), Some(1)));
/// assert_eq!(report.slot_bits, Some(32));
/// // One of 2^14 lines of 16 slots holds one fingerprint.
/// assert_eq!(report.fill(), Some(1.0 / f64::from(16 << 14)));
/// assert!(report.expected_fpr < Some(1e-8));
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    /// The counters that the estimates follow from.
    pub tally: Tally,
    /// The kernel that the filter runs on.
    pub kernel: Option<Kernel>,
    /// How far the filter looks ahead in batches of more than 64 keys, if it measured that: from
    /// 512 KiB of lines on. It depends on the machine and on the moment, and the verdicts do not
    /// depend on it.
    pub look_ahead: Option<LookAhead>,
    /// The width of a slot in bits.
    pub slot_bits: Option<u32>,
    /// The probability that a key that was never seen would be reported as a duplicate now. It is
    /// an upper bound for filters that can store several copies of a fingerprint in a row.
    pub expected_fpr: Option<f64>,
    /// The highest `expected_fpr`, that with every cell occupied, if the filter has a window and
    /// knows it. `expected_fpr` rises and falls with the traffic there.
    pub most_fpr: Option<f64>,
    /// An upper bound of the expected number of keys so far that were reported as duplicates but
    /// never seen before: it takes all keys reported as fresh for keys that were never seen, though
    /// some are missed duplicates.
    pub expected_false_duplicates: Option<f64>,
    /// The age at which 1 duplicate in 1000 is missed. `None` for QQHTD, whose misses depend on how
    /// often the other keys repeat.
    pub miss_age: Option<MissAge>,
    /// How long the filter remembers a key, if it has a window.
    pub window: Option<Window>,
    /// The number of keys that the filter forgot because their window was over.
    pub expired: Option<u64>,
    /// How exact the fill and the rate are, if the filter has read a sample of its memory for them.
    /// `None` if it counts its cells, or has read all of them.
    pub sample_error: Option<SampleError>,
}

impl Default for Report {
    fn default() -> Self {
        Self::new(Tally::default())
    }
}

impl Report {
    /// A report of the counters, and of the mean rate of the lines if the tally has one. All other
    /// estimates are `None`.
    #[must_use]
    pub fn new(tally: Tally) -> Self {
        Self {
            tally,
            kernel: None,
            look_ahead: None,
            slot_bits: None,
            expected_fpr: tally.rates.map(RateSum::mean),
            most_fpr: None,
            expected_false_duplicates: None,
            miss_age: None,
            window: None,
            expired: None,
            sample_error: None,
        }
    }

    /// The fraction of the cells (bits, counters or slots) that is occupied, 0 to 1.
    #[must_use]
    pub fn fill(&self) -> Option<f64> {
        self.tally.cells.map(Cells::fill)
    }
}

/// The window of a filter, in ticks of the caller's clock.
///
/// At an age of `ticks` or less a key is remembered, unless its line was full and it was evicted.
/// At an age of `ticks + granule` or more it is forgotten. In between, it depends on where in a
/// granule the key was recorded.
///
/// The age counts from the tick at which the key was last seen, or last recorded as fresh in a
/// filter that does not renew keys.
///
/// # Examples
/// ```
/// use echoless::{Filter, FilterSpec, KeyHasher, Verdict, Window};
/// let key = KeyHasher::seeded(0).hash_u64(1);
/// let spec: FilterSpec = "clocked:window=600,memory=1MiB".parse()?;
/// assert_eq!(spec.facts().window, Some(Window::new(600, 120)));
/// let mut filter = spec.build()?;
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// filter.advance_to(600);
/// assert_eq!(filter.observe_one(key), Verdict::Duplicate);
/// // It was seen at 600.
/// filter.advance_to(600 + 600 + 120);
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Window {
    /// The greatest age at which every key is remembered.
    pub ticks: u64,
    /// How much longer a key may be remembered: at most `granule - 1` ticks. At least 1.
    pub granule: u64,
}

impl Window {
    /// A window of `ticks` ticks and the granule of the filter.
    #[must_use]
    pub const fn new(ticks: u64, granule: u64) -> Self {
        Self { ticks, granule }
    }
}
