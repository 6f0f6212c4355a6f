//! The shared filter: an array of atomic words under one of the rules.

use super::rule::{AgeingBits, Bits, Row, WordRule, with_rule};
use super::spec::SharedLayout;
use crate::error::MemoryError;
use crate::hash::KeyHash;
use crate::memory::{AtomicWords, prefetch};
use crate::sync::{AtomicU64, Ordering};
use crate::verdicts::{Verdict, Verdicts};

/// How many keys ahead a word's line is fetched.
const AHEAD: usize = 128;

/// A duplicate filter that any number of threads use at once through `&self`. One word of one cache line is touched for each key.
///
/// **The promise.** Of any number of threads that observe one new key, at once or one after the other, exactly one hears
/// [`Verdict::Fresh`]. For [`SharedLayout::Bloom`] this holds as long as nobody [clears](Self::clear) the filter. For the forms that age,
/// the key must not be forgotten meanwhile either: a row forgets a key when as many other new keys (4 or 2) came to its word, an ageing
/// Bloom word when other new keys cleared one of its bits. A false positive is heard by all as [`Verdict::Duplicate`].
///
/// Who hears `Duplicate` also sees what the thread that heard `Fresh` wrote before it observed the key (release and acquire).
///
/// # Examples
/// ```
/// use echoless::{KeyHasher, SharedLayout, SharedSpec, Verdict};
/// let filter = SharedSpec::new(1 << 20, SharedLayout::Row4x16).build().unwrap();
/// let key = KeyHasher::seeded(0).hash(b"call 17");
/// let fresh = std::thread::scope(|scope| {
///     let threads = [(); 4].map(|()| scope.spawn(|| filter.observe_one(key)));
///     let verdicts = threads.map(|thread| thread.join().unwrap());
///     verdicts.iter().filter(|verdict| **verdict == Verdict::Fresh).count()
/// });
/// assert_eq!(fresh, 1);
/// ```
#[derive(Debug)]
pub struct SharedFilter {
    words: AtomicWords,
    form: SharedLayout,
}

impl SharedFilter {
    pub(super) fn new(lines: u64, form: SharedLayout) -> Result<Self, MemoryError> {
        Ok(Self {
            words: AtomicWords::zeroed(lines)?,
            form,
        })
    }

    /// What a word holds.
    #[must_use]
    pub const fn form(&self) -> SharedLayout {
        self.form
    }

    /// The memory of the words, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// Tests and records a batch in order; `verdicts` is resized to it.
    pub fn observe(&self, keys: &[KeyHash], verdicts: &mut Verdicts) {
        verdicts.reset(keys.len());
        let words = verdicts.words_mut();
        with_rule!(self.form, rule => self.observe_batch(rule, keys, words));
    }

    /// Tests and records one key.
    pub fn observe_one(&self, key: KeyHash) -> Verdict {
        let word = &self.words[self.position(key)];
        let duplicate = with_rule!(self.form, rule => observe_word(rule, word, key));
        if duplicate {
            Verdict::Duplicate
        } else {
            Verdict::Fresh
        }
    }

    /// Whether the key would be called a duplicate now. Records nothing.
    #[must_use]
    pub fn contains(&self, key: KeyHash) -> bool {
        // Acquire: pairs with the Release half of `observe_word`.
        let word = self.words[self.position(key)].load(Ordering::Acquire);
        with_rule!(self.form, rule => rule.holds(word, key))
    }

    /// Forgets everything. Keys that are observed meanwhile may stay or be forgotten.
    pub fn clear(&self) {
        for word in self.words.iter() {
            word.store(0, Ordering::Release);
        }
    }

    /// The probability that a key never seen before would now be called a duplicate, from a pass over all words.
    #[must_use]
    pub fn expected_fpr(&self) -> f64 {
        let words = self.words.iter().map(|word| word.load(Ordering::Relaxed));
        let rate = |word: u64| match self.form {
            SharedLayout::Row4x16 => f64::from(taken::<16>(word)) / f64::from(1 << 16),
            SharedLayout::Row2x32 => f64::from(taken::<32>(word)) / 2f64.powi(32),
            SharedLayout::Bloom { k } | SharedLayout::Ageing { k } => {
                (f64::from(word.count_ones()) / 64.0).powi(k as i32)
            }
        };
        words.map(rate).sum::<f64>() / self.words.len() as f64
    }

    #[inline(always)]
    fn position(&self, key: KeyHash) -> usize {
        key.line(self.words.len() as u64) as usize
    }

    #[inline(always)]
    fn observe_batch<R: WordRule>(&self, rule: R, keys: &[KeyHash], duplicates: &mut [u64]) {
        let words = &self.words[..];
        for key in keys.iter().take(AHEAD) {
            prefetch(words, self.position(*key));
        }
        let mut ahead = keys.iter().skip(AHEAD);
        for (keys, duplicates) in keys.chunks(64).zip(duplicates) {
            let mut bits = 0;
            for key in keys {
                if let Some(next) = ahead.next() {
                    prefetch(words, self.position(*next));
                }
                let duplicate = observe_word(rule, &words[self.position(*key)], *key);
                bits = bits << 1 | u64::from(duplicate);
            }
            *duplicates = bits.reverse_bits() >> (64 - keys.len());
        }
    }
}

/// Tests and records a key in its word; true if it is a duplicate.
#[inline(always)]
fn observe_word<R: WordRule>(rule: R, word: &AtomicU64, key: KeyHash) -> bool {
    // Acquire: pairs with the Release half of the swaps below. A hot key is answered here, and its line stays shared.
    let mut seen = word.load(Ordering::Acquire);
    while !rule.holds(seen, key) {
        let recorded = rule.record(seen, key);
        if R::ONLY_SETS {
            // AcqRel: pairs with itself and with the load. All updates of a word have one order; the first of this key finds a bit clear.
            let before = word.fetch_or(rule.record(0, key), Ordering::AcqRel);
            return rule.holds(before, key);
        }
        // AcqRel: as above. If another thread was first, what it wrote is looked at anew, and it may hold the key now.
        match word.compare_exchange_weak(seen, recorded, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return false,
            Err(now) => seen = now,
        }
    }
    true
}

/// How many slots of a row are taken.
fn taken<const BITS: u32>(word: u64) -> u32 {
    let slot = |index: u32| word >> (index * BITS) & (u64::MAX >> (64 - BITS));
    (0..64 / BITS).filter(|index| slot(*index) != 0).count() as u32
}
