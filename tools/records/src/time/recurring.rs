//! Times that recur: dates without a year, and times of day without a date. The order of the
//! records determines the year or the day.
//!
//! ```text
//! text               Dec 30   Jan 02   Dec 31   Jan 02   Jul 01   Feb 01
//! position           364      1        365      1        182      31       days in a leap year
//! further than last  -        -363     +364     0        +181     -151
//! year               0        1        0        1        1        1
//! ```
//!
//! A position that falls back by more than half a year begins the next one. A smaller fall is a
//! record that is late. One that is further by more than eleven twelfths of a year is late, too: it
//! is of the year before. The same holds for days and times of day.
//!
//! Only large falls begin a year, so that files in the wrong order are late as they are with any
//! other format. Only the last twelfth belongs to the year before, so that a clock which was set,
//! or a log with long gaps, goes on instead of being late for months.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

const DAY: i64 = 86_400 * 1_000_000_000;

/// The positions of February 29 and of March 1 in a leap year.
const LEAP_DAY: i64 = 59 * DAY;
const MARCH: i64 = 60 * DAY;

/// What a format leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Period {
    /// The year of a date.
    Year,
    /// The date of a time of day.
    Day,
}

impl Period {
    /// Its length in nanoseconds, and the number of different positions: a year has February 29.
    const fn length(self) -> i64 {
        match self {
            Self::Year => 366 * DAY,
            Self::Day => DAY,
        }
    }
}

/// The position in a year with February 29 of a time of day, in nanoseconds of the day; `None` if
/// no year has this date.
pub(super) fn position_in_year(month: i8, day: i8, of_day: i64) -> Option<i64> {
    const LEAP_YEAR: i16 = 2000;
    let date = Date::new(LEAP_YEAR, month, day).ok()?;
    Some(i64::from(date.day_of_year() - 1) * DAY + of_day)
}

/// Why a position has no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unplaced {
    /// February 29, in this year.
    NoLeapDay(i16),
    /// The time is not one that is represented.
    TooFar,
}

/// A year or a day of the stream.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Cycle {
    /// Its number, 0 for that of the first record.
    number: i64,
    /// Its start in nanoseconds since 1970, or, if the first year or day is unknown, since the
    /// start of that one; of a year, it may be beyond what 64 bits hold.
    start: i128,
    /// Whether the year has February 29. `None` while that is unknown: a year of which it was not
    /// read before a later date has none.
    has_leap_day: Option<bool>,
}

/// Determines the year or the day of each record, in the order of the stream.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Unroller {
    period: Period,
    /// The year of the first record, if it is known.
    first_year: Option<i16>,
    /// The cycle of the latest time, and the one before.
    now: Cycle,
    before: Cycle,
    /// The position of the latest time; `None` before the first.
    latest: Option<i64>,
}

impl Unroller {
    /// The start of a stream. `first_year` is the year of the first record, 1678 to 2261, if it is
    /// known.
    pub fn new(period: Period, first_year: Option<i16>) -> Self {
        let now = Cycle {
            number: 0,
            start: first_year.and_then(start_of_year).unwrap_or(0),
            has_leap_day: first_year.and_then(has_leap_day),
        };
        let before = Cycle {
            number: -1,
            start: now.start,
            has_leap_day: first_year.and_then(|year| has_leap_day(year - 1)),
        };
        let mut unroller = Self {
            period,
            first_year,
            now,
            before,
            latest: None,
        };
        unroller.before.start -= i128::from(unroller.length(&before));
        unroller
    }

    /// The time of the next record, which is at this position in its year or day: nanoseconds since
    /// 1970, or, if the first year or day is unknown, since the start of that one.
    ///
    /// # Errors
    /// [`Unplaced`] if there is no such time. The record then has no effect on those that follow.
    pub fn place(&mut self, position: i64) -> Result<i64, Unplaced> {
        let length = self.period.length();
        let latest = self.latest.unwrap_or(position);
        let further = position - latest;
        if further > length - length / 12 {
            let mut before = self.before;
            let time = self.time(&mut before, position)?;
            self.before = before;
            return Ok(time);
        }
        let begins = further < -(length / 2);
        let mut now = if begins { self.following() } else { self.now };
        let time = self.time(&mut now, position)?;
        if begins {
            self.before = self.now;
        }
        self.now = now;
        self.latest = Some(if begins {
            position
        } else {
            latest.max(position)
        });
        Ok(time)
    }

    /// The cycle after the current one.
    fn following(&self) -> Cycle {
        let number = self.now.number + 1;
        Cycle {
            number,
            start: self.now.start + i128::from(self.length(&self.now)),
            has_leap_day: self.year(number).and_then(has_leap_day),
        }
    }

