//! A line as a set of 512 bits: whole-line operations in eight 64-bit lanes, which a compiler turns into one 512-bit or two 256-bit registers.
//!
//! ```text
//! bit 511                                      64 63             0
//!     | word 7 | word 6 | ...            | word 1 | word 0        |
//! ```

use crate::memory::Line;

/// The bits of a line.
pub(super) const LINE_BITS: u32 = 512;

/// The line whose word `index` is `word(index)`.
#[inline(always)]
pub(super) fn words(word: impl Fn(usize) -> u64) -> Line {
    let mut line = Line::EMPTY;
    for (index, out) in line.0.iter_mut().enumerate() {
        *out = word(index);
    }
    line
}

/// Whether every bit of `mask` is set in `line`.
#[inline(always)]
pub(super) fn covers(line: &Line, mask: &Line) -> bool {
    let mut missing = 0;
    for (word, mask) in line.0.iter().zip(&mask.0) {
        missing |= mask & !word;
    }
    missing == 0
}

/// `line` without the bits of `cleared` if `doing`, then with those of `set`.
#[inline(always)]
pub(super) fn replaced(line: &Line, cleared: &Line, doing: bool, set: &Line) -> Line {
    // A mask and not a branch: whether a key is fresh is what nobody can predict.
    let doing = u64::from(doing).wrapping_neg();
    words(|index| line.0[index] & !(cleared.0[index] & doing) | set.0[index])
}

/// All words of a line in one: any bit that changes, changes it.
#[inline(always)]
pub(super) fn fold(line: &Line) -> u64 {
    line.0.iter().fold(0, |folded, word| folded ^ word)
}

/// The part of one bit, at `position` of a run of words, that lies in word `word` of the run.
#[inline(always)]
pub(super) const fn within_word(position: u64, word: u32) -> u64 {
    // Below 64 only in the word that the position lies in. A vector shift by more gives zero, as this does.
    let here = position ^ (word as u64 * 64);
    if here < 64 { 1 << here } else { 0 }
}

/// Sets the bit at `position` if `doing`.
#[inline(always)]
pub(super) fn set(line: &mut Line, position: u32, doing: bool) {
    debug_assert!(position < LINE_BITS);
    line.0[(position / 64) as usize % 8] |= u64::from(doing) << (position % 64);
}

#[inline(always)]
pub(super) fn get(line: &Line, position: u32) -> bool {
    line.0[(position / 64) as usize % 8] >> (position % 64) & 1 == 1
}

/// The bits below `end`, which is at most 512.
#[inline(always)]
pub(super) fn below(end: u32) -> Line {
    debug_assert!(end <= LINE_BITS);
    words(|index| {
        let here = end.saturating_sub(64 * index as u32);
        if here >= 64 {
            u64::MAX
        } else {
            (1 << here) - 1
        }
    })
}

/// `len` bits from `start` on, going on from bit 0 past the end of the line.
#[inline(always)]
pub(super) fn run(start: u32, len: u32) -> Line {
    debug_assert!(start < LINE_BITS && len <= LINE_BITS);
    let end = start + len;
    let wraps = end > LINE_BITS;
    let before_start = below(start);
    let before_end = below(if wraps { end - LINE_BITS } else { end });
    words(|index| {
        let (start, end) = (!before_start.0[index], before_end.0[index]);
        if wraps { start | end } else { start & end }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bits(line: &Line) -> Vec<bool> {
        (0..LINE_BITS).map(|bit| get(line, bit)).collect()
    }

    proptest! {
        #[test]
        fn runs_are_consecutive_bits_and_wrap(start in 0..LINE_BITS, len in 0..=LINE_BITS) {
            let mut expected = vec![false; 512];
            for step in 0..len {
                expected[((start + step) % LINE_BITS) as usize] = true;
            }
            prop_assert_eq!(bits(&run(start, len)), expected);
        }

        #[test]
        fn whole_line_operations_are_those_of_their_bits(line: [u64; 8], cleared: [u64; 8], set: [u64; 8], doing: bool) {
            let (line, cleared, set) = (Line(line), Line(cleared), Line(set));
            let after = replaced(&line, &cleared, doing, &set);
            for bit in 0..LINE_BITS {
                let kept = get(&line, bit) && !(doing && get(&cleared, bit));
                prop_assert_eq!(get(&after, bit), kept || get(&set, bit));
            }
            prop_assert!(covers(&after, &set));
            let all = bits(&line).into_iter().zip(bits(&set)).all(|(line, set)| line || !set);
            prop_assert_eq!(covers(&line, &set), all);
        }

        #[test]
        fn a_bit_that_changes_changes_the_fold(line: [u64; 8], bit in 0..LINE_BITS) {
            let line = Line(line);
            let one = words(|index| u64::from(index as u32 == bit / 64) << (bit % 64));
            let flipped = words(|index| line.0[index] ^ one.0[index]);
            prop_assert_ne!(fold(&line), fold(&flipped));
        }
    }
}
