//! The specification of lines of fingerprints: one for all of them, and a row of the catalogue for
//! each name.
//!
//! | name | policy | age of a key | a key has |
//! |---|---|---|---|
//! | `qqht`, `rowlru`, `qqhtd` | FIFO, LRU, every key is pushed | none | a line |
//! | `dense` | LRU or FIFO | none | two lines of a page |
//! | `clocked` | LRU, FIFO with `refresh=false` | a clock word in the line | a line, two if dense |
//! | `stamped` | the same | a stamp in the slot | a line |
//!
//! | with a window | slots in a line | bits of a fingerprint | granule |
//! |---|---|---|---|
//! | `clocked` | 28, 14 or 7 | 16, 32 or 64 | a fifth of the window |
//! | `stamped` | 16 | 16 | a tick, or 1/4096 of a long window |
//! | `stamped` | 8 | 40 | a tick, or 1/2^20 of a long window |
//!
//! [`FingerprintSpec`](crate::FingerprintSpec) selects among them by a false positive rate.

use super::shape::TimedLineShape;
use super::stamped::StampedSlot;
use super::{clocked, clocked_pages, pages, queue, rows, stamped};
use crate::error::{BuildError, SpecError};
use crate::filters::lines::{LineAllocation, LineFilter};
use crate::filters::replacement::{Fifo, Lru, ReplacementPolicy};
use crate::filters::row::{Facts, FilterRow, Head, Named, OptionRow};
use crate::filters::units::{self, Units};
use crate::filters::{Form, Replacement};
use crate::kernels::PAGE_LINES;
use crate::memory::LINE_BYTES;
use crate::options::Allowed;
use crate::theory::dense::{ClockedGeometry, DenseGeometry};

/// The bytes of a page.
const PAGE_BYTES: u64 = PAGE_LINES as u64 * LINE_BYTES;

/// How a line stores the age of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    /// It does not: keys leave when others need their slots.
    None,
    /// By the key's position in the line: a clock word has the borders between ages.
    Clock,
    /// By a stamp beside the key's fingerprint.
    Stamp,
}

/// Lines of fingerprints. With a window, a key is a duplicate if an equal one was seen at most `window`
/// ticks ago.
///
/// One cache line is touched for each key, or two of a page if the lines are
/// [pages](Self#structfield.pages). At equal false positive rate and memory, `clocked` holds 1.75
/// times as many keys as `stamped`, which is exact to the tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LinesSpec {
    /// The width of a slot in bits.
    bits: u32,
    /// Which key a full line evicts. With a window, LRU means that a duplicate renews its key.
    replacement: Replacement,
    /// How a line stores the age of a key.
    age: Age,
    /// Whether a key has two lines of a page, so that the same memory holds about twice as many
    /// keys. Not with stamps.
    pages: bool,
    /// The window in ticks, 1 to 2^63 - 1; 0 without ages.
    window: u64,
    /// By how many ticks keys may be late that are judged at their own ticks; 0 if late keys are
    /// judged at the clock. Window and skew together are at most 2^63 - 1.
    skew: u64,
}

impl LinesSpec {
    fn of(named: &Named) -> Self {
        let bits = named.small("bits");
        let of_name = |policy: &Replacement| policy.filter_name() == named.name();
        if let Some(replacement) = Replacement::ALL.iter().copied().find(of_name) {
            return Self {
                bits,
                replacement,
                age: Age::None,
                pages: false,
                window: 0,
                skew: 0,
            };
        }
        let age = match named.name() {
            "clocked" => Age::Clock,
            "stamped" => Age::Stamp,
            _ => {
                return Self {
                    bits,
                    replacement: named.choice("replacement", &Replacement::NAMED),
                    age: Age::None,
                    pages: true,
                    window: 0,
                    skew: 0,
                };
            }
        };
        Self {
            bits,
            replacement: if named.flag("refresh") {
                Replacement::Lru
            } else {
                Replacement::Fifo
            },
            age,
            pages: age == Age::Clock && named.flag("dense"),
            window: named.whole("window"),
            skew: match age {
                Age::Stamp => named.given("skew").unwrap_or(0),
                Age::Clock | Age::None => 0,
            },
        }
    }

