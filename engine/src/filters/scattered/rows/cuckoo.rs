//! The cuckoo filter on an endless stream: when moving fingerprints finds no empty slot, the last
//! one moved is dropped.

use super::fingerprint::{Fingerprint, nonzero_values};
use super::store::{ENCODINGS, MOST_SLOTS, RowEncoding, RowStore, rows_in};
use crate::error::{BuildError, SpecError};
use crate::filters::filter::{observe_each, tally_of_cells};
use crate::filters::kind::KindSpec;
use crate::filters::scattered::random::SeededRng;
use crate::filters::{Filter, Form, Workload};
use crate::hash::KeyHash;
use crate::limits::within;
use crate::options::{Options, name_of};
use crate::report::Tally;
use crate::theory::RateModel;

/// The parameters of a cuckoo filter, except its memory.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct CuckooSpec {
    /// k: the number of slots of a row (1 to 64).
    pub slots: u32,
    /// b: the number of bits of a slot (1 to 32).
    pub bits: u32,
    /// The number of fingerprints that an insertion may move (1 to 1000). On an endless stream the
    /// table is full, and every fresh key moves that many.
    pub kicks: u32,
    /// How rows are stored.
    pub encoding: RowEncoding,
}

/// Cuckoo filter (Fan 2014, without failure as in paper 002, section 2.3): a fingerprint is in row
/// h1(x) or in that row xor the hash of the fingerprint. The number of rows is the largest power of
/// two that fits. A hit changes nothing.
///
/// Cache lines touched per key: two to probe; a fresh key touches one more for each fingerprint it
/// moves.
///
/// # Examples
/// ```
/// use echoless::{Filter, KeyHasher, Verdict};
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// use echoless::spec::CuckooSpec;
/// let spec = CuckooSpec::new(4, 12).kicks(8);
/// let mut filter = spec.build(1 << 16, 7)?;
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// assert_eq!(filter.observe_one(key), Verdict::Duplicate);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct CuckooFilter {
    store: RowStore,
    spec: CuckooSpec,
    rng: SeededRng,
}

impl CuckooSpec {
    /// Rows of `slots` fingerprints of `bits` bits, packed; an insertion moves up to 4.
    #[must_use]
    pub const fn new(slots: u32, bits: u32) -> Self {
        Self {
            slots,
            bits,
            kicks: 4,
            encoding: RowEncoding::Packed,
        }
    }

    /// How many fingerprints an insertion may move.
    #[must_use]
    pub const fn kicks(mut self, kicks: u32) -> Self {
        self.kicks = kicks;
        self
    }

    /// How rows are stored.
    #[must_use]
    pub const fn encoding(mut self, encoding: RowEncoding) -> Self {
        self.encoding = encoding;
        self
    }

    /// Builds the filter in `memory_bytes`; `seed` seeds its random draws.
    ///
    /// # Errors
    /// [`BuildError`] if a field is out of its range, semi-sorted rows have too many states, the
    /// memory holds no row, or the memory cannot be allocated.
    pub fn build(self, memory_bytes: u64, seed: u64) -> Result<CuckooFilter, BuildError> {
        let slots = within("slots", self.slots, 1..=MOST_SLOTS)?;
        let bits = within("bits", self.bits, 1..=32)?;
        within("kicks", self.kicks, 1..=1000)?;
        let log2 = rows_in(memory_bytes, self.encoding, slots, bits)?.ilog2();
        Ok(CuckooFilter {
            store: RowStore::new(self.encoding, 1 << log2, slots, bits)?,
            spec: self,
            rng: SeededRng::seeded(seed),
        })
    }
}

impl CuckooFilter {
    fn home(&self, key: KeyHash) -> (u64, u32) {
        let fingerprint = Fingerprint::Nonzero {
            bits: self.spec.bits,
        }
        .fingerprint_of(key);
        (KeyHash(key.remix(0)).line(self.store.rows()), fingerprint)
    }

    /// The other row of a fingerprint. Applied twice, it returns the row itself, so a stored
    /// fingerprint can move without its key.
    fn partner(&self, row: u64, fingerprint: u32) -> u64 {
        row ^ KeyHash(KeyHash(u64::from(fingerprint)).remix(0)).line(self.store.rows())
    }

    fn row_holds(&self, row: u64, fingerprint: u32) -> bool {
        let mut buffer = [0; MOST_SLOTS as usize];
        let slots = &mut buffer[..self.spec.slots as usize];
        self.store.read(row, slots);
        slots.contains(&fingerprint)
    }

    /// Writes the fingerprint to an empty slot of the row, or to a random one if the row is full,
    /// and returns the slot's old content; 0 is an empty slot. `None` if only an empty slot was
    /// allowed.
    fn place(&mut self, row: u64, fingerprint: u32, only_if_empty: bool) -> Option<u32> {
        let mut buffer = [0; MOST_SLOTS as usize];
        let slots = &mut buffer[..self.spec.slots as usize];
        self.store.read(row, slots);
        let slot = match slots.iter().position(|slot| *slot == 0) {
            Some(empty) => empty,
            None if only_if_empty => return None,
            None => self.rng.below(u64::from(self.spec.slots)) as usize,
        };
        let previous = std::mem::replace(&mut slots[slot], fingerprint);
        self.store.write(row, slots);
        Some(previous)
    }

    /// Tests and records one key; true means duplicate.
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
        for _ in 0..self.spec.kicks {
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
}

impl Filter for CuckooFilter {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        observe_each(keys, duplicates, |key| self.observe_key(key));
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

    fn tally(&self) -> Tally {
        tally_of_cells(self.memory_bytes(), self.store.occupied())
    }
}

impl KindSpec for CuckooSpec {
    const NAMES: &'static [&'static str] = &["cuckoo"];
    const POWER_OF_TWO_ROWS: bool = true;

    fn parse(_name: &str, _form: Form, options: &mut Options) -> Result<Self, SpecError> {
        Ok(Self {
            slots: options.integer("slots", 4, 1..=MOST_SLOTS)?,
            bits: options.integer("bits", 8, 1..=32)?,
            kicks: options.integer("kicks", 4, 1..=1000)?,
            encoding: options.choice("rows", &ENCODINGS)?,
        })
    }

    fn name(&self) -> &'static str {
        "cuckoo"
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        vec![
            ("slots", self.slots.to_string()),
            ("bits", self.bits.to_string()),
            ("kicks", self.kicks.to_string()),
            ("rows", name_of(&ENCODINGS, &self.encoding)),
        ]
    }

    fn build_scattered(&self, memory_bytes: u64, seed: u64) -> Result<Box<dyn Filter>, BuildError> {
        Ok(Box::new(self.build(memory_bytes, seed)?))
    }

    fn cache_lines(&self, _memory_bytes: u64) -> f64 {
        2.0 + f64::from(self.kicks)
    }

    fn rate_model(&self, _form: Form, _memory_bytes: u64) -> Option<RateModel> {
        None
    }

    fn fpr_limit(&self, _form: Form, _memory_bytes: u64) -> Option<f64> {
        Some(2.0 * f64::from(self.slots) / nonzero_values(self.bits))
    }

    fn settles(&self) -> bool {
        true
    }

    fn scaled(self, _scale: f64) -> Self {
        self
    }

    fn grid(_workload: &Workload) -> Vec<String> {
        let shapes = [(2, 4), (4, 6), (4, 8), (4, 12), (4, 16)];
        let texts = shapes.map(|(slots, bits)| format!("cuckoo:slots={slots},bits={bits}"));
        texts.to_vec()
    }
}
