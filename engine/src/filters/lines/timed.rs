//! Line filters with a window: their specification, and the reports that they share.
//!
//! | filter | slots in a line | bits of a fingerprint | times in a line | granule |
//! |---|---|---|---|---|
//! | `clocked` | 28, 14 or 7 | 16, 32 or 64 | one clock word | a fifth of the window |
//! | `clocked` with `dense=true` | the same | the same | the same | the same |
//! | `stamped` | 16 | 16 | 16 bits a slot | a tick, or 1/4096 of a long window |
//! | `stamped` | 8 | 40 | 24 bits a slot | a tick, or 1/2^20 of a long window |

use super::line_filter::LineFilter;
use super::plan::LineAllocation;
use super::stamped::StampedSlot;
use super::{clocked, dense, stamped};
use crate::error::{BuildError, SpecError};
use crate::filters::kind::KindSpec;
use crate::filters::replacement::{Fifo, Lru, ReplacementPolicy};
use crate::filters::units::{DEFAULT_WINDOW, LONGEST_WINDOW, Units, scaled_window};
use crate::filters::{Filter, Form, Workload};
use crate::kernels::PAGE_LINES;
use crate::limits::within;
use crate::memory::{LINE_BYTES, Line};
use crate::options::Options;
use crate::report::{Cells, MissAge, RateSum, Report, Tally};
use crate::theory::dense::ClockedGeometry;
use crate::theory::{RateModel, fingerprints};
use crate::window::Window;

/// How a line stores the age of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timing {
    /// By the key's position in the line: a clock word has the borders between ages.
    Clocked,
    /// By a stamp beside the key's fingerprint.
    Stamped,
}

/// The specification of a line filter with a window: a key is a duplicate if an equal one was seen
/// at most `window` ticks ago.
///
/// The clock moves by [`Filter::advance_to`]; it starts at 0. [`Window`] states how long a key is
/// remembered. Two errors remain, as in any filter of fingerprints: a key can match the fingerprint
/// of another one, and a full line evicts its oldest key before it expires, which the tally counts.
/// Keys expire on their own: no thread and no timer clears them.
///
/// A key whose tick is before the clock is late: it is judged and recorded at the clock, so it can
/// match a key recorded up to `window` before the clock. For duplicates up to `W` ticks apart, of
/// which one may be late by `L`, take a window of `W + L`, or keep late keys apart; see [late
/// events](crate#windows-and-late-events).
///
/// One cache line is touched for each key, or two of a page if the lines are
/// [dense](Self::dense). At equal false positive rate and memory, `clocked` holds 1.75 times as
/// many keys as `stamped`, which is exact to the tick.
///
/// # Examples
/// ```
/// use echoless::spec::TimedSpec;
/// use echoless::{FilterSpec, Window};
/// let spec = FilterSpec::new(TimedSpec::stamped(600).bits(32)).memory(1 << 20);
/// assert_eq!(spec.to_string(), "stamped:window=600,refresh=true,bits=32,memory=1MiB");
/// assert_eq!(spec.build()?.report().window, Some(Window::new(600, 1)));
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimedSpec {
    /// How a line stores the age of a key.
    pub timing: Timing,
    /// The window in ticks, 1 to 2^63 - 1.
    pub window: u64,
    /// Whether a duplicate renews its key: true suits records that must pass once in a burst of any
    /// length, such as alarms. A key that comes back within the window endlessly then passes once
    /// and never again. If false, a key expires a window after it was recorded, however often it is
    /// seen in between, and so passes at least once in each window and granule: that suits packets,
    /// whose later repeats may be sent on purpose.
    pub refresh: bool,
    /// The width of a slot: 16, 32 or 64 bits if clocked, 32 or 64 if stamped.
    pub bits: u32,
    /// Whether a key has two lines of a page, as in [`DenseSpec`](super::DenseSpec), so that the
    /// same memory holds about twice as many keys of a window. Only clocked lines can be dense.
    pub dense: bool,
}

impl TimedSpec {
    /// Clocked lines of 14 slots of 32 bits; duplicates renew their keys.
    #[must_use]
    pub const fn clocked(window: u64) -> Self {
        Self {
            timing: Timing::Clocked,
            window,
            refresh: true,
            bits: 32,
            dense: false,
        }
    }

    /// Stamped lines of 8 slots of 64 bits; duplicates renew their keys.
    #[must_use]
    pub const fn stamped(window: u64) -> Self {
        Self {
            timing: Timing::Stamped,
            bits: 64,
            ..Self::clocked(window)
        }
    }

    /// Whether a duplicate renews its key.
    #[must_use]
    pub const fn refresh(mut self, refresh: bool) -> Self {
        self.refresh = refresh;
        self
    }

    /// The width of a slot in bits.
    #[must_use]
    pub const fn bits(mut self, bits: u32) -> Self {
        self.bits = bits;
        self
    }

