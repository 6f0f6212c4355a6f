//! Iterators over the verdicts of a batch. They hold a word of 64 verdicts in a register, so a key
//! costs a shift, or nothing if it is skipped.

use std::iter::FusedIterator;

use super::{Verdict, Verdicts};

/// The verdicts of a batch, in the order of its keys. See [`Verdicts::iter`].
#[derive(Debug, Clone)]
pub struct Iter<'a> {
    /// The words after `word`.
    words: std::slice::Iter<'a, u64>,
    /// The verdicts of the current word that are left, the next one in bit 0.
    word: u64,
    /// How many verdicts of the current word are left.
    left_in_word: usize,
    /// How many verdicts are left in all.
    left: usize,
}

impl Iterator for Iter<'_> {
    type Item = Verdict;

    #[inline]
    fn next(&mut self) -> Option<Verdict> {
        self.left = self.left.checked_sub(1)?;
        if self.left_in_word == 0 {
            self.word = *self.words.next()?;
            self.left_in_word = 64;
        }
        let verdict = Verdict::from_bit(self.word & 1 == 1);
        self.word >>= 1;
        self.left_in_word -= 1;
        Some(verdict)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}
impl FusedIterator for Iter<'_> {}

/// The indices of some keys of a batch, ascending. See [`Verdicts::fresh`],
/// [`Verdicts::duplicates`] and [`Verdicts::unknown`].
#[derive(Debug, Clone)]
pub struct Indices<'a> {
    words: std::slice::Iter<'a, u64>,
    /// The keys of the current word that are left: their bits are set.
    word: u64,
    /// The index of the key in bit 0 of the current word; one word too high before the first one,
    /// so that it can wrap.
    first: usize,
    /// The number of keys of the batch.
    len: usize,
    /// Turns the bits of the words into those of the keys: all ones for keys whose bit is clear.
    flip: u64,
}

impl Iterator for Indices<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.word == 0 {
            let bits = self.words.next()? ^ self.flip;
            self.first = self.first.wrapping_add(64);
            // Bits past the last key are zero in the words, and must be so once they are flipped.
            let beyond = (self.first + 64).saturating_sub(self.len);
            self.word = bits << beyond >> beyond;
        }
        let index = self.first + self.word.trailing_zeros() as usize;
        self.word &= self.word - 1;
        Some(index)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let rest = self.words.len() * 64;
        let here = self.word.count_ones() as usize;
        (here, Some(here + rest))
    }
}

impl FusedIterator for Indices<'_> {}

impl Verdicts {
    /// The verdicts, in the order of the keys.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            words: self.words.iter(),
            word: 0,
            left_in_word: 0,
            left: self.len,
        }
    }

    /// The indices of the keys that are fresh, ascending: those for which [`get`](Self::get)
    /// returns [`Verdict::Fresh`]. It skips 64 duplicates at a time.
    ///
    /// What [`Port::take_partial`](crate::Port::take_partial) returns has fresh bits for keys that
    /// no filter has judged: leave out those that are [unknown](Self::is_unknown).
    ///
    /// # Examples
    /// ```
    /// use echoless::{Filter, FingerprintSpec, KeyHasher, Verdicts};
    /// let (hasher, records) = (KeyHasher::seeded(0), ["a", "b", "a"]);
    /// let keys = records.map(|record| hasher.hash(record));
    /// let mut verdicts = Verdicts::new();
    /// FingerprintSpec::new(1 << 20).build()?.observe(&keys, &mut verdicts);
    /// let new: Vec<&str> = verdicts.fresh().map(|index| records[index]).collect();
    /// assert_eq!(new, ["a", "b"]);
    /// # Ok::<(), echoless::BuildError>(())
    /// ```
    #[must_use]
    pub fn fresh(&self) -> Indices<'_> {
        self.indices(&self.words, u64::MAX)
    }

    /// The indices of the keys that are duplicates, ascending. It skips 64 fresh keys at a time.
    #[must_use]
    pub fn duplicates(&self) -> Indices<'_> {
        self.indices(&self.words, 0)
    }

    /// The indices of the keys [without a verdict](Self::is_unknown), ascending: those to submit
    /// again.
    #[must_use]
    pub fn unknown(&self) -> Indices<'_> {
        self.indices(&self.unknown, 0)
    }

    /// The indices of the keys whose bits in `words` differ from those of `flip`.
    fn indices<'a>(&self, words: &'a [u64], flip: u64) -> Indices<'a> {
        Indices {
            words: words.iter(),
            word: 0,
            first: 0_usize.wrapping_sub(64),
            len: self.len,
            flip,
        }
    }
}

impl<'a> IntoIterator for &'a Verdicts {
    type Item = Verdict;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn iterators_equal_a_list(bits in prop::collection::vec(any::<bool>(), 0..300)) {
            let verdicts = Verdicts::from_iter(bits.iter().copied());
            prop_assert_eq!(verdicts.iter().len(), bits.len());
            prop_assert!(verdicts.iter().map(Verdict::is_duplicate).eq(bits.iter().copied()));
            let chosen = |wanted: bool| {
                let numbered = bits.iter().enumerate();
                numbered.filter(move |(_, bit)| **bit == wanted).map(|(index, _)| index)
            };
            prop_assert!(verdicts.duplicates().eq(chosen(true)));
            prop_assert!(verdicts.fresh().eq(chosen(false)));
            let (least, most) = verdicts.fresh().size_hint();
            let fresh = verdicts.fresh().count();
            prop_assert!(least <= fresh && most.is_some_and(|most| fresh <= most));
        }
    }
}
