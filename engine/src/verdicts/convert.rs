//! Verdicts from and to other collections, and what they choose from the records of a batch.

use std::ops::{Bound, Index, RangeBounds};

use super::{Verdict, Verdicts};

impl Verdicts {
    /// Removes the records whose keys are duplicates, and keeps the order of the others.
    ///
    /// It reads the bits alone. The record of a key [without a verdict](Self::is_unknown) therefore
    /// stays if its bit is fresh: always after [`Port::take_partial`](crate::Port::take_partial)
    /// and with [`LossPolicy::AsFresh`](crate::LossPolicy::AsFresh), never with
    /// [`LossPolicy::AsDuplicate`](crate::LossPolicy::AsDuplicate). Where such records are to be
    /// submitted again, use [`split`](Self::split).
    ///
    /// # Panics
    /// If there is not one record for each verdict.
    ///
    /// # Examples
    /// ```
    /// use echoless::{Filter, FingerprintSpec, KeyHasher, Verdicts};
    /// let hasher = KeyHasher::seeded(0);
    /// let mut records = vec!["a", "b", "a"];
    /// let keys: Vec<_> = records.iter().map(|record| hasher.hash(record)).collect();
    /// let mut verdicts = Verdicts::new();
    /// FingerprintSpec::new(1 << 20).build()?.observe(&keys, &mut verdicts);
    /// verdicts.retain_fresh(&mut records);
    /// assert_eq!(records, ["a", "b"]);
    /// # Ok::<(), echoless::BuildError>(())
    /// ```
    pub fn retain_fresh<T>(&self, records: &mut Vec<T>) {
        assert_eq!(records.len(), self.len(), "one record for each verdict");
        let mut verdicts = self.iter();
        // `retain` visits each record once, in order.
        records.retain(|_| verdicts.next() == Some(Verdict::Fresh));
    }

    /// A copy of the verdicts of a range of keys.
    ///
    /// # Panics
    /// If the range is not within the batch.
    ///
    /// # Examples
    /// ```
    /// use echoless::Verdicts;
    /// let verdicts = Verdicts::from_iter([true, false, true, true]);
    /// assert_eq!(verdicts.slice(1..3), Verdicts::from_iter([false, true]));
    /// assert_eq!(verdicts.slice(2..).count_duplicates(), 2);
    /// ```
    #[must_use]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Self {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before.checked_add(1).expect("an index"),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last.checked_add(1).expect("an index"),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => self.len,
        };
        assert!(
            start <= end && end <= self.len,
            "verdicts {start}..{end} of {}",
            self.len
        );
        let len = end - start;
        let mut part = Self {
            words: cut(&self.words, start, len),
            len,
            unknown: cut(&self.unknown, start, len),
        };
        if part.count_unknown() == 0 {
            part.unknown.clear();
        }
        part
    }

    /// `true` for each key that is a duplicate.
    ///
    /// # Examples
    /// ```
    /// use echoless::Verdicts;
    /// let bools = [true, false, true];
    /// assert_eq!(Verdicts::from(&bools[..]).to_bools(), bools);
    /// ```
    #[must_use]
    pub fn to_bools(&self) -> Vec<bool> {
        self.iter().map(Verdict::is_duplicate).collect()
    }
}

/// The `count` bits (at most 64) of the words from bit `start` on, in the low bits of the result.
pub(crate) fn bits_of_words(words: &[u64], start: usize, count: usize) -> u64 {
    let (word, shift) = (start / 64, start % 64);
    let low = words.get(word).map_or(0, |word| word >> shift);
    // Two shifts, because at `shift` 0 a single one would be by 64; the result is then 0, as it
    // must be.
    let high = words
        .get(word + 1)
        .map_or(0, |word| word << 1 << (63 - shift));
    (low | high) & u64::MAX.checked_shr(64 - count as u32).unwrap_or(0)
}

