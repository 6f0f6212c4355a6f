//! What a 64-bit word of a shared filter holds.

/// The layout of a 64-bit word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SharedLayout {
    /// Four fingerprints of 16 bits; a new one evicts the oldest. False positive rate 6e-5, for
    /// endless streams.
    Row4x16,
    /// Two fingerprints of 32 bits; a new one evicts the oldest. False positive rate 5e-10, for
    /// endless streams.
    Row2x32,
    /// A Bloom filter with `k` bits for each key (register-blocked). It never misses a duplicate,
    /// and its false positive rate rises to 1 as it fills.
    Bloom {
        /// Bits for each key, 1 to 10.
        k: u32,
    },
    /// A Bloom filter that clears bits as it fills, for endless streams: RLBSBF (paper 000) in a
    /// word.
    Ageing {
        /// Bits for each key, 2 to 10; with a single bit the words would fill up.
        k: u32,
    },
}
