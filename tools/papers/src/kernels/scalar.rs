//! Plain words: the definition of the operations.

use super::lanes::{Numbers, Spread};
use super::ops::{BitOps, Filters, LINE_BITS};
use echoless::extend::Scalar;
use echoless::memory::Line;

/// The line whose word `index` is `word(index)`.
#[inline(always)]
pub(super) fn words(word: impl Fn(usize) -> u64) -> Line {
    let mut line = Line::EMPTY;
    for (index, out) in line.0.iter_mut().enumerate() {
        *out = word(index);
    }
    line
}

impl BitOps for Scalar {
    type Bits = Line;

    /// A bit for each word, word 0 lowest.
    type Words = u8;

    #[inline(always)]
    fn load(self, line: &Line) -> Line {
        *line
    }

    #[inline(always)]
    fn store(self, bits: Line, line: &mut Line) {
        *line = bits;
    }

    #[inline(always)]
    fn bit(self, position: u32, set: bool) -> Line {
        debug_assert!(position < LINE_BITS);
        let mut line = Line::EMPTY;
        line.0[(position / 64) as usize] = u64::from(set) << (position % 64);
        line
    }

    #[inline(always)]
    fn below(self, end: u32) -> Line {
        debug_assert!(end <= LINE_BITS);
        words(|index| {
            // The bits of this word; from 64 on the checked shift gives 0, and 0 - 1 is all ones.
            let here = end.saturating_sub(64 * index as u32);
            1_u64.checked_shl(here).unwrap_or(0).wrapping_sub(1)
        })
    }

    #[inline(always)]
    fn in_each<const K: u32>(self, positions: u64) -> Line {
        let mut line = Line::EMPTY;
        for filter in 0..K {
            let position = positions >> (filter * Filters::<K>::POSITION_BITS);
            let position = position as u32 % Filters::<K>::WIDTH;
            let word = filter * Filters::<K>::WORDS + position / 64;
            line.0[word as usize] = 1 << (position % 64);
        }
        line
    }

    #[inline(always)]
    fn at_lanes(self, lanes: Numbers, spread: &Spread) -> Line {
        words(|index| {
            let bit = |shuffle: u64| {
                let lane = (shuffle as u8 / 2) as usize % lanes.len();
                let here = u32::from(lanes[lane]).wrapping_sub(64 * index as u32);
                1_u64.checked_shl(here).unwrap_or(0)
            };
            bit(spread.first.0[index]) | bit(spread.second.0[index])
        })
    }

    #[inline(always)]
    fn words_if(self, condition: bool) -> u8 {
        u8::from(condition).wrapping_neg()
    }

    #[inline(always)]
    fn filters_if<const K: u32>(self, condition: bool, found: Line) -> u8 {
        let size = Filters::<K>::WORDS as usize;
        let in_use = (0..8).fold(0, |words, index| {
            let first = index / size * size;
            let any = found.0[first..first + size].iter().any(|word| *word != 0);
            words | u8::from(any) << index
        });
        in_use & self.words_if(condition)
    }

    #[inline(always)]
    fn clear(self, bits: Line, cleared: Line, chosen: u8) -> Line {
        words(|index| {
            let chosen = u64::from(chosen >> index & 1).wrapping_neg();
            bits.0[index] & !(cleared.0[index] & chosen)
        })
    }

    #[inline(always)]
    fn and(self, left: Line, right: Line) -> Line {
        words(|index| left.0[index] & right.0[index])
    }

    #[inline(always)]
    fn or(self, left: Line, right: Line) -> Line {
        words(|index| left.0[index] | right.0[index])
    }

    #[inline(always)]
    fn without(self, left: Line, right: Line) -> Line {
        words(|index| left.0[index] & !right.0[index])
    }

    #[inline(always)]
    fn minus(self, left: Line, right: Line) -> Line {
        words(|index| left.0[index].wrapping_sub(right.0[index]))
    }

    #[inline(always)]
    fn down(self, bits: Line, by: u32) -> Line {
        words(|index| bits.0[index] >> by)
    }

    #[inline(always)]
    fn up(self, bits: Line, by: u32) -> Line {
        words(|index| bits.0[index] << by)
    }

    #[inline(always)]
    fn covers(self, bits: Line, mask: Line) -> bool {
        let words = bits.0.iter().zip(&mask.0);
        words.fold(0, |missing, (bits, mask)| missing | mask & !bits) == 0
    }

    #[inline(always)]
    fn fold(self, line: &Line) -> u64 {
        line.0.iter().fold(0, |folded, word| folded ^ word)
    }
}
