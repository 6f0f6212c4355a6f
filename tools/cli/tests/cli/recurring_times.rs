//! Dates without a year, and times of day: judged as the same times with their year or date.

use std::fs;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::run::{assert_errors, dedup, echoless, file};
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
fn passed(input: &str, format: &str, more: &[&str]) -> Vec<String> {
    let window = ["-d", ";", "-k", "3", "--window", "1h", "--late", "pass"];
    let time = ["--time-field", "2", "--time-format", format];
    let args = [&["dedup", "-q"], &EXACT[..], &window, &time, more].concat();
    let output = echoless(&args, input.as_bytes()).text();
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
        let expected = passed(&whole, "%Y-%m-%d %H:%M:%S", &[]);
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
                &["--time-year", "2022"][..],
                &[
                    "--time-year",
                    "2022",
                    "--threads",
                    "2",
                    "--read-bytes",
                    "61",
                ],
                &[
                    "--time-year",
                    "2022",
                    "--threads",
                    "8",
                    "--read-bytes",
                    "5000",
                ],
                &["--threads", "1", "--read-bytes", "7"],
                &["--threads", "3"],
            ] {
                assert_eq!(passed(&input, format, more), expected, "{format} {more:?}");
            }
        }
    }
}

#[test]
fn the_day_follows_from_the_order() {
    // Some 50 days; gaps of up to eleven hours, and records late by up to an hour and a half.
    let stream = stream(3, 3000, (600, 11 * 3600, 5400));
    let whole = lines(&stream, "%Y-%m-%d %H:%M:%S");
    let expected = passed(&whole, "%Y-%m-%d %H:%M:%S", &[]);
    for format in ["%H:%M:%S", "%I.%M.%S %p", "%T.%f"] {
        let input = lines(&stream, format);
        for threads in ["1", "3"] {
            let more = ["--threads", threads, "--read-bytes", "999"];
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
    let args = ["-w", "-k", "4-", "--window", "5m", "--time-field", "1,2,3"];
    for day in ["%d", "%e"] {
        let format = format!("%b {day} %H:%M:%S");
        let format = ["--time-format", &format];
        let args = [&args[..], &EXACT[..2], &format].concat();
        let kept = [lines[0], lines[4]].concat();
        assert_eq!(dedup(&args, input.as_bytes()).text(), kept);
        let year = [&args[..], &["--time-year", "1999"]].concat();
        assert_eq!(dedup(&year, input.as_bytes()).text(), kept);
    }
}

#[test]
fn the_year_goes_on_from_file_to_file() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| file(directory.path(), name, text.as_bytes());
    let old = write("syslog.1", "Dec 30 10:00:00,a\nDec 31 23:59:00,a\n");
    let new = write("syslog", "Jan 01 00:01:00,a\nJan 02 10:00:00,a\n");
    let run = |files: &[&str], more: &[&str]| {
        let time = ["--time-field", "1", "--time-format", "%b %d %H:%M:%S"];
        let window = ["-k", "2", "--window", "10m", "--late", "reject"];
        dedup(
            &[&time[..], &window, &EXACT[..2], more, files].concat(),
            b"",
        )
    };
    let kept = "Dec 30 10:00:00,a\nDec 31 23:59:00,a\nJan 02 10:00:00,a\n";
    for threads in ["1", "2"] {
        assert_eq!(run(&[&old, &new], &["--threads", threads]).text(), kept);
    }
    // Known inputs come first in the stream, with the year of the first of their records.
    let known = ["--known", &old, "--time-year", "2024"];
    assert_eq!(run(&[&new], &known).text(), "Jan 02 10:00:00,a\n");
    // The newest file first: the others are late, as with whole dates.
    let error = run(&[&new, &old], &[]);
    assert!(
        error.error().starts_with(&format!(
            "{old}, line 1: the record is later than window and lateness allow"
        )),
        "{}",
        error.stderr
    );
}

#[test]
fn february_29_of_another_year_is_a_record_without_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let rejects = directory.path().join("rejects");
    let rejects = rejects.to_str().unwrap();
    let input = "02-28,a\n02-29,b\n02-29,a\n03-01,a\n03-01,c\n";
    let run = |more: &[&str]| {
        let time = ["--time-field", "1", "--time-format", "%m-%d"];
        let window = ["-k", "2", "--window", "1d"];
        let args = [&time[..], &window, &EXACT[..2], more].concat();
        dedup(&args, input.as_bytes())
    };
    // A leap year, or one that is unknown.
    let kept = "02-28,a\n02-29,b\n03-01,a\n03-01,c\n";
    for more in [&[][..], &["--time-year", "2024"], &["--time-year", "2000"]] {
        assert_eq!(run(more).text(), kept, "{more:?}");
    }
    let year = ["--time-year", "2023"];
    assert_eq!(
        run(&year).error(),
        "standard input, line 2: the time is of the year 2023, which has no February 29 \
         (--time-year is the year of the first record) (--missing skip or empty allows that)"
    );
    assert_eq!(run(&year).stdout, b"02-28,a\n");
    let missing = |value: &str| run(&[&year[..], &["--missing", value]].concat()).text();
    // From February 28 to March 1 is a day.
    assert_eq!(missing("skip"), "02-28,a\n02-29,b\n02-29,a\n03-01,c\n");
    assert_eq!(missing("empty"), "02-28,a\n02-29,b\n03-01,c\n");
    let run = run(&[&year[..], &["--rejects", rejects]].concat());
    assert_eq!(run.text(), "02-28,a\n03-01,c\n");
    assert_eq!(fs::read_to_string(rejects).unwrap(), "02-29,b\n02-29,a\n");
    let reasons = fs::read_to_string(format!("{rejects}.jsonl")).unwrap();
    assert_eq!(reasons.matches("the year 2023, which has no").count(), 2);
}

