//! The fingerprint of a key: a few bits, never 0, because 0 is the empty slot.

use echoless::extend::within;
use echoless::{KeyHash, SpecError};

/// The rule that derives a nonzero fingerprint from a key hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fingerprint {
    /// `bits` bits of a hash, hashed again while they are zero (paper 002, section 3.2):
    /// S = 2^bits - 1 equally likely values.
    Nonzero {
        /// b: the number of bits, 1 to 32.
        bits: u32,
    },
    /// As in the streaming quotient filter: the number of ones of an r-bit remainder, then its r'
    /// low bits (paper 002, section 2.4): S = 2^r' (r - r' + 1) values, not equally likely unless
    /// r = r' + 1.
    Counted {
        /// r: the number of bits of the remainder, 1 to 27.
        remainder: u32,
        /// r': the number of bits kept, 1 to r.
        kept: u32,
    },
}

/// The first hash stream of fingerprints. Row positions use stream 0.
const FIRST_STREAM: u64 = 1;

impl Fingerprint {
    pub(super) fn check(self) -> Result<Self, SpecError> {
        match self {
            Self::Nonzero { bits } => within("bits", bits, 1..=32).map(|_| self),
            Self::Counted { remainder, kept } => within("kept", kept, 1..=remainder).map(|_| self),
        }
    }

    /// The bits of a slot.
    pub(super) const fn bits(self) -> u32 {
        match self {
            Self::Nonzero { bits } => bits,
            // A count of 0 to r takes ceil(log2(r + 1)) bits.
            Self::Counted { remainder, kept } => kept + (u32::BITS - remainder.leading_zeros()),
        }
    }

    /// S: the number of different fingerprints.
    #[cfg(test)]
    const fn values(self) -> u64 {
        match self {
            Self::Nonzero { bits } => (1 << bits) - 1,
            Self::Counted { remainder, kept } => (1 << kept) * (remainder - kept + 1) as u64,
        }
    }

    #[inline(always)]
    pub(super) fn fingerprint_of(self, key: KeyHash) -> u32 {
        match self {
            Self::Nonzero { bits } => {
                let mut stream = FIRST_STREAM;
                loop {
                    let fingerprint = (key.remix(stream) >> (64 - bits)) as u32;
                    if fingerprint != 0 {
                        return fingerprint;
                    }
                    stream += 1;
                }
            }
            Self::Counted { remainder, kept } => {
                let remainder = (key.remix(FIRST_STREAM) >> (64 - remainder)) as u32;
                let counted = remainder.count_ones() << kept | remainder & ((1 << kept) - 1);
                // No remainder has count 0 and low bit 1. Exchanging that value with 0 frees 0 for
                // the empty slot.
                counted ^ 1
            }
        }
    }
}

/// The values of a fingerprint of `bits` bits that is never zero.
pub(super) fn nonzero_values(bits: u32) -> f64 {
    2_f64.powi(bits as i32) - 1.0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn histogram(rule: Fingerprint, keys: u64) -> BTreeMap<u32, u64> {
        let mut histogram = BTreeMap::new();
        for key in 0..keys {
            let hash = KeyHash::from_uniform(key.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            *histogram.entry(rule.fingerprint_of(hash)).or_default() += 1;
        }
        histogram
    }

    #[test]
    fn every_rule_returns_its_number_of_values_and_never_zero() {
        let rules = [
            (Fingerprint::Nonzero { bits: 1 }, 1, 1),
            (Fingerprint::Nonzero { bits: 3 }, 3, 7),
            (
                Fingerprint::Counted {
                    remainder: 2,
                    kept: 1,
                },
                3,
                4,
            ),
            (
                Fingerprint::Counted {
                    remainder: 2,
                    kept: 2,
                },
                4,
                4,
            ),
            (
                Fingerprint::Counted {
                    remainder: 5,
                    kept: 2,
                },
                5,
                16,
            ),
        ];
        for (rule, bits, values) in rules {
            assert_eq!((rule.bits(), rule.values()), (bits, values), "{rule:?}");
            let histogram = histogram(rule, 20_000);
            assert_eq!(histogram.len() as u64, values, "{rule:?}");
            assert!(!histogram.contains_key(&0), "{rule:?}");
            assert!(histogram.keys().all(|value| value >> bits == 0), "{rule:?}");
        }
    }

    #[test]
    fn nonzero_fingerprints_are_equally_likely() {
        let histogram = histogram(Fingerprint::Nonzero { bits: 3 }, 70_000);
        assert!(
            histogram.values().all(|count| count.abs_diff(10_000) < 500),
            "{histogram:?}"
        );
    }
}
