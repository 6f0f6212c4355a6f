//! Batches ordered by region before they are probed: for arrays so large that every random line also misses the page tables' caches.

use crate::filters::Filter;
use crate::filters::lines::{LineFilter, LineRange};
use crate::hash::KeyHash;
use crate::memory::Line;
use crate::report::{Report, Tally};

/// How many keys a region should get on average: enough for the lines' pages to be looked up once for several keys.
const KEYS_PER_REGION: usize = 64;

/// The most regions, as a number of bits: their counters stay in the first-level cache.
const MOST_BITS: u32 = 12;

/// A line filter that takes large batches region by region.
///
/// A region is a run of whole lines. Keys of one line keep their order, and lines do not know of each other: so verdicts are those of the
/// filter itself. It costs a counting sort (about two passes over the batch) and 12 bytes of scratch for each key; it pays
/// where a random line costs more than that, and for batches of 64 Ki keys and more.
///
/// # Examples
/// ```
/// use echoless::{Filter, FingerprintSpec, KeyHasher, RegionOrdered, Verdicts};
/// let hasher = KeyHasher::seeded(0);
/// let keys: Vec<_> = (0..100_000u64).map(|key| hasher.hash_u64(key % 70_000)).collect();
/// let spec = FingerprintSpec::new(1 << 22);
/// let (mut plain, mut ordered) = (spec.build()?, RegionOrdered::new(spec.build()?));
/// let (mut expected, mut verdicts) = (Verdicts::new(), Verdicts::new());
/// plain.observe(&keys, &mut expected);
/// ordered.observe(&keys, &mut verdicts);
/// assert_eq!(verdicts, expected);
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug)]
pub struct RegionOrdered<F> {
    filter: F,
    range: LineRange,
    /// For each region the offset of its next key.
    offsets: Vec<u32>,
    keys: Vec<KeyHash>,
    /// Where in the batch each of `keys` was.
    origins: Vec<u32>,
    duplicates: Vec<u64>,
}

impl<F: LineFilter> RegionOrdered<F> {
    /// Orders the batches of a filter, whole or a partition.
    pub fn new(filter: F) -> Self {
        Self {
            range: filter.range(),
            filter,
            offsets: Vec::new(),
            keys: Vec::new(),
            origins: Vec::new(),
            duplicates: Vec::new(),
        }
    }

    /// The filter.
    pub const fn filter(&self) -> &F {
        &self.filter
    }

    /// The filter, without the order.
    pub fn into_inner(self) -> F {
        self.filter
    }

    /// Sorts the batch by regions, of which there are up to `1 << bits`, stably. A key of another partition lies beyond the last, or in a part of it
    /// that the filter does not have.
    fn sort(&mut self, keys: &[KeyHash], bits: u32) {
        let last = self.filter.lines().len() as u64 - 1;
        let shift = (64 - last.leading_zeros()).saturating_sub(bits);
        let range = self.range;
        let region = |key: &KeyHash| range.position(*key) >> shift;
        self.offsets.clear();
        self.offsets.resize(1 << bits, 0);
        for key in keys {
            self.offsets[region(key)] += 1;
        }
        let mut before = 0;
        for offset in &mut self.offsets {
            before += std::mem::replace(offset, before);
        }
        self.keys.resize(keys.len(), KeyHash(0));
        self.origins.resize(keys.len(), 0);
        for (origin, key) in keys.iter().enumerate() {
            let offset = &mut self.offsets[region(key)];
            self.keys[*offset as usize] = *key;
            self.origins[*offset as usize] = origin as u32;
            *offset += 1;
        }
    }
}

impl<F: LineFilter> Filter for RegionOrdered<F> {
    /// # Panics
    /// As the filter itself, if a key belongs to another partition; or if the batch has 2^32 keys or more.
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        let bits = (keys.len() / KEYS_PER_REGION)
            .checked_ilog2()
            .unwrap_or(0)
            .min(MOST_BITS);
        if bits == 0 {
            return self.filter.observe_words(keys, duplicates);
        }
        assert!(
            u32::try_from(keys.len()).is_ok(),
            "a batch of {} keys",
            keys.len()
        );
        self.sort(keys, bits);
        self.duplicates.resize(keys.len().div_ceil(64), 0);
        self.filter.observe_words(&self.keys, &mut self.duplicates);
        duplicates.fill(0);
        for (index, word) in self.duplicates.iter().enumerate() {
            let mut word = *word;
            while word != 0 {
                let origin = self.origins[index * 64 + word.trailing_zeros() as usize] as usize;
                duplicates[origin / 64] |= 1 << (origin % 64);
                word &= word - 1;
            }
        }
    }

    fn advance_to(&mut self, tick: u64) {
        self.filter.advance_to(tick);
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.filter.contains(key)
    }

    fn clear(&mut self) {
        self.filter.clear();
    }

    /// The memory of the filter's state; the scratch of the order is not part of it.
    fn memory_bytes(&self) -> u64 {
        self.filter.memory_bytes()
    }

    fn tally(&self) -> Tally {
        self.filter.tally()
    }

    fn report_on(&self, tally: Tally) -> Report {
        self.filter.report_on(tally)
    }
}

impl<F: LineFilter> LineFilter for RegionOrdered<F> {
    fn lines(&self) -> &[Line] {
        self.filter.lines()
    }

    fn range(&self) -> LineRange {
        self.range
    }

    fn decrements(&self) -> Option<u32> {
        self.filter.decrements()
    }
}
