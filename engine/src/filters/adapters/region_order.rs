//! Large batches, sorted by memory region before they are probed. This pays for arrays so large
//! that a random line misses the TLB as well as the data caches.
//!
//! ```text
//! batch       k0 k1 k2 k3 k4 k5 k6 k7      lines of the keys: anywhere in the array
//!             sort by region, stable
//! keys        k1 k4 k6 | k0 k3 | k2 k5 k7  region after region: pages are shared by neighbours
//! origins     1  4  6  | 0  3  | 2  5  7   where each verdict bit belongs
//! ```

use crate::filters::Filter;
use crate::filters::filter::check_length;
use crate::filters::lines::{LineFilter, LineRange, Progress};
use crate::hash::KeyHash;
use crate::memory::Line;
use crate::report::{Report, Tally};
use crate::verdicts::scatter;

/// The mean number of keys of a region, at least. With that many keys, the translation of a page
/// serves several of them.
const KEYS_PER_REGION: usize = 64;

/// The base-2 logarithm of the most regions. Their counters, 4 bytes each, take 16 KiB and stay in
/// the first-level cache.
const MOST_BITS: u32 = 12;

/// A line filter that observes large batches region by region.
///
/// A region is a run of whole lines. Keys of one line keep their order, and lines are independent
/// of each other, so the verdicts equal those of the filter itself. The sort costs about two passes
/// over the batch and 12 bytes of scratch memory per key. It pays if a random line costs more than
/// that, and for batches of 64 Ki keys or more. Cache lines touched per key: that of the filter.
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
    /// For each region: the number of its keys, then the offset of its next key in `keys`.
    offsets: Vec<u32>,
    /// The keys of the batch, sorted by region.
    keys: Vec<KeyHash>,
    /// The index of each of `keys` in the batch.
    origins: Vec<u32>,
    /// The verdict bits of `keys`, in sorted order.
    duplicates: Vec<u64>,
}

impl<F: LineFilter> RegionOrdered<F> {
    /// An adapter around `filter`, which is whole or a partition.
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

    /// The inner filter.
    pub const fn filter(&self) -> &F {
        &self.filter
    }

    /// The inner filter, without the adapter.
    pub fn into_inner(self) -> F {
        self.filter
    }

    /// Sorts the batch by region into `keys` and `origins`, with a stable counting sort. There are
    /// at most `1 << bits` regions.
    ///
    /// # Panics
    /// If the region of a key is past the last one, because the key belongs to another partition.
    /// The inner filter panics on all other keys of other partitions.
    fn sort(&mut self, keys: &[KeyHash], bits: u32) {
        // The region of a line is the upper bits of its index:
        //
        //   line index   | region: up to `bits` bits | line within the region: `shift` bits |
        let last = self.filter.lines().len() as u64 - 1;
        let shift = (64 - last.leading_zeros()).saturating_sub(bits);
        // Keys of one bucket keep their order, so a region is at least one bucket.
        let shift = shift.max(self.filter.bucket_lines().ilog2());
        let range = self.range;
        let region = |key: &KeyHash| range.position(*key) >> shift;
        self.offsets.clear();
        self.offsets.resize(1 << bits, 0);
        for key in keys {
            self.offsets[region(key)] += 1;
        }
        // Counts become offsets: each is replaced by the sum of those before it.
        let mut before = 0;
        for offset in &mut self.offsets {
            before += std::mem::replace(offset, before);
        }
        self.keys.resize(keys.len(), KeyHash(0));
        self.origins.resize(keys.len(), 0);
        // In the order of the batch, so that keys of one line keep theirs.
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
    /// If a key belongs to another partition or `duplicates` has another length than the keys need,
    /// as the inner filter does, or if the batch has 2^32 keys or more.
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        check_length(keys, duplicates);
        let bits = (keys.len() / KEYS_PER_REGION)
            .checked_ilog2()
            .unwrap_or(0)
            .min(MOST_BITS);
        if bits == 0 {
            // Fewer keys than two regions need: their order does not matter.
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
        // Scatter the set bits back to the order of the batch.
        let origins = &self.origins;
        scatter(&self.duplicates, duplicates, |index| {
            origins[index] as usize
        });
    }

    fn advance_to(&mut self, tick: u64) {
        self.filter.advance_to(tick);
    }

    fn prefetch(&self, keys: &[KeyHash]) {
        self.filter.prefetch(keys);
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.filter.contains(key)
    }

    fn clear(&mut self) {
        self.filter.clear();
    }

    /// The memory of the inner filter. The scratch memory of the sort does not count.
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

    fn finish_expiry(&mut self) {
        self.filter.finish_expiry();
    }

    fn range(&self) -> LineRange {
        self.range
    }

    fn bucket_lines(&self) -> u64 {
        self.filter.bucket_lines()
    }

    fn progress(&self) -> Progress {
        self.filter.progress()
    }

    fn parameters(&self) -> String {
        self.filter.parameters()
    }

    fn resume(&mut self, progress: Progress) -> &mut [Line] {
        self.filter.resume(progress)
    }

    fn decrements(&self) -> Option<u32> {
        self.filter.decrements()
    }
}
