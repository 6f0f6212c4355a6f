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

use super::clock::SharedClock;
use super::rule::{AgeingWord, BloomWord, RowWord, WordRule, with_rule};
use super::spec::SharedLayout;
use super::stamped::StampedWord;
use super::striped::StripedCount;
use crate::error::BuildError;
use crate::filters::lines::Progress;
use crate::filters::{Batch, Ticks};
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
/// **Windows.** With [`SharedLayout::Stamped`] the filter has one clock for all threads, the
/// largest tick that any call has passed; the first value is 0. Calls pass ticks as those of
/// [`Filter`](crate::Filter) do, and [`Window`](crate::Window) states how long a key is remembered.
/// A call judges and records its keys at the clock of its beginning, and from a later tick of its
/// own keys on at that one. A **late** key, whose tick is before the clock, is judged at the clock.
///
/// - Of the threads that observe a new key, exactly one gets `Fresh`, unless two other new keys are
///   recorded in its word meanwhile. Threads may be up to a window apart: a key is also a duplicate
///   of one that a thread with a later clock has recorded.
/// - A key whose window ends while a call observes it is fresh or a duplicate. So is one whose
///   window ends 1/64 of a window later (or a granule, if that is longer) while another call moves
///   the clock over that end.
/// - This holds as long as calls return before the clock is more than the window past the tick at
///   which they judge. One that is overtaken by more, such as that of a thread that loses its core
///   for so long, or that judges while another one moves the clock over more than nearly 14
///   windows, may find keys fresh that others have recorded meanwhile, and may forget keys of the
///   words that it touches. What it records may be remembered when it should not be: for two
///   windows at most before the stamps of slots have wrapped around (in 4096 units, 16 windows or
///   more), and longer if duplicates renew it. Other words are not affected.
/// - A call that loses its core while it moves the clock can forget a key that was recorded
///   meanwhile only if the word is bit for bit what it was before: the same keys, a whole wrap
///   later.
///
/// No thread and no timer removes what has expired: the call that moves the clock sweeps a part of
/// the words before, in proportion to how far it moves. That is all words in nearly 14 windows, and
/// twice all of them in one call if the clock jumps over so many.
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
/// With a window of 600 ticks:
/// ```
/// use echoless::{Batch, KeyHasher, SharedSpec, Verdict, Verdicts};
/// let spec: SharedSpec = "stamped:window=600,refresh=false,memory=1MiB".parse()?;
/// let filter = spec.build()?;
/// let keys = [KeyHasher::seeded(0).hash(b"alarm 17"); 3];
/// let mut verdicts = Verdicts::new();
/// std::thread::scope(|scope| scope.spawn(|| filter.advance_to(1000)).join().unwrap());
/// // The second is late: it is judged at the clock.
/// filter.observe(Batch::at_each(&keys, &[1000, 400, 1600]), &mut verdicts);
/// assert_eq!(verdicts.to_bools(), [false, true, true]);
/// // A key may be remembered some ticks longer than the window.
/// let window = filter.report().window.unwrap();
/// filter.advance_to(1000 + window.ticks + window.granule);
/// assert_eq!(filter.observe_one(keys[0]), Verdict::Fresh);
/// # Ok::<(), echoless::BuildError>(())
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
    /// The keys that were evicted before their window was over, if keys are counted.
    pub(super) evicted: Option<StripedCount>,
    /// The clock, in the layout with a window.
    pub(super) clock: Option<SharedClock>,
    /// How many keys ahead of its update the line of a word is prefetched, and into which cache.
    pub(super) tuner: Tuner,
}

impl SharedFilter {
    pub(super) fn new(lines: u64, layout: SharedLayout) -> Result<Self, BuildError> {
        let is_row = matches!(layout, SharedLayout::Row4x16 | SharedLayout::Row2x32);
        let has_window = matches!(layout, SharedLayout::Stamped { .. });
        Ok(Self {
            fresh: Some(StripedCount::default()),
            occupied: is_row.then(StripedCount::default),
            evicted: has_window.then(StripedCount::default),
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
            evicted: None,
            clock: match layout {
                SharedLayout::Stamped { window, .. } => Some(SharedClock::new(window)),
                _ => None,
            },
            tuner: with_rule!(layout, rule => tuner_of(rule, lines)),
        })
    }

