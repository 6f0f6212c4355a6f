//! The hash of a key, and what is computed from it: its line, and other hashes.

use super::fixed;

/// The 64-bit hash of a key. Everything after the parser works on hashes, not keys.
///
/// A [`KeyHasher`](super::KeyHasher) makes it from a key; [`from_uniform`](Self::from_uniform)
/// takes a hash that a program has already.
///
/// # Examples
/// ```
/// use echoless::{KeyHash, KeyHasher};
/// let hasher = KeyHasher::seeded(0);
/// assert_ne!(hasher.hash_u64(1), hasher.hash_u64(2));
/// // Lines are intervals of hashes.
/// assert_eq!(KeyHash::from_uniform(0).line(1000), 0);
/// assert_eq!(KeyHash::from_uniform(u64::MAX).line(1000), 999);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct KeyHash(pub(crate) u64);

impl KeyHash {
    /// Takes a number as a hash. It must be uniform in all 64 bits, as a good hash function makes
    /// it: the high bits decide the line, the low bits are the fingerprint.
    ///
    /// **Ids, counters, addresses and times are not uniform.** The numbers 0 to 99,999 all fall in
    /// one line of a filter of any usual size, which then forgets all but a few of them. Hash these
    /// with [`KeyHasher::hash_u64`](super::KeyHasher::hash_u64).
    ///
    /// # Examples
    /// ```
    /// use echoless::{Filter, FingerprintSpec, KeyHash, KeyHasher};
    /// let hasher = KeyHasher::seeded(0);
    /// let repeated = |hash: &dyn Fn(u64) -> KeyHash| -> Result<u64, echoless::BuildError> {
    ///     let mut filter = FingerprintSpec::new(1 << 20).build()?;
    ///     (0..1000).chain(0..1000).for_each(|id| drop(filter.observe_one(hash(id))));
    ///     Ok(2000 - filter.report().tally.fresh.unwrap_or(0))
    /// };
    /// assert_eq!(repeated(&|id| hasher.hash_u64(id))?, 1000);
    /// assert!(repeated(&KeyHash::from_uniform)? < 3); // wrong: ids are not uniform
    /// # Ok::<(), echoless::BuildError>(())
    /// ```
    #[must_use]
    #[inline(always)]
    pub const fn from_uniform(hash: u64) -> Self {
        Self(hash)
    }

    /// The number.
    #[must_use]
    #[inline(always)]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The index of the line of this hash among `lines` lines. It depends on the high bits.
    ///
    /// A multiplication instead of a remainder: it is faster, and it maps intervals to intervals.
    #[must_use]
    #[inline(always)]
    pub const fn line(self, lines: u64) -> u64 {
        ((self.0 as u128 * lines as u128) >> 64) as u64
    }

    /// Another hash of the same key, practically independent of its line and fingerprint. `stream`
    /// selects one of 2^64 such hashes.
    #[must_use]
    #[inline(always)]
    pub const fn remix(self, stream: u64) -> u64 {
        // Streams are spaced by 2^64 / golden ratio, as the states of SplitMix64 are, so that
        // nearby stream numbers differ in many bits before the mix.
        fixed::mix(
            self.0
                .wrapping_add(stream.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        )
    }
}
