//! The shared filter: an array of atomic words, each updated by the rule of the layout.
//!
//! ```text
//!   key hash --> word index
//!
//!   load(Acquire) --> holds the key? -- yes --> Duplicate, nothing written
//!      ^                  | no
//!      |                  v
//!      |        compare_exchange(word with the key recorded)  -- succeeds --> Fresh
//!      |                  | fails: another thread was first
//!      +------------------+ test its word instead
//! ```
//!
//! A Bloom word only ever gains bits, so one `fetch_or` replaces the loop: of the threads that
//! record a key, the first in the order of modifications finds one of its bits clear.

use super::rule::{AgeingWord, BloomWord, RowWord, WordRule, with_rule};
use super::spec::SharedLayout;
use super::striped::StripedCount;
use crate::error::BuildError;
use crate::hash::KeyHash;
use crate::kernels::{BLOCK, LookAhead, Tuner, Tunes};
use crate::memory::{AtomicWords, Line, prefetch};
use crate::sync::{AtomicU64, Ordering};
use crate::verdicts::{Verdict, Verdicts};

/// A duplicate filter that any number of threads use concurrently through `&self`. Each key touches
/// one word of one cache line.
///
/// **The guarantee.** Of any number of threads that observe one new key, concurrently or one after
/// the other, exactly one gets [`Verdict::Fresh`]. For [`SharedLayout::Bloom`] this holds until the
/// filter is [cleared](Self::clear). For the other layouts the key must also not be forgotten in
/// between: a row forgets a key once as many other new keys as it has slots (4 or 2) are recorded
/// in its word, and an ageing word once other new keys clear one of the key's bits. A key that is a
/// false positive is a [`Verdict::Duplicate`] for every thread.
///
/// A thread that gets `Duplicate` also sees the writes that the thread that got `Fresh` made before
/// it observed the key (release and acquire).
///
/// # Examples
/// ```
/// use echoless::{KeyHasher, SharedLayout, SharedSpec, Verdict};
/// let filter = SharedSpec::new(1 << 20).layout(SharedLayout::Row4x16).build().unwrap();
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
    pub(super) words: AtomicWords,
    pub(super) layout: SharedLayout,
    /// The keys that were recorded, unless they are not counted.
    pub(super) fresh: Option<StripedCount>,
    /// The slots that are occupied, in rows whose keys are counted. Counted where a key takes an
    /// empty slot, which stops once the filter is full.
    pub(super) occupied: Option<StripedCount>,
    /// How many keys ahead of its update the line of a word is prefetched, and into which cache.
    pub(super) tuner: Tuner,
}

impl SharedFilter {
    pub(super) fn new(lines: u64, layout: SharedLayout) -> Result<Self, BuildError> {
        let has_slots = match layout {
            SharedLayout::Row4x16 | SharedLayout::Row2x32 => true,
            SharedLayout::Bloom { .. } | SharedLayout::Ageing { .. } => false,
        };
        Ok(Self {
            fresh: Some(StripedCount::default()),
            occupied: has_slots.then(StripedCount::default),
            ..Self::uncounted(lines, layout)?
        })
    }

    /// A filter that does not count the keys that it records, which saves memory.
    pub(super) fn uncounted(lines: u64, layout: SharedLayout) -> Result<Self, BuildError> {
        Ok(Self {
            words: AtomicWords::zeroed(lines)?,
            layout,
            fresh: None,
            occupied: None,
            tuner: with_rule!(layout, rule => tuner_of(rule, lines)),
        })
    }

    /// The layout of a word.
    #[must_use]
    pub const fn layout(&self) -> SharedLayout {
        self.layout
    }

    /// The memory of the words, in bytes. The count of the recorded keys takes 4 KiB more, and with
    /// rows that of the occupied slots as much again.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// Tests and records a batch in order; `verdicts` is resized to it.
    pub fn observe(&self, keys: &[KeyHash], verdicts: &mut Verdicts) {
        verdicts.reset(keys.len());
        let words = verdicts.words_mut();
        let taken = self.tuner.run(keys.len(), |look_ahead| {
            with_rule!(self.layout, rule => self.observe_batch(rule, look_ahead, keys, words))
        });
        if self.fresh.is_some() {
            self.count(keys.len() as u64 - verdicts.count_duplicates(), taken);
        }
    }

    /// Counts keys that were recorded, and the empty slots that they took.
    #[inline]
    fn count(&self, fresh: u64, taken: u64) {
        let add = |count: &Option<StripedCount>, more| {
            if let Some(count) = count
                && more > 0
            {
                count.add(more);
            }
        };
        // In this order, because a report reads the other way round: of the keys that it counts, it
        // takes none for an eviction that took an empty slot.
        add(&self.occupied, taken);
        add(&self.fresh, fresh);
    }

    /// Tests and records one key.
    pub fn observe_one(&self, key: KeyHash) -> Verdict {
        let word = &self.words[self.position(key)];
        let mut taken = 0;
        let duplicate = with_rule!(self.layout, rule => observe_word(rule, word, key, &mut taken));
        if !duplicate {
            self.count(1, taken);
        }
        Verdict::from_bit(duplicate)
    }

