//! The clock of a shared filter with a window, and the sweep that goes before each of its moves.
//!
//! A stamp has 12 bits, so it wraps around every 4096 units of the clock. At a clock of `now` it is
//! one of these:
//!
//! ```text
//!        now - window      now      now + window                   now - window + 4096
//!  ... dead |------ live ---|---- live ----|------------ dead -------------|--- live ...
//!                            written by a call whose clock is later
//! ```
//!
//! A dead slot must be gone before its stamp is live again, one wrap later. So the call that moves
//! the clock first **sweeps** some words: it removes the slots that will be dead. The words are
//! spread evenly over an **era** of `4096 - 2 windows - 1 step` units, and a move sweeps those of
//! the units that it passes:
//!
//! ```text
//! words | swept in this era        | of units now..unit | left for later moves      |
//!       0                          ^ now                ^ unit                      ^ era = 0
//! ```
//!
//! - A word is swept once in each era. What stays was live at the clock of the sweep, or is
//!   recorded by a call that is a window behind it, so until the next one it is at most `window +
//!   step + era - 1` units old, which is a window short of a wrap.
//! - The words of a move follow from its two units alone. Two calls that move the clock at the same
//!   time both sweep, which changes nothing twice, and one of them succeeds. So no call waits for
//!   another one, and the clock never passes words that were not swept.
//! - A call moves the clock in **steps** of at most 1/64 of a window. What it has swept is then not
//!   in vain if others move the clock meanwhile, and a slot is removed at most a step early.
//! - Behind an era of steps all words are swept, and the rest of a longer jump is one move, which
//!   sweeps them once more. The age of a slot at the clock before is exact, and the jump is added
//!   to it in 64 bits.
//!
//! An era is nearly 14 windows long, as that of stamped lines.
//!
//! What this cannot exclude:
//! - Between reading a word and removing its dead slots, a call loses its core while the clock
//!   moves by a whole wrap and the word gets the same bits again. They are then live.
//! - A key is recorded at the clock before the last move of a jump over an era, in a word that was
//!   swept for it. Its stamp has any age at the clock behind.

use std::ops::Range;

use crossbeam_utils::CachePadded;

use super::stamped::{Ages, MOST_ALIVE, STAMP_BITS};
use crate::filters::units::Units;
use crate::report::Window;
use crate::sync::{AtomicU64, Ordering, unmodelled::AtomicU32};

/// How many words are swept between two looks at the clock, a page of 4 KiB.
const SWEPT_WORDS: usize = 512;

/// The clock of a filter: the latest unit of all keys so far.
#[derive(Debug)]
pub(super) struct SharedClock {
    units: Units,
    /// The current unit. On a line of its own, because all calls read it and few write it.
    now: CachePadded<AtomicU64>,
    /// 0 until a key is observed. Before that, the first tick of a stream would sweep pages that
    /// were never touched.
    holds_times: AtomicU32,
}

impl SharedClock {
    /// A clock at tick 0, for a window of so many ticks.
    pub(super) fn new(window: u64) -> Self {
        Self {
            units: Units::new(window, MOST_ALIVE),
            now: CachePadded::new(AtomicU64::new(0)),
            holds_times: AtomicU32::new(0),
        }
    }

    pub(super) const fn window(&self) -> Window {
        self.units.window()
    }

