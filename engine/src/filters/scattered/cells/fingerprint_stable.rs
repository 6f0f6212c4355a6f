//! The fingerprint stable Bloom filter: each cell pairs a counter with a fingerprint of the key that raised it.

use crate::error::{BuildError, SpecError};
use crate::filters::scattered::checks::{MOST_HASHES, at_least_bits, within};
use crate::filters::scattered::key_by_key::KeyByKey;
use crate::filters::scattered::random::SeededRng;
use crate::filters::scattered::storage::PackedCells;
use crate::hash::KeyHash;

/// How a key's fingerprint enters a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refill {
    /// By exclusive or, and it is never cleared: as written. The FNR tends to 1 as the stream grows, for old fingerprints stay mixed in.
    Xor,
    /// It replaces what was there.
    Overwrite,
    /// By exclusive or, and a cell whose counter reaches 0 forgets its fingerprint: the least change that repairs the paper's form.
    Repaired,
}

/// What a fingerprint stable Bloom filter is made of, its memory aside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FingerprintStableSpec {
    /// k: the cells of a key, one in each of as many sub-tables (1 to 64).
    pub hashes: u32,
    /// c: the counter bits of a cell (1 to 16); a set counter holds Max = 2^c - 1.
    pub counter_bits: u32,
    /// f: the fingerprint bits of a cell (1 to 16).
    pub fingerprint_bits: u32,
    /// xi: the probability that a fresh key lowers k random cells (0 to 1).
    pub eviction: f64,
    /// How fingerprints enter cells.
    pub refill: Refill,
}

/// FP-SBF: a key is a duplicate if and only if its k counters are all nonzero and its k fingerprints are all equal to its own
/// (paper 003, section 4). Positions by double hashing over k sub-tables of prime size.
///
/// Only a fresh key updates: with probability xi, k random cells mark_lost a random 1..=Max (stopping at 0, where the paper lets them wrap); then
/// the k counters are set to Max and the fingerprint enters the k cells.
///
/// Cache lines touched per key: up to k to test; a fresh key sets those k, and touches k more when it evicts.
///
/// # Examples
/// ```
/// use echoless::{Filter, KeyHash, Verdict};
/// use echoless::filters::scattered::cells::{FingerprintStableSpec, Refill};
/// let spec = FingerprintStableSpec {
///     hashes: 2,
///     counter_bits: 2,
///     fingerprint_bits: 4,
///     eviction: 0.5,
///     refill: Refill::Overwrite,
/// };
/// let mut filter = spec.build(1 << 16, 7)?;
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Fresh);
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Duplicate);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct FingerprintStableBloom {
    /// Each cell: the counter in the low bits, the fingerprint above it.
    cells: PackedCells,
    spec: FingerprintStableSpec,
    /// The cells of one sub-table, a prime.
    size: u64,
    rng: SeededRng,
}

/// What happens to one cell, the counter in its low bits and the fingerprint above it: the same all over the memory and in a line.
impl FingerprintStableSpec {
    #[inline(always)]
    pub(crate) const fn counter_max(self) -> u32 {
        (1 << self.counter_bits) - 1
    }

    /// Whether the cell speaks for a key of this fingerprint.
    #[inline(always)]
    pub(crate) const fn cell_holds(self, cell: u32, fingerprint: u32) -> bool {
        cell & self.counter_max() != 0 && cell >> self.counter_bits == fingerprint
    }

    /// The cell after it lost so much of its counter.
    #[inline(always)]
    pub(crate) fn cell_lowered(self, cell: u32, loss: u32) -> u32 {
        let max = self.counter_max();
        let counter = (cell & max).saturating_sub(loss);
        if counter == 0 && self.refill == Refill::Repaired {
            0
        } else {
            cell & !max | counter
        }
    }

