//! Where the k filters of a line lie, and one bit in each of them.
//!
//! ```text
//! k = 2   | word 0 | word 1 | word 2 | word 3 | word 4 | word 5 | word 6 | word 7 |
//!         | filter 0: 256 bits                | filter 1: 256 bits                |
//! k = 3   | filter 0: 171 bits  | filter 1: 171 bits     | filter 2: 170 bits     |
//! ```
//!
//! A random bit is never the key's own, which is about to be set: in a filter of the whole memory the two practically never meet, in one of 128 bits
//! they would often enough to be seen in the rates.

use std::fmt::Debug;

use super::random::{Draw, piece};
use crate::hash::KeyHash;
use crate::kernels::{BitOps, Filters, scalar::Scalar};
use crate::memory::Line;

/// The streams that a second set of random bits starts at, past all those of the first, and the stream that picks a filter.
const SECOND_SET: u64 = 16;
const FILTER_STREAM: u64 = 32;

/// k filters in a line, of equal size or as nearly as can be.
pub(super) trait BitLayout: Copy + Debug + Send + 'static {
    /// k.
    fn filters(self) -> u32;

    /// The first bit of filter `filter`; of the one after the last, the end of them all.
    fn start(self, filter: u32) -> u32;

    /// The probability that a random key meets a set bit in each filter, where a position is `width` bits of the line and the lowest of them counts.
    fn chance_of_all(self, line: &Line, width: u32) -> f64 {
        let filter = |filter: u32| (self.start(filter), self.start(filter + 1));
        (0..self.filters())
            .map(filter)
            .map(|(start, end)| {
                f64::from(ones(line, start * width, end * width)) / f64::from(end - start)
            })
            .product()
    }

    /// The bits of a key, one in each filter; independent of its line among up to 2^32 lines.
    fn of_key<O: BitOps>(self, ops: O, key: KeyHash) -> O::Bits;

    /// In each filter a random bit that is not the key's.
    fn others<O: BitOps>(self, ops: O, key: KeyHash, draw: Draw) -> O::Bits;

    /// Of [`others`](Self::others), each with the probability that its filter's load gives it: ones over bits.
    ///
    /// A second random bit decides: it is set with exactly that probability.
    fn others_by_fill<O: BitOps>(self, ops: O, key: KeyHash, draw: Draw, line: &Line) -> O::Bits;

    /// Of [`others`](Self::others), that of a random filter.
    fn other_of_one<O: BitOps>(self, ops: O, key: KeyHash, draw: Draw) -> O::Bits;
}

/// How many of the bits from `start` to `end`, exclusive, are set.
#[inline(always)]
pub(super) fn ones(line: &Line, start: u32, end: u32) -> u32 {
    let range = Scalar.without(Scalar.below(end), Scalar.below(start));
    let ones = Scalar.and(*line, range);
    ones.0.iter().map(|word| word.count_ones()).sum()
}

/// 1, 2, 4 or 8 filters: each is whole words, so that the bits of all words are found at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct WholeWords<const K: u32>;

impl<const K: u32> WholeWords<K> {
    /// Whether k positions fit in half a hash, below the bits that pick the line.
    const FIT_IN_HALF: bool = K * Filters::<K>::POSITION_BITS <= 32;

    /// The positions of a key, packed.
    #[inline(always)]
    const fn positions(key: KeyHash) -> u64 {
        if Self::FIT_IN_HALF {
            key.0
        } else {
            key.remix(0)
        }
    }
}

impl<const K: u32> BitLayout for WholeWords<K> {
    #[inline(always)]
    fn filters(self) -> u32 {
        K
    }

    #[inline(always)]
    fn start(self, filter: u32) -> u32 {
        filter * Filters::<K>::WIDTH
    }

    #[inline(always)]
    fn of_key<O: BitOps>(self, ops: O, key: KeyHash) -> O::Bits {
        ops.in_each::<K>(Self::positions(key))
    }

    /// Positions odd where the key's are even and the reverse, for which one `or` sees to all filters.
    #[inline(always)]
    fn others<O: BitOps>(self, ops: O, key: KeyHash, draw: Draw) -> O::Bits {
        ops.in_each::<K>(Self::positions(key) ^ (draw.word(0) | Filters::<K>::LOWEST))
    }

    #[inline(always)]
    fn others_by_fill<O: BitOps>(self, ops: O, key: KeyHash, draw: Draw, line: &Line) -> O::Bits {
        let witnesses = ops.in_each::<K>(if Self::FIT_IN_HALF {
            draw.word(0) >> 32
        } else {
            draw.word(SECOND_SET)
        });
        let found = ops.and(ops.load(line), witnesses);
        ops.of_filters::<K>(self.others(ops, key, draw), found)
    }

