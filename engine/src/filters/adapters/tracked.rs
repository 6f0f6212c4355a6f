//! A filter that tracks a fraction of the keys, chosen by hash. A memory too small for all keys
//! then detects the duplicates of some keys well, instead of those of all keys badly.

use crate::error::SpecError;
use crate::filters::{Batch, Filter, Sliced};
use crate::hash::KeyHash;
use crate::report::{Report, Tally};

/// The [`KeyHash::remix`] stream that decides whether a key is tracked. No filter draws positions
/// from it, so the tracked keys are spread over a filter as all keys are.
const TRACKED_STREAM: u64 = 0x7472_6163_6b65_6421;

/// The number of keys processed at a time. Their scratch memory, 4 KiB, stays in the first-level
/// cache. A multiple of 64, so that a batch is whole words of verdicts.
const BATCH: usize = 512;

/// A fraction of the key space, chosen by hash: either all arrivals of a key are inside or none.
///
/// # Examples
/// ```
/// use echoless::spec::TrackedFraction;
/// assert_eq!(TrackedFraction::new(1.0), Ok(TrackedFraction::ALL));
/// let error = TrackedFraction::new(0.0).unwrap_err();
/// let expected = "invalid tracked=0: expected a fraction above 0 and at most 1";
/// assert_eq!(error.to_string(), expected);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrackedFraction(f64);

impl TrackedFraction {
    /// All keys.
    pub const ALL: Self = Self(1.0);

    /// The accepted values.
    pub(crate) const ALLOWED: &str = "a fraction above 0 and at most 1";

    /// The fraction t of the keys.
    ///
    /// # Errors
    /// [`SpecError`] unless 0 < t <= 1.
    pub fn new(fraction: f64) -> Result<Self, SpecError> {
        if fraction > 0.0 && fraction <= 1.0 {
            Ok(Self(fraction))
        } else {
            Err(SpecError::new(
                "tracked",
                fraction.to_string(),
                Self::ALLOWED,
            ))
        }
    }

    /// The fraction, above 0 and at most 1.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The highest remixed hash that is tracked.
    fn highest(self) -> u64 {
        // For 1 the product, 2^64, is out of range. The conversion saturates to the highest hash,
        // so every key is tracked.
        (self.0 * 2_f64.powi(64)) as u64
    }
}

/// A filter that tracks a fraction t of the keys. All other keys are reported as fresh, without an
/// access to memory.
///
/// Over all keys FNR = 1 - t (1 - FNR of the inner filter), where the inner filter observes only
/// the tracked keys. This is for streams of known length: an endless one still needs ageing or a
/// window. Cache lines touched per key: those of the inner filter for a tracked key, none for any
/// other.
pub(crate) struct Tracked<F> {
    inner: F,
    /// The highest remixed hash that is tracked.
    highest: u64,
    /// The tracked keys of a batch.
    keys: Vec<KeyHash>,
    /// The verdict bits of `keys`.
    verdicts: Vec<u64>,
}

impl<F: Filter> Tracked<F> {
    /// A filter that passes the tracked keys on to `inner`.
    #[must_use]
    pub(crate) fn new(inner: F, fraction: TrackedFraction) -> Self {
        Self {
            inner,
            highest: fraction.highest(),
            keys: Vec::with_capacity(BATCH),
            verdicts: Vec::with_capacity(BATCH / 64),
        }
    }

    /// The fraction of the keys that is tracked.
    fn fraction(&self) -> f64 {
        (self.highest as f64 + 1.0) / 2_f64.powi(64)
    }

    /// Whether the inner filter observes the key.
    #[inline(always)]
    fn tracks(&self, key: KeyHash) -> bool {
        key.remix(TRACKED_STREAM) <= self.highest
    }

    /// Passes the tracked keys on.
    fn observe_keys(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        for (keys, duplicates) in keys.chunks(BATCH).zip(duplicates.chunks_mut(BATCH / 64)) {
            // Compact the tracked keys, let the inner filter observe them, and expand its verdicts:
            //
            //   keys       k0 k1 k2 k3 k4 k5
            //   tracked     1  0  0  1  1  0      -> inner observes k0 k3 k4
            //   verdicts   v0  0  0 v3 v4  0      <- its bits, at the positions of the set bits
            let mut tracked = [0_u64; BATCH / 64];
            self.keys.clear();
            for (index, key) in keys.iter().enumerate() {
                if self.tracks(*key) {
                    tracked[index / 64] |= 1 << (index % 64);
                    self.keys.push(*key);
                }
            }
            self.verdicts.resize(self.keys.len().div_ceil(64), 0);
            let tracked_keys = Batch::new(&self.keys);
            self.inner.observe_batch(tracked_keys, &mut self.verdicts);
            let mut next = 0;
            for (word, mut tracked) in duplicates.iter_mut().zip(tracked) {
                *word = 0;
                while tracked != 0 {
                    let bit = tracked.trailing_zeros();
                    *word |= (self.verdicts[next / 64] >> (next % 64) & 1) << bit;
                    tracked &= tracked - 1;
                    next += 1;
                }
            }
        }
    }
}

