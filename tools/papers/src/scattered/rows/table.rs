//! The row filter: one mechanism for SQF, QHT, QHTD, QQHT, QQHTD and row-LRU, packed or
//! semi-sorted.

use super::fingerprint::{Fingerprint, nonzero_values};
use super::store::{ENCODINGS, MOST_SLOTS, RowShape, RowStore};
use crate::lines;
use crate::scattered::mechanism::{self, Mechanism, filter};
use crate::scattered::random::SeededRng;
use echoless::extend::rows::{LINE, SCATTERED, complete, facts as line_facts, queue_options};
use echoless::extend::{BuildLines, FilterRow, Head, Named, OptionRow, build_lines, names};
use echoless::spec::{Facts, Form};
use echoless::{BuildError, Cells, KeyHash, Replacement};

/// Which fingerprint leaves a full row, and what a fingerprint that is found does to its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowPolicy {
    /// A random slot is overwritten; the others stay where they are. The first empty slot is used
    /// before any victim.
    RandomVictim {
        /// Whether a fingerprint that is found is inserted once more ("with duplicates").
        again: bool,
    },
    /// The row is a queue: the new fingerprint enters slot 0.
    Queue(Replacement),
}

/// R rows of k slots; a key is a duplicate if and only if its fingerprint is in its row (paper 002,
/// sections 3 and 5).
///
/// | filter | fingerprint | victim | on a hit |
/// |---|---|---|---|
/// | SQF (Dutta 2013) | counted | random | keep |
/// | QHT | nonzero | random | keep |
/// | QHTD | nonzero | random | insert again |
/// | QQHT | nonzero | oldest | keep |
/// | QQHTD | nonzero | oldest | insert again |
/// | row-LRU | nonzero | oldest | move to front |
///
/// The row of an SQF is the high bits of a hash, so the number of its rows is the largest power of
/// two that fits.
///
/// Cache lines touched per key: those of the row. With k b up to 512 bits that is one, or two if
/// the row crosses a line, as all rows of 512 bits do in memory that does not begin at a line.
#[derive(Debug, Clone)]
struct RowFilter {
    store: RowStore,
    slots: u32,
    fingerprint: Fingerprint,
    policy: RowPolicy,
    rng: SeededRng,
}

impl RowFilter {
    #[inline(always)]
    fn row_of(&self, key: KeyHash) -> u64 {
        KeyHash::from_uniform(key.remix(0)).line(self.store.rows())
    }
}

impl Mechanism for RowFilter {
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let row = self.row_of(key);
        let fingerprint = self.fingerprint.fingerprint_of(key);
        let mut buffer = [0; MOST_SLOTS as usize];
        let slots = &mut buffer[..self.slots as usize];
        self.store.read(row, slots);
        let matches = slots.iter().enumerate();
        let found = matches.fold(0_u64, |found, (index, slot)| {
            found | u64::from(*slot == fingerprint) << index
        });
        match self.policy {
            RowPolicy::RandomVictim { again: false } if found != 0 => return true,
            RowPolicy::RandomVictim { .. } => {
                let empty = slots.iter().position(|slot| *slot == 0);
                let slot = empty.unwrap_or_else(|| self.rng.below(u64::from(self.slots)) as usize);
                slots[slot] = fingerprint;
            }
            RowPolicy::Queue(replacement) => {
                let moved = replacement.moved(found, self.slots).trailing_ones();
                let moved = &mut slots[..moved.min(self.slots) as usize];
                let Some(last) = moved.len().checked_sub(1) else {
                    return found != 0;
                };
                moved.copy_within(..last, 1);
                moved[0] = fingerprint;
            }
        }
        self.store.write(row, slots);
        found != 0
    }

    fn contains(&self, key: KeyHash) -> bool {
        let mut buffer = [0; MOST_SLOTS as usize];
        let slots = &mut buffer[..self.slots as usize];
        self.store.read(self.row_of(key), slots);
        slots.contains(&self.fingerprint.fingerprint_of(key))
    }

    fn clear(&mut self) {
        self.store.clear();
        self.rng.restart();
    }

    fn memory_bytes(&self) -> u64 {
        self.store.bytes()
    }

    fn fill(&self) -> (Cells, Option<f64>) {
        (self.store.occupied(), None)
    }
}

