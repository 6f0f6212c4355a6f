//! Calendar times: RFC 3339 and strftime formats.
//!
//! The calendar is that of `jiff`: it parses RFC 3339 and strftime formats from bytes, rejects
//! dates that do not exist, and needs no time zone database for offsets. `chrono` parses from `str`
//! and `time` has a format language of its own.

use echoless::SpecError;
use jiff::Timestamp;
use jiff::fmt::strtime::{self, BrokenDownTime};
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;

use super::directives;
use super::recurring::{Period, position_in_year};

static PARSER: DateTimeParser = DateTimeParser::new();

/// The length of `2025-01-01T12:34:`.
const MINUTE: usize = 17;

const SECOND: i64 = 1_000_000_000;

/// Parses RFC 3339, and remembers the last minute: most records of a stream are in the minute of
/// the record before, and then only seconds and fraction are parsed.
#[derive(Debug, Clone)]
pub(crate) struct Rfc3339 {
    /// The text of the last minute, the offset that followed its seconds, and its start in
    /// nanoseconds since 1970.
    last: Option<([u8; MINUTE], Vec<u8>, i64)>,
    /// Whether a time without an offset is UTC instead of an error.
    offset_is_optional: bool,
}

impl Rfc3339 {
    /// A parser that takes a time without an offset for UTC, if the offset is optional.
    pub(crate) fn new(offset_is_optional: bool) -> Self {
        Self {
            last: None,
            offset_is_optional,
        }
    }

    /// Nanoseconds since 1970; `None` if the text is no such time, or outside of the years 1678 to
    /// 2261.
    #[inline]
    pub(crate) fn parse(&mut self, text: &[u8]) -> Option<i64> {
        let parts = text
            .split_first_chunk::<MINUTE>()
            .and_then(|(minute, rest)| {
                seconds(rest).map(|(within, offset)| (minute, within, offset))
            });
        if let (Some((minute, within, offset)), Some(last)) = (parts, &self.last)
            && *minute == last.0
            && offset == last.1
        {
            return last.2.checked_add(within);
        }
        let time = nanoseconds(self.parse_whole(text)?)?;
        if let Some((minute, within, offset)) = parts {
            let start = time.checked_sub(within)?;
            self.last = Some((*minute, offset.to_vec(), start));
        }
        Some(time)
    }

    /// Whether the text is such a time, of any year.
    pub(super) fn accepts(&self, text: &[u8]) -> bool {
        self.parse_whole(text).is_some()
    }

    fn parse_whole(&self, text: &[u8]) -> Option<Timestamp> {
        self.parse_exact(text)
            .or_else(|| self.parse_exact(&to_nanoseconds(text)?))
    }

    /// Parses a fraction of at most nine digits.
    fn parse_exact(&self, text: &[u8]) -> Option<Timestamp> {
        if let Ok(time) = PARSER.parse_timestamp(text) {
            return Some(time);
        }
        // A time of day with an offset that the parser rejects must not be taken for UTC.
        let has_offset = text.iter().skip(10).any(|byte| b"+-Zz[".contains(byte));
        if !self.offset_is_optional || has_offset {
            return None;
        }
        let local = PARSER.parse_datetime(text).ok()?;
        TimeZone::UTC.to_timestamp(local).ok()
    }
}

/// The text without the digits of its fraction below a nanosecond, which the calendar rejects;
/// `None` if it has none.
#[cold]
fn to_nanoseconds(text: &[u8]) -> Option<Vec<u8>> {
    let fraction = text.iter().position(|byte| *byte == b'.')? + 1;
    let digits = text[fraction..].iter();
    let end = fraction + digits.take_while(|byte| byte.is_ascii_digit()).count();
    let kept = fraction + 9;
    (end > kept).then(|| [&text[..kept], &text[end..]].concat())
}

