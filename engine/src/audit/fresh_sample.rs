//! A sample of the `Fresh` verdicts, which counts those that are followed by another one on the
//! same key.
//!
//! ```text
//! verdicts on one key    F   .   F   F   F   F        F: Fresh, reported as new
//!                        |       |   |   |   |
//! a sampled one is       |      [F]->F   |   |        counts `weight` missed duplicates
//! followed by the next   |               F   F        and from then on the key is followed: 1 each
//! ```
//!
//! Every `Fresh` verdict but the first of a key is a missed duplicate, and it follows exactly one
//! other. Sampling the verdicts and not the keys gives each missed duplicate the same weight, so
//! it does not matter how many keys they are spread over. Once a sampled verdict is followed by
//! another, the key is known to repeat: it stays, and all further ones count exactly.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::errors::ErrorCounts;
use super::key_map::KeyMap;
use super::weighted_count::WeightedCount;
use crate::hash::KeyHash;

/// The most keys held, about 0.25 MiB with the hash table around them. Twice as many make bounds
/// narrower by a factor of 1.4, and cost a short run of fresh keys more.
const CAPACITY: usize = 1 << 12;

/// The part of the table that stays with keys that repeat when it is thinned.
const KEPT_REPEATING: usize = CAPACITY / 4;

/// The words of the bitmap: 16 KiB. A full table sets 1 bit in 32. Half of that costs more in
/// look-ups of keys that are not held, twice as much more in cache misses.
const BITMAP_WORDS: usize = 1 << 11;

/// The seed of the choices. They need not be secret, only independent of the stream.
const SEED: u64 = 0x6175_6469_7420_3031;

/// A random sample of `Fresh` verdicts. `M` is the moment of a verdict, `()` without a window.
///
/// Each `Fresh` verdict is chosen with probability `1 / weight`, independently of all others: to
/// choose one of each block of verdicts would count bursts of one key too high, because it follows
/// the key from the first choice on. The weight starts at 1, and doubles whenever more than 4096
/// keys are held. Nothing but the sequence of keys and verdicts decides the choices.
#[derive(Debug, Clone)]
pub(super) struct FreshSample<M> {
    random: SplitMix64,
    /// One verdict in `2^halvings` is chosen on average.
    halvings: u32,
    /// The number of verdicts before the next chosen one.
    skipped: u64,
    held: KeyMap<Held<M>>,
    /// A bit for every key that is held, and for some that are not any more.
    bitmap: Box<[u64; BITMAP_WORDS]>,
    /// Keys that are not held any more but have a bit.
    stale: usize,
    surely_missed: u64,
    missed: WeightedCount,
}

/// A key that is held.
#[derive(Debug, Clone)]
struct Held<M> {
    /// When it was last recorded or renewed.
    last: M,
    /// A random number: a chosen verdict stays if the low bits are 0, one more each time the table
    /// is thinned.
    priority: u64,
    /// Whether a sampled verdict on it was followed by another.
    repeats: bool,
    /// The missed duplicates counted since the table was last thinned.
    recently_missed: u32,
}

impl<M> Default for FreshSample<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M> FreshSample<M> {
    /// A sample of a stream that has not started.
    pub(super) fn new() -> Self {
        Self {
            random: SplitMix64::seed_from_u64(SEED),
            halvings: 0,
            skipped: 0,
            held: KeyMap::default(),
            bitmap: Box::new([0; BITMAP_WORDS]),
            stale: 0,
            surely_missed: 0,
            missed: WeightedCount::new(1),
        }
    }

    /// The counts `found` elsewhere, with the missed duplicates that this sample counted.
    pub(super) const fn complete(&self, found: ErrorCounts) -> ErrorCounts {
        ErrorCounts {
            surely_missed: self.surely_missed,
            missed: self.missed,
            ..found
        }
    }

    /// Passes over `verdicts` `Fresh` verdicts, unless one of them is chosen. Returns whether it
    /// did.
    #[inline]
    pub(super) fn pass(&mut self, verdicts: u64) -> bool {
        let passes = verdicts <= self.skipped;
        if passes {
            self.skipped -= verdicts;
        }
        passes
    }

    /// Passes over one `Fresh` verdict. Returns whether it is chosen.
    #[inline]
    pub(super) fn choose(&mut self) -> bool {
        if self.pass(1) {
            return false;
        }
        self.skipped = self.gap();
        true
    }

    /// Passes over the verdicts at the set bits, up to the one before the next chosen one. Returns
    /// all bits below that of the chosen one; all bits if none of these is chosen.
    pub(super) fn before_chosen(&mut self, verdicts: u64) -> u64 {
        let mut left = verdicts;
        while self.skipped > 0 && left != 0 {
            self.skipped -= 1;
            left &= left - 1;
        }
        match left {
            0 => u64::MAX,
            left => (left & left.wrapping_neg()) - 1,
        }
    }

    /// The number of missed duplicates that a sampled one stands for.
    pub(super) const fn weight(&self) -> u64 {
        1 << self.halvings
    }

