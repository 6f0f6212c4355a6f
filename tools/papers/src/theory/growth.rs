//! When a growing filter opens the next one (paper 001, section 5).

/// The density threshold of a filter of `cells` cells, k for each key: z = m p^(1/k), the number of
/// set cells at which its FPR is p.
///
/// # Examples
/// ```
/// use echoless_papers::theory::growth::density_threshold;
/// // A quarter of the keys find both of their cells set once half of them are.
/// assert_eq!(density_threshold(1000, 2, 0.25), 500.0);
/// ```
#[must_use]
pub fn density_threshold(cells: u64, hashes: u32, fpr: f64) -> f64 {
    cells as f64 * fpr.powf(1.0 / f64::from(hashes))
}

/// The cardinality threshold of a filter of `cells` cells, k for each key:
/// n = -(m/k) ln(1 - p^(1/k)), the number of keys at which its FPR is p.
///
/// A growing filter exceeds p a little at that number: only keys that miss are inserted, and those
/// set more new cells than others.
///
/// # Examples
/// ```
/// use echoless_papers::theory::bloom::fpr;
/// use echoless_papers::theory::growth::cardinality_threshold;
/// let keys = cardinality_threshold(1 << 20, 8, 0.01);
/// assert!((fpr(8, keys as u64, 1 << 20) - 0.01).abs() < 1e-6);
/// ```
#[must_use]
pub fn cardinality_threshold(cells: u64, hashes: u32, fpr: f64) -> f64 {
    let hashes = f64::from(hashes);
    -(cells as f64 / hashes) * (-fpr.powf(1.0 / hashes)).ln_1p()
}