    /// The layout of a word.
    #[must_use]
    pub const fn layout(&self) -> SharedLayout {
        self.layout
    }

    /// The memory of the words, in bytes. The count of the recorded keys takes 4 KiB more, and with
    /// rows that of the occupied slots as much again, or with a window that of the evicted keys.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// The first tick of the current unit of the clock; 0 without a window.
    #[must_use]
    pub fn tick(&self) -> u64 {
        let clock = self.clock.as_ref();
        clock.map_or(0, |clock| clock.tick(clock.now()))
    }

    /// Moves the clock to `tick`: a [batch](Batch::at) without keys. An earlier tick has no effect,
    /// and neither has any without a window.
    pub fn advance_to(&self, tick: u64) {
        self.observe_batch(Batch::at(&[], tick), &mut []);
    }

    /// Tests and records a batch in order, and moves the clock to its ticks; `verdicts` is resized
    /// to it.
    pub fn observe<'b>(&self, batch: impl Into<Batch<'b>>, verdicts: &mut Verdicts) {
        let batch = batch.into();
        verdicts.reset(batch.keys().len());
        self.observe_batch(batch, verdicts.words_mut());
    }

    /// As [`observe`](Self::observe). The bits of `duplicates` are those of
    /// [`Filter::observe_batch`](crate::Filter::observe_batch).
    ///
    /// # Panics
    /// If `duplicates` is not `keys.len().div_ceil(64)` words long.
    pub fn observe_batch(&self, batch: Batch<'_>, duplicates: &mut [u64]) {
        batch.check_length(duplicates);
        let count = batch.keys().len();
        let counts = self.tuner.run(count, |look_ahead| {
            with_rule!(self.layout, rule => self.observe_in(rule, look_ahead, batch, duplicates))
        });
        if self.fresh.is_some() {
            let found = duplicates.iter().map(|word| u64::from(word.count_ones()));
            self.count(count as u64 - found.sum::<u64>(), counts);
        }
    }

    /// Counts keys that were recorded, and what became of their slots.
    #[inline]
    fn count(&self, fresh: u64, counts: Counts) {
        let add = |count: &Option<StripedCount>, more| {
            if let Some(count) = count
                && more > 0
            {
                count.add(more);
            }
        };
        // In this order, because a report reads the other way round: of the keys that it counts, it
        // takes none for an eviction that took an empty slot.
        add(&self.occupied, counts.taken);
        add(&self.fresh, fresh);
        add(&self.evicted, counts.evicted);
    }

    /// Tests and records one key.
    pub fn observe_one(&self, key: KeyHash) -> Verdict {
        let word = &self.words[self.position(key)];
        let mut counts = Counts::default();
        let duplicate = with_rule!(self.layout, rule => {
            if let Some(clock) = self.clock_of(rule) {
                clock.will_hold_times();
            }
            observe_word(self.now(rule), word, key, &mut counts)
        });
        if !duplicate {
            self.count(1, counts);
        }
        Verdict::from_bit(duplicate)
    }

    /// Whether the key would be a duplicate now, at the clock. Does not record it.
    #[must_use]
    pub fn contains(&self, key: KeyHash) -> bool {
        // Acquire: pairs with the Release half of the updates in `observe_word`.
        let word = self.words[self.position(key)].load(Ordering::Acquire);
        with_rule!(self.layout, rule => self.now(rule).holds(word, key))
    }

    /// Forgets all keys, and moves the clock back to 0. A key that is observed concurrently may be
    /// forgotten or stay, and may be counted or not. With a window, no thread may observe keys or
    /// save meanwhile: their times would be those of the clock before.
    pub fn clear(&self) {
        let counts = [&self.fresh, &self.occupied, &self.evicted];
        for count in counts.into_iter().flatten() {
            count.clear();
        }
        if let Some(clock) = &self.clock {
            clock.restart();
        }
        for word in self.words.iter() {
            // Release: pairs with the Acquire loads in `observe_word` and `contains`. A thread that
            // reads the zero sees what this thread wrote before.
            word.store(0, Ordering::Release);
        }
    }

    /// Copies lines, from number `first` on, word by word: each word as it is at some point of the
    /// call, with a window as it is saved at `tick`, which the clock has reached.
    pub(crate) fn copy_lines(&self, first: usize, tick: u64, into: &mut [Line]) {
        let (words, _) = self.words.as_chunks();
        let copy = |word: &AtomicU64| match &self.clock {
            // Acquire: pairs with the Release half of the updates in `observe_word`, so that the
            // counts behind a copy have what its keys' threads counted before.
            None => word.load(Ordering::Acquire),
            Some(clock) => clock.copy_at(tick, word),
        };
        for (line, words) in into.iter_mut().zip(&words[first..]) {
            *line = Line(words.each_ref().map(copy));
        }
    }

    /// Loads lines into empty ones, from number `first` on, and counts their occupied slots.
    pub(crate) fn load_lines(&mut self, first: usize, lines: &[Line]) {
        let (words, _) = self.words.as_chunks::<8>();
        for (words, line) in words[first..].iter().zip(lines) {
            for (word, value) in words.iter().zip(line.0) {
                // Relaxed: sharing the filter with other threads orders this before.
                word.store(value, Ordering::Relaxed);
            }
        }
        let (taken, evicted) = (self.occupied_slots(lines), 0);
        self.count(0, Counts { taken, evicted });
    }

    /// Whether the occupied slots are counted where keys take them.
    pub(crate) const fn counts_slots(&self) -> bool {
        self.occupied.is_some()
    }

    /// The slots, or bits, of lines of this filter that are occupied.
    pub(crate) fn occupied_slots(&self, lines: &[Line]) -> u64 {
        let words = lines.iter().flat_map(|line| line.0);
        words
            .map(|word| u64::from(self.layout.occupied(word)))
            .sum()
    }

    /// Sets the counts and the clock to those of a saved filter.
    pub(crate) fn set_progress(&mut self, progress: &Progress) {
        let counts = [
            (&self.fresh, progress.fresh),
            (&self.evicted, progress.evictions),
        ];
        for (count, saved) in counts {
            if let Some(count) = count {
                count.clear();
                count.add(saved);
            }
        }
        if let Some(clock) = &self.clock {
            clock.restore(progress.tick);
        }
    }

    /// The index of the key's word: the hash scaled to the number of words, so its high bits
    /// decide.
    #[inline(always)]
    fn position(&self, key: KeyHash) -> usize {
        key.line(self.words.len() as u64) as usize
    }

    /// The rule at the clock as it is.
    #[inline(always)]
    fn now<R: WordRule>(&self, rule: R) -> R {
        match self.clock_of(rule) {
            Some(clock) => rule.at(clock.ages(clock.now())),
            None => rule,
        }
    }

    /// The clock, if the rule has one. Other rules do not look for it.
    #[inline(always)]
    fn clock_of<R: WordRule>(&self, _rule: R) -> Option<&SharedClock> {
        self.clock.as_ref().filter(|_| R::HAS_CLOCK)
    }

    /// Observes a batch by the rule of the layout.
    #[inline(always)]
    fn observe_in<R: WordRule>(
        &self,
        rule: R,
        look_ahead: LookAhead,
        batch: Batch<'_>,
        duplicates: &mut [u64],
    ) -> Counts {
        let keys = batch.keys();
        let Some(clock) = self.clock_of(rule) else {
            return self.observe_keys(rule, look_ahead, keys, duplicates, |rule| rule);
        };
        let now = match batch.ticks() {
            Ticks::One(tick) | Ticks::Each(&[tick, ..]) => clock.advance_to(tick, &self.words),
            Ticks::Unmoved | Ticks::Each([]) => clock.now(),
        };
        if keys.is_empty() {
            return Counts::default();
        }
        clock.will_hold_times();
        let rule = rule.at(clock.ages(now));
        let Ticks::Each(ticks) = batch.ticks() else {
            return self.observe_keys(rule, look_ahead, keys, duplicates, |rule| rule);
        };
        // Most keys are in the unit of the one before, which needs no division.
        let first_tick_after = |now: u64| clock.tick(now.saturating_add(1));
        let (mut ticks, mut next) = (ticks.iter(), first_tick_after(now));
        self.observe_keys(rule, look_ahead, keys, duplicates, |rule| {
            match ticks.next() {
                Some(tick) if *tick >= next => {
                    let now = clock.advance_to(*tick, &self.words);
                    next = first_tick_after(now);
                    rule.at(clock.ages(now))
                }
                _ => rule,
            }
        })
    }

    /// Observes keys in order. `at_next_key` gets the rule of the key before and returns that of
    /// the next one.
    #[inline(always)]
    fn observe_keys<R: WordRule>(
        &self,
        mut rule: R,
        look_ahead: LookAhead,
        keys: &[KeyHash],
        duplicates: &mut [u64],
        mut at_next_key: impl FnMut(R) -> R,
    ) -> Counts {
        let words = &self.words[..];
        let mut counts = Counts::default();
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
                rule = at_next_key(rule);
                let word = &words[self.position(*key)];
                let duplicate = observe_word(rule, word, *key, &mut counts);
                bits = bits << 1 | u64::from(duplicate);
            }
            // Shifted in from the right, the first key's bit is the highest; it belongs in bit 0.
            *duplicates = bits.reverse_bits() >> (64 - keys.len());
        }
        counts
    }
}

