//! Spans of time or of records (`10m`, `1000000`), and the length of a tick.

use echoless::SpecError;
use echoless_lab::stream::parse_count;

/// The units of a span of time, in nanoseconds.
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// The least number of ticks in a window whose ticks are longer than one unit.
///
/// A batch of keys is judged at one tick, so short ticks make short batches; long ticks make the
/// granule long. The length is 1, 2 or 5 times a power of ten, so a window has 2000 to 4999 ticks
/// and less than a two-thousandth is lost at its edge.
const LEAST_TICKS: u64 = 2000;

/// A span of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// Nanoseconds of event time, at most `i64::MAX`.
    Time(u64),
    /// Records.
    Records(u64),
}

impl Span {
    /// Parses `10m`, `500ms` or a number of records, at least 1, such as `1000` or `10k`, for the
    /// option `field`.
    pub(crate) fn parse(field: &'static str, text: &str) -> Result<Self, SpecError> {
        let records = || parse_count(field, text).ok().map(Self::Records);
        let span = nanoseconds(text).map(Self::Time).or_else(records);
        span.filter(|span| span.units() > 0).ok_or_else(|| {
            let allowed = "a time such as 500ms, 90s, 10m, 36h or 30d (ns and us too, at most 106751d), or a number of records, 1 or more, such as 1000, 10k or 5M";
            SpecError::new(field, text, allowed)
        })
    }

    /// Its length in nanoseconds or records.
    pub(crate) const fn units(self) -> u64 {
        match self {
            Self::Time(units) | Self::Records(units) => units,
        }
    }

    /// The length of a tick of a window this long, in nanoseconds or records.
    pub(crate) const fn resolution(self) -> u64 {
        let longest = self.units() / LEAST_TICKS;
        let mut power = 1_u64;
        while power <= longest / 10 {
            power *= 10;
        }
        match longest / power {
            0..2 => power,
            2..5 => power * 2,
            _ => power * 5,
        }
    }

    /// The shortest tick, in nanoseconds or records, with which the span has at most `most` ticks:
    /// 1, 2 or 5 times a power of ten.
    pub(crate) fn resolution_of_at_most(self, most: u64) -> u64 {
        let shortest = self.units().div_ceil(most);
        let mut power = 1_u64;
        loop {
            for digit in [1, 2, 5] {
                // A span has at most 2^64 units, so the product cannot overflow before it is long
                // enough.
                let tick = power * digit;
                if tick >= shortest {
                    return tick;
                }
            }
            power *= 10;
        }
    }
}

/// Parses a length of time, 0 included, for the option `field`; in nanoseconds.
pub(crate) fn parse_time(field: &'static str, text: &str) -> Result<u64, SpecError> {
    nanoseconds(text).ok_or_else(|| {
        let allowed =
            "a time such as 0s, 500ms, 90s, 10m, 36h or 30d (ns and us too, at most 106751d)";
        SpecError::new(field, text, allowed)
    })
}

/// Whole nanoseconds: `1500ms` and `1.5s`, but not `1.5ns`.
fn nanoseconds(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit_at);
    let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some(("", fraction)) => ("0", fraction),
        Some(parts) => parts,
        None => (number, ""),
    };
    let nanoseconds = whole.parse::<u64>().ok()?.checked_mul(*scale)?;
    let nanoseconds = nanoseconds.checked_add(part_of(*scale, fraction)?)?;
    // Event times are signed, and so are their distances.
    (nanoseconds <= i64::MAX as u64).then_some(nanoseconds)
}

