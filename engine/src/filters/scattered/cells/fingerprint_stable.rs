//! The fingerprint stable Bloom filter: each cell pairs a counter with a fingerprint of the key
//! that set it.

use crate::error::{BuildError, SpecError};
use crate::filters::filter::{observe_each, tally_of_cells};
use crate::filters::kind::KindSpec;
use crate::filters::scattered::random::SeededRng;
use crate::filters::scattered::storage::PackedCells;
use crate::filters::{Filter, Form, Workload};
use crate::hash::KeyHash;
use crate::limits::HASHES;
use crate::limits::{MOST_HASHES, at_least_bits, within};
use crate::options::{Options, name_of};
use crate::report::{Cells, Tally};
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

    /// Builds the filter in `memory_bytes`; `seed` seeds its random draws.
    ///
    /// # Errors
    /// [`BuildError`] if a field is out of its range, the memory holds fewer than two cells in each
    /// sub-table, or the memory cannot be allocated.
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
}

impl FingerprintStableBloom {
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

/// The largest prime up to `number`, which is 2 or more.
fn prime_at_most(number: u64) -> u64 {
    (2..=number)
        .rev()
        .find(|candidate| is_prime(*candidate))
        .unwrap_or(2)
}

/// Miller-Rabin with the first twelve primes as bases, which decide every 64-bit number.
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

    #[test]
    fn primes_are_distinguished_from_composites() {
        let small: Vec<u64> = (0..60).filter(|number| is_prime(*number)).collect();
        assert_eq!(
            small,
            [
                2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59
            ]
        );
        // A Carmichael number, a strong pseudoprime to bases 2, 3, 5 and 7, and the largest 64-bit
        // prime.
        assert!(!is_prime(561));
        assert!(!is_prime(3_215_031_751));
        assert!(is_prime(18_446_744_073_709_551_557));
        assert_eq!(prime_at_most(100), 97);
        assert_eq!(prime_at_most(2), 2);
    }
}
