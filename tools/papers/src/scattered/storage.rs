//! Memory whose allocation can fail without an abort, and packed cells of any width in it.

use std::ops::Range;

use super::words::Words;
use echoless::extend::check_available;
use echoless::memory::LINE_BYTES;
use echoless::{Cells, KeyHash, MemoryError, SpecError};

use crate::limits::at_least_bits;

/// `len` default values, or an error if they cannot be allocated: a filter that is too large is an
/// error of its specification, not an abort of the process.
pub(crate) fn zeroed<T: Copy + Default>(len: u64) -> Result<Vec<T>, MemoryError> {
    let bytes = len.saturating_mul(size_of::<T>() as u64);
    let failed = |reason: String| MemoryError { bytes, reason };
    // An allocation alone is no proof: Linux grants it and kills the process at the first writes.
    check_available(bytes)?;
    let len = usize::try_from(len).map_err(|error| failed(error.to_string()))?;
    let mut values = Vec::new();
    values
        .try_reserve_exact(len)
        .map_err(|error| failed(error.to_string()))?;
    values.resize(len, T::default());
    Ok(values)
}

/// The mean number of cache lines that `bits` bits lie in, at most, if they begin at a random
/// multiple of `step` bits from a word. Memory of words does not always begin at a line.
///
/// ```text
///             | line           | line           |
/// 8 bits            | |  | |  | |                    step 8: never in two lines
/// 12 bits                   |  |  |                  step 4: 1 + (12 - 4) / 512
/// 512 bits           |               |               step 512: in one line, or all in two
/// ```
pub(super) fn packed_lines(bits: u64, step: u64) -> f64 {
    const LINE_BITS: u64 = 8 * LINE_BYTES;
    // Pieces of this many bits, a power of two, are not divided by the end of a line.
    let whole = 1 << step.trailing_zeros();
    let whole = if whole <= 64 { whole } else { 0 };
    1.0 + bits.saturating_sub(whole) as f64 / LINE_BITS as f64
}

/// Cells of equal width, 1 to 32 bits, packed without gaps. A cell can span two words.
///
/// ```text
/// word 0                          word 1
/// | cell 0 | cell 1 | ... | cell 21 (3 bits: one here, two there) | cell 22 | ...
/// ```
#[derive(Debug, Clone)]
pub(crate) struct PackedCells {
    words: Words,
    width: u32,
    len: u64,
}

impl PackedCells {
    /// The width of the widest cell: two words always hold one, and its value fits in a `u32`.
    pub(crate) const MOST_BITS: u32 = 32;

    /// The cells of `width` bits that fit in `memory_bytes` with the word that
    /// [`new`](Self::new) adds, or an error if they are fewer than `least`. `reason` states in the
    /// error what needs that many.
    pub(crate) fn len_within(
        memory_bytes: u64,
        width: u32,
        least: u32,
        reason: &str,
    ) -> Result<u64, SpecError> {
        let words = (u64::from(least) * u64::from(width)).div_ceil(64) + 1;
        let bits = at_least_bits(memory_bytes, u128::from(words) * 64, reason)?;
        Ok((bits / 64 - 1) * 64 / u64::from(width))
    }

    /// `len` zero cells of `width` bits.
    pub(crate) fn new(len: u64, width: u32) -> Result<Self, MemoryError> {
        debug_assert!((1..=Self::MOST_BITS).contains(&width));
        let words = (u128::from(len) * u128::from(width)).div_ceil(64);
        // One word more, so that the part of a cell in the next word can always be accessed.
        let words = u64::try_from(words + 1).unwrap_or(u64::MAX);
        Ok(Self {
            words: Words::zeroed(words)?,
            width,
            len,
        })
    }

    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// The width of a cell in bits.
    pub(crate) const fn width(&self) -> u32 {
        self.width
    }

    /// The cell of a key for one of its hashes: a position anywhere in the memory.
    #[inline(always)]
    pub(crate) fn position(&self, key: KeyHash, hash: u32) -> u64 {
        KeyHash::from_uniform(key.remix(u64::from(hash))).line(self.len)
    }

    /// The largest value of a cell.
    pub(crate) const fn max(&self) -> u32 {
        ((1_u64 << self.width) - 1) as u32
    }

    /// The word and the bit in it where a cell starts. In 128 bits, because `cell * width` can
    /// overflow 64.
    #[inline(always)]
    fn locate(&self, cell: u64) -> (usize, u32) {
        debug_assert!(cell < self.len);
        let bit = u128::from(cell) * u128::from(self.width);
        ((bit / 64) as usize, (bit % 64) as u32)
    }