    /// The year of a cycle, if it is known.
    fn year(&self, number: i64) -> Option<i16> {
        i16::try_from(i64::from(self.first_year?) + number).ok()
    }

    fn length(&self, cycle: &Cycle) -> i64 {
        match (self.period, cycle.has_leap_day) {
            (Period::Year, None | Some(false)) => self.period.length() - DAY,
            (Period::Year, Some(true)) | (Period::Day, _) => self.period.length(),
        }
    }

    /// The time at a position of a cycle.
    fn time(&self, cycle: &mut Cycle, position: i64) -> Result<i64, Unplaced> {
        let since_start = match self.period {
            Period::Day => position,
            Period::Year => match position {
                ..LEAP_DAY => position,
                LEAP_DAY..MARCH => match (cycle.has_leap_day, self.year(cycle.number)) {
                    (Some(false), Some(year)) => return Err(Unplaced::NoLeapDay(year)),
                    // March was read first, as if it followed February 28: the end of that day.
                    (Some(false), None) => LEAP_DAY - 1,
                    (None | Some(true), _) => {
                        cycle.has_leap_day = Some(true);
                        position
                    }
                },
                MARCH.. => match *cycle.has_leap_day.get_or_insert(false) {
                    true => position,
                    false => position - DAY,
                },
            },
        };
        let time = cycle.start + i128::from(since_start);
        i64::try_from(time).map_err(|_| Unplaced::TooFar)
    }
}

/// The start of a year in nanoseconds since 1970.
fn start_of_year(year: i16) -> Option<i128> {
    let date = Date::new(year, 1, 1).ok()?;
    let start = TimeZone::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()?;
    Some(start.as_nanosecond())
}