    /// The current unit.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        // Acquire: pairs with the Release of `advance_to`, so that a call at this unit reads words
        // that are swept for it.
        self.now.load(Ordering::Acquire)
    }

    /// The ages of slots at a unit.
    #[inline]
    pub(super) const fn ages(&self, unit: u64) -> Ages {
        Ages::at(unit, self.units.alive)
    }

    /// The first tick of a unit.
    #[inline]
    pub(super) const fn tick(&self, unit: u64) -> u64 {
        self.units.first_tick(unit)
    }

    /// Notes that a key will be recorded.
    #[inline]
    pub(super) fn will_hold_times(&self) {
        // Relaxed: a call that happens after this one sees it. One that races with it may leave the
        // slot unswept, as a jump over an era may in any case.
        if self.holds_times.load(Ordering::Relaxed) == 0 {
            self.holds_times.store(1, Ordering::Relaxed);
        }
    }

    /// Moves the clock to the unit of a tick, unless it is there already or later. Returns the unit
    /// that it is at.
    #[inline]
    pub(super) fn advance_to(&self, tick: u64, words: &[AtomicU64]) -> u64 {
        let (now, unit) = (self.now(), self.units.number(tick));
        if now >= unit {
            return now;
        }
        self.move_to(unit, now, words)
    }

    #[inline(never)]
    fn move_to(&self, unit: u64, mut now: u64, words: &[AtomicU64]) -> u64 {
        // A model has the moves, but not so many of them.
        let step = if cfg!(loom) { u64::MAX } else { self.step() };
        let end_of_steps = now.saturating_add(self.era());
        while now < unit {
            let mut next = unit;
            if self.holds_times.load(Ordering::Relaxed) != 0 {
                if now < end_of_steps {
                    next = unit.min(now.saturating_add(step));
                }
                self.sweep(now, next, words);
            }
            // Not `fetch_max`: the words that were swept are those between these two units.
            // Release: pairs with the Acquire loads of the clock, which then also see the sweeps.
            // Acquire on failure: as in `now`.
            let moved =
                (self.now).compare_exchange(now, next, Ordering::Release, Ordering::Acquire);
            now = match moved {
                Ok(_) => next,
                Err(other) => other,
            };
        }
        now
    }

    /// The units that the clock moves at once, at most.
    fn step(&self) -> u64 {
        (self.units.alive / 64).max(1)
    }

    /// The units in which each word is swept once.
    fn era(&self) -> u64 {
        (1 << STAMP_BITS) - 2 * self.units.alive - self.step()
    }

    /// Removes the slots that are dead at `unit` from the words of the units `now..unit`. Returns
    /// early if the clock is no longer at `now`: then the move fails.
    fn sweep(&self, now: u64, unit: u64, words: &[AtomicU64]) {
        let (ages, passed) = (self.ages(now), unit - now);
        // Relaxed, here and below: where a word that was read has a later stamp, its Acquire makes
        // the later clock visible to the load behind it. Else the ages are exact.
        let has_moved = || self.now.load(Ordering::Relaxed) != now;
        for part in self.words_of(now, unit, words.len()) {
            for words in words[part].chunks(SWEPT_WORDS) {
                if has_moved() {
                    return;
                }
                for word in words {
                    // Acquire: see above.
                    let mut seen = word.load(Ordering::Acquire);
                    loop {
                        let kept = ages.without_dead(seen, passed);
                        // Most words do not change, and their lines stay shared.
                        if kept == seen {
                            break;
                        }
                        if has_moved() {
                            return;
                        }
                        // AcqRel: as the updates of `observe_word`. A key that is recorded
                        // meanwhile makes it fail, and stays.
                        match word.compare_exchange_weak(
                            seen,
                            kept,
                            Ordering::AcqRel,
                            Ordering::Acquire,
                        ) {
                            Ok(_) => break,
                            Err(other) => seen = other,
                        }
                    }
                }
            }
        }
    }

    /// The words of the units `now..unit`, each once, of so many.
    fn words_of(&self, now: u64, unit: u64, words: usize) -> [Range<usize>; 2] {
        let era = u128::from(self.era());
        let swept = |unit: u64| u128::from(unit) * words as u128 / era;
        let count = (swept(unit) - swept(now)).min(words as u128) as usize;
        let first = (swept(now) % words as u128) as usize;
        let end = words.min(first + count);
        [first..end, 0..count - (end - first)]
    }

    /// A word as it is saved at a tick that the clock has reached.
    pub(super) fn copy_at(&self, tick: u64, word: &AtomicU64) -> u64 {
        loop {
            let now = self.now();
            // Acquire: pairs with the Release half of the updates in `observe_word`.
            let seen = word.load(Ordering::Acquire);
            // Relaxed: as in `sweep`. The clock before and behind the word is the same, so the ages
            // are exact.
            if self.now.load(Ordering::Relaxed) == now {
                let passed = now.saturating_sub(self.units.number(tick));
                return self.ages(now).word_before(seen, passed);
            }
        }
    }

    /// Sets the clock to a tick, for words that are loaded with stamps up to it.
    pub(super) fn restore(&self, tick: u64) {
        // Relaxed: sharing the filter with other threads orders this before.
        self.now.store(self.units.number(tick), Ordering::Relaxed);
        self.will_hold_times();
    }

    /// Moves the clock back to 0.
    pub(super) fn restart(&self) {
        self.now.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However the clock moves, each word is swept once in each era that it passes.
        #[test]
        fn moves_sweep_every_word_once_in_each_era(
            window in prop::sample::select(vec![1_u64, 2, 7, 255, 256, 257, 100_000]),
            words in prop_oneof![8_usize..50, Just(8192), Just(100_000)],
            start in prop_oneof![0_u64..10_000, Just(u64::MAX / 300_000 * 2)],
            moves in prop::collection::vec(
                prop_oneof![1_u64..5, 1_u64..4000, 4000_u64..20_000],
                1..30,
            ),
        ) {
            let clock = SharedClock::new(window);
            let era = clock.era();
            prop_assert!((3580..=4093).contains(&era));
            let mut last = vec![None; words];
            let mut now = start;
            for passed in moves {
                let unit = now + passed;
                let parts = clock.words_of(now, unit, words);
                let count: usize = parts.iter().map(Range::len).sum();
                let even = u128::from(passed) * words as u128 / u128::from(era);
                prop_assert!((count as u128).abs_diff(even.min(words as u128)) <= 1);
                for word in parts.into_iter().flatten() {
                    last[word] = Some(unit);
                }
                // The slots that a sweep left are read until the clock is here.
                for last in &last {
                    let since = last.unwrap_or(start + 1);
                    prop_assert!(unit < since + era, "{since} {unit}");
                }
                now = unit;
            }
        }
    }

    #[test]
    fn the_clock_never_goes_back() {
        let clock = SharedClock::new(1000);
        assert_eq!(clock.window(), Window::new(1000, 4));
        assert_eq!(clock.advance_to(999, &[]), 249);
        assert_eq!(clock.advance_to(12, &[]), 249);
        assert_eq!(clock.advance_to(1000, &[]), 250);
        assert_eq!(clock.tick(clock.now()), 1000);
        assert_eq!(clock.advance_to(u64::MAX, &[]), u64::MAX / 4);
        assert_eq!(clock.advance_to(u64::MAX, &[]), u64::MAX / 4);
        clock.restart();
        assert_eq!(clock.now(), 0);
    }
}
