//! The stable Bloom filter (paper 004): counters that random draws decrement as fast as keys raise
//! them.

use super::stable_spec::{Decrement, StableSpec, Update};
use crate::error::{BuildError, SpecError};
use crate::filters::Filter;
use crate::filters::filter::{observe_each, tally_of_cells};
use crate::filters::scattered::random::SeededRng;
use crate::filters::scattered::storage::PackedCells;
use crate::hash::KeyHash;
use crate::limits::{MOST_HASHES, at_least_bits, within};
use crate::report::Tally;

/// SBF: a key is a duplicate if and only if its K cells are all nonzero. Then P cells are
/// decremented by 1 and the K cells are set to Max (paper 004, algorithm 1).
///
/// Cache lines touched per key: K to probe and set. Consecutive decrements touch one more
/// (sometimes two), independent ones P more.
///
/// # Examples
/// ```
/// use echoless::{Filter, KeyHasher, Verdict};
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// use echoless::spec::{DecrementCount, StableSpec};
/// let spec = StableSpec::new(2, 1, DecrementCount::FprAtMost(0.1));
/// let mut filter = spec.build(1 << 20, 7)?;
/// assert_eq!(filter.decrements(), 5);
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// assert_eq!(filter.observe_one(key), Verdict::Duplicate);
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
    /// not 1 to the number of cells, decrementing all cells does not reach the FPR bound, or the
    /// memory cannot be allocated.
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
        let decrements = self
            .decrement_count
            .decrements(hashes, (1 << width) - 1, len)?;
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
    /// P: the number of cells decremented for each update.
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

    /// Tests and records one key; true means duplicate.
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let seen = self.contains(key);
        if self.update == Update::Every || !seen {
            self.decrement_some();
            let max = self.cells.max();
            for hash in 0..self.hashes {
                self.cells.set(self.cells.position(key, hash), max);
            }
        }
        seen
    }
}

impl Filter for StableBloom {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        observe_each(keys, duplicates, |key| self.observe_key(key));
    }

    #[inline(always)]
    fn contains(&self, key: KeyHash) -> bool {
        (0..self.hashes).all(|hash| self.cells.get(self.cells.position(key, hash)) != 0)
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.rng.restart();
    }

    fn memory_bytes(&self) -> u64 {
        self.cells.bytes()
    }

    fn tally(&self) -> Tally {
        tally_of_cells(self.memory_bytes(), self.cells.occupied())
    }
}
