//! Streams that the formulas are tested on.

use crate::filters::Filter;
use crate::hash::{KeyHash, KeyHasher};
use crate::verdicts::Verdict;

/// Keys that never repeat.
pub(super) fn fresh_keys(count: u64) -> impl Iterator<Item = KeyHash> {
    let hasher = KeyHasher::seeded(11);
    (0..count).map(move |key| hasher.hash_u64(key))
}

/// The share of `probes` never seen keys that the filter would call duplicates.
pub(super) fn probed_fpr(filter: &dyn Filter, probes: u64) -> f64 {
    let hasher = KeyHasher::seeded(11);
    let wrong = (0..probes).filter(|key| filter.contains(hasher.hash_u64(u64::MAX - key)));
    wrong.count() as f64 / probes as f64
}

/// Feeds fresh keys, each of them again after `gap` further arrivals, and gives the share of the second arrivals that were missed.
pub(super) fn fnr_at_gap(filter: &mut dyn Filter, gap: u64, repeats: u64) -> f64 {
    let hasher = KeyHasher::seeded(13);
    let mut missed = 0;
    // Fresh keys and repeats alternate, so that half of the arrivals between a key and its repeat are other repeats.
    let lag = gap.div_ceil(2);
    for turn in 0..repeats + 2 * lag {
        filter.observe_one(hasher.hash_u64(turn));
        if turn >= lag {
            let verdict = filter.observe_one(hasher.hash_u64(turn - lag));
            // The keys of the first turns meet fewer arrivals.
            missed += u32::from(turn >= 2 * lag && verdict == Verdict::Fresh);
        }
    }
    f64::from(missed) / repeats as f64
}
