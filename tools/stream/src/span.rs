//! Spans of time or of records in text: `90s`, `1.5h`, `10k`.

use crate::count::parse_count;
use crate::window::{resolution, resolution_of_at_most};

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// As it is written.
    pub name: &'static str,
    /// Its length.
    pub nanoseconds: u64,
}

impl Unit {
    /// All of them, the shortest first.
    pub const ALL: [Self; 7] = [
        Self::new("ns", 1),
        Self::new("us", 1_000),
        Self::new("ms", 1_000_000),
        Self::new("s", 1_000_000_000),
        Self::new("m", 60_000_000_000),
        Self::new("h", 3_600_000_000_000),
        Self::new("d", 86_400_000_000_000),
    ];
    /// That of most event times.
    pub const NANOSECOND: Self = Self::ALL[0];
    /// That of Kafka and Flink.
    pub const MILLISECOND: Self = Self::ALL[2];

    const fn new(name: &'static str, nanoseconds: u64) -> Self {
        Self { name, nanoseconds }
    }
}

/// A span of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// Units of event time, at most `i64::MAX`.
    Time(u64),
    /// Records.
    Records(u64),
}

impl Span {
    /// Parses `10m` or `500ms` as a time in whole units, or a number of records, such as `1000` or
    /// `10k`; `None` for 0 and for other texts.
    ///
    /// # Examples
    /// ```
    /// use echoless_stream::{Span, Unit};
    /// assert_eq!(Span::parse("1.5s", Unit::MILLISECOND), Some(Span::Time(1500)));
    /// assert_eq!(Span::parse("10k", Unit::MILLISECOND), Some(Span::Records(10_000)));
    /// assert_eq!(Span::parse("1us", Unit::MILLISECOND), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str, unit: Unit) -> Option<Self> {
        let records = || parse_count(text).map(Self::Records);
        let span = parse_time(text, unit).map(Self::Time).or_else(records);
        span.filter(|span| span.units() > 0)
    }

    /// Its length in units or records.
    #[must_use]
    pub const fn units(self) -> u64 {
        match self {
            Self::Time(units) | Self::Records(units) => units,
        }
    }

    /// The length of a tick of a window this long; see [`resolution`].
    #[must_use]
    pub const fn resolution(self) -> u64 {
        resolution(self.units())
    }

    /// The shortest tick of the [rule](resolution) with which the span has at most `most` ticks.
    #[must_use]
    pub const fn resolution_of_at_most(self, most: u64) -> u64 {
        resolution_of_at_most(self.units(), most)
    }
}

/// Parses a length of time, 0 included, such as `1500ms` or `1.5s`, in whole units. `None` for
/// other texts, for parts of a unit, and from 2^63 units on: event times are signed, and so are
/// their distances.
#[must_use]
pub fn parse_time(text: &str, unit: Unit) -> Option<u64> {
    let nanoseconds = nanoseconds(text)?;
    let (units, rest) = (
        nanoseconds / u128::from(unit.nanoseconds),
        nanoseconds % u128::from(unit.nanoseconds),
    );
    (rest == 0 && units <= i64::MAX as u128).then_some(units as u64)
}

/// Parses a length of time, 0 included, in whole nanoseconds: `1.5ms`, but not `1.5ns`.
#[must_use]
pub fn nanoseconds(text: &str) -> Option<u128> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit_at);
    let unit = Unit::ALL.iter().find(|known| known.name == unit)?;
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return None,
        Some(("", fraction)) => ("0", fraction),
        Some(parts) => parts,
        None => (number, ""),
    };
    // 64 bits times 47.
    let whole = u128::from(whole.parse::<u64>().ok()?) * u128::from(unit.nanoseconds);
    Some(whole + part_of(unit.nanoseconds, fraction)?)
}

/// The digits behind the point as a part of `scale`, if that is a whole number.
fn part_of(scale: u64, fraction: &str) -> Option<u128> {
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
    product.is_multiple_of(power).then(|| product / power)
}
