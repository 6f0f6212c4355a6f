//! Stamped lines: a queue of fingerprints, each with the time of its key.
//!
//! ```text
//!  slot (64 bits)                                 slot (32 bits)
//!  63          40 39                         0    31      16 15         0
//!  |    stamp    |        fingerprint        |    |  stamp  | fingerprint |    0: an empty slot
//! ```
//!
//! The stamp is the number of the clock's unit, wrapped. A unit is one tick unless the window is
//! too long for the stamp, so most windows are exact. The slots are in the order of their stamps,
//! newest first, so the slot that a full line evicts is the oldest, and dead slots are at the end.
//!
//! **With a skew**, keys come in no order of their times, as from sources of which one is behind. A
//! key is then judged and recorded at its own time, and the clock only decides what a line still
//! remembers:
//!
//! ```text
//!            clock - window - skew      own - window    own     own + window          clock
//!  dead slots |                               |<---- duplicate ---->|                   |
//!  -----------+-------------------------------+----------+----------+-------------------+---> time
//! ```
//!
//! The slots are in the order of their arrival. A fresh key takes the first dead slot, and only a
//! line without one evicts a key: the one that came first.

use std::marker::PhantomData;

use super::shape::{self, TimedLineShape};
use crate::error::BuildError;
use crate::filters::lines::Clock;
use crate::filters::lines::rule::Rule;
use crate::filters::lines::{LineAllocation, LineFilter};
use crate::filters::replacement::ReplacementPolicy;
use crate::filters::units::Units;
use crate::hash::KeyHash;
use crate::kernels::{LineOps, Outcome, Slot, SlotOps, scalar::Scalar};
use crate::memory::Line;
use crate::report::{Cells, RateSum, Report, Tally};

/// A slot that holds a stamp above a fingerprint.
pub(super) trait StampedSlot: Slot {
    /// The bits of the stamp.
    const STAMP_BITS: u32;
    /// The bits of the fingerprint.
    const FINGERPRINT_BITS: u32 = 8 * Self::BYTES as u32 - Self::STAMP_BITS;
    /// The most units of a window. An era has more than 14 times as many, so that passes over the
    /// lines are rare.
    const MOST_ALIVE: u64 = 1 << (Self::STAMP_BITS - 4);

    /// The fingerprint of a key, never 0, with a stamp of the current unit.
    fn stamped(key: KeyHash, now: u64) -> Self;

    /// The age of a slot in units. Its fingerprint does not matter.
    fn age_at(self, now: u64) -> u64;
}

/// `StampedSlot` for integers that differ in width alone, so that loops over a line have no
/// conversions and are vectorised.
macro_rules! stamped_slot {
    ($($int:ty: $stamp_bits:expr),*) => {$(
        impl StampedSlot for $int {
            const STAMP_BITS: u32 = $stamp_bits;

            #[inline(always)]
            fn stamped(key: KeyHash, now: u64) -> Self {
                let low = key.0 as $int & (<$int>::MAX >> Self::STAMP_BITS);
                // The comparison is added as 0 or 1, without a branch.
                let fingerprint = low + <$int>::from(low == 0);
                (now as $int) << Self::FINGERPRINT_BITS | fingerprint
            }

            #[inline(always)]
            fn age_at(self, now: u64) -> u64 {
                let stamp = self >> Self::FINGERPRINT_BITS;
                let wrap = <$int>::MAX >> Self::FINGERPRINT_BITS;
                u64::from((now as $int).wrapping_sub(stamp) & wrap)
            }
        }
    )*};
}

stamped_slot!(u32: 16, u64: 24);

/// FIFO (`qqht`) or LRU (`rowlru`) lines whose keys carry their times.
#[derive(Debug, Clone, Copy)]
struct StampedRule<S, P, const SKEWED: bool> {
    /// Its units make up window and skew.
    clock: Clock,
    /// The same units, which make up the window.
    window: Units,
    /// The unit of the key, if `SKEWED`; at most that of the clock.
    own: u64,
    types: PhantomData<(S, P)>,
}

impl<S: StampedSlot, P: ReplacementPolicy, const SKEWED: bool> StampedRule<S, P, SKEWED> {
    const SHAPE: TimedLineShape = TimedLineShape {
        slots: S::COUNT as u32,
        slot_bits: 8 * S::BYTES as u32,
        fingerprint_bits: S::FINGERPRINT_BITS,
    };

    const fn new(clock: Clock, window: Units) -> Self {
        Self {
            clock,
            window,
            own: 0,
            types: PhantomData,
        }
    }

    /// Sets the unit of the key to that of its tick, or the earliest that a line remembers.
    #[inline(always)]
    const fn set_own(&mut self, tick: u64) {
        if SKEWED {
            let tick = self.clock.units.number(tick);
            let earliest = self.clock.now.saturating_sub(self.clock.units.alive);
            self.own = if tick > earliest { tick } else { earliest };
        }
    }

    /// The live slots with the fingerprint of a key, whose unit is `own`, and times at most a
    /// window before or after it.
    #[inline(always)]
    fn find_near<O: LineOps>(self, ops: O, line: &Line, key: KeyHash, own: u64) -> u64 {
        // Ages are those at the end of the later window, at which no time is later.
        let window = self.window.alive;
        let last = own.wrapping_add(window);
        let live = window + self.clock.units.alive - (self.clock.now - own);
        let oldest = live.min(2 * window);
        ops.find_alive(line, S::stamped(key, last), S::STAMP_BITS, oldest)
    }

