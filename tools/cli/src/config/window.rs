//! `--window` and the options that go with it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use echoless::{BuildError, FilterSpec, SpecError};
use echoless_records::fault::{BlankLines, FaultPolicy, Missing};
use echoless_records::field_list::FieldList;
use echoless_records::number::{parse_span, parse_time, parse_whole};
use echoless_records::spec_file::parse_filter;
use echoless_records::time::format::TimeFormat;
use echoless_records::time::recurring::Period;
use echoless_stream::{MaxAdvance, Span, Window};

use crate::args::{DedupArgs, Late};

/// A window and the clock that it is measured with.
#[derive(Debug, Clone)]
pub(crate) struct WindowConfig {
    pub(crate) span: Span,
    /// The length of a tick, in nanoseconds or records.
    pub(crate) resolution: u64,
    /// The window in ticks, rounded up: times that are `span` apart are at most so many ticks
    /// apart.
    pub(crate) ticks: u64,
    pub(crate) clock: ClockSource,
    /// A record this many ticks older than the clock is judged as any other; `late` applies to
    /// older ones.
    pub(crate) late_after: u64,
    pub(crate) late: Late,
    /// Whether a rejected late record is set aside; otherwise it ends the run.
    pub(crate) rejects: bool,
    /// How far ahead of the clock a time may be.
    pub(crate) max_advance: Option<MaxAdvance>,
    /// What happens to a record without a time.
    pub(crate) missing: Missing,
    /// Whether a duplicate renews its key.
    pub(crate) refresh: bool,
}

/// The value of `--max-advance` in ticks.
fn parse_max_advance(
    text: &str,
    resolution: u64,
    clock: &ClockSource,
) -> Result<MaxAdvance, SpecError> {
    let now = match clock {
        // Times count from an unknown year or day.
        ClockSource::Field(time) if time.is_relative() => None,
        _ => SystemTime::now().duration_since(UNIX_EPOCH).ok(),
    };
    let most = parse_time("--max-advance", text)
        .ok()
        .filter(|most| *most > 0);
    let most = most.ok_or_else(|| {
        let allowed = "a time of 1ns or more, such as 90s, 10m, 36h or 30d (at most 106751d)";
        SpecError::new("--max-advance", text, allowed)
    })?;
    let tick = |now: Duration| i64::try_from(now.as_nanos() / u128::from(resolution)).ok();
    Ok(MaxAdvance {
        most: most.div_ceil(resolution),
        now: now.and_then(tick),
    })
}

/// What the clock of a window is.
#[derive(Debug, Clone)]
pub(crate) enum ClockSource {
    /// The number of the record.
    Records,
    /// The largest time in the fields of the records that hold it.
    Field(TimeConfig),
    /// The largest time of a packet.
    Packets,
    /// The number of the key, which the filter counts itself.
    Keys,
}

impl ClockSource {
    /// Whether the clock is a time.
    pub(crate) const fn is_time(&self) -> bool {
        match self {
            Self::Field(_) | Self::Packets => true,
            Self::Records | Self::Keys => false,
        }
    }
}

/// Where records have their times.
#[derive(Debug, Clone)]
pub(crate) struct TimeConfig {
    /// Joined in this order.
    pub(crate) fields: FieldList,
    pub(crate) format: TimeFormat,
    /// The year of the first record, if the format leaves it out and the options name it.
    pub(crate) first_year: Option<i16>,
}

impl TimeConfig {
    /// The times that the options request, in these fields.
    fn new(args: &DedupArgs, fields: FieldList) -> Result<Self, SpecError> {
        let format = args.time_format.as_deref().unwrap_or("auto");
        let format = TimeFormat::parse("--time-format", format)?;
        if fields.count() > 1 && format == TimeFormat::Bcd {
            let typed = args.time_field.as_deref().unwrap_or_default();
            let allowed = "one field beside --time-format bcd";
            return Err(SpecError::new("--time-field", typed, allowed));
        }
        let first_year = match (&args.time_year, format.period()) {
            (None, _) => None,
            // Those years of which every date is represented.
            (Some(year), Some(Period::Year)) => {
                Some(parse_whole("--time-year", year, 1678..=2261)?)
            }
            (Some(year), _) => {
                let allowed = "a --time-format of dates without a year beside it, such as \
                               '%b %d %H:%M:%S'";
                return Err(SpecError::new("--time-year", year, allowed));
            }
        };
        Ok(Self {
            fields,
            format,
            first_year,
        })
    }

