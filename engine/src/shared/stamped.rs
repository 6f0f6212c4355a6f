//! The word of a shared filter with a window: two slots, each a fingerprint below the time of its
//! key, as in stamped lines.
//!
//! ```text
//!  63     52 51                 32 31     20 19                  0
//!  |  stamp  |    fingerprint     |  stamp  |    fingerprint     |    a slot of 0 is empty
//!  |--- recorded or seen before --|---- recorded or seen last ---|
//! ```
//!
//! The stamp is the number of the clock's unit, wrapped. How the 32 bits of a slot are divided:
//!
//! | stamp | fingerprint | units in a window | false positive rate | a move of one unit sweeps |
//! |---|---|---|---|---|
//! | 8 | 24 | 16 | 1.2e-7 | 1/223 of the memory |
//! | 12 | 20 | 256 | 1.9e-6 | 1/3580 |
//! | 16 | 16 | 4096 | 3.1e-5 | 1/57343 |
//!
//! With 12 bits a key is remembered less than two units too long, and a unit of a filter of 1 GiB
//! is swept in some 30 us; with 16 bits the rate would be half of that of `row4x16`, which has
//! twice the slots.

use std::hint::select_unpredictable;

use super::rule::WordRule;
use crate::hash::KeyHash;

/// The bits of a stamp, and those of a fingerprint.
pub(super) const STAMP_BITS: u32 = 12;
pub(super) const FINGERPRINT_BITS: u32 = 32 - STAMP_BITS;

/// The most units of a window: an era then has nearly 14 times as many.
pub(super) const MOST_ALIVE: u64 = 1 << (STAMP_BITS - 4);

/// The bits of the fingerprint of a slot.
const FINGERPRINT: u32 = u32::MAX >> STAMP_BITS;

/// The ages of slots at one unit of the clock.
///
/// An age counts from the latest live stamp, that of a window after the clock, so it is never
/// negative:
///
/// ```text
///  stamp    now + alive          now          now - alive          now + alive - 4095
///  age           0              alive         2 * alive                  4095
///                |--- of later calls -|--- live ---|-------- dead --------|
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ages {
    now: u32,
    alive: u32,
}

impl Ages {
    /// At a unit, of keys that stay alive for so many.
    #[inline(always)]
    pub(super) const fn at(unit: u64, alive: u64) -> Self {
        debug_assert!(alive <= MOST_ALIVE);
        Self {
            // The high bits do not matter.
            now: unit as u32,
            alive: alive as u32,
        }
    }

    /// The age of a slot that is not empty.
    #[inline(always)]
    const fn of(self, slot: u32) -> u32 {
        let latest = self.now.wrapping_add(self.alive);
        latest.wrapping_sub(slot >> FINGERPRINT_BITS) & (u32::MAX >> FINGERPRINT_BITS)
    }

    #[inline(always)]
    const fn is_live(self, slot: u32) -> bool {
        // Both are computed: no branch would predict which slots are live.
        (slot != 0) & (self.of(slot) <= 2 * self.alive)
    }

    /// The number of live slots of a word.
    #[inline(always)]
    pub(super) fn live(self, word: u64) -> u32 {
        slots(word)
            .map(|slot| u32::from(self.is_live(slot)))
            .iter()
            .sum()
    }

    /// The word without the slots that are dead `passed` units later.
    #[inline(always)]
    pub(super) fn without_dead(self, word: u64, passed: u64) -> u64 {
        let keep = |slot| {
            let age = u64::from(self.of(slot)).saturating_add(passed);
            if age <= 2 * u64::from(self.alive) {
                slot
            } else {
                0
            }
        };
        join(slots(word).map(keep))
    }

    /// The word as it is saved at the clock of `passed` units before, without the slots that were
    /// dead then. A key of a later unit becomes one of that unit.
    pub(super) fn word_before(self, word: u64, passed: u64) -> u64 {
        let then = Self {
            now: self.now.wrapping_sub(passed as u32),
            ..self
        };
        let keep = |slot| {
            let age = u64::from(self.of(slot)).saturating_sub(passed);
            if slot == 0 || age > 2 * u64::from(self.alive) {
                return 0;
            }
            let units = (age as u32).saturating_sub(self.alive);
            then.slot(slot, units)
        };
        join(slots(word).map(keep))
    }

    /// The slot of a fingerprint, so many units old.
    #[inline(always)]
    const fn slot(self, fingerprint: u32, units: u32) -> u32 {
        self.now.wrapping_sub(units) << FINGERPRINT_BITS | fingerprint & FINGERPRINT
    }
}

