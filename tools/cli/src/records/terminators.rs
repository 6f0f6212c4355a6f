//! Every place of a byte in a chunk: the hottest loop of the tool after the filter.
//!
//! A search for the next place (memchr) pays for a new start at each record: 6.5 ns for records of 100 bytes, 5 ns for records of 8. Comparing
//! 64 bytes at a time, and then taking the places out of the mask, costs 2.0 and 0.6 ns.

use wide::u8x16;

/// How many bytes are compared at once: one bit of a mask each.
pub(super) const BLOCK: usize = 64;

/// Appends to `ends` the place after each `terminator` in `bytes[start..]`.
pub(crate) fn append_ends(bytes: &[u8], start: usize, terminator: u8, ends: &mut Vec<usize>) {
    let (blocks, tail) = bytes[start..].as_chunks::<BLOCK>();
    let mut base = start + 1;
    for block in blocks {
        let mut found = places(block, terminator);
        while found != 0 {
            ends.push(base + found.trailing_zeros() as usize);
            found &= found - 1;
        }
        base += BLOCK;
    }
    let in_tail = tail.iter().enumerate();
    ends.extend(
        in_tail
            .filter(|(_, byte)| **byte == terminator)
            .map(|(place, _)| base + place),
    );
}

/// One bit for each byte of the block, set where it is `wanted`.
#[inline(always)]
pub(super) fn places(block: &[u8; BLOCK], wanted: u8) -> u64 {
    let wanted = u8x16::splat(wanted);
    let (quarters, _) = block.as_chunks::<16>();
    let mut mask = 0;
    for (index, quarter) in quarters.iter().enumerate() {
        let equal = u8x16::new(*quarter).simd_eq(wanted).to_bitmask();
        mask |= u64::from(equal & 0xffff) << (16 * index);
    }
    mask
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_equal_those_of_a_plain_loop(
            bytes in vec(prop::sample::select(b"\n\n\0\x8a\xff".to_vec()), 0..400),
            start in 0usize..100,
        ) {
            let start = start.min(bytes.len());
            let mut ends = vec![7];
            append_ends(&bytes, start, b'\n', &mut ends);
            let mut expected = vec![7];
            expected.extend((start..bytes.len()).filter(|at| bytes[*at] == b'\n').map(|at| at + 1));
            prop_assert_eq!(ends, expected);
        }
    }
}