    /// [`Rule::visit`] with a skew.
    #[inline(always)]
    fn visit_near<O: LineOps>(self, ops: O, line: &mut Line, key: KeyHash) -> Outcome {
        let (own, window) = (self.own, self.window.alive);
        let found = self.find_near(ops, line, key, own);
        let slots = S::slots(line);
        let dead = (0..S::COUNT).fold(0, |dead, slot| {
            dead | u64::from(!self.is_live(slots[slot])) << slot
        });
        // A key that is renewed keeps the later of its times.
        let last = own.wrapping_add(window);
        let age = if found == 0 {
            window
        } else {
            let first = found.trailing_zeros() as usize % S::COUNT;
            slots[first].age_at(last).min(window)
        };
        let moved = if found == 0 {
            // Up to the first dead slot, or all.
            dead ^ dead.wrapping_sub(1)
        } else {
            P::moved(found, S::COUNT as u32)
        };
        ops.push_front(line, S::stamped(key, last.wrapping_sub(age)), moved);
        Outcome {
            duplicate: found != 0,
            displaced: dead == 0,
        }
    }

    #[inline(always)]
    fn is_live(self, slot: S) -> bool {
        // Both are computed, so that a loop over slots has no branches.
        (slot.word() != 0) & (slot.age_at(self.clock.now) <= self.clock.units.alive)
    }

    /// The number of live slots.
    #[inline(always)]
    fn live(self, line: &Line) -> u32 {
        let slots = S::slots(line).iter();
        slots.map(|slot| u32::from(self.is_live(*slot))).sum()
    }
}

impl<S: StampedSlot, P: ReplacementPolicy, const SKEWED: bool> Rule for StampedRule<S, P, SKEWED> {
    type Bucket = Line;

    const HAS_PORTABLE_LOOP: bool = true;

    const COUNTS_EVICTIONS: bool = true;
    const HAS_CLOCK: bool = true;

    #[inline(always)]
    fn clock_mut(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn advance_to(&mut self, tick: u64) -> Option<u64> {
        let passed = self.clock.advance_to(tick);
        self.set_own(tick);
        passed
    }

    #[inline(always)]
    fn follow(&mut self, tick: u64) {
        self.clock.follow(tick);
        self.set_own(tick);
    }

    fn restart(&mut self) {
        self.clock.restart();
        self.own = 0;
    }

    fn expire(self, line: &mut Line, units: u64) {
        let mut kept = *line;
        for slot in S::slots_mut(&mut kept) {
            // In a full filter no branch would predict which keys have expired.
            let age = slot.age_at(self.clock.now).saturating_add(units);
            let live = age <= self.clock.units.alive;
            *slot = if live { *slot } else { S::zeroed() };
        }
        // Only what changes is written: a page that holds no keys stays untouched.
        if kept.differs_from(line) {
            *line = kept;
        }
    }

    #[inline(always)]
    fn visit<O: LineOps>(self, ops: O, line: &mut Line, key: KeyHash) -> Outcome {
        if SKEWED {
            return self.visit_near(ops, line, key);
        }
        let slot = S::stamped(key, self.clock.now);
        let found = ops.find_alive(line, slot, S::STAMP_BITS, self.clock.units.alive);
        let displaced = self.is_live(S::slots(line)[S::COUNT - 1]);
        ops.push_front(line, slot, P::moved(found, S::COUNT as u32));
        Outcome {
            duplicate: found != 0,
            displaced,
        }
    }

    fn duplicates_change_lines(self) -> bool {
        P::CHANGED_BY_DUPLICATES
    }

    fn holds(self, line: &Line, key: KeyHash) -> bool {
        if SKEWED {
            return self.find_near(Scalar, line, key, self.clock.now) != 0;
        }
        let slot = S::stamped(key, self.clock.now);
        let alive = self.clock.units.alive;
        Scalar.find_alive(line, slot, S::STAMP_BITS, alive) != 0
    }

    #[inline(always)]
    fn count(self, lines: &[Line], total: u64) -> (Cells, RateSum) {
        Self::SHAPE.count(lines, total, |line| self.live(line))
    }

    fn cells(self, line: &Line) -> Cells {
        Cells::new(self.live(line).into(), S::COUNT as u64)
    }

    fn fpr(self, line: &Line, lines: u64) -> f64 {
        Self::SHAPE.fpr(self.cells(line), lines)
    }

    fn estimates(self, tally: Tally) -> Report {
        shape::estimates::<P>(tally, Self::SHAPE, self.window.window())
    }
}

/// Builds stamped lines of these slots, whose keys are remembered for `units`.
pub(super) fn build<S: StampedSlot, P: ReplacementPolicy>(
    units: Units,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    let clock = Clock::new(units, S::STAMP_BITS);
    allocation.build(StampedRule::<S, P, false>::new(clock, units))
}

/// The same with a skew, which is what `units` have beyond the window.
pub(super) fn build_skewed<S: StampedSlot, P: ReplacementPolicy>(
    units: Units,
    window: u64,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    let window = units.with_window(window);
    let clock = Clock::comparing(units, S::STAMP_BITS, window.alive);
    allocation.build(StampedRule::<S, P, true>::new(clock, window))
}
