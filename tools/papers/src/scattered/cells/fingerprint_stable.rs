//! The fingerprint stable Bloom filter: each cell pairs a counter with a fingerprint of the key
//! that set it.

use crate::limits::at_least_bits;
use crate::lines;
use crate::scattered::mechanism::{Mechanism, filter, row};
use crate::scattered::random::SeededRng;
use crate::scattered::storage::PackedCells;
use echoless::extend::{FilterRow, Head, Named, OptionRow, names};
use echoless::spec::{Facts, Form};
use echoless::{BuildError, Cells, KeyHash};

/// How a key's fingerprint is written to a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refill {
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
pub(crate) struct FingerprintStableSpec {
    /// k: the number of a key's cells, one in each of k sub-tables (1 to 64).
    pub(crate) hashes: u32,
    /// c: the number of counter bits of a cell (1 to 16); a set counter holds Max = 2^c - 1.
    pub(crate) counter_bits: u32,
    /// f: the number of fingerprint bits of a cell (1 to 16).
    pub(crate) fingerprint_bits: u32,
    /// xi: the probability that a fresh key decrements k random cells (0 to 1).
    pub(crate) eviction: f64,
    /// How fingerprints are written to cells.
    pub(crate) refill: Refill,
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
#[derive(Debug, Clone)]
pub(crate) struct FingerprintStableBloom {
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
    fn of(named: &Named) -> Self {
        Self {
            hashes: named.small("k"),
            counter_bits: named.small("c"),
            fingerprint_bits: named.small("f"),
            eviction: named.decimal("xi").expect("a default"),
            refill: named.choice("refill", &REFILLS),
        }
    }

    /// Builds the filter in `memory_bytes`; `seed` seeds its random draws. Fails if the memory
    /// holds fewer than two cells in each sub-table, or cannot be allocated.
    fn build(self, memory_bytes: u64, seed: u64) -> Result<FingerprintStableBloom, BuildError> {
        let hashes = u64::from(self.hashes);
        let width = self.counter_bits + self.fingerprint_bits;
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

const REFILLS: [(&str, Refill); 3] = [
    ("xor", Refill::Xor),
    ("overwrite", Refill::Overwrite),
    ("repaired", Refill::Repaired),
];

/// The options with this number of bits of a fingerprint.
const fn options(fingerprint_bits: u64) -> [OptionRow; 5] {
    [
        OptionRow::hashes(2),
        OptionRow::whole("c", 1, 16, 2),
        OptionRow::whole("f", 1, 16, fingerprint_bits),
        OptionRow::fraction("xi", 0.5),
        OptionRow::choice("refill", const { &names(&REFILLS) }),
    ]
}

const SCATTERED: &[OptionRow] = &options(4);
/// With the counter's 2 bits a byte: cells have 8 or 16 bits.
const LINE: &[OptionRow] = &options(6);

/// The fingerprint stable Bloom filter.
pub(crate) static FINGERPRINT_STABLE: [FilterRow; 1] = [FilterRow {
    lines: Some(|named, allocation| {
        lines::fingerprint_stable::build(&FingerprintStableSpec::of(named), allocation)
    }),
    ..row(
        Head {
            name: "fpsbf",
            options: |form| match form {
                Form::Scattered => SCATTERED,
                Form::Line => LINE,
            },
            complete: Named::as_given,
        },
        |named, memory, seed| filter(FingerprintStableSpec::of(named).build(memory, seed)),
        |named, _, _| {
            let spec = FingerprintStableSpec::of(named);
            Facts {
                settles: match spec.refill {
                    Refill::Xor => false,
                    // Without evictions no counter reaches 0, which would clear the fingerprint.
                    Refill::Repaired => spec.eviction > 0.0,
                    Refill::Overwrite => true,
                },
                ..Facts::touching(f64::from(spec.hashes) * (1.0 + spec.eviction))
            }
        },
    )
}];

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

impl Mechanism for FingerprintStableBloom {
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

    fn fill(&self) -> (Cells, Option<f64>) {
        // A cell whose counter is 0 may keep its fingerprint, but it is empty.
        let max = self.spec.counter_max();
        let occupied = self.cells.iter().filter(|cell| cell & max != 0);
        (Cells::new(occupied.count() as u64, self.cells.len()), None)
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

    #[test]
    fn the_fill_is_the_fraction_of_nonzero_counters() {
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
                filter.observe_key(KeyHash::from_uniform(KeyHash::from_uniform(key).remix(5)));
            }
            let counters = filter.cells.iter().filter(|cell| cell & 1 == 1).count();
            let expected = counters as f64 / filter.cells.len() as f64;
            assert_eq!(filter.fill().0.fill(), expected, "{refill:?}");
            // As many cells are set as decremented, which balances at a fill of 2/3; false
            // positives set none and keep it lower.
            assert!((0.5..0.75).contains(&expected), "{refill:?}: {expected}");
        }
    }
}
