//! Slots: a line seen as 64, 32, 16 or 8 fingerprints, and the two operations that every kernel has on them.

use std::fmt::Debug;

use bytemuck::Pod;

use crate::hash::KeyHash;
use crate::kernels::isa::TargetIsa;
use crate::memory::Line;

/// A fingerprint: an unsigned integer of 1, 2, 4 or 8 bytes, never zero, because zero is an empty slot.
pub(crate) trait Slot: Pod + Eq + Debug + Send {
    /// The width of a slot in bytes.
    const BYTES: usize;
    /// How many slots a line has.
    const COUNT: usize = 64 / Self::BYTES;

    /// The fingerprint of a key: the low bits of its hash, with one in place of zero.
    fn from_key(key: KeyHash) -> Self;

    /// The fingerprint as a word, for kernels that spread it over a register.
    fn word(self) -> u64;

    /// The number after this one, zero after the last: of a slot that counts.
    fn next(self) -> Self;

    /// The slots of a line, slot 0 first.
    #[inline(always)]
    fn slots(line: &Line) -> &[Self] {
        bytemuck::must_cast_slice(&line.0)
    }

    /// The slots of a line, to be written.
    #[inline(always)]
    fn slots_mut(line: &mut Line) -> &mut [Self] {
        bytemuck::must_cast_slice_mut(&mut line.0)
    }
}

/// `Slot` for the unsigned integers: the same lines for each, as only the width differs.
macro_rules! slot {
    ($($int:ty),*) => {$(
        impl Slot for $int {
            const BYTES: usize = size_of::<$int>();

            #[inline(always)]
            fn from_key(key: KeyHash) -> Self {
                let low = key.0 as $int;
                low + <$int>::from(low == 0)
            }

            #[inline(always)]
            fn word(self) -> u64 {
                u64::from(self)
            }

            #[inline(always)]
            fn next(self) -> Self {
                self.wrapping_add(1)
            }
        }
    )*};
}

slot!(u8, u16, u32, u64);

/// What a kernel can do to a line of fingerprints.
pub(crate) trait SlotOps: TargetIsa {
    /// Which slots hold `fingerprint`: bit `i` is slot `i`.
    fn find<S: Slot>(self, line: &Line, fingerprint: S) -> u64;

    /// Whether the last slot of the line is taken.
    #[inline(always)]
    fn last_is_taken<S: Slot>(self, line: &Line) -> bool {
        S::slots(line)[S::COUNT - 1].word() != 0
    }

    /// Moves the slots of `moved`, a run of bits from bit 0 on, up by one, the last of them falling out, and puts `fingerprint`
    /// in slot 0. Bits past the last slot mean nothing; without any bit the line stays as it is.
    fn push_front<S: Slot>(self, line: &mut Line, fingerprint: S, moved: u64);
}

/// How many slots a run of bits moves.
#[inline(always)]
pub(super) fn moved_slots<S: Slot>(moved: u64) -> usize {
    debug_assert!((moved & moved.wrapping_add(1)) == 0, "a run from bit 0 on");
    (moved & (u64::MAX >> (64 - S::COUNT))).count_ones() as usize
}

/// 64 set bytes and 64 clear ones: the 64 bytes from `64 - n` on are a mask of the first `n` bytes of a line.
pub(crate) static PREFIX_MASKS: [u8; 128] = {
    let mut bytes = [0; 128];
    let mut index = 0;
    while index < 64 {
        bytes[index] = 0xff;
        index += 1;
    }
    bytes
};