/// What became of the slots of recorded keys.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// The empty slots that they took, in rows.
    taken: u64,
    /// The keys that they evicted, with a window.
    evicted: u64,
}

/// The tuner of the loop of a rule.
fn tuner_of<R: WordRule>(_rule: R, lines: u64) -> Tuner {
    Tuner::new::<R>(lines, Tunes::BlocksAndCache)
}

/// Tests and records a key in its word. Returns true if it is a duplicate. Counts only where a key
/// is recorded: duplicates, which seldom write anything, cost nothing.
#[inline(always)]
fn observe_word<R: WordRule>(rule: R, word: &AtomicU64, key: KeyHash, counts: &mut Counts) -> bool {
    // Acquire: pairs with the Release half of the updates below, so a Duplicate sees what the Fresh
    // thread wrote before. A recurring key returns after this load, without a write: its cache line
    // stays shared between cores.
    let mut seen = word.load(Ordering::Acquire);
    loop {
        let duplicate = rule.holds(seen, key);
        let next = if duplicate {
            let renewed = rule.renewed(seen, key);
            if renewed == seen {
                return true;
            }
            renewed
        } else {
            rule.record(seen, key)
        };
        if R::ONLY_SETS {
            // AcqRel: the Release half pairs with the Acquire of the load above, of `contains` and
            // of this operation in other threads. All updates of a word have one order, and the
            // first one for this key finds one of its bits clear.
            let before = word.fetch_or(rule.record(0, key), Ordering::AcqRel);
            return rule.holds(before, key);
        }
        // AcqRel: the Release half pairs as above. Acquire on failure: the new word may hold the
        // key, which makes it a Duplicate of the other thread's Fresh.
        match word.compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                if !duplicate {
                    counts.taken += u64::from(rule.takes_empty_slot(seen));
                    counts.evicted += u64::from(rule.evicts(seen));
                }
                return duplicate;
            }
            Err(now) => seen = now,
        }
    }
}
