//! The specification of a stable Bloom filter.

use crate::error::{BuildError, SpecError};
use crate::filters::kind::KindSpec;
use crate::filters::{Filter, Form, Workload};
use crate::limits::{HASHES, open_unit, rate_text, within};
use crate::options::{Options, name_of};
use crate::theory::RateModel;
use crate::theory::stable::{decrements_for, stable_point_fpr};

/// Which arrivals decrement and raise cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Update {
    /// Every arrival: what the theorems assume and the printed tables show.
    Every,
    /// Only arrivals reported as fresh: the other reading of algorithm 1.
    Distinct,
}

/// Which P cells are decremented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decrement {
    /// One random cell and the P - 1 after it, wrapping (section 5.2).
    Consecutive,
    /// P random cells (definition 1).
    Independent,
}

/// The number of cells decremented for each arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum DecrementCount {
    /// P itself.
    Cells(u64),
    /// The smallest P that keeps the FPR at or below this bound, so rounded up; the papers round
    /// down, which exceeds the bound.
    FprAtMost(f64),
}

impl DecrementCount {
    /// P for K = `hashes` cells a key in a filter of `cells` cells that hold up to Max.
    ///
    /// # Errors
    /// [`SpecError`] if P is not 1 to the number of cells, or no such P keeps the bound.
    ///
    /// # Examples
    /// ```
    /// use echoless::filters::scattered::cells::DecrementCount;
    /// assert_eq!(DecrementCount::FprAtMost(0.1).decrements(2, 1, 1 << 20)?, 5);
    /// assert!(DecrementCount::FprAtMost(1e-9).decrements(2, 1, 504).is_err());
    /// # Ok::<(), echoless::SpecError>(())
    /// ```
    pub fn decrements(self, hashes: u32, max: u32, cells: u64) -> Result<u64, SpecError> {
        match self {
            Self::Cells(asked) => within("p", asked, 1..=cells),
            Self::FprAtMost(bound) => {
                let exact = decrements_for(open_unit("fps", bound)?, max, hashes, cells).ceil();
                if exact > cells as f64 {
                    let least = stable_point_fpr(cells as f64, max, hashes, cells);
                    return Err(SpecError::new(
                        "fps",
                        rate_text(bound),
                        format!("{least:.3e} or more in {cells} cells"),
                    ));
                }
                Ok((exact as u64).max(1))
            }
        }
    }
}

/// The parameters of a stable Bloom filter, except its memory.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct StableSpec {
    /// K: the number of a key's cells (1 to 64).
    pub hashes: u32,
    /// d: the number of bits of a cell (1 to 16); a set cell holds Max = 2^d - 1.
    pub cell_bits: u32,
    /// P, or the FPR bound that it is derived from.
    pub decrement_count: DecrementCount,
    /// Which arrivals update.
    pub update: Update,
    /// Which P cells are decremented.
    pub decrement: Decrement,
    /// The fraction of the cells, from the first on, that random draws reach (at least one cell, at
    /// most 1). It is 1 except to reproduce generators too short for the memory, such as the 31-bit
    /// generator behind the printed runs at 2^32 cells, whose reach is 0.5.
    pub reach: f64,
}

impl StableSpec {
    /// K cells of d bits for each key, of which so many are decremented for each arrival. Every
    /// arrival updates, decrements are consecutive and reach all cells.
    #[must_use]
    pub const fn new(hashes: u32, cell_bits: u32, decrement_count: DecrementCount) -> Self {
        Self {
            hashes,
            cell_bits,
            decrement_count,
            update: Update::Every,
            decrement: Decrement::Consecutive,
            reach: 1.0,
        }
    }

    /// Which arrivals update.
    #[must_use]
    pub const fn update(mut self, update: Update) -> Self {
        self.update = update;
        self
    }

    /// How the cells to decrement are picked.
    #[must_use]
    pub const fn decrement(mut self, decrement: Decrement) -> Self {
        self.decrement = decrement;
        self
    }

    /// The fraction of the cells that decrements reach.
    #[must_use]
    pub const fn reach(mut self, reach: f64) -> Self {
        self.reach = reach;
        self
    }

    /// The number of cells and the largest value of one, if the parameters allow a filter.
    fn cells_and_max(&self, memory_bytes: u64) -> Option<(u64, u32)> {
        let cell_bits = within("d", self.cell_bits, 1..=16).ok()?;
        let bits = memory_bytes.checked_mul(8)?;
        Some((bits / u64::from(cell_bits), (1 << cell_bits) - 1))
    }

    /// P in the scattered form, as specification and memory decide it.
    fn scattered_decrements(&self, memory_bytes: u64) -> Option<u64> {
        let (cells, max) = self.cells_and_max(memory_bytes)?;
        self.decrement_count
            .decrements(self.hashes, max, cells)
            .ok()
    }
}

