//! The random choices of ageing in a line. They are a function of the seed, the key hash and the
//! content of the line, and of no shared state, so that they are the same for any partitioning.
//!
//! ```text
//! seed --remix--> salt --+
//! key hash --------------xor--> Draw --remix(stream)--> random word `stream`
//! folded line -----------+
//! ```
//!
//! Each use of randomness has a stream number of its own, so that two choices of a visit are
//! independent. The modules of the rules list their streams.

use echoless::KeyHash;

use crate::scattered::random::falls_below;

/// The [`KeyHash::remix`] stream that turns the seed of a specification into a salt.
const SALT_STREAM: u64 = 0x6c69_6e65_2073_6c74;

/// A source of random words for one visit: a hash of the seed, the key and the content of the line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draw(KeyHash);

/// The contribution of the seed to every draw.
#[derive(Debug, Clone, Copy)]
pub(super) struct Salt(u64);

impl Salt {
    pub(super) const fn from_seed(seed: u64) -> Self {
        Self(KeyHash::from_uniform(seed).remix(SALT_STREAM))
    }

    /// The draw of this key at a line. `content` is the line, folded into one word.
    #[inline(always)]
    pub(super) const fn draw(self, key: KeyHash, content: u64) -> Draw {
        Draw(KeyHash::from_uniform(key.get() ^ self.0 ^ content))
    }
}

impl Draw {
    /// Random word number `stream`.
    #[inline(always)]
    pub(super) const fn word(self, stream: u64) -> u64 {
        self.0.remix(stream)
    }

    /// A number below `bound`, from random word number `stream`. Its bias is below `bound / 2^64`.
    #[inline(always)]
    pub(super) const fn below(self, stream: u64, bound: u64) -> u64 {
        ((self.word(stream) as u128 * bound as u128) >> 64) as u64
    }

    /// True with the given probability, by random word number `stream`.
    #[inline(always)]
    pub(super) fn chance(self, stream: u64, probability: f64) -> bool {
        falls_below(self.word(stream), probability)
    }

    /// The draw as a hash, for functions that take positions from a hash.
    #[inline(always)]
    pub(super) const fn hash(self) -> KeyHash {
        self.0
    }
}

/// Number `index` of a sequence of random numbers below `bound`, which is at most 512. Their bias
/// is below `bound / 2^16`.
///
/// Each number uses 16 bits, so that four of them cost only one remix:
///
/// ```text
/// stream     first              first + 1
/// word       | 63 ....... 0 |   | 63 ....... 0 |
/// index      | 3 | 2 | 1 | 0 |  | 7 | 6 | 5 | 4 |
/// ```
#[inline(always)]
pub(super) const fn piece(hash: KeyHash, first: u64, index: u32, bound: u32) -> u32 {
    let word = hash.remix(first + (index / 4) as u64);
    let bits = (word >> (16 * (index % 4))) & 0xffff;
    // Multiply and shift: 16 bits as a fraction of 1, times the bound. Cheaper than a remainder.
    ((bits * bound as u64) >> 16) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_uniform() {
        for bound in [1, 2, 9, 170, 512] {
            let mut counts = vec![0_u32; bound as usize];
            for key in 0..20_000 {
                for index in 0..8 {
                    counts[piece(KeyHash::from_uniform(key), 5, index, bound) as usize] += 1;
                }
            }
            let mean = 160_000.0 / f64::from(bound);
            let deviates = |count: &u32| (f64::from(*count) - mean).abs() > 5.0 * mean.sqrt();
            assert!(!counts.iter().any(deviates), "below {bound}: {counts:?}");
        }
    }

    #[test]
    fn a_draw_depends_on_seed_key_and_content() {
        let word = |seed, key, content| {
            Salt::from_seed(seed)
                .draw(KeyHash::from_uniform(key), content)
                .word(0)
        };
        assert_eq!(word(1, 9, 3), word(1, 9, 3));
        for changed in [word(2, 9, 3), word(1, 8, 3), word(1, 9, 2)] {
            assert_ne!(word(1, 9, 3), changed);
        }
    }
}
