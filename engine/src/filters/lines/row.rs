//! A line as one row of a quotient hash table whose victims are random.

use std::marker::PhantomData;

use super::draw::Salt;
use super::filter::Rule;
use crate::hash::KeyHash;
use crate::kernels::{BitOps, Slot};
use crate::memory::Line;

/// QHT, or QHTD if found fingerprints are inserted `again` (paper 002, sections 3 and 5): a key is a duplicate if and only if its fingerprint is in
/// the row; a fresh one takes the first empty slot, or that of a random victim.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowRule<S> {
    again: bool,
    salt: Salt,
    slot: PhantomData<S>,
}

impl<S> RowRule<S> {
    pub(super) const fn new(again: bool, salt: Salt) -> Self {
        Self {
            again,
            salt,
            slot: PhantomData,
        }
    }
}

/// Which slots of the row are equal to `value`, one bit each.
#[inline(always)]
fn equal<S: Slot>(line: &Line, value: S) -> u64 {
    let slots = S::slots(line).iter().enumerate();
    slots.fold(0, |found, (index, slot)| {
        found | u64::from(*slot == value) << index
    })
}

impl<S: Slot + Send + 'static> Rule for RowRule<S> {
    #[inline(always)]
    fn visit<O: BitOps>(self, ops: O, line: &mut Line, key: KeyHash) -> bool {
        let fingerprint = S::of(key);
        let seen = equal(line, fingerprint) != 0;
        if !seen || self.again {
            let empty = equal(line, S::zeroed());
            let slot = if empty == 0 {
                let draw = self.salt.draw(key, ops.fold(ops.load(line)));
                draw.below(0, S::COUNT as u64) as usize
            } else {
                empty.trailing_zeros() as usize
            };
            S::slots_mut(line)[slot] = fingerprint;
        }
        seen
    }

    #[inline(always)]
    fn holds(self, line: &Line, key: KeyHash) -> bool {
        equal(line, S::of(key)) != 0
    }

    fn load(self, line: &Line) -> f64 {
        1.0 - f64::from(equal(line, S::zeroed()).count_ones()) / S::COUNT as f64
    }
}
