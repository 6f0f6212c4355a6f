//! Any filter on a hash-chosen share of the keys, so that a memory that is too small for all of them serves some well.

use crate::error::SpecError;
use crate::filters::Filter;
use crate::hash::KeyHash;
use crate::report::{Report, Tally};

/// The stream of the key hash that decides whether a key is tracked; no filter takes its positions from it.
const TRACKED_STREAM: u64 = 0x7472_6163_6b65_6421;

/// Keys handled at once, so that the scratch memory stays in the first-level cache.
const BATCH: usize = 512;

/// A share of the key space, chosen by hash: all arrivals of one key are inside, or none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrackedFraction(f64);

impl TrackedFraction {
    /// All keys.
    pub const ALL: Self = Self(1.0);

    /// The share t of the keys.
    ///
    /// # Errors
    /// [`SpecError`] unless 0 < t <= 1.
    pub fn new(share: f64) -> Result<Self, SpecError> {
        if share > 0.0 && share <= 1.0 {
            Ok(Self(share))
        } else {
            Err(SpecError::new(
                "tracked",
                share.to_string(),
                "a fraction above 0 and at most 1",
            ))
        }
    }

    /// The share, above 0 and at most 1.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Hashes up to here are tracked.
    fn highest(self) -> u64 {
        // 2^64 is out of range and saturates to the highest hash, which tracks every key.
        (self.0 * 2_f64.powi(64)) as u64
    }
}

/// A filter that follows a share t of the keys and answers Fresh for the others without touching memory.
///
/// Over all keys FNR = 1 - t (1 - FNR of the inner filter), which sees only the share t of the stream. For streams of known length: an endless
/// one still needs ageing or a window. Cache lines touched per key: those of the inner filter, or none.
///
/// # Examples
/// ```
/// use echoless::spec::{Ageing, BitsSpec};
/// use echoless::filters::adapters::tracked::{Tracked, TrackedFraction};
/// use echoless::{Filter, KeyHash, KeyHasher, Verdict};
/// let bloom = BitsSpec::new(4, Ageing::Never).build(1 << 20, 0)?;
/// let mut filter = Tracked::new(Box::new(bloom), TrackedFraction::new(0.25)?);
/// let hasher = KeyHasher::seeded(1);
/// let found = (0..8000)
///     .filter(|key| {
///         let key = hasher.hash_u64(key % 4000);
///         filter.observe_one(key) == Verdict::Duplicate
///     })
///     .count();
/// assert!((900..1100).contains(&found));
/// # Ok::<(), echoless::BuildError>(())
/// ```
pub struct Tracked {
    inner: Box<dyn Filter>,
    highest: u64,
    keys: Vec<KeyHash>,
    verdicts: Vec<u64>,
}

impl Tracked {
    /// Lets `inner` see only the keys of `share`.
    #[must_use]
    pub fn new(inner: Box<dyn Filter>, share: TrackedFraction) -> Self {
        Self {
            inner,
            highest: share.highest(),
            keys: Vec::with_capacity(BATCH),
            verdicts: Vec::with_capacity(BATCH / 64),
        }
    }

    #[inline(always)]
    fn follows(&self, key: KeyHash) -> bool {
        key.remix(TRACKED_STREAM) <= self.highest
    }
}

impl Filter for Tracked {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        assert_eq!(
            duplicates.len(),
            keys.len().div_ceil(64),
            "one verdict bit for each key"
        );
        for (keys, duplicates) in keys.chunks(BATCH).zip(duplicates.chunks_mut(BATCH / 64)) {
            let mut followed = [0_u64; BATCH / 64];
            self.keys.clear();
            for (index, key) in keys.iter().enumerate() {
                if self.follows(*key) {
                    followed[index / 64] |= 1 << (index % 64);
                    self.keys.push(*key);
                }
            }
            self.verdicts.resize(self.keys.len().div_ceil(64), 0);
            self.inner.observe_words(&self.keys, &mut self.verdicts);
            let mut next = 0;
            for (word, mut followed) in duplicates.iter_mut().zip(followed) {
                *word = 0;
                while followed != 0 {
                    let bit = followed.trailing_zeros();
                    *word |= (self.verdicts[next / 64] >> (next % 64) & 1) << bit;
                    followed &= followed - 1;
                    next += 1;
                }
            }
        }
    }

    fn advance_to(&mut self, tick: u64) {
        self.inner.advance_to(tick);
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.follows(key) && self.inner.contains(key)
    }

    fn clear(&mut self) {
        self.inner.clear();
    }

    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }

    /// The tally of the inner filter, which counts the tracked keys alone.
    fn tally(&self) -> Tally {
        self.inner.tally()
    }

    fn report_on(&self, tally: Tally) -> Report {
        self.inner.report_on(tally)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::filters::scattered::bits::{Ageing, BitsSpec};
    use crate::hash::KeyHasher;
    use crate::verdicts::Verdicts;

    fn bloom() -> Box<dyn Filter> {
        let spec = BitsSpec::new(3, Ageing::EachFilter);
        Box::new(spec.build(512, 5).expect("valid"))
    }

    #[test]
    fn shares_outside_their_range_are_refused() {
        for share in [0.0, -0.5, 1.5, f64::NAN] {
            assert_eq!(
                TrackedFraction::new(share).map_err(|error| error.field),
                Err("tracked")
            );
        }
        assert_eq!(TrackedFraction::ALL.highest(), u64::MAX);
    }

    proptest! {
        #[test]
        fn tracked_keys_are_answered_by_the_inner_filter_and_others_are_fresh(
            share in 0.01_f64..=1.0,
            keys in prop::collection::vec(0_u64..300, 0..1500),
        ) {
            let hasher = KeyHasher::seeded(3);
            let keys: Vec<KeyHash> = keys.into_iter().map(|key| hasher.hash_u64(key)).collect();
            let mut tracked = Tracked::new(bloom(), TrackedFraction::new(share).expect("valid"));
            let mut alone = bloom();
            let mut verdicts = Verdicts::new();
            tracked.observe(&keys, &mut verdicts);
            for (index, key) in keys.iter().enumerate() {
                let expected = tracked.follows(*key)
                    && alone.observe_one(*key) == crate::Verdict::Duplicate;
                prop_assert_eq!(verdicts.is_duplicate(index), expected);
            }
            for key in &keys {
                prop_assert_eq!(tracked.contains(*key), tracked.follows(*key) && alone.contains(*key));
            }
            prop_assert_eq!(tracked.memory_bytes(), alone.memory_bytes());
            tracked.clear();
            prop_assert!(keys.iter().all(|key| !tracked.contains(*key)));
        }
    }
}