#[test]
fn the_clock_of_an_unknown_year_is_a_span() {
    let directory = tempfile::tempdir().unwrap();
    let stats = file(directory.path(), "stats", b"{}");
    let run = |more: &[&str]| {
        let time = ["--time-field", "1", "--stats", &stats];
        let args = [
            &["dedup", "-k", "2", "--window", "10s"],
            &EXACT[..],
            &time,
            more,
        ]
        .concat();
        let run = echoless(&args, b"Jan 02 00:00:10,a\nJan 02 01:00:11,a\n");
        let json: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
        let clock = ["clock_from", "clock_to"].map(|name| json[name].as_f64().unwrap());
        (run.stderr, clock)
    };
    let format = ["--time-format", "%b %d %H:%M:%S"];
    let (summary, clock) = run(&format);
    assert!(
        summary.contains("; clock over 3,601 seconds; "),
        "{summary}"
    );
    assert_eq!(clock, [86_410.0, 90_011.0]);
    let year = [&format[..], &["--time-year", "2025"]].concat();
    let (summary, clock) = run(&year);
    let range = "; clock from 2025-01-02T00:00:10Z to 2025-01-02T01:00:11Z; ";
    assert!(summary.contains(range), "{summary}");
    assert_eq!(clock, [1_735_776_010.0, 1_735_779_611.0]);
}

#[test]
fn a_year_needs_dates_without_one() {
    let run = |args: &[&str]| echoless(&[&["dedup"], args].concat(), b"1,a\n");
    let expected = "expected a --time-format of dates without a year beside it, such as '%b %d";
    for (format, year) in [
        ("auto", "2024"),
        ("%F", "2024"),
        ("%H:%M:%S", "2024"),
        ("bcd", "x"),
    ] {
        let time = ["--window", "1m", "--time-field", "1"];
        let args = [&time[..], &["--time-format", format, "--time-year", year]].concat();
        let run = run(&args);
        let expected = format!("invalid --time-year={year}: {expected}");
        assert!(run.error().starts_with(&expected), "{}", run.stderr);
    }
    let cases = [
        "--window 9 --time-year 2024 | invalid --time-year=2024: expected a window of time beside",
        "--window 1m --time-field 1 --time-format %b%d --time-year 24 | invalid --time-year=24: expected a whole number from 1678 to 2261",
        "--window 1m --time-field 1 --time-format %b%d --time-year -1 | invalid --time-year=-1: expected",
        "--window 1m --time-field 1 --time-format %b%d --time-year 2262 | invalid --time-year=2262: expected",
        "--window 1m --time-field 1 --time-format %d | invalid --time-format=%d: expected auto",
        "--time-year 2024 | --window",
    ];
    assert_errors(run, &cases);
}

#[test]
fn times_in_no_order_end_beyond_the_years_that_are_represented() {
    // Every second record begins a year.
    let input: String = (0..600)
        .map(|number| format!("{}\n", ["12-01", "01-01"][number % 2]))
        .collect();
    let time = [
        "--time-field",
        "1",
        "--time-format",
        "%m-%d",
        "--window",
        "1m",
    ];
    let run = dedup(&time, input.as_bytes());
    assert!(
        run.error()
            .contains("the time is outside of the years 1678 to 2261"),
        "{}",
        run.stderr
    );
}
