//! Verdicts without errors: a filter, and a set of all keys that is asked only where the filter may
//! be wrong.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fmt;
use std::hash::BuildHasher;
use std::mem;

use echoless::hash::{KeyDigest, KeyDigester};
use echoless::{KeyHash, KeyHasher, LineFilter, SpecError, Verdict, Verdicts};

/// A set of digests: a [`HashSet`], a [`DigestStore`](crate::DigestStore), or a database.
pub trait DigestSet {
    /// Why a call failed.
    type Error;

    /// Finds which of these digests are in the set. They are in ascending order, each once, and
    /// `found` gets the index of each that is.
    ///
    /// # Errors
    /// Those of the set.
    fn find(
        &mut self,
        sorted: &[KeyDigest],
        found: &mut dyn FnMut(usize),
    ) -> Result<(), Self::Error>;

    /// Adds digests that are not in the set, each once.
    ///
    /// # Errors
    /// Those of the set.
    fn insert_all(&mut self, digests: &[KeyDigest]) -> Result<(), Self::Error>;
}

impl<B: BuildHasher> DigestSet for HashSet<KeyDigest, B> {
    type Error = Infallible;

    fn find(
        &mut self,
        sorted: &[KeyDigest],
        found: &mut dyn FnMut(usize),
    ) -> Result<(), Infallible> {
        let digests = sorted.iter().enumerate();
        let known = digests.filter(|(_, digest)| self.contains(*digest));
        known.for_each(|(index, _)| found(index));
        Ok(())
    }

    fn insert_all(&mut self, digests: &[KeyDigest]) -> Result<(), Infallible> {
        self.extend(digests);
        Ok(())
    }
}

/// A filter whose verdicts are those of an unbounded set.
///
/// A verdict `Fresh` of the filter is right as long as it has evicted nothing; other keys are looked
/// up in the set. So a set on a disk or behind a network gets two calls for a batch: one for the keys
/// that were seen before and few others, and one with the new keys. Once the filter has evicted a key,
/// all are looked up: give it the memory for all keys
/// ([`FingerprintGeometry::for_keys`](echoless::FingerprintGeometry::for_keys)).
///
/// A key is compared by its [digest](KeyDigest), of 128 bits: of `n` different keys, any two have
/// one with a probability below `n^2 / 2^129`, crafted ones too.
///
/// Verdicts depend on the set alone, so it may lose keys that the filter has: after a crash, those
/// that were not committed. The filter may not lack keys of the set.
///
/// # Examples
/// ```
/// use std::collections::HashSet;
/// use echoless::hash::{KeyDigest, KeyDigester};
/// use echoless::{FingerprintSpec, KeyHasher, Verdict, Verdicts};
/// use echoless_durable::Verified;
/// // One line: most verdicts of the filter are wrong.
/// let filter = FingerprintSpec::new(64).build()?;
/// let set: HashSet<KeyDigest> = HashSet::new();
/// let hasher = KeyHasher::seeded(0);
/// let mut calls = Verified::new(filter, set, hasher, KeyDigester::random())?;
/// let mut verdicts = Verdicts::new();
/// let keys: Vec<_> = (0..1000_u32).map(u32::to_le_bytes).collect();
/// calls.observe(&keys, &mut verdicts)?;
/// assert_eq!(verdicts.count_duplicates(), 0);
/// calls.observe(&keys[..10], &mut verdicts)?;
/// assert_eq!(verdicts.count_duplicates(), 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Verified<F, S> {
    filter: F,
    set: S,
    hasher: KeyHasher,
    digester: KeyDigester,
    /// The hashes of a batch.
    hashes: Vec<KeyHash>,
    /// Its digests.
    digests: Vec<KeyDigest>,
    /// Those of them that are looked up, and then those that are added.
    suspects: Vec<KeyDigest>,
    /// Those that the set has, or a key before in the batch.
    seen: HashSet<KeyDigest>,
}

impl<F: fmt::Debug, S: fmt::Debug> fmt::Debug for Verified<F, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Verified");
        debug.field("filter", &self.filter).field("set", &self.set);
        debug.finish_non_exhaustive()
    }
}

