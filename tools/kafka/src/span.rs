//! Windows: spans of time or of offsets, and the ticks in which a filter counts them.

use echoless::SpecError;

/// The units of a span of time, in milliseconds, the unit of the times of Kafka.
const TIMES: [(&str, u64); 5] = [
    ("ms", 1),
    ("s", 1_000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// The units of a number of records.
const COUNTS: [(&str, u64); 5] = [
    ("", 1),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

/// The least number of ticks in a window whose ticks are longer than one unit, as in `dedup`.
const LEAST_TICKS: u64 = 2000;

/// What moves the clock of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The latest time of the records in Kafka.
    Times,
    /// The offset of the record.
    Offsets,
}

/// A window of the records of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) clock: Clock,
    /// The length of a tick, in milliseconds or offsets.
    pub(crate) resolution: u64,
    /// The window in ticks, rounded up.
    pub(crate) ticks: u64,
    /// How far ahead of the clock a time may be.
    pub(crate) max_advance: Option<MaxAdvance>,
}

/// How far ahead of the clock a time may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MaxAdvance {
    /// In ticks, rounded up.
    pub(crate) ticks: u64,
    /// The tick of the clock of the system when the member began, which the first time of a
    /// partition is compared with.
    pub(crate) now: Option<u64>,
}

impl Window {
    /// Parses `24h` or `5M`, the value of `--window`.
    ///
    /// # Errors
    /// [`SpecError`] for other texts and for 0.
    pub(crate) fn parse(text: &str) -> Result<Self, SpecError> {
        let time = in_units(text, &TIMES).map(|length| (Clock::Times, length));
        let count = || in_units(text, &COUNTS).map(|length| (Clock::Offsets, length));
        let window = time.or_else(count).filter(|(_, length)| *length > 0);
        let (clock, length) = window.ok_or_else(|| {
            let allowed = "a time such as 500ms, 90s, 10m, 36h or 30d, or a number of records, 1 \
                           or more, such as 1000, 10k or 5M";
            SpecError::new("--window", text, allowed)
        })?;
        let resolution = resolution(length);
        Ok(Self {
            clock,
            resolution,
            ticks: length.div_ceil(resolution),
            max_advance: None,
        })
    }

    /// The same with the value of `--max-advance`. `now` is the time of the system.
    ///
    /// # Errors
    /// [`SpecError`] if it is no time, or the window is none of time.
    pub(crate) fn with_max_advance(self, text: &str, now: i64) -> Result<Self, SpecError> {
        if self.clock == Clock::Offsets {
            let allowed = "a window of time beside it, such as --window 24h";
            return Err(SpecError::new("--max-advance", text, allowed));
        }
        let length = parse_time("--max-advance", text)?;
        let max_advance = MaxAdvance {
            ticks: length.div_ceil(self.resolution),
            now: self.tick(0, Some(now)),
        };
        Ok(Self {
            max_advance: Some(max_advance),
            ..self
        })
    }

    /// The tick of a record; `None` if it has no time. Filters start at tick 0, and no record has
    /// that one.
    pub(crate) fn tick(self, offset: i64, time: Option<i64>) -> Option<u64> {
        let position = match self.clock {
            Clock::Times => time?,
            Clock::Offsets => offset,
        };
        Some(u64::try_from(position).ok()? / self.resolution + 1)
    }
}

/// The length of a tick of a window this long: 1, 2 or 5 times a power of ten.
fn resolution(length: u64) -> u64 {
    let longest = length / LEAST_TICKS;
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

/// Parses a length of time, at least 1 ms, in milliseconds.
///
/// # Errors
/// [`SpecError`] about the option `field` for other texts.
pub(crate) fn parse_time(field: &'static str, text: &str) -> Result<u64, SpecError> {
    let time = in_units(text, &TIMES).filter(|length| *length > 0);
    time.ok_or_else(|| SpecError::new(field, text, "a time such as 100ms, 2s or 1m"))
}

/// A whole number with one of the units; `None` for anything else, and from 2^63 on.
fn in_units(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    let length = number.parse::<u64>().ok()?.checked_mul(*scale)?;
    // Times and offsets of Kafka are signed.
    (length <= i64::MAX as u64).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_times_or_numbers_of_records() {
        for (text, clock, resolution, ticks) in [
            ("500ms", Clock::Times, 1, 500),
            ("10m", Clock::Times, 200, 3000),
            ("24h", Clock::Times, 20_000, 4320),
            ("1", Clock::Offsets, 1, 1),
            ("10k", Clock::Offsets, 5, 2000),
            ("5M", Clock::Offsets, 2000, 2500),
        ] {
            let window = Window {
                clock,
                resolution,
                ticks,
                max_advance: None,
            };
            assert_eq!(Window::parse(text), Ok(window), "{text}");
        }
        for text in [
            "",
            "0",
            "0s",
            "-1",
            "1.5h",
            "5 m",
            "h",
            "1y",
            "9223372036854775808",
        ] {
            let error = Window::parse(text).unwrap_err();
            assert_eq!(error.field, "--window", "{error}");
        }
        assert_eq!(parse_time("--interval", "2s"), Ok(2000));
        assert!(parse_time("--interval", "10").is_err());
    }

    #[test]
    fn ticks_begin_at_1_and_records_without_a_time_have_none() {
        let times = Window::parse("24h").unwrap();
        assert_eq!(times.tick(7, Some(0)), Some(1));
        assert_eq!(times.tick(7, Some(86_400_000)), Some(4321));
        assert_eq!(times.tick(7, Some(-1)), None);
        assert_eq!(times.tick(7, None), None);
        let offsets = Window::parse("10k").unwrap();
        assert_eq!(offsets.tick(4, None), Some(1));
        assert_eq!(offsets.tick(10_000, None), Some(2001));
    }
}
