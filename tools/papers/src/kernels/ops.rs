//! The operations on the bits of a line, and how a line is divided into filters of whole words.
//!
//! ```text
//! bit 511                                      64 63             0
//!     | word 7 | word 6 | ...            | word 1 | word 0        |
//! ```

use super::lanes::{LaneOps, Spread};
use echoless::memory::Line;

/// The number of bits of a line.
pub(crate) const LINE_BITS: u32 = 512;

/// The operations of a kernel on the bits of a line.
///
/// All of them are `#[inline(always)]`, or they could not be inlined into the batch loop, which has
/// the kernel's features enabled.
pub(crate) trait BitOps: LaneOps {
    /// The 512 bits, in registers.
    type Bits: Copy;

    /// A choice of the words of a line.
    type Words: Copy;

    fn load(self, line: &Line) -> Self::Bits;

    fn store(self, bits: Self::Bits, line: &mut Line);

    /// Bit `position`, which is below 512, if `set`; else no bit.
    fn bit(self, position: u32, set: bool) -> Self::Bits;

    /// All bits below `end`, which is at most 512.
    fn below(self, end: u32) -> Self::Bits;

    /// One bit in each of `K` filters of whole words.
    ///
    /// `positions` packs a position for each filter, filter 0 lowest, in [`Filters::POSITION_BITS`]
    /// bits each.
    fn in_each<const K: u32>(self, positions: u64) -> Self::Bits;

    /// The bits at the positions of those lanes that `spread` has, each in the words of its filter.
    fn at_lanes(self, lanes: Self::Lanes, spread: &Spread) -> Self::Bits;

    /// All words if `condition`, else none. By a mask: a branch on it could not be predicted.
    fn words_if(self, condition: bool) -> Self::Words;

    /// The words of those filters, of `K` of whole words, in which `found` has a bit; none unless
    /// `condition`.
    fn filters_if<const K: u32>(self, condition: bool, found: Self::Bits) -> Self::Words;

    /// `bits` without those of `cleared` that are in `words`.
    fn clear(self, bits: Self::Bits, cleared: Self::Bits, words: Self::Words) -> Self::Bits;

    fn and(self, left: Self::Bits, right: Self::Bits) -> Self::Bits;

    fn or(self, left: Self::Bits, right: Self::Bits) -> Self::Bits;

    /// The bits of `left` that are not in `right`.
    fn without(self, left: Self::Bits, right: Self::Bits) -> Self::Bits;

    /// Each word of `left` minus that of `right`, wrapping.
    fn minus(self, left: Self::Bits, right: Self::Bits) -> Self::Bits;

    /// Each word shifted down by `by` bits, which is below 64.
    fn down(self, bits: Self::Bits, by: u32) -> Self::Bits;

    /// Each word shifted up by `by` bits, which is below 64.
    fn up(self, bits: Self::Bits, by: u32) -> Self::Bits;

    /// Whether every bit of `mask` is in `bits`.
    fn covers(self, bits: Self::Bits, mask: Self::Bits) -> bool;

    /// The exclusive or of all words, so that it changes with every single bit.
    fn fold(self, line: &Line) -> u64;
}

/// A line divided into `K` filters of whole words: 1, 2, 4 or 8 of them.
///
/// ```text
/// K = 4   | w7   w6 | w5   w4 | w3   w2 | w1   w0 |
///         | filter 3| filter 2| filter 1| filter 0|
/// SHIFTS  | 21   21 | 14   14 |  7    7 |  0    0 |
/// STARTS  | 64    0 | 64    0 | 64    0 | 64    0 |
/// ```
pub(crate) struct Filters<const K: u32>;

impl<const K: u32> Filters<K> {
    /// The number of words of a filter.
    pub(crate) const WORDS: u32 = 8 / K;
    /// The number of bits of a filter.
    pub(crate) const WIDTH: u32 = LINE_BITS / K;
    /// The number of bits of a packed position.
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
    /// For each word, the lowest bit of its filter's packed position.
    pub(crate) const SHIFTS: Line = {
        let (mut shifts, mut word) = ([0; 8], 0);
        while word < 8 {
            shifts[word] = (word as u32 / Self::WORDS * Self::POSITION_BITS) as u64;
            word += 1;
        }
        Line(shifts)
    };
    /// For each word, the position of its first bit within its filter.
    pub(crate) const STARTS: Line = {
        let (mut starts, mut word) = ([0; 8], 0);
        while word < 8 {
            starts[word] = (word as u32 % Self::WORDS * 64) as u64;
            word += 1;
        }
        Line(starts)
    };
    /// For each set of words, as bits, the set of all words of their filters.
    #[cfg(target_arch = "x86_64")]
    pub(crate) const WHOLE: [u8; 256] = {
        let filter_words = (1_u32 << Self::WORDS) - 1;
        let (mut whole, mut set) = ([0; 256], 0);
        while set < 256 {
            let mut filter = 0;
            while filter < K {
                let words = filter_words << (filter * Self::WORDS);
                if set as u32 & words != 0 {
                    whole[set] |= words as u8;
                }
                filter += 1;
            }
            set += 1;
        }
        whole
    };
}

