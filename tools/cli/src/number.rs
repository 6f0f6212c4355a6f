//! Numbers in text: the sizes and rates of options, and numbers for summaries and messages.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use echoless::SpecError;
use echoless::spec::parse_bytes;

/// Parses a size in bytes, such as `64k`, `256MiB`, `2G` or `500MB`, for the option `field`.
///
/// # Errors
/// [`SpecError`] if [`parse_bytes`] rejects the text, or the size is 0.
pub(crate) fn parse_size(field: &'static str, text: &str) -> Result<u64, SpecError> {
    match parse_bytes(text) {
        Ok(0) => Err(SpecError::new(field, text, "1 byte or more")),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(SpecError { field, ..error }),
    }
}

/// Parses a whole number within `range`, for the option `field`.
///
/// # Errors
/// [`SpecError`] if the text is no such number.
pub(crate) fn parse_whole<N: FromStr + PartialOrd + Display>(
    field: &'static str,
    text: &str,
    range: RangeInclusive<N>,
) -> Result<N, SpecError> {
    let number = text.parse().ok();
    number
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            let (least, most) = range.into_inner();
            SpecError::new(
                field,
                text,
                format!("a whole number from {least} to {most}"),
            )
        })
}

/// Parses a rate between 0 and 1, both excluded, for the option `field`.
pub(crate) fn parse_rate(field: &'static str, text: &str) -> Result<f64, SpecError> {
    let rate = text.parse().ok();
    rate.filter(|rate| *rate > 0.0 && *rate < 1.0)
        .ok_or_else(|| SpecError::new(field, text, "a rate between 0 and 1 (exclusive)"))
}

/// Groups digits: `1234567` becomes `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number in about three digits: with an exponent below 0.001, grouped from 1000.
pub(crate) fn short(number: f64) -> String {
    match number {
        0.0 => "0".into(),
        _ if number.abs() < 1e-3 => format!("{number:.1e}"),
        _ if number.abs() < 1.0 => format!("{number:.3}"),
        _ if number.abs() < 1000.0 => format!("{number:.1}"),
        _ => grouped(number.round() as u64),
    }
}

/// A size in bytes with a unit of powers of 1000.
pub(crate) fn decimal_bytes(bytes: f64) -> String {
    scaled(bytes, 1000.0, ["B", "kB", "MB", "GB", "TB"])
}

/// A size in bytes with a unit of powers of 1024.
pub(crate) fn binary_bytes(bytes: f64) -> String {
    scaled(bytes, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB"])
}

fn scaled(bytes: f64, base: f64, units: [&str; 5]) -> String {
    let mut size = bytes;
    let mut unit = 0;
    while size >= base && unit + 1 < units.len() {
        size /= base;
        unit += 1;
    }
    if size.fract() == 0.0 {
        format!("{size} {}", units[unit])
    } else {
        format!("{size:.2} {}", units[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_above_zero_and_errors_name_the_option() {
        assert_eq!(parse_size("--memory", "64k"), Ok(64 << 10));
        for text in ["0", "0G", "", "12Q"] {
            let error = parse_size("--memory", text).unwrap_err();
            assert_eq!((error.field, error.asked.as_str()), ("--memory", text));
        }
    }

    #[test]
    fn whole_numbers_are_within_their_range() {
        let threads = |text| parse_whole("--threads", text, 1..=1024_u64);
        assert_eq!((threads("1"), threads("1024")), (Ok(1), Ok(1024)));
        for text in ["0", "1025", "-1", "1.5", "1k", "", "18446744073709551616"] {
            let error = threads(text).unwrap_err();
            assert_eq!((error.field, error.asked.as_str()), ("--threads", text));
            assert_eq!(error.allowed, "a whole number from 1 to 1024");
        }
    }

    #[test]
    fn rates() {
        assert_eq!(parse_rate("fpr", "1e-8"), Ok(1e-8));
        for text in ["0", "1", "-0.1", "1.5", "NaN", "inf", "", "x"] {
            assert!(parse_rate("fpr", text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_in_text() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(12_345_678), "12,345,678");
        assert_eq!(decimal_bytes(1.5e9), "1.50 GB");
        assert_eq!(binary_bytes((256_u64 << 20) as f64), "256 MiB");
        assert_eq!(short(0.0), "0");
        assert_eq!(short(1.23e-7), "1.2e-7");
        assert_eq!(short(1234.5), "1,235");
    }
}
