//! The lines of a filter or of a partition, and the positions of keys in the array that holds them.

use crate::hash::KeyHash;
use crate::kernels::batch::BLOCK;

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

    /// The positions of a block of keys among fewer than 2^32 lines, as
    /// [`position`](Self::position) computes them.
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
        debug_assert!(self.total >> 32 == 0);
        let total = u64::from(self.total as u32);
        for (key, position) in keys.iter().zip(&mut positions.0) {
            let low = ((key.0 & 0xffff_ffff) * total) >> 32;
            let line = ((key.0 >> 32) * total + low) >> 32;
            // For a line before the range this wraps to 2^32 - (first - line), which is past the
            // end of the range, since `total` is below 2^32: the bounds check of the visit panics.
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
            total in prop_oneof![1..=8_u64, 1..1_u64 << 21, 1..1_u64 << 32],
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
