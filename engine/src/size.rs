//! Memory sizes in text, such as `64MiB`.

use crate::error::SpecError;

/// The prefixes of a byte, each a step of 1024 or 1000, from the smallest.
const PREFIXES: [&str; 5] = ["K", "M", "G", "T", "P"];

/// The accepted sizes.
pub(crate) const SIZES: &str = "a whole number with an optional unit: K, M, G, T, P (or KiB ..) \
     for powers of 1024, KB .. for powers of 1000, and fewer than 2^64 bytes";

/// Parses a number of bytes: a whole number, alone or with a unit.
///
/// | unit | bytes |
/// |---|---|
/// | none, `B` | 1 |
/// | `K`, `M`, `G`, `T`, `P` | 1024, 1024^2, .. 1024^5 |
/// | `KiB`, `MiB`, `GiB`, `TiB`, `PiB` | 1024, 1024^2, .. 1024^5 |
/// | `KB`, `MB`, `GB`, `TB`, `PB` | 1000, 1000^2, .. 1000^5 |
///
/// Case does not matter, and spaces may separate number and unit. Signs and fractions are rejected.
///
/// # Errors
/// [`SpecError`] if the text is not of this form, or the size is 2^64 bytes or more.
///
/// # Examples
/// ```
/// use echoless::spec::parse_bytes;
/// assert_eq!(parse_bytes("64MiB"), Ok(64 << 20));
/// assert_eq!(parse_bytes("64m"), Ok(64 << 20));
/// assert_eq!(parse_bytes("64 MB"), Ok(64_000_000));
/// assert_eq!(parse_bytes("1500"), Ok(1500));
/// assert!(parse_bytes("64 parsecs").is_err());
/// ```
pub fn parse_bytes(text: &str) -> Result<u64, SpecError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let bytes = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(unit_bytes(unit.trim_start_matches(' '))?));
    bytes.ok_or_else(|| SpecError::of_text("memory", text, SIZES))
}

/// The number of bytes in a unit.
fn unit_bytes(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_uppercase();
    let (prefix, base) = match (unit.strip_suffix("IB"), unit.strip_suffix('B')) {
        (Some(prefix), _) => (prefix, 1024_u64),
        (None, Some("")) => return Some(1),
        (None, Some(prefix)) => (prefix, 1000),
        (None, None) if unit.is_empty() => return Some(1),
        (None, None) => (unit.as_str(), 1024),
    };
    let step = PREFIXES.iter().position(|name| *name == prefix)?;
    Some(base.pow(step as u32 + 1))
}

/// Writes a number of bytes in the largest binary unit that divides it; [`parse_bytes`] parses it
/// back.
///
/// # Examples
/// ```
/// use echoless::spec::format_bytes;
/// assert_eq!(format_bytes(64 << 20), "64MiB");
/// assert_eq!(format_bytes(1500), "1500B");
/// ```
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    let (mut number, mut unit) = (bytes, String::from("B"));
    for prefix in PREFIXES {
        if number == 0 || !number.is_multiple_of(1024) {
            break;
        }
        number /= 1024;
        unit = format!("{prefix}iB");
    }
    format!("{number}{unit}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_unit_in_both_cases() {
        for (text, bytes) in [
            ("0", 0),
            ("1500", 1500),
            ("1500B", 1500),
            ("64k", 64 << 10),
            ("64K", 64 << 10),
            ("64KiB", 64 << 10),
            ("256 MiB", 256 << 20),
            ("2G", 2 << 30),
            ("2gib", 2 << 30),
            ("3T", 3 << 40),
            ("1P", 1 << 50),
            ("1PiB", 1 << 50),
            ("1PB", 1_000_000_000_000_000),
            ("500MB", 500_000_000),
            ("64mb", 64_000_000),
            ("3 KB", 3000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn other_texts_and_overflow_are_rejected() {
        let overflow = [
            "18446744073709551616",
            "17179869184G",
            "16777216TiB",
            "16384P",
        ];
        let others = "MiB|-1|+5|1.5GiB|12Q|G|iB|4ib|4 B B|2 G x|٣|4\tB| 4| |1e3|4Kib/s";
        for text in others.split('|').chain(overflow) {
            let error = parse_bytes(text).expect_err(text);
            assert_eq!((error.field, error.asked.as_str()), ("memory", text));
        }
        assert_eq!(parse_bytes("").unwrap_err().asked, "\"\"");
    }

    proptest! {
        #[test]
        fn sizes_survive_their_text(bytes in any::<u64>(), shift in 0_u32..60) {
            for bytes in [bytes, bytes >> shift << shift] {
                prop_assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
            }
        }
    }
}