    #[inline(always)]
    pub(crate) fn get(&self, cell: u64) -> u32 {
        let (word, shift) = self.locate(cell);
        let mut value = self.words.get(word) >> shift;
        if shift + self.width > 64 {
            value |= self.words.get(word + 1) << (64 - shift);
        }
        value as u32 & self.max()
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, cell: u64, value: u32) {
        debug_assert!(value <= self.max());
        let (word, shift) = self.locate(cell);
        let mask = u64::from(self.max());
        let first = self.words.get_mut(word);
        *first = *first & !(mask << shift) | u64::from(value) << shift;
        if shift + self.width > 64 {
            let shift = 64 - shift;
            let second = self.words.get_mut(word + 1);
            *second = *second & !(mask >> shift) | u64::from(value) >> shift;
        }
    }

    /// Whether all cells of a key, for so many hashes, pass the test.
    #[inline(always)]
    pub(crate) fn all(&self, key: KeyHash, hashes: u32, test: impl Fn(u32) -> bool) -> bool {
        (0..hashes).all(|hash| test(self.get(self.position(key, hash))))
    }

    /// Sets all cells of a key, for so many hashes, to a value.
    #[inline(always)]
    pub(crate) fn fill(&mut self, key: KeyHash, hashes: u32, value: u32) {
        for hash in 0..hashes {
            self.set(self.position(key, hash), value);
        }
    }

    /// Clears these bits of the cells in a range, a word at a time.
    pub(crate) fn clear_bits(&mut self, bits: u32, cells: Range<u64>) {
        debug_assert!(cells.end <= self.len && bits <= self.max());
        if cells.is_empty() {
            return;
        }
        // The bits of 64 cells are `width` words, and the same in the next ones.
        let width = self.width as usize;
        let mut kept = [u64::MAX; Self::MOST_BITS as usize];
        for cell in 0..64 {
            let (word, shift) = (cell * width / 64, cell * width % 64);
            kept[word] &= !(u64::from(bits) << shift);
            if shift + width > 64 {
                kept[word + 1] &= !(u64::from(bits) >> (64 - shift));
            }
        }
        let bit_of = |cell: u64| u128::from(cell) * u128::from(self.width);
        let (start, end) = (bit_of(cells.start), bit_of(cells.end));
        let words = (start / 64) as usize..end.div_ceil(64) as usize;
        let before = !(u64::MAX << (start % 64));
        let behind = if end % 64 == 0 {
            0
        } else {
            u64::MAX << (end % 64)
        };
        let (first, last) = (words.start, words.end - 1);
        let mut phase = first % width;
        let mut next = first;
        self.words.visit(words, |index, word| {
            // A blank block was passed over.
            if index != next {
                phase = index % width;
            }
            let mut keep = kept[phase];
            if index == first {
                keep |= before;
            }
            if index == last {
                keep |= behind;
            }
            *word &= keep;
            next = index + 1;
            phase = if phase + 1 == width { 0 } else { phase + 1 };
        });
    }

    /// The first cell behind an empty one, up to `end`, that is not in a word of zeros.
    pub(crate) fn behind_zeros(&self, cell: u64, end: u64) -> u64 {
        let next = cell + 1;
        if next >= end {
            return end;
        }
        let (mut word, _) = self.locate(next);
        let last = self.locate(end - 1).0;
        if self.words.get(word) != 0 {
            return next;
        }
        while word <= last && self.words.get(word) == 0 {
            word += 1;
        }
        // The cell that the word begins with may begin in the one before.
        let first = word as u128 * 64 / u128::from(self.width);
        (first as u64).clamp(next, end)
    }

