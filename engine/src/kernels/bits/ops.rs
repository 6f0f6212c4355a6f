//! The operations on the bits of a line, and how a line is cut into filters of whole words.
//!
//! ```text
//! bit 511                                      64 63             0
//!     | word 7 | word 6 | ...            | word 1 | word 0        |
//! ```

use crate::cpu::Enter;
use crate::memory::Line;

/// The bits of a line.
pub(crate) const LINE_BITS: u32 = 512;

/// What a kernel can do to the bits of a line. All of it is `#[inline(always)]`.
pub(crate) trait BitOps: Enter {
    /// The 512 bits.
    type Bits: Copy;

    fn load(self, line: &Line) -> Self::Bits;

    fn store(self, bits: Self::Bits, line: &mut Line);

    /// Bit `position` alone if `set`, and else none.
    fn bit(self, position: u32, set: bool) -> Self::Bits;

    /// The bits below `end`, which is at most 512.
    fn below(self, end: u32) -> Self::Bits;

    /// In each of `K` filters of whole words the bit at its position, of those packed in `positions`.
    fn in_each<const K: u32>(self, positions: u64) -> Self::Bits;

    /// The bits of those of `K` filters of whole words in which `found` has any.
    fn of_filters<const K: u32>(self, bits: Self::Bits, found: Self::Bits) -> Self::Bits;

    fn and(self, left: Self::Bits, right: Self::Bits) -> Self::Bits;

    fn or(self, left: Self::Bits, right: Self::Bits) -> Self::Bits;

    /// The bits of `left` that are not in `right`.
    fn without(self, left: Self::Bits, right: Self::Bits) -> Self::Bits;

    /// All of `bits` if `taken`, and else none: by a mask, for the branch would be a guess.
    fn only_if(self, taken: bool, bits: Self::Bits) -> Self::Bits;

    /// Each word of `left` less that of `right`.
    fn minus(self, left: Self::Bits, right: Self::Bits) -> Self::Bits;

    /// Each word moved down by so many bits, below 64.
    fn down(self, bits: Self::Bits, by: u32) -> Self::Bits;

    /// Each word moved up by so many bits, below 64.
    fn up(self, bits: Self::Bits, by: u32) -> Self::Bits;

    /// Whether every bit of `mask` is in `bits`.
    fn covers(self, bits: Self::Bits, mask: Self::Bits) -> bool;

    /// All words in one by exclusive or, so that any bit that changes, changes it.
    fn fold(self, bits: Self::Bits) -> u64;
}

/// A line cut into `K` filters of whole words: 1, 2, 4 or 8 of them.
pub(crate) struct Filters<const K: u32>;

impl<const K: u32> Filters<K> {
    /// The words of a filter.
    pub(crate) const WORDS: u32 = 8 / K;
    /// The bits of a filter.
    pub(crate) const WIDTH: u32 = LINE_BITS / K;
    /// The bits of a position.
    pub(crate) const POSITION_BITS: u32 = Self::WIDTH.trailing_zeros();
    /// A one in the lowest bit of each of `K` packed positions.
    pub(crate) const LOWEST: u64 = {
        let (mut ones, mut filter) = (0, 0);
        while filter < K {
            ones |= 1 << (filter * Self::POSITION_BITS);
            filter += 1;
        }
        ones
    };
    /// For each word, how far up the position of its filter is packed.
    pub(super) const SHIFTS: Line = {
        let (mut shifts, mut word) = ([0; 8], 0);
        while word < 8 {
            shifts[word] = (word as u32 / Self::WORDS * Self::POSITION_BITS) as u64;
            word += 1;
        }
        Line(shifts)
    };
    /// For each word, its first bit in its filter.
    pub(super) const STARTS: Line = {
        let (mut starts, mut word) = ([0; 8], 0);
        while word < 8 {
            starts[word] = (word as u32 % Self::WORDS * 64) as u64;
            word += 1;
        }
        Line(starts)
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::scalar::words;
    use super::*;
    use crate::cpu::{HotLoop, Kernel};
    use crate::kernels::scalar::Scalar;
    #[cfg(target_arch = "x86_64")]
    use crate::kernels::{avx2::Avx2, avx512::Avx512};

    /// Every operation on the same operands, each result as a line.
    struct Everything<O> {
        ops: O,
        left: Line,
        right: Line,
        position: u32,
        choice: bool,
    }

    impl<O: BitOps> Everything<O> {
        #[inline(always)]
        fn filters<const K: u32>(&self) -> [O::Bits; 2] {
            let (ops, left, right) = (self.ops, self.left, self.right);
            // Few bits, so that some filters have none.
            let found = ops.and(ops.load(&right), ops.bit(self.position, self.choice));
            [
                ops.in_each::<K>(left.0[0]),
                ops.of_filters::<K>(ops.load(&left), found),
            ]
        }
    }

    impl<O: BitOps> HotLoop for Everything<O> {
        type Output = Vec<Line>;

        #[inline(always)]
        fn run(self) -> Vec<Line> {
            let ops = self.ops;
            let (left, right) = (ops.load(&self.left), ops.load(&self.right));
            let both = ops.or(left, right);
            let mut results = vec![
                left,
                ops.bit(self.position, self.choice),
                ops.below(self.position + u32::from(self.choice)),
                ops.and(left, right),
                both,
                ops.without(left, right),
                ops.only_if(self.choice, left),
                ops.minus(left, right),
                ops.down(left, self.position % 64),
                ops.up(left, self.position % 64),
            ];
            results.extend(self.filters::<1>());
            results.extend(self.filters::<2>());
            results.extend(self.filters::<4>());
            results.extend(self.filters::<8>());
            let lines = results.into_iter().map(|bits| {
                let mut line = Line::EMPTY;
                ops.store(bits, &mut line);
                line
            });
            let missing = ops.without(both, ops.bit(self.position, true));
            let numbers = [
                u64::from(ops.covers(both, right)),
                u64::from(ops.covers(left, right)),
                u64::from(ops.covers(missing, both)),
                ops.fold(left),
            ];
            lines
                .chain(numbers.map(|number| words(|_| number)))
                .collect()
        }
    }

    proptest! {
        #[test]
        fn every_kernel_does_as_the_scalar_one(
            left: [u64; 8],
            right: [u64; 8],
            position in 0..LINE_BITS,
            choice: bool,
        ) {
            fn everything<O: BitOps>(ops: O, left: [u64; 8], right: [u64; 8], position: u32, choice: bool) -> Vec<Line> {
                let (left, right) = (Line(left), Line(right));
                ops.run(Everything { ops, left, right, position, choice })
            }
            let expected = everything(Scalar, left, right, position, choice);
            #[cfg(target_arch = "x86_64")]
            {
                if let Some(ops) = Kernel::Avx2.grant().ok().and_then(Avx2::new) {
                    prop_assert_eq!(&everything(ops, left, right, position, choice), &expected);
                }
                if let Some(ops) = Kernel::Avx512.grant().ok().and_then(Avx512::new) {
                    prop_assert_eq!(&everything(ops, left, right, position, choice), &expected);
                }
            }
            prop_assert_eq!(expected.len(), 22);
        }
    }
}
