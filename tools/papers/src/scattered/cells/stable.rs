//! The stable Bloom filter (paper 004): counters that random draws decrement as fast as keys raise
//! them.

use crate::limits::at_least_bits;
use crate::lines;
use crate::scattered::mechanism::{Mechanism, filter, row};
use crate::scattered::random::SeededRng;
use crate::scattered::storage::{PackedCells, packed_lines};
use crate::theory::stable::{decrements_for, stable_point_fpr};
use echoless::extend::{
    Allowed, FilterRow, Head, Named, OptionRow, Value, names, rate_text, within,
};
use echoless::spec::{Facts, Form};
use echoless::theory::RateModel;
use echoless::{BuildError, Cells, KeyHash, SpecError};

/// Which arrivals decrement and raise cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Update {
    /// Every arrival: what the theorems assume and the printed tables show.
    Every,
    /// Only arrivals reported as fresh: the other reading of algorithm 1.
    Distinct,
}

/// Which P cells are decremented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decrement {
    /// One random cell and the P - 1 after it, wrapping (section 5.2).
    Consecutive,
    /// P random cells (definition 1).
    Independent,
}

/// The number of cells decremented for each arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum DecrementCount {
    /// P itself.
    Cells(u64),
    /// The smallest P that keeps the FPR at or below this bound, so rounded up; the papers round
    /// down, which exceeds the bound.
    FprAtMost(f64),
}