    /// Whether a key has two lines of a page.
    ///
    /// # Examples
    /// ```
    /// use echoless::spec::TimedSpec;
    /// use echoless::FilterSpec;
    /// let one_line = TimedSpec::clocked(86_400);
    /// let age = |spec: TimedSpec| {
    ///     let filter = FilterSpec::new(spec).memory(1 << 20).build();
    ///     filter.map(|filter| filter.report().miss_age.unwrap().age)
    /// };
    /// assert!(age(one_line.dense(true))? > 1.9 * age(one_line)?);
    /// # Ok::<(), echoless::BuildError>(())
    /// ```
    #[must_use]
    pub const fn dense(mut self, dense: bool) -> Self {
        self.dense = dense;
        self
    }

    /// The shape of a line, and the most units of a window.
    fn shape(self) -> Result<(TimedLineShape, u64), SpecError> {
        let bits = self.bits;
        if self.dense && self.timing == Timing::Stamped {
            let allowed = "false, because stamped lines have no dense form";
            return Err(SpecError::new("dense", "true", allowed));
        }
        let clocked = |slots| TimedLineShape {
            slots,
            slot_bits: bits,
            fingerprint_bits: bits,
        };
        let stamped = |slots, fingerprint_bits| TimedLineShape {
            slots,
            slot_bits: bits,
            fingerprint_bits,
        };
        Ok(match (self.timing, bits) {
            (Timing::Clocked, 16) => (clocked(28), clocked::MOST_ALIVE),
            (Timing::Clocked, 32) => (clocked(14), clocked::MOST_ALIVE),
            (Timing::Clocked, 64) => (clocked(7), clocked::MOST_ALIVE),
            (Timing::Stamped, 32) => (stamped(16, u32::FINGERPRINT_BITS), u32::MOST_ALIVE),
            (Timing::Stamped, 64) => (stamped(8, u64::FINGERPRINT_BITS), u64::MOST_ALIVE),
            (timing, bits) => {
                let allowed = match timing {
                    Timing::Clocked => "16, 32 or 64",
                    Timing::Stamped => "32 or 64",
                };
                return Err(SpecError::new("bits", bits.to_string(), allowed));
            }
        })
    }

    fn units(self) -> Result<Units, SpecError> {
        let window = within("window", self.window, 1..=LONGEST_WINDOW)?;
        let (_, most) = self.shape()?;
        Ok(Units::new(window, most))
    }
}

/// Builds clocked or stamped lines. With `refresh`, a duplicate renews its key.
pub(crate) fn build(
    spec: &TimedSpec,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    // Not by `Replacement::dispatch`, which would also compile a policy that is never used here.
    if spec.refresh {
        build_with::<Lru>(spec, allocation)
    } else {
        build_with::<Fifo>(spec, allocation)
    }
}

fn build_with<P: ReplacementPolicy>(
    spec: &TimedSpec,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    let units = spec.units()?;
    match (spec.timing, spec.bits, spec.dense) {
        (Timing::Clocked, 16, false) => clocked::build::<u16, P>(units, allocation),
        (Timing::Clocked, 32, false) => clocked::build::<u32, P>(units, allocation),
        (Timing::Clocked, _, false) => clocked::build::<u64, P>(units, allocation),
        (Timing::Clocked, 16, true) => dense::build_clocked::<u16, P>(units, allocation),
        (Timing::Clocked, 32, true) => dense::build_clocked::<u32, P>(units, allocation),
        (Timing::Clocked, _, true) => dense::build_clocked::<u64, P>(units, allocation),
        (Timing::Stamped, 32, _) => stamped::build::<u32, P>(units, allocation),
        (Timing::Stamped, ..) => stamped::build::<u64, P>(units, allocation),
    }
}

/// A line has fewer slots than this.
const MOST_SLOTS: usize = 32;

/// What the estimates of a line of fingerprints depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimedLineShape {
    pub(super) slots: u32,
    pub(super) slot_bits: u32,
    pub(super) fingerprint_bits: u32,
}

impl TimedLineShape {
    /// The probability that a new key matches one of the live slots of its line, of so many lines.
    pub(super) fn fpr(self, live: Cells, lines: u64) -> f64 {
        self.fpr_with(live.occupied, lines)
    }

    /// The slots of lines and their rates, from the live slots of each line. `total` is the number
    /// of lines of the whole filter.
    ///
    /// Lines with equally many live slots have equal rates, so a rate is computed for each number
    /// of them, and not for each line.
    #[inline(always)]
    pub(super) fn count(
        self,
        lines: &[Line],
        total: u64,
        live: impl Fn(&Line) -> u32,
    ) -> (Cells, Option<RateSum>) {
        let mut with_live = [0; MOST_SLOTS];
        for line in lines {
            with_live[live(line) as usize % MOST_SLOTS] += 1;
        }
        let mut cells = Cells::new(0, lines.len() as u64 * u64::from(self.slots));
        let mut rates = RateSum::default();
        for (live, lines) in (0..).zip(with_live) {
            cells.occupied += live * lines;
            rates.push_equal(self.fpr_with(live, total), lines);
        }
        (cells, Some(rates))
    }

