//! From keys to key hashes, and the split of a hash into line and fingerprint.
//!
//! ```text
//! bit 63                                                                0
//!     +-------------------------------+-----------------------------------+
//!     | decides the line (high bits)  | the fingerprint (low 8/16/32/64)  |
//!     +-------------------------------+-----------------------------------+
//! ```
//! The line of a hash `h` among `n` lines is `floor(h * n / 2^64)`: all hashes of one line form one interval, so a range of lines is a
//! range of hashes, and within a line the low bits stay uniform as long as `n` is small against `2^(64 - fingerprint bits)`.
//! Filters that need further random bits mix the whole hash again ([`KeyHash::remix`]) instead of reusing these.

mod bytes;
mod fixed;

pub use bytes::KeyHasher;

/// The 64-bit hash that stands for a key everywhere past the parser.
///
/// # Examples
/// ```
/// use echoless::KeyHash;
/// assert_eq!(KeyHash(0).line(1000), 0);
/// assert_eq!(KeyHash(u64::MAX).line(1000), 999);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct KeyHash(pub u64);

impl KeyHash {
    /// The line of this hash among `lines` lines, from the high bits.
    #[must_use]
    #[inline(always)]
    pub const fn line(self, lines: u64) -> u64 {
        ((self.0 as u128 * lines as u128) >> 64) as u64
    }

    /// A second hash, independent for all practical purposes of the line and of the fingerprint.
    ///
    /// `stream` picks one of many such hashes.
    #[must_use]
    #[inline(always)]
    pub const fn remix(self, stream: u64) -> u64 {
        fixed::mix(
            self.0
                .wrapping_add(stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        )
    }
}
