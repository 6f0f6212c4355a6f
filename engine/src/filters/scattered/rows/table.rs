//! The row filter: one mechanism for SQF, QHT, QHTD, QQHT, QQHTD and row-LRU, packed or
//! semi-sorted.

use super::fingerprint::Fingerprint;
use super::store::RowEncoding;
use super::store::{RowStore, rows_in};
use crate::error::{BuildError, SpecError};
use crate::filters::filter::{observe_each, tally_of_cells};
use crate::filters::kind::KindSpec;
use crate::filters::scattered::random::SeededRng;
use crate::filters::{Filter, Form, Replacement, Workload};
use crate::hash::KeyHash;
use crate::limits::within;
use crate::memory::LINE_BYTES;
use crate::options::{Options, name_of};
use crate::report::Tally;
use crate::theory::RateModel;
use crate::theory::fingerprints::{FingerprintGeometry, SlotWidth};

/// The largest number of slots of a row.
pub(crate) const MOST_SLOTS: u32 = 64;

/// Which fingerprint leaves a full row, and what a fingerprint that is found does to its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RowPolicy {
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
#[non_exhaustive]
pub struct RowSpec {
    /// k: the number of slots of a row (1 to 64).
    pub slots: u32,
    /// b: the bits of a fingerprint, which is never zero (1 to 32; 64 in lines).
    pub bits: u32,
    /// Which fingerprint leaves a full row.
    pub policy: RowPolicy,
    /// How rows are stored.
    pub encoding: RowEncoding,
}

/// The specification of a streaming quotient filter (Dutta 2013), memory aside.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct SqfSpec {
    /// k: the slots of a row (1 to 64).
    pub slots: u32,
    /// r: the bits of the remainder (1 to 27).
    pub remainder: u32,
    /// r': the low bits of it that are kept (1 to r).
    pub kept: u32,
    /// How rows are stored.
    pub encoding: RowEncoding,
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
/// the row crosses a line.
///
/// # Examples
/// ```
/// use echoless::spec::{RowPolicy, RowSpec};
/// use echoless::{Filter, KeyHash, Replacement, Verdict};
/// let qqht = RowSpec::new(4, 12, RowPolicy::Queue(Replacement::Fifo));
/// let mut filter = qqht.build(1 << 16, 7)?;
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Fresh);
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Duplicate);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RowFilter {
    store: RowStore,
    slots: u32,
    fingerprint: Fingerprint,
    policy: RowPolicy,
    rng: SeededRng,
}

