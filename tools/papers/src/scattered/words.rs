//! Words that can be cleared in steps: a filter whose keys expire all at once, after a silence or
//! when a generation ends, must not pass over its whole memory in one call.
//!
//! ```text
//! words     | block 0 | block 1 | block 2 | block 3 | ...     64 words each
//! blank     |    0    |    1    |    1    |    0    |         1: reads as zero, with any content
//! ```
//!
//! Clearing a long range only marks its blocks as blank. A blank block is filled with zeros before
//! a word of it is written, and [`Words::step`] fills some more with each batch.

use std::ops::Range;

use super::storage::zeroed;
use echoless::MemoryError;

/// The words of a block.
const BLOCK: usize = 64;

/// The most words that one call fills with zeros: 128 KiB, some 10 us. Few under test, so that
/// short arrays have blank blocks.
const AT_ONCE: usize = if cfg!(test) { 3 * BLOCK } else { 1 << 14 };

/// How many words a key pays for in [`Words::step`].
const WORDS_PER_KEY: usize = 256;

/// An array of words.
#[derive(Debug, Clone)]
pub(crate) struct Words {
    words: Vec<u64>,
    /// The blocks that read as zero; `None` if there are none.
    blank: Option<Blank>,
}

/// The blocks that read as zero.
#[derive(Debug, Clone)]
struct Blank {
    /// One bit for each block.
    bits: Vec<u64>,
    /// All blank blocks have this number or a higher one.
    next: usize,
}

impl Blank {
    #[inline(always)]
    fn has(&self, block: usize) -> bool {
        self.bits[block / 64] >> (block % 64) & 1 == 1
    }

    /// Removes a block. Returns whether it was blank.
    #[inline(always)]
    fn take(&mut self, block: usize) -> bool {
        let was_blank = self.has(block);
        self.bits[block / 64] &= !(1 << (block % 64));
        was_blank
    }
}

