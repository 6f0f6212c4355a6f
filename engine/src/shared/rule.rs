//! The rules of a word: how it holds keys. Each rule is two pure functions of a word and a key, so
//! the atomics live in one place, `observe_word`.
//!
//! ```text
//!                  bit 63                                        bit 0      record:
//!   RowWord<16>    | oldest    |           |           | newest    |    shift in from the right
//!   RowWord<32>    | oldest                | newest                |    shift in from the right
//!   BloomWord<K>   | 64 bits of a Bloom filter, K for each key     |    set K bits
//!   StampedWord    | older: time, key      | newer: time, key      |    see `stamped`
//! ```

use super::stamped::Ages;
use crate::hash::KeyHash;

/// How a word holds keys.
pub(super) trait WordRule: Copy + 'static {
    /// Whether recording only sets bits, so that a `fetch_or` can do it.
    const ONLY_SETS: bool;

    /// Whether verdicts depend on a clock, which [`at`](Self::at) sets.
    const HAS_CLOCK: bool = false;

    /// The rule at a unit of the clock.
    #[inline(always)]
    fn at(self, _ages: Ages) -> Self {
        self
    }

    /// Whether the word holds the key.
    fn holds(self, word: u64, key: KeyHash) -> bool;

    /// The word after the key is recorded. It holds the key.
    fn record(self, word: u64, key: KeyHash) -> u64;

    /// The word, which holds the key, after a duplicate of it.
    #[inline(always)]
    fn renewed(self, word: u64, _key: KeyHash) -> u64 {
        word
    }

    /// Whether recording a key evicts another one before its window is over. Never true for rules
    /// without a clock.
    #[inline(always)]
    fn evicts(self, _word: u64) -> bool {
        false
    }

    /// Whether recording a key takes an empty slot of this word, and does not evict another key.
    /// Never true for rules without slots, so that their loops do not count.
    #[inline(always)]
    fn takes_empty_slot(self, _word: u64) -> bool {
        false
    }
}

/// A row of `64 / BITS` fingerprints, the newest in the low bits. Recording shifts the oldest out
/// at the top. 0 is an empty slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowWord<const BITS: u32>;

impl<const BITS: u32> RowWord<BITS> {
    /// The lowest bit of every slot.
    const ONES: u64 = u64::MAX / (u64::MAX >> (64 - BITS));
    /// The highest bit of every slot.
    const TOPS: u64 = Self::ONES << (BITS - 1);

    /// The low bits of the hash (the line comes from the high bits). 0 becomes 1, because 0 is an
    /// empty slot.
    #[inline(always)]
    fn fingerprint(key: KeyHash) -> u64 {
        let low = key.0 & (u64::MAX >> (64 - BITS));
        low + u64::from(low == 0)
    }
}

impl<const BITS: u32> WordRule for RowWord<BITS> {
    const ONLY_SETS: bool = false;

    #[inline(always)]
    fn holds(self, word: u64, key: KeyHash) -> bool {
        // The product repeats the fingerprint in every slot, so the XOR turns an equal slot into 0.
        // Then the usual test for a zero slot: subtracting 1 from every slot borrows into the top
        // bit of a zero slot, and `& !` excludes slots whose top bit was set before. A borrow can
        // set the top bit of a slot above a zero slot as well, but never without a zero slot.
        let zero_if_equal = word ^ Self::fingerprint(key).wrapping_mul(Self::ONES);
        zero_if_equal.wrapping_sub(Self::ONES) & !zero_if_equal & Self::TOPS != 0
    }

    #[inline(always)]
    fn record(self, word: u64, key: KeyHash) -> u64 {
        word << BITS | Self::fingerprint(key)
    }

    #[inline(always)]
    fn takes_empty_slot(self, word: u64) -> bool {
        // The slots fill from the right, so the oldest one is the last.
        word >> (64 - BITS) == 0
    }
}

/// A Bloom filter of 64 bits with `K` bits for each key. It never forgets.
#[derive(Debug, Clone, Copy)]
pub(super) struct BloomWord<const K: u32>;

impl<const K: u32> BloomWord<K> {
    #[inline(always)]
    fn mask(key: KeyHash) -> u64 {
        // 6 bits of the mix for each of at most 10 bit positions.
        let positions = key.remix(1);
        (0..K).fold(0, |mask, index| mask | 1 << (positions >> (6 * index) & 63))
    }
}

impl<const K: u32> WordRule for BloomWord<K> {
    const ONLY_SETS: bool = true;

    #[inline(always)]
    fn holds(self, word: u64, key: KeyHash) -> bool {
        Self::mask(key) & !word == 0
    }

    #[inline(always)]
    fn record(self, word: u64, key: KeyHash) -> u64 {
        word | Self::mask(key)
    }
}

/// As [`BloomWord`], but recording a key first clears bits: `K` times a random bit, each time with
/// the probability that a bit of the word is set.
///
/// This is RLBSBF (paper 000, algorithm 4) within a word. The random choices are derived from the
/// key and the word, so a word's future depends only on its keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgeingWord<const K: u32>;

impl<const K: u32> WordRule for AgeingWord<K> {
    const ONLY_SETS: bool = false;

    #[inline(always)]
    fn holds(self, word: u64, key: KeyHash) -> bool {
        BloomWord::<K>.holds(word, key)
    }

