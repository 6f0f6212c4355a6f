//! The audit of a filter without a window.

use echoless::extend::DetectedKernel;
use echoless::{KeyHash, Report, Verdict, Verdicts};

use crate::errors::{ErrorCounts, ErrorEstimates};
use crate::fresh_sample::FreshSample;
use crate::sampling::{KeyMap, find_sampled_and_held, is_sampled};
use crate::saved::saved;

/// The most keys in the sample: 64 Ki of 9 bytes each, about 1 MiB with the hash table around them.
const CAPACITY: usize = 1 << 16;

/// The halvings of the first sample: 1 key in 64, so that a stream of few keys costs little.
const FIRST_HALVINGS: u32 = 6;

/// The weight from which on few words have a chosen verdict.
const SPARSE: u64 = 16;

/// Estimates of the errors of a filter, with bounds, in fixed memory.
///
/// The estimates depend on the sequence of keys and verdicts, not on how it is cut into batches.
/// Missed duplicates are counted exactly while at most 4096 keys were reported as fresh.
///
/// An audit begins with its filter, and again when that is cleared or replaced: what the filter
/// holds before, the audit takes for false duplicates. A filter with a window forgets keys that
/// are over, which would count as missed here: it has a [`WindowAudit`](crate::WindowAudit).
///
/// # Examples
/// ```
/// use echoless_audit::Audit;
/// use echoless::{KeyHasher, Verdicts};
/// let hasher = KeyHasher::seeded(0);
/// let keys: Vec<_> = (0..100_000u64).map(|key| hasher.hash_u64(key)).collect();
/// let mut verdicts = Verdicts::new();
/// verdicts.reset(keys.len());
/// let mut audit = Audit::new();
/// audit.observe(&keys, &verdicts);
/// // No duplicate was observed, which leaves room for a few that were not sampled.
/// let missed = audit.estimates(None).missed_duplicates;
/// assert!(missed.is_unknown() && missed.high < 200);
/// // The same keys again, all reported as fresh: a hundred thousand missed duplicates.
/// audit.observe(&keys, &verdicts);
/// let missed = audit.estimates(None).missed_duplicates;
/// assert!(missed.low <= 100_000 && 100_000 <= missed.high);
/// assert!(missed.high - missed.low < 20_000);
/// ```
#[derive(Debug, Clone)]
pub struct Audit {
    /// What was found, apart from what `followed` counts.
    found: ErrorCounts,
    followed: FreshSample<()>,
    /// The keys of the sample that have arrived, and whether all verdicts on them were `Duplicate`.
    sample: KeyMap<bool>,
    /// The sample is 1 key in `2^halvings`.
    halvings: u32,
    kernel: DetectedKernel,
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
            found: ErrorCounts::sampled(1 << FIRST_HALVINGS),
            followed: FreshSample::new(),
            sample: KeyMap::default(),
            halvings: FIRST_HALVINGS,
            kernel: DetectedKernel::best(),
        }
    }

    /// Checks the verdicts on a batch of keys.
    ///
    /// # Panics
    /// If there are fewer verdicts than keys.
    pub fn observe(&mut self, keys: &[KeyHash], verdicts: &Verdicts) {
        assert!(verdicts.len() >= keys.len(), "one verdict for each key");
        for (keys, word) in keys.chunks(64).zip(verdicts.words()) {
            let fresh = !word & (u64::MAX >> (64 - keys.len()));
            let number = u64::from(fresh.count_ones());
            self.found.fresh += number;
            self.found.duplicates += keys.len() as u64 - number;
            if self.followed.choices.pass(number) {
                let concerned = self.concerned(keys, fresh);
                self.check_each(keys, fresh, concerned);
            } else if self.followed.choices.weight() < SPARSE {
                for (index, key) in keys.iter().enumerate() {
                    let fresh = fresh >> index & 1 == 1;
                    let chosen = fresh && self.followed.choices.choose();
                    self.check(*key, fresh, chosen);
                }
            } else {
                self.check_with_chosen(keys, fresh);
            }
        }
    }

    /// Checks the verdict on one key.
    ///
    /// # Examples
    /// ```
    /// use echoless_audit::Audit;
    /// use echoless::{Filter, FingerprintSpec, KeyHasher};
    /// let mut filter = FingerprintSpec::new(1 << 20).build()?;
    /// let mut audit = Audit::new();
    /// for key in ["a", "b", "a"].map(|key| KeyHasher::seeded(0).hash(key)) {
    ///     audit.observe_one(key, filter.observe_one(key));
    /// }
    /// let errors = audit.estimates(Some(&filter.report()));
    /// assert_eq!((errors.fresh, errors.duplicates, errors.missed_duplicates.high), (2, 1, 0));
    /// # Ok::<(), echoless::BuildError>(())
    /// ```
    pub fn observe_one(&mut self, key: KeyHash, verdict: Verdict) {
        let fresh = verdict == Verdict::Fresh;
        let count = if fresh {
            &mut self.found.fresh
        } else {
            &mut self.found.duplicates
        };
        *count += 1;
        let chosen = fresh && self.followed.choices.choose();
        self.check(key, fresh, chosen);
    }

    /// Checks the verdicts of a word, some of which are chosen.
    #[cold]
    fn check_with_chosen(&mut self, keys: &[KeyHash], fresh: u64) {
        let mut concerned = self.concerned(keys, fresh);
        let mut left = u64::MAX;
        loop {
            let before = self.followed.choices.before_chosen(fresh & left);
            self.check_each(keys, fresh, concerned & left & before);
            left &= !before;
            if fresh & left == 0 {
                return;
            }
            let index = (fresh & left).trailing_zeros();
            let added = keys[index as usize];
            let chosen = self.followed.choices.choose();
            self.check(added, true, chosen);
            left &= !(u64::MAX >> (63 - index));
            // The key is held from now on. Those that are held no longer may be checked all the
            // same.
            for (index, key) in keys.iter().enumerate() {
                concerned |= u64::from(*key == added) << index;
            }
        }
    }

    /// The keys of a word whose verdicts matter: those of the sample of keys, and the fresh ones
    /// that may be held.
    ///
    /// All keys are looked up before any is checked: branches on so many could not be predicted.
    #[inline]
    fn concerned(&self, keys: &[KeyHash], fresh: u64) -> u64 {
        let held = self.followed.bitmap();
        let (sampled, held) = find_sampled_and_held(self.kernel, keys, self.halvings, held);
        sampled | held & fresh
    }

    /// Checks the verdicts on the keys at the bits that are set in `concerned`, none of which is
    /// chosen.
    #[inline]
    fn check_each(&mut self, keys: &[KeyHash], fresh: u64, mut concerned: u64) {
        while concerned != 0 {
            let index = concerned.trailing_zeros();
            concerned &= concerned - 1;
            self.check(keys[index as usize], fresh >> index & 1 == 1, false);
        }
    }

    /// The errors so far. With the `report` of the filter at this moment, its own counters limit
    /// the estimates; see [`ErrorCounts::estimates`].
    #[must_use]
    pub fn estimates(&self, report: Option<&Report>) -> ErrorEstimates {
        self.counts().estimates(report)
    }

    /// The errors found so far. To estimate those of a part of the stream, subtract the counts at
    /// its beginning with [`ErrorCounts::since`].
    #[must_use]
    pub fn counts(&self) -> ErrorCounts {
        self.followed.complete(self.found)
    }

    fn check(&mut self, key: KeyHash, fresh: bool, chosen: bool) {
        if fresh && (chosen || self.followed.may_hold(key)) {
            self.followed.fresh(key, (), chosen, |()| true, |()| false);
        }
        if is_sampled(key, self.halvings) {
            self.check_sampled(key, fresh);
        }
    }

    fn check_sampled(&mut self, key: KeyHash, fresh: bool) {
        match self.sample.get_mut(&key) {
            Some(unrecorded) => {
                if fresh && *unrecorded {
                    self.found.missed_unrecorded.add();
                    *unrecorded = false;
                }
            }
            None => {
                if !fresh {
                    self.found.mistaken.add();
                }
                self.sample.insert(key, !fresh);
            }
        }
        // A smaller sample is a subset of the larger one, so what remains is still exact.
        while self.sample.len() > CAPACITY {
            self.halvings += 1;
            let halvings = self.halvings;
            self.sample.retain(|key, _| is_sampled(*key, halvings));
            self.found.missed_unrecorded.set_weight(1 << self.halvings);
            self.found.mistaken.set_weight(1 << self.halvings);
        }
    }
}

