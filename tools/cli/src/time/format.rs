//! `--time-format`: how the time of a record is written.

use std::fmt;

use echoless::SpecError;

use super::bcd;
use super::calendar::{Rfc3339, Strftime};
use super::decimal::{self, Unit};

/// How times are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TimeFormat {
    /// A number, whose unit follows from its magnitude, or a calendar time.
    Auto,
    Number(Unit),
    Rfc3339,
    /// The time stamp of 3GPP TS 32.298.
    Bcd,
    Strftime(Strftime),
}

impl TimeFormat {
    /// Parses the option `field`.
    pub(crate) fn parse(field: &'static str, text: &str) -> Result<Self, SpecError> {
        Ok(match text {
            "auto" => Self::Auto,
            "s" => Self::Number(Unit::Seconds),
            "ms" => Self::Number(Unit::Milliseconds),
            "us" => Self::Number(Unit::Microseconds),
            "ns" => Self::Number(Unit::Nanoseconds),
            "rfc3339" => Self::Rfc3339,
            "bcd" => Self::Bcd,
            _ => Self::Strftime(Strftime::new(field, text)?),
        })
    }
}

/// As it is typed.
impl fmt::Display for TimeFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Auto => "auto",
            Self::Number(Unit::Seconds) => "s",
            Self::Number(Unit::Milliseconds) => "ms",
            Self::Number(Unit::Microseconds) => "us",
            Self::Number(Unit::Nanoseconds) => "ns",
            Self::Rfc3339 => "rfc3339",
            Self::Bcd => "bcd",
            Self::Strftime(format) => return write!(out, "'{}'", format.text()),
        })
    }
}

/// Reads times, in ticks of a fixed length since 1970.
///
/// It remembers the last text: the times of adjacent records are often equal.
#[derive(Debug, Clone)]
pub(crate) struct TimeReader {
    format: TimeFormat,
    /// The length of a tick in nanoseconds.
    resolution: i64,
    rfc3339: Rfc3339,
    last: Option<(Vec<u8>, i64)>,
}

impl TimeReader {
    /// A reader of times in ticks of `resolution` nanoseconds, at least 1.
    pub(crate) fn new(format: TimeFormat, resolution: i64) -> Self {
        let rfc3339 = Rfc3339::new(format == TimeFormat::Auto);
        Self {
            format,
            resolution,
            rfc3339,
            last: None,
        }
    }

    /// The tick of a time; `None` if it cannot be read. Blanks around it are ignored.
    #[inline]
    pub(crate) fn tick(&mut self, text: &[u8]) -> Option<i64> {
        if let Some((last, tick)) = &self.last
            && last == text
        {
            return Some(*tick);
        }
        let tick = self.nanoseconds(text)?.div_euclid(self.resolution);
        let last = self.last.get_or_insert_default();
        last.0.clear();
        last.0.extend_from_slice(text);
        last.1 = tick;
        Some(tick)
    }

    fn nanoseconds(&mut self, bytes: &[u8]) -> Option<i64> {
        let text = bytes.trim_ascii();
        match &self.format {
            // Its bytes are no text: some of its digits look like blanks.
            TimeFormat::Bcd => bcd::parse(bytes),
            TimeFormat::Auto => decimal::parse(text, None).or_else(|| self.rfc3339.parse(text)),
            TimeFormat::Number(unit) => decimal::parse(text, Some(*unit)),
            TimeFormat::Rfc3339 => self.rfc3339.parse(text),
            TimeFormat::Strftime(format) => format.parse(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_round_down_on_both_sides_of_1970() {
        let mut reader = TimeReader::new(TimeFormat::Auto, 500_000_000);
        for (text, tick) in [
            ("0", Some(0)),
            ("0.499999999", Some(0)),
            (" 0.5\t", Some(1)),
            ("-0.1", Some(-1)),
            ("1970-01-01T00:00:01Z", Some(2)),
            ("1970-01-01 00:00:01", Some(2)),
            ("never", None),
            ("0.5", Some(1)),
            ("0.5", Some(1)),
            ("", None),
        ] {
            assert_eq!(reader.tick(text.as_bytes()), tick, "{text}");
        }
    }

    #[test]
    fn formats_are_displayed_as_they_are_typed() {
        let shown = |text| {
            TimeFormat::parse("--time-format", text)
                .unwrap()
                .to_string()
        };
        for text in ["auto", "s", "ms", "us", "ns", "rfc3339", "bcd"] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown("%d.%m.%Y %H:%M:%S"), "'%d.%m.%Y %H:%M:%S'");
    }

    #[test]
    fn each_format_reads_its_own_times() {
        for (format, text, seconds) in [
            ("s", "1000000000000", None),
            ("s", "10", Some(10)),
            ("ms", "10000", Some(10)),
            ("us", "10000000", Some(10)),
            ("ns", "10000000000", Some(10)),
            ("rfc3339", "1970-01-01T00:00:10Z", Some(10)),
            ("rfc3339", "1970-01-01T00:00:10", None),
            ("rfc3339", "10", None),
            ("s", "1970-01-01T00:00:10Z", None),
            ("%d.%m.%Y %H:%M:%S", "01.01.1970 00:00:10", Some(10)),
        ] {
            let format = TimeFormat::parse("--time-format", format).unwrap();
            let mut reader = TimeReader::new(format, 1_000_000_000);
            assert_eq!(reader.tick(text.as_bytes()), seconds, "{text}");
        }
    }
}
