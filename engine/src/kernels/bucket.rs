//! Buckets: the lines that a key hash selects, and where they are among the lines. Everything that
//! a key reads or writes lies in its bucket, so a range of whole buckets can be a partition.
//!
//! ```text
//! lines     | 0 | 1 | 2 | ...                                | 64 | 65 | ...
//! Line      | one bucket for each line
//! Page      | 64 lines of 64 bytes, one page of 4 KiB        | the next page
//!                 ^ home          ^ partner                    of one key: two lines of its page
//! ```

use crate::hash::KeyHash;
use crate::kernels::batch::BLOCK;
use crate::memory::{CacheLevel, Line, prefetch};

/// The number of lines of a [`Page`]: 4 KiB, the smallest page of the memory.
pub(crate) const PAGE_LINES: usize = 64;

/// The most lines of a line form: 2^32, which is 256 GiB.
///
/// The high bits of a hash select the line. Up to this number they are at most the upper half of
/// the hash, and positions within a line may come from the lower half.
pub(crate) const MOST_LINES: u64 = 1 << 32;

/// The lines of a page.
pub(crate) type Page = [Line; PAGE_LINES];

/// One odd multiplier, 2^64 / golden ratio: it spreads every bit of a hash over the high bits of
/// the product.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The lines that one key can read and write.
pub trait Bucket: Sized {
    /// The number of lines of a bucket. An array has a whole number of buckets.
    const LINES: usize;

    /// The bucket of the line at `position`.
    ///
    /// # Panics
    /// If `position` is past the last line: the key belongs to another partition.
    fn at(lines: &[Line], position: usize) -> &Self;

    /// As [`at`](Self::at), mutable.
    fn at_mut(lines: &mut [Line], position: usize) -> &mut Self;

    /// All buckets.
    fn all(lines: &[Line]) -> &[Self];

    /// Calls `with` with the position of each line that a visit of the key can write. `position` is
    /// that of the line that its hash selects.
    fn for_each_line(position: usize, key: KeyHash, with: impl FnMut(usize));

    /// Prefetches the lines that a visit of the key reads: those that it can write.
    #[inline(always)]
    fn prefetch(lines: &[Line], position: usize, key: KeyHash, cache: CacheLevel) {
        Self::for_each_line(position, key, |position| prefetch(lines, position, cache));
    }
}

/// In the place of the bounds check, which would only name an index.
#[cold]
#[inline(never)]
fn foreign_key() -> ! {
    panic!("a key of another partition: this filter does not hold its line")
}

impl Bucket for Line {
    const LINES: usize = 1;

    #[inline(always)]
    fn at(lines: &[Line], position: usize) -> &Self {
        lines.get(position).unwrap_or_else(|| foreign_key())
    }

    #[inline(always)]
    fn at_mut(lines: &mut [Line], position: usize) -> &mut Self {
        lines.get_mut(position).unwrap_or_else(|| foreign_key())
    }

    fn all(lines: &[Line]) -> &[Self] {
        lines
    }

    #[inline(always)]
    fn for_each_line(position: usize, _key: KeyHash, mut with: impl FnMut(usize)) {
        with(position);
    }
}

impl Bucket for Page {
    const LINES: usize = PAGE_LINES;

    #[inline(always)]
    fn at(lines: &[Line], position: usize) -> &Self {
        let page = lines.as_chunks().0.get(position / PAGE_LINES);
        page.unwrap_or_else(|| foreign_key())
    }

    #[inline(always)]
    fn at_mut(lines: &mut [Line], position: usize) -> &mut Self {
        let page = lines.as_chunks_mut().0.get_mut(position / PAGE_LINES);
        page.unwrap_or_else(|| foreign_key())
    }

    fn all(lines: &[Line]) -> &[Self] {
        lines.as_chunks().0
    }

    #[inline(always)]
    fn for_each_line(position: usize, key: KeyHash, mut with: impl FnMut(usize)) {
        with(position);
        with(position ^ PageKey::new(key).step);
    }
}

/// What a key takes from its hash besides its line and fingerprint, in a [`Page`].
///
/// ```text
/// hash * SPREAD   63      58 57           40 39  32 31                         0
///                 | step 0-63 |            | coin  |
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageKey {
    /// The partner line is `home ^ step`: 1 to 63, so it is another line of the page. 1 stands for
    /// 0, too.
    pub(crate) step: usize,
    /// Eight random bits.
    pub(crate) coin: u64,
}

