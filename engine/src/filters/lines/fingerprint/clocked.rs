//! Clocked lines: a queue of fingerprints, and one word with the ages of its parts.
//!
//! A queue is in the order of time already, newest first, so its slots need no times: borders
//! between ages are enough. The last 8 bytes of the line are the **clock word**.
//!
//! ```text
//!  line (64 bytes), 16-bit slots
//!  +-----+-----+-----+-----+- ... -+-----+----------------+
//!  |  0  |  1  |  2  |  3  |       | 27  |   clock word   |
//!  +-----+-----+-----+-----+- ... -+-----+----------------+
//!  |< c0 >|          newest first
//!  |<---- c1 ---->|                  cj: the slots that are at most j units old
//!  |<------ alive ------>| dead
//!
//!  clock word
//!  63                    36 35  30 29  24 23  18 17  12 11   6 5    0
//!  | unit of the last visit |  c5  |  c4  |  c3  |  c2  |  c1  |  c0  |
//!  |        28 bits         |   six counts: 5 bits, and a guard bit of 0 above them
//! ```
//!
//! A unit is a fifth of the window. A key that was recorded late in its unit is nearly one unit
//! younger than another one of the same unit, so five whole units and the one that is partly over
//! must stay alive: six counts, the last for the slots at most five units old. (Five counts would
//! make the unit a quarter of the window.)

use std::marker::PhantomData;

use super::shape::{self, TimedLineShape, select};
use crate::error::BuildError;
use crate::filters::lines::Clock;
use crate::filters::lines::rule::Rule;
use crate::filters::lines::{LineAllocation, LineFilter};
use crate::filters::replacement::ReplacementPolicy;
use crate::filters::units::Units;
use crate::hash::KeyHash;
use crate::kernels::{LineOps, Outcome, Slot, SlotOps, scalar::Scalar};
use crate::memory::Line;
use crate::report::{Cells, RateSum, Report, Tally, Window};

/// The most units of a window.
pub(super) const MOST_ALIVE: u64 = COUNTS as u64 - 1;

/// The word of the line that is the clock word.
const CLOCK_WORD: usize = 7;

/// The counts of a clock word, and the bits of each with its guard bit.
const COUNTS: u32 = 6;
const COUNT_BITS: u32 = 6;

/// The bits of all counts.
const ALL_COUNTS: u64 = (1 << (COUNTS * COUNT_BITS)) - 1;

/// The bits of the unit of the last visit.
const UNIT_BITS: u32 = u64::BITS - COUNTS * COUNT_BITS;

/// A one in each count, and the guard bit of each.
const ONES: u64 = ALL_COUNTS / ((1 << COUNT_BITS) - 1);
const GUARDS: u64 = ONES << (COUNT_BITS - 1);

/// FIFO (`qqht`) or LRU (`rowlru`) lines whose keys expire.
#[derive(Debug, Clone, Copy)]
pub(in crate::filters::lines) struct ClockedRule<S, P> {
    clock: Clock,
    types: PhantomData<(S, P)>,
}

/// What a probe of a line finds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probed {
    /// The counts of its ages.
    counts: u64,
    /// The slots that are alive and hold the fingerprint, one bit each.
    pub(super) found: u64,
}

impl Probed {
    /// `then` if the mask is all ones, `otherwise` if it is 0.
    #[inline(always)]
    pub(super) const fn select(mask: u64, then: Self, otherwise: Self) -> Self {
        Self {
            counts: select(mask, then.counts, otherwise.counts),
            found: select(mask, then.found, otherwise.found),
        }
    }
}

impl<S: Slot, P: ReplacementPolicy> ClockedRule<S, P> {
    /// The slots in front of the clock word.
    pub(super) const SLOTS: usize = S::COUNT - 8 / S::BYTES;
    const ROW: u64 = (1 << Self::SLOTS) - 1;
    const SHAPE: TimedLineShape = TimedLineShape {
        slots: Self::SLOTS as u32,
        slot_bits: 8 * S::BYTES as u32,
        fingerprint_bits: 8 * S::BYTES as u32,
    };

    /// The rule for keys that stay alive for so many units.
    pub(in crate::filters::lines) const fn new(units: Units) -> Self {
        Self {
            clock: Clock::new(units, UNIT_BITS),
            types: PhantomData,
        }
    }

    /// The window of its keys.
    pub(super) const fn window(self) -> Window {
        self.clock.units.window()
    }

    /// The counts of a line as they are now.
    ///
    /// A slot that was at most `j` units old one unit ago is at most `j + 1` units old now, so each
    /// unit that passed moves every count up by one place. The first count becomes 0: nothing was
    /// recorded in the current unit yet.
    #[inline(always)]
    fn counts(self, word: u64) -> u64 {
        let last = word >> (COUNTS * COUNT_BITS);
        // Lines expire before the distance could wrap; see `clock`.
        let passed = self.clock.now.wrapping_sub(last) & (u64::MAX >> (u64::BITS - UNIT_BITS));
        let places = passed.min(u64::from(COUNTS)) as u32;
        (word & ALL_COUNTS) << (places * COUNT_BITS) & ALL_COUNTS
    }

