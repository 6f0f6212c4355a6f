//! Verdicts from and to other collections, and what they choose from the records of a batch.

use std::ops::{Bound, Index, RangeBounds};

use super::{Verdict, Verdicts};

impl Verdicts {
    /// Removes the records whose keys are duplicates, and keeps the order of the others.
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
            Bound::Excluded(before) => before + 1,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last + 1,
            Bound::Excluded(end) => *end,
            Bound::Unbounded => self.len,
        };
        assert!(
            start <= end && end <= self.len,
            "verdicts {start}..{end} of {}",
            self.len
        );
        let mut part = Self {
            words: bits_from(&self.words, start, end - start),
            len: end - start,
            unknown: bits_from(&self.unknown, start, end - start),
        };
        part.clear_tail();
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

/// The bits from `start` on, in `len.div_ceil(64)` words whose last one may have bits past the end;
/// no words if there are none.
fn bits_from(words: &[u64], start: usize, len: usize) -> Vec<u64> {
    if words.is_empty() {
        return Vec::new();
    }
    let (first, shift) = (start / 64, start % 64);
    let word = |index: usize| words.get(index).copied().unwrap_or(0);
    (first..first + len.div_ceil(64))
        // Two shifts, because one by 64 would be too far at `shift` 0.
        .map(|index| word(index) >> shift | word(index + 1) << 1 << (63 - shift))
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
    #[should_panic(expected = "one record for each verdict")]
    fn records_that_do_not_match_are_rejected() {
        Verdicts::from_iter([true; 3]).retain_fresh(&mut vec![(); 2]);
    }
}
