//! Counts that a benchmark checks before it reports a speed.

use crate::failure::Failure;

/// Fails unless `duplicates` of `keys` distinct keys agree with the `expected` false duplicates.
///
/// # Errors
/// If they differ by more than the noise.
pub(crate) fn false_duplicates(duplicates: u64, keys: u64, expected: f64) -> Result<(), Failure> {
    // Six standard deviations of a Poisson count, one percent for the approximation of
    // `expected`, and three for counts near 0.
    let tolerance = 6.0 * expected.sqrt() + expected * 0.01 + 3.0;
    if (duplicates as f64 - expected).abs() <= tolerance {
        return Ok(());
    }
    Err(
        format!("{duplicates} of {keys} distinct keys are duplicates, expected {expected:.1}")
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::false_duplicates;

    #[test]
    fn wrong_counts_are_rejected() {
        assert!(false_duplicates(100, 1000, 101.0).is_ok());
        assert!(false_duplicates(200, 1000, 101.0).is_err());
        assert!(false_duplicates(3, 1000, 0.0).is_ok());
        assert!(false_duplicates(4, 1000, 0.0).is_err());
    }
}
