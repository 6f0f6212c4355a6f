//! The cuckoo filter on an endless stream: when moving fingerprints finds no empty slot, the last
//! one moved is dropped.

use super::fingerprint::{Fingerprint, nonzero_values};
use super::store::{ENCODINGS, MOST_SLOTS, RowShape, RowStore};
use crate::scattered::mechanism::{Mechanism, filter, row};
use crate::scattered::random::SeededRng;
use echoless::extend::{FilterRow, Head, Named, OptionRow, names};
use echoless::spec::Facts;
use echoless::{BuildError, Cells, KeyHash};

/// Cuckoo filter (Fan 2014, without failure as in paper 002, section 2.3): a fingerprint is in row
/// h1(x) or in that row xor the hash of the fingerprint. The number of rows is the largest power of
/// two that fits. A hit changes nothing.
///
/// Cache lines touched per key: those of two rows to probe; a fresh key touches those of one more
/// row for each fingerprint it moves.
#[derive(Debug, Clone)]
pub(crate) struct CuckooFilter {
    store: RowStore,
    shape: RowShape,
    /// The number of fingerprints that an insertion may move (1 to 1000). On an endless stream the
    /// table is full, and every fresh key moves that many.
    kicks: u32,
    rng: SeededRng,
}

/// The rows by the options of the filter.
fn shape(named: &Named) -> RowShape {
    RowShape::new(named, named.small("bits"))
}

impl CuckooFilter {
    /// Builds the filter in `memory_bytes`; `seed` seeds its random draws. Fails if semi-sorted
    /// rows have too many states, the memory holds no row, or the memory cannot be allocated.
    fn build(named: &Named, memory_bytes: u64, seed: u64) -> Result<Self, BuildError> {
        let shape = shape(named);
        let log2 = shape.rows_in(memory_bytes)?.ilog2();
        Ok(Self {
            store: RowStore::new(shape, 1 << log2)?,
            shape,
            kicks: named.small("kicks"),
            rng: SeededRng::seeded(seed),
        })
    }

    fn home(&self, key: KeyHash) -> (u64, u32) {
        let fingerprint = Fingerprint::Nonzero {
            bits: self.shape.bits,
        }
        .fingerprint_of(key);
        (
            KeyHash::from_uniform(key.remix(0)).line(self.store.rows()),
            fingerprint,
        )
    }

    /// The other row of a fingerprint. Applied twice, it returns the row itself, so a stored
    /// fingerprint can move without its key.
    fn partner(&self, row: u64, fingerprint: u32) -> u64 {
        row ^ KeyHash::from_uniform(KeyHash::from_uniform(u64::from(fingerprint)).remix(0))
            .line(self.store.rows())
    }

    fn row_holds(&self, row: u64, fingerprint: u32) -> bool {
        let mut buffer = [0; MOST_SLOTS as usize];
        let slots = &mut buffer[..self.shape.slots as usize];
        self.store.read(row, slots);
        slots.contains(&fingerprint)
    }

    /// Writes the fingerprint to an empty slot of the row, or to a random one if the row is full,
    /// and returns the slot's old content; 0 is an empty slot. `None` if only an empty slot was
    /// allowed.
    fn place(&mut self, row: u64, fingerprint: u32, only_if_empty: bool) -> Option<u32> {
        let mut buffer = [0; MOST_SLOTS as usize];
        let slots = &mut buffer[..self.shape.slots as usize];
        self.store.read(row, slots);
        let slot = match slots.iter().position(|slot| *slot == 0) {
            Some(empty) => empty,
            None if only_if_empty => return None,
            None => self.rng.below(u64::from(self.shape.slots)) as usize,
        };
        let previous = std::mem::replace(&mut slots[slot], fingerprint);
        self.store.write(row, slots);
        Some(previous)
    }
}

impl Mechanism for CuckooFilter {
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let (first, mut fingerprint) = self.home(key);
        let second = self.partner(first, fingerprint);
        if self.row_holds(first, fingerprint) || self.row_holds(second, fingerprint) {
            return true;
        }
        if self.place(first, fingerprint, true).is_some()
            || self.place(second, fingerprint, true).is_some()
        {
            return false;
        }
        let mut row = if self.rng.ratio(1, 2) { first } else { second };
        for _ in 0..self.kicks {
            match self.place(row, fingerprint, false) {
                Some(0) | None => return false,
                Some(previous) => fingerprint = previous,
            }
            row = self.partner(row, fingerprint);
        }
        // The last victim goes to an empty slot of its other row, if there is one; else it is
        // dropped.
        self.place(row, fingerprint, true);
        false
    }

    fn contains(&self, key: KeyHash) -> bool {
        let (first, fingerprint) = self.home(key);
        self.row_holds(first, fingerprint)
            || self.row_holds(self.partner(first, fingerprint), fingerprint)
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

const OPTIONS: &[OptionRow] = &[
    OptionRow::whole("slots", 1, MOST_SLOTS as u64, 4),
    OptionRow::whole("bits", 1, 32, 8),
    OptionRow::whole("kicks", 1, 1000, 4),
    OptionRow::choice("rows", &names(&ENCODINGS)),
];

/// The cuckoo filter.
pub(crate) static CUCKOO: [FilterRow; 1] = [row(
    Head {
        name: "cuckoo",
        options: |_| OPTIONS,
        complete: Named::as_given,
    },
    |named, memory, seed| filter(CuckooFilter::build(named, memory, seed)),
    |named, _, _| {
        let shape = shape(named);
        let moved = f64::from(named.small("kicks"));
        Facts {
            fpr_limit: Some(2.0 * f64::from(shape.slots) / nonzero_values(shape.bits)),
            power_of_two_rows: true,
            ..Facts::touching((2.0 + moved) * shape.cache_lines())
        }
    },
)];
