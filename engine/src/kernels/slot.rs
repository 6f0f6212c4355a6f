//! Slots: a line seen as 64, 32, 16 or 8 fingerprints, and the operations that every kernel has on
//! them.
//!
//! ```text
//! byte 0                                                63
//! | slot 0 | slot 1 | slot 2 | ...          | last slot |
//! newest                                        oldest     (in a queue)
//! ```

use std::fmt::Debug;

use bytemuck::Pod;

use crate::hash::KeyHash;
use crate::isa::TargetIsa;
use crate::kernels::Token;
use crate::memory::Line;

/// A fingerprint: an unsigned integer of 1, 2, 4 or 8 bytes, never zero, because zero is an empty
/// slot.
pub trait Slot: Pod + Eq + Debug + Send + Sync {
    /// The width of a slot in bytes.
    const BYTES: usize;
    /// How many slots a line has.
    const COUNT: usize = 64 / Self::BYTES;

    /// The fingerprint of a key: the low bits of its hash, with 1 in place of 0.
    ///
    /// The high bits pick the line, so the two are independent as long as they do not overlap.
    fn from_key(key: KeyHash) -> Self;

    /// The fingerprint as a word, for kernels that broadcast it to a register.
    fn word(self) -> u64;

    /// The next number, zero after the last; for slots that hold a count.
    fn next(self) -> Self;

    /// The slot with its highest bit replaced by `bit`, if it is to be `replaced`.
    fn with_high_bit(self, replaced: bool, bit: bool) -> Self;

    /// The age of `other` at the time of `self`, both with a stamp in their `stamp_bits` high bits
    /// and a fingerprint below; at least 2^`stamp_bits` if the fingerprints differ.
    ///
    /// ```text
    ///   self     | now              | fingerprint      |
    /// - other    | stamp            | fingerprint      |
    ///            | now - stamp      | 0 if it is equal |    a borrow only where it is not equal
    ///   rotated  | 0 if it is equal | now - stamp      |    one comparison for both
    /// ```
    fn age(self, other: Self, stamp_bits: u32) -> u64;

    /// The slots of a line, slot 0 first.
    #[inline(always)]
    fn slots(line: &Line) -> &[Self] {
        bytemuck::must_cast_slice(&line.0)
    }

    /// The slots of a line, mutable.
    #[inline(always)]
    fn slots_mut(line: &mut Line) -> &mut [Self] {
        bytemuck::must_cast_slice_mut(&mut line.0)
    }
}

