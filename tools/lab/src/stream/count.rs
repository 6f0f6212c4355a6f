//! Numbers of records in the options of a stream: `10M` is ten million.

use echoless::SpecError;
pub use echoless_stream::format_count;

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
    echoless_stream::parse_count(text).ok_or_else(|| {
        let allowed = "a whole number above 0, alone or with k, M, G or T (x 1000)";
        SpecError::new(field, text, allowed)
    })
}
