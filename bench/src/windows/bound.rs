//! The least memory of any filter with a window.

/// Bits for each key of a window, at this false positive rate, if keys may be remembered longer
/// than the window by `slack`, a fraction of it: log2(1/f) + max(log2(1/slack), log2 log2(1/f)).
///
/// The bound holds up to a constant for each key (Naor and Yogev, Sliding Bloom Filters, 2013). A
/// key costs at least a fingerprint, and the time at which it is forgotten.
pub(super) fn bits_per_key(fpr: f64, slack: f64) -> f64 {
    let fingerprint = (1.0 / fpr).log2();
    fingerprint + (1.0 / slack).log2().max(fingerprint.log2())
}

#[cfg(test)]
mod tests {
    use super::bits_per_key;

    #[test]
    fn exact_windows_cost_more_than_coarse_ones() {
        // A fingerprint of 10 bits, and 10 bits of time or log2(10) bits.
        let fpr = 1.0 / 1024.0;
        assert_eq!(bits_per_key(fpr, fpr), 20.0);
        assert!((bits_per_key(fpr, 0.2) - 13.32).abs() < 0.01);
        assert_eq!(bits_per_key(fpr, 0.2), bits_per_key(fpr, 1.0));
    }
}
