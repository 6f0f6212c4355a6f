//! The bit filter: one mechanism for Bloom, RSBF, BSBF, BSBFSD and RLBSBF.

use super::{Ageing, BitTable, Reservoir};
use crate::error::{BuildError, SpecError};
use crate::filters::scattered::key_by_key::KeyByKey;
use crate::filters::scattered::random::SeededRng;
use crate::hash::KeyHash;

/// What a bit filter is made of, its memory aside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BitsSpec {
    /// k: the filters, and the bits of a key (1 to 64).
    pub hashes: u32,
    /// How it makes room.
    pub ageing: Ageing,
}

/// k filters of s = M/k bits; a key is a duplicate if and only if its bit is set in all of them (paper 000, section 3; Bloom 1970).
///
/// Cache lines touched per key: up to k to test; a fresh key touches k more to clear (BSBFSD one more) and writes k.
///
/// # Examples
/// ```
/// use echoless::{Filter, KeyHash, Verdict};
/// use echoless::filters::scattered::bits::{Ageing, BitsSpec};
/// let mut filter = BitsSpec { hashes: 2, ageing: Ageing::ByFill }.build(1 << 20, 7)?;
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Fresh);
/// assert_eq!(filter.observe_one(KeyHash(17)), Verdict::Duplicate);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct BitFilters {
    table: BitTable,
    ageing: Ageing,
    arrivals: u64,
    rng: SeededRng,
}

impl BitsSpec {
    /// Builds the filter in `memory_bytes`, its random choices seeded by `seed`.
    ///
    /// # Errors
    /// [`BuildError`] if k is not 1 to 64, the memory holds no bit for each filter, p* is not 0 to 1, or the machine refuses the memory.
    pub fn build(self, memory_bytes: u64, seed: u64) -> Result<BitFilters, BuildError> {
        if let Ageing::Reservoir(Reservoir::Described { threshold }) = self.ageing
            && !(0.0..=1.0).contains(&threshold)
        {
            return Err(SpecError::new(
                "pstar",
                threshold.to_string(),
                "a probability from 0 to 1",
            )
            .into());
        }
        Ok(BitFilters {
            table: BitTable::new(self.hashes, memory_bytes)?,
            ageing: self.ageing,
            arrivals: 0,
            rng: SeededRng::seeded(seed),
        })
    }
}

impl BitFilters {
    /// The share of bits that are set.
    #[must_use]
    pub fn fill(&self) -> f64 {
        self.table.fill()
    }
}

impl KeyByKey for BitFilters {
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        self.arrivals += 1;
        let seen = self.table.holds(key);
        let insert =
            self.ageing
                .make_room(&mut self.table, key, seen, self.arrivals, &mut self.rng);
        if insert {
            self.table.insert(key);
        }
        seen
    }

    fn holds(&self, key: KeyHash) -> bool {
        self.table.holds(key)
    }

    fn forget(&mut self) {
        self.table.forget();
        self.arrivals = 0;
        self.rng.restart();
    }

    fn state_bytes(&self) -> u64 {
        self.table.bytes()
    }

    fn taken(&self) -> f64 {
        self.fill()
    }
}
