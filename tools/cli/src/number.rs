//! Numbers as people type them: sizes with units, rates and shares; and numbers as people read them.

use echoless::SpecError;

const SIZES: &str =
    "a whole number above 0 with an optional unit: B, k, M, G, T, KiB.. (x 1024), kB.. (x 1000)";

/// Parses a size in bytes such as `64k`, `256MiB`, `2G` or `500MB`.
///
/// As the common tools have it, `k` and `KiB` count in 1024, `kB` in 1000; case does not matter.
pub(crate) fn parse_size(field: &'static str, text: &str) -> Result<u64, SpecError> {
    let refuse = || SpecError::new(field, text, SIZES);
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| refuse())?;
    let unit = unit.trim_start().to_ascii_lowercase();
    let (prefix, base) = match unit.strip_suffix("ib") {
        Some("") => return Err(refuse()),
        Some(prefix) => (prefix, 1024_u64),
        None => match unit.strip_suffix('b') {
            Some(prefix) => (prefix, 1000),
            None => (unit.as_str(), 1024),
        },
    };
    let power = match prefix {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return Err(refuse()),
    };
    let bytes = number.checked_mul(base.pow(power)).ok_or_else(refuse)?;
    if bytes == 0 { Err(refuse()) } else { Ok(bytes) }
}

/// Parses a rate that lies between 0 and 1, both excluded.
pub(crate) fn parse_rate(field: &'static str, text: &str) -> Result<f64, SpecError> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate < 1.0 => Ok(rate),
        _ => Err(SpecError::new(
            field,
            text,
            "a number above 0 and below 1, such as 1e-8",
        )),
    }
}

/// `1234567` as `1,234,567`.
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

/// A number with three significant digits, exponents only where they are shorter.
pub(crate) fn short(number: f64) -> String {
    match number {
        0.0 => "0".into(),
        _ if number.abs() < 1e-3 => format!("{number:.1e}"),
        _ if number.abs() < 1.0 => format!("{number:.3}"),
        _ if number.abs() < 1000.0 => format!("{number:.1}"),
        _ => grouped(number.round() as u64),
    }
}

/// A size in bytes with a decimal unit.
pub(crate) fn decimal_bytes(bytes: f64) -> String {
    scaled(bytes, 1000.0, ["B", "kB", "MB", "GB", "TB"])
}

/// A size in bytes with a binary unit.
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
    fn sizes() {
        for (text, bytes) in [
            ("1", 1),
            ("64B", 64),
            ("64k", 64 << 10),
            ("64KiB", 64 << 10),
            ("256MiB", 256 << 20),
            ("256 MiB", 256 << 20),
            ("2G", 2 << 30),
            ("2gib", 2 << 30),
            ("500MB", 500_000_000),
            ("3T", 3 << 40),
        ] {
            assert_eq!(parse_size("memory", text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for text in [
            "",
            "0",
            "0G",
            "12Q",
            "-5",
            "+5",
            "1.5G",
            "G",
            "iB",
            "4ib",
            "18446744073709551616",
            "17179869184G",
            "2 G x",
            "٣",
        ] {
            let error = parse_size("memory", text).unwrap_err();
            assert_eq!(
                (error.field, error.asked.as_str()),
                ("memory", text),
                "{text}"
            );
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
    fn numbers_for_people() {
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