const UPDATES: [(&str, Update); 2] = [("every", Update::Every), ("distinct", Update::Distinct)];
const DECREMENTS: [(&str, Decrement); 2] = [
    ("consecutive", Decrement::Consecutive),
    ("independent", Decrement::Independent),
];
impl KindSpec for StableSpec {
    const NAMES: &'static [&'static str] = &["sbf"];

    fn parse(_name: &str, _form: Form, options: &mut Options) -> Result<Self, SpecError> {
        Ok(Self {
            hashes: options.integer("k", 2, HASHES)?,
            cell_bits: options.integer("d", 1, 1..=16)?,
            decrement_count: parse_decrement_count(options)?,
            update: options.choice("update", &UPDATES)?,
            decrement: options.choice("decrement", &DECREMENTS)?,
            reach: options.decimal("reach", 1.0, 0.0..=1.0)?,
        })
    }

    fn name(&self) -> &'static str {
        "sbf"
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        vec![
            ("k", self.hashes.to_string()),
            ("d", self.cell_bits.to_string()),
            match self.decrement_count {
                DecrementCount::Cells(cells) => ("p", cells.to_string()),
                DecrementCount::FprAtMost(bound) => ("fps", rate_text(bound)),
            },
            ("update", name_of(&UPDATES, &self.update)),
            ("decrement", name_of(&DECREMENTS, &self.decrement)),
            ("reach", self.reach.to_string()),
        ]
    }

    fn build_scattered(&self, memory_bytes: u64, seed: u64) -> Result<Box<dyn Filter>, BuildError> {
        Ok(Box::new(self.build(memory_bytes, seed)?))
    }

    fn cache_lines(&self, memory_bytes: u64) -> f64 {
        let decremented = match self.decrement {
            Decrement::Consecutive => 1,
            Decrement::Independent => self.scattered_decrements(memory_bytes).unwrap_or(1),
        };
        f64::from(self.hashes) + decremented as f64
    }

    fn rate_model(&self, form: Form, memory_bytes: u64) -> Option<RateModel> {
        let covered = self.update == Update::Every && self.reach == 1.0;
        (form == Form::Scattered && covered).then_some(())?;
        let (cells, max) = self.cells_and_max(memory_bytes)?;
        Some(RateModel::Stable {
            hashes: self.hashes,
            max,
            decrements: self.scattered_decrements(memory_bytes)?,
            cells,
        })
    }

    fn fpr_limit(&self, _form: Form, _memory_bytes: u64) -> Option<f64> {
        None
    }

    fn settles(&self) -> bool {
        // In a nearly full filter, a fresh key fills one cell for certain and sets k - 1 others,
        // which were set, to Max again. A cell becomes zero if it is decremented Max times before
        // it is set again. More cells must become zero than are filled.
        let empties_more = || {
            let bits = within("d", self.cell_bits, 1..=16).unwrap_or(1);
            let (max, cells) = ((1_u32 << bits) - 1, 1 << 40);
            let Ok(decremented) = self.decrement_count.decrements(self.hashes, max, cells) else {
                return true;
            };
            let (set, decremented) = (f64::from(self.hashes), decremented as f64);
            if self.hashes == 1 {
                decremented > f64::from(max)
            } else {
                set * (decremented / (decremented + set - 1.0)).powf(f64::from(max)) > 1.0
            }
        };
        match self.update {
            Update::Every => true,
            Update::Distinct => empties_more(),
        }
    }

    fn scaled(self, _scale: f64) -> Self {
        self
    }

    fn grid(_workload: &Workload) -> Vec<String> {
        let mut texts = Vec::new();
        for (k, d) in [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2), (2, 3), (2, 4)] {
            for fps in [0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4] {
                texts.push(format!("sbf:k={k},d={d},fps={fps}"));
            }
        }
        for k in 1..=3 {
            for fps in [0.01, 0.1, 0.3] {
                texts.push(format!("sbf:k={k},fps={fps},update=distinct"));
            }
        }
        texts
    }
}

/// The accepted values of `p`.
const CELLS: &str = "a whole number from 1 to the number of cells";

fn parse_decrement_count(options: &mut Options) -> Result<DecrementCount, SpecError> {
    let cells = options.checked("p", CELLS, |cells| *cells >= 1)?;
    let bound = options.rate("fps")?;
    match (cells, bound) {
        (Some(_), Some(bound)) => {
            let allowed = "either p or fps, not both";
            Err(SpecError::new("fps", rate_text(bound), allowed))
        }
        (Some(cells), None) => Ok(DecrementCount::Cells(cells)),
        (None, bound) => Ok(DecrementCount::FprAtMost(bound.unwrap_or(0.1))),
    }
}
