//! The row filter: one mechanism for SQF, QHT, QHTD, QQHT, QQHTD and row-LRU, packed or
//! semi-sorted.

use super::fingerprint::{Fingerprint, nonzero_values};
use super::store::{ENCODINGS, MOST_SLOTS, RowEncoding, RowStore, row_lines, rows_in};
use crate::error::{BuildError, SpecError};
use crate::filters::filter::tally_of_cells;
use crate::filters::row::{Facts, FilterRow, Head, MOST_SCATTERED, Named, OptionRow};
use crate::filters::scattered::random::SeededRng;
use crate::filters::{Batch, Filter, Form, Replacement, lines};
use crate::hash::KeyHash;
use crate::memory::LINE_BYTES;
use crate::options::{Allowed, Value, names};
use crate::report::{Report, Tally};
use crate::theory::fingerprints::{FingerprintGeometry, SlotWidth};

/// Which fingerprint leaves a full row, and what a fingerprint that is found does to its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowPolicy {
    /// A random slot is overwritten; the others stay where they are. The first empty slot is used
    /// before any victim.
    RandomVictim {
        /// Whether a fingerprint that is found is inserted once more ("with duplicates").
        again: bool,
    },
    /// The row is a queue: the new fingerprint enters slot 0.
    Queue(Replacement),
}

/// The specification of a row filter (QHT, QHTD, QQHT, QQHTD, row-LRU), memory aside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RowSpec {
    /// k: the number of slots of a row (1 to 64).
    pub(crate) slots: u32,
    /// b: the bits of a fingerprint, which is never zero (1 to 32; 64 in lines).
    pub(crate) bits: u32,
    /// Which fingerprint leaves a full row.
    pub(crate) policy: RowPolicy,
    /// How rows are stored.
    pub(crate) encoding: RowEncoding,
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
pub(crate) struct RowFilter {
    store: RowStore,
    slots: u32,
    fingerprint: Fingerprint,
    policy: RowPolicy,
    rng: SeededRng,
}

impl RowFilter {
    /// A filter of the empty rows of `store`; `seed` seeds its random victims.
    pub(super) fn new(
        store: RowStore,
        slots: u32,
        fingerprint: Fingerprint,
        policy: RowPolicy,
        seed: u64,
    ) -> Self {
        Self {
            store,
            slots,
            fingerprint,
            policy,
            rng: SeededRng::seeded(seed),
        }
    }

    #[inline(always)]
    fn row_of(&self, key: KeyHash) -> u64 {
        KeyHash(key.remix(0)).line(self.store.rows())
    }

    /// Tests and records one key; true means duplicate.
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
}

impl Filter for RowFilter {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        batch.observe_each(duplicates, |key| self.observe_key(key));
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

    fn tally(&self) -> Tally {
        tally_of_cells(self.memory_bytes(), self.store.occupied())
    }

    fn report_on(&self, tally: Tally) -> Report {
        Report::new(tally)
    }
}

impl RowSpec {
    fn of(named: &Named) -> Self {
        Self {
            slots: named.small("slots"),
            bits: named.small("bits"),
            policy: policy(named.name()),
            encoding: named.choice("rows", &ENCODINGS),
        }
    }

    /// Builds the filter in `memory_bytes`; `seed` seeds its random draws.
    ///
    /// # Errors
    /// [`BuildError`] if a fingerprint has more than 32 bits, semi-sorted rows have too many
    /// states, the memory holds no row, or the memory cannot be allocated.
    fn build(self, memory_bytes: u64, seed: u64) -> Result<RowFilter, BuildError> {
        let slots = self.slots;
        let fingerprint = Fingerprint::Nonzero { bits: self.bits }.check()?;
        let rows = rows_in(memory_bytes, self.encoding, slots, fingerprint.bits())?;
        let store = RowStore::new(self.encoding, rows.get(), slots, fingerprint.bits())?;
        Ok(RowFilter::new(store, slots, fingerprint, self.policy, seed))
    }
}

/// The widths of slots in the scattered form, and in the line form.
const BITS: &str = "a whole number from 1 to 32, or 64 with form=line";