/// Builds the filter in `memory_bytes`; `seed` seeds its random draws. Fails if a fingerprint is
/// out of its range, semi-sorted rows have too many states, the memory holds no row, or the memory
/// cannot be allocated.
fn build(named: &Named, memory_bytes: u64, seed: u64) -> Result<RowFilter, BuildError> {
    let fingerprint = fingerprint(named).check()?;
    let shape = RowShape::new(named, fingerprint.bits());
    let rows = shape.rows_in(memory_bytes)?;
    let rows = match fingerprint {
        Fingerprint::Nonzero { .. } => rows.get(),
        // The row is the high bits of a hash.
        Fingerprint::Counted { .. } => 1 << rows.ilog2(),
    };
    Ok(RowFilter {
        store: RowStore::new(shape, rows)?,
        slots: shape.slots,
        fingerprint,
        policy: policy(named.name()),
        rng: SeededRng::seeded(seed),
    })
}

/// The fingerprints of a row filter.
fn fingerprint(named: &Named) -> Fingerprint {
    match named.name() {
        "sqf" => Fingerprint::Counted {
            remainder: named.small("r"),
            kept: named.small("kept"),
        },
        _ => Fingerprint::Nonzero {
            bits: named.small("bits"),
        },
    }
}

const RANDOM: &[OptionRow] = &[
    SCATTERED[0],
    SCATTERED[1],
    OptionRow::choice("rows", &names(&ENCODINGS)),
];

/// The row filters with random victims.
pub(crate) static RANDOM_ROWS: [FilterRow; 2] = [row("qht", RANDOM_ROW), row("qhtd", RANDOM_ROW)];

/// The filters whose rows are queues, one for each policy. Their lines are those of the engine.
pub(crate) static QUEUES: [FilterRow; 3] = [
    row("qqht", QUEUE_ROW),
    row("rowlru", QUEUE_ROW),
    row("qqhtd", QUEUE_ROW),
];

/// The options of a row filter, and how its lines are built.
type RowForms = (fn(Form) -> &'static [OptionRow], BuildLines);

const RANDOM_ROW: RowForms = (random_options, lines::rows::build);
const QUEUE_ROW: RowForms = (queue_options, build_lines);

fn random_options(form: Form) -> &'static [OptionRow] {
    match form {
        Form::Scattered => RANDOM,
        Form::Line => LINE,
    }
}

/// The policy of a row filter.
fn policy(name: &str) -> RowPolicy {
    let queue = Replacement::ALL.iter();
    match queue.copied().find(|policy| policy.filter_name() == name) {
        Some(replacement) => RowPolicy::Queue(replacement),
        None => RowPolicy::RandomVictim {
            again: name == "qhtd",
        },
    }
}

/// The slots of a line that hold no fingerprint: a QHTD line counts its arrivals in one.
pub(crate) fn counters(name: &str) -> u32 {
    u32::from(policy(name) == RowPolicy::RandomVictim { again: true })
}

const fn row(name: &'static str, (options, build): RowForms) -> FilterRow {
    let head = Head {
        name,
        options,
        complete: |named, form| complete(named, form, counters(named.name()).into()),
    };
    FilterRow {
        lines: Some(build),
        ..mechanism::row(
            head,
            |named, memory, seed| filter(self::build(named, memory, seed)),
            facts,
        )
    }
}

fn facts(named: &Named, form: Form, memory: u64) -> Facts {
    let shape = RowShape::new(named, named.small("bits"));
    let facts = line_facts(named, memory);
    Facts {
        cache_lines: shape.cache_lines(),
        fpr_limit: match form {
            Form::Scattered => Some(f64::from(shape.slots) / nonzero_values(shape.bits)),
            Form::Line => facts.fpr_limit,
        },
        ..facts
    }
}

const COUNTED: &[OptionRow] = &[
    OptionRow::whole("slots", 1, MOST_SLOTS as u64, 1),
    // r: the bits of the remainder.
    OptionRow::whole("r", 1, 27, 2),
    // r': the low bits of it that are kept, at most r.
    OptionRow::whole("kept", 1, 27, 1),
    OptionRow::choice("rows", &names(&ENCODINGS)),
];

/// The streaming quotient filter (Dutta 2013): rows of fingerprints that count bits.
pub(crate) static SQF: [FilterRow; 1] = [mechanism::row(
    Head {
        name: "sqf",
        options: |_| COUNTED,
        complete: Named::as_given,
    },
    |named, memory, seed| filter(build(named, memory, seed)),
    // No limit of the rate: its fingerprints are not equally likely.
    |named, _, _| Facts {
        power_of_two_rows: true,
        ..Facts::touching(RowShape::new(named, fingerprint(named).bits()).cache_lines())
    },
)];