fn has_leap_day(year: i16) -> Option<bool> {
    Some(Date::new(year, 1, 1).ok()?.in_leap_year())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::civil::DateTime;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn date_time(time: i64) -> DateTime {
        let time = Timestamp::from_nanosecond(time.into()).unwrap();
        time.to_zoned(TimeZone::UTC).datetime()
    }

    /// The position of a time in its year or day.
    fn position(period: Period, time: i64) -> i64 {
        let of_day = time.rem_euclid(DAY);
        match period {
            Period::Day => of_day,
            Period::Year => {
                let date = date_time(time).date();
                position_in_year(date.month(), date.day(), of_day).unwrap()
            }
        }
    }

    fn at(year: i16, month: i8, day: i8, hour: i8) -> i64 {
        let date = Date::new(year, month, day).unwrap().at(hour, 0, 0, 0);
        let time = TimeZone::UTC.to_timestamp(date).unwrap();
        time.as_nanosecond().try_into().unwrap()
    }

    /// Times in the order of a stream: each is further than the latest by less than half a year or
    /// day, or late by less than a twelfth of it.
    fn times(period: Period) -> impl Strategy<Value = Vec<i64>> {
        // Years differ by a day in length.
        let margin = match period {
            Period::Year => 2 * DAY,
            Period::Day => 0,
        };
        let half = period.length() / 2 - margin;
        let twelfth = period.length() / 12 - margin;
        let step = prop_oneof![
            3 => 0..DAY / 3,
            3 => 0..half,
            1 => half - DAY / 24..half,
            3 => 1 - twelfth..0,
            1 => 1 - twelfth..DAY / 24 - twelfth,
        ];
        let first = at(1999, 11, 1, 0)..at(2003, 3, 2, 0);
        (first, vec(step, 0..60)).prop_map(|(first, steps)| {
            let mut latest = first;
            let next = |step: i64| {
                let time = latest + step;
                latest = latest.max(time);
                time
            };
            std::iter::once(first)
                .chain(steps.into_iter().map(next).collect::<Vec<_>>())
                .collect()
        })
    }

    proptest! {
        #[test]
        fn the_year_is_that_of_the_times(times in times(Period::Year)) {
            let mut unroller = Unroller::new(Period::Year, Some(date_time(times[0]).year()));
            for time in times {
                prop_assert_eq!(unroller.place(position(Period::Year, time)), Ok(time));
            }
        }

        #[test]
        fn the_day_is_that_of_the_times(times in times(Period::Day)) {
            let mut unroller = Unroller::new(Period::Day, None);
            let midnight = times[0].div_euclid(DAY) * DAY;
            for time in times {
                let placed = unroller.place(position(Period::Day, time));
                prop_assert_eq!(placed, Ok(time - midnight));
            }
        }

        /// Without the year of the first record, spans between times are the same, unless one
        /// contains the February 29 of which no record is read.
        #[test]
        fn spans_do_not_need_the_first_year(times in times(Period::Year)) {
            // Every leap year of which a record follows has one of February 29 before.
            let mut stream: Vec<i64> = Vec::new();
            let mut latest = times[0];
            for time in times {
                for year in [2000, 2004, 2008, 2012, 2016, 2020] {
                    let leap_day = at(year, 2, 29, 12);
                    if latest < leap_day && leap_day < time {
                        stream.push(leap_day);
                    }
                }
                latest = latest.max(time);
                stream.push(time);
            }
            let year = date_time(stream[0]).year();
            prop_assume!(stream[0] < at(year, 2, 28, 0) || !has_leap_day(year).unwrap());
            let start = i64::try_from(start_of_year(year).unwrap()).unwrap();
            let mut unroller = Unroller::new(Period::Year, None);
            for time in stream {
                let placed = unroller.place(position(Period::Year, time)).unwrap();
                // A date of the year before the first needs no February 29.
                prop_assert_eq!(placed, time - start);
            }
        }

        #[test]
        fn any_positions_have_a_time_or_none(
            positions in vec(0..366 * DAY, 0..200),
            year in prop::option::of(1678_i16..=2261),
        ) {
            let mut unroller = Unroller::new(Period::Year, year);
            for position in positions {
                let placed = unroller.place(position);
                if let (Ok(time), Some(_)) = (placed, year) {
                    prop_assert_eq!(super::tests::position(Period::Year, time), position);
                }
            }
        }
    }

    #[test]
    fn new_year_and_the_disorder_around_it() {
        let mut unroller = Unroller::new(Period::Year, Some(2023));
        for time in [
            at(2023, 12, 31, 23),
            at(2024, 1, 1, 0),
            at(2023, 12, 31, 23),
            at(2024, 1, 1, 1),
            // A device whose clock is set, and set back.
            at(2024, 11, 20, 8),
            at(2025, 1, 1, 0),
            at(2025, 8, 12, 9),
            at(2025, 7, 12, 9),
        ] {
            let placed = unroller.place(position(Period::Year, time));
            assert_eq!(placed, Ok(time), "{}", date_time(time));
        }
        let mut unroller = Unroller::new(Period::Day, None);
        for (hours, expected) in [(23, 23), (0, 24), (23, 23), (21, 45), (0, 48), (9, 57)] {
            let placed = unroller.place(hours * DAY / 24);
            assert_eq!(placed, Ok(expected * DAY / 24), "{hours}");
        }
    }

    #[test]
    fn february_29_needs_a_leap_year() {
        let leap_day = |unroller: &mut Unroller| unroller.place(LEAP_DAY + 7);
        let mut known = Unroller::new(Period::Year, Some(2022));
        assert_eq!(leap_day(&mut known), Err(Unplaced::NoLeapDay(2022)));
        assert_eq!(known.place(360 * DAY), Ok(at(2022, 12, 26, 0)));
        assert_eq!(leap_day(&mut known), Err(Unplaced::NoLeapDay(2023)));
        // A record without a time does not begin the year.
        assert_eq!(known.place(361 * DAY), Ok(at(2022, 12, 27, 0)));
        let mut known = Unroller::new(Period::Year, Some(2024));
        assert_eq!(leap_day(&mut known), Ok(at(2024, 2, 29, 0) + 7));
        // Of an unknown year, the records tell.
        let mut unknown = Unroller::new(Period::Year, None);
        assert_eq!(unknown.place(LEAP_DAY - 1), Ok(LEAP_DAY - 1));
        assert_eq!(unknown.place(MARCH), Ok(LEAP_DAY));
        assert_eq!(leap_day(&mut unknown), Ok(LEAP_DAY - 1));
        let mut unknown = Unroller::new(Period::Year, None);
        assert_eq!(leap_day(&mut unknown), Ok(LEAP_DAY + 7));
        assert_eq!(unknown.place(MARCH), Ok(MARCH));
    }

    #[test]
    fn times_beyond_those_that_are_represented_are_none() {
        let mut unroller = Unroller::new(Period::Year, Some(2261));
        assert!(unroller.place(364 * DAY).is_ok());
        assert_eq!(unroller.place(0), Ok(at(2262, 1, 1, 0)));
        assert_eq!(unroller.place(200 * DAY), Err(Unplaced::TooFar));
        let mut unroller = Unroller::new(Period::Day, None);
        let days = (0..).map(|number| unroller.place(number % 2 * (DAY - 1) * 3 / 4));
        let days: Vec<_> = days.take_while(Result::is_ok).collect();
        assert_eq!(days.len() as i64, 2 * (i64::MAX / DAY) + 2);
    }
}
