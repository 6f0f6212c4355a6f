//! The specification of row filters: QHT, QHTD, QQHT, QQHTD and row-LRU.

use super::fingerprint::{Fingerprint, nonzero_values};
use super::store::{ENCODINGS, MOST_SLOTS, RowEncoding, RowStore, rows_in};
use super::table::RowFilter;
use crate::error::{BuildError, SpecError};
use crate::filters::kind::{KindSpec, unknown_name};
use crate::filters::{Filter, Form, Replacement, Workload};
use crate::limits::within;
use crate::memory::LINE_BYTES;
use crate::options::{Options, name_of};
use crate::theory::RateModel;
use crate::theory::fingerprints::{FingerprintGeometry, SlotWidth};

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
        let store = RowStore::new(self.encoding, rows.get(), slots, fingerprint.bits())?;
        let policy = self.policy;
        Ok(RowFilter::new(store, slots, fingerprint, policy, seed))
    }
}

/// The policies of rows with random victims, by the name of their filter.
const RANDOM: [(&str, RowPolicy); 2] = [
    ("qht", RowPolicy::RandomVictim { again: false }),
    ("qhtd", RowPolicy::RandomVictim { again: true }),
];

/// The widths of slots in the scattered form, and in the line form.
const BITS: &str = "a whole number from 1 to 32, or 64 with form=line";

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
            (None, None) => return Err(unknown_name(name, Self::NAMES)),
        };
        let slots = options.optional_integer("slots", 1..=MOST_SLOTS)?;
        let bits = match form {
            // A form that is set later may be the line form.
            Form::Scattered => options.checked("bits", BITS, |bits| (1..=64).contains(bits))?,
            Form::Line => options.listed("bits", &[8, 16, 32, 64])?,
        };
        let (slots, bits) = match form {
            Form::Scattered => (slots.unwrap_or(1), bits.unwrap_or(3)),
            Form::Line => {
                // A QHTD line counts its arrivals in one slot.
                let counter = u32::from(policy == RowPolicy::RandomVictim { again: true });
                line_shape(slots, bits, counter)
            }
        };
        // The order of a queue, and of the slots of a line, is their order in memory.
        let encodings = match (policy, form) {
            (RowPolicy::RandomVictim { .. }, Form::Scattered) => &ENCODINGS[..],
            _ => &ENCODINGS[..1],
        };
        Ok(Self {
            slots,
            bits,
            policy,
            encoding: options.choice("rows", encodings)?,
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

    fn settles(&self) -> bool {
        true
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

/// The slots and bits of a line, of which neither, one or both are given. A given one decides the
/// other if it divides the line into whole slots, of which `counters` hold no fingerprint.
fn line_shape(slots: Option<u32>, bits: Option<u32>, counters: u32) -> (u32, u32) {
    let widths = SlotWidth::ALL
        .iter()
        .map(|width| (width.slots() - counters, width.bits()));
    let fitting = widths.filter(|(per_line, width)| {
        slots.is_none_or(|slots| slots == *per_line) && bits.is_none_or(|bits| bits == *width)
    });
    let chosen = fitting.min_by_key(|(_, width)| width.abs_diff(16));
    // Numbers that do not fit are rejected when the filter is built, with both in the message.
    let (per_line, width) = chosen.unwrap_or((32 - counters, 16));
    (slots.unwrap_or(per_line), bits.unwrap_or(width))
}