    /// The cell after a key of this fingerprint was put in.
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

impl FingerprintStableSpec {
    /// Builds the filter in `memory_bytes`, its random choices seeded by `seed`.
    ///
    /// # Errors
    /// [`BuildError`] if a field is out of its range, the memory holds fewer than two cells in each sub-table, or the machine refuses the memory.
    pub fn build(self, memory_bytes: u64, seed: u64) -> Result<FingerprintStableBloom, BuildError> {
        let hashes = u64::from(within("k", self.hashes, 1..=MOST_HASHES)?);
        let counter = within("c", self.counter_bits, 1..=16)?;
        let width = counter + within("f", self.fingerprint_bits, 1..=16)?;
        if !(0.0..=1.0).contains(&self.eviction) {
            return Err(SpecError::new(
                "xi",
                self.eviction.to_string(),
                "a probability from 0 to 1",
            )
            .into());
        }
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
    /// The cell of the key in sub-table `table`: that many steps of one hash from another, modulo a prime.
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
            let loss = 1 + self.rng.below(u64::from(max)) as u32;
            let lowered = self.spec.cell_lowered(self.cells.get(cell), loss);
            self.cells.set(cell, lowered);
        }
    }
}

impl KeyByKey for FingerprintStableBloom {
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        if self.holds(key) {
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

    #[inline(always)]
    fn holds(&self, key: KeyHash) -> bool {
        let fingerprint = self.fingerprint(key);
        (0..self.spec.hashes).all(|table| {
            let cell = self.cells.get(self.position(key, table));
            self.spec.cell_holds(cell, fingerprint)
        })
    }

    fn forget(&mut self) {
        self.cells.clear();
        self.rng.restart();
    }

    fn state_bytes(&self) -> u64 {
        self.cells.bytes()
    }

    fn taken(&self) -> f64 {
        // A cell whose counter ran out may keep its fingerprint, and holds nothing all the same.
        let max = self.spec.counter_max();
        let taken = self.cells.iter().filter(|cell| cell & max != 0).count();
        taken as f64 / self.cells.len() as f64
    }
}

/// The largest prime that is not above `number`, which is 2 or more.
fn prime_at_most(number: u64) -> u64 {
    (2..=number)
        .rev()
        .find(|candidate| is_prime(*candidate))
        .unwrap_or(2)
}

/// Miller-Rabin with the twelve bases that decide every 64-bit number.
fn is_prime(number: u64) -> bool {
    const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];
    if let Some(base) = BASES.into_iter().find(|base| number.is_multiple_of(*base)) {
        return number == base;
    }
    if number < 2 {
        return false;
    }
    let multiply = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(number)) as u64;
    let power = |base: u64, mut exponent: u64| {
        let (mut square, mut result) = (base, 1);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = multiply(result, square);
            }
            square = multiply(square, square);
            exponent >>= 1;
        }
        result
    };
    let twos = (number - 1).trailing_zeros();
    BASES.into_iter().all(|base| {
        let mut root = power(base, (number - 1) >> twos);
        if root == 1 || root == number - 1 {
            return true;
        }
        (1..twos).any(|_| {
            root = multiply(root, root);
            root == number - 1
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_the_share_of_counters_that_are_not_zero() {
        for refill in [Refill::Xor, Refill::Overwrite, Refill::Repaired] {
            let spec = FingerprintStableSpec {
                hashes: 2,
                counter_bits: 1,
                fingerprint_bits: 4,
                eviction: 1.0,
                refill,
            };
            let mut filter = spec.build(1000, 3).expect("valid");
            for key in 0..20_000_u64 {
                filter.observe_key(KeyHash(KeyHash(key).remix(5)));
            }
            let counters = filter.cells.iter().filter(|cell| cell & 1 == 1).count();
            let expected = counters as f64 / filter.cells.len() as f64;
            assert_eq!(filter.taken(), expected, "{refill:?}");
            // As many cells are set as are lowered: between the two at a load of 2/3, less for keys taken for seen.
            assert!((0.5..0.75).contains(&expected), "{refill:?}: {expected}");
        }
    }

    #[test]
    fn primes_are_told_apart() {
        let small: Vec<u64> = (0..60).filter(|number| is_prime(*number)).collect();
        assert_eq!(
            small,
            [
                2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59
            ]
        );
        // A Carmichael number, a strong pseudoprime to bases 2, 3, 5 and 7, and the largest 64-bit prime.
        assert!(!is_prime(561));
        assert!(!is_prime(3_215_031_751));
        assert!(is_prime(18_446_744_073_709_551_557));
        assert_eq!(prime_at_most(100), 97);
        assert_eq!(prime_at_most(2), 2);
    }
}