saved! {
    Audit { found, followed, sample, halvings, kernel }
}

#[cfg(test)]
mod tests {
    use echoless::KeyHasher;

    use super::*;
    use crate::Estimate;

    fn keys(range: std::ops::Range<u64>) -> Vec<KeyHash> {
        let hasher = KeyHasher::seeded(3);
        range.map(|key| hasher.hash_u64(key)).collect()
    }

    fn all_fresh(count: usize) -> Verdicts {
        let mut verdicts = Verdicts::new();
        verdicts.reset(count);
        verdicts
    }

    fn holds(estimate: Estimate, truth: u64) -> bool {
        estimate.low <= truth && truth <= estimate.high
    }

    #[test]
    fn estimates_stay_accurate_when_the_samples_are_halved() {
        let mut audit = Audit::new();
        let distinct = 8_000_000;
        let keys = keys(0..distinct);
        let verdicts = all_fresh(keys.len());
        audit.observe(&keys, &verdicts);
        assert!(audit.sample.len() <= CAPACITY);
        assert!(audit.halvings > 6);
        let missed = audit.estimates(None).missed_duplicates;
        assert_eq!((missed.value, missed.low), (0, 0));
        audit.observe(&keys, &verdicts);
        let missed = audit.estimates(None).missed_duplicates;
        assert!(holds(missed, distinct), "{missed:?}");
        assert!(missed.high - missed.low < distinct / 5, "{missed:?}");
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
        let mistaken = audit.estimates(None).false_duplicates;
        assert!(holds(mistaken, 12_500), "{mistaken:?}");
        assert!(mistaken.high - mistaken.low < 4000, "{mistaken:?}");
        // They were not recorded, so most filters report them as fresh next time.
        let unrecorded: Vec<_> = keys.iter().step_by(8).copied().collect();
        audit.observe(&unrecorded, &all_fresh(unrecorded.len()));
        let missed = audit.estimates(None).missed_duplicates;
        assert!(holds(missed, 12_500), "{missed:?}");
    }

    #[test]
    fn estimates_do_not_depend_on_batches() {
        let keys: Vec<_> = keys(0..300_000).into_iter().chain(keys(0..5000)).collect();
        let mut whole = Audit::new();
        whole.observe(&keys, &all_fresh(keys.len()));
        for size in [1, 777] {
            let mut parts = Audit::new();
            for part in keys.chunks(size) {
                parts.observe(part, &all_fresh(part.len()));
            }
            assert!(whole.estimates(None).missed_duplicates.value > 0);
            let mut single = Audit::new();
            for key in &keys {
                single.observe_one(*key, Verdict::Fresh);
            }
            assert_eq!(whole.counts(), single.counts());
            assert_eq!(whole.estimates(None), parts.estimates(None));
            assert_eq!(whole.halvings, parts.halvings);
        }
    }
}
