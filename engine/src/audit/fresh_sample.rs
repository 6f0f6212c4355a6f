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

use super::errors::ErrorCounts;
use super::sampling::{Choices, KeyBitmap, KeyMap};
use super::saved::saved;
use super::weighted_count::WeightedCount;
use crate::hash::KeyHash;

/// The most keys held, about 0.25 MiB with the hash table around them. Twice as many make bounds
/// narrower by a factor of 1.4, and cost a short run of fresh keys more.
const CAPACITY: usize = 1 << 12;

/// The part of the table that stays with keys that repeat when it is thinned.
const KEPT_REPEATING: usize = CAPACITY / 4;

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
    pub(super) choices: Choices,
    held: KeyMap<Held<M>>,
    /// The keys that are held.
    bitmap: KeyBitmap,
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
            choices: Choices::all(SEED),
            held: KeyMap::default(),
            bitmap: KeyBitmap::new(),
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

    /// `false` if the key is not held. It may be `true` for others.
    #[inline(always)]
    pub(super) fn may_hold(&self, key: KeyHash) -> bool {
        self.bitmap.may_hold(key)
    }

    /// Counts a `Fresh` verdict at the moment `now`. `chosen` is the result of
    /// [`choices`](Self::choices); it may be skipped for a key that is neither chosen nor
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
                held.priority = priority(&mut self.choices, key);
            } else if !held.repeats {
                self.held.remove(&key);
                self.forget_bit();
            }
        } else if chosen {
            let priority = priority(&mut self.choices, key);
            self.held.insert(
                key,
                Held {
                    last: now,
                    priority,
                    repeats: false,
                    recently_missed: 0,
                },
            );
            self.bitmap.add(key);
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
            let halvings = self.choices.halvings() + 1;
            let keys = self.held.keys().map(|key| key.0);
            self.choices.set_halvings(halvings, keys);
            self.missed.set_weight(1 << halvings);
            let mask = (1_u64 << halvings) - 1;
            let least = self.least_kept();
            self.held.retain(|key, held| {
                if held.repeats && held.recently_missed >= least {
                    held.recently_missed = 0;
                    return true;
                }
                if held.repeats {
                    // Its last verdict is sampled like any other.
                    held.repeats = false;
                    held.priority = key.remix(u64::from(halvings));
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
        self.bitmap.redraw(self.held.keys());
    }
}

/// A random number for a chosen verdict. It depends on the key, so that the verdicts that stay when
/// the table is thinned are not those at the same places of every stream.
fn priority(choices: &mut Choices, key: KeyHash) -> u64 {
    key.remix(choices.draw()) << choices.halvings()
}

saved! {
    FreshSample<M> { choices, held, bitmap, stale, surely_missed, missed }
    Held<M> { last, priority, repeats, recently_missed }
}

#[cfg(test)]
mod tests;