    /// Draws the number of verdicts before the next chosen one.
    ///
    /// It uses bits, because the last digits of a logarithm differ between machines: each bit of
    /// `halvings` random words AND-ed together is set with the probability of a choice. After 7
    /// words on average all 64 bits are clear, so a verdict costs 0.1 draws.
    fn gap(&mut self) -> u64 {
        let mut gap = 0;
        loop {
            let mut chosen = u64::MAX;
            for _ in 0..self.halvings {
                chosen &= self.random.next_u64();
                if chosen == 0 {
                    break;
                }
            }
            if chosen != 0 {
                return gap + u64::from(chosen.trailing_zeros());
            }
            gap += 64;
        }
    }

    /// `false` if the key is not held. It may be `true` for others.
    #[inline(always)]
    pub(super) fn may_hold(&self, key: KeyHash) -> bool {
        let (word, bit) = position(key);
        self.bitmap[word] >> bit & 1 == 1
    }

    /// Counts a `Fresh` verdict at the moment `now`. `chosen` is the result of
    /// [`choose`](Self::choose); it may be skipped for a key that is neither chosen nor
    /// [held](Self::may_hold).
    ///
    /// Given the moment at which the key was last recorded, `is_missed` returns whether the filter
    /// should still hold it, and `is_over` whether the sample may drop it, which it does if memory
    /// is short.
    pub(super) fn fresh(
        &mut self,
        key: KeyHash,
        now: M,
        chosen: bool,
        is_missed: impl FnOnce(&M) -> bool,
        is_over: impl Fn(&M) -> bool,
    ) {
        if let Some(held) = self.held.get_mut(&key) {
            let missed = is_missed(&held.last);
            held.last = now;
            if missed {
                if held.repeats {
                    self.surely_missed += 1;
                } else {
                    self.missed.add();
                }
                held.repeats = true;
                held.recently_missed = held.recently_missed.saturating_add(1);
            } else if !held.repeats && chosen {
                held.priority = priority(&mut self.random, key) << self.halvings;
            } else if !held.repeats {
                self.held.remove(&key);
                self.forget_bit();
            }
        } else if chosen {
            let priority = priority(&mut self.random, key) << self.halvings;
            self.held.insert(
                key,
                Held {
                    last: now,
                    priority,
                    repeats: false,
                    recently_missed: 0,
                },
            );
            let (word, bit) = position(key);
            self.bitmap[word] |= 1 << bit;
            if self.held.len() > CAPACITY {
                self.thin(&is_over);
            }
        }
    }

    /// Takes note of a `Duplicate` verdict on a key that is [held](Self::may_hold): the key is
    /// renewed, or was forgotten and is not held any longer.
    pub(super) fn duplicate(&mut self, key: KeyHash, now: M, is_over: impl FnOnce(&M) -> bool) {
        let Some(held) = self.held.get_mut(&key) else {
            return;
        };
        if is_over(&held.last) {
            self.held.remove(&key);
            self.forget_bit();
        } else {
            held.last = now;
        }
    }

    /// Makes room in the table: forgets what is over, and if that is not enough, doubles the
    /// weight.
    fn thin(&mut self, is_over: &impl Fn(&M) -> bool) {
        self.held.retain(|_, held| !is_over(&held.last));
        while self.held.len() > CAPACITY / 4 * 3 {
            self.halvings += 1;
            self.missed.set_weight(1 << self.halvings);
            // Later choices depend on the stream: a sequence that every run shares would be wrong
            // about the same part of every stream.
            let content = (self.held.keys()).fold(0, |sum: u64, key| sum.wrapping_add(key.0));
            self.random = SplitMix64::seed_from_u64(self.random.next_u64() ^ content);
            self.skipped = self.gap();
            let mask = (1_u64 << self.halvings) - 1;
            let least = self.least_kept();
            self.held.retain(|key, held| {
                if held.repeats && held.recently_missed >= least {
                    held.recently_missed = 0;
                    return true;
                }
                if held.repeats {
                    // Its last verdict is sampled like any other.
                    held.repeats = false;
                    held.priority = key.remix(u64::from(self.halvings));
                }
                held.priority & mask == 0
            });
        }
        self.redraw_bitmap();
    }

    /// The number of recently missed duplicates from which on a key that repeats is kept.
    fn least_kept(&self) -> u32 {
        let mut least = 1;
        let kept = |least| {
            let repeating = self.held.values().filter(|held| held.repeats);
            repeating
                .filter(|held| held.recently_missed >= least)
                .count()
        };
        while kept(least) > KEPT_REPEATING {
            least *= 2;
        }
        least
    }

    /// A key with a bit is not held any more.
    fn forget_bit(&mut self) {
        self.stale += 1;
        if self.stale > CAPACITY / 2 {
            self.redraw_bitmap();
        }
    }

    fn redraw_bitmap(&mut self) {
        self.stale = 0;
        self.bitmap.fill(0);
        for key in self.held.keys() {
            let (word, bit) = position(*key);
            self.bitmap[word] |= 1 << bit;
        }
    }
}

/// A random number for a chosen verdict. It depends on the key, so that the verdicts that stay when
/// the table is thinned are not those at the same places of every stream.
fn priority(random: &mut SplitMix64, key: KeyHash) -> u64 {
    key.remix(random.next_u64())
}

/// The word and the bit of a key in the bitmap.
#[inline(always)]
const fn position(key: KeyHash) -> (usize, u32) {
    // Any bits of a hash will do: what is held was chosen at random.
    ((key.0 >> 32) as usize % BITMAP_WORDS, key.0 as u32 % 64)
}

#[cfg(test)]
mod tests;