    #[inline(always)]
    fn other_of_one<O: BitOps>(self, ops: O, key: KeyHash, draw: Draw) -> O::Bits {
        let filter = draw.below(FILTER_STREAM, u64::from(K)) as u32;
        let start = ops.bit(self.start(filter), true);
        ops.of_filters::<K>(self.others(ops, key, draw), start)
    }
}

/// How many filters there are: known to the compiler, or not.
pub(super) trait Count: Copy + Debug + Send + 'static {
    fn get(self) -> u32;
}

/// A number that loops are unrolled for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fixed<const K: u32>;

impl<const K: u32> Count for Fixed<K> {
    #[inline(always)]
    fn get(self) -> u32 {
        K
    }
}

impl Count for u32 {
    #[inline(always)]
    fn get(self) -> u32 {
        self
    }
}

/// Any number of filters, one after the other in the first bits of the line; the first ones are longer by a bit if the bits cannot be shared
/// evenly.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranges<C> {
    count: C,
    /// The bits of the shorter filters.
    width: u32,
    /// How many filters are longer.
    longer: u32,
}

impl<C: Count> Ranges<C> {
    /// `count` filters in the first `bits` bits of a line.
    pub(super) fn in_bits(count: C, bits: u32) -> Self {
        debug_assert!((1..=bits / 2).contains(&count.get()));
        Self {
            count,
            width: bits / count.get(),
            longer: bits % count.get(),
        }
    }

    #[inline(always)]
    fn width(self, filter: u32) -> u32 {
        self.width + u32::from(filter < self.longer)
    }

    /// The bit of a key in a filter.
    #[inline(always)]
    pub(super) fn bit_of(self, key: KeyHash, filter: u32) -> u32 {
        self.position(key, 0, filter)
    }

    /// A random bit of a filter.
    #[inline(always)]
    fn position(self, hash: KeyHash, first: u64, filter: u32) -> u32 {
        self.start(filter) + piece(hash, first, filter, self.width(filter))
    }

    /// A random bit of a filter that is not the key's.
    #[inline(always)]
    fn other(self, key: KeyHash, draw: Draw, filter: u32) -> u32 {
        let width = self.width(filter);
        let step = 1 + piece(draw.hash(), 0, filter, width - 1);
        let other = self.bit_of(key, filter) + step;
        if other < self.start(filter) + width {
            other
        } else {
            other - width
        }
    }

    /// Of each filter the bit that `bit` names, if it says so.
    #[inline(always)]
    pub(super) fn each<O: BitOps>(self, ops: O, bit: impl Fn(u32) -> (u32, bool)) -> O::Bits {
        let (position, set) = bit(0);
        let mut bits = ops.bit(position, set);
        for filter in 1..self.count.get() {
            let (position, set) = bit(filter);
            bits = ops.or(bits, ops.bit(position, set));
        }
        bits
    }
}

impl<C: Count> BitLayout for Ranges<C> {
    #[inline(always)]
    fn filters(self) -> u32 {
        self.count.get()
    }

    #[inline(always)]
    fn start(self, filter: u32) -> u32 {
        filter * self.width + filter.min(self.longer)
    }

    #[inline(always)]
    fn of_key<O: BitOps>(self, ops: O, key: KeyHash) -> O::Bits {
        self.each(ops, |filter| (self.bit_of(key, filter), true))
    }

    #[inline(always)]
    fn others<O: BitOps>(self, ops: O, key: KeyHash, draw: Draw) -> O::Bits {
        self.each(ops, |filter| (self.other(key, draw, filter), true))
    }

    #[inline(always)]
    fn others_by_fill<O: BitOps>(self, ops: O, key: KeyHash, draw: Draw, line: &Line) -> O::Bits {
        self.each(ops, |filter| {
            let witness = self.position(draw.hash(), SECOND_SET, filter);
            let loaded = line.0[(witness / 64) as usize % 8] >> (witness % 64) & 1 == 1;
            (self.other(key, draw, filter), loaded)
        })
    }

    #[inline(always)]
    fn other_of_one<O: BitOps>(self, ops: O, key: KeyHash, draw: Draw) -> O::Bits {
        let filter = draw.below(FILTER_STREAM, u64::from(self.count.get()));
        ops.bit(self.other(key, draw, filter as u32), true)
    }
}
