//! Numbers as keys: what they count decides which of them are equal.
//!
//! Integers are equal if their values are, in every width and with a sign or without: those from 0
//! on have the hashes of the `u64` keys of other languages, negative ones are keys of 128 bits.
//! Instants, times of the day and durations are three kinds of keys of 128 bits, in nanoseconds:
//! equal in all units, and never equal to an integer.
//!
//! ```text
//!   bit 127     120                                                  0
//!      | kind      | nanoseconds                       |
//! ```

use echoless::{KeyHash, KeyHasher};
use echoless_foreign::{Keys, Numbers};

/// The most bytes of a number as a field of a key.
pub(crate) const WIDE: usize = 17;

/// What the numbers of a column count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Unsigned,
    Signed,
    /// Times since 1970, in a unit of so many nanoseconds.
    Instant(u64),
    /// Times since midnight.
    OfDay(u64),
    Duration(u64),
}

impl Meaning {
    /// So that a time has fewer than 120 bits.
    pub(crate) const MOST_UNIT: u64 = 1 << 55;

    /// The nanoseconds of a unit, if the numbers are times.
    pub(crate) const fn unit(self) -> Option<u64> {
        match self {
            Self::Unsigned | Self::Signed => None,
            Self::Instant(unit) | Self::OfDay(unit) | Self::Duration(unit) => Some(unit),
        }
    }

    /// The number of a kind of times, which is not that of negative integers.
    const fn kind(self) -> u8 {
        match self {
            Self::Unsigned | Self::Signed => 0xff,
            Self::Instant(_) => 1,
            Self::OfDay(_) => 2,
            Self::Duration(_) => 3,
        }
    }

    /// The key of 128 bits of a number that is negative or a time.
    const fn wide(self, number: u64) -> u128 {
        match self.unit() {
            None => number as i64 as u128,
            Some(unit) => {
                let nanoseconds = number as i64 as i128 * unit as i128;
                (nanoseconds as u128) << 8 >> 8 | (self.kind() as u128) << 120
            }
        }
    }

    /// Whether the number is one of 64 bits, as other languages have it.
    const fn is_plain(self, number: u64) -> bool {
        match self {
            Self::Unsigned => true,
            Self::Signed => number as i64 >= 0,
            _ => false,
        }
    }

    /// Hashes numbers as keys.
    pub(crate) fn hash(self, hasher: &KeyHasher, numbers: &[u64], hashes: &mut [KeyHash]) {
        if self.unit().is_none() {
            Numbers(numbers).hash(hasher, 0, hashes);
        }
        if self == Self::Unsigned {
            return;
        }
        for (number, hash) in numbers.iter().zip(hashes) {
            if !self.is_plain(*number) {
                *hash = hasher.hash_u128(self.wide(*number));
            }
        }
    }

    /// The bytes of a number as a field of a key, the lowest first: 8 of one of 64 bits, 9 of a
    /// negative one, and 17 of a time.
    pub(crate) fn field(self, number: u64, wide: &mut [u8; WIDE]) -> &[u8] {
        let end = if self.is_plain(number) {
            wide[..8].copy_from_slice(&number.to_le_bytes());
            8
        } else {
            wide[..16].copy_from_slice(&self.wide(number).to_le_bytes());
            wide[16] = self.kind();
            if self.unit().is_none() { 9 } else { WIDE }
        };
        &wide[..end]
    }
}
