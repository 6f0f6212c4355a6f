//! Dates without a year, and times of day: judged as the same times with their year or date.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::run::{Folder, assert_errors, assert_runs, dedup, echoless};
use crate::windows::EXACT;

const DAY: i64 = 86_400;

/// 2022-11-20T20:00:00Z.
const START: i64 = 1_668_974_400;

/// Numbers with equal odds, the same on every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// Times in seconds since 1970 and keys: steps of up to `steps`, a tenth of them of up to `gap`,
/// and a tenth of the records late by up to `late`. A key recurs within the window of an
/// hour or soon after it.
fn stream(seed: u64, records: usize, (steps, gap, late): (u64, u64, u64)) -> Vec<(i64, u64)> {
    let mut draw = Draw(seed);
    let mut clock = START;
    let mut stream = Vec::new();
    for _ in 0..records {
        let late = match draw.below(10) {
            0 => draw.below(late),
            1 => {
                clock += draw.below(gap) as i64;
                0
            }
            _ => {
                clock += draw.below(steps) as i64;
                0
            }
        };
        let time = clock - late as i64;
        stream.push((time, draw.below(7)));
    }
    stream
}

/// Lines of number, time in this format, and key.
fn lines(stream: &[(i64, u64)], format: &str) -> String {
    let line = |(number, (time, key)): (usize, &(i64, u64))| {
        let time = Timestamp::from_second(*time).unwrap();
        let time = time.to_zoned(TimeZone::UTC).strftime(format).to_string();
        format!("{number};{time};{key}\n")
    };
    stream.iter().enumerate().map(line).collect()
}

/// The numbers of the records that pass a window of an hour.
fn passed(input: &str, format: &str, more: &str) -> Vec<String> {
    let time = format!("--time-field 2 --time-format '{format}'");
    let args = format!("dedup -q {EXACT} -d ; -k 3 --window 1h --late pass {time} {more}");
    let output = echoless(args, input).text();
    let number = |line: &str| line.split(';').next().unwrap().to_owned();
    output.lines().map(number).collect()
}

#[test]
fn the_year_follows_from_the_order_on_any_number_of_threads() {
    // Some three years with 2024-02-29, and gaps of up to five months.
    let wide = stream(1, 4000, (1200, 10 * DAY as u64, 3 * DAY as u64));
    let gaps = stream(2, 60, (300, 150 * DAY as u64, 20 * DAY as u64));
    for stream in [wide, gaps] {
        let whole = lines(&stream, "%Y-%m-%d %H:%M:%S");
        let expected = passed(&whole, "%Y-%m-%d %H:%M:%S", "");
        assert!((stream.len() / 10..stream.len()).contains(&expected.len()));
        for format in [
            "%b %d %H:%M:%S",
            "%b %e %T",
            "%m-%d %H:%M:%S.%f",
            "[%d/%b:%T]",
            "%a %B %d %I:%M:%S %p",
        ] {
            let input = lines(&stream, format);
            for more in [
                "--time-year 2022",
                "--time-year 2022 --threads 2 --read-bytes 61",
                "--time-year 2022 --threads 8 --read-bytes 5000",
                "--threads 1 --read-bytes 7",
                "--threads 3",
            ] {
                assert_eq!(passed(&input, format, more), expected, "{format} {more}");
            }
        }
    }
}

#[test]
fn the_day_follows_from_the_order() {
    // Some 50 days; gaps of up to eleven hours, and records late by up to an hour and a half.
    let stream = stream(3, 3000, (600, 11 * 3600, 5400));
    let whole = lines(&stream, "%Y-%m-%d %H:%M:%S");
    let expected = passed(&whole, "%Y-%m-%d %H:%M:%S", "");
    for format in ["%H:%M:%S", "%I.%M.%S %p", "%T.%f"] {
        let input = lines(&stream, format);
        for threads in ["1", "3"] {
            let more = format!("--threads {threads} --read-bytes 999");
            assert_eq!(passed(&input, format, &more), expected, "{format}");
        }
    }
}

#[test]
fn syslog_lines_in_blank_separated_fields() {
    let input = "Dec 31 23:59:58 host cron: x\n\
                 Jan  1 00:00:01 host cron: x\n\
                 Dec 31 23:59:59 host cron: x\n\
                 Jan  1 00:04:58 host cron: x\n\
                 Jan  1 00:05:00 host cron: x\n";
    let lines: Vec<&str> = input.split_inclusive('\n').collect();
    let kept = [lines[0], lines[4]].concat();
    let args = format!("{EXACT} -w -k 4- --window 5m --time-field 1,2,3");
    for day in ["%d", "%e"] {
        for year in ["", "--time-year 1999"] {
            let args = format!("{args} --time-format '%b {day} %H:%M:%S' {year}");
            assert_runs(&[&format!("{args} | {input} | {kept}")]);
        }
    }
}

