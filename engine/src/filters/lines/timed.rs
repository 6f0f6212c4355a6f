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
use crate::filters::Form;
use crate::filters::replacement::{Fifo, Lru, ReplacementPolicy};
use crate::filters::row::{Facts, FilterRow, Head, MOST_SCATTERED, Named, OptionRow};
use crate::filters::units::{self, Units};
use crate::kernels::PAGE_LINES;
use crate::memory::{LINE_BYTES, Line};
use crate::options::Allowed;
use crate::report::{Cells, MissAge, RateSum, Report, Tally};
use crate::theory::dense::ClockedGeometry;
use crate::theory::fingerprints;
use crate::window::Window;

/// How a line stores the age of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timing {
    /// By the key's position in the line: a clock word has the borders between ages.
    Clocked,
    /// By a stamp beside the key's fingerprint.
    Stamped,
}

/// The specification of a line filter with a window: a key is a duplicate if an equal one was seen
/// at most `window` ticks ago.
///
/// The clock moves by [`Filter::advance_to`](crate::Filter::advance_to); it starts at 0. [`Window`]
/// states how long a key is remembered. Two errors remain, as in any filter of fingerprints: a key
/// can match the fingerprint of another one, and a full line evicts its oldest key before it
/// expires, which the tally counts. Keys expire on their own: no thread and no timer clears them.
///
/// A key whose tick is before the clock is late: it is judged and recorded at the clock, so it can
/// match a key recorded up to `window` before the clock. For duplicates up to `W` ticks apart, of
/// which one may be late by `L`, take a window of `W + L`, or keep late keys apart; see [late
/// events](crate#windows-and-late-events).
///
/// With a [skew](Self#structfield.skew), a late key is judged and recorded at its own tick, as long
/// as that is at most window and skew before the clock: it is a duplicate if an equal key was seen
/// at most `window` ticks before or after its tick. This is exact for keys at most `skew` late; of
/// the window of later ones, a part is forgotten. Ordered filters, engines and the keys in states
/// are judged at the clock all the same.
///
/// One cache line is touched for each key, or two of a page if the lines are
/// [dense](Self#structfield.dense). At equal false positive rate and memory, `clocked` holds 1.75
/// times as many keys as `stamped`, which is exact to the tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimedSpec {
    /// How a line stores the age of a key.
    timing: Timing,
    /// The window in ticks, 1 to 2^63 - 1.
    window: u64,
    /// By how many ticks keys may be late that are judged at their own ticks; 0 if late keys are
    /// judged at the clock. Window and skew together are at most 2^63 - 1.
    skew: u64,
    /// Whether a duplicate renews its key: true suits records that must pass once in a burst of any
    /// length, such as alarms. A key that comes back within the window endlessly then passes once
    /// and never again. If false, a key expires a window after it was recorded, however often it is
    /// seen in between, and so passes at least once in each window and granule: that suits packets,
    /// whose later repeats may be sent on purpose.
    refresh: bool,
    /// The width of a slot: 16, 32 or 64 bits if clocked, 32 or 64 if stamped.
    bits: u32,
    /// Whether a key has two lines of a page, as in `dense`, so that the
    /// same memory holds about twice as many keys of a window. Only clocked lines can be dense.
    dense: bool,
}

impl TimedSpec {
    fn of(named: &Named) -> Self {
        let timing = match named.name() {
            "stamped" => Timing::Stamped,
            _ => Timing::Clocked,
        };
        Self {
            timing,
            window: named.whole("window"),
            skew: match timing {
                Timing::Stamped => named.given("skew").unwrap_or(0),
                Timing::Clocked => 0,
            },
            refresh: named.flag("refresh"),
            bits: named.small("bits"),
            dense: timing == Timing::Clocked && named.flag("dense"),
        }
    }

