//! Numbers in text: the sizes and rates of options, and numbers for summaries and messages.

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::str::FromStr;

use echoless::SpecError;
use echoless::spec::parse_bytes;
use echoless_stream::{Span, Unit};

/// Parses a size in bytes, such as `64k`, `256MiB`, `2G` or `500MB`, for the option `field`.
///
/// # Errors
/// [`SpecError`] if [`parse_bytes`] rejects the text, or the size is 0.
pub fn parse_size(field: &'static str, text: &str) -> Result<u64, SpecError> {
    match parse_bytes(text) {
        Ok(0) => Err(SpecError::new(field, text, "1 byte or more")),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(SpecError { field, ..error }),
    }
}

/// Parses `10m`, `500ms` or a number of records, at least 1, such as `1000` or `10k`, for the option
/// `field`. Times are in nanoseconds.
///
/// # Errors
/// [`SpecError`] for other texts.
pub fn parse_span(field: &'static str, text: &str) -> Result<Span, SpecError> {
    Span::parse(text, Unit::NANOSECOND).ok_or_else(|| {
        let allowed = "a time such as 500ms, 90s, 10m, 36h or 30d (ns and us too, at most 106751d), or a number of records, 1 or more, such as 1000, 10k or 5M";
        SpecError::new(field, text, allowed)
    })
}

/// Parses a length of time, 0 included, for the option `field`; in nanoseconds.
///
/// # Errors
/// [`SpecError`] for other texts.
pub fn parse_time(field: &'static str, text: &str) -> Result<u64, SpecError> {
    echoless_stream::parse_time(text, Unit::NANOSECOND).ok_or_else(|| {
        let allowed =
            "a time such as 0s, 500ms, 90s, 10m, 36h or 30d (ns and us too, at most 106751d)";
        SpecError::new(field, text, allowed)
    })
}

/// Parses a whole number within `range`, for the option `field`.
///
/// # Errors
/// [`SpecError`] if the text is no such number.
pub fn parse_whole<N: FromStr + PartialOrd + Display>(
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

/// The highest number of threads: more than most machines have cores. The rings between so many
/// take 3.5 GB, reserved before the threads start; chunks and batches take 2 GB and more as they
/// are used.
const MOST_THREADS: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// Parses `--threads`.
///
/// # Errors
/// [`SpecError`] if the text is no number from 1 to 1024.
pub fn parse_threads(option: &'static str, text: &str) -> Result<NonZeroUsize, SpecError> {
    parse_whole(option, text, NonZeroUsize::MIN..=MOST_THREADS)
}

/// Parses `--seed`.
///
/// # Errors
/// [`SpecError`] if the text is no number below 2^64.
pub fn parse_seed(text: &str) -> Result<u64, SpecError> {
    parse_whole("--seed", text, 0..=u64::MAX)
}

/// Applies the parser of an option to its value, if it was given.
///
/// # Errors
/// That of the parser.
pub fn parse_if_given<T>(
    option: &'static str,
    text: Option<&str>,
    parse: impl FnOnce(&'static str, &str) -> Result<T, SpecError>,
) -> Result<Option<T>, SpecError> {
    text.map(|text| parse(option, text)).transpose()
}

/// Parses a rate between 0 and 1, both excluded, for the option `field`.
///
/// # Errors
/// [`SpecError`] if the text is no rate.
pub fn parse_rate(field: &'static str, text: &str) -> Result<f64, SpecError> {
    let rate = text.parse().ok();
    rate.filter(|rate| *rate > 0.0 && *rate < 1.0)
        .ok_or_else(|| SpecError::new(field, text, "a rate between 0 and 1 (exclusive)"))
}

/// Groups digits: `1234567` becomes `1,234,567`.
pub fn grouped(number: u64) -> String {
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
pub fn short(number: f64) -> String {
    match number {
        0.0 => "0".into(),
        _ if number.abs() < 1e-3 => format!("{number:.1e}"),
        _ if number.abs() < 1.0 => format!("{number:.3}"),
        _ if number.abs() < 1000.0 => format!("{number:.1}"),
        _ => grouped(number.round() as u64),
    }
}

/// A size in bytes with a unit of powers of 1000, rounded.
pub fn decimal_bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut size = bytes;
    let mut unit = 0;
    while size >= 1000.0 && unit + 1 < UNITS.len() {
        size /= 1000.0;
        unit += 1;
    }
    if size.fract() == 0.0 {
        format!("{size} {}", UNITS[unit])
    } else {
        format!("{size:.2} {}", UNITS[unit])
    }
}

/// A size in bytes, exact: in the largest unit of powers of 1024 that divides it.
pub(crate) fn exact_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut size = bytes;
    let mut unit = 0;
    while size > 0 && size.is_multiple_of(1024) && unit + 1 < UNITS.len() {
        size /= 1024;
        unit += 1;
    }
    let name = match (size, UNITS[unit]) {
        (1, "bytes") => "byte",
        (_, name) => name,
    };
    format!("{} {name}", grouped(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_above_zero_and_errors_name_the_option() {
        assert_eq!(parse_size("--memory", "64k"), Ok(64 << 10));
        for text in ["0", "0G", "", "12Q"] {
            let error = parse_size("--memory", text).unwrap_err();
            assert_eq!(error.field, "--memory");
            assert!(error.to_string().contains(text), "{error}");
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
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1000, "1,000 bytes"),
            (1024, "1 KiB"),
            (999_999, "999,999 bytes"),
            (1_000_000, "1,000,000 bytes"),
            (1536 << 10, "1,536 KiB"),
            (256 << 20, "256 MiB"),
            (2048 << 40, "2,048 TiB"),
        ] {
            assert_eq!(exact_bytes(bytes), text);
        }
        assert_eq!(short(0.0), "0");
        assert_eq!(short(1.23e-7), "1.2e-7");
        assert_eq!(short(1234.5), "1,235");
    }
}
