//! Verdicts from and to other collections, and what they choose from the records of a batch.

use super::{Verdict, Verdicts};

impl Verdicts {
    /// Removes the records whose keys are duplicates, and keeps the order of the others.
    ///
    /// It reads the bits alone. The record of a key [without a verdict](Self::is_unknown) therefore
    /// stays if its bit is fresh: always after [`Port::take_partial`](crate::Port::take_partial)
    /// and with [`LossPolicy::AsFresh`](crate::LossPolicy::AsFresh), never with
    /// [`LossPolicy::AsDuplicate`](crate::LossPolicy::AsDuplicate). Where such records are to be
    /// submitted again, leave out those that are [unknown](Self::is_unknown).
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

/// From `true` for each duplicate.
impl From<&[bool]> for Verdicts {
    fn from(duplicates: &[bool]) -> Self {
        duplicates.iter().copied().collect()
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
        fn choices_equal_those_of_a_list(bits in prop::collection::vec(any::<bool>(), 0..300)) {
            let verdicts = Verdicts::from(&bits[..]);
            prop_assert_eq!(verdicts.to_bools(), &bits[..]);
            let mut records: Vec<usize> = (0..bits.len()).collect();
            verdicts.retain_fresh(&mut records);
            prop_assert!(verdicts.fresh().eq(records));
        }
    }

    #[test]
    #[should_panic(expected = "one record for each verdict")]
    fn records_that_do_not_match_are_rejected() {
        Verdicts::from_iter([true; 3]).retain_fresh(&mut vec![(); 2]);
    }
}
