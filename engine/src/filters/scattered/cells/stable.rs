//! The stable Bloom filter (paper 004): counters that random decrements lower as fast as keys raise
//! them.

use crate::error::{BuildError, SpecError};
use crate::filters::scattered::checks::{MOST_HASHES, at_least_bits, open_unit, within};
use crate::filters::scattered::key_by_key::KeyByKey;
use crate::filters::scattered::random::SeededRng;
use crate::filters::scattered::storage::PackedCells;
use crate::hash::KeyHash;
use crate::theory::stable::{decrements_for, stable_point_fpr};

/// Which arrivals lower and raise cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Update {
    /// Every arrival: what the theorems assume and the printed tables show.
    Every,
    /// Only arrivals reported as fresh: the other reading of algorithm 1.
    Distinct,
}

/// Which P cells are lowered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decrement {
    /// One random cell and the P - 1 after it, wrapping (section 5.2).
    Consecutive,
    /// P random cells (definition 1).
    Independent,
}

/// The number of cells lowered for each arrival.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Lowering {
    /// P itself.
    Cells(u64),
    /// The smallest P that keeps the FPR at or below this bound, so rounded up; the papers round
    /// down, which exceeds the bound.
    FprAtMost(f64),
}

impl Lowering {
    /// P for K = `hashes` cells a key in a filter of `cells` cells that hold up to Max.
    ///
    /// # Errors
    /// [`SpecError`] if P is not 1 to the number of cells, or no such P keeps the bound.
    ///
    /// # Examples
    /// ```
    /// use echoless::filters::scattered::cells::Lowering;
    /// assert_eq!(Lowering::FprAtMost(0.1).decrements(2, 1, 1 << 20)?, 5);
    /// assert!(Lowering::FprAtMost(1e-9).decrements(2, 1, 504).is_err());
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
                        bound.to_string(),
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
pub struct StableSpec {
    /// K: the number of a key's cells (1 to 64).
    pub hashes: u32,
    /// d: the number of bits of a cell (1 to 16); a set cell holds Max = 2^d - 1.
    pub cell_bits: u32,
    /// P, or the FPR bound that it is derived from.
    pub lowering: Lowering,
    /// Which arrivals update.
    pub update: Update,
    /// Which P cells are lowered.
    pub decrement: Decrement,
    /// The fraction of the cells, from the first on, that random draws reach (at least one cell, at
    /// most 1). It is 1 except to reproduce generators too short for the memory, such as the 31-bit
    /// generator behind the printed runs at 2^32 cells, whose reach is 0.5.
    pub reach: f64,
}

/// SBF: a key is a duplicate if and only if its K cells are all nonzero. Then P cells are lowered
/// by 1 and the K cells are set to Max (paper 004, algorithm 1).
///
/// Cache lines touched per key: K to probe and set. Consecutive decrements touch one more
/// (sometimes two), independent ones P more.
///
/// # Examples
/// ```
/// use echoless::{Filter, KeyHash, Verdict};
/// use echoless::filters::scattered::cells::{Decrement, Lowering, StableSpec, Update};
/// let spec = StableSpec {
///     hashes: 2,
///     cell_bits: 1,
///     lowering: Lowering::FprAtMost(0.1),
///     update: Update::Every,
///     decrement: Decrement::Consecutive,
///     reach: 1.0,
/// };
/// let mut filter = spec.build(1 << 20, 7)?;
/// assert_eq!(filter.decrements(), 5);
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Fresh);
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Duplicate);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct StableBloom {
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
    /// Builds the filter in `memory_bytes`; `seed` seeds its random draws.
    ///
    /// # Errors
    /// [`BuildError`] if a field is out of its range, the memory holds fewer than K + 1 cells, P is
    /// not 1 to the number of cells, lowering all cells does not reach the FPR bound, or the
    /// machine refuses the memory.
    pub fn build(self, memory_bytes: u64, seed: u64) -> Result<StableBloom, BuildError> {
        let hashes = within("k", self.hashes, 1..=MOST_HASHES)?;
        let width = within("d", self.cell_bits, 1..=16)?;
        let least = (u128::from(hashes) + 1) * u128::from(width);
        let len = at_least_bits(memory_bytes, least, "k + 1 cells")? / u64::from(width);
        // From 2^53 cells on the product may round up to a cell too many.
        let reach = ((len as f64 * self.reach) as u64).min(len);
        if !(self.reach <= 1.0 && reach >= 1) {
            let allowed = format!("1/{len} to 1 in {len} cells");
            return Err(SpecError::new("reach", self.reach.to_string(), allowed).into());
        }
        let decrements = self.lowering.decrements(hashes, (1 << width) - 1, len)?;
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
}

impl StableBloom {
    /// P: the number of cells lowered for each update.
    #[must_use]
    pub const fn decrements(&self) -> u64 {
        self.decrements
    }

    /// The fraction of cells that are zero, which converges to the stable point of the paper.
    #[must_use]
    pub fn zeros(&self) -> f64 {
        let zeros = self.cells.iter().filter(|cell| *cell == 0).count();
        zeros as f64 / self.cells.len() as f64
    }

    #[inline(always)]
    fn position(&self, key: KeyHash, hash: u32) -> u64 {
        KeyHash(key.remix(u64::from(hash))).line(self.cells.len())
    }

    #[inline(always)]
    fn lower(&mut self, cell: u64) {
        let value = self.cells.get(cell);
        self.cells.set(cell, value.saturating_sub(1));
    }

    #[inline(always)]
    fn lower_some(&mut self) {
        match self.decrement {
            Decrement::Consecutive => {
                let mut cell = self.rng.below(self.reach);
                for _ in 0..self.decrements {
                    self.lower(cell);
                    cell += 1;
                    if cell == self.cells.len() {
                        cell = 0;
                    }
                }
            }
            Decrement::Independent => {
                for _ in 0..self.decrements {
                    let cell = self.rng.below(self.reach);
                    self.lower(cell);
                }
            }
        }
    }
}

impl KeyByKey for StableBloom {
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let seen = self.holds(key);
        if self.update == Update::Every || !seen {
            self.lower_some();
            let max = self.cells.max();
            for hash in 0..self.hashes {
                self.cells.set(self.position(key, hash), max);
            }
        }
        seen
    }

    #[inline(always)]
    fn holds(&self, key: KeyHash) -> bool {
        (0..self.hashes).all(|hash| self.cells.get(self.position(key, hash)) != 0)
    }

    fn forget(&mut self) {
        self.cells.clear();
        self.rng.restart();
    }

    fn state_bytes(&self) -> u64 {
        self.cells.bytes()
    }

    fn taken(&self) -> f64 {
        self.cells.taken()
    }
}