    /// Every cell, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len).map(|cell| self.get(cell))
    }

    /// The cells, of which those that are not zero are occupied.
    pub(crate) fn occupied(&self) -> Cells {
        // Single bits are counted a word at a time.
        let occupied: u64 = if self.width == 1 {
            let ones = (self.words.iter()).map(|word| u64::from(word.count_ones()));
            ones.sum()
        } else {
            self.iter().map(|cell| u64::from(cell != 0)).sum()
        };
        Cells::new(occupied, self.len)
    }

    pub(crate) fn clear(&mut self) {
        self.words.clear();
    }

    /// Makes every cell 0, in [steps](Self::step) if they are many.
    pub(crate) fn clear_in_steps(&mut self) {
        self.words.clear_in_steps(0..self.words.len());
    }

    /// Takes a step of clearing, with a batch of so many keys.
    #[inline(always)]
    pub(crate) fn step(&mut self, keys: usize) {
        self.words.step(keys);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.words.bytes()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_failed_allocation_is_an_error() {
        let error = zeroed::<u64>(1 << 60).expect_err("2^63 bytes");
        assert_eq!(error.bytes, 1 << 63);
        assert!(PackedCells::new(u64::MAX, 32).is_err());
    }

    #[test]
    fn a_cell_of_a_high_index_is_located_without_overflow() {
        let cells = PackedCells {
            words: Words::zeroed(0).expect("nothing"),
            width: 3,
            len: u64::MAX,
        };
        // 3 * (2^63 + 5) = 64 * (3 * 2^57) + 15
        assert_eq!(cells.locate((1 << 63) + 5), (3 << 57, 15));
    }

    /// The worst of all words for the memory to begin at.
    #[test]
    fn packed_lines_are_those_of_every_position() {
        for step in 1..=1100_u64 {
            for bits in [step, 2 * step, 5 * step] {
                let mean = |base: u64| {
                    let lines = (0..512).map(|index| {
                        let start = (base + index * step) % 512;
                        (start + bits).div_ceil(512)
                    });
                    lines.sum::<u64>() as f64 / 512.0
                };
                let worst = (0..8).map(|word| mean(64 * word)).fold(0.0, f64::max);
                assert_eq!(packed_lines(bits, step), worst, "{bits} bits, step {step}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_more_cells_fit_in_the_memory(
            memory in 0_u64..3000,
            width in 1_u32..=32,
            least in 1_u32..=64,
        ) {
            match PackedCells::len_within(memory, width, least, "cells") {
                Ok(len) => {
                    prop_assert!(len >= u64::from(least));
                    let bytes = |len| PackedCells::new(len, width).expect("small").bytes();
                    prop_assert!(bytes(len) <= memory && bytes(len + 1) > memory / 8 * 8);
                }
                Err(error) => {
                    let bytes = PackedCells::new(u64::from(least), width).expect("small").bytes();
                    prop_assert!(bytes > memory);
                    let expected = format!("at least {bytes} B (cells)");
                    prop_assert_eq!(error.allowed, expected);
                }
            }
        }

        #[test]
        fn bits_are_cleared_and_zeros_passed_over_in_any_range(
            width in 1_u32..=32,
            len in 1_u64..3000,
            writes in prop::collection::vec((any::<u64>(), any::<u32>()), 0..60),
            (clears_before, bits) in (any::<bool>(), any::<u32>()),
            (from, end) in (any::<u64>(), any::<u64>()),
        ) {
            let mut cells = PackedCells::new(len, width).expect("small");
            if clears_before {
                // Blank blocks.
                cells.clear_in_steps();
            }
            for (cell, value) in writes {
                cells.set(cell % len, value & cells.max());
            }
            let (from, end) = (from % (len + 1), end % (len + 1));
            let (from, end) = (from.min(end), from.max(end));
            let mut model: Vec<u32> = cells.iter().collect();
            let mut cell = from;
            while cell < end {
                let next = if cells.get(cell) == 0 {
                    cells.behind_zeros(cell, end)
                } else {
                    cell + 1
                };
                prop_assert!(next > cell && next <= end);
                prop_assert!(model[cell as usize + 1..next as usize].iter().all(|cell| *cell == 0));
                cell = next;
            }
            let bits = bits & cells.max();
            cells.clear_bits(bits, from..end);
            model[from as usize..end as usize].iter_mut().for_each(|cell| *cell &= !bits);
            prop_assert_eq!(cells.iter().collect::<Vec<_>>(), model);
        }

        #[test]
        fn packed_cells_behave_like_a_vector(
            width in 1_u32..=32,
            len in 1_u64..200,
            writes in prop::collection::vec((any::<u64>(), any::<u32>()), 0..400),
        ) {
            let mut cells = PackedCells::new(len, width).expect("small");
            let mut model = vec![0_u32; len as usize];
            for (cell, value) in writes {
                let (cell, value) = (cell % len, value & cells.max());
                cells.set(cell, value);
                model[cell as usize] = value;
            }
            let occupied = model.iter().filter(|cell| **cell != 0).count();
            prop_assert_eq!(cells.occupied(), Cells::new(occupied as u64, len));
            prop_assert_eq!(cells.iter().collect::<Vec<_>>(), model);
        }
    }
}
