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

use echoless::KeyHash;

use crate::errors::ErrorCounts;
use crate::sampling::{Choices, KeyBitmap, KeyMap};
use crate::saved::saved;
use crate::weighted_count::WeightedCount;

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
pub(crate) struct FreshSample<M> {
    pub(crate) choices: Choices,
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
    pub(crate) fn new() -> Self {
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
    pub(crate) const fn complete(&self, found: ErrorCounts) -> ErrorCounts {
        ErrorCounts {
            surely_missed: self.surely_missed,
            missed: self.missed,
            ..found
        }
    }

    /// `false` if the key is not held. It may be `true` for others.
    #[inline(always)]
    pub(crate) fn may_hold(&self, key: KeyHash) -> bool {
        self.bitmap.may_hold(key)
    }

    /// The keys that [may be held](Self::may_hold).
    pub(crate) const fn bitmap(&self) -> &KeyBitmap {
        &self.bitmap
    }

    /// Counts a `Fresh` verdict at the moment `now`. `chosen` is the result of
    /// [`choices`](Self::choices); it may be skipped for a key that is neither chosen nor
    /// [held](Self::may_hold).
    ///
    /// Given the moment at which the key was last recorded, `is_missed` returns whether the filter
    /// should still hold it, and `is_over` whether the sample may drop it, which it does if memory
    /// is short.
    pub(crate) fn fresh(
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
    pub(crate) fn duplicate(&mut self, key: KeyHash, now: M, is_over: impl FnOnce(&M) -> bool) {
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
            let keys = self.held.keys().map(|key| key.get());
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

/// Tests of the sample of fresh verdicts: even choices, hot keys, bursts, windows.
#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use echoless::KeyHasher;
    use rand_xoshiro::SplitMix64;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    fn observe(sample: &mut FreshSample<u64>, key: u64, now: u64, window: u64) {
        let key = KeyHasher::seeded(1).hash_u64(key);
        let chosen = sample.choices.choose();
        if chosen || sample.may_hold(key) {
            let over = |then: &u64| now - then > window;
            sample.fresh(key, now, chosen, |then| !over(then), over);
        }
    }

    fn value(sample: &FreshSample<u64>) -> u64 {
        sample.surely_missed + sample.missed.estimate().value
    }

    #[test]
    fn few_keys_are_counted_exactly() {
        let mut sample = FreshSample::new();
        let (mut seen, mut missed) = (HashSet::new(), 0);
        for number in 0..100_000_u64 {
            let key = number * number % 7001;
            observe(&mut sample, key, number, u64::MAX);
            missed += u64::from(!seen.insert(key));
        }
        assert_eq!(value(&sample), missed);
        assert!(sample.missed.estimate().is_exact());
    }

    #[test]
    fn verdicts_are_chosen_evenly() {
        let mut sample = FreshSample::new();
        for key in 0..1_000_000 {
            observe(&mut sample, key, key, u64::MAX);
        }
        assert!(sample.held.len() <= CAPACITY);
        let expected = 1_000_000 >> sample.choices.halvings();
        let error = sample.held.len() as f64 / f64::from(expected) - 1.0;
        assert!(error.abs() < 0.05, "{error}");
        let early = (sample.held.values()).filter(|held| held.last < 500_000);
        let early = early.count() as f64 / sample.held.len() as f64;
        assert!((early - 0.5).abs() < 0.05, "{early}");
    }

    #[test]
    fn the_choices_of_one_stream_are_not_those_of_another() {
        // The same stream under different hashes: 100,000 keys, and 25,000 of them twice again.
        let ratios: Vec<f64> = (0..40)
            .map(|seed| {
                let hasher = KeyHasher::seeded(seed);
                let mut sample = FreshSample::new();
                for key in (0..100_000).chain(75_000..100_000).chain(75_000..100_000) {
                    let key = hasher.hash_u64(key);
                    let chosen = sample.choices.choose();
                    if chosen || sample.may_hold(key) {
                        sample.fresh(key, (), chosen, |()| true, |()| false);
                    }
                }
                let counted = sample.surely_missed + sample.missed.estimate().value;
                counted as f64 / 50_000.0
            })
            .collect();
        let count = ratios.len() as f64;
        let mean = ratios.iter().sum::<f64>() / count;
        assert!((mean - 1.0).abs() < 0.03, "{mean}");
        let squares = ratios.iter().map(|ratio| (ratio - mean).powi(2));
        let deviation = (squares.sum::<f64>() / count).sqrt();
        assert!((0.01..0.1).contains(&deviation), "{deviation}");
    }

    #[test]
    fn hot_keys_are_found_wherever_they_begin() {
        // 20 keys of 1000 misses each among a million fresh ones.
        for first in [0_u64, 500_000] {
            let mut sample = FreshSample::new();
            let mut missed = 0;
            for number in 0..1_000_000 {
                observe(&mut sample, number + 1000, number, u64::MAX);
                if number >= first && number % 20 == 0 && missed < 20_000 {
                    observe(&mut sample, number / 20 % 20, number, u64::MAX);
                    missed += 1;
                }
            }
            let error = value(&sample) as f64 / f64::from(missed - 20) - 1.0;
            assert!(error.abs() < 0.2, "{first}: {error}");
        }
    }

    #[test]
    fn bursts_are_counted_without_bias() {
        // Each key up to 60 times in a row, and most only once.
        let mut sample = FreshSample::new();
        let (mut missed, mut random) = (0, SplitMix64::seed_from_u64(8));
        for key in 0..1_000_000 {
            let times = match random.next_u64() % 100 {
                0 => 1 + random.next_u64() % 60,
                _ => 1,
            };
            for _ in 0..times {
                observe(&mut sample, key, key, u64::MAX);
            }
            missed += times - 1;
        }
        assert!(sample.choices.halvings() >= 7);
        let error = value(&sample) as f64 / missed as f64 - 1.0;
        assert!(error.abs() < 0.05, "{error}");
    }

    #[test]
    fn estimates_are_unbiased_under_every_rule_of_leaving() {
        // More repeating keys than the table keeps, of different frequencies.
        let mut sample = FreshSample::new();
        let mut seen: HashMap<u64, ()> = HashMap::new();
        let mut missed = 0_u64;
        let mut random = SplitMix64::seed_from_u64(5);
        for number in 0..2_000_000_u64 {
            let bound = 1 << (random.next_u64() % 20);
            let key = random.next_u64() % bound + bound;
            missed += u64::from(seen.insert(key, ()).is_some());
            observe(&mut sample, key, number, u64::MAX);
        }
        assert!(sample.choices.halvings() >= 5 && sample.surely_missed > 0);
        let error = value(&sample) as f64 / missed as f64 - 1.0;
        assert!(error.abs() < 0.02, "{error}");
    }

    #[test]
    fn what_is_over_is_no_miss_and_makes_room() {
        let mut sample = FreshSample::new();
        // Every key comes again 1000 later, at first inside the window and then beyond it.
        for number in 0..400_000_u64 {
            let window = if number < 200_000 { 1000 } else { 999 };
            observe(&mut sample, number % 1000, number, window);
        }
        assert_eq!(value(&sample), 199_000);
        // Keys that never repeat leave with the window, so all of them are sampled.
        for number in 400_000..800_000_u64 {
            observe(&mut sample, number, number, 1000);
        }
        assert_eq!((sample.choices.halvings(), value(&sample)), (0, 199_000));
    }

    #[test]
    fn a_duplicate_renews_its_key_or_ends_it() {
        for (age, held) in [(10, true), (11, false)] {
            let mut sample = FreshSample::new();
            observe(&mut sample, 1, 0, 10);
            let key = KeyHasher::seeded(1).hash_u64(1);
            sample.duplicate(key, age, |then| age - then > 10);
            observe(&mut sample, 1, age + 10, 10);
            assert_eq!(value(&sample), u64::from(held));
        }
    }
}
