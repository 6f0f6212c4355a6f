//! Which lines a sweep must visit: those that were touched since they were last found empty.
//!
//! A sweep of all lines costs as much as clearing the filter. A stream with few keys in the time of
//! a sweep touches few lines, and a stream with long silences sweeps at almost every key, so a
//! sweep must cost no more than the keys since the last one.

use std::ops::Range;

/// The lines that share a bit: a block of 512 bytes. One bit for each line would make the bits
/// themselves a part of the filter's working set.
const BLOCK: usize = 8;

/// One bit for each block of lines, set if one of its lines may hold a key. The bits take 1/4096 of
/// the memory of the lines.
#[derive(Debug)]
pub(super) struct TouchedBlocks {
    words: Vec<u64>,
    lines: usize,
}

impl TouchedBlocks {
    /// For so many lines, none of which was touched.
    pub(super) fn new(lines: usize) -> Self {
        Self {
            words: vec![0; lines.div_ceil(64 * BLOCK)],
            lines,
        }
    }

    /// Marks the block of a line as touched.
    ///
    /// # Panics
    /// If the line is far past the last one.
    #[inline(always)]
    pub(super) fn touch(&mut self, line: usize) {
        let block = line / BLOCK;
        self.words[block / 64] |= 1 << (block % 64);
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Calls `sweep` with the lines of each touched block. If it returns `false`, none of them
    /// holds a key any more, and the block counts as untouched.
    pub(super) fn sweep(&mut self, mut sweep: impl FnMut(Range<usize>) -> bool) {
        for (index, word) in self.words.iter_mut().enumerate() {
            let mut touched = *word;
            while touched != 0 {
                let bit = touched.trailing_zeros();
                touched &= touched - 1;
                let start = (index * 64 + bit as usize) * BLOCK;
                if !sweep(start..self.lines.min(start + BLOCK)) {
                    *word &= !(1 << bit);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_sweep_visits_the_blocks_of_touched_lines(
            lines in 1_usize..3000,
            rounds in vec(vec(0_usize..3000, 0..40), 1..5),
            kept in any::<[bool; 4]>(),
        ) {
            let mut blocks = TouchedBlocks::new(lines);
            let mut expected = BTreeSet::new();
            for round in rounds {
                for line in round.into_iter().filter(|line| *line < lines) {
                    blocks.touch(line);
                    expected.insert(line / BLOCK);
                }
                let mut found = BTreeSet::new();
                let keeps = |block: &usize| kept[block % 4];
                blocks.sweep(|range| {
                    let block = range.start / BLOCK;
                    assert_eq!(range, block * BLOCK..lines.min(block * BLOCK + BLOCK));
                    assert!(found.insert(block));
                    keeps(&block)
                });
                prop_assert_eq!(&found, &expected);
                expected.retain(keeps);
            }
            blocks.clear();
            blocks.sweep(|_| unreachable!("no block is touched"));
        }
    }
}