    /// The shape of a line with ages, and the most units of a window.
    fn shape(self) -> (TimedLineShape, u64) {
        let bits = self.bits;
        let (slots, fingerprint_bits, most) = match (self.age, bits) {
            (Age::Stamp, 32) => (16, u32::FINGERPRINT_BITS, u32::MOST_ALIVE),
            (Age::Stamp, _) => (8, u64::FINGERPRINT_BITS, u64::MOST_ALIVE),
            // The clock word takes the place of 64 bits of slots.
            (Age::Clock | Age::None, _) => ((512 - 64) / bits, bits, clocked::MOST_ALIVE),
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

    /// Builds lines that exist for FIFO and LRU alone.
    fn build_with<P: ReplacementPolicy>(
        self,
        allocation: LineAllocation,
    ) -> Result<Box<dyn LineFilter>, BuildError> {
        if self.age == Age::None {
            return match self.bits {
                16 => pages::build::<u16, P>(allocation),
                32 => pages::build::<u32, P>(allocation),
                _ => pages::build::<u64, P>(allocation),
            };
        }
        let units = self.units();
        if self.skew > 0 {
            return stamped::build_skewed::<u64, P>(units, self.window, allocation);
        }
        match (self.age, self.bits, self.pages) {
            (Age::Stamp, 32, _) => stamped::build::<u32, P>(units, allocation),
            (Age::Stamp, ..) => stamped::build::<u64, P>(units, allocation),
            (_, 16, false) => clocked::build::<u16, P>(units, allocation),
            (_, 32, false) => clocked::build::<u32, P>(units, allocation),
            (_, _, false) => clocked::build::<u64, P>(units, allocation),
            (_, 16, true) => clocked_pages::build::<u16, P>(units, allocation),
            (_, 32, true) => clocked_pages::build::<u32, P>(units, allocation),
            (_, _, true) => clocked_pages::build::<u64, P>(units, allocation),
        }
    }
}

/// Builds lines of fingerprints, by the name of one of the engine's filters.
///
/// # Errors
/// [`BuildError`] if slots and bits fill no line, or the memory cannot be allocated.
///
/// # Panics
/// If the name is not that of one of them.
pub fn build(named: &Named, allocation: LineAllocation) -> Result<Box<dyn LineFilter>, BuildError> {
    let spec = LinesSpec::of(named);
    if spec.age == Age::None && !spec.pages {
        return queue::build(rows::width(named, 0)?, spec.replacement, allocation);
    }
    // Not by `Replacement::dispatch`, which would compile every policy for all of them.
    match spec.replacement {
        Replacement::Lru => spec.build_with::<Lru>(allocation),
        Replacement::Fifo => spec.build_with::<Fifo>(allocation),
        Replacement::Qqhtd => {
            let allowed = "lru or fifo in pages and with a window";
            Err(SpecError::new("replacement", spec.replacement.name(), allowed).into())
        }
    }
}

fn facts(named: &Named, _form: Form, memory: u64) -> Facts {
    let (spec, plain) = (LinesSpec::of(named), rows::facts(named, memory));
    let (memory_unit, lines) = match spec.pages {
        true => (PAGE_BYTES, memory / PAGE_BYTES * PAGE_LINES as u64),
        false => (LINE_BYTES, memory / LINE_BYTES),
    };
    let facts = Facts {
        memory_unit,
        ..plain
    };
    if spec.age == Age::None {
        return match spec.pages {
            false => facts,
            true => Facts {
                fpr_limit: DenseGeometry::new(lines, spec.bits)
                    .ok()
                    .map(DenseGeometry::full_fpr),
                ..facts
            },
        };
    }
    let (shape, _) = spec.shape();
    Facts {
        fpr_limit: Some(match spec.pages {
            true => ClockedGeometry::new(memory / LINE_BYTES, spec.bits)
                .fpr_with(f64::from(shape.slots)),
            false => shape.fpr_with(shape.slots.into(), lines),
        }),
        window: Some(spec.units().with_window(spec.window).window()),
        renews_keys: spec.replacement == Replacement::Lru,
        ..facts
    }
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

const DENSE: &[OptionRow] = &[
    // The first is the default.
    OptionRow::choice("replacement", &[Lru::NAME, Fifo::NAME]),
    OptionRow::listed("bits", &[16, 32, 64], 32),
];

/// The lines with a window, and those in pages.
pub(in crate::filters) static ROWS: [FilterRow; 3] = [
    row("clocked", |_| CLOCKED, Named::as_given),
    row("stamped", |_| STAMPED, check_skew),
    row("dense", |_| DENSE, Named::as_given),
];

/// The filter of this name, whose rows are queues. Without `form=line` the name is that of a
/// scattered filter, where one is [registered](crate::extend).
pub(in crate::filters) const fn queue_row(name: &'static str) -> FilterRow {
    FilterRow {
        default_form: Form::Scattered,
        ..row(name, rows::queue_options, |named, form| {
            rows::complete(named, form, 0)
        })
    }
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
        lines: Some(build),
        facts,
    }
}

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
