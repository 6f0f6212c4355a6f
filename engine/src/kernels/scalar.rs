//! Plain loops over slots: the definition of the operations.

use super::Token;
use super::slot::{Slot, SlotOps, moved_slots};
use crate::isa::{HotLoop, TargetIsa};
use crate::memory::Line;

/// The kernel of every machine, and the oracle of the other kernels.
#[derive(Debug, Clone, Copy)]
pub struct Scalar;

impl TargetIsa for Scalar {
    #[inline]
    fn run<L: HotLoop>(self, hot_loop: L) -> L::Output {
        hot_loop.run()
    }
}

impl SlotOps for Scalar {
    const ONE_LOOP: bool = true;

    #[inline(always)]
    fn token(self) -> Token {
        Token::Scalar
    }

    #[inline(always)]
    fn find<S: Slot>(self, line: &Line, fingerprint: S) -> u64 {
        S::slots(line)
            .iter()
            .enumerate()
            .fold(0, |found, (index, slot)| {
                found | u64::from(*slot == fingerprint) << index
            })
    }

    #[inline(always)]
    fn push_front<S: Slot>(self, line: &mut Line, fingerprint: S, moved: u64) {
        let count = moved_slots::<S>(moved);
        if count > 0 {
            let slots = S::slots_mut(line);
            // Slot `count - 1` is overwritten by the one below it: it falls out.
            slots.copy_within(..count - 1, 1);
            slots[0] = fingerprint;
        }
    }
}
