//! The checks that the specifications of all families share. Each rejects a value with an error
//! that names the field, the value and the accepted range.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::error::SpecError;

/// The highest accepted number of hash positions per key, the k of every filter.
pub const MOST_HASHES: u32 = 64;

/// Returns `asked`, or an error if it lies outside `allowed`.
pub fn within<T: PartialOrd + Display>(
    field: &'static str,
    asked: T,
    allowed: RangeInclusive<T>,
) -> Result<T, SpecError> {
    if allowed.contains(&asked) {
        Ok(asked)
    } else {
        Err(SpecError::new(
            field,
            asked.to_string(),
            format!("{} to {}", allowed.start(), allowed.end()),
        ))
    }
}

/// A rate as text: small ones with an exponent, in place of hundreds of digits.
pub fn rate_text(rate: f64) -> String {
    if rate != 0.0 && rate.abs() < 1e-4 {
        format!("{rate:e}")
    } else {
        rate.to_string()
    }
}

/// Returns the false positive rate `asked`, or an error unless it is strictly between 0 and 1.
pub(crate) fn open_fpr(asked: f64) -> Result<f64, SpecError> {
    if asked > 0.0 && asked < 1.0 {
        Ok(asked)
    } else {
        let allowed = "a rate between 0 and 1 (exclusive)";
        Err(SpecError::new("fpr", rate_text(asked), allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_field_value_and_range() {
        assert_eq!(within("k", 64, 1..=MOST_HASHES), Ok(64));
        let message = |error: SpecError| error.to_string();
        assert_eq!(
            within("k", 0, 1..=MOST_HASHES).map_err(message),
            Err("invalid k=0: expected 1 to 64".into())
        );
        assert_eq!(
            open_fpr(0.0).map_err(message),
            Err("invalid fpr=0: expected a rate between 0 and 1 (exclusive)".into())
        );
    }
}