#[test]
fn the_year_goes_on_from_file_to_file() {
    let folder = Folder::with(&[
        ("old", "Dec 30 10:00:00,a\nDec 31 23:59:00,a\n"),
        ("new", "Jan 01 00:01:00,a\nJan 02 10:00:00,a\n"),
    ]);
    let time = "--time-field 1 --time-format '%b %d %H:%M:%S'";
    let args = format!("{EXACT} {time} -k 2 --window 10m --late reject");
    let kept = "Dec 30 10:00:00,a\nDec 31 23:59:00,a\nJan 02 10:00:00,a\n";
    let late = "the record is later than window and lateness allow";
    folder.assert_runs(&[
        &format!("{args} old new --threads 1 | {kept}"),
        &format!("{args} old new --threads 2 | {kept}"),
        // Known inputs come first in the stream, with the year of the first of their records.
        &format!("{args} --known old --time-year 2024 new | Jan 02 10:00:00,a\n"),
        // The newest file first: the others are late, as with whole dates.
        &format!("{args} new old | Jan 01 00:01:00,a\nJan 02 10:00:00,a\n!! old, line 1: {late}"),
    ]);
}

#[test]
fn february_29_of_another_year_is_a_record_without_a_time() {
    let folder = Folder::with(&[("in", "02-28,a\n02-29,b\n02-29,a\n03-01,a\n03-01,c\n")]);
    let args = format!("{EXACT} --time-field 1 --time-format %m-%d -k 2 --window 1d in");
    let problem = "in, line 2: the time is of the year 2023, which has no February 29 \
                   (--time-year is the year of the first record) (--missing skip or empty allows \
                   that)";
    for (options, expected) in [
        // A leap year, or one that is unknown.
        ("", "02-28,a\n02-29,b\n03-01,a\n03-01,c\n"),
        ("--time-year 2024", "02-28,a\n02-29,b\n03-01,a\n03-01,c\n"),
        ("--time-year 2000", "02-28,a\n02-29,b\n03-01,a\n03-01,c\n"),
        ("--time-year 2023", &format!("02-28,a\n!! {problem}")),
        // From February 28 to March 1 is a day.
        (
            "--time-year 2023 --missing skip",
            "02-28,a\n02-29,b\n02-29,a\n03-01,c\n",
        ),
        (
            "--time-year 2023 --missing empty",
            "02-28,a\n02-29,b\n03-01,c\n",
        ),
        ("--time-year 2023 --rejects rejects", "02-28,a\n03-01,c\n"),
    ] {
        folder.assert_runs(&[&format!("{args} {options} | {expected}")]);
    }
    assert_eq!(folder.read("rejects"), "02-29,b\n02-29,a\n");
    let reasons = folder.read("rejects.jsonl");
    assert_eq!(reasons.matches("the year 2023, which has no").count(), 2);
}

#[test]
fn the_clock_of_an_unknown_year_is_a_span() {
    let folder = Folder::with(&[("in", "Jan 02 00:00:10,a\nJan 02 01:00:11,a\n")]);
    let time = "--time-field 1 --time-format '%b %d %H:%M:%S'";
    let range = "; clock from 2025-01-02T00:00:10Z to 2025-01-02T01:00:11Z; ";
    for (year, told, clock) in [
        ("", "; clock over 3,601 seconds; ", [86_410.0, 90_011.0]),
        (
            "--time-year 2025",
            range,
            [1_735_776_010.0, 1_735_779_611.0],
        ),
    ] {
        let args = format!("dedup -k 2 --window 10s {EXACT} {time} --stats stats {year} in");
        let run = folder.echoless(args);
        assert!(run.stderr.contains(told), "{}", run.stderr);
        let stats = folder.json("stats");
        let found = ["clock_from", "clock_to"].map(|name| stats[name].as_f64().unwrap());
        assert_eq!(found, clock, "{year}");
    }
}

#[test]
fn a_year_needs_dates_without_one() {
    for (format, year) in [
        ("auto", "2024"),
        ("%F", "2024"),
        ("%H:%M:%S", "2024"),
        ("bcd", "x"),
    ] {
        let time = format!("--time-format {format} --time-year {year}");
        dedup(format!("--window 1m --time-field 1 {time}"), "1,a\n").fails(&format!(
            "invalid --time-year={year}: expected a --time-format of dates without a year beside \
             it, such as '%b %d"
        ));
    }
    let cases = [
        "--window 9 --time-year 2024 | invalid --time-year=2024: expected a window of time beside",
        "--window 1m --time-field 1 --time-format %b%d --time-year 24 | invalid --time-year=24: expected a whole number from 1678 to 2261",
        "--window 1m --time-field 1 --time-format %b%d --time-year -1 | invalid --time-year=-1: expected",
        "--window 1m --time-field 1 --time-format %b%d --time-year 2262 | invalid --time-year=2262: expected",
        "--window 1m --time-field 1 --time-format %d | invalid --time-format=%d: expected auto",
        "--time-year 2024 | --window",
    ];
    assert_errors(|args| dedup(args, "1,a\n"), &cases);
    // Times in no order end beyond the years that are represented: every second record begins one.
    let input = "12-01\n01-01\n".repeat(300);
    let run = dedup("--time-field 1 --time-format %m-%d --window 1m", input);
    run.fails("the time is outside of the years 1678 to 2261");
}
