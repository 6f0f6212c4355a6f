//! The bits of a bit filter: k filters of s bits each, and the number of ones of each.

use std::ops::Range;

use crate::adapters::cell_table::CellTable;
use crate::limits::at_least_bits;
use crate::scattered::words::Words;
use echoless::extend::{MOST_HASHES, within};
use echoless::{BuildError, Cells, KeyHash};

/// k filters of s = floor(M/k) bits. The position in filter `i` comes from stream `i` of the key
/// hash ([`KeyHash::remix`]).
///
/// ```text
/// | filter 0: s bits | filter 1: s bits | ... | filter k-1: s bits |
/// ```
#[derive(Debug, Clone)]
pub(crate) struct BitTable {
    words: Words,
    size: u64,
    /// The number of ones of each filter, kept up to date by every change.
    ones: Vec<u64>,
}

impl BitTable {
    pub(crate) fn new(hashes: u32, memory_bytes: u64) -> Result<Self, BuildError> {
        within("k", hashes, 1..=MOST_HASHES)?;
        let bits = at_least_bits(memory_bytes, u128::from(hashes), "one bit in each filter")?;
        Ok(Self {
            words: Words::zeroed(bits.div_ceil(64))?,
            size: bits / u64::from(hashes),
            ones: vec![0; hashes as usize],
        })
    }

    /// k: the number of filters.
    #[inline(always)]
    pub(crate) fn filters(&self) -> usize {
        self.ones.len()
    }

    /// s: the number of bits of one filter.
    #[inline(always)]
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// The number of ones of one filter.
    #[inline(always)]
    pub(crate) fn ones(&self, filter: usize) -> u64 {
        self.ones[filter]
    }

    /// The ones and the bits of all filters.
    pub(crate) fn cells(&self) -> Cells {
        Cells::new(self.ones.iter().sum(), self.size * self.filters() as u64)
    }

    #[inline(always)]
    pub(crate) fn position(&self, key: KeyHash, filter: usize) -> u64 {
        KeyHash::from_uniform(key.remix(filter as u64)).line(self.size)
    }

    #[inline(always)]
    fn locate(&self, filter: usize, position: u64) -> (usize, u32) {
        debug_assert!(position < self.size);
        let bit = filter as u64 * self.size + position;
        ((bit / 64) as usize, (bit % 64) as u32)
    }

    #[inline(always)]
    pub(crate) fn get(&self, filter: usize, position: u64) -> bool {
        let (word, shift) = self.locate(filter, position);
        self.words.get(word) >> shift & 1 == 1
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, filter: usize, position: u64) {
        let (word, shift) = self.locate(filter, position);
        let word = self.words.get_mut(word);
        self.ones[filter] += !*word >> shift & 1;
        *word |= 1 << shift;
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self, filter: usize, position: u64) {
        let (word, shift) = self.locate(filter, position);
        let word = self.words.get_mut(word);
        self.ones[filter] -= *word >> shift & 1;
        *word &= !(1 << shift);
    }

    /// The position of the set bit with `rank` set bits before it; `rank` is below the number of
    /// ones.
    ///
    /// The first and the last word are shared with the neighbouring filters, so their bits are
    /// masked.
    pub(crate) fn set_bit(&self, filter: usize, rank: u64) -> u64 {
        debug_assert!(rank < self.ones(filter));
        let ((first, low), (last, high)) =
            (self.locate(filter, 0), self.locate(filter, self.size - 1));
        let mut left = rank;
        for index in first..=last {
            let from = if index == first {
                u64::MAX << low
            } else {
                u64::MAX
            };
            let to = if index == last {
                u64::MAX >> (63 - high)
            } else {
                u64::MAX
            };
            let mut bits = self.words.get(index) & from & to;
            let ones = u64::from(bits.count_ones());
            if left < ones {
                for _ in 0..left {
                    bits &= bits - 1;
                }
                let bit = index as u64 * 64 + u64::from(bits.trailing_zeros());
                return bit - filter as u64 * self.size;
            }
            left -= ones;
        }
        unreachable!("the ones of every filter are counted as they change")
    }

    /// Whether all k bits of the key are set.
    #[inline(always)]
    pub(crate) fn holds(&self, key: KeyHash) -> bool {
        (0..self.filters()).all(|filter| self.get(filter, self.position(key, filter)))
    }