impl RowSpec {
    /// Rows of `slots` fingerprints of `bits` bits, packed.
    #[must_use]
    pub const fn new(slots: u32, bits: u32, policy: RowPolicy) -> Self {
        Self {
            slots,
            bits,
            policy,
            encoding: RowEncoding::Packed,
        }
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
    /// [`BuildError`] if a field is out of its range, semi-sorted rows are to keep an order or have
    /// too many states, the memory holds no row, or the memory cannot be allocated.
    pub fn build(self, memory_bytes: u64, seed: u64) -> Result<RowFilter, BuildError> {
        let slots = within("slots", self.slots, 1..=MOST_SLOTS)?;
        let fingerprint = Fingerprint::Nonzero { bits: self.bits }.check()?;
        if self.encoding == RowEncoding::Sorted && matches!(self.policy, RowPolicy::Queue(_)) {
            let allowed = "packed (semi-sorting loses the order that queues need)";
            return Err(SpecError::new("rows", "sorted", allowed).into());
        }
        let rows = rows_in(memory_bytes, self.encoding, slots, fingerprint.bits())?;
        Ok(RowFilter {
            store: RowStore::new(self.encoding, rows.get(), slots, fingerprint.bits())?,
            slots,
            fingerprint,
            policy: self.policy,
            rng: SeededRng::seeded(seed),
        })
    }
}

impl SqfSpec {
    /// Rows of `slots` fingerprints that count the bits of an r-bit remainder and keep r' of them,
    /// packed.
    #[must_use]
    pub const fn new(slots: u32, remainder: u32, kept: u32) -> Self {
        Self {
            slots,
            remainder,
            kept,
            encoding: RowEncoding::Packed,
        }
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
    pub fn build(self, memory_bytes: u64, seed: u64) -> Result<RowFilter, BuildError> {
        let slots = within("slots", self.slots, 1..=MOST_SLOTS)?;
        let fingerprint = Fingerprint::Counted {
            remainder: self.remainder,
            kept: self.kept,
        }
        .check()?;
        let rows = rows_in(memory_bytes, self.encoding, slots, fingerprint.bits())?;
        // The row is the high bits of a hash, so their number is a power of two.
        let rows = 1 << rows.ilog2();
        Ok(RowFilter {
            store: RowStore::new(self.encoding, rows, slots, fingerprint.bits())?,
            slots,
            fingerprint,
            policy: RowPolicy::RandomVictim { again: false },
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

impl RowFilter {
    /// Tests and records one key; true means duplicate.
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let row = self.row_of(key);
        let fingerprint = self.fingerprint.fingerprint_of(key);
        let mut buffer = [0; MOST_SLOTS as usize];
        let slots = &mut buffer[..self.slots as usize];
        self.store.read(row, slots);
        let found = slots.iter().position(|slot| *slot == fingerprint);
        match self.policy {
            RowPolicy::RandomVictim { again: false } if found.is_some() => return true,
            RowPolicy::RandomVictim { .. } => {
                let empty = slots.iter().position(|slot| *slot == 0);
                let slot = empty.unwrap_or_else(|| self.rng.below(u64::from(self.slots)) as usize);
                slots[slot] = fingerprint;
            }
            RowPolicy::Queue(replacement) => {
                let found = found.map_or(0, |slot| 1 << slot);
                let moved = replacement.moved(found, self.slots).trailing_ones();
                let moved = &mut slots[..moved.min(self.slots) as usize];
                if let Some(last) = moved.len().checked_sub(1) {
                    moved.copy_within(..last, 1);
                    moved[0] = fingerprint;
                }
            }
        }
        self.store.write(row, slots);
        found.is_some()
    }
}

impl Filter for RowFilter {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        observe_each(keys, duplicates, |key| self.observe_key(key));
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
}

pub(super) const ENCODINGS: [(&str, RowEncoding); 2] = [
    ("packed", RowEncoding::Packed),
    ("sorted", RowEncoding::Sorted),
];

/// The policies of rows with random victims, by the name of their filter.
const RANDOM: [(&str, RowPolicy); 2] = [
    ("qht", RowPolicy::RandomVictim { again: false }),
    ("qhtd", RowPolicy::RandomVictim { again: true }),
];

impl KindSpec for RowSpec {
    const NAMES: &'static [&'static str] = &{
        let mut names = [""; RANDOM.len() + Replacement::ALL.len()];
        let mut index = 0;
        while index < names.len() {
            names[index] = if index < RANDOM.len() {
                RANDOM[index].0
            } else {
                Replacement::ALL[index - RANDOM.len()].filter_name()
            };
            index += 1;
        }
        names
    };

    fn parse(name: &str, form: Form, options: &mut Options) -> Result<Self, SpecError> {
        let random = RANDOM.iter().find(|(random, _)| *random == name);
        let mut queues = Replacement::ALL.iter();
        let queue = queues.find(|policy| policy.filter_name() == name);
        let policy = match (random, queue) {
            (Some((_, policy)), _) => *policy,
            (None, Some(policy)) => RowPolicy::Queue(*policy),
            (None, None) => RANDOM[0].1,
        };
        let (slots, bits, most_bits) = match form {
            Form::Scattered => (1, 3, 32),
            // A QHTD line counts its arrivals in one slot.
            Form::Line if policy == (RowPolicy::RandomVictim { again: true }) => (31, 16, 64),
            Form::Line => (32, 16, 64),
        };
        Ok(Self {
            slots: options.integer("slots", slots, 1..=MOST_SLOTS)?,
            bits: options.integer("bits", bits, 1..=most_bits)?,
            policy,
            encoding: options.choice("rows", &ENCODINGS)?,
        })
    }

    fn name(&self) -> &'static str {
        match self.policy {
            RowPolicy::RandomVictim { again } => RANDOM[usize::from(again)].0,
            RowPolicy::Queue(replacement) => replacement.filter_name(),
        }
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        vec![
            ("slots", self.slots.to_string()),
            ("bits", self.bits.to_string()),
            ("rows", name_of(&ENCODINGS, &self.encoding)),
        ]
    }

    fn build_scattered(&self, memory_bytes: u64, seed: u64) -> Result<Box<dyn Filter>, BuildError> {
        Ok(Box::new(self.build(memory_bytes, seed)?))
    }

    fn cache_lines(&self, _memory_bytes: u64) -> f64 {
        // Rows that cross a line touch two; most do not.
        1.0
    }

    fn rate_model(&self, _form: Form, _memory_bytes: u64) -> Option<RateModel> {
        None
    }

    fn fpr_limit(&self, form: Form, memory_bytes: u64) -> Option<f64> {
        match form {
            Form::Scattered => Some(f64::from(self.slots) / nonzero_values(self.bits)),
            Form::Line => {
                let width = SlotWidth::from_bits(self.bits).ok()?;
                Some(FingerprintGeometry::new(memory_bytes / LINE_BYTES, width).full_fpr())
            }
        }
    }

    fn scaled(self, _scale: f64) -> Self {
        self
    }

    fn grid(_workload: &Workload) -> Vec<String> {
        let shapes = [
            (1, 3),
            (1, 8),
            (4, 4),
            (4, 8),
            (8, 8),
            (16, 8),
            (8, 12),
            (16, 16),
            (64, 8),
            (32, 16),
            (16, 32),
        ];
        // Slots of 64 bits are for lines only. A QHTD line counts its arrivals in one slot.
        let (widest, counting) = ([(8, 64)], [(63, 8), (31, 16), (15, 32), (7, 64)]);
        let mut texts = Vec::new();
        for name in Self::NAMES {
            let lines = if *name == "qhtd" {
                &counting[..]
            } else {
                &widest
            };
            for (slots, bits) in shapes.iter().chain(lines) {
                texts.push(format!("{name}:slots={slots},bits={bits}"));
            }
        }
        texts
    }
}

impl KindSpec for SqfSpec {
    const NAMES: &'static [&'static str] = &["sqf"];

    fn parse(_name: &str, _form: Form, options: &mut Options) -> Result<Self, SpecError> {
        Ok(Self {
            slots: options.integer("slots", 1, 1..=MOST_SLOTS)?,
            remainder: options.integer("r", 2, 1..=27)?,
            kept: options.integer("kept", 1, 1..=27)?,
            encoding: options.choice("rows", &ENCODINGS)?,
        })
    }

    fn name(&self) -> &'static str {
        "sqf"
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        vec![
            ("slots", self.slots.to_string()),
            ("r", self.remainder.to_string()),
            ("kept", self.kept.to_string()),
            ("rows", name_of(&ENCODINGS, &self.encoding)),
        ]
    }

    fn build_scattered(&self, memory_bytes: u64, seed: u64) -> Result<Box<dyn Filter>, BuildError> {
        Ok(Box::new(self.build(memory_bytes, seed)?))
    }

    fn cache_lines(&self, _memory_bytes: u64) -> f64 {
        1.0
    }

    fn rate_model(&self, _form: Form, _memory_bytes: u64) -> Option<RateModel> {
        None
    }

    fn fpr_limit(&self, _form: Form, _memory_bytes: u64) -> Option<f64> {
        // Its fingerprints are not equally likely.
        None
    }

    fn scaled(self, _scale: f64) -> Self {
        self
    }

    fn grid(_workload: &Workload) -> Vec<String> {
        let shapes = [(1, 2, 1), (4, 5, 3), (8, 8, 4)];
        let texts = shapes.map(|(slots, r, kept)| format!("sqf:slots={slots},r={r},kept={kept}"));
        texts.to_vec()
    }
}

/// The values of a fingerprint of `bits` bits that is never zero.
pub(super) fn nonzero_values(bits: u32) -> f64 {
    2_f64.powi(bits as i32) - 1.0
}