/// Splits `SS`, `SS.FRACTION` and what follows, the offset, into nanoseconds and offset. `None` for
/// a leap second and more than nine digits, which the calendar handles.
#[inline]
fn seconds(rest: &[u8]) -> Option<(i64, &[u8])> {
    let [tens @ b'0'..=b'5', ones @ b'0'..=b'9', rest @ ..] = rest else {
        return None;
    };
    let whole = i64::from(tens - b'0') * 10 + i64::from(ones - b'0');
    let [b'.', rest @ ..] = rest else {
        return Some((whole * SECOND, rest));
    };
    let mut scale = SECOND;
    let mut fraction = 0;
    let mut at = 0;
    while let Some(digit @ b'0'..=b'9') = rest.get(at) {
        scale /= 10;
        if scale == 0 {
            return None;
        }
        fraction += i64::from(digit - b'0') * scale;
        at += 1;
    }
    (at > 0).then(|| (whole * SECOND + fraction, &rest[at..]))
}

/// A strftime format that gives a date and a time, a date without its year, or a time of day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strftime {
    text: String,
    /// What it leaves out.
    period: Option<Period>,
}

impl Strftime {
    /// Checks the format by formatting a time and parsing the result. Fails if the format is
    /// invalid, or leaves out more than the year or the date. Errors name the option `field`.
    pub(crate) fn new(field: &'static str, text: &str) -> Result<Self, SpecError> {
        let invalid = |reason: String| {
            let allowed = format!(
                "auto, s, ms, us, ns, rfc3339, bcd, or a strftime format with date and time such as \
                 %Y-%m-%d %H:%M:%S ({reason})"
            );
            SpecError::new(field, text, allowed)
        };
        if !text.contains('%') {
            return Err(invalid("there is no %".into()));
        }
        directives::check(text).map_err(invalid)?;
        // A time in which no two fields are equal.
        let sample = Timestamp::constant(1_016_343_909, 0).to_zoned(TimeZone::UTC);
        let formatted =
            strtime::format(text, &sample).map_err(|error| invalid(error.to_string()))?;
        let broken_down =
            strtime::parse(text, &formatted).map_err(|error| invalid(error.to_string()))?;
        let whole =
            (broken_down.to_timestamp().map(drop)).or_else(|_| broken_down.to_datetime().map(drop));
        let period = match whole {
            Ok(()) => None,
            Err(error) => {
                let period = period_of(&broken_down, text);
                let period = period.filter(|period| position(&broken_down, *period).is_some());
                Some(period.ok_or_else(|| invalid(error.to_string()))?)
            }
        };
        if period.is_some() && broken_down.offset().is_some() {
            let reason = "an offset such as %z needs a date with its year beside it";
            return Err(invalid(reason.into()));
        }
        Ok(Self {
            text: text.into(),
            period,
        })
    }

    /// The format as it was typed.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// What the format leaves out: the year, or the date.
    pub(super) const fn period(&self) -> Option<Period> {
        self.period
    }

    /// Whether the text has this format, in any year.
    pub(super) fn accepts(&self, text: &[u8]) -> bool {
        strtime::parse(&self.text, text)
            .is_ok_and(|time| time.timestamp().is_some() || time.to_datetime().is_ok())
    }

    /// Nanoseconds since 1970, or since the start of the [`period`](Self::period), of a year with
    /// February 29; `None` if the text does not have this format, or is outside of the years 1678
    /// to 2261. A time without an offset is UTC.
    pub(crate) fn parse(&self, text: &[u8]) -> Option<i64> {
        let time = strtime::parse(&self.text, text).ok()?;
        if let Some(period) = self.period {
            return position(&time, period);
        }
        if let Some(seconds) = time.timestamp() {
            // jiff leaves out a fraction beside `%s`. Before 1970, it is that of a negative number,
            // which may be -0.
            let seconds = nanoseconds(seconds)?;
            let fraction = i64::from(time.subsec_nanosecond().unwrap_or(0));
            return if seconds < 0 || seconds == 0 && text.starts_with(b"-") {
                seconds.checked_sub(fraction)
            } else {
                seconds.checked_add(fraction)
            };
        }
        if time.offset().is_some() {
            return nanoseconds(time.to_timestamp().ok()?);
        }
        let local = time.to_datetime().ok()?;
        nanoseconds(TimeZone::UTC.to_timestamp(local).ok()?)
    }
}

