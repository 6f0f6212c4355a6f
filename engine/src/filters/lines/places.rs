//! Where the k filters of a line lie, and one bit in each of them.
//!
//! ```text
//! k = 2   | word 0 | word 1 | word 2 | word 3 | word 4 | word 5 | word 6 | word 7 |
//!         | filter 0: 256 bits                | filter 1: 256 bits                |
//! k = 3   | filter 0: 170 bits  | filter 1: 170 bits   | filter 2: 170 bits   | 2 unused
//! ```

use super::draw::{Draw, piece};
use super::mask::{LINE_BITS, get, set, within_word, words};
use crate::hash::KeyHash;
use crate::memory::Line;

/// The streams that a second set of random bits starts at, past all those of the first.
const SECOND_SET: u64 = 16;

/// k filters in a line, of equal size.
pub(super) trait Places: Copy + Send + 'static {
    /// k.
    fn filters(self) -> u32;

    /// The bits of a filter.
    fn width(self) -> u32;

    /// The bits of a key, one in each filter; independent of its line among up to 2^32 lines.
    fn of_key(self, key: KeyHash) -> Line;

    /// A random bit in each filter.
    fn random(self, draw: Draw) -> Line;

    /// A random bit in each filter, taken with the probability that the filter's load gives it: ones over bits.
    ///
    /// A second random bit decides: it is set with exactly that probability.
    fn random_by_load(self, draw: Draw, line: &Line) -> Line;
}

/// 1, 2, 4 or 8 filters: each is whole words, so that the masks of all words are made at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct WholeWords<const K: u32>;

impl<const K: u32> WholeWords<K> {
    const WORDS: u32 = 8 / K;
    const WIDTH: u32 = LINE_BITS / K;
    /// The bits of a position.
    const BITS: u32 = Self::WIDTH.trailing_zeros();
    /// Whether k positions fit in half a hash, below the bits that pick the line.
    const FIT_IN_HALF: bool = K * Self::BITS <= 32;

    /// One bit in each filter, from the low `K * BITS` bits.
    #[inline(always)]
    fn mask(bits: u64) -> Line {
        words(|index| {
            let (filter, part) = (index as u32 / Self::WORDS, index as u32 % Self::WORDS);
            let position = (bits >> (filter * Self::BITS)) & u64::from(Self::WIDTH - 1);
            within_word(position, part)
        })
    }
}

impl<const K: u32> Places for WholeWords<K> {
    #[inline(always)]
    fn filters(self) -> u32 {
        K
    }

    #[inline(always)]
    fn width(self) -> u32 {
        Self::WIDTH
    }

    #[inline(always)]
    fn of_key(self, key: KeyHash) -> Line {
        Self::mask(if Self::FIT_IN_HALF {
            key.0
        } else {
            key.remix(0)
        })
    }

    #[inline(always)]
    fn random(self, draw: Draw) -> Line {
        Self::mask(draw.word(0))
    }

    #[inline(always)]
    fn random_by_load(self, draw: Draw, line: &Line) -> Line {
        let bits = draw.word(0);
        let witnesses = Self::mask(if Self::FIT_IN_HALF {
            bits >> 32
        } else {
            draw.word(SECOND_SET)
        });
        let found = words(|index| line.0[index] & witnesses.0[index]);
        let picked = Self::mask(bits);
        words(|index| {
            let filter = index as u32 / Self::WORDS * Self::WORDS;
            let mut any = 0;
            for part in 0..Self::WORDS {
                any |= found.0[(filter + part) as usize];
            }
            if any == 0 { 0 } else { picked.0[index] }
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

/// Any number of filters, one after the other in the first bits of the line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ranges<C> {
    count: C,
    width: u32,
}

impl<C: Count> Ranges<C> {
    /// `count` filters in the first `bits` bits of a line, as wide as possible.
    pub(super) fn in_bits(count: C, bits: u32) -> Self {
        debug_assert!(bits <= LINE_BITS && (1..=bits).contains(&count.get()));
        Self {
            count,
            width: bits / count.get(),
        }
    }

    #[inline(always)]
    fn position(self, hash: KeyHash, first: u64, filter: u32) -> u32 {
        filter * self.width + piece(hash, first, filter, self.width)
    }

    #[inline(always)]
    fn mask(self, hash: KeyHash) -> Line {
        let mut mask = Line::EMPTY;
        for filter in 0..self.count.get() {
            set(&mut mask, self.position(hash, 0, filter));
        }
        mask
    }
}

impl<C: Count> Places for Ranges<C> {
    #[inline(always)]
    fn filters(self) -> u32 {
        self.count.get()
    }

    #[inline(always)]
    fn width(self) -> u32 {
        self.width
    }

    #[inline(always)]
    fn of_key(self, key: KeyHash) -> Line {
        self.mask(key)
    }

    #[inline(always)]
    fn random(self, draw: Draw) -> Line {
        self.mask(draw.hash())
    }

    #[inline(always)]
    fn random_by_load(self, draw: Draw, line: &Line) -> Line {
        let mut mask = Line::EMPTY;
        for filter in 0..self.count.get() {
            let witness = self.position(draw.hash(), SECOND_SET, filter);
            let picked = self.position(draw.hash(), 0, filter);
            mask.0[(picked / 64) as usize % 8] |= u64::from(get(line, witness)) << (picked % 64);
        }
        mask
    }
}
