//! Sizes and numbers of records in text, compared with arithmetic on wide numbers.
#![no_main]

use echoless::spec::{format_bytes, parse_bytes};
use echoless_lab::stream::{format_count, parse_count};
use libfuzzer_sys::fuzz_target;

/// The number that begins the text, if it is below 2^100, and the rest.
fn number(text: &str) -> Option<(u128, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    let number = number.trim_start_matches('0');
    match (digits, number) {
        (0, _) => None,
        (_, "") => Some((0, rest)),
        (_, number) => Some((number.parse().ok().filter(|value| *value < 1 << 100)?, rest)),
    }
}

fn size(text: &str) -> Option<u64> {
    let (number, unit) = number(text)?;
    let unit = unit.trim_start_matches(' ').to_ascii_lowercase();
    let (base, prefix) = match unit.strip_suffix('b') {
        None => (1024, unit.as_str()),
        Some(rest) => match rest.strip_suffix('i') {
            Some(prefix) if !prefix.is_empty() => (1024, prefix),
            Some(_) => return None,
            None => (1000, rest),
        },
    };
    let power = ["", "k", "m", "g", "t", "p"].iter().position(|name| *name == prefix)?;
    u64::try_from(number.checked_mul(u128::pow(base, power as u32))?).ok()
}

fn count(text: &str) -> Option<u64> {
    let (number, unit) = number(text)?;
    let power = ["", "k", "M", "G", "T"].iter().position(|name| *name == unit)?;
    let count = u64::try_from(number.checked_mul(u128::pow(1000, power as u32))?).ok()?;
    (count > 0).then_some(count)
}

fuzz_target!(|text: &str| {
    let parsed = parse_bytes(text).ok();
    assert_eq!(parsed, size(text));
    if let Some(bytes) = parsed {
        assert_eq!(parse_bytes(&format_bytes(bytes)), Ok(bytes));
    }
    let parsed = parse_count("n", text).ok();
    assert_eq!(parsed, count(text));
    if let Some(count) = parsed {
        assert_eq!(parse_count("n", &format_count(count)), Ok(count));
    }
});