    /// Whether the times count from the start of the first year or day, which is unknown.
    pub(crate) fn is_relative(&self) -> bool {
        self.format.period().is_some() && self.first_year.is_none()
    }
}

impl WindowConfig {
    /// The window that the options request, if they request one. `time` are the fields
    /// of `--time-field`.
    pub(crate) fn from_args(
        args: &DedupArgs,
        time: Option<FieldList>,
    ) -> Result<Option<Self>, SpecError> {
        let Some(text) = &args.window else {
            return Ok(None);
        };
        let span = parse_span("--window", text)?;
        let clock = match (time, span) {
            (Some(fields), Span::Time(_)) => ClockSource::Field(TimeConfig::new(args, fields)?),
            (Some(_), Span::Records(_)) => {
                let field = args.time_field.as_deref().unwrap_or_default();
                let allowed = "no field of times, since --window counts records";
                return Err(SpecError::new("--time-field", field, allowed));
            }
            (None, Span::Time(_)) => {
                let allowed = "the field with the time of a record, since --window is a time";
                return Err(SpecError::missing("--time-field", allowed));
            }
            (None, Span::Records(_)) => {
                check_no_times(args)?;
                ClockSource::Records
            }
        };
        let lateness = match &args.lateness {
            Some(text) => parse_time("--lateness", text)?,
            None => 0,
        };
        let window = match args.exact {
            // No filter bounds the ticks.
            true => Window::of_resolution(span.units(), lateness, 0, 1),
            false => Window::new(span.units(), lateness, 0),
        };
        let max_advance = match &args.max_advance {
            Some(text) => Some(parse_max_advance(text, window.resolution, &clock)?),
            None => None,
        };
        Ok(Some(Self {
            span,
            resolution: window.resolution,
            ticks: window.ticks,
            clock,
            late_after: window.late_after,
            late: args.late.unwrap_or_default(),
            rejects: args.rejects.is_some(),
            max_advance,
            missing: args.records.missing.unwrap_or(Missing::Error),
            refresh: args.refresh,
        }))
    }

    /// A window of packets that is as exact as the stamps of a filter allow: 2^20 ticks.
    ///
    /// Ticks of time may be longer, up to a microsecond, the unit of most captures, where some
    /// 50,000 of them or more make up the window: a filter with fewer ticks in a window is swept
    /// less often.
    pub(super) fn of_packets(span: Span, refresh: bool) -> Self {
        /// The longest window, in ticks, that stamps hold with ticks of one unit.
        const MOST_TICKS: u64 = 1 << 20;
        /// The most ticks of a window whose ticks are below a microsecond.
        const ENOUGH_TICKS: u64 = 1 << 17;
        const MICROSECOND: u64 = 1000;
        let shortest = span.resolution_of_at_most(MOST_TICKS);
        let resolution = match span {
            Span::Time(_) => {
                let enough = span.resolution_of_at_most(ENOUGH_TICKS);
                // Both are 1, 2 or 5 times a power of ten, so a microsecond has whole ticks.
                shortest.max(enough.min(MICROSECOND))
            }
            Span::Records(_) => shortest,
        };
        let Window {
            ticks, late_after, ..
        } = Window::of_resolution(span.units(), 0, 0, resolution);
        Self {
            span,
            resolution,
            ticks,
            clock: match span {
                Span::Time(_) => ClockSource::Packets,
                Span::Records(_) => ClockSource::Keys,
            },
            late_after,
            // As the default of records, whose reason is with `treat_late`.
            late: Late::Pass,
            rejects: false,
            max_advance: None,
            missing: Missing::Error,
            refresh,
        }
    }

