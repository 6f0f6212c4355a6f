//! The specification of a fingerprint stable Bloom filter, and its operations on one cell.

use crate::error::{BuildError, SpecError};
use crate::filters::kind::KindSpec;
use crate::filters::{Filter, Form, Workload};
use crate::limits::HASHES;
use crate::options::{Options, name_of};
use crate::theory::RateModel;

/// How a key's fingerprint is written to a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refill {
    /// By exclusive or, and never cleared: as published. The FNR tends to 1 as the stream grows,
    /// because old fingerprints stay mixed in.
    Xor,
    /// It replaces the old fingerprint.
    Overwrite,
    /// By exclusive or, and a cell whose counter reaches 0 clears its fingerprint: the smallest
    /// change that repairs the published form.
    Repaired,
}

/// The parameters of a fingerprint stable Bloom filter, except its memory.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct FingerprintStableSpec {
    /// k: the number of a key's cells, one in each of k sub-tables (1 to 64).
    pub hashes: u32,
    /// c: the number of counter bits of a cell (1 to 16); a set counter holds Max = 2^c - 1.
    pub counter_bits: u32,
    /// f: the number of fingerprint bits of a cell (1 to 16).
    pub fingerprint_bits: u32,
    /// xi: the probability that a fresh key decrements k random cells (0 to 1).
    pub eviction: f64,
    /// How fingerprints are written to cells.
    pub refill: Refill,
}

impl FingerprintStableSpec {
    /// k cells for each key, of counters of c and fingerprints of f bits; xi is 0.5, and the
    /// fingerprints enter as published.
    #[must_use]
    pub const fn new(hashes: u32, counter_bits: u32, fingerprint_bits: u32) -> Self {
        Self {
            hashes,
            counter_bits,
            fingerprint_bits,
            eviction: 0.5,
            refill: Refill::Xor,
        }
    }

    /// xi: the probability that a fresh key decrements k random cells.
    #[must_use]
    pub const fn eviction(mut self, probability: f64) -> Self {
        self.eviction = probability;
        self
    }

    /// How fingerprints enter cells.
    #[must_use]
    pub const fn refill(mut self, refill: Refill) -> Self {
        self.refill = refill;
        self
    }
}

/// The operations on one cell, the counter in its low bits and the fingerprint above it. The line
/// form uses them too.
impl FingerprintStableSpec {
    #[inline(always)]
    pub(crate) const fn counter_max(self) -> u32 {
        (1 << self.counter_bits) - 1
    }

    /// Whether the cell holds this fingerprint with a nonzero counter.
    #[inline(always)]
    pub(crate) const fn cell_holds(self, cell: u32, fingerprint: u32) -> bool {
        cell & self.counter_max() != 0 && cell >> self.counter_bits == fingerprint
    }

    /// The cell after its counter was decremented by `amount`, to 0 at least.
    #[inline(always)]
    pub(crate) fn cell_decremented(self, cell: u32, amount: u32) -> u32 {
        let max = self.counter_max();
        let counter = (cell & max).saturating_sub(amount);
        if counter == 0 && self.refill == Refill::Repaired {
            0
        } else {
            cell & !max | counter
        }
    }

    /// The cell after a key with this fingerprint was inserted.
    #[inline(always)]
    pub(crate) const fn cell_filled(self, cell: u32, fingerprint: u32) -> u32 {
        let own = fingerprint << self.counter_bits;
        let mixed = match self.refill {
            Refill::Xor | Refill::Repaired => (cell & !self.counter_max()) ^ own,
            Refill::Overwrite => own,
        };
        mixed | self.counter_max()
    }
}

const REFILLS: [(&str, Refill); 3] = [
    ("xor", Refill::Xor),
    ("overwrite", Refill::Overwrite),
    ("repaired", Refill::Repaired),
];

impl KindSpec for FingerprintStableSpec {
    const NAMES: &'static [&'static str] = &["fpsbf"];

    fn parse(_name: &str, form: Form, options: &mut Options) -> Result<Self, SpecError> {
        // With the counter's 2 bits a byte in lines, where cells have 8 or 16 bits.
        let fingerprint_bits = match form {
            Form::Scattered => 4,
            Form::Line => 6,
        };
        Ok(Self {
            hashes: options.integer("k", 2, HASHES)?,
            counter_bits: options.integer("c", 2, 1..=16)?,
            fingerprint_bits: options.integer("f", fingerprint_bits, 1..=16)?,
            eviction: options.decimal("xi", 0.5, 0.0..=1.0)?,
            refill: options.choice("refill", &REFILLS)?,
        })
    }

    fn name(&self) -> &'static str {
        "fpsbf"
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        vec![
            ("k", self.hashes.to_string()),
            ("c", self.counter_bits.to_string()),
            ("f", self.fingerprint_bits.to_string()),
            ("xi", self.eviction.to_string()),
            ("refill", name_of(&REFILLS, &self.refill)),
        ]
    }

    fn build_scattered(&self, memory_bytes: u64, seed: u64) -> Result<Box<dyn Filter>, BuildError> {
        Ok(Box::new(self.build(memory_bytes, seed)?))
    }

    fn cache_lines(&self, _memory_bytes: u64) -> f64 {
        f64::from(self.hashes) * (1.0 + self.eviction)
    }

    fn rate_model(&self, _form: Form, _memory_bytes: u64) -> Option<RateModel> {
        None
    }

    fn fpr_limit(&self, _form: Form, _memory_bytes: u64) -> Option<f64> {
        None
    }

    fn settles(&self) -> bool {
        match self.refill {
            Refill::Xor => false,
            Refill::Overwrite | Refill::Repaired => true,
        }
    }

    fn scaled(self, _scale: f64) -> Self {
        self
    }

    fn grid(_workload: &Workload) -> Vec<String> {
        let mut texts = Vec::new();
        for (k, c, f) in [(1, 1, 7), (1, 2, 6), (2, 1, 3), (2, 2, 6), (1, 2, 14)] {
            for refill in ["xor", "overwrite", "repaired"] {
                texts.push(format!("fpsbf:k={k},c={c},f={f},refill={refill}"));
            }
        }
        texts
    }
}