/// The slots of a word, the last one that a key was recorded in first.
#[inline(always)]
const fn slots(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

#[inline(always)]
fn join([first, second]: [u32; 2]) -> u64 {
    u64::from(second) << 32 | u64::from(first)
}

/// A word with a window. With `REFRESH`, a duplicate renews its key once in each unit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StampedWord<const REFRESH: bool>(Ages);

impl<const REFRESH: bool> StampedWord<REFRESH> {
    /// Never 0, because a slot of 0 is empty: 0 becomes 1.
    #[inline(always)]
    fn fingerprint(key: KeyHash) -> u32 {
        let low = key.0 as u32 & FINGERPRINT;
        low + u32::from(low == 0)
    }

    /// Whether a slot is live and holds the key.
    #[inline(always)]
    fn matches(self, slot: u32, key: KeyHash) -> bool {
        (slot & FINGERPRINT == Self::fingerprint(key)) & self.0.is_live(slot)
    }
}

impl<const REFRESH: bool> WordRule for StampedWord<REFRESH> {
    const ONLY_SETS: bool = false;
    const HAS_CLOCK: bool = true;

    #[inline(always)]
    fn at(self, ages: Ages) -> Self {
        Self(ages)
    }

    #[inline(always)]
    fn holds(self, word: u64, key: KeyHash) -> bool {
        let [first, second] = slots(word);
        // Both are compared, without a branch.
        self.matches(first, key) | self.matches(second, key)
    }

    /// Keeps the younger of the other slots if it is live. Threads whose clocks differ may have
    /// recorded them in another order than that of their stamps.
    #[inline(always)]
    fn record(self, word: u64, key: KeyHash) -> u64 {
        let [first, second] = slots(word);
        let [live, second_is_live] = [first, second].map(|slot| self.0.is_live(slot));
        let is_younger = self.0.of(second) < self.0.of(first);
        let other = select_unpredictable(live, first, 0);
        let kept = select_unpredictable(second_is_live & (!live | is_younger), second, other);
        join([self.0.slot(Self::fingerprint(key), 0), kept])
    }

    #[inline(always)]
    fn renewed(self, word: u64, key: KeyHash) -> u64 {
        let [first, second] = slots(word);
        let (found, other) = if self.matches(first, key) {
            (first, second)
        } else {
            (second, first)
        };
        // That of this unit, or of a thread with a later clock, stays.
        if !REFRESH || self.0.of(found) <= self.0.alive {
            return word;
        }
        join([self.0.slot(found, 0), other])
    }

    #[inline(always)]
    fn evicts(self, word: u64) -> bool {
        self.0.live(word) == 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A slot as its fingerprint and its whole unit.
    type Plain = Option<(u32, u64)>;

    fn packed(plain: [Plain; 2]) -> u64 {
        join(
            plain.map(|slot| {
                slot.map_or(0, |(fingerprint, unit)| (unit as u32) << 20 | fingerprint)
            }),
        )
    }

    /// What is left of the slots at `now`: a slot may be a window later than the clock.
    fn live(plain: [Plain; 2], now: u64, alive: u64) -> [Plain; 2] {
        plain.map(|slot| slot.filter(|(_, unit)| unit + alive >= now))
    }

    fn check<const REFRESH: bool>(plain: [Plain; 2], key: KeyHash, now: u64, alive: u64) {
        let rule = StampedWord::<REFRESH>::default().at(Ages::at(now, alive));
        let (word, left) = (packed(plain), live(plain, now, alive));
        let fingerprint = (key.get() as u32 & 0xf_ffff).max(1);
        let found = left.iter().flatten().find(|slot| slot.0 == fingerprint);
        assert_eq!(rule.holds(word, key), found.is_some());
        assert_eq!(rule.evicts(word), left.iter().flatten().count() == 2);
        if let Some((_, unit)) = found {
            let other = if left[0].is_some_and(|slot| slot.0 == fingerprint) {
                plain[1]
            } else {
                plain[0]
            };
            let renews = REFRESH && *unit < now;
            let expected = if renews {
                packed([Some((fingerprint, now)), other])
            } else {
                word
            };
            assert_eq!(rule.renewed(word, key), expected);
            return;
        }
        let younger = left
            .into_iter()
            .flatten()
            .rev()
            .max_by_key(|(_, unit)| *unit);
        let recorded = rule.record(word, key);
        assert_eq!(recorded, packed([Some((fingerprint, now)), younger]));
        assert!(rule.holds(recorded, key));
    }

    proptest! {
        #[test]
        fn words_are_two_keys_with_their_units(
            now in prop_oneof![5000_u64..20_000, Just(u64::MAX / 2)],
            alive in prop::sample::select(vec![1_u64, 2, 100, 256]),
            ages in prop::array::uniform2(0_u64..2000),
            others in prop::array::uniform2(prop::option::of(1_u32..1 << 20)),
            key: u64, passed in prop_oneof![0_u64..600, Just(5000), Just(u64::MAX)],
        ) {
            // From a window after the clock to the oldest age before the next sweep.
            let units = ages.map(|age| {
                let age = if age % 3 == 0 { age } else { age % (2 * alive + 3) };
                now + alive - age
            });
            let plain = [0, 1].map(|at: usize| others[at].map(|other| (other, units[at])));
            let different = others[0] != others[1];
            let [first, second] = others.map(|other| u64::from(other.unwrap_or(7)));
            for key in [key, first, second, 0, 1] {
                if different {
                    check::<true>(plain, KeyHash(key), now, alive);
                    check::<false>(plain, KeyHash(key), now, alive);
                }
            }
            let (at_now, word) = (Ages::at(now, alive), packed(plain));
            let later = plain.map(|slot| slot.filter(|(_, unit)| {
                u128::from(unit + alive) >= u128::from(now) + u128::from(passed)
            }));
            prop_assert_eq!(at_now.without_dead(word, passed), packed(later));
            let count = live(plain, now, alive).iter().flatten().count();
            prop_assert_eq!(at_now.live(word) as usize, count);
            // Saved at an earlier clock, all keys are of units up to it.
            let before = now - passed.min(now);
            let saved = live(plain, before, alive);
            let saved = saved.map(|slot| slot.map(|(key, unit)| (key, unit.min(before))));
            prop_assert_eq!(at_now.word_before(word, now - before), packed(saved));
        }
    }
}
