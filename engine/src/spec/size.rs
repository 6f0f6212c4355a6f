//! Sizes of memory in text.

use crate::error::SpecError;

const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1000),
    ("B", 1),
];

/// Reads a number of bytes: an integer, alone or with one of the units B, KB, MB, GB, TB, KiB, MiB, GiB, TiB.
///
/// # Errors
/// [`SpecError`] if it is not that, or 2^64 bytes and more.
///
/// # Examples
/// ```
/// use echoless::spec::parse_bytes;
/// assert_eq!(parse_bytes("64MiB"), Ok(64 << 20));
/// assert_eq!(parse_bytes("1500"), Ok(1500));
/// assert!(parse_bytes("64 parsecs").is_err());
/// ```
pub fn parse_bytes(text: &str) -> Result<u64, SpecError> {
    let (number, unit) = UNITS
        .into_iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?.trim_end(), unit)))
        .unwrap_or((text, 1));
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| {
            let allowed = "a whole number of B, KB, MB, GB, TB, KiB, MiB, GiB or TiB, below 2^64 B";
            SpecError::new("memory", text, allowed)
        })
}

/// Writes a number of bytes in the largest binary unit that divides it; [`parse_bytes`] reads it back.
///
/// # Examples
/// ```
/// use echoless::spec::format_bytes;
/// assert_eq!(format_bytes(64 << 20), "64MiB");
/// assert_eq!(format_bytes(1500), "1500B");
/// ```
#[must_use]
pub fn format_bytes(bytes: u64) -> String {
    let binary = UNITS[..4].iter();
    let fitting = binary
        .copied()
        .find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit));
    let (name, unit) = fitting.unwrap_or(("B", 1));
    format!("{}{name}", bytes / unit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_a_size_is_refused() {
        for text in [
            "",
            "MiB",
            "-1",
            "1.5GiB",
            "64mb",
            "99999999999999999999",
            "16777216TiB",
        ] {
            let error = parse_bytes(text).expect_err(text);
            assert_eq!((error.field, error.asked.as_str()), ("memory", text));
        }
        assert_eq!(format_bytes(0), "0B");
        assert_eq!(parse_bytes("3 KB"), Ok(3000));
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
