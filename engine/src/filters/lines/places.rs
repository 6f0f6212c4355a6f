//! Where the k filters of a line lie, and one bit in each of them.
//!
//! ```text
//! k = 2   | word 0 | word 1 | word 2 | word 3 | word 4 | word 5 | word 6 | word 7 |
//!         | filter 0: 256 bits                | filter 1: 256 bits                |
//! k = 3   | filter 0: 171 bits  | filter 1: 171 bits     | filter 2: 170 bits     |
//! ```
//!
//! A random bit is any but the key's own, which is about to be set: in a filter of the whole memory the two practically never meet, in one of 128 bits
//! they would often enough to be seen in the rates.

use super::draw::{Draw, piece};
use super::mask::{LINE_BITS, get, set, within_word, words};
use crate::hash::KeyHash;
use crate::memory::Line;

/// The streams that a second set of random bits starts at, past all those of the first, and the stream that picks a filter.
const SECOND_SET: u64 = 16;
const FILTER_STREAM: u64 = 32;

/// k filters in a line, of equal size or as nearly as can be.
pub(super) trait Places: Copy + Send + 'static {
    /// k.
    fn filters(self) -> u32;

    /// The first bit of filter `filter`; of the one after the last, the end of them all.
    fn start(self, filter: u32) -> u32;

    /// The bits of a key, one in each filter; independent of its line among up to 2^32 lines.
    fn of_key(self, key: KeyHash) -> Line;

    /// In each filter a random bit that is not the key's.
    fn others(self, key: KeyHash, draw: Draw) -> Line;

    /// Of [`others`](Self::others), each with the probability that its filter's load gives it: ones over bits.
    ///
    /// A second random bit decides: it is set with exactly that probability.
    fn others_by_load(self, key: KeyHash, draw: Draw, line: &Line) -> Line;

    /// Of [`others`](Self::others), that of a random filter.
    fn other_of_one(self, key: KeyHash, draw: Draw) -> Line;
}

/// 1, 2, 4 or 8 filters: each is whole words, so that the masks of all words are made at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct WholeWords<const K: u32>;

impl<const K: u32> WholeWords<K> {
    /// The words of a filter.
    const WORDS: u32 = 8 / K;
    /// The bits of a filter.
    const WIDTH: u32 = LINE_BITS / K;
    /// The bits of a position.
    const BITS: u32 = Self::WIDTH.trailing_zeros();
    /// Whether k positions fit in half a hash, below the bits that pick the line.
    const FIT_IN_HALF: bool = K * Self::BITS <= 32;

    /// Position `filter` of those packed in `bits`.
    #[inline(always)]
    const fn position(bits: u64, filter: u32) -> u64 {
        (bits >> (filter * Self::BITS)) & (Self::WIDTH - 1) as u64
    }

    /// One bit in each filter, at `position(filter)` of it.
    #[inline(always)]
    fn mask(position: impl Fn(u32) -> u64) -> Line {
        words(|index| {
            let (filter, part) = (index as u32 / Self::WORDS, index as u32 % Self::WORDS);
            within_word(position(filter), part)
        })
    }

    /// The positions of a key, packed.
    #[inline(always)]
    const fn key_bits(key: KeyHash) -> u64 {
        if Self::FIT_IN_HALF {
            key.0
        } else {
            key.remix(0)
        }
    }
}

impl<const K: u32> Places for WholeWords<K> {
    #[inline(always)]
    fn filters(self) -> u32 {
        K
    }

    #[inline(always)]
    fn start(self, filter: u32) -> u32 {
        filter * Self::WIDTH
    }

    #[inline(always)]
    fn of_key(self, key: KeyHash) -> Line {
        let bits = Self::key_bits(key);
        Self::mask(|filter| Self::position(bits, filter))
    }

    #[inline(always)]
    fn others(self, key: KeyHash, draw: Draw) -> Line {
        let (own, bits) = (Self::key_bits(key), draw.word(0));
        Self::mask(|filter| {
            let step = Self::position(bits, filter);
            // A step of zero would lead to the key's own bit.
            Self::position(own, filter) ^ (step | u64::from(step == 0))
        })
    }

    #[inline(always)]
    fn others_by_load(self, key: KeyHash, draw: Draw, line: &Line) -> Line {
        let bits = if Self::FIT_IN_HALF {
            draw.word(0) >> 32
        } else {
            draw.word(SECOND_SET)
        };
        let witnesses = Self::mask(|filter| Self::position(bits, filter));
        let found = words(|index| line.0[index] & witnesses.0[index]);
        let others = self.others(key, draw);
        words(|index| {
            let first = index / Self::WORDS as usize * Self::WORDS as usize;
            let mut any = 0;
            for part in 0..Self::WORDS as usize {
                any |= found.0[first + part];
            }
            if any == 0 { 0 } else { others.0[index] }
        })
    }

    #[inline(always)]
    fn other_of_one(self, key: KeyHash, draw: Draw) -> Line {
        let others = self.others(key, draw);
        let filter = draw.below(FILTER_STREAM, u64::from(K)) as usize;
        words(|index| {
            if index / Self::WORDS as usize == filter {
                others.0[index]
            } else {
                0
            }
        })
    }
}

/// How many filters there are: known to the compiler, or not.
pub(super) trait Count: Copy + Send + 'static {
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
        debug_assert!(bits <= LINE_BITS && (1..=bits / 2).contains(&count.get()));
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
        let other = self.position(key, 0, filter) + step;
        if other < self.start(filter) + width {
            other
        } else {
            other - width
        }
    }
}

impl<C: Count> Places for Ranges<C> {
    #[inline(always)]
    fn filters(self) -> u32 {
        self.count.get()
    }

    #[inline(always)]
    fn start(self, filter: u32) -> u32 {
        filter * self.width + filter.min(self.longer)
    }

    #[inline(always)]
    fn of_key(self, key: KeyHash) -> Line {
        let mut mask = Line::EMPTY;
        for filter in 0..self.count.get() {
            set(&mut mask, self.position(key, 0, filter), true);
        }
        mask
    }

    #[inline(always)]
    fn others(self, key: KeyHash, draw: Draw) -> Line {
        let mut mask = Line::EMPTY;
        for filter in 0..self.count.get() {
            set(&mut mask, self.other(key, draw, filter), true);
        }
        mask
    }

    #[inline(always)]
    fn others_by_load(self, key: KeyHash, draw: Draw, line: &Line) -> Line {
        let mut mask = Line::EMPTY;
        for filter in 0..self.count.get() {
            let witness = self.position(draw.hash(), SECOND_SET, filter);
            set(&mut mask, self.other(key, draw, filter), get(line, witness));
        }
        mask
    }

    #[inline(always)]
    fn other_of_one(self, key: KeyHash, draw: Draw) -> Line {
        let filter = draw.below(FILTER_STREAM, u64::from(self.count.get()));
        let mut mask = Line::EMPTY;
        set(&mut mask, self.other(key, draw, filter as u32), true);
        mask
    }
}