impl<F: Filter> Filter for Tracked<F> {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        batch.observe_runs(duplicates, |tick, batch, duplicates| {
            if let Some(tick) = tick {
                self.inner.advance_to(tick);
            }
            self.observe_keys(batch.keys(), duplicates);
        });
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.tracks(key) && self.inner.contains(key)
    }

    fn clear(&mut self) {
        self.inner.clear();
    }

    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }

    /// The tally of the inner filter, which counts the tracked keys only. The adapter misses
    /// duplicates of all other keys, so the absence of evictions would promise too much.
    fn tally(&self) -> Tally {
        Tally {
            evictions: None,
            ..self.inner.tally()
        }
    }

    /// A new key is a false positive only if it is tracked. There is no age below which few
    /// duplicates are missed.
    fn report_on(&self, tally: Tally) -> Report {
        let inner = self.inner.report_on(tally);
        Report {
            expected_fpr: inner.expected_fpr.map(|fpr| fpr * self.fraction()),
            miss_age: None,
            ..inner
        }
    }

    fn slices(&self) -> Option<&dyn Sliced> {
        self.inner.slices()
    }

    fn slices_mut(&mut self) -> Option<&mut dyn Sliced> {
        self.inner.slices_mut()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hash::KeyHasher;
    use crate::verdicts::Verdicts;

    fn small() -> Box<dyn Filter> {
        let spec: crate::FilterSpec = "qqht:form=line,slots=64,bits=8,memory=512,seed=5"
            .parse()
            .expect("valid");
        spec.build().expect("small")
    }

    #[test]
    fn fractions_outside_their_range_are_rejected() {
        for fraction in [0.0, -0.5, 1.5, f64::NAN] {
            assert_eq!(
                TrackedFraction::new(fraction).map_err(|error| error.field),
                Err("tracked")
            );
        }
        assert_eq!(TrackedFraction::ALL.highest(), u64::MAX);
    }

    #[test]
    fn reports_promise_nothing_about_keys_that_are_not_tracked() {
        let spec: crate::FilterSpec = "rowlru:form=line,memory=64KiB".parse().expect("valid");
        let fraction = TrackedFraction::new(0.25).expect("valid");
        let (mut alone, mut tracked) = (
            spec.build().expect("small"),
            spec.tracked(fraction).build().expect("small"),
        );
        let keys = (0..1000).map(|key| KeyHasher::seeded(3).hash_u64(key));
        for key in keys.filter(|key| key.remix(TRACKED_STREAM) <= fraction.highest()) {
            alone.observe_one(key);
            tracked.observe_one(key);
        }
        let (inner, outer) = (alone.report(), tracked.report());
        assert_eq!(
            (inner.tally.evictions, outer.tally.evictions),
            (Some(0), None)
        );
        assert_eq!(outer.tally.cells, inner.tally.cells);
        assert!(inner.miss_age.is_some() && outer.miss_age.is_none());
        let ratio = outer.expected_fpr.unwrap() / inner.expected_fpr.unwrap();
        assert!((ratio - 0.25).abs() < 1e-9, "{ratio}");
    }

    proptest! {
        #[test]
        fn tracked_keys_get_the_verdicts_of_the_inner_filter_and_others_are_fresh(
            fraction in 0.01_f64..=1.0,
            keys in prop::collection::vec(0_u64..300, 0..1500),
        ) {
            let hasher = KeyHasher::seeded(3);
            let keys: Vec<KeyHash> = keys.into_iter().map(|key| hasher.hash_u64(key)).collect();
            let mut tracked = Tracked::new(small(), TrackedFraction::new(fraction).expect("valid"));
            let mut alone = small();
            let mut verdicts = Verdicts::new();
            tracked.observe(&keys, &mut verdicts);
            for (index, key) in keys.iter().enumerate() {
                let expected = tracked.tracks(*key)
                    && alone.observe_one(*key) == crate::Verdict::Duplicate;
                prop_assert_eq!(verdicts.is_duplicate(index), expected);
            }
            for key in &keys {
                let expected = tracked.tracks(*key) && alone.contains(*key);
                prop_assert_eq!(tracked.contains(*key), expected);
            }
            prop_assert_eq!(tracked.memory_bytes(), alone.memory_bytes());
            tracked.clear();
            prop_assert!(keys.iter().all(|key| !tracked.contains(*key)));
        }
    }
}