    /// A window of this span, with or without times, and its late records.
    #[cfg(test)]
    pub(crate) fn for_tests(span: Span, timed: bool, late_after: u64, late: Late) -> Self {
        let time = || TimeConfig {
            fields: FieldList::parse("1", false).unwrap(),
            format: TimeFormat::Auto,
            first_year: None,
        };
        Self {
            span,
            resolution: span.resolution(),
            ticks: span.units().div_ceil(span.resolution()),
            clock: if timed {
                ClockSource::Field(time())
            } else {
                ClockSource::Records
            },
            late_after,
            late,
            rejects: false,
            max_advance: None,
            missing: Missing::Error,
            refresh: false,
        }
    }

    /// What happens to a record whose time turns out not to exist.
    pub(crate) fn faults(&self) -> FaultPolicy {
        FaultPolicy {
            missing: self.missing,
            blank_lines: BlankLines::Keep,
            rejects: self.rejects,
        }
    }

    /// The filter of a specification, [`completed`](Self::completed).
    pub(super) fn named_filter(
        &self,
        text: &str,
        memory: Option<u64>,
    ) -> Result<FilterSpec, SpecError> {
        let completed = self.completed(text);
        parse_filter(&completed, memory).map_err(|error| {
            // An option of the window that was not typed, and that the filter does not have.
            let added = ["window", "refresh"].contains(&&*error.asked);
            match error.field == "option" && added && !text.contains(&error.asked) {
                true => without_window(text),
                false => error,
            }
        })
    }

    /// A specification in text, with the window and the refresh of the options unless it has its
    /// own.
    pub(super) fn completed(&self, text: &str) -> String {
        // The options are those of the filter, the last part after any adapters.
        let filter = text.rfind('/').map_or(0, |slash| slash + 1);
        let (adapters, filter) = text.split_at(filter);
        let (name, options) = filter.split_once(':').unwrap_or((filter, ""));
        let has = |key: &str| {
            options.split(',').any(|option| {
                option
                    .split('=')
                    .next()
                    .is_some_and(|name| name.trim() == key)
            })
        };
        let mut options = options.to_owned();
        for (key, value) in [
            ("window", self.ticks.to_string()),
            ("refresh", self.refresh.to_string()),
        ] {
            if !has(key) {
                let comma = if options.is_empty() { "" } else { "," };
                options += &format!("{comma}{key}={value}");
            }
        }
        format!("{adapters}{name}:{options}")
    }

    /// A number of nanoseconds or records, in seconds or records.
    pub(crate) fn in_units(&self, units: u64) -> f64 {
        match self.span {
            Span::Time(_) => seconds(units.into()),
            Span::Records(_) => units as f64,
        }
    }

    /// The start of a tick of a time, in seconds since 1970.
    pub(crate) fn seconds_of(&self, tick: i64) -> f64 {
        seconds(i128::from(tick) * i128::from(self.resolution))
    }

    /// The time or the records by which a key may be remembered longer than the window: a key is
    /// forgotten once its age is window and granule.
    pub(crate) fn granule(&self, filter: &FilterSpec) -> u64 {
        filter.facts().window.map_or(0, |window| {
            let forgotten = window.ticks.saturating_add(window.granule);
            forgotten
                .saturating_mul(self.resolution)
                .saturating_sub(self.span.units())
        })
    }
}

/// Nanoseconds in seconds: the number whose shortest text has no other digits than they have.
fn seconds(nanoseconds: i128) -> f64 {
    const SECOND: u128 = 1_000_000_000;
    let magnitude = nanoseconds.unsigned_abs();
    let text = format!("{}.{:09}", magnitude / SECOND, magnitude % SECOND);
    // Parsing rounds once. The nanoseconds of this century are rounded before a division, too.
    let seconds: f64 = text
        .parse()
        .unwrap_or_else(|error| unreachable!("a decimal number: {error}"));
    if nanoseconds < 0 { -seconds } else { seconds }
}

