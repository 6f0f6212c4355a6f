//! A line as one row of a quotient hash table whose victims are random.

use std::marker::PhantomData;

use super::random::Salt;
use crate::kernels::{BitOps, with_bits};
use crate::scattered::rows::counters;
use echoless::extend::{
    LineAllocation, LineOps, Named, Outcome, Rule, Scalar, Slot, SlotOps, rows::width,
};
use echoless::memory::Line;
use echoless::{BuildError, Cells, FingerprintGeometry, KeyHash, LineFilter, SlotWidth};

/// QHT, or QHTD if duplicates are inserted `AGAIN` (paper 002, sections 3 and 5): a key is a
/// duplicate if and only if its fingerprint is in the row. An inserted fingerprint takes the first
/// empty slot, or replaces a random victim.
///
/// ```text
/// QHT   | slot 0 | slot 1 | ...          | last slot |
/// QHTD  | slot 0 | slot 1 | ...          | count     |
/// ```
///
/// A QHTD line counts its arrivals in place of the last slot. A duplicate that replaces its own
/// fingerprint leaves the row as it is. Without a count it would repeat this draw, and replace
/// itself, forever.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowRule<S, const AGAIN: bool> {
    salt: Salt,
    slot: PhantomData<S>,
}

impl<S: Slot, const AGAIN: bool> RowRule<S, AGAIN> {
    /// The number of slots that hold fingerprints: one less in QHTD.
    const SLOTS: usize = S::COUNT - AGAIN as usize;
    const WIDTH: SlotWidth = SlotWidth::from_bytes(S::BYTES);

    pub(super) const fn new(salt: Salt) -> Self {
        Self {
            salt,
            slot: PhantomData,
        }
    }

    /// Which of the fingerprint slots are equal to `value`, one bit each. The mask excludes the
    /// count of QHTD.
    #[inline(always)]
    fn find<O: SlotOps>(ops: O, line: &Line, value: S) -> u64 {
        ops.find(line, value) & (u64::MAX >> (64 - Self::SLOTS))
    }

    /// The slot for a new fingerprint: the first empty one, or that of a random victim.
    #[inline(always)]
    fn slot_for<O: SlotOps>(self, ops: O, line: &Line, key: KeyHash) -> usize {
        let empty = Self::find(ops, line, S::zeroed());
        if empty == 0 {
            let draw = self.salt.draw(key, with_bits!(ops, |bits| bits.fold(line)));
            draw.below(0, Self::SLOTS as u64) as usize
        } else {
            empty.trailing_zeros() as usize
        }
    }
}

impl<S: Slot, const AGAIN: bool> Rule for RowRule<S, AGAIN> {
    type Bucket = Line;

    const HAS_PORTABLE_LOOP: bool = false;

    #[inline(always)]
    fn visit<O: LineOps>(self, ops: O, line: &mut Line, key: KeyHash) -> Outcome {
        let fingerprint = S::from_key(key);
        let seen = Self::find(ops, line, fingerprint) != 0;
        if !seen || AGAIN {
            let slot = self.slot_for(ops, line, key);
            let slots = S::slots_mut(line);
            slots[slot] = fingerprint;
            if AGAIN {
                slots[Self::SLOTS] = slots[Self::SLOTS].next();
            }
        }
        Outcome::of(seen)
    }

    fn duplicates_change_lines(self) -> bool {
        AGAIN
    }

    #[inline(always)]
    fn holds(self, line: &Line, key: KeyHash) -> bool {
        Self::find(Scalar, line, S::from_key(key)) != 0
    }

    fn fpr(self, line: &Line, lines: u64) -> f64 {
        // A key matches a fingerprint no matter how many copies the row has, so only distinct ones
        // count. Sorted, each run of copies counts once: at each step to another value, and at the
        // first value if that is not the 0 of empty slots.
        let mut words = [0; 64];
        let held = &mut words[..Self::SLOTS];
        for (word, slot) in held.iter_mut().zip(S::slots(line)) {
            *word = slot.word();
        }
        held.sort_unstable();
        let steps = held.windows(2).filter(|pair| pair[0] != pair[1]);
        let distinct = steps.count() + usize::from(held[0] != 0);
        distinct as f64 * FingerprintGeometry::new(lines, Self::WIDTH).match_probability()
    }

    fn cells(self, line: &Line) -> Cells {
        let empty = Self::find(Scalar, line, S::zeroed()).count_ones();
        Cells::new(Self::SLOTS as u64 - u64::from(empty), Self::SLOTS as u64)
    }
}

/// Builds the line form of a row filter with random victims, whose rows have 64 slots of 8 bits, 32
/// of 16, 16 of 32 or 8 of 64. QHTD has one slot less: 63, 31, 15 or 7.
pub(crate) fn build(
    named: &Named,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    let counters = counters(named.name());
    let width = width(named, counters)?;
    match counters {
        0 => build_random::<false>(width, allocation),
        _ => build_random::<true>(width, allocation),
    }
}

fn build_random<const AGAIN: bool>(
    width: SlotWidth,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    let salt = Salt::from_seed(allocation.seed);
    match width {
        SlotWidth::Bits8 => allocation.build(RowRule::<u8, AGAIN>::new(salt)),
        SlotWidth::Bits16 => allocation.build(RowRule::<u16, AGAIN>::new(salt)),
        SlotWidth::Bits32 => allocation.build(RowRule::<u32, AGAIN>::new(salt)),
        SlotWidth::Bits64 => allocation.build(RowRule::<u64, AGAIN>::new(salt)),
    }
}
