//! The comparison of random words with probabilities, the same for lines and scattered filters.

/// Whether a random word, as a fraction of 2^64, is below `probability`.
#[inline(always)]
pub fn falls_below(word: u64, probability: f64) -> bool {
    // The upper 53 bits: as many as an f64 represents exactly, so that 1 is never reached.
    const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;
    ((word >> 11) as f64) * UNIT < probability
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_fractions_below_1() {
        assert!(!falls_below(0, 0.0));
        assert!(falls_below(u64::MAX, 1.0));
        assert!(falls_below((1 << 63) - 1, 0.5));
        assert!(!falls_below(1 << 63, 0.5));
    }
}