    /// The shape of a line, and the most units of a window.
    fn shape(self) -> (TimedLineShape, u64) {
        let bits = self.bits;
        let (slots, fingerprint_bits, most) = match (self.timing, bits) {
            (Timing::Clocked, 16) => (28, bits, clocked::MOST_ALIVE),
            (Timing::Clocked, 32) => (14, bits, clocked::MOST_ALIVE),
            (Timing::Clocked, _) => (7, bits, clocked::MOST_ALIVE),
            (Timing::Stamped, 32) => (16, u32::FINGERPRINT_BITS, u32::MOST_ALIVE),
            (Timing::Stamped, _) => (8, u64::FINGERPRINT_BITS, u64::MOST_ALIVE),
        };
        let shape = TimedLineShape {
            slots,
            slot_bits: bits,
            fingerprint_bits,
        };
        (shape, most)
    }

    /// The units of the time for which keys are remembered.
    fn units(self) -> Units {
        Units::new(self.window + self.skew, self.shape().1)
    }
}

/// Builds clocked or stamped lines. With `refresh`, a duplicate renews its key.
fn build(spec: TimedSpec, allocation: LineAllocation) -> Result<Box<dyn LineFilter>, BuildError> {
    // Not by `Replacement::dispatch`, which would also compile a policy that is never used here.
    if spec.refresh {
        build_with::<Lru>(spec, allocation)
    } else {
        build_with::<Fifo>(spec, allocation)
    }
}

fn build_with<P: ReplacementPolicy>(
    spec: TimedSpec,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    let units = spec.units();
    if spec.skew > 0 {
        return stamped::build_skewed::<u64, P>(units, spec.window, allocation);
    }
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
    ) -> (Cells, RateSum) {
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
        (cells, rates)
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
    Some(
        tally
            .fresh?
            .saturating_sub(tally.evictions?)
            .saturating_sub(live),
    )
}

const CLOCKED: &[OptionRow] = &[
    units::WINDOW,
    OptionRow::flag("refresh", true),
    OptionRow::listed("bits", &[16, 32, 64], 32),
    OptionRow::flag("dense", false),
];
const STAMPED: &[OptionRow] = &[
    units::WINDOW,
    OptionRow::flag("refresh", true),
    OptionRow::listed("bits", &[32, 64], 64),
    // Without a default, it is no part of the text of filters without a skew.
    OptionRow::new("skew", Allowed::Whole(1, units::LONGEST_WINDOW / 2)),
];

/// The line filters with a window.
pub(in crate::filters) static ROWS: [FilterRow; 2] = [
    row("clocked", |_| CLOCKED, Named::as_given),
    row("stamped", |_| STAMPED, check_skew),
];

fn check_skew(named: &mut Named, _form: Form) -> Result<(), SpecError> {
    let Some(skew) = named.given("skew") else {
        return Ok(());
    };
    if named.small("bits") != 64 {
        return Err(SpecError::new("option", "skew", "only with bits=64"));
    }
    let most = units::LONGEST_WINDOW - named.whole("window");
    if skew > most {
        let allowed = format!("at most {most}, with window={}", named.whole("window"));
        return Err(SpecError::new("skew", skew.to_string(), allowed));
    }
    Ok(())
}

const fn row(
    name: &'static str,
    options: fn(Form) -> &'static [OptionRow],
    complete: fn(&mut Named, Form) -> Result<(), SpecError>,
) -> FilterRow {
    FilterRow {
        head: Head {
            name,
            options,
            complete,
        },
        default_form: Form::Line,
        scattered: None,
        cells: None,
        lines: Some(|named, allocation| build(TimedSpec::of(named), allocation)),
        facts,
    }
}

fn facts(named: &Named, _form: Form, memory: u64) -> Facts {
    let spec = TimedSpec::of(named);
    let ((shape, _), lines) = (spec.shape(), memory / LINE_BYTES);
    let full = if spec.dense {
        ClockedGeometry::new(lines, spec.bits).fpr_with(f64::from(shape.slots))
    } else {
        shape.fpr_with(shape.slots.into(), lines)
    };
    Facts {
        cache_lines: if spec.dense { 2.0 } else { 1.0 },
        rate_model: None,
        fpr_limit: Some(full),
        most_memory: MOST_SCATTERED,
        memory_unit: LINE_BYTES * if spec.dense { PAGE_LINES as u64 } else { 1 },
        window: Some(spec.units().with_window(spec.window).window()),
        renews_keys: spec.refresh,
        forgets_by_time: false,
        settles: true,
        power_of_two_rows: false,
    }
}
