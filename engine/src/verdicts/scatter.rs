//! Verdict bits in another order than that of the keys that they are about.

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