    /// Sets all k bits of the key.
    #[inline(always)]
    pub(crate) fn insert(&mut self, key: KeyHash) {
        for filter in 0..self.filters() {
            self.set(filter, self.position(key, filter));
        }
    }

    /// Clears all bits of one filter, in [steps](Self::step) if they are many. The bits of its
    /// neighbours in the first and the last word stay.
    pub(crate) fn clear_filter(&mut self, filter: usize) {
        let ((first, low), (last, high)) =
            (self.locate(filter, 0), self.locate(filter, self.size - 1));
        let below = !(u64::MAX << low);
        let above = !(u64::MAX >> (63 - high));
        if first == last {
            *self.words.get_mut(first) &= below | above;
        } else {
            *self.words.get_mut(first) &= below;
            self.words.clear_in_steps(first + 1..last);
            *self.words.get_mut(last) &= above;
        }
        self.ones[filter] = 0;
    }

    pub(crate) fn clear_all(&mut self) {
        self.words.clear();
        self.ones.fill(0);
    }

    /// Takes a step of clearing, with a batch of so many keys.
    #[inline(always)]
    pub(crate) fn step(&mut self, keys: usize) {
        self.words.step(keys);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.words.bytes() + size_of_val(self.ones.as_slice()) as u64
    }
}

/// The bits as cells, numbered through all filters.
impl CellTable for BitTable {
    fn hashes(&self) -> usize {
        self.filters()
    }

    fn cell_count(&self) -> u64 {
        self.size * self.filters() as u64
    }

    fn position(&self, key: KeyHash, index: usize) -> u64 {
        index as u64 * self.size + Self::position(self, key, index)
    }

    fn is_set(&self, cell: u64) -> bool {
        self.get((cell / self.size) as usize, cell % self.size)
    }

    fn set(&mut self, cell: u64) {
        Self::set(self, (cell / self.size) as usize, cell % self.size);
    }

    fn empty(&mut self, cells: Range<u64>) {
        for cell in cells {
            self.clear((cell / self.size) as usize, cell % self.size);
        }
    }

    fn cells(&self) -> Cells {
        Self::cells(self)
    }

    fn bytes(&self) -> u64 {
        Self::bytes(self)
    }

    fn restart(&mut self) {
        self.clear_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_ones_follow_every_change() {
        let mut table = BitTable::new(3, 100).expect("valid");
        assert_eq!((table.filters(), table.size()), (3, 266));
        for key in 0..500_u64 {
            table.insert(KeyHash::from_uniform(
                key.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            ));
            table.clear(1, key % 266);
            table.clear(1, key % 266);
        }
        for filter in 0..3 {
            let ones = (0..266).filter(|bit| table.get(filter, *bit)).count() as u64;
            assert_eq!(table.ones(filter), ones, "filter {filter}");
            let set = (0..266).filter(|bit| table.get(filter, *bit));
            assert!(set.eq((0..ones).map(|rank| table.set_bit(filter, rank))));
        }
        let words = table.words.iter();
        let all: u64 = words.map(|word| u64::from(word.count_ones())).sum();
        assert!((table.cells().fill() - all as f64 / 798.0).abs() < 1e-12);
    }

    #[test]
    fn a_cleared_filter_leaves_the_others() {
        for bytes in [3, 8, 24, 100] {
            let mut table = BitTable::new(3, bytes).expect("valid");
            for word in 0..table.words.len() {
                *table.words.get_mut(word) = u64::MAX;
            }
            table.ones = vec![table.size(); 3];
            table.clear_filter(1);
            for filter in 0..3 {
                let ones = (0..table.size())
                    .filter(|bit| table.get(filter, *bit))
                    .count() as u64;
                let expected = if filter == 1 { 0 } else { table.size() };
                assert_eq!(
                    (ones, table.ones(filter)),
                    (expected, expected),
                    "{bytes} B"
                );
            }
        }
    }

    #[test]
    fn a_bit_far_out_is_located_without_overflow() {
        let table = BitTable {
            words: Words::zeroed(0).expect("nothing"),
            size: 1 << 33,
            ones: vec![0; 64],
        };
        assert_eq!(table.locate(63, (1 << 33) - 1), ((1 << 33) - 1, 63));
    }
}
