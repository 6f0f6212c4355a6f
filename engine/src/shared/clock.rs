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
//! spread evenly over an **era** of `4096 - 2 windows - 1` units, and a move sweeps those of the
//! units that it passes:
//!
//! ```text
//! words | swept in this era        | of units now..unit | left for later moves      |
//!       0                          ^ now                ^ unit                      ^ era = 0
//! ```
//!
//! - A word is swept once in each era. What stays was live at the clock of the sweep, so until the
//!   next one it is at most `window + era - 1` units old, which is a window short of a wrap.
//! - The words of a move follow from its two units alone. Two calls that move the clock at the same
//!   time both sweep, which changes nothing twice, and one of them succeeds. So no call waits for
//!   another one, and the clock never passes words that nobody has swept.
//! - A clock that jumps over an era or more sweeps all words, once. The age of a slot at the clock
//!   before is exact, and the jump is added to it in 64 bits.
//!
//! An era is at least 14 windows long, as that of stamped lines.
//!
//! What this cannot exclude: between reading a word and removing its dead slots, a call loses its
//! core while the clock moves by a whole wrap and the word gets the same bits again. They are then
//! live.

use std::ops::Range;

use crossbeam_utils::CachePadded;

use super::stamped::{Ages, MOST_ALIVE, STAMP_BITS};
use crate::filters::units::Units;
use crate::report::Window;
use crate::sync::{AtomicU64, Ordering, unmodelled::AtomicU32};

/// How many words are swept between two looks at the clock, a page of 4 KiB.
const STEP: usize = 512;

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
        // Relaxed: a call that happens after this one sees it, and one that races with it, which
        // jumps over an era, may leave the slot unswept, as `SharedFilter` says.
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
        while now < unit {
            if self.holds_times.load(Ordering::Relaxed) != 0 {
                self.sweep(now, unit, words);
            }
            // Not `fetch_max`: the words that were swept are those between these two units.
            // Release: pairs with the Acquire loads of the clock, which then also see the sweeps.
            // Acquire on failure: as in `now`.
            let moved =
                (self.now).compare_exchange(now, unit, Ordering::Release, Ordering::Acquire);
            match moved {
                Ok(_) => return unit,
                Err(other) => now = other,
            }
        }
        now
    }

    /// Removes the slots that are dead at `unit` from the words of the units `now..unit`. Returns
    /// early if the clock is no longer at `now`: then the move fails.
    fn sweep(&self, now: u64, unit: u64, words: &[AtomicU64]) {
        let (ages, passed) = (self.ages(now), unit - now);
        // Relaxed, here and below: where a word that was read has a later stamp, its Acquire makes
        // the later clock visible to the load behind it. Else the ages are exact.
        let has_moved = || self.now.load(Ordering::Relaxed) != now;
        for part in self.words_of(now, unit, words.len()) {
            for words in words[part].chunks(STEP) {
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
        let era = (1 << STAMP_BITS) - 2 * self.units.alive - 1;
        let swept = |unit: u64| u128::from(unit) * words as u128 / u128::from(era);
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
        /// Whatever the clock does, each word is swept once in each era that it passes.
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
            let era = 4096 - 2 * clock.units.alive - 1;
            prop_assert!(era >= 3583);
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
