//! Times as numbers, such as `1700000000`, `1700000000.25` or `1700000000250`, in integer
//! arithmetic: a float would round nanoseconds of this century to about 200.

/// What a number counts since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl Unit {
    /// The digits of a nanosecond behind the point.
    const fn digits(self) -> usize {
        match self {
            Self::Seconds => 9,
            Self::Milliseconds => 6,
            Self::Microseconds => 3,
            Self::Nanoseconds => 0,
        }
    }

    /// The unit that puts a number of this magnitude closest to the present: seconds up to the year
    /// 5138, then milliseconds, microseconds and nanoseconds for the years 1973 to 5138.
    const fn of_magnitude(whole: u64) -> Self {
        const SECONDS: u64 = 100_000_000_000;
        match whole {
            _ if whole < SECONDS => Self::Seconds,
            _ if whole < SECONDS * 1_000 => Self::Milliseconds,
            _ if whole < SECONDS * 1_000_000 => Self::Microseconds,
            _ => Self::Nanoseconds,
        }
    }
}

/// Nanoseconds since 1970, rounded down; `None` if the text is not a number, or outside of the
/// years 1678 to 2261. Without a unit, the magnitude of the number decides.
pub(crate) fn parse(text: &[u8], unit: Option<Unit>) -> Option<i64> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let mut whole = 0_u64;
    let mut at = 0;
    while let Some(digit) = digit(text, at) {
        whole = whole.checked_mul(10)?.checked_add(digit)?;
        at += 1;
    }
    let unit = unit.unwrap_or(Unit::of_magnitude(whole));
    let fraction = match (&text[at..], at) {
        ([], 1..) => &[][..],
        ([b'.', fraction @ ..], 1..) if !fraction.is_empty() => fraction,
        _ => return None,
    };
    // The digits behind the point, padded or cut to whole nanoseconds.
    let mut parts = 0_u64;
    let mut cut = false;
    for at in 0..fraction.len().max(unit.digits()) {
        let digit = match fraction.get(at) {
            Some(byte) if byte.is_ascii_digit() => u64::from(byte - b'0'),
            Some(_) => return None,
            None => 0,
        };
        if at < unit.digits() {
            parts = parts * 10 + digit;
        } else {
            cut |= digit != 0;
        }
    }
    let scale = 10_u64.pow(unit.digits() as u32);
    let magnitude = whole.checked_mul(scale)?.checked_add(parts)?;
    let magnitude = i64::try_from(magnitude).ok()?;
    Some(if negative {
        -magnitude - i64::from(cut)
    } else {
        magnitude
    })
}

/// Whether the text is a number, however large.
pub(super) fn is_number(text: &[u8]) -> bool {
    let text = text
        .strip_prefix(b"-")
        .or(text.strip_prefix(b"+"))
        .unwrap_or(text);
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    let digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    parts.all(digits)
}

#[inline]
fn digit(text: &[u8], at: usize) -> Option<u64> {
    let byte = *text.get(at)?;
    byte.is_ascii_digit().then(|| u64::from(byte - b'0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_in_each_unit() {
        use Unit::{Microseconds as Us, Milliseconds as Ms, Nanoseconds as Ns, Seconds as S};
        for (text, unit, nanoseconds) in [
            ("0", S, 0),
            ("1", S, 1_000_000_000),
            ("+1.5", S, 1_500_000_000),
            ("-1.5", S, -1_500_000_000),
            ("1.000000001", S, 1_000_000_001),
            ("1.0000000019", S, 1_000_000_001),
            ("-1.0000000019", S, -1_000_000_002),
            ("-1.0000000010", S, -1_000_000_001),
            ("1700000000.123456789", S, 1_700_000_000_123_456_789),
            ("1.25", Ms, 1_250_000),
            ("1.25", Us, 1_250),
            ("1.25", Ns, 1),
            ("9223372036854775807", Ns, i64::MAX),
            ("-9223372036854775807", Ns, -i64::MAX),
        ] {
            assert_eq!(
                parse(text.as_bytes(), Some(unit)),
                Some(nanoseconds),
                "{text}"
            );
        }
    }

    #[test]
    fn the_magnitude_decides_without_a_unit() {
        let second = 1_700_000_000_000_000_000;
        for text in [
            "1700000000",
            "1700000000000",
            "1700000000000000",
            "1700000000000000000",
            "1700000000000.0",
        ] {
            assert_eq!(parse(text.as_bytes(), None), Some(second), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in [
            "",
            "-",
            "+",
            ".",
            ".5",
            "5.",
            "1.2.3",
            "1e9",
            "0x1",
            "1 ",
            "--1",
            "1,5",
            "2025-01-01",
            "99999999999999999999",
            "9223372036854775808",
            "9223372037",
        ] {
            assert_eq!(parse(text.as_bytes(), Some(Unit::Seconds)), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn seconds_with_fractions_are_exact(nanoseconds in 0..i64::MAX) {
            let (whole, parts) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
            let text = format!("{whole}.{parts:09}");
            prop_assert_eq!(parse(text.as_bytes(), Some(Unit::Seconds)), Some(nanoseconds));
            let text = format!("-{text}");
            prop_assert_eq!(parse(text.as_bytes(), Some(Unit::Seconds)), Some(-nanoseconds));
        }
    }
}