impl<F: LineFilter, S: DigestSet> Verified<F, S> {
    /// A filter that has all keys of the set, or both have none.
    ///
    /// # Errors
    /// [`SpecError`] if the filter has a window, or does not count what it evicts.
    pub fn new(
        filter: F,
        set: S,
        hasher: KeyHasher,
        digester: KeyDigester,
    ) -> Result<Self, SpecError> {
        if filter.next_era() != u64::MAX || filter.counters().evictions.is_none() {
            let allowed = "a filter without a window that counts what it evicts";
            return Err(SpecError::new("filter", filter.parameters(), allowed));
        }
        Ok(Self {
            filter,
            set,
            hasher,
            digester,
            hashes: Vec::new(),
            digests: Vec::new(),
            suspects: Vec::new(),
            seen: HashSet::new(),
        })
    }

    /// Judges keys of bytes and records them. A key that is twice in the batch is a duplicate the
    /// second time.
    ///
    /// Cache lines: those of the filter, and a digest of each key.
    ///
    /// # Errors
    /// Those of the set. Keys of this batch that it has count as seen: go back to where it was before
    /// the batch is judged again, as after a crash.
    pub fn observe<K: AsRef<[u8]>>(
        &mut self,
        keys: &[K],
        verdicts: &mut Verdicts,
    ) -> Result<(), S::Error> {
        let (mut hashes, mut digests) = (mem::take(&mut self.hashes), mem::take(&mut self.digests));
        hashes.clear();
        hashes.extend(keys.iter().map(|key| self.hasher.hash(key.as_ref())));
        digests.clear();
        digests.extend(keys.iter().map(|key| self.digester.digest(key)));
        let observed = self.observe_digests(&hashes, &digests, verdicts);
        (self.hashes, self.digests) = (hashes, digests);
        observed
    }

    /// As [`observe`](Self::observe), of keys that the caller has hashed: equal keys have equal
    /// hashes and digests, and no other key their digest.
    ///
    /// # Errors
    /// As [`observe`](Self::observe).
    ///
    /// # Panics
    /// If there is not one digest for each hash.
    pub fn observe_digests(
        &mut self,
        hashes: &[KeyHash],
        digests: &[KeyDigest],
        verdicts: &mut Verdicts,
    ) -> Result<(), S::Error> {
        assert_eq!(hashes.len(), digests.len(), "one digest for each hash");
        self.filter.observe(hashes, verdicts);
        // An eviction in this batch counts for all of it.
        let is_complete = self.filter.counters().evictions == Some(0);
        self.suspects.clear();
        let suspects = digests.iter().enumerate();
        let suspects = suspects.filter(|(key, _)| !is_complete || verdicts.is_duplicate(*key));
        self.suspects.extend(suspects.map(|(_, digest)| *digest));
        self.suspects.sort_unstable();
        self.suspects.dedup();
        self.seen.clear();
        let (suspects, seen) = (&self.suspects, &mut self.seen);
        self.set.find(suspects, &mut |found| {
            seen.insert(suspects[found]);
        })?;
        self.suspects.clear();
        for (key, digest) in digests.iter().enumerate() {
            let is_fresh = self.seen.insert(*digest);
            if is_fresh {
                self.suspects.push(*digest);
            }
            let verdict = match is_fresh {
                true => Verdict::Fresh,
                false => Verdict::Duplicate,
            };
            verdicts.set(key, verdict);
        }
        self.set.insert_all(&self.suspects)
    }

    /// The filter.
    #[must_use]
    pub const fn filter(&self) -> &F {
        &self.filter
    }

    /// The filter, such as to save it.
    #[must_use]
    pub const fn filter_mut(&mut self) -> &mut F {
        &mut self.filter
    }

    /// The set, such as to make it durable.
    #[must_use]
    pub const fn set_mut(&mut self) -> &mut S {
        &mut self.set
    }

    /// The filter and the set.
    #[must_use]
    pub fn into_parts(self) -> (F, S) {
        (self.filter, self.set)
    }
}

#[cfg(test)]
mod tests {
    use echoless::{FilterSpec, FingerprintSpec, SlotWidth};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A set that counts what it is asked for, and may fail.
    #[derive(Default)]
    struct Counted {
        digests: HashSet<KeyDigest>,
        looked_up: usize,
        fails_at: Option<usize>,
        calls: usize,
    }

