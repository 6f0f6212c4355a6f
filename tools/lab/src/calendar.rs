//! Days as dates of the Gregorian calendar.

/// Year, month and day of a number of days since 1970-01-01.
///
/// # Examples
/// ```
/// assert_eq!(echoless_lab::calendar::date(20_089), (2025, 1, 1));
/// ```
#[must_use]
#[inline]
pub const fn date(days: u64) -> (u64, u64, u64) {
    // The calendar repeats after 400 years, or 146097 days. A year here begins in March, so that
    // the leap day is its last. 719468 days lie between March of the year 0 and 1970-01-01.
    let days = days + 719_468;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era + days / 146_097 * 400 + (month <= 2) as u64;
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (19_722, (2023, 12, 31)),
            (20_089 + 59, (2025, 3, 1)),
            (20_089 + 365 * 3 + 59, (2028, 2, 29)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(date(days), expected, "{days}");
        }
    }
}
