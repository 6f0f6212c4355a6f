//! Plain loops over slots: what the operations mean.

use super::slot::{Slot, SlotOps, moved_slots};
use crate::kernels::isa::{HotLoop, TargetIsa};
use crate::memory::Line;

/// The kernel that any machine has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar;

impl TargetIsa for Scalar {
    #[inline]
    fn run<L: HotLoop>(self, hot_loop: L) -> L::Output {
        hot_loop.run()
    }
}

impl SlotOps for Scalar {
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
            slots.copy_within(..count - 1, 1);
            slots[0] = fingerprint;
        }
    }
}