    fn fpr_with(self, live: u64, lines: u64) -> f64 {
        live as f64 * fingerprints::match_probability(lines, self.fingerprint_bits)
    }
}

/// The report of lines of this shape.
///
/// The age at which misses begin is in distinct keys: how many arrive in a tick is not known here.
/// A key that is missed at that age and within the window was evicted. The number of false
/// duplicates so far is not known either, because the fill, and with it the rate, rises and falls
/// with the traffic.
pub(super) fn estimates<P: ReplacementPolicy>(
    tally: Tally,
    shape: TimedLineShape,
    window: Window,
) -> Report {
    let lines = tally.memory_bytes / LINE_BYTES;
    let age = fingerprints::miss_age_keys(lines, shape.slots, shape.fingerprint_bits);
    Report {
        slot_bits: Some(shape.slot_bits),
        most_fpr: Some(shape.fpr_with(shape.slots.into(), lines)),
        miss_age: P::AGE_ORIGIN.map(|since| MissAge::new(age, since)),
        window: Some(window),
        expired: expired(tally),
        ..Report::new(tally)
    }
}

/// Every fresh key takes a slot until it is evicted or expires.
fn expired(tally: Tally) -> Option<u64> {
    let live = tally.cells?.occupied;
    Some(tally.fresh? - tally.evictions? - live)
}

impl KindSpec for TimedSpec {
    const NAMES: &'static [&'static str] = &["clocked", "stamped"];
    const DEFAULT_FORM: Form = Form::Line;

    fn parse(name: &str, _form: Form, options: &mut Options) -> Result<Self, SpecError> {
        let window = options.integer("window", DEFAULT_WINDOW, 1..=LONGEST_WINDOW)?;
        let (spec, widths) = match name {
            "stamped" => (Self::stamped(window), &[32, 64][..]),
            _ => (Self::clocked(window), &[16, 32, 64][..]),
        };
        let refresh = options.flag("refresh", true)?;
        let bits = options.listed("bits", widths)?.unwrap_or(spec.bits);
        let dense = match spec.timing {
            Timing::Clocked => options.flag("dense", false)?,
            Timing::Stamped => false,
        };
        Ok(spec.refresh(refresh).bits(bits).dense(dense))
    }

    fn name(&self) -> &'static str {
        match self.timing {
            Timing::Clocked => "clocked",
            Timing::Stamped => "stamped",
        }
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = vec![
            ("window", self.window.to_string()),
            ("refresh", self.refresh.to_string()),
            ("bits", self.bits.to_string()),
        ];
        if self.timing == Timing::Clocked {
            options.push(("dense", self.dense.to_string()));
        }
        options
    }

    fn build_scattered(&self, _memory: u64, _seed: u64) -> Result<Box<dyn Filter>, BuildError> {
        let allowed = format!("line, the only form of {}", self.name());
        Err(SpecError::new("form", Form::Scattered.to_string(), allowed).into())
    }

    fn cache_lines(&self, _memory_bytes: u64) -> f64 {
        if self.dense { 2.0 } else { 1.0 }
    }

    fn bucket_lines(&self) -> u64 {
        if self.dense { PAGE_LINES as u64 } else { 1 }
    }

    fn rate_model(&self, _form: Form, _memory_bytes: u64) -> Option<RateModel> {
        None
    }

    fn fpr_limit(&self, _form: Form, memory_bytes: u64) -> Option<f64> {
        let (shape, _) = self.shape().ok()?;
        let lines = memory_bytes / LINE_BYTES;
        if self.dense {
            let full = f64::from(shape.slots);
            return Some(ClockedGeometry::new(lines, self.bits).fpr_with(full));
        }
        let full = Cells::new(u64::from(shape.slots), u64::from(shape.slots));
        Some(shape.fpr(full, lines))
    }

    fn window(&self) -> Option<Window> {
        Some(self.units().ok()?.window())
    }

    fn renews_keys(&self) -> bool {
        self.refresh
    }

    fn settles(&self) -> bool {
        true
    }

    fn scaled(mut self, scale: f64) -> Self {
        self.window = scaled_window(self.window, scale);
        self
    }

    /// Every width, with duplicates that renew their keys: a key is a duplicate for a planner if it
    /// was last seen at most a window ago.
    fn grid(workload: &Workload) -> Vec<String> {
        let window = workload.span;
        let clocked = [16, 32, 64].map(|bits| format!("clocked:window={window},bits={bits}"));
        let stamped = [32, 64].map(|bits| format!("stamped:window={window},bits={bits}"));
        let dense = clocked.clone().map(|text| text + ",dense=true");
        (clocked.into_iter().chain(dense).chain(stamped)).collect()
    }
}