/// `slots`. In lines the defaults depend on each other.
const SLOTS: OptionRow = OptionRow::new("slots", Allowed::Whole(1, MOST_SLOTS as u64));
/// A form that is set later may be the line form.
const WIDTH: OptionRow = OptionRow::new("bits", Allowed::Described(1, 64, BITS));

const RANDOM: &[OptionRow] = &[
    SLOTS.or(Value::Whole(1)),
    WIDTH.or(Value::Whole(3)),
    OptionRow::choice("rows", &names(&ENCODINGS)),
];
/// The order of a queue, and of the slots of a line, is their order in memory.
const QUEUE: &[OptionRow] = &[RANDOM[0], RANDOM[1], OptionRow::choice("rows", &["packed"])];
const LINE: &[OptionRow] = &[
    SLOTS,
    OptionRow::new("bits", Allowed::Listed(&[8, 16, 32, 64])),
    OptionRow::choice("rows", &["packed"]),
];

/// The row filters with random victims.
pub(in crate::filters) static RANDOM_ROWS: [FilterRow; 2] =
    [row("qht", random_options), row("qhtd", random_options)];

/// The filter of this name, whose rows are queues.
pub(in crate::filters) const fn queue_row(name: &'static str) -> FilterRow {
    row(name, queue_options)
}

fn random_options(form: Form) -> &'static [OptionRow] {
    match form {
        Form::Scattered => RANDOM,
        Form::Line => LINE,
    }
}

fn queue_options(form: Form) -> &'static [OptionRow] {
    match form {
        Form::Scattered => QUEUE,
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

const fn row(name: &'static str, options: fn(Form) -> &'static [OptionRow]) -> FilterRow {
    FilterRow {
        head: Head {
            name,
            options,
            complete,
        },
        scattered: Some(|named, memory, seed| {
            Ok(Box::new(RowSpec::of(named).build(memory, seed)?))
        }),
        cells: None,
        lines: Some(|named, allocation| lines::rows::build(&RowSpec::of(named), allocation)),
        facts,
    }
}

fn complete(named: &mut Named, form: Form) -> Result<(), SpecError> {
    if form == Form::Line {
        // A QHTD line counts its arrivals in one slot.
        let counters = u64::from(policy(named.name()) == RowPolicy::RandomVictim { again: true });
        let (slots, bits) = line_shape(named.given("slots"), named.given("bits"), counters);
        named.set("slots", Value::Whole(slots));
        named.set("bits", Value::Whole(bits));
    }
    Ok(())
}

fn facts(named: &Named, form: Form, memory: u64) -> Facts {
    let RowSpec {
        slots,
        bits,
        encoding,
        ..
    } = RowSpec::of(named);
    Facts {
        cache_lines: row_lines(encoding, slots, bits),
        rate_model: None,
        fpr_limit: match (form, SlotWidth::from_bits(bits)) {
            (Form::Scattered, _) => Some(f64::from(slots) / nonzero_values(bits)),
            (Form::Line, Ok(width)) => {
                Some(FingerprintGeometry::new(memory / LINE_BYTES, width).full_fpr())
            }
            (Form::Line, Err(_)) => None,
        },
        most_memory: MOST_SCATTERED,
        memory_unit: LINE_BYTES,
        window: None,
        renews_keys: false,
        forgets_by_time: false,
        settles: true,
        power_of_two_rows: false,
    }
}

/// The slots and bits of a line, of which neither, one or both are given. A given one decides the
/// other if it divides the line into whole slots, of which `counters` hold no fingerprint.
fn line_shape(slots: Option<u64>, bits: Option<u64>, counters: u64) -> (u64, u64) {
    let widths = SlotWidth::ALL
        .iter()
        .map(|width| (u64::from(width.slots()) - counters, u64::from(width.bits())));
    let fitting = widths.filter(|(per_line, width)| {
        slots.is_none_or(|slots| slots == *per_line) && bits.is_none_or(|bits| bits == *width)
    });
    let chosen = fitting.min_by_key(|(_, width)| width.abs_diff(16));
    // Numbers that do not fit are rejected when the filter is built, with both in the message.
    let (per_line, width) = chosen.unwrap_or((32 - counters, 16));
    (slots.unwrap_or(per_line), bits.unwrap_or(width))
}