/// Checks that the window of the options and that of the filter are the same.
pub(crate) fn check_filter(
    window: Option<&WindowConfig>,
    args: &DedupArgs,
    filter: &FilterSpec,
) -> Result<(), SpecError> {
    match (window, filter.facts().window) {
        (None, None) => Ok(()),
        (None, Some(_)) => {
            let allowed = format!("the time or the records of the window of {}", filter.name());
            Err(SpecError::missing("--window", allowed))
        }
        (Some(_), None) => {
            // A filter whose parameters are invalid has no window: building it names them.
            if let Err(BuildError::Spec(error)) = filter.build() {
                return Err(error);
            }
            Err(without_window(args.filter.as_deref().unwrap_or_default()))
        }
        (Some(window), Some(own)) if own.ticks != window.ticks => {
            let asked = format!("window={}", own.ticks);
            let allowed = format!(
                "window={}, the ticks of --window {}, or no window",
                window.ticks,
                args.window.as_deref().unwrap_or_default()
            );
            Err(SpecError::new("--filter", asked, allowed))
        }
        // The specification may be given in full, so it decides, and not the option.
        (Some(_), Some(_)) if args.refresh && !filter.facts().renews_keys => {
            let allowed = "no --refresh, since duplicates do not renew their keys in this filter";
            Err(SpecError::new("--filter", filter.to_string(), allowed))
        }
        (Some(_), Some(_)) => Ok(()),
    }
}

/// Rejects the options that only a window of time has.
fn check_no_times(args: &DedupArgs) -> Result<(), SpecError> {
    let late = args.late.and_then(|late| late.to_possible_value());
    let options = [
        ("--time-format", args.time_format.clone()),
        ("--time-year", args.time_year.clone()),
        ("--lateness", args.lateness.clone()),
        ("--late", late.map(|late| late.get_name().to_owned())),
        ("--max-advance", args.max_advance.clone()),
    ];
    let given = options
        .into_iter()
        .find_map(|(option, value)| Some((option, value?)));
    let allowed = "a window of time beside it, such as --window 10m --time-field FIELD";
    given.map_or(Ok(()), |(option, value)| {
        Err(SpecError::new(option, value, allowed))
    })
}

/// The error for a filter without a window beside `--window`.
fn without_window(filter: &str) -> SpecError {
    let allowed = "a filter with a window in ticks (clocked, stamped, tbf, gbf, apbf) beside \
                   --window; dense lines with one are --dense without --filter, or \
                   clocked:dense=true";
    SpecError::new("--filter", filter, allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_the_digits_of_their_nanoseconds() {
        for (nanoseconds, text) in [
            (0, "0"),
            (1, "0.000000001"),
            (-1_500_000_000, "-1.5"),
            (1_700_000_000_120_000_000, "1700000000.12"),
            (1_762_000_000_123_400_000, "1762000000.1234"),
            (-1_700_000_000_120_000_000, "-1700000000.12"),
        ] {
            assert_eq!(seconds(nanoseconds).to_string(), text);
        }
        for tenths in 0..100_000 {
            let seconds = seconds(1_700_000_000_000_000_000 + tenths * 100_000_000);
            let expected = format!("{}.{}", 1_700_000_000 + tenths / 10, tenths % 10);
            assert_eq!(format!("{seconds:?}"), expected);
        }
    }

    #[test]
    fn windows_of_packets_are_exact_to_a_microsecond_up_to_a_second() {
        for (nanoseconds, resolution) in [
            (1, 1),
            (500_000, 5),
            (10_500_000, 100),
            (100_000_000, 1000),
            (1_000_000_000, 1000),
            (2_000_000_000, 2000),
            (3_600_000_000_000, 5_000_000),
        ] {
            let window = WindowConfig::of_packets(Span::Time(nanoseconds), true);
            assert_eq!(window.resolution, resolution, "{nanoseconds}");
            assert!(window.ticks <= 1 << 20);
        }
        for (packets, resolution) in [(20_000, 1), (1 << 20, 1), (3_000_000, 5)] {
            let window = WindowConfig::of_packets(Span::Records(packets), true);
            assert_eq!(window.resolution, resolution, "{packets}");
        }
    }
}