    /// Whether the key would be a duplicate now. Does not record it.
    #[must_use]
    pub fn contains(&self, key: KeyHash) -> bool {
        // Acquire: pairs with the Release half of the updates in `observe_word`.
        let word = self.words[self.position(key)].load(Ordering::Acquire);
        with_rule!(self.layout, rule => rule.holds(word, key))
    }

    /// Forgets all keys. A key that is observed concurrently may be forgotten or stay, and may be
    /// counted or not.
    pub fn clear(&self) {
        for count in [&self.fresh, &self.occupied].into_iter().flatten() {
            count.clear();
        }
        for word in self.words.iter() {
            // Release: pairs with the Acquire loads in `observe_word` and `contains`. A thread that
            // reads the zero sees what this thread wrote before.
            word.store(0, Ordering::Release);
        }
    }

    /// Copies lines, from number `first` on, word by word: each word as it is at some point of the
    /// call.
    pub(crate) fn copy_lines(&self, first: usize, into: &mut [Line]) {
        let (words, _) = self.words.as_chunks();
        for (line, words) in into.iter_mut().zip(&words[first..]) {
            // Acquire: pairs with the Release half of the updates in `observe_word`, so that the
            // counts behind a copy have what its keys' threads counted before.
            *line = Line(words.each_ref().map(|word| word.load(Ordering::Acquire)));
        }
    }

    /// Loads lines into empty ones, from number `first` on, and counts their occupied slots.
    pub(crate) fn load_lines(&mut self, first: usize, lines: &[Line]) {
        let (words, _) = self.words.as_chunks::<8>();
        let mut taken = 0;
        for (words, line) in words[first..].iter().zip(lines) {
            for (word, value) in words.iter().zip(line.0) {
                // Relaxed: sharing the filter with other threads orders this before.
                word.store(value, Ordering::Relaxed);
                taken += u64::from(self.layout.occupied(value));
            }
        }
        self.count(0, taken);
    }

    /// Sets how many keys were recorded.
    pub(crate) fn set_fresh(&mut self, fresh: u64) {
        if let Some(count) = &self.fresh {
            count.clear();
            count.add(fresh);
        }
    }

    /// The index of the key's word: the hash scaled to the number of words, so its high bits
    /// decide.
    #[inline(always)]
    fn position(&self, key: KeyHash) -> usize {
        key.line(self.words.len() as u64) as usize
    }

    /// Returns how many keys took an empty slot.
    #[inline(always)]
    fn observe_batch<R: WordRule>(
        &self,
        rule: R,
        look_ahead: LookAhead,
        keys: &[KeyHash],
        duplicates: &mut [u64],
    ) -> u64 {
        let words = &self.words[..];
        let mut taken = 0;
        let (distance, cache) = (look_ahead.blocks() * BLOCK, look_ahead.cache());
        for key in keys.iter().take(distance) {
            prefetch(words, self.position(*key), cache);
        }
        let mut ahead = keys.iter().skip(distance);
        for (keys, duplicates) in keys.chunks(64).zip(duplicates) {
            let mut bits = 0;
            for key in keys {
                if let Some(next) = ahead.next() {
                    prefetch(words, self.position(*next), cache);
                }
                let word = &words[self.position(*key)];
                let duplicate = observe_word(rule, word, *key, &mut taken);
                bits = bits << 1 | u64::from(duplicate);
            }
            // Shifted in from the right, the first key's bit is the highest; it belongs in bit 0.
            *duplicates = bits.reverse_bits() >> (64 - keys.len());
        }
        taken
    }
}

/// The tuner of the loop of a rule.
fn tuner_of<R: WordRule>(_rule: R, lines: u64) -> Tuner {
    Tuner::new::<R>(lines, Tunes::BlocksAndCache)
}

/// Tests and records a key in its word. Returns true if it is a duplicate. Counts in `taken` if it
/// took an empty slot, only where a key is recorded: duplicates, which write nothing, cost nothing.
#[inline(always)]
fn observe_word<R: WordRule>(rule: R, word: &AtomicU64, key: KeyHash, taken: &mut u64) -> bool {
    // Acquire: pairs with the Release half of the updates below, so a Duplicate sees what the Fresh
    // thread wrote before. A recurring key returns after this load, without a write: its cache line
    // stays shared between cores.
    let mut seen = word.load(Ordering::Acquire);
    while !rule.holds(seen, key) {
        let recorded = rule.record(seen, key);
        if R::ONLY_SETS {
            // AcqRel: the Release half pairs with the Acquire of the load above, of `contains` and
            // of this operation in other threads. All updates of a word have one order, and the
            // first one for this key finds one of its bits clear.
            let before = word.fetch_or(rule.record(0, key), Ordering::AcqRel);
            return rule.holds(before, key);
        }
        // AcqRel: the Release half pairs as above. Acquire on failure: the new word may hold the
        // key, which makes it a Duplicate of the other thread's Fresh.
        match word.compare_exchange_weak(seen, recorded, Ordering::AcqRel, Ordering::Acquire) {
            Ok(before) => {
                *taken += u64::from(rule.takes_empty_slot(before));
                return false;
            }
            Err(now) => seen = now,
        }
    }
    true
}