    impl Counted {
        fn call(&mut self) -> Result<(), ()> {
            self.calls += 1;
            if self.fails_at == Some(self.calls) {
                Err(())
            } else {
                Ok(())
            }
        }
    }

    impl DigestSet for Counted {
        type Error = ();

        fn find(&mut self, sorted: &[KeyDigest], found: &mut dyn FnMut(usize)) -> Result<(), ()> {
            assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]));
            self.call()?;
            self.looked_up += sorted.len();
            let Ok(()) = self.digests.find(sorted, found);
            Ok(())
        }

        fn insert_all(&mut self, digests: &[KeyDigest]) -> Result<(), ()> {
            for digest in digests {
                self.add(*digest)?;
            }
            Ok(())
        }
    }

    impl Counted {
        fn add(&mut self, digest: KeyDigest) -> Result<(), ()> {
            self.call()?;
            assert!(
                self.digests.insert(digest),
                "a digest that is not in the set"
            );
            Ok(())
        }
    }

    fn verified(lines: u64, width: SlotWidth) -> Verified<Box<dyn LineFilter>, Counted> {
        let spec = FingerprintSpec::new(64 * lines).slot_width(width);
        let spec = FilterSpec::try_from(&spec).unwrap();
        let (set, hasher) = (Counted::default(), KeyHasher::seeded(1));
        Verified::new(
            spec.build_lines().unwrap(),
            set,
            hasher,
            KeyDigester::keyed([2; 16]),
        )
        .unwrap()
    }

    proptest! {
        #[test]
        fn verdicts_are_those_of_a_set(
            batches in vec(vec(0_u32..3000, 0..300), 1..20),
            lines in prop::sample::select(vec![1_u64, 7, 60, 1000]),
            width in prop::sample::select(vec![SlotWidth::Bits8, SlotWidth::Bits32]),
            fails_at in prop::option::of(1_usize..400),
        ) {
            let mut filter = verified(lines, width);
            filter.set.fails_at = fails_at;
            let mut model = HashSet::new();
            let mut verdicts = Verdicts::new();
            for batch in batches {
                let keys: Vec<_> = batch.iter().map(|key| key.to_le_bytes()).collect();
                if filter.observe(&keys, &mut verdicts).is_err() {
                    // What the set has counts as seen, and nothing else.
                    let has = |key: &&[u8; 4]| {
                        filter.set.digests.contains(&filter.digester.digest(**key))
                    };
                    model = (0..3000_u32).map(u32::to_le_bytes).filter(|key| has(&key)).collect();
                    continue;
                }
                for (index, key) in keys.iter().enumerate() {
                    prop_assert_eq!(verdicts.is_duplicate(index), !model.insert(*key));
                }
            }
        }
    }

    #[test]
    fn only_suspects_are_looked_up_until_a_key_is_evicted() {
        let mut filter = verified(1000, SlotWidth::Bits32);
        let keys: Vec<_> = (0..4000_u32).map(u32::to_le_bytes).collect();
        let mut verdicts = Verdicts::new();
        filter.observe(&keys, &mut verdicts).unwrap();
        assert_eq!(filter.filter().counters().evictions, Some(0));
        assert!(filter.set.looked_up < 3, "{}", filter.set.looked_up);
        filter.observe(&keys[..100], &mut verdicts).unwrap();
        assert!((100..103).contains(&filter.set.looked_up));
        assert_eq!(verdicts.count_duplicates(), 100);
        let (mut evicting, _) = (verified(1, SlotWidth::Bits32), ());
        evicting.observe(&keys, &mut verdicts).unwrap();
        assert_eq!(evicting.set.looked_up, 4000);
    }

    #[test]
    fn a_filter_that_forgets_is_rejected() {
        for spec in [
            "stamped:window=10,memory=1KiB",
            "clocked:window=10,memory=1KiB",
        ] {
            let filter = spec.parse::<FilterSpec>().unwrap().build_lines().unwrap();
            let (set, hasher) = (Counted::default(), KeyHasher::seeded(1));
            let error = Verified::new(filter, set, hasher, KeyDigester::random())
                .err()
                .unwrap();
            let allowed = "expected a filter without a window that counts what it evicts";
            assert!(error.to_string().ends_with(allowed), "{error}");
        }
    }
}
