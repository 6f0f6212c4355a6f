//! The answers to a batch of keys, one bit each.

/// What a filter says of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Not seen before, as far as the filter can tell.
    Fresh,
    /// Seen before (or, at the false positive rate, mistaken for a key that was).
    Duplicate,
}

/// The verdicts of a batch, in its order: bit `i % 64` of word `i / 64` is set where key `i` is a duplicate.
///
/// Bits past the end are zero. The memory is kept from batch to batch.
///
/// # Examples
/// ```
/// use echoless::{Verdict, Verdicts};
/// let mut verdicts = Verdicts::new();
/// verdicts.reset(70);
/// verdicts.words_mut()[1] = 0b100;
/// assert_eq!(verdicts.get(66), Verdict::Duplicate);
/// assert_eq!(verdicts.get(65), Verdict::Fresh);
/// assert_eq!(verdicts.count_duplicates(), 1);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdicts {
    words: Vec<u64>,
    len: usize,
}

impl Verdicts {
    /// An empty set of verdicts.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            words: Vec::new(),
            len: 0,
        }
    }

    /// Makes room for `len` verdicts, all of them fresh.
    pub fn reset(&mut self, len: usize) {
        self.words.clear();
        self.words.resize(len.div_ceil(64), 0);
        self.len = len;
    }

    /// How many verdicts there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The verdict of key `index`.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    #[must_use]
    pub fn get(&self, index: usize) -> Verdict {
        if self.is_duplicate(index) {
            Verdict::Duplicate
        } else {
            Verdict::Fresh
        }
    }

    /// Whether key `index` is a duplicate.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    #[must_use]
    #[inline]
    pub fn is_duplicate(&self, index: usize) -> bool {
        assert!(index < self.len, "verdict {index} of {}", self.len);
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    /// How many of the keys are duplicates.
    #[must_use]
    pub fn count_duplicates(&self) -> u64 {
        self.words
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }

    /// The verdicts, one [`Verdict`] a key.
    pub fn iter(&self) -> impl Iterator<Item = Verdict> + '_ {
        (0..self.len).map(|index| self.get(index))
    }

    /// The bits, 64 verdicts a word.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The bits, for a filter to write. Bits past [`len`](Self::len) must stay zero.
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words
    }
}