    #[inline(always)]
    fn record(self, word: u64, key: KeyHash) -> u64 {
        let fill = u64::from(word.count_ones());
        // A choice takes 12 bits, 6 for the position and 6 for the probability, so a mix of 64 bits
        // serves five choices.
        let mix = |round: u32| KeyHash(key.0 ^ word).remix(2 + u64::from(round));
        let mut cleared = word;
        let mut random = 0;
        for index in 0..K {
            random = if index % 5 == 0 {
                mix(index / 5)
            } else {
                random >> 12
            };
            let clears = (random >> 6 & 63) < fill;
            cleared &= !(u64::from(clears) << (random & 63));
        }
        BloomWord::<K>.record(cleared, key)
    }
}

/// Evaluates an expression with `$rule` bound to the rule of a
/// [`SharedLayout`](super::SharedLayout), at the unit 0 of a clock. It compiles one copy of the
/// expression for each rule, so the hot loop has no branch on the layout.
macro_rules! with_rule {
    ($layout:expr, $rule:ident => $body:expr) => {
        with_rule!(@layouts $layout, $rule => $body, 1 2 3 4 5 6 7 8 9 10)
    };
    (@layouts $layout:expr, $rule:ident => $body:expr, $($k:literal)*) => {
        match $layout {
            SharedLayout::Row4x16 => { let $rule = RowWord::<16>; $body }
            SharedLayout::Row2x32 => { let $rule = RowWord::<32>; $body }
            SharedLayout::Stamped { refresh: true, .. } => {
                let $rule = StampedWord::<true>::default();
                $body
            }
            SharedLayout::Stamped { refresh: false, .. } => {
                let $rule = StampedWord::<false>::default();
                $body
            }
            $(
                SharedLayout::Bloom { k: $k } => { let $rule = BloomWord::<$k>; $body }
                SharedLayout::Ageing { k: $k } => { let $rule = AgeingWord::<$k>; $body }
            )*
            SharedLayout::Bloom { k } | SharedLayout::Ageing { k } => {
                unreachable!("a specification with k={k} is rejected")
            }
        }
    };
}
pub(super) use with_rule;

#[cfg(test)]
mod tests {
    use super::super::stamped::StampedWord;
    use super::*;
    use crate::shared::SharedLayout;
    use proptest::prelude::*;

    fn slots<const BITS: u32>(word: u64) -> Vec<u64> {
        (0..64 / BITS)
            .map(|slot| word >> (slot * BITS) & (u64::MAX >> (64 - BITS)))
            .collect()
    }

    fn check_row<const BITS: u32>(word: u64, key: KeyHash) {
        let row = RowWord::<BITS>;
        let fingerprint = RowWord::<BITS>::fingerprint(key);
        let before = slots::<BITS>(word);
        assert_eq!(row.holds(word, key), before.contains(&fingerprint));
        let mut expected = before.clone();
        expected.insert(0, fingerprint);
        expected.pop();
        assert_eq!(slots::<BITS>(row.record(word, key)), expected);
        assert_eq!(row.takes_empty_slot(word), before.last() == Some(&0));
        assert!(row.holds(row.record(word, key), key));
    }

    proptest! {
        #[test]
        fn rows_are_lists_of_fingerprints(word: u64, key: u64, slot in 0u32..4) {
            for key in [key, word >> (slot * 16), word >> ((slot % 2) * 32), 0, 1] {
                check_row::<16>(word, KeyHash(key));
                check_row::<32>(word, KeyHash(key));
                check_row::<16>(word & 0xffff_0000_ffff, KeyHash(key));
            }
        }

        #[test]
        fn bits_hold_what_they_record(word: u64, key: u64, k in 1u32..=10) {
            let key = KeyHash(key);
            with_rule!(SharedLayout::Bloom { k }, rule => {
                let recorded = rule.record(word, key);
                prop_assert!(rule.holds(recorded, key));
                prop_assert_eq!(recorded & word, word);
                prop_assert!((recorded ^ word).count_ones() <= k);
                prop_assert_eq!(rule.holds(word, key), recorded == word);
            });
        }

        #[test]
        fn ageing_clears_at_most_k_bits(word: u64, key: u64, k in 2u32..=10) {
            let key = KeyHash(key);
            with_rule!(SharedLayout::Ageing { k }, rule => {
                let recorded = rule.record(word, key);
                prop_assert!(rule.holds(recorded, key));
                prop_assert!((word & !recorded).count_ones() <= k);
                prop_assert_eq!(recorded, rule.record(word, key), "the choice depends only on the word and the key");
            });
        }
    }

    #[test]
    fn the_fill_of_an_ageing_word_settles_below_full() {
        for k in 2..=5 {
            let mean = with_rule!(SharedLayout::Ageing { k }, rule => {
                let (mut word, mut fill) = (0u64, 0u64);
                let rounds = 200_000;
                for key in 0..rounds {
                    let key = KeyHash(KeyHash(key).remix(9));
                    if !rule.holds(word, key) {
                        word = rule.record(word, key);
                    }
                    fill += u64::from(word.count_ones());
                }
                fill as f64 / rounds as f64 / 64.0
            });
            assert!((0.55..0.95).contains(&mean), "k={k}: {mean}");
        }
    }
}
