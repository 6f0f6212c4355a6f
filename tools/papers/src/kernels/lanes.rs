//! Up to eight positions in a line side by side, in lanes of 16 bits, and the bits at them.
//!
//! Filters of a line that are not whole words take a multiplication for each position. A number of
//! 16 bits times a bound, of which the upper half is kept, is one instruction for all lanes.
//!
//! ```text
//! lanes      | - | - | - | - | - | p2 | p1 | p0 |      positions of 3 filters
//! words      | w7 | w6 | w5 | w4 | w3 | w2 | w1 | w0 |
//! first      | p2 | p2 | p1 | p1 | p1 | p0 | p0 | p0 |    the position of the filter that the
//! second     | p2 | p2 | p2 | p1 | p1 | p1 | p0 | p0 |    word begins in, and that it ends in
//! ```
//!
//! A position that is not in a word of its filter gives no bit there.

use super::ops::LINE_BITS;
use echoless::extend::Scalar;
use echoless::extend::TargetIsa;
use echoless::memory::Line;

/// The number of lanes.
pub(crate) const LANES: usize = 8;

/// A number for each lane.
pub(crate) type Numbers = [u16; LANES];

/// A lane whose position gives no bit in any word.
const NOWHERE: u16 = u16::MAX;

/// Which lanes have their position in which words: for each word two of them, as the indices of
/// a byte shuffle that leaves the position in the lowest 16 bits of the word.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) first: Line,
    pub(crate) second: Line,
}

impl Spread {
    /// The spread of `filters` filters, of which number i has the bits from `start(i)` up to but
    /// not including `start(i + 1)`. `None` if there are more than [`LANES`], or a word has bits of
    /// more than two of them.
    pub(crate) fn new(filters: u32, start: impl Fn(u32) -> u32) -> Option<Self> {
        if filters as usize > LANES {
            return None;
        }
        // Bytes with the highest bit set become 0.
        let shuffle = |filter: u32| 0x8080_8080_8080_0100 + u64::from(filter) * 0x0202;
        let mut spread = Self {
            first: Line::EMPTY,
            second: Line::EMPTY,
        };
        for word in 0..8 {
            let bits = 64 * word as u32..64 * (word as u32 + 1);
            let inside =
                |filter: &u32| start(*filter) < bits.end && start(*filter + 1) > bits.start;
            let mut inside = (0..filters).filter(inside);
            // Behind the last filter no position is in the word.
            let first = inside.next().unwrap_or(0);
            let second = inside.next().unwrap_or(first);
            if inside.next().is_some() {
                return None;
            }
            spread.first.0[word] = shuffle(first);
            spread.second.0[word] = shuffle(second);
        }
        Some(spread)
    }
}

/// The operations of a kernel on lanes.
pub(crate) trait LaneOps: TargetIsa {
    type Lanes: Copy;

    /// Whether all filters of a line side by side are faster than one after the other.
    const SIDE_BY_SIDE: bool;

    fn lanes(self, numbers: &Numbers) -> Self::Lanes;

    /// 16 bits of `words` in each lane, as a fraction of 1, times the number in `below`.
    fn pieces(self, words: [u64; 2], below: Self::Lanes) -> Self::Lanes;

    /// The sums, wrapping.
    fn plus(self, left: Self::Lanes, right: Self::Lanes) -> Self::Lanes;

    /// `left`, minus `right` where that is not less.
    fn wrapped(self, left: Self::Lanes, right: Self::Lanes) -> Self::Lanes;

    /// The numbers of `then` in the lanes where the line has the bit at the position in `at` set,
    /// and positions that give no bit in the others. All positions in `at` are below 512.
    fn where_set(self, line: &Line, at: Self::Lanes, then: Self::Lanes) -> Self::Lanes;
}

/// Plain numbers: the definition of the operations. `avx2.rs` has the vectors.
impl LaneOps for Scalar {
    type Lanes = Numbers;

    const SIDE_BY_SIDE: bool = false;

    #[inline(always)]
    fn lanes(self, numbers: &Numbers) -> Numbers {
        *numbers
    }

    #[inline(always)]
    fn pieces(self, words: [u64; 2], below: Numbers) -> Numbers {
        std::array::from_fn(|lane| {
            let bits = words[lane / 4] >> (16 * (lane % 4)) & 0xffff;
            ((bits * u64::from(below[lane])) >> 16) as u16
        })
    }

    #[inline(always)]
    fn plus(self, left: Numbers, right: Numbers) -> Numbers {
        std::array::from_fn(|lane| left[lane].wrapping_add(right[lane]))
    }

    #[inline(always)]
    fn wrapped(self, left: Numbers, right: Numbers) -> Numbers {
        std::array::from_fn(|lane| left[lane].min(left[lane].wrapping_sub(right[lane])))
    }

    #[inline(always)]
    fn where_set(self, line: &Line, at: Numbers, then: Numbers) -> Numbers {
        debug_assert!(at.iter().all(|at| u32::from(*at) < LINE_BITS));
        std::array::from_fn(|lane| {
            // The remainder proves the index to the compiler.
            let word = line.0[usize::from(at[lane] / 64) % 8];
            if word >> (at[lane] % 64) & 1 == 1 {
                then[lane]
            } else {
                NOWHERE
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_filters_have_no_spread() {
        let of_width = |width: u32| move |filter: u32| filter * width;
        assert!(Spread::new(8, of_width(64)).is_some());
        // Nine lanes, although no word has bits of three filters.
        assert!(Spread::new(9, of_width(56)).is_none());
        // Four filters in the first word.
        assert!(Spread::new(8, of_width(20)).is_none());
    }
}
