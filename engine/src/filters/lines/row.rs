//! A line as one row of a quotient hash table whose victims are random.

use std::marker::PhantomData;

use super::filter::Rule;
use super::random::Salt;
use crate::filters::lines::fingerprint::{FingerprintGeometry, SlotWidth};
use crate::hash::KeyHash;
use crate::kernels::{BitOps, Slot, SlotOps, scalar::Scalar};
use crate::memory::Line;

/// QHT, or QHTD if found fingerprints are inserted `AGAIN` (paper 002, sections 3 and 5): a key is a duplicate if and only if its fingerprint is in
/// the row; a fresh one takes the first empty slot, or that of a random victim.
///
/// ```text
/// QHT   | slot 0 | slot 1 | ...          | last slot |
/// QHTD  | slot 0 | slot 1 | ...          | count     |
/// ```
///
/// A QHTD line counts its arrivals in place of the last slot: a fingerprint that falls on itself leaves the row as it is, and would without a count
/// fall there for ever.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowRule<S, const AGAIN: bool> {
    salt: Salt,
    slot: PhantomData<S>,
}

impl<S: Slot, const AGAIN: bool> RowRule<S, AGAIN> {
    /// The slots that hold fingerprints.
    const SLOTS: usize = S::COUNT - AGAIN as usize;
    const WIDTH: SlotWidth = match S::BYTES {
        1 => SlotWidth::Bits8,
        2 => SlotWidth::Bits16,
        4 => SlotWidth::Bits32,
        _ => SlotWidth::Bits64,
    };

    pub(super) const fn new(salt: Salt) -> Self {
        Self {
            salt,
            slot: PhantomData,
        }
    }

    /// Which of the slots are equal to `value`, one bit each.
    #[inline(always)]
    fn find<O: SlotOps>(ops: O, line: &Line, value: S) -> u64 {
        ops.find(line, value) & (u64::MAX >> (64 - Self::SLOTS))
    }

    /// The slot that a fingerprint goes in: the first empty one, or the victim's.
    #[inline(always)]
    fn taken<O: BitOps + SlotOps>(self, ops: O, line: &Line, key: KeyHash) -> usize {
        let empty = Self::find(ops, line, S::zeroed());
        if empty == 0 {
            let draw = self.salt.draw(key, ops.fold(ops.load(line)));
            draw.below(0, Self::SLOTS as u64) as usize
        } else {
            empty.trailing_zeros() as usize
        }
    }
}

impl<S: Slot + Send + 'static, const AGAIN: bool> Rule for RowRule<S, AGAIN> {
    #[inline(always)]
    fn visit<O: BitOps + SlotOps>(self, ops: O, line: &mut Line, key: KeyHash) -> bool {
        let fingerprint = S::from_key(key);
        let seen = Self::find(ops, line, fingerprint) != 0;
        if !seen || AGAIN {
            let slot = self.taken(ops, line, key);
            let slots = S::slots_mut(line);
            slots[slot] = fingerprint;
            if AGAIN {
                slots[Self::SLOTS] = slots[Self::SLOTS].next();
            }
        }
        seen
    }

    #[inline(always)]
    fn holds(self, line: &Line, key: KeyHash) -> bool {
        Self::find(Scalar, line, S::from_key(key)) != 0
    }

    fn fpr(self, line: &Line, lines: u64) -> f64 {
        // Copies of a fingerprint match no more than one of them.
        let mut words = [0; 64];
        let held = &mut words[..Self::SLOTS];
        for (word, slot) in held.iter_mut().zip(S::slots(line)) {
            *word = slot.word();
        }
        held.sort_unstable();
        let steps = held.windows(2).filter(|pair| pair[0] != pair[1]);
        let distinct = steps.count() + usize::from(held[0] != 0);
        let shape = FingerprintGeometry {
            lines,
            width: Self::WIDTH,
        };
        distinct as f64 * shape.match_probability()
    }

    fn load(self, line: &Line) -> f64 {
        let empty = Self::find(Scalar, line, S::zeroed()).count_ones();
        1.0 - f64::from(empty) / Self::SLOTS as f64
    }
}
