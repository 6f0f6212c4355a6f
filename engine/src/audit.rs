//! How many duplicates a filter missed, estimated while it runs.
//!
//! A small share of the key space, chosen by hash, is remembered exactly and for ever. Every verdict on a remembered key can be checked;
//! an error found in a share of `1 / 2^b` stands for `2^b` errors in the stream. When the memory is full the share is halved.

use std::collections::HashSet;

use crate::hash::KeyHash;
use crate::verdicts::Verdicts;

/// How many keys are remembered at most: 64 Ki of 8 bytes, so about 1 MiB with the table around them.
const CAPACITY: usize = 1 << 16;

/// The share that is remembered at first, as a number of halvings: 1 in 16, so that a stream of few keys costs little.
const FIRST_HALVINGS: u32 = 4;

/// An exact witness of a sample of the keys: an unbiased estimate of a filter's errors, in fixed memory.
///
/// The estimates depend on the keys and verdicts in their order, not on how they are cut in batches.
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
/// // The same keys again, all called fresh: about ten thousand missed duplicates.
/// audit.observe(&keys, &verdicts);
/// assert!((8_000..12_000).contains(&audit.estimated_missed_duplicates()));
/// ```
#[derive(Debug, Clone)]
pub struct Audit {
    seen: HashSet<KeyHash>,
    halvings: u32,
    missed: u64,
    mistaken: u64,
}

impl Default for Audit {
    fn default() -> Self {
        Self::new()
    }
}

impl Audit {
    /// A witness that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            seen: HashSet::new(),
            halvings: FIRST_HALVINGS,
            missed: 0,
            mistaken: 0,
        }
    }

    /// Checks the verdicts on a batch of keys.
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

    /// The estimated number of duplicates so far that were called fresh.
    #[must_use]
    pub const fn estimated_missed_duplicates(&self) -> u64 {
        self.missed
    }

    /// The estimated number of new keys so far that were called duplicates. Keys of equal hash are not told apart.
    #[must_use]
    pub const fn estimated_false_duplicates(&self) -> u64 {
        self.mistaken
    }

    /// The share of the key space that is remembered now.
    #[must_use]
    pub fn sampled_share(&self) -> f64 {
        2f64.powi(-(self.halvings as i32))
    }

    #[inline(always)]
    const fn is_sampled(&self, key: KeyHash) -> bool {
        // One product mixes line and fingerprint bits, so that the sample favours neither.
        key.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.halvings) == 0
    }

    fn check(&mut self, key: KeyHash, duplicate: bool) {
        let new = self.seen.insert(key);
        let weight = 1 << self.halvings;
        self.missed += if !new && !duplicate { weight } else { 0 };
        self.mistaken += if new && duplicate { weight } else { 0 };
        while self.seen.len() > CAPACITY {
            self.halvings += 1;
            let mut seen = std::mem::take(&mut self.seen);
            seen.retain(|key| self.is_sampled(*key));
            self.seen = seen;
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
    fn memory_is_fixed_and_estimates_stay_right_past_it() {
        let mut audit = Audit::new();
        let distinct = 8_000_000;
        let keys = keys(0..distinct);
        let verdicts = all_fresh(keys.len());
        audit.observe(&keys, &verdicts);
        assert!(audit.seen.len() <= CAPACITY);
        assert!(audit.sampled_share() < 1.0 / 64.0);
        assert_eq!(audit.estimated_missed_duplicates(), 0);
        audit.observe(&keys, &verdicts);
        let missed = audit.estimated_missed_duplicates() as f64;
        assert!((missed / distinct as f64 - 1.0).abs() < 0.03, "{missed}");
    }

    #[test]
    fn false_duplicates_are_seen_too() {
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
    fn batches_do_not_matter() {
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
