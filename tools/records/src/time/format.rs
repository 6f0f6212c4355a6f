//! `--time-format`: how the time of a record is written.

use std::fmt;

use echoless::SpecError;

use super::bcd;
use super::calendar::{Rfc3339, Strftime};
use super::decimal::{self, Unit};
use super::recurring::Period;

/// How times are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimeFormat {
    /// A number, whose unit follows from its magnitude, or a calendar time.
    Auto,
    /// A number of units since 1970.
    Number(Unit),
    /// RFC 3339 with an offset.
    Rfc3339,
    /// The time stamp of 3GPP TS 32.298.
    Bcd,
    /// A format of strftime.
    Strftime(Strftime),
}

impl TimeFormat {
    /// Parses the option `field`.
    ///
    /// # Errors
    /// [`SpecError`] if the text is no format of times.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, SpecError> {
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

    /// What the format leaves out of a time: then it is read as a position in the period.
    pub const fn period(&self) -> Option<Period> {
        match self {
            Self::Strftime(format) => format.period(),
            Self::Auto | Self::Number(_) | Self::Rfc3339 | Self::Bcd => None,
        }
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

/// Reads times, in ticks of a fixed length since 1970, or positions in a
/// [period](TimeFormat::period).
///
/// It remembers the last text: the times of adjacent records are often equal.
#[derive(Debug, Clone)]
pub struct TimeReader {
    format: TimeFormat,
    /// The length of a tick in nanoseconds.
    resolution: i64,
    rfc3339: Rfc3339,
    last: Option<(Vec<u8>, i64)>,
}

impl TimeReader {
    /// A reader of times in ticks of `resolution` nanoseconds, at least 1.
    pub fn new(format: TimeFormat, resolution: i64) -> Self {
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

    /// Whether a text without a tick is a time nevertheless, outside of the years 1678 to 2261.
    #[cold]
    pub(crate) fn is_out_of_range(&self, text: &[u8]) -> bool {
        let text = text.trim_ascii();
        match &self.format {
            // It has two digits of the year.
            TimeFormat::Bcd => false,
            TimeFormat::Auto => decimal::is_number(text) || self.rfc3339.accepts(text),
            TimeFormat::Number(_) => decimal::is_number(text),
            TimeFormat::Rfc3339 => self.rfc3339.accepts(text),
            TimeFormat::Strftime(format) => format.accepts(text),
        }
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
    fn times_of_other_years_are_told_from_no_times() {
        for (format, text, out_of_range) in [
            ("auto", "20000000000", true),
            ("auto", " -99999999999999999999.5", true),
            ("auto", "1.", false),
            ("auto", "1.x", false),
            ("auto", "", false),
            ("auto", "1500-01-01T00:00:00Z", true),
            ("auto", "2500-01-01", true),
            ("auto", "2025-02-30", false),
            ("s", "9300000000", true),
            ("s", "2500-01-01", false),
            ("rfc3339", "2500-01-01T00:00:00.1234567891Z", true),
            ("rfc3339", "2500-01-01T00:00:00", false),
            ("%d.%m.%Y", "01.01.2262", false),
            ("%d.%m.%Y", "01.01.2263", true),
            ("%d.%m.%Y", "32.01.2263", false),
            ("%s", "9300000000", true),
            ("bcd", "9300000000", false),
        ] {
            let format = TimeFormat::parse("--time-format", format).unwrap();
            let mut reader = TimeReader::new(format, 1);
            let tick = reader.tick(text.as_bytes());
            let found = tick.is_none() && reader.is_out_of_range(text.as_bytes());
            assert_eq!(found, out_of_range, "{text}");
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
