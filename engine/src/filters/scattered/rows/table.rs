//! The row filter: one mechanism for SQF, QHT, QHTD, QQHT, QQHTD and row-LRU, packed or semi-sorted.

use super::store::{RowStore, rows_in};
use super::{Fingerprint, RowEncoding};
use crate::error::{BuildError, SpecError};
use crate::filters::scattered::checks::within;
use crate::filters::scattered::key_by_key::KeyByKey;
use crate::filters::scattered::random::SeededRng;
use crate::hash::KeyHash;

/// The longest row.
pub(crate) const MOST_SLOTS: u32 = 64;

/// Who leaves a full row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Victim {
    /// A random slot; the others stay where they are. An empty slot, the first, is taken before any victim.
    Random,
    /// The last slot; the row is a queue, and the new fingerprint becomes its first.
    Oldest,
}

/// What a fingerprint that is found does to its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnHit {
    /// Nothing.
    Keep,
    /// It is inserted once more, like a new one ("with duplicates").
    InsertAgain,
    /// It moves to the front of its queue.
    MoveToFront,
}

/// What a row filter is made of, its memory aside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowSpec {
    /// k: the slots of a row (1 to 64).
    pub slots: u32,
    /// How fingerprints are derived.
    pub fingerprint: Fingerprint,
    /// Who leaves a full row.
    pub victim: Victim,
    /// What a hit does.
    pub on_hit: OnHit,
    /// How rows are written down.
    pub form: RowEncoding,
}

/// R rows of k slots; a key is a duplicate if and only if its fingerprint is in its row (paper 002, sections 3 and 5).
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
/// The row of an SQF is the high bits of a hash, so the number of its rows is the largest power of two that fits.
///
/// Cache lines touched per key: the row's, one or (where it crosses a line) two while k b is at most 512 bits.
///
/// # Examples
/// ```
/// use echoless::{Filter, KeyHash, Verdict};
/// use echoless::filters::scattered::rows::{Fingerprint, OnHit, RowEncoding, RowSpec, Victim};
/// let qqht = RowSpec {
///     slots: 4,
///     fingerprint: Fingerprint::Nonzero { bits: 12 },
///     victim: Victim::Oldest,
///     on_hit: OnHit::Keep,
///     form: RowEncoding::Packed,
/// };
/// let mut filter = qqht.build(1 << 16, 7)?;
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Fresh);
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Duplicate);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RowFilter {
    store: RowStore,
    spec: RowSpec,
    rng: SeededRng,
}

impl RowSpec {
    /// Builds the filter in `memory_bytes`, its random choices seeded by `seed`.
    ///
    /// # Errors
    /// [`BuildError`] if a field is out of its range, fingerprint, victim and hit are no row of the table above, semi-sorted rows are asked to keep
    /// an order or have too many states, the memory holds no row, or the machine refuses the memory.
    pub fn build(self, memory_bytes: u64, seed: u64) -> Result<RowFilter, BuildError> {
        let slots = within("slots", self.slots, 1..=MOST_SLOTS)?;
        let fingerprint = self.fingerprint.check()?;
        let ordered = self.victim == Victim::Oldest || self.on_hit == OnHit::MoveToFront;
        if self.form == RowEncoding::Sorted && ordered {
            let allowed = "packed (semi-sorting loses the order that queues need)";
            return Err(SpecError::new("rows", "sorted", allowed).into());
        }
        if self.victim == Victim::Random && self.on_hit == OnHit::MoveToFront {
            let allowed = "keep or insert again (rows with random victims have no front)";
            return Err(SpecError::new("on hit", "move to front", allowed).into());
        }
        // No filter of that kind has a name, and what is written down is to be read as what it was.
        let policy = (self.victim, self.on_hit);
        if matches!(fingerprint, Fingerprint::Counted { .. })
            && policy != (Victim::Random, OnHit::Keep)
        {
            let allowed = "nonzero (counted fingerprints need random victims and hits that keep)";
            return Err(SpecError::new("fingerprint", "counted", allowed).into());
        }
        let rows = rows_in(memory_bytes, self.form, slots, fingerprint.bits())?;
        let rows = match fingerprint {
            Fingerprint::Counted { .. } => 1 << rows.ilog2(),
            Fingerprint::Nonzero { .. } => rows.get(),
        };
        Ok(RowFilter {
            store: RowStore::new(self.form, rows, slots, fingerprint.bits())?,
            spec: self,
            rng: SeededRng::seeded(seed),
        })
    }
}

impl RowFilter {
    /// R: the number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.store.rows()
    }

    #[inline(always)]
    fn row_of(&self, key: KeyHash) -> u64 {
        KeyHash(key.remix(0)).line(self.store.rows())
    }
}

impl KeyByKey for RowFilter {
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let row = self.row_of(key);
        let fingerprint = self.spec.fingerprint.fingerprint_of(key);
        let mut buffer = [0; MOST_SLOTS as usize];
        let slots = &mut buffer[..self.spec.slots as usize];
        self.store.read(row, slots);
        let found = slots.iter().position(|slot| *slot == fingerprint);
        match (found, self.spec.on_hit) {
            (Some(_), OnHit::Keep) => return true,
            (Some(slot), OnHit::MoveToFront) => slots[..=slot].rotate_right(1),
            (Some(_), OnHit::InsertAgain) | (None, _) => match self.spec.victim {
                Victim::Random => {
                    let slot = slots
                        .iter()
                        .position(|slot| *slot == 0)
                        .unwrap_or_else(|| self.rng.below(u64::from(self.spec.slots)) as usize);
                    slots[slot] = fingerprint;
                }
                Victim::Oldest => {
                    slots.rotate_right(1);
                    slots[0] = fingerprint;
                }
            },
        }
        self.store.write(row, slots);
        found.is_some()
    }

    fn holds(&self, key: KeyHash) -> bool {
        let mut buffer = [0; MOST_SLOTS as usize];
        let slots = &mut buffer[..self.spec.slots as usize];
        self.store.read(self.row_of(key), slots);
        slots.contains(&self.spec.fingerprint.fingerprint_of(key))
    }

    fn forget(&mut self) {
        self.store.clear();
        self.rng.restart();
    }

    fn state_bytes(&self) -> u64 {
        self.store.bytes()
    }

    fn taken(&self) -> f64 {
        self.store.taken()
    }
}