/// `Slot` for the unsigned integers, which differ only in their width.
macro_rules! slot {
    ($($int:ty),*) => {$(
        impl Slot for $int {
            const BYTES: usize = size_of::<$int>();

            #[inline(always)]
            fn from_key(key: KeyHash) -> Self {
                let low = key.0 as $int;
                // The comparison is added as 0 or 1, without a branch.
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

            #[inline(always)]
            fn with_high_bit(self, replaced: bool, bit: bool) -> Self {
                let (replaced, bit) = (<$int>::from(replaced), <$int>::from(bit));
                let high = <$int>::BITS - 1;
                self & !(replaced << high) | (replaced & bit) << high
            }

            #[inline(always)]
            fn age(self, other: Self, stamp_bits: u32) -> u64 {
                u64::from(self.wrapping_sub(other).rotate_left(stamp_bits))
            }
        }
    )*};
}

slot!(u8, u16, u32, u64);

/// The operations of a kernel on a line of fingerprints.
///
/// All of them are `#[inline(always)]`: they are compiled into a batch loop that has the kernel's
/// features enabled, and a function without these features cannot be inlined into it.
pub trait SlotOps: TargetIsa {
    /// Whether rules have a single batch loop here: on the kernel that others are compared with,
    /// and that runs where there is nothing better.
    const ONE_LOOP: bool = false;

    /// The kernel as a value.
    fn token(self) -> Token;

    /// The slots that hold `fingerprint`: bit `i` is slot `i`; bits past the last slot are zero.
    fn find<S: Slot>(self, line: &Line, fingerprint: S) -> u64;

    /// As [`find`](Self::find), for slots of 4 or 8 bytes; the highest bits of the slots in
    /// `selected` are not compared. Bits of `selected` past the last slot are ignored.
    #[inline(always)]
    fn find_ignoring_high_bits<S: Slot>(self, line: &Line, fingerprint: S, selected: u64) -> u64 {
        const { assert!(S::BYTES >= 4) };
        let other = fingerprint.with_high_bit(true, fingerprint.word() >> (8 * S::BYTES - 1) == 0);
        self.find(line, fingerprint) | self.find(line, other) & selected
    }

    /// The slots, 4 or 8 bytes wide, whose [age](Slot::age) at the time of `slot` is at most
    /// `alive`: those that hold its fingerprint and a stamp at most so old. Bit `i` is slot `i`;
    /// bits past the last slot are zero.
    #[inline(always)]
    fn find_alive<S: Slot>(self, line: &Line, slot: S, stamp_bits: u32, alive: u64) -> u64 {
        const { assert!(S::BYTES >= 4) };
        let others = S::slots(line).iter().enumerate();
        others.fold(0, |found, (index, other)| {
            found | u64::from(slot.age(*other, stamp_bits) <= alive) << index
        })
    }

    /// Whether the last slot of the line is occupied, so that pushing all slots would evict it.
    #[inline(always)]
    fn last_is_occupied<S: Slot>(self, line: &Line) -> bool {
        S::slots(line)[S::COUNT - 1].word() != 0
    }

    /// The highest bit of each slot, 4 or 8 bytes wide: bit `i` is that of slot `i`; bits past the
    /// last slot are zero.
    #[inline(always)]
    fn high_bits<S: Slot>(self, line: &Line) -> u64 {
        const { assert!(S::BYTES >= 4) };
        let slots = S::slots(line).iter().enumerate();
        slots.fold(0, |bits, (index, slot)| {
            bits | (slot.word() >> (8 * S::BYTES - 1)) << index
        })
    }

    /// Sets the highest bits of the slots in `selected`, 4 or 8 bytes wide, to those of `bits`. The
    /// other bits of `bits`, and those past the last slot, are ignored.
    #[inline(always)]
    fn set_high_bits<S: Slot>(self, line: &mut Line, selected: u64, bits: u64) {
        const { assert!(S::BYTES >= 4) };
        for (index, slot) in S::slots_mut(line).iter_mut().enumerate() {
            *slot = slot.with_high_bit(selected >> index & 1 == 1, bits >> index & 1 == 1);
        }
    }

    /// Moves the slots of `moved` up by one and puts `fingerprint` in slot 0.
    ///
    /// `moved` is a run of bits from bit 0 on; the last of these slots falls out. Bits past the
    /// last slot are ignored. If no bit is set, the line does not change.
    fn push_front<S: Slot>(self, line: &mut Line, fingerprint: S, moved: u64);
}

/// The number of slots that a run of bits moves, 0 to `S::COUNT`.
#[inline(always)]
pub(super) fn moved_slots<S: Slot>(moved: u64) -> usize {
    debug_assert!((moved & moved.wrapping_add(1)) == 0, "a run from bit 0 on");
    (moved & (u64::MAX >> (64 - S::COUNT))).count_ones() as usize
}

/// A mask of the first `n` bytes of a line is the 64 bytes from `64 - n` on.
///
/// ```text
/// byte     0                    64                   127
///          | ff ff ff ... ff ff | 00 00 00 ... 00 00 |
/// n = 2                 | ff ff   00 00 ...    |
/// ```
pub(super) static PREFIX_MASKS: [u8; 128] = {
    let mut bytes = [0; 128];
    let mut index = 0;
    while index < 64 {
        bytes[index] = 0xff;
        index += 1;
    }
    bytes
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::isa::HotLoop;
    use crate::isa::tested::kernels;
    use crate::kernels::{ForKernel, LineOps};

    /// The high bits of a line before and after they are set, and the line.
    #[derive(Clone, Copy)]
    struct HighBits<S> {
        line: Line,
        selected: u64,
        bits: u64,
        slot: std::marker::PhantomData<S>,
    }

    struct OnKernel<T, O>(T, O);

    impl<S: Slot, O: LineOps> HotLoop for OnKernel<HighBits<S>, O> {
        type Output = (u64, u64, Line);

        #[inline(always)]
        fn run(self) -> Self::Output {
            let Self(
                HighBits {
                    mut line,
                    selected,
                    bits,
                    ..
                },
                ops,
            ) = self;
            let before = ops.high_bits::<S>(&line);
            ops.set_high_bits::<S>(&mut line, selected, bits);
            (before, ops.high_bits::<S>(&line), line)
        }
    }

    impl<S: Slot> ForKernel for HighBits<S> {
        type Output = (u64, u64, Line);

        fn call<O: LineOps>(self, ops: O) -> Self::Output {
            ops.run(OnKernel(self, ops))
        }
    }

    /// A search of a line in which some highest bits are not compared.
    #[derive(Clone, Copy)]
    struct Search<S> {
        line: Line,
        fingerprint: S,
        selected: u64,
    }

    impl<S: Slot, O: LineOps> HotLoop for OnKernel<Search<S>, O> {
        type Output = u64;

        #[inline(always)]
        fn run(self) -> u64 {
            let Self(search, ops) = self;
            ops.find_ignoring_high_bits(&search.line, search.fingerprint, search.selected)
        }
    }

    impl<S: Slot> ForKernel for Search<S> {
        type Output = u64;

        fn call<O: LineOps>(self, ops: O) -> u64 {
            ops.run(OnKernel(self, ops))
        }
    }

    /// Searches for the fingerprint of a slot, with its highest bit as it is and flipped.
    fn finds<S: Slot>(words: [u64; 8], selected: u64, slot: usize) -> Result<(), TestCaseError> {
        let line = Line(words);
        let held = S::slots(&line)[slot % S::COUNT];
        let is_high = |slot: S| slot.word() >> (8 * S::BYTES - 1) == 1;
        for fingerprint in [held, held.with_high_bit(true, !is_high(held))] {
            let equal = |(index, slot): (usize, &S)| {
                let ignored = selected >> index & 1 == 1;
                let slot = slot.with_high_bit(ignored, is_high(fingerprint));
                u64::from(slot == fingerprint) << index
            };
            let slots = S::slots(&line).iter().enumerate();
            let expected = slots.map(equal).fold(0, |found, bit| found | bit);
            for kernel in kernels() {
                let search = Search {
                    line,
                    fingerprint,
                    selected,
                };
                let found = kernel.detect().unwrap().dispatch(search);
                prop_assert_eq!(found, expected, "{}", kernel);
            }
        }
        Ok(())
    }

    fn agrees<S: Slot>(words: [u64; 8], selected: u64, bits: u64) -> Result<(), TestCaseError> {
        let width = 8 * S::BYTES;
        let mut expected = words;
        let (mut before, mut after) = (0, 0);
        for slot in 0..S::COUNT {
            let highest = (slot + 1) * width - 1;
            let (word, bit) = (highest / 64, highest % 64);
            before |= (words[word] >> bit & 1) << slot;
            if selected >> slot & 1 == 1 {
                expected[word] = expected[word] & !(1 << bit) | (bits >> slot & 1) << bit;
            }
            after |= (expected[word] >> bit & 1) << slot;
        }
        for kernel in kernels() {
            let slot = std::marker::PhantomData::<S>;
            let high_bits = HighBits {
                line: Line(words),
                selected,
                bits,
                slot,
            };
            let found = kernel.detect().unwrap().dispatch(high_bits);
            prop_assert_eq!(found, (before, after, Line(expected)), "{}", kernel);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn high_bits_are_those_of_single_slots(words: [u64; 8], selected: u64, bits: u64) {
            agrees::<u32>(words, selected, bits)?;
            agrees::<u64>(words, selected, bits)?;
        }

        #[test]
        fn searches_ignore_high_bits_where_they_should(
            words: [u64; 8], few in 0..3_u64, selected: u64, slot: usize,
        ) {
            // Random slots, and ones that differ in their highest bits only.
            let alike = words.map(|word| word & 0x8000_0000_8000_0000 | few);
            for words in [words, alike] {
                finds::<u32>(words, selected, slot)?;
                finds::<u64>(words, selected, slot)?;
            }
        }
    }
}
