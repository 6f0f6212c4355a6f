//! The fingerprint stable Bloom filter: each cell pairs a counter with a fingerprint of the key
//! that set it.

use super::fingerprint_stable_spec::FingerprintStableSpec;
use super::primes::prime_at_most;
use crate::error::BuildError;
use crate::filters::Filter;
use crate::filters::filter::{observe_each, tally_of_cells};
use crate::filters::scattered::random::SeededRng;
use crate::filters::scattered::storage::PackedCells;
use crate::hash::KeyHash;
use crate::limits::{MOST_HASHES, at_least_bits, closed_unit, within};
use crate::report::{Cells, Tally};

/// FP-SBF: a key is a duplicate if and only if its k counters are all nonzero and its k
/// fingerprints are all equal to its own (paper 003, section 4). Positions come from double hashing
/// over k sub-tables of prime size.
///
/// Only a fresh key updates. With probability xi, k random counters are decremented by a random
/// 1..=Max each (they stop at 0, where the paper lets them wrap). Then the key's k counters are set
/// to Max and its fingerprint is written to the k cells.
///
/// Cache lines touched per key: up to k to probe. A fresh key writes those k, and touches k more
/// when it decrements.
///
/// # Examples
/// ```
/// use echoless::{Filter, KeyHasher, Verdict};
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// use echoless::spec::{FingerprintStableSpec, Refill};
/// let spec = FingerprintStableSpec::new(2, 2, 4).refill(Refill::Overwrite);
/// let mut filter = spec.build(1 << 16, 7)?;
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// assert_eq!(filter.observe_one(key), Verdict::Duplicate);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct FingerprintStableBloom {
    /// ```text
    /// cell    | fingerprint: f bits | counter: c bits |    bit 0 at the right
    /// ```
    cells: PackedCells,
    spec: FingerprintStableSpec,
    /// The number of cells of one sub-table, a prime.
    size: u64,
    rng: SeededRng,
}

impl FingerprintStableSpec {
    /// Builds the filter in `memory_bytes`; `seed` seeds its random draws.
    ///
    /// # Errors
    /// [`BuildError`] if a field is out of its range, the memory holds fewer than two cells in each
    /// sub-table, or the memory cannot be allocated.
    pub fn build(self, memory_bytes: u64, seed: u64) -> Result<FingerprintStableBloom, BuildError> {
        let hashes = u64::from(within("k", self.hashes, 1..=MOST_HASHES)?);
        let counter = within("c", self.counter_bits, 1..=16)?;
        let width = counter + within("f", self.fingerprint_bits, 1..=16)?;
        closed_unit("xi", self.eviction)?;
        let least = u128::from(2 * hashes) * u128::from(width);
        let cells =
            at_least_bits(memory_bytes, least, "two cells in each sub-table")? / u64::from(width);
        let size = prime_at_most(cells / hashes);
        Ok(FingerprintStableBloom {
            cells: PackedCells::new(size * hashes, width)?,
            spec: self,
            size,
            rng: SeededRng::seeded(seed),
        })
    }
}

impl FingerprintStableBloom {
    /// The cell of the key in sub-table `table`: (start + table * step) modulo a prime, start and
    /// step being two hashes of the key.
    #[inline(always)]
    fn position(&self, key: KeyHash, table: u32) -> u64 {
        let start = u128::from(key.remix(0));
        let step = u128::from(key.remix(1));
        let within = (start + u128::from(table) * step) % u128::from(self.size);
        u64::from(table) * self.size + within as u64
    }

    #[inline(always)]
    fn fingerprint(&self, key: KeyHash) -> u32 {
        (key.remix(2) >> (64 - self.spec.fingerprint_bits)) as u32
    }

    fn evict(&mut self) {
        let max = self.spec.counter_max();
        for _ in 0..self.spec.hashes {
            let cell = self.rng.below(self.cells.len());
            let amount = 1 + self.rng.below(u64::from(max)) as u32;
            let decremented = self.spec.cell_decremented(self.cells.get(cell), amount);
            self.cells.set(cell, decremented);
        }
    }

    /// Tests and records one key; true means duplicate.
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        if self.contains(key) {
            return true;
        }
        if self.rng.chance(self.spec.eviction) {
            self.evict();
        }
        let fingerprint = self.fingerprint(key);
        for table in 0..self.spec.hashes {
            let cell = self.position(key, table);
            let filled = self.spec.cell_filled(self.cells.get(cell), fingerprint);
            self.cells.set(cell, filled);
        }
        false
    }
}

impl Filter for FingerprintStableBloom {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        observe_each(keys, duplicates, |key| self.observe_key(key));
    }

    #[inline(always)]
    fn contains(&self, key: KeyHash) -> bool {
        let fingerprint = self.fingerprint(key);
        (0..self.spec.hashes).all(|table| {
            let cell = self.cells.get(self.position(key, table));
            self.spec.cell_holds(cell, fingerprint)
        })
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.rng.restart();
    }

    fn memory_bytes(&self) -> u64 {
        self.cells.bytes()
    }

    fn tally(&self) -> Tally {
        // A cell whose counter is 0 may keep its fingerprint, but it is empty.
        let max = self.spec.counter_max();
        let occupied = self.cells.iter().filter(|cell| cell & max != 0);
        let cells = Cells::new(occupied.count() as u64, self.cells.len());
        tally_of_cells(self.memory_bytes(), cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::scattered::cells::Refill;

    #[test]
    fn the_fill_is_the_fraction_of_nonzero_counters() {
        for refill in [Refill::Xor, Refill::Overwrite, Refill::Repaired] {
            let spec = FingerprintStableSpec::new(2, 1, 4)
                .eviction(1.0)
                .refill(refill);
            let mut filter = spec.build(1000, 3).expect("valid");
            for key in 0..20_000_u64 {
                filter.observe_key(KeyHash(KeyHash(key).remix(5)));
            }
            let counters = filter.cells.iter().filter(|cell| cell & 1 == 1).count();
            let expected = counters as f64 / filter.cells.len() as f64;
            assert_eq!(filter.report().fill(), Some(expected), "{refill:?}");
            // As many cells are set as decremented, which balances at a fill of 2/3; false
            // positives set none and keep it lower.
            assert!((0.5..0.75).contains(&expected), "{refill:?}: {expected}");
        }
    }
}
