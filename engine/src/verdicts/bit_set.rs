//! A verdict, the verdicts of a batch as a set of bits, and how bits come to their places in it.

/// The verdicts of a batch, in the order of its keys.
///
/// Bit `i % 64` of word `i / 64` is set if key `i` is a duplicate:
///
/// ```text
///             bit 63               bit 0
/// words[0]   | key 63 ... key 1 key 0 |
/// words[1]   | 0 .. 0 key 69 . key 64 |   len = 70
/// ```
///
/// Bits past the end are zero, so that words can be counted and compared without a mask. A batch
/// reuses the allocation of the batch before it.
///
/// # Examples
/// ```
/// use echoless::{Verdict, Verdicts};
/// let mut verdicts = Verdicts::new();
/// verdicts.reset(70);
/// verdicts.set(66, Verdict::Duplicate);
/// assert_eq!(verdicts.words(), [0, 0b100]);
/// assert_eq!(verdicts.get(66), Verdict::Duplicate);
/// assert_eq!(verdicts.get(65), Verdict::Fresh);
/// assert_eq!(verdicts.count_duplicates(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// `len.div_ceil(64)` words; the bits from `len` on are zero.
    pub(super) words: Vec<u64>,
    /// The number of verdicts.
    pub(super) len: usize,
    /// As many words as `words`, or none if every verdict is known.
    pub(super) unknown: Vec<u64>,
}

impl Verdicts {
    /// The verdicts of an empty batch. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            words: Vec::new(),
            len: 0,
            unknown: Vec::new(),
        }
    }

    /// Resizes to `len` verdicts, all of them [`Fresh`](Verdict::Fresh).
    pub fn reset(&mut self, len: usize) {
        self.words.clear();
        self.words.resize(len.div_ceil(64), 0);
        self.len = len;
        self.unknown.clear();
    }

    /// The number of verdicts.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the batch was empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The verdict of key `index`.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Verdict {
        Verdict::from_bit(self.is_duplicate(index))
    }

    /// Returns `true` if key `index` is a duplicate.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    #[must_use]
    #[inline]
    pub fn is_duplicate(&self, index: usize) -> bool {
        assert!(index < self.len, "verdict {index} of {}", self.len);
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    /// Replaces the verdict of key `index`.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    pub fn set(&mut self, index: usize, verdict: Verdict) {
        assert!(index < self.len, "verdict {index} of {}", self.len);
        let bit = 1 << (index % 64);
        let word = &mut self.words[index / 64];
        *word = match verdict {
            Verdict::Fresh => *word & !bit,
            Verdict::Duplicate => *word | bit,
        };
    }

    /// The number of keys that are duplicates.
    #[must_use]
    pub fn count_duplicates(&self) -> u64 {
        self.words
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }

    /// The bits, 64 verdicts a word. Bits past [`len`](Self::len) are zero.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns `true` if key `index` has no verdict, because its [partition is
    /// lost](crate::LossPolicy). Its bit is then set by the policy, or 0.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    #[must_use]
    #[inline]
    pub fn is_unknown(&self, index: usize) -> bool {
        assert!(index < self.len, "verdict {index} of {}", self.len);
        self.unknown
            .get(index / 64)
            .is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// The number of keys without a verdict. Always 0 for a filter that is not in an
    /// [`Engine`](crate::Engine) or [`OrderedFilter`](crate::OrderedFilter).
    #[must_use]
    pub fn count_unknown(&self) -> u64 {
        self.unknown
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }

    /// A set bit for each key without a verdict, laid out as [`words`](Self::words); empty if every
    /// verdict is known.
    #[must_use]
    pub fn unknown_words(&self) -> &[u64] {
        &self.unknown
    }

    /// The bits of [`unknown_words`](Self::unknown_words), to be set.
    #[cfg(feature = "threads")]
    pub(crate) fn unknown_words_mut(&mut self) -> &mut [u64] {
        self.unknown.resize(self.words.len(), 0);
        &mut self.unknown
    }

    /// Makes every key without a verdict a duplicate.
    #[cfg(feature = "threads")]
    pub(crate) fn set_unknown_duplicate(&mut self) {
        for (word, unknown) in self.words.iter_mut().zip(&self.unknown) {
            *word |= unknown;
        }
    }

    /// The bits, for a filter to write. The caller keeps the bits past [`len`](Self::len) zero, or
    /// clears them afterwards.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }

    /// Clears the bits past [`len`](Self::len), which a filter from outside this crate may have
    /// set.
    pub(crate) fn clear_tail(&mut self) {
        clear_tail(&mut self.words, self.len);
    }
}

/// Clears the bits of the last word that are past the first `len` bits of all words.
pub(crate) fn clear_tail(words: &mut [u64], len: usize) {
    let used = len % 64;
    if let Some(last) = words.last_mut().filter(|_| used > 0) {
        *last &= (1 << used) - 1;
    }
}

/// The answer of a filter to one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The key is new, or the filter has evicted it since it last arrived.
    Fresh,
    /// The key arrived before, or is a false positive.
    Duplicate,
}

impl Verdict {
    /// `true` for [`Duplicate`](Self::Duplicate).
    #[must_use]
    pub const fn is_duplicate(self) -> bool {
        matches!(self, Self::Duplicate)
    }

    /// The verdict that a bit of a batch stands for.
    #[inline]
    pub const fn from_bit(duplicate: bool) -> Self {
        if duplicate {
            Self::Duplicate
        } else {
            Self::Fresh
        }
    }
}

/// Sets bit `position(i)` of `target` for each set bit `i` of `words`. Only the set bits cost
/// anything.
#[inline]
pub fn scatter(words: &[u64], target: &mut [u64], position: impl Fn(usize) -> usize) {
    for (number, mut word) in words.iter().copied().enumerate() {
        while word != 0 {
            let to = position(64 * number + word.trailing_zeros() as usize);
            target[to / 64] |= 1 << (to % 64);
            word &= word - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn set_replaces_one_verdict() {
        let mut verdicts = Verdicts::new();
        verdicts.reset(130);
        for index in [0, 63, 64, 129] {
            verdicts.set(index, Verdict::Duplicate);
        }
        assert_eq!(verdicts.words(), [1 | 1 << 63, 1, 0b10]);
        verdicts.set(63, Verdict::Fresh);
        verdicts.set(62, Verdict::Fresh);
        assert_eq!(verdicts.words(), [1, 1, 0b10]);
    }

    #[test]
    #[should_panic(expected = "verdict 65 of 65")]
    fn verdicts_past_the_end_cannot_be_set() {
        let mut verdicts = Verdicts::new();
        verdicts.reset(65);
        verdicts.set(65, Verdict::Duplicate);
    }

    proptest! {
        #[test]
        fn every_set_bit_gets_its_position(
            words in prop::collection::vec(any::<u64>(), 0..4),
            first in 0..200_usize,
        ) {
            let mut target = vec![0; words.len() + 4];
            let last = first + 64 * words.len();
            scatter(&words, &mut target, |index| last - index);
            for index in 0..64 * target.len() {
                let is_set = target[index / 64] >> (index % 64) & 1 == 1;
                let from = last.checked_sub(index).filter(|from| *from < 64 * words.len());
                let expected = from.is_some_and(|from| words[from / 64] >> (from % 64) & 1 == 1);
                prop_assert_eq!(is_set, expected, "{}", index);
            }
        }
    }
}