impl Words {
    /// `len` words of 0.
    pub(super) fn zeroed(len: u64) -> Result<Self, MemoryError> {
        Ok(Self {
            words: zeroed(len)?,
            blank: None,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> u64 {
        match &self.blank {
            Some(blank) if blank.has(index / BLOCK) => 0,
            _ => self.words[index],
        }
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, index: usize) -> &mut u64 {
        if self.blank.is_some() {
            self.fill_block(index / BLOCK);
        }
        &mut self.words[index]
    }

    /// Every word, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.words.len()).map(|index| self.get(index))
    }

    /// Passes words of a range with their numbers: all of them, without blank blocks.
    #[inline(always)]
    pub(super) fn visit(&mut self, range: Range<usize>, mut visit: impl FnMut(usize, &mut u64)) {
        let mut from = range.start;
        while from < range.end {
            let end = range.end.min((from / BLOCK + 1) * BLOCK);
            if !(self.blank.as_ref()).is_some_and(|blank| blank.has(from / BLOCK)) {
                for (offset, word) in self.words[from..end].iter_mut().enumerate() {
                    visit(from + offset, word);
                }
            }
            from = end;
        }
    }

    /// Fills a block with zeros if it is blank.
    #[cold]
    fn fill_block(&mut self, block: usize) {
        if self.blank.as_mut().is_some_and(|blank| blank.take(block)) {
            let end = self.words.len().min((block + 1) * BLOCK);
            self.words[block * BLOCK..end].fill(0);
        }
    }

    /// Clears all words at once.
    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.blank = None;
    }

    /// Clears a range of words; a long one in steps.
    pub(super) fn clear_in_steps(&mut self, range: Range<usize>) {
        // Whole blocks; the last block of the array can be shorter.
        let first = range.start.div_ceil(BLOCK);
        let end = if range.end == self.words.len() {
            range.end.div_ceil(BLOCK)
        } else {
            range.end / BLOCK
        };
        if range.len() <= AT_ONCE || first >= end {
            for block in range.start / BLOCK..range.end.div_ceil(BLOCK) {
                self.fill_block(block);
            }
            self.words[range].fill(0);
            return;
        }
        for index in (range.start..first * BLOCK).chain((end * BLOCK).min(range.end)..range.end) {
            *self.get_mut(index) = 0;
        }
        let bits = self.words.len().div_ceil(BLOCK).div_ceil(64);
        let blank = self.blank.get_or_insert_with(|| Blank {
            bits: vec![0; bits],
            next: first,
        });
        blank.next = blank.next.min(first);
        for word in first / 64..end.div_ceil(64) {
            let from = first.max(word * 64) - word * 64;
            let count = end.min((word + 1) * 64) - word * 64 - from;
            blank.bits[word] |= (u64::MAX >> (64 - count)) << from;
        }
    }

    /// Fills some blank blocks with zeros, for a batch of so many keys.
    #[inline(always)]
    pub(super) fn step(&mut self, keys: usize) {
        if self.blank.is_some() {
            self.fill(AT_ONCE.min(keys.saturating_mul(WORDS_PER_KEY)));
        }
    }

    /// Fills the blank blocks among the next `words` words with zeros.
    #[cold]
    fn fill(&mut self, words: usize) {
        let Some(first) = self.blank.as_ref().map(|blank| blank.next) else {
            return;
        };
        let blocks = self.words.len().div_ceil(BLOCK);
        let end = blocks.min(first + words / BLOCK);
        for block in first..end {
            self.fill_block(block);
        }
        match &mut self.blank {
            Some(blank) if end < blocks => blank.next = end,
            _ => self.blank = None,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        size_of_val(self.words.as_slice()) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Call {
        Write(usize, u64),
        Clear(usize, usize),
        ClearAll,
        Step(usize),
    }

    fn calls(len: usize) -> impl Strategy<Value = Vec<Call>> {
        let call = prop_oneof![
            4 => (0..len, any::<u64>()).prop_map(|(index, value)| Call::Write(index, value)),
            2 => (0..len, 0..=len).prop_map(|(start, end)| Call::Clear(start, end.max(start))),
            1 => Just(Call::Clear(0, len)),
            1 => Just(Call::ClearAll),
            2 => (0_usize..3).prop_map(Call::Step),
        ];
        prop::collection::vec(call, 0..60)
    }

    proptest! {
        #[test]
        fn words_behave_like_a_vector(
            (len, calls) in (1_usize..2000).prop_flat_map(|len| (Just(len), calls(len))),
        ) {
            let mut words = Words::zeroed(len as u64).expect("small");
            // Blank blocks hold what must not be read.
            words.words.fill(u64::MAX);
            let mut model = vec![u64::MAX; len];
            for call in calls {
                match call {
                    Call::Write(index, value) => {
                        *words.get_mut(index) = value;
                        model[index] = value;
                    }
                    Call::Clear(start, end) => {
                        words.clear_in_steps(start..end);
                        model[start..end].fill(0);
                    }
                    Call::ClearAll => {
                        words.clear();
                        model.fill(0);
                    }
                    Call::Step(keys) => words.step(keys),
                }
                prop_assert!(words.iter().eq(model.iter().copied()));
            }
            for _ in 0..=len / AT_ONCE {
                words.step(usize::MAX);
            }
            prop_assert!(words.blank.is_none());
            prop_assert!(words.words == model);
        }
    }

    #[test]
    fn a_call_fills_few_words() {
        let len = 100 * BLOCK;
        let mut words = Words::zeroed(len as u64).expect("small");
        words.words.fill(1);
        let filled = |words: &Words| words.words.iter().filter(|word| **word == 0).count();
        words.clear_in_steps(0..len);
        assert_eq!((filled(&words), words.get(len - 1)), (0, 0));
        words.step(usize::MAX);
        assert_eq!(filled(&words), AT_ONCE);
        *words.get_mut(len - 1) = 7;
        assert_eq!(
            (filled(&words), words.get(len - 1)),
            (AT_ONCE + BLOCK - 1, 7)
        );
    }
}