/// What a format leaves out whose directives read `time`, which is no whole one; `None` if that is
/// more than the year or the date, or less.
fn period_of(time: &BrokenDownTime, format: &str) -> Option<Period> {
    let has_year = time.year().is_some() || time.iso_week_year().is_some();
    let of_date = directives::has(format, b"mbBhdejaAuwUWV");
    if !has_year && time.month().is_some() && time.day().is_some() {
        Some(Period::Year)
    } else if !has_year && !of_date && time.hour().is_some() {
        Some(Period::Day)
    } else {
        None
    }
}

/// The position of a time in its year or day, in nanoseconds. A day of the week is ignored: the
/// order of the records determines the year.
fn position(time: &BrokenDownTime, period: Period) -> Option<i64> {
    let of_day = time.to_time().ok()?;
    let seconds = (i64::from(of_day.hour()) * 60 + i64::from(of_day.minute())) * 60;
    let of_day =
        (seconds + i64::from(of_day.second())) * SECOND + i64::from(of_day.subsec_nanosecond());
    match period {
        Period::Day => Some(of_day),
        Period::Year => position_in_year(time.month()?, time.day()?, of_day),
    }
}

/// The time in RFC 3339, UTC, for messages.
pub fn rfc3339(nanoseconds: i64) -> String {
    // All times that an `i64` holds are in the range of the calendar.
    Timestamp::from_nanosecond(nanoseconds.into()).map_or_else(
        |_| format!("{nanoseconds} ns since 1970"),
        |time| time.to_string(),
    )
}

