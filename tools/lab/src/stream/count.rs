//! Numbers of records in text form: `10M` is ten million.

use echoless::SpecError;

const UNITS: [(&str, u64); 4] = [
    ("T", 1_000_000_000_000),
    ("G", 1_000_000_000),
    ("M", 1_000_000),
    ("k", 1000),
];

/// Parses a number of records: a whole number above 0, alone or with `k`, `M`, `G` or `T` (powers
/// of 1000).
///
/// # Errors
/// [`SpecError`] about `field` if the text has another form, or its value is 0 or at least 2^64.
///
/// # Examples
/// ```
/// use echoless_lab::stream::parse_count;
/// assert_eq!(parse_count("records", "10M"), Ok(10_000_000));
/// assert_eq!(parse_count("records", "1500"), Ok(1500));
/// let error = parse_count("records", "0").unwrap_err();
/// assert!(error.to_string().starts_with("invalid records=0: expected"));
/// ```
pub fn parse_count(field: &'static str, text: &str) -> Result<u64, SpecError> {
    let (number, unit) = UNITS
        .into_iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))
        .unwrap_or((text, 1));
    // `parse` alone would accept a plus sign.
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let count = number.parse::<u64>().ok().filter(|_| digits);
    count
        .and_then(|count| count.checked_mul(unit))
        .filter(|count| *count > 0)
        .ok_or_else(|| {
            let allowed = "a whole number above 0, alone or with k, M, G or T (x 1000)";
            SpecError::new(field, text, allowed)
        })
}

/// Formats a number of records in the largest unit that divides it; [`parse_count`] is the inverse.
///
/// # Examples
/// ```
/// use echoless_lab::stream::format_count;
/// assert_eq!(format_count(695_000_000), "695M");
/// assert_eq!(format_count(1234), "1234");
/// ```
#[must_use]
pub fn format_count(count: u64) -> String {
    let mut units = UNITS.into_iter();
    match units.find(|(_, unit)| count > 0 && count.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", count / unit),
        None => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn other_text_is_rejected() {
        for text in [
            "",
            "M",
            "-1",
            "+1",
            "0",
            "0k",
            "1.5M",
            "10m",
            "10 M",
            "99999999999999999999",
            "99999999T",
        ] {
            let error = parse_count("window", text).expect_err(text);
            assert_eq!((error.field, error.asked.as_str()), ("window", text));
        }
    }

    proptest! {
        #[test]
        fn formatted_counts_parse_to_the_same_value(count in 1_u64.., thousands in 0_u32..5) {
            let count = (count >> 50).max(1) * 1000_u64.pow(thousands);
            prop_assert_eq!(parse_count("records", &format_count(count)), Ok(count));
        }
    }
}