impl PageKey {
    #[inline(always)]
    pub(crate) const fn new(key: KeyHash) -> Self {
        // The high bits of a hash are its line and the low ones its fingerprint; the product
        // depends on all of them, also where they overlap.
        let spread = key.0.wrapping_mul(SPREAD);
        let step = (spread >> 58) as usize;
        Self {
            step: step + (step == 0) as usize,
            coin: spread >> 32 & 0xff,
        }
    }

    /// The home and the partner of the key in its page. `home` is its line among all lines.
    #[inline(always)]
    pub(crate) const fn pair(self, home: u64) -> [usize; 2] {
        // The remainders prove the indices to the compiler, which then omits the bounds checks.
        let home = home as usize % PAGE_LINES;
        [home, (home ^ self.step) % PAGE_LINES]
    }
}

/// The positions of a block of keys in an array of lines. They are written in whole vectors, which
/// takes longer if they straddle cache lines.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct BlockPositions(pub(super) [u32; BLOCK]);

/// A contiguous range of the lines of a filter: from line 0 for a whole filter, from the first line
/// of a partition otherwise.
///
/// # Examples
/// ```
/// use echoless::KeyHash;
/// use echoless::filters::lines::LineRange;
/// let upper_half = LineRange { total: 1000, first: 500 };
/// assert_eq!(upper_half.position(KeyHash::from_uniform(3 << 62)), 250);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRange {
    /// The number of lines of the whole filter.
    pub total: u64,
    /// The first line of the range.
    pub first: u64,
}

impl LineRange {
    /// The index of a key's line in an array that holds this range; past the end of the array if
    /// the key does not belong to the range.
    #[must_use]
    #[inline(always)]
    pub const fn position(self, key: KeyHash) -> usize {
        key.line(self.total).wrapping_sub(self.first) as usize
    }

    /// As [`positions_of`](Self::positions_of), among 2^32 lines, whose number has one bit more.
    #[cold]
    #[inline(never)]
    fn positions_of_most(self, keys: &[KeyHash], positions: &mut BlockPositions) {
        for (key, position) in keys.iter().zip(&mut positions.0) {
            *position = self.position(*key) as u32;
        }
    }

    /// The positions of a block of keys among at most 2^32 lines, as [`position`](Self::position)
    /// computes them.
    ///
    /// The line is the high word of the 128-bit product `key * total`. Vectors have no such
    /// product, but they have 32 x 32 -> 64 bits, and two of these are enough for a 32-bit `total`:
    ///
    /// ```text
    ///   high 32 bits of key * total  +  (low 32 bits of key * total) >> 32      no overflow
    /// ```
    ///
    /// The line is the upper half of that sum. The compiler vectorises the loop.
    #[inline(always)]
    pub(super) fn positions_of(self, keys: &[KeyHash], positions: &mut BlockPositions) {
        debug_assert!(self.total <= MOST_LINES);
        if self.total == MOST_LINES {
            return self.positions_of_most(keys, positions);
        }
        let total = u64::from(self.total as u32);
        for (key, position) in keys.iter().zip(&mut positions.0) {
            let low = ((key.0 & 0xffff_ffff) * total) >> 32;
            let line = ((key.0 >> 32) * total + low) >> 32;
            // For a line before the range this wraps to 2^32 - (first - line), which is past the
            // end of the range, since `total` is at most 2^32: the bounds check of the visit
            // panics.
            *position = line.wrapping_sub(self.first) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn positions_found_in_vectors_agree_with_single_keys(
            keys in prop::collection::vec(
                prop_oneof![Just(0), Just(u64::MAX), any::<u64>()].prop_map(KeyHash),
                0..=BLOCK,
            ),
            total in prop_oneof![1..=8_u64, 1..1_u64 << 21, 1..1_u64 << 32, Just(MOST_LINES)],
            first in any::<prop::sample::Selector>(),
        ) {
            let range = LineRange { total, first: first.select([0, total / 3, total - 1]) };
            // The first key of each line, and the key before it.
            let border = |key: &KeyHash| {
                let first = (u128::from(key.line(total)) << 64).div_ceil(u128::from(total)) as u64;
                [*key, KeyHash(first), KeyHash(first.wrapping_sub(1))]
            };
            let keys: Vec<KeyHash> = keys.iter().flat_map(border).take(BLOCK).collect();
            let mut positions = BlockPositions([0; BLOCK]);
            range.positions_of(&keys, &mut positions);
            for (key, position) in keys.iter().zip(positions.0) {
                // For a key before the range both are past the end of the range.
                let single = range.position(*key);
                prop_assert_eq!(position, single as u32);
                prop_assert_eq!(single < total as usize, u64::from(position) < total - range.first);
            }
        }
    }
}
