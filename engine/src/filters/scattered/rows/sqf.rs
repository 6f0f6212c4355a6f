//! The specification of the streaming quotient filter.

use super::fingerprint::Fingerprint;
use super::spec::RowPolicy;
use super::store::{ENCODINGS, MOST_SLOTS, RowEncoding, RowStore, rows_in};
use super::table::RowFilter;
use crate::error::{BuildError, SpecError};
use crate::filters::kind::KindSpec;
use crate::filters::{Filter, Form, Workload};
use crate::limits::within;
use crate::options::{Options, name_of};
use crate::theory::RateModel;

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
        let store = RowStore::new(self.encoding, rows, slots, fingerprint.bits())?;
        let policy = RowPolicy::RandomVictim { again: false };
        Ok(RowFilter::new(store, slots, fingerprint, policy, seed))
    }
}

impl KindSpec for SqfSpec {
    const NAMES: &'static [&'static str] = &["sqf"];
    const POWER_OF_TWO_ROWS: bool = true;

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

    fn settles(&self) -> bool {
        true
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
