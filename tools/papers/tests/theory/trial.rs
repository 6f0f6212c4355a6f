//! The streams that the formulas are tested on, and the rates measured on them.

use echoless::{Filter, KeyHash, KeyHasher, Verdict};

/// Keys that never repeat.
pub(crate) fn fresh_keys(count: u64) -> impl Iterator<Item = KeyHash> {
    let hasher = KeyHasher::seeded(11);
    (0..count).map(move |key| hasher.hash_u64(key))
}

/// The fraction of `probes` unseen keys that the filter would report as duplicates.
pub(crate) fn probed_fpr(filter: &dyn Filter, probes: u64) -> f64 {
    let hasher = KeyHasher::seeded(11);
    let wrong = (0..probes).filter(|key| filter.contains(hasher.hash_u64(u64::MAX - key)));
    wrong.count() as f64 / probes as f64
}

/// Feeds fresh keys, each of them again after `gap` further arrivals, and returns the fraction of
/// the second arrivals that the filter missed.
pub(crate) fn fnr_at_gap(filter: &mut dyn Filter, gap: u64, repeats: u64) -> f64 {
    let hasher = KeyHasher::seeded(13);
    let mut missed = 0;
    // Fresh keys and repeats alternate, so that half of the arrivals between a key and its repeat
    // are other repeats.
    let lag = gap.div_ceil(2);
    for number in 0..repeats + 2 * lag {
        filter.observe_one(hasher.hash_u64(number));
        if number >= lag {
            let verdict = filter.observe_one(hasher.hash_u64(number - lag));
            // Fewer arrivals lie between the first keys and their repeats, so these do not count.
            missed += u32::from(number >= 2 * lag && verdict == Verdict::Fresh);
        }
    }
    f64::from(missed) / repeats as f64
}

/// Fails unless the measured rate is within the relative error `within` of the expected one.
pub(crate) fn assert_close(measured: f64, expected: f64, within: f64, case: &str) {
    let error = (measured / expected - 1.0).abs();
    assert!(
        error < within,
        "{case}: {measured}, expected {expected} within {within}"
    );
}
