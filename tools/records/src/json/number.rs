//! The canonical form of a number: sign, digits without zeros at either end, `e` and the exponent
//! unless it is 0. It is exact for numbers of any length.

use std::io::Write;

use memchr::{memchr, memchr2};

/// The number of digits of the largest exponent that is compared.
const EXPONENT_DIGITS: usize = 18;

/// Whether a number is an integer that neither ends with 0 nor is one.
#[inline]
pub(super) fn is_canonical_integer(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    digits.iter().all(u8::is_ascii_digit) && !digits.ends_with(b"0")
}

/// Appends the canonical form of a number; `None` if its exponent has too many digits.
pub(super) fn append_number(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (sign, text) = match text {
        [b'-', text @ ..] => (&b"-"[..], text),
        _ => (&b""[..], text),
    };
    let mantissa_len = memchr2(b'e', b'E', text).unwrap_or(text.len());
    let (mantissa, exponent) = (&text[..mantissa_len], text.get(mantissa_len + 1..));
    let point = memchr(b'.', mantissa);
    let (whole, fraction) = match point {
        Some(point) => (&mantissa[..point], &mantissa[point + 1..]),
        None => (mantissa, &b""[..]),
    };
    let assembled = out.len();
    out.extend_from_slice(sign);
    let digits = out.len();
    for byte in whole.iter().chain(fraction) {
        if out.len() > digits || *byte != b'0' {
            out.push(*byte);
        }
    }
    if out.len() == digits {
        out.truncate(assembled);
        out.push(b'0');
        return Some(());
    }
    let zeros = out.iter().rev().take_while(|byte| **byte == b'0').count();
    out.truncate(out.len() - zeros);
    // A record is shorter than 2^62 bytes, and so are these lengths.
    let shift = zeros as i64 - fraction.len() as i64;
    let exponent = exponent.map_or(Some(0), parse_exponent)? + shift;
    if exponent != 0 {
        // Writing to a vector cannot fail.
        let _ = write!(out, "e{exponent}");
    }
    Some(())
}

/// The most digits before the point of a number that is written without its exponent, and the most
/// zeros behind it: enough for every time, in any unit.
const MOST_PLACES: i64 = 19;

/// Appends a number with an exponent as digits without one, for readers that take no exponent. A
/// fraction below 10^-19 has fewer zeros, which is the same to readers of up to that many digits.
/// `None`, and nothing is appended, if the number has no exponent or is too large.
pub(super) fn append_without_exponent(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    memchr2(b'e', b'E', text)?;
    let mut canonical = Vec::new();
    append_number(text, &mut canonical)?;
    let (sign, number) = match &canonical[..] {
        [b'-', number @ ..] => (&b"-"[..], number),
        number => (&b""[..], number),
    };
    let (digits, exponent) = match memchr(b'e', number) {
        Some(at) => (&number[..at], parse_exponent(&number[at + 1..])?),
        None => (number, 0),
    };
    // The digits before the point; below 0, the zeros behind it.
    let places = digits.len() as i64 + exponent;
    if places > MOST_PLACES {
        return None;
    }
    out.extend_from_slice(sign);
    if exponent >= 0 {
        out.extend_from_slice(digits);
        out.resize(out.len() + exponent as usize, b'0');
    } else if places > 0 {
        let (whole, fraction) = digits.split_at(places as usize);
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else {
        out.extend_from_slice(b"0.");
        let zeros = (-places).min(MOST_PLACES) as usize;
        out.resize(out.len() + zeros, b'0');
        out.extend_from_slice(digits);
    }
    Some(())
}

/// An exponent with its sign; `None` if it has too many digits.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let zeros = digits.iter().take_while(|byte| **byte == b'0').count();
    let digits = &digits[zeros..];
    if digits.len() > EXPONENT_DIGITS {
        return None;
    }
    let value = |value, digit: &u8| value * 10 + i64::from(digit - b'0');
    let exponent = digits.iter().fold(0, value);
    Some(if negative { -exponent } else { exponent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_their_exponents() {
        for (text, plain) in [
            ("1.7e9", "1700000000"),
            ("1.7E+9", "1700000000"),
            ("17e8", "1700000000"),
            ("170000000000e-2", "1700000000"),
            ("1.70000000025e9", "1700000000.25"),
            ("-1.5e0", "-1.5"),
            ("25e-4", "0.0025"),
            ("-25e-4", "-0.0025"),
            ("25e-2", "0.25"),
            ("0e5", "0"),
            ("1e18", "1000000000000000000"),
            ("3e-999999", "0.00000000000000000003"),
        ] {
            let mut out = b"x".to_vec();
            assert_eq!(append_without_exponent(text.as_bytes(), &mut out), Some(()));
            assert_eq!(out, format!("x{plain}").into_bytes(), "{text}");
        }
        for text in [
            "1700000000",
            "1.5",
            "1e19",
            "12e18",
            "1e999999999999999999999",
        ] {
            let mut out = b"x".to_vec();
            assert_eq!(append_without_exponent(text.as_bytes(), &mut out), None);
            assert_eq!(out, b"x", "{text}");
        }
    }

    #[test]
    fn forms() {
        for (text, form) in [
            ("0", "0"),
            ("-0.00e7", "0"),
            ("12", "12"),
            ("-12", "-12"),
            ("1200", "12e2"),
            ("0.0120", "12e-3"),
            ("12.50E+3", "125e2"),
            ("100e-2", "1"),
        ] {
            let mut out = b"x".to_vec();
            assert_eq!(append_number(text.as_bytes(), &mut out), Some(()));
            assert_eq!(out, format!("x{form}").into_bytes(), "{text}");
            // What is not copied must be in this form already.
            assert_eq!(
                is_canonical_integer(text.as_bytes()),
                text == form && text != "0"
            );
        }
    }
}