/// The `len` bits of the words from bit `start` on, in words of their own.
fn cut(words: &[u64], start: usize, len: usize) -> Vec<u64> {
    let firsts = (0..len).step_by(64);
    firsts
        .map(|first| bits_of_words(words, start + first, (len - first).min(64)))
        .collect()
}

/// From `true` for each duplicate. Every verdict is known.
impl FromIterator<bool> for Verdicts {
    fn from_iter<I: IntoIterator<Item = bool>>(duplicates: I) -> Self {
        let mut verdicts = Self::new();
        for duplicate in duplicates {
            let (word, bit) = (verdicts.len / 64, verdicts.len % 64);
            if bit == 0 {
                verdicts.words.push(0);
            }
            verdicts.words[word] |= u64::from(duplicate) << bit;
            verdicts.len += 1;
        }
        verdicts
    }
}

impl FromIterator<Verdict> for Verdicts {
    fn from_iter<I: IntoIterator<Item = Verdict>>(verdicts: I) -> Self {
        verdicts.into_iter().map(Verdict::is_duplicate).collect()
    }
}

/// From `true` for each duplicate.
impl From<&[bool]> for Verdicts {
    fn from(duplicates: &[bool]) -> Self {
        duplicates.iter().copied().collect()
    }
}

impl Index<usize> for Verdicts {
    type Output = Verdict;

    /// The verdict of key `index`.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Self::len).
    fn index(&self, index: usize) -> &Verdict {
        if self.is_duplicate(index) {
            &Verdict::Duplicate
        } else {
            &Verdict::Fresh
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_are_cut_out_of_words(
            words in prop::collection::vec(any::<u64>(), 1..4),
            start in 0usize..256,
            count in 0usize..=64,
        ) {
            prop_assume!(start + count <= words.len() * 64);
            let bit = |at: usize| words[at / 64] >> (at % 64) & 1;
            let expected = (0..count).fold(0, |bits, at| bits | bit(start + at) << at);
            prop_assert_eq!(bits_of_words(&words, start, count), expected);
        }

        #[test]
        fn slices_and_choices_equal_those_of_a_list(
            bits in prop::collection::vec(any::<bool>(), 0..300),
            (from, to) in (0usize..300, 0usize..300),
        ) {
            let mut verdicts = Verdicts::from(&bits[..]);
            prop_assert_eq!(verdicts.to_bools(), &bits[..]);
            prop_assert!((0..bits.len()).all(|index| verdicts[index].is_duplicate() == bits[index]));
            let (start, end) = (from.min(to).min(bits.len()), from.max(to).min(bits.len()));
            let part = verdicts.slice(start..end);
            prop_assert_eq!(&part, &Verdicts::from(&bits[start..end]));

            // Unknown verdicts are cut in the same way.
            verdicts.unknown_words_mut().copy_from_slice(&Verdicts::from(&bits[..]).words);
            let part = verdicts.slice(start..end);
            prop_assert!((0..part.len()).all(|index| part.is_unknown(index) == bits[start + index]));
            prop_assert_eq!(part.count_unknown(), part.count_duplicates());
            prop_assert_eq!(part.unknown_words().is_empty(), part.count_unknown() == 0);

            let mut records: Vec<usize> = (0..bits.len()).collect();
            verdicts.retain_fresh(&mut records);
            prop_assert!(verdicts.fresh().eq(records));
        }
    }

    #[test]
    #[should_panic(expected = "verdicts 1..4 of 3")]
    fn a_slice_past_the_end_is_rejected() {
        let _ = Verdicts::from_iter([true; 3]).slice(1..=3);
    }

    #[test]
    #[should_panic(expected = "an index")]
    fn a_slice_to_the_end_of_all_numbers_is_rejected() {
        let _ = Verdicts::from_iter([true; 3]).slice(..=usize::MAX);
    }

    #[test]
    #[should_panic(expected = "one record for each verdict")]
    fn records_that_do_not_match_are_rejected() {
        Verdicts::from_iter([true; 3]).retain_fresh(&mut vec![(); 2]);
    }
}