/// The digits behind the point as a part of `scale`, if that is a whole number.
fn part_of(scale: u64, fraction: &str) -> Option<u64> {
    /// As many as a `u64` holds.
    const MOST_DIGITS: usize = 18;
    let digits = fraction.trim_end_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    if digits.len() > MOST_DIGITS {
        return None;
    }
    let product = u128::from(digits.parse::<u64>().ok()?) * u128::from(scale);
    let power = 10_u128.pow(digits.len() as u32);
    (product % power == 0).then(|| (product / power) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_of_time_and_of_records() {
        for (text, span) in [
            ("500ms", Span::Time(500_000_000)),
            ("90s", Span::Time(90_000_000_000)),
            ("10m", Span::Time(600_000_000_000)),
            ("36h", Span::Time(129_600_000_000_000)),
            ("30d", Span::Time(2_592_000_000_000_000)),
            ("106751d", Span::Time(106_751 * 86_400_000_000_000)),
            ("1ns", Span::Time(1)),
            ("0.05s", Span::Time(50_000_000)),
            (".1s", Span::Time(100_000_000)),
            ("1.5ms", Span::Time(1_500_000)),
            ("0.000000001s", Span::Time(1)),
            ("1.000ns", Span::Time(1)),
            ("1.5h", Span::Time(5_400_000_000_000)),
            ("0.125d", Span::Time(10_800_000_000_000)),
            ("1", Span::Records(1)),
            ("1000000", Span::Records(1_000_000)),
            ("10k", Span::Records(10_000)),
            ("5M", Span::Records(5_000_000)),
            ("5m", Span::Time(300_000_000_000)),
            ("18446744073709551615", Span::Records(u64::MAX)),
        ] {
            assert_eq!(Span::parse("--window", text), Ok(span), "{text}");
        }
        for text in [
            "",
            "0",
            "0s",
            "-1",
            "-5m",
            "m",
            "1.5",
            "1.5ns",
            "0.0000000001s",
            "0.0000000000000000001d",
            "1.s",
            ".s",
            "1.2.3s",
            "10 m",
            "10min",
            "1K",
            "20000000000000M",
            "1w",
            "106752d",
            "18446744073709551616",
            "99999999999999999999d",
            "１0m",
        ] {
            let error = Span::parse("--window", text).unwrap_err();
            assert_eq!((error.field, error.asked.as_str()), ("--window", text));
        }
        assert_eq!(parse_time("--lateness", "0s"), Ok(0));
        for text in ["", "5", "x", "-1s"] {
            assert!(parse_time("--lateness", text).is_err(), "{text}");
        }
    }

    #[test]
    fn ticks_have_round_lengths() {
        for (text, resolution) in [
            ("10m", 200_000_000),
            ("36h", 50_000_000_000),
            ("30d", 1_000_000_000_000),
            ("90s", 20_000_000),
            ("500ms", 200_000),
            ("1ns", 1),
            ("1", 1),
            ("3999", 1),
            ("4000", 2),
            ("1000000", 500),
        ] {
            let span = Span::parse("--window", text).unwrap();
            assert_eq!(span.resolution(), resolution, "{text}");
        }
    }

    #[test]
    fn the_shortest_ticks_of_a_window_are_bounded_in_number() {
        for (span, resolution) in [
            (Span::Time(1), 1),
            (Span::Time(1 << 20), 1),
            (Span::Time((1 << 20) + 1), 2),
            (Span::Time(100_000_000), 100),
            (Span::Time(1_000_000_000), 1000),
            (Span::Time(30_000_000_000), 50_000),
            (Span::Records(1_000_000), 1),
            (Span::Records(u64::MAX), 20_000_000_000_000),
        ] {
            assert_eq!(span.resolution_of_at_most(1 << 20), resolution, "{span:?}");
        }
    }

    proptest! {
        #[test]
        fn a_window_has_2000_to_4999_ticks_or_ticks_of_one_unit(units in 1_u64.., shift in 0_u32..64) {
            let units = (units >> shift).max(1);
            let resolution = Span::Records(units).resolution();
            let ticks = units / resolution;
            prop_assert!(ticks < 5000);
            prop_assert!(ticks >= LEAST_TICKS || resolution == 1);
        }
    }
}
