//! Numbers of records in text form: `10M` is ten million.

const UNITS: [(&str, u64); 4] = [
    ("T", 1_000_000_000_000),
    ("G", 1_000_000_000),
    ("M", 1_000_000),
    ("k", 1000),
];

/// Parses a number of records: a whole number above 0, alone or with `k`, `M`, `G` or `T` (powers
/// of 1000). `None` for other texts, 0, and from 2^64 on.
///
/// # Examples
/// ```
/// use echoless_stream::parse_count;
/// assert_eq!(parse_count("10M"), Some(10_000_000));
/// assert_eq!(parse_count("1500"), Some(1500));
/// assert_eq!(parse_count("0"), None);
/// ```
#[must_use]
pub fn parse_count(text: &str) -> Option<u64> {
    let (number, unit) = UNITS
        .into_iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))
        .unwrap_or((text, 1));
    // `parse` alone would accept a plus sign.
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let count = number.parse::<u64>().ok().filter(|_| digits)?;
    count.checked_mul(unit).filter(|count| *count > 0)
}

/// Formats a number of records in the largest unit that divides it; [`parse_count`] is the inverse.
///
/// # Examples
/// ```
/// use echoless_stream::format_count;
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