fn nanoseconds(time: Timestamp) -> Option<i64> {
    time.as_nanosecond().try_into().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2025-01-01T00:00:00Z.
    const NEW_YEAR: i64 = 1_735_689_600 * SECOND;

    fn rfc3339_once(text: &str, offset_is_optional: bool) -> Option<i64> {
        Rfc3339::new(offset_is_optional).parse(text.as_bytes())
    }

    #[test]
    fn rfc3339_times() {
        for (text, seconds, fraction) in [
            ("2025-01-01T00:00:00Z", 0, 0),
            ("2025-01-01 00:00:00z", 0, 0),
            ("2025-01-01T01:00:00+01:00", 0, 0),
            ("2024-12-31T23:30:59.5-00:30", 59, 500_000_000),
            ("2025-01-01T00:00:00.123456789Z", 0, 123_456_789),
            ("2025-01-01T00:00:00.1234567899Z", 0, 123_456_789),
            ("2025-01-01T01:00:00.000000000999+01:00", 0, 0),
            ("2025-01-01T00:01:00Z", 60, 0),
            ("2024-12-31T23:59:60Z", -1, 0),
        ] {
            let expected = NEW_YEAR + seconds * SECOND + fraction;
            assert_eq!(rfc3339_once(text, false), Some(expected), "{text}");
        }
        for text in [
            "",
            "2025",
            "2025-01-01T00:00:00",
            "2025-02-30T00:00:00Z",
            "2025-01-01T24:00:01Z",
            "2025-01-01T00:00:00.Z",
            "2025-01-01T00:00:00+25:99",
            "1500-01-01T00:00:00Z",
            "noon",
        ] {
            assert_eq!(rfc3339_once(text, false), None, "{text}");
        }
        for (text, seconds) in [
            ("2025-01-01T00:00:00", Some(0)),
            ("2025-01-01 00:00:07", Some(7)),
            ("2025-01-01", Some(0)),
            ("2025-01-01T00:00:00+25:99", None),
        ] {
            let expected = seconds.map(|seconds: i64| NEW_YEAR + seconds * SECOND);
            assert_eq!(rfc3339_once(text, true), expected, "{text}");
        }
    }

    #[test]
    fn strftime_times() {
        for (format, text, seconds) in [
            ("%Y%m%d%H%M%S", "20250101000001", 1),
            ("%d/%b/%Y:%H:%M:%S %z", "01/Jan/2025:02:00:03 +0200", 3),
            ("%Y-%m-%d %H:%M", "2025-01-01 00:01", 60),
            ("%s", "1735689604", 4),
            ("%F %T%.f", "2025-01-01 00:00:05", 5),
        ] {
            let format = Strftime::new("--time-format", format).unwrap();
            let expected = Some(NEW_YEAR + seconds * SECOND);
            assert_eq!(format.parse(text.as_bytes()), expected, "{text}");
            assert_eq!(format.parse(b"x"), None);
        }
        // A fraction beside a timestamp counts, in either order.
        for (format, text, nanoseconds) in [
            ("%s.%f", "1735689604.9", NEW_YEAR + 4_900_000_000),
            ("%s%.f", "1735689604.000000001", NEW_YEAR + 4_000_000_001),
            ("%s%.f", "1735689604", NEW_YEAR + 4_000_000_000),
            ("%f %s", "25 1735689604", NEW_YEAR + 4_250_000_000),
            ("%s.%f", "-2.5", -2_500_000_000),
            ("%s.%f", "-0.5", -500_000_000),
        ] {
            let parsed = Strftime::new("--time-format", format).unwrap();
            assert_eq!(parsed.parse(text.as_bytes()), Some(nanoseconds), "{text}");
        }
        for format in ["rfc822", "%b %Y", "%M:%S", "%Y %!", "%"] {
            let error = Strftime::new("--time-format", format).unwrap_err();
            assert_eq!(error.asked, format);
        }
    }

    #[test]
    fn dates_without_a_year_and_times_of_day() {
        const DAY: i64 = 86_400 * SECOND;
        let noon = DAY / 2;
        for (format, period, text, position) in [
            (
                "%b %d %H:%M:%S",
                Period::Year,
                "Jan 12 12:00:00",
                11 * DAY + noon,
            ),
            ("%b %d %H:%M:%S", Period::Year, "Jan 2 12:00:00", DAY + noon),
            (
                "%b %d %H:%M:%S",
                Period::Year,
                "Jan  2 12:00:00",
                DAY + noon,
            ),
            ("%b %e %T", Period::Year, "Feb 29 12:00:00", 59 * DAY + noon),
            ("%e %B", Period::Year, " 1 march", 60 * DAY),
            (
                "%m-%d %H:%M:%S.%f",
                Period::Year,
                "12-31 12:00:00.5",
                365 * DAY + noon + SECOND / 2,
            ),
            ("[%m.%d %T]", Period::Year, "[01.01 00:00:01]", SECOND),
            // Not the day of the week that 2000 has there.
            ("%a %b %d %T", Period::Year, "Mon Jan 01 00:00:01", SECOND),
            ("%H:%M:%S", Period::Day, "12:00:00", noon),
            ("%I:%M %p", Period::Day, "12:00 AM", 0),
            ("%H:%M:%S.%f", Period::Day, "00:00:01.000000001", SECOND + 1),
            ("%H", Period::Day, "12", noon),
        ] {
            let parsed = Strftime::new("--time-format", format).unwrap();
            assert_eq!(parsed.period(), Some(period), "{format}");
            assert_eq!(parsed.parse(text.as_bytes()), Some(position), "{text}");
            for text in ["x", "Feb 30 12:00:00", "02-30 00:00:00.0", "25:00:00"] {
                assert_eq!(parsed.parse(text.as_bytes()), None, "{format} {text}");
                assert!(!parsed.accepts(text.as_bytes()), "{format} {text}");
            }
        }
        let whole = Strftime::new("--time-format", "%F %T").unwrap();
        assert_eq!(whole.period(), None);
    }

    /// Each directive of jiff either says what it means for the time, or is rejected.
    #[test]
    fn no_directive_is_ignored() {
        let day = TimeZone::UTC.to_timestamp(jiff::civil::date(2002, 3, 17).at(0, 0, 0, 0));
        let day = day.unwrap().as_second();
        let afternoon = day + (17 * 60 + 45) * 60 + 9;
        let minute = afternoon - 9;
        for (format, seconds) in [
            ("%Y-%m-%d %%", day),
            ("%F%n%A", day),
            ("%F%t%a", day),
            ("%d %B %Y", day),
            ("%e %b %Y", day),
            ("%d %h %Y", day),
            ("%D", day),
            ("%y%m%d", day),
            ("%Y %j", day),
            ("%G-W%V-%u", day),
            ("%g-W%V-%w", day),
            ("%Y %U %w", day),
            ("%Y %W %u", day),
            ("%F %R", minute),
            ("%F %H:%M:%S", afternoon),
            ("%F %k:%M:%S", afternoon),
            ("%F %I:%M:%S %p", afternoon),
            ("%F %l:%M:%S %P", afternoon),
            ("%F %H:%M:%S %p", afternoon),
            ("%F %T.%f", afternoon),
            ("%F %T%.f", afternoon),
            ("%F %T.%N", afternoon),
            ("%F %T %z", afternoon),
            ("%F %T %:z", afternoon),
            ("%F %T %::z", afternoon),
            ("%F %T %:::z", afternoon),
            ("%s", afternoon),
            ("%F %s", afternoon),
        ] {
            let time = Timestamp::from_second(afternoon).unwrap();
            let text = strtime::format(format, &time.to_zoned(TimeZone::UTC)).unwrap();
            let read = Strftime::new("--time-format", format).unwrap();
            assert_eq!(
                read.parse(text.as_bytes()),
                Some(seconds * SECOND),
                "{format} {text}"
            );
        }
        for (format, reason) in [
            ("%F %T %Q", "%z reads an offset"),
            ("%F %T %:Q", "%z reads an offset"),
            ("%F %T %^Q", "%z reads an offset"),
            ("%F %T %Z", ""),
            ("%C-%m-%d", "%Y reads both"),
            ("%C%y-%m-%d", "%Y reads both"),
            ("%F %I:%M", "need %p"),
            ("%F %_l:%M", "need %p"),
            ("%F %M", ""),
            ("%d %T", ""),
            ("%j %T", ""),
            ("%a %T", ""),
            ("%b %T", ""),
            ("%m-%d %S", ""),
            ("%T %z", "needs a date with its year"),
            ("%b %d %T %z", "needs a date with its year"),
            ("%F %q", ""),
            ("%c", ""),
            ("%x %T", ""),
            ("%F %X", ""),
            ("%F %r", ""),
            ("%Y-%m", ""),
            ("%Y-W%V-%u", ""),
            ("%G-W%V", ""),
            ("%G-%m-%d", ""),
            ("%Y %U", ""),
        ] {
            let error = Strftime::new("--time-format", format).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn times_in_messages() {
        assert_eq!(rfc3339(NEW_YEAR), "2025-01-01T00:00:00Z");
        assert_eq!(rfc3339(NEW_YEAR + SECOND / 2), "2025-01-01T00:00:00.5Z");
        assert!(rfc3339(i64::MIN).starts_with("1677-"));
    }

    proptest! {
        /// The remembered minute changes no result.
        #[test]
        fn the_order_of_times_does_not_matter(
            times in prop::collection::vec((0_i64..300, 0_i64..1_000_000_000, 0..3_usize), 1..50),
        ) {
            let mut parser = Rfc3339::new(false);
            for (second, fraction, offset) in times {
                let time = NEW_YEAR + second * SECOND + fraction;
                let (hours, offset) = [(0, "Z"), (1, "+01:00"), (-2, "-02:00")][offset];
                let local = rfc3339(time + hours * 3600 * SECOND);
                let text = local.replace('Z', offset);
                prop_assert_eq!(parser.parse(text.as_bytes()), Some(time), "{}", text);
            }
        }
    }
}