/// The position of the first bit of each word within the line.
#[cfg(target_arch = "x86_64")]
pub(crate) static WORD_STARTS: Line = Filters::<1>::STARTS;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::lanes::Numbers;
    use super::super::scalar::words;
    use super::*;
    use crate::tested::kernels;
    use echoless::Kernel;
    use echoless::extend::HotLoop;
    use echoless::extend::Scalar;
    #[cfg(target_arch = "x86_64")]
    use echoless::extend::{Avx2, Avx512};

    #[derive(Debug, Clone, Copy)]
    struct Operands {
        left: Line,
        right: Line,
        /// Few bits, so that some filters have none, some have one and some two.
        found: Line,
        position: u32,
        end: u32,
        choice: bool,
        /// How many filters are side by side, and in how many bits.
        filters: (u32, u32),
    }

    fn operands() -> impl Strategy<Value = Operands> {
        let line = || any::<[u64; 8]>().prop_map(Line);
        let few = prop::collection::vec(0..LINE_BITS, 0..12).prop_map(|positions| {
            positions.into_iter().fold(Line::EMPTY, |line, position| {
                Scalar.or(line, Scalar.bit(position, true))
            })
        });
        let end = prop_oneof![Just(0), Just(LINE_BITS), 0..=LINE_BITS];
        let filters = (1..=8_u32, prop_oneof![Just(512), Just(504), Just(496)]);
        (
            line(),
            line(),
            few,
            0..LINE_BITS,
            end,
            any::<bool>(),
            filters,
        )
            .prop_map(
                |(left, right, found, position, end, choice, filters)| Operands {
                    left,
                    right,
                    found,
                    position,
                    end,
                    choice,
                    filters,
                },
            )
    }

    /// Applies every operation to the same operands and returns each result as a line.
    struct Everything<O> {
        ops: O,
        on: Operands,
    }

    impl<O: BitOps> Everything<O> {
        #[inline(always)]
        fn filters<const K: u32>(&self) -> [O::Bits; 2] {
            let (ops, left) = (self.ops, self.on.left);
            let words = ops.filters_if::<K>(self.on.choice, ops.load(&self.on.found));
            [
                ops.in_each::<K>(left.0[0]),
                ops.clear(ops.load(&left), ops.load(&self.on.right), words),
            ]
        }

        /// Positions side by side: those of a key, and others where the line has a bit set.
        #[inline(always)]
        fn side_by_side(&self) -> [O::Bits; 2] {
            let (ops, on) = (self.ops, self.on);
            let (filters, bits) = on.filters;
            let start = |filter: u32| filter * (bits / filters) + filter.min(bits % filters);
            let number = |number: &dyn Fn(u32) -> u32| -> Numbers {
                std::array::from_fn(|lane| number((lane as u32).min(filters - 1)) as u16)
            };
            let widths = ops.lanes(&number(&|filter| start(filter + 1) - start(filter)));
            let starts = ops.lanes(&number(&start));
            let own = ops.pieces([on.left.0[0], on.left.0[1]], widths);
            let step = ops.pieces([on.right.0[0], on.right.0[1]], widths);
            let other = ops.plus(ops.wrapped(ops.plus(own, step), widths), starts);
            let own = ops.plus(own, starts);
            let spread = Spread::new(filters, start).expect("at most two filters in a word");
            let found = ops.where_set(&on.left, own, other);
            [ops.at_lanes(own, &spread), ops.at_lanes(found, &spread)]
        }
    }

    impl<O: BitOps> HotLoop for Everything<O> {
        type Output = Vec<Line>;

        #[inline(always)]
        fn run(self) -> Vec<Line> {
            let ops = self.ops;
            let Operands {
                position,
                end,
                choice,
                ..
            } = self.on;
            let (left, right) = (ops.load(&self.on.left), ops.load(&self.on.right));
            let both = ops.or(left, right);
            let mut results = vec![
                left,
                ops.bit(position, choice),
                ops.below(end),
                ops.and(left, right),
                both,
                ops.without(left, right),
                ops.clear(left, right, ops.words_if(choice)),
                ops.minus(left, right),
                ops.down(left, position % 64),
                ops.up(left, position % 64),
            ];
            results.extend(self.filters::<1>());
            results.extend(self.filters::<2>());
            results.extend(self.filters::<4>());
            results.extend(self.filters::<8>());
            results.extend(self.side_by_side());
            let lines = results.into_iter().map(|bits| {
                let mut line = Line::EMPTY;
                ops.store(bits, &mut line);
                line
            });
            let missing = ops.without(both, ops.bit(position, true));
            let numbers = [
                u64::from(ops.covers(both, right)),
                u64::from(ops.covers(left, right)),
                u64::from(ops.covers(missing, both)),
                ops.fold(&self.on.left),
            ];
            lines
                .chain(numbers.map(|number| words(|_| number)))
                .collect()
        }
    }

    proptest! {
        #[test]
        fn every_kernel_agrees_with_the_scalar_one(on in operands()) {
            fn everything<O: BitOps>(ops: O, on: Operands) -> Vec<Line> {
                ops.run(Everything { ops, on })
            }
            let expected = everything(Scalar, on);
            prop_assert_eq!(expected.len(), 24);
            for kernel in kernels() {
                let detected = kernel.detect().expect("available on this machine");
                let results = match kernel {
                    // The scalar form is the oracle, and the portable kernel uses it too.
                    Kernel::Scalar | Kernel::Portable => continue,
                    #[cfg(target_arch = "x86_64")]
                    Kernel::Avx2 => Avx2::new(detected).map(|ops| everything(ops, on)),
                    #[cfg(target_arch = "x86_64")]
                    Kernel::Avx512 => Avx512::new(detected).map(|ops| everything(ops, on)),
                    #[cfg(not(target_arch = "x86_64"))]
                    Kernel::Avx2 | Kernel::Avx512 => continue,
                    other => panic!("{other} is not tested"),
                };
                prop_assert_eq!(results.as_ref(), Some(&expected), "{}", kernel);
            }
        }
    }
}
