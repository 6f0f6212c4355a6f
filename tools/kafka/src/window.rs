//! Windows over the records of a partition: what moves their clock, and the ticks of records.

use std::time::Duration;

use echoless::SpecError;
use echoless_stream::{MaxAdvance, Span, Unit};

/// What moves the clock of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockSource {
    /// The latest time of the records in Kafka.
    Times,
    /// The offset of the record.
    Offsets,
}

/// A window of the records of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) clock: ClockSource,
    /// The length of a tick, in milliseconds or offsets.
    pub(crate) resolution: u64,
    /// The window in ticks, rounded up.
    pub(crate) ticks: u64,
    /// How far ahead of the clock a time may be, in ticks.
    pub(crate) max_advance: Option<MaxAdvance>,
}

impl Window {
    /// Parses `24h` or `5M`, the value of `--window`.
    pub(crate) fn parse(text: &str) -> Result<Self, SpecError> {
        let span = Span::parse(text, Unit::MILLISECOND);
        // Offsets are signed.
        let span = span.filter(|span| span.units() <= i64::MAX as u64);
        let span = span.ok_or_else(|| {
            let allowed = "a time such as 500ms, 90s, 10m, 36h or 30d, or a number of records, 1 \
                           or more, such as 1000, 10k or 5M";
            SpecError::new("--window", text, allowed)
        })?;
        let window = echoless_stream::Window::new(span.units(), 0, 0);
        Ok(Self {
            clock: match span {
                Span::Time(_) => ClockSource::Times,
                Span::Records(_) => ClockSource::Offsets,
            },
            resolution: window.resolution,
            ticks: window.ticks,
            max_advance: None,
        })
    }

    /// The same with the value of `--max-advance`. `now` is the time of the system. Fails if it is
    /// no time, or the window is none of time.
    pub(crate) fn with_max_advance(self, text: &str, now: i64) -> Result<Self, SpecError> {
        if self.clock == ClockSource::Offsets {
            let allowed = "a window of time beside it, such as --window 24h";
            return Err(SpecError::new("--max-advance", text, allowed));
        }
        let most = parse_time("--max-advance", text)?.as_millis() as u64;
        let max_advance = MaxAdvance {
            most: most.div_ceil(self.resolution),
            now: self.tick(0, Some(now)),
        };
        Ok(Self {
            max_advance: Some(max_advance),
            ..self
        })
    }

    /// The time of a record in ticks since 1970 or the first offset; `None` if it has none.
    pub(crate) fn tick(self, offset: i64, time: Option<i64>) -> Option<i64> {
        let position = match self.clock {
            ClockSource::Times => time?,
            ClockSource::Offsets => offset,
        };
        let position = u64::try_from(position).ok()?;
        Some((position / self.resolution) as i64)
    }
}

/// Parses a length of time, at least 1 ms. Errors name the option `field`.
pub(crate) fn parse_time(field: &'static str, text: &str) -> Result<Duration, SpecError> {
    let time = echoless_stream::parse_time(text, Unit::MILLISECOND).filter(|length| *length > 0);
    let time = time.map(Duration::from_millis);
    time.ok_or_else(|| SpecError::new(field, text, "a time such as 100ms, 2s or 1m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_times_or_numbers_of_records() {
        for (text, clock, resolution, ticks) in [
            ("10m", ClockSource::Times, 200, 3000),
            ("1.5s", ClockSource::Times, 1, 1500),
            ("10k", ClockSource::Offsets, 5, 2000),
        ] {
            let window = Window {
                clock,
                resolution,
                ticks,
                max_advance: None,
            };
            assert_eq!(Window::parse(text), Ok(window), "{text}");
        }
        for text in ["", "0", "0s", "1us", "9223372036854775808"] {
            let error = Window::parse(text).unwrap_err();
            assert_eq!(error.field, "--window", "{error}");
        }
        assert_eq!(parse_time("--interval", "2s"), Ok(Duration::from_secs(2)));
        assert!(parse_time("--interval", "10").is_err());
    }

    #[test]
    fn times_before_1970_are_none() {
        let times = Window::parse("24h").unwrap();
        assert_eq!(times.tick(7, Some(86_400_000)), Some(4320));
        assert_eq!(times.tick(7, Some(-1)), None);
        assert_eq!(times.tick(7, None), None);
        let offsets = Window::parse("10k").unwrap();
        assert_eq!(offsets.tick(10_000, None), Some(2000));
    }
}