impl DecrementCount {
    /// P for K = `hashes` cells a key in a filter of `cells` cells that hold up to Max. Fails if P
    /// is not 1 to the number of cells, or no such P keeps the bound.
    pub(crate) fn decrements(self, hashes: u32, max: u32, cells: u64) -> Result<u64, SpecError> {
        match self {
            Self::Cells(asked) => within("p", asked, 1..=cells),
            Self::FprAtMost(bound) => {
                let exact = decrements_for(bound, max, hashes, cells).ceil();
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
pub(crate) struct StableSpec {
    /// K: the number of a key's cells (1 to 64).
    pub(crate) hashes: u32,
    /// d: the number of bits of a cell (1 to 16); a set cell holds Max = 2^d - 1.
    pub(crate) cell_bits: u32,
    /// P, or the FPR bound that it is derived from.
    pub(crate) decrement_count: DecrementCount,
    /// Which arrivals update.
    pub(crate) update: Update,
    /// Which P cells are decremented.
    pub(crate) decrement: Decrement,
    /// The fraction of the cells, from the first on, that random draws reach (at least one cell, at
    /// most 1). It is 1 except to reproduce generators too short for the memory, such as the 31-bit
    /// generator behind the printed runs at 2^32 cells, whose reach is 0.5.
    pub(crate) reach: f64,
}

/// SBF: a key is a duplicate if and only if its K cells are all nonzero. Then P cells are
/// decremented by 1 and the K cells are set to Max (paper 004, algorithm 1).
///
/// Cache lines touched per key: K to probe and set. Consecutive decrements touch those of P cells
/// side by side, 1 + (P - 1) d / 512 in the mean, independent ones P more.
#[derive(Debug, Clone)]
struct StableBloom {
    cells: PackedCells,
    hashes: u32,
    decrements: u64,
    update: Update,
    decrement: Decrement,
    /// The number of cells, from the first on, that random draws reach.
    reach: u64,
    rng: SeededRng,
}

impl StableSpec {
    fn of(named: &Named) -> Self {
        Self {
            hashes: named.small("k"),
            cell_bits: named.small("d"),
            decrement_count: match (named.given("p"), named.decimal("fps")) {
                (Some(cells), _) => DecrementCount::Cells(cells),
                (None, bound) => DecrementCount::FprAtMost(bound.expect("one of two")),
            },
            update: named.choice("update", &UPDATES),
            decrement: named.choice("decrement", &DECREMENTS),
            reach: named.decimal("reach").expect("a default"),
        }
    }

    /// Builds the filter in `memory_bytes`; `seed` seeds its random draws. Fails if the memory
    /// holds fewer than K + 1 cells, P is not 1 to the number of cells, decrementing all cells does
    /// not reach the FPR bound, or the memory cannot be allocated.
    fn build(self, memory_bytes: u64, seed: u64) -> Result<StableBloom, BuildError> {
        let (hashes, width) = (self.hashes, self.cell_bits);
        let least = (u128::from(hashes) + 1) * u128::from(width);
        let len = at_least_bits(memory_bytes, least, "k + 1 cells")? / u64::from(width);
        // From 2^53 cells on the product may round up to a cell too many.
        let reach = ((len as f64 * self.reach) as u64).min(len);
        if reach == 0 {
            let allowed = format!("1/{len} to 1 in {len} cells");
            return Err(SpecError::new("reach", self.reach.to_string(), allowed).into());
        }
        let decrements = self.decrements_in(len)?;
        Ok(StableBloom {
            cells: PackedCells::new(len, width)?,
            hashes,
            decrements,
            update: self.update,
            decrement: self.decrement,
            reach,
            rng: SeededRng::seeded(seed),
        })
    }

    /// Max.
    const fn max(self) -> u32 {
        (1 << self.cell_bits) - 1
    }

    /// P in a filter of `cells` cells.
    fn decrements_in(self, cells: u64) -> Result<u64, SpecError> {
        self.decrement_count
            .decrements(self.hashes, self.max(), cells)
    }

    /// Whether the error rates settle.
    fn settles(self) -> bool {
        if self.update == Update::Every {
            return true;
        }
        // In a nearly full filter, a fresh key fills one cell for certain and sets k - 1 others,
        // which were set, to Max again. A cell becomes zero if it is decremented Max times before
        // it is set again. More cells must become zero than are filled.
        let Ok(decremented) = self.decrements_in(1 << 40) else {
            return true;
        };
        let (set, decremented) = (f64::from(self.hashes), decremented as f64);
        let max = f64::from(self.max());
        if self.hashes == 1 {
            decremented > max
        } else {
            set * (decremented / (decremented + set - 1.0)).powf(max) > 1.0
        }
    }
}

const UPDATES: [(&str, Update); 2] = [("every", Update::Every), ("distinct", Update::Distinct)];
const DECREMENTS: [(&str, Decrement); 2] = [
    ("consecutive", Decrement::Consecutive),
    ("independent", Decrement::Independent),
];

/// The accepted values of `p`.
const CELLS: &str = "a whole number from 1 to the number of cells";

const OPTIONS: &[OptionRow] = &[
    OptionRow::hashes(2),
    OptionRow::whole("d", 1, 16, 1),
    OptionRow::new("p", Allowed::Described(1, u64::MAX, CELLS)),
    OptionRow::new("fps", Allowed::Rate),
    OptionRow::choice("update", &names(&UPDATES)),
    OptionRow::choice("decrement", &names(&DECREMENTS)),
    OptionRow::fraction("reach", 1.0),
];

/// The stable Bloom filter.
pub(crate) static STABLE: [FilterRow; 1] = [FilterRow {
    lines: Some(|named, allocation| lines::stable::build(&StableSpec::of(named), allocation)),
    ..row(
        Head {
            name: "sbf",
            options: |_| OPTIONS,
            complete: |named, _| match (named.given("p"), named.decimal("fps")) {
                (Some(_), Some(bound)) => {
                    let allowed = "either p or fps, not both";
                    Err(SpecError::new("fps", rate_text(bound), allowed))
                }
                (None, None) => {
                    named.set("fps", Value::Decimal(0.1));
                    Ok(())
                }
                _ => Ok(()),
            },
        },
        |named, memory, seed| filter(StableSpec::of(named).build(memory, seed)),
        |named, form, memory| {
            let spec = StableSpec::of(named);
            let width = u64::from(spec.cell_bits);
            let cells = memory.checked_mul(8).map(|bits| bits / width);
            let decrements = cells.and_then(|cells| spec.decrements_in(cells).ok());
            let covered = spec.update == Update::Every && spec.reach == 1.0;
            let covered = covered && form == Form::Scattered;
            let decremented = match (spec.decrement, decrements) {
                (Decrement::Independent, Some(decrements)) => decrements as f64,
                // No more than all cells.
                (Decrement::Consecutive, Some(decrements)) => {
                    packed_lines(decrements * width, width)
                }
                (_, None) => 1.0,
            };
            Facts {
                rate_model: (cells.zip(decrements).filter(|_| covered)).map(
                    |(cells, decrements)| RateModel::Stable {
                        hashes: spec.hashes,
                        max: spec.max(),
                        decrements,
                        cells,
                    },
                ),
                settles: spec.settles(),
                ..Facts::touching(f64::from(spec.hashes) + decremented)
            }
        },
    )
}];

impl StableBloom {
    #[inline(always)]
    fn decrement_cell(&mut self, cell: u64) {
        let value = self.cells.get(cell);
        self.cells.set(cell, value.saturating_sub(1));
    }

    #[inline(always)]
    fn decrement_some(&mut self) {
        match self.decrement {
            Decrement::Consecutive => {
                let mut cell = self.rng.below(self.reach);
                for _ in 0..self.decrements {
                    self.decrement_cell(cell);
                    cell += 1;
                    if cell == self.cells.len() {
                        cell = 0;
                    }
                }
            }
            Decrement::Independent => {
                for _ in 0..self.decrements {
                    let cell = self.rng.below(self.reach);
                    self.decrement_cell(cell);
                }
            }
        }
    }
}

impl Mechanism for StableBloom {
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let seen = self.contains(key);
        if self.update == Update::Every || !seen {
            self.decrement_some();
            self.cells.fill(key, self.hashes, self.cells.max());
        }
        seen
    }

    #[inline(always)]
    fn contains(&self, key: KeyHash) -> bool {
        self.cells.all(key, self.hashes, |cell| cell != 0)
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.rng.restart();
    }

    fn memory_bytes(&self) -> u64 {
        self.cells.bytes()
    }

    fn fill(&self) -> (Cells, Option<f64>) {
        (self.cells.occupied(), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use echoless::spec::Options;

    #[test]
    fn the_rate_model_has_the_decrements_of_the_filter() {
        for text in ["k=2,fps=0.1", "k=3,d=2,fps=0.02", "k=2,p=4"] {
            let row = &STABLE[0];
            let mut options = Options::parse(text).expect("valid");
            let named = Named::parse(&row.head, Form::Scattered, &mut options).expect("valid");
            let filter = StableSpec::of(&named).build(1 << 16, 0).expect("valid");
            match row.facts(&named, Form::Scattered, 1 << 16).rate_model {
                Some(RateModel::Stable { decrements, .. }) => {
                    assert_eq!(decrements, filter.decrements, "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
