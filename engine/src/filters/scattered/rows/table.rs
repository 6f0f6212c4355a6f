//! The row filter: one mechanism for SQF, QHT, QHTD, QQHT, QQHTD and row-LRU, packed or
//! semi-sorted.

use super::fingerprint::Fingerprint;
use super::spec::RowPolicy;
use super::store::{MOST_SLOTS, RowStore};
use crate::filters::Filter;
use crate::filters::filter::{observe_each, tally_of_cells};
use crate::filters::scattered::random::SeededRng;
use crate::hash::KeyHash;
use crate::report::Tally;

/// R rows of k slots; a key is a duplicate if and only if its fingerprint is in its row (paper 002,
/// sections 3 and 5).
///
/// | filter | fingerprint | victim | on a hit |
/// |---|---|---|---|
/// | SQF (Dutta 2013) | counted | random | keep |
/// | QHT | nonzero | random | keep |
/// | QHTD | nonzero | random | insert again |
/// | QQHT | nonzero | oldest | keep |
/// | QQHTD | nonzero | oldest | insert again |
/// | row-LRU | nonzero | oldest | move to front |
///
/// The row of an SQF is the high bits of a hash, so the number of its rows is the largest power of
/// two that fits.
///
/// Cache lines touched per key: those of the row. With k b up to 512 bits that is one, or two if
/// the row crosses a line.
///
/// # Examples
/// ```
/// use echoless::spec::{RowPolicy, RowSpec};
/// use echoless::{Filter, KeyHasher, Replacement, Verdict};
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// let qqht = RowSpec::new(4, 12, RowPolicy::Queue(Replacement::Fifo));
/// let mut filter = qqht.build(1 << 16, 7)?;
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// assert_eq!(filter.observe_one(key), Verdict::Duplicate);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RowFilter {
    store: RowStore,
    slots: u32,
    fingerprint: Fingerprint,
    policy: RowPolicy,
    rng: SeededRng,
}

impl RowFilter {
    /// A filter of the empty rows of `store`; `seed` seeds its random victims.
    pub(super) fn new(
        store: RowStore,
        slots: u32,
        fingerprint: Fingerprint,
        policy: RowPolicy,
        seed: u64,
    ) -> Self {
        Self {
            store,
            slots,
            fingerprint,
            policy,
            rng: SeededRng::seeded(seed),
        }
    }

    /// R: the number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.store.rows()
    }

    #[inline(always)]
    fn row_of(&self, key: KeyHash) -> u64 {
        KeyHash(key.remix(0)).line(self.store.rows())
    }

    /// Tests and records one key; true means duplicate.
    #[inline]
    fn observe_key(&mut self, key: KeyHash) -> bool {
        let row = self.row_of(key);
        let fingerprint = self.fingerprint.fingerprint_of(key);
        let mut buffer = [0; MOST_SLOTS as usize];
        let slots = &mut buffer[..self.slots as usize];
        self.store.read(row, slots);
        let matches = slots.iter().enumerate();
        let found = matches.fold(0_u64, |found, (index, slot)| {
            found | u64::from(*slot == fingerprint) << index
        });
        match self.policy {
            RowPolicy::RandomVictim { again: false } if found != 0 => return true,
            RowPolicy::RandomVictim { .. } => {
                let empty = slots.iter().position(|slot| *slot == 0);
                let slot = empty.unwrap_or_else(|| self.rng.below(u64::from(self.slots)) as usize);
                slots[slot] = fingerprint;
            }
            RowPolicy::Queue(replacement) => {
                let moved = replacement.moved(found, self.slots).trailing_ones();
                let moved = &mut slots[..moved.min(self.slots) as usize];
                let Some(last) = moved.len().checked_sub(1) else {
                    return found != 0;
                };
                moved.copy_within(..last, 1);
                moved[0] = fingerprint;
            }
        }
        self.store.write(row, slots);
        found != 0
    }
}

impl Filter for RowFilter {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        observe_each(keys, duplicates, |key| self.observe_key(key));
    }

    fn contains(&self, key: KeyHash) -> bool {
        let mut buffer = [0; MOST_SLOTS as usize];
        let slots = &mut buffer[..self.slots as usize];
        self.store.read(self.row_of(key), slots);
        slots.contains(&self.fingerprint.fingerprint_of(key))
    }

    fn clear(&mut self) {
        self.store.clear();
        self.rng.restart();
    }

    fn memory_bytes(&self) -> u64 {
        self.store.bytes()
    }

    fn tally(&self) -> Tally {
        tally_of_cells(self.memory_bytes(), self.store.occupied())
    }
}
