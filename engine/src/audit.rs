//! Estimates of the errors of a filter while it runs, from an exact sample of the keys.
//!
//! The sample is a fraction `1 / 2^b` of the key space, chosen by hash. Every key in it is kept in
//! an exact set, so every verdict on it can be checked, and each error found stands for `2^b`
//! errors in the stream. When the set is full, `b` grows by one and half of the set is dropped.

use std::collections::HashSet;

use crate::hash::KeyHash;
use crate::verdicts::Verdicts;

/// The most keys in the sample: 64 Ki of 8 bytes each, about 1 MiB with the hash table around them.
const CAPACITY: usize = 1 << 16;

/// The halvings of the first sample: 1 key in 16, so that a stream of few keys costs little.
const FIRST_HALVINGS: u32 = 4;

/// An unbiased estimate of the errors of a filter, in fixed memory.
///
/// The estimates depend on the sequence of keys and verdicts, not on how it is cut into batches.
///
/// # Examples
/// ```
/// use echoless::{Audit, KeyHasher, Verdicts};
/// let hasher = KeyHasher::seeded(0);
/// let keys: Vec<_> = (0..10_000u64).map(|key| hasher.hash_u64(key)).collect();
/// let mut verdicts = Verdicts::new();
/// verdicts.reset(keys.len());
/// let mut audit = Audit::new();
/// audit.observe(&keys, &verdicts);
/// assert_eq!(audit.estimated_missed_duplicates(), 0);
/// // The same keys again, all reported as fresh: about ten thousand missed duplicates.
/// audit.observe(&keys, &verdicts);
/// assert!((8_000..12_000).contains(&audit.estimated_missed_duplicates()));
/// ```
#[derive(Debug, Clone)]
pub struct Audit {
    /// The keys of the sample that have arrived.
    sample: HashSet<KeyHash>,
    /// The sample is 1 key in `2^halvings`.
    halvings: u32,
    /// Estimated duplicates reported as fresh, and fresh keys reported as duplicates.
    missed: u64,
    mistaken: u64,
}

impl Default for Audit {
    fn default() -> Self {
        Self::new()
    }
}

impl Audit {
    /// An audit of a stream that has not started.
    #[must_use]
    pub fn new() -> Self {
        Self {
            sample: HashSet::new(),
            halvings: FIRST_HALVINGS,
            missed: 0,
            mistaken: 0,
        }
    }

    /// Checks the verdicts on the keys of a batch that are in the sample.
    ///
    /// # Panics
    /// If there are fewer verdicts than keys.
    pub fn observe(&mut self, keys: &[KeyHash], verdicts: &Verdicts) {
        assert!(verdicts.len() >= keys.len(), "one verdict for each key");
        for (index, key) in keys.iter().enumerate() {
            if self.is_sampled(*key) {
                self.check(*key, verdicts.is_duplicate(index));
            }
        }
    }

    /// The estimated number of duplicates so far that the filter reported as fresh.
    #[must_use]
    pub const fn estimated_missed_duplicates(&self) -> u64 {
        self.missed
    }

    /// The estimated number of fresh keys so far that the filter reported as duplicates. Keys of
    /// equal hash count as one key.
    #[must_use]
    pub const fn estimated_false_duplicates(&self) -> u64 {
        self.mistaken
    }

    /// The fraction of the key space that the sample covers now.
    #[must_use]
    pub fn sampled_share(&self) -> f64 {
        2f64.powi(-(self.halvings as i32))
    }

    #[inline(always)]
    const fn is_sampled(&self, key: KeyHash) -> bool {
        // The multiplier is 2^64 divided by the golden ratio. The high bits of the product depend
        // on all bits of the hash, so the sample is independent of lines (high bits of the hash)
        // and of fingerprints (low bits).
        key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.halvings) == 0
    }

    fn check(&mut self, key: KeyHash, duplicate: bool) {
        let new = self.sample.insert(key);
        let weight = 1 << self.halvings;
        self.missed += if !new && !duplicate { weight } else { 0 };
        self.mistaken += if new && duplicate { weight } else { 0 };
        // A smaller sample is a subset of the larger one, so what remains is still exact.
        while self.sample.len() > CAPACITY {
            self.halvings += 1;
            let mut sample = std::mem::take(&mut self.sample);
            sample.retain(|key| self.is_sampled(*key));
            self.sample = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::KeyHasher;
    use crate::verdicts::Verdict;

    fn keys(range: std::ops::Range<u64>) -> Vec<KeyHash> {
        let hasher = KeyHasher::seeded(3);
        range.map(|key| hasher.hash_u64(key)).collect()
    }

    fn all_fresh(count: usize) -> Verdicts {
        let mut verdicts = Verdicts::new();
        verdicts.reset(count);
        verdicts
    }

    #[test]
    fn estimates_stay_accurate_when_the_sample_is_halved() {
        let mut audit = Audit::new();
        let distinct = 8_000_000;
        let keys = keys(0..distinct);
        let verdicts = all_fresh(keys.len());
        audit.observe(&keys, &verdicts);
        assert!(audit.sample.len() <= CAPACITY);
        assert!(audit.sampled_share() < 1.0 / 64.0);
        assert_eq!(audit.estimated_missed_duplicates(), 0);
        audit.observe(&keys, &verdicts);
        let missed = audit.estimated_missed_duplicates() as f64;
        assert!((missed / distinct as f64 - 1.0).abs() < 0.03, "{missed}");
    }

    #[test]
    fn false_duplicates_are_estimated() {
        let mut audit = Audit::new();
        let keys = keys(0..100_000);
        let mut verdicts = all_fresh(keys.len());
        // Every eighth verdict is wrong.
        for index in (0..keys.len()).step_by(8) {
            verdicts.set(index, Verdict::Duplicate);
        }
        audit.observe(&keys, &verdicts);
        let mistaken = audit.estimated_false_duplicates() as f64;
        assert!((mistaken / 12_500.0 - 1.0).abs() < 0.15, "{mistaken}");
        assert_eq!(audit.estimated_missed_duplicates(), 0);
    }

    #[test]
    fn estimates_do_not_depend_on_batches() {
        let keys: Vec<_> = keys(0..300_000).into_iter().chain(keys(0..5000)).collect();
        let mut whole = Audit::new();
        whole.observe(&keys, &all_fresh(keys.len()));
        let mut parts = Audit::new();
        for part in keys.chunks(777) {
            parts.observe(part, &all_fresh(part.len()));
        }
        assert!(whole.estimated_missed_duplicates() > 0);
        assert_eq!(
            whole.estimated_missed_duplicates(),
            parts.estimated_missed_duplicates()
        );
        assert_eq!(whole.sampled_share(), parts.sampled_share());
    }
}