    /// The number of slots that are alive, from slot 0 on.
    #[inline(always)]
    const fn live(self, counts: u64) -> u32 {
        let place = self.clock.units.alive as u32 * COUNT_BITS;
        (counts >> place) as u32 & ((1 << COUNT_BITS) - 1)
    }

    /// Probes a line for a fingerprint.
    #[inline(always)]
    pub(super) fn probe<O: SlotOps>(self, ops: O, line: &Line, fingerprint: S) -> Probed {
        let counts = self.counts(line.0[CLOCK_WORD]);
        let live = self.live(counts);
        debug_assert!(live as usize <= Self::SLOTS);
        Probed {
            counts,
            found: ops.find(line, fingerprint) & ((1 << live) - 1),
        }
    }

    /// The counts of a line as one number: one line has a lower number than another if fewer of its
    /// slots are alive, or as many and fewer of them are younger than the window by at least one
    /// unit, and so on. Of two full lines, the one with the lower number evicts the older key.
    #[inline(always)]
    pub(super) const fn load(self, probed: Probed) -> u64 {
        // The counts above that of the live slots are cut off.
        let alive = (1 << ((self.clock.units.alive as u32 + 1) * COUNT_BITS)) - 1;
        probed.counts & alive
    }

    /// Records a key in a line that was probed. Returns whether every slot of it was alive.
    #[inline(always)]
    pub(super) fn record<O: LineOps>(
        self,
        ops: O,
        line: &mut Line,
        fingerprint: S,
        probed: Probed,
    ) -> bool {
        let Probed { counts, found } = probed;
        // A fresh key moves all slots, the dead ones with them. The mask keeps the clock word.
        let moved = P::moved(found, Self::SLOTS as u32) & Self::ROW;
        ops.push_front(line, fingerprint, moved);
        line.0[CLOCK_WORD] = Self::word(self.clock.now, Self::push(counts, moved.count_ones()));
        self.live(counts) == Self::SLOTS as u32
    }

    /// The counts after the first `moved` slots moved up by one and a new key entered slot 0.
    ///
    /// A count `c` below `moved` gains the new key, and loses none: the last slot that moved was
    /// empty, older than the slots that `c` counts, or dead. A count of `moved` or more had that
    /// slot already, and the full line, with all its slots moved, keeps a count of all slots.
    ///
    /// ```text
    /// guard 1 | 31 + moved - c      the guard bit of each count is set if and only if c < moved
    /// ```
    ///
    /// Counts and `moved` are 0 to 28, so no difference leaves its 6 bits.
    #[inline(always)]
    const fn push(counts: u64, moved: u32) -> u64 {
        let below = ONES * (31 + moved as u64) - counts;
        counts + ((below & GUARDS) >> (COUNT_BITS - 1))
    }

    #[inline(always)]
    const fn word(now: u64, counts: u64) -> u64 {
        now << (COUNTS * COUNT_BITS) | counts
    }
}

impl<S: Slot, P: ReplacementPolicy> Rule for ClockedRule<S, P> {
    type Bucket = Line;

    const HAS_PORTABLE_LOOP: bool = true;

    const COUNTS_EVICTIONS: bool = true;
    const HAS_CLOCK: bool = true;

    #[inline(always)]
    fn clock_mut(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    /// Dead slots keep their fingerprints: no count reaches them.
    fn expire(self, line: &mut Line, units: u64) {
        let word = line.0[CLOCK_WORD];
        if word == 0 {
            return;
        }
        let places = units.min(u64::from(COUNTS)) as u32;
        let counts = self.counts(word) << (places * COUNT_BITS) & ALL_COUNTS;
        line.0[CLOCK_WORD] = if counts == 0 {
            0
        } else {
            Self::word(self.clock.now.wrapping_add(units), counts)
        };
    }

    #[inline(always)]
    fn visit<O: LineOps>(self, ops: O, line: &mut Line, key: KeyHash) -> Outcome {
        let fingerprint = S::from_key(key);
        let probed = self.probe(ops, line, fingerprint);
        Outcome {
            duplicate: probed.found != 0,
            displaced: self.record(ops, line, fingerprint, probed),
        }
    }

    fn holds(self, line: &Line, key: KeyHash) -> bool {
        self.probe(Scalar, line, S::from_key(key)).found != 0
    }

    #[inline(always)]
    fn count(self, lines: &[Line], total: u64) -> (Cells, RateSum) {
        Self::SHAPE.count(lines, total, |line| {
            self.live(self.counts(line.0[CLOCK_WORD]))
        })
    }

    fn cells(self, line: &Line) -> Cells {
        let live = self.live(self.counts(line.0[CLOCK_WORD]));
        Cells::new(u64::from(live), Self::SLOTS as u64)
    }

    fn fpr(self, line: &Line, lines: u64) -> f64 {
        Self::SHAPE.fpr(self.cells(line), lines)
    }

    fn estimates(self, tally: Tally) -> Report {
        shape::estimates::<P>(tally, Self::SHAPE, self.window())
    }
}

/// Builds clocked lines of slots of this width.
pub(super) fn build<S: Slot, P: ReplacementPolicy>(
    units: Units,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    allocation.build(ClockedRule::<S, P>::new(units))
}
