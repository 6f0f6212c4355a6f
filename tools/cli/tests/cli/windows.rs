//! Windows: every verdict against a map of keys to times, any number of threads, and late records.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::run::{Folder, assert_runs, dedup, echoless};

/// A filter that is exact to the tick.
pub(crate) const EXACT: &str = "--filter stamped:bits=64 -m 1MiB";

/// The options of records of time and key.
const TIMED: &str = "-k 2 --time-field 1";

/// Runs `dedup` on records of time and key, with these options.
pub(crate) fn windowed(options: &str, input: &str) -> String {
    echoless(format!("dedup -q {TIMED} {options}"), input).text()
}

/// What an exact filter passes of records of clock and key: those whose key was not seen
/// (`refresh`) or passed at most `window` before.
fn passed(records: &[(i64, u64)], window: i64, refresh: bool) -> Vec<bool> {
    let mut last: HashMap<u64, i64> = HashMap::new();
    let judge = |(clock, key): &(i64, u64)| {
        let fresh = last.get(key).is_none_or(|last| clock - last > window);
        if fresh || refresh {
            last.insert(*key, *clock);
        }
        fresh
    };
    records.iter().map(judge).collect()
}

/// The largest time so far, at each time.
fn clocks(times: &[i64]) -> Vec<i64> {
    let mut clock = i64::MIN;
    let advance = |time: &i64| {
        clock = clock.max(*time);
        clock
    };
    times.iter().map(advance).collect()
}

/// The records that pass, as lines.
fn kept(lines: &[String], passed: &[bool]) -> String {
    let kept = lines.iter().zip(passed).filter(|(_, passed)| **passed);
    kept.map(|(line, _)| line.as_str()).collect()
}

#[test]
fn a_key_counts_as_seen_for_the_length_of_the_window() {
    // Times in seconds; the key a is passed at 0, 11 and 22, or with refresh at 0 and 21.
    let input = "0,a\n10,a\n11,a\n11,b\n21,a\n22,a\n";
    let sliced = "--filter horizontal:slices=3/stamped:bits=64 -m 1MiB";
    for options in [
        EXACT.to_owned(),
        // The window is completed in the filter, not in an adapter around it.
        format!("{sliced} --threads 1"),
        format!("{sliced} --threads 2"),
    ] {
        let options = format!("{options} --window 10s");
        assert_eq!(
            windowed(&options, input),
            "0,a\n11,a\n11,b\n22,a\n",
            "{options}"
        );
    }
    let refresh = format!("{EXACT} --window 10s --refresh");
    assert_eq!(windowed(&refresh, "0,a\n10,a\n20,a\n31,a\n"), "0,a\n31,a\n");
    // At 100, the record of 95 is within the window of that of 89 only by its own time: a late
    // record is judged at the clock and does not move it.
    let input = "89,a\n100,b\n95,a\n106,a\n111,a\n";
    let output = windowed(&format!("{EXACT} --window 10s"), input);
    assert_eq!(output, "89,a\n100,b\n95,a\n111,a\n");
}

#[test]
fn a_window_counts_records_without_a_field_of_times() {
    assert_runs(&[
        "--filter stamped:bits=64 --window 2 | a\na\na\na\nb\nc\na\n | a\na\nb\nc\na\n",
        "--filter stamped:bits=64 --window 2 --refresh | a\nb\na\na\nb\nc\na\n | a\nb\nb\nc\na\n",
        // Records without a key count, too.
        "--filter stamped:bits=64 --window 2 -k 2 --missing skip | 1,a\n2\n3,a\n4\n5\n6,a\n | 1,a\n2\n4\n5\n6,a\n",
    ]);
}

#[test]
fn times_too_far_ahead_do_not_move_the_clock() {
    // The year 2191, with an error in the middle, at the beginning, and in a burst.
    let middle = "100,a\n101,b\n7000000000,c\n102,a\n103,c\n104,b\n";
    let first = "7000000000,c\n100,a\n101,a\n102,c\n";
    let lines = |line: &str, count: usize| line.repeat(count);
    let burst = format!("100,a\n{}101,a\n", lines("7000000000,b\n", 900));
    let passed = format!("100,a\n{}", lines("7000000000,b\n", 900));
    // After a pause the first 999 records are too far ahead.
    let pause = format!("100,a\n101,a\n{}501,b\n512,b\n", lines("500,b\n", 1_001));
    let judged = format!("100,a\n{}512,b\n", lines("500,b\n", 1_000));
    let folder = Folder::new();
    let options = format!("dedup -q {TIMED} {EXACT} --window 10s --stats stats in");
    for (input, policy, expected, count) in [
        (
            middle,
            "--missing skip",
            "100,a\n101,b\n7000000000,c\n103,c\n",
            1,
        ),
        (middle, "--missing empty", "100,a\n101,b\n7000000000,c\n", 1),
        (middle, "--rejects rejects", "100,a\n101,b\n103,c\n", 1),
        (first, "--missing skip", "7000000000,c\n100,a\n102,c\n", 1),
        (first, "--missing empty", "7000000000,c\n100,a\n", 1),
        (&burst, "--missing empty", "100,a\n7000000000,b\n", 900),
        (&burst, "--missing skip", &passed, 900),
        (&pause, "--missing skip", &judged, 999),
        (
            &pause,
            "--missing empty",
            "100,a\n500,b\n500,b\n512,b\n",
            999,
        ),
    ] {
        folder.write("in", input);
        for threads in ["1", "3"] {
            let bound = format!("--max-advance 60s --threads {threads}");
            let run = folder.echoless(format!("{options} {policy} {bound}"));
            let said = format!("{policy}, {} bytes", input.len());
            assert_eq!(run.text(), expected, "{said}");
            assert_eq!(folder.json("stats")["ahead"], count, "{said}");
        }
    }
    let rejects = folder.read("rejects");
    assert!(rejects.contains("7000000000,c"), "{rejects}");
    for (input, advance, expected) in [
        (
            middle,
            "1m",
            "in, line 3: the time is further ahead of the latest one before",
        ),
        (
            first,
            "1m",
            "in, line 1: the first time is further ahead of the clock of the",
        ),
        (
            middle,
            "0s",
            "invalid --max-advance=0s: expected a time of 1ns or more",
        ),
        (
            middle,
            "7",
            "invalid --max-advance=7: expected a time of 1ns or more",
        ),
    ] {
        folder.write("in", input);
        let run = folder.echoless(format!("{options} --max-advance {advance}"));
        run.fails(expected);
    }
    // Without the option, any time moves the clock.
    assert_eq!(folder.echoless(options).text(), middle);
    let stats = folder.json("stats");
    assert_eq!((&stats["ahead"], &stats["late"]), (&Value::Null, &3.into()));
    assert_runs(&[
        "--window 10 --max-advance 1m |  | !! invalid --max-advance=1m: expected a window of time",
    ]);
}

#[test]
fn records_later_than_window_and_lateness_are_treated_as_configured() {
    let folder = Folder::with(&[("in", "100,a\n100,b\n90,a\n89,a\n79,b\n101,a\n")]);
    let options = format!("dedup -q {TIMED} {EXACT} --window 10s --stats stats in");
    for (late, expected, count) in [
        ("", "100,a\n100,b\n89,a\n79,b\n", 2),
        ("--late judge", "100,a\n100,b\n", 2),
        ("--late pass", "100,a\n100,b\n89,a\n79,b\n", 2),
        ("--late pass --lateness 1s", "100,a\n100,b\n79,b\n", 1),
        ("--late pass --lateness 11s", "100,a\n100,b\n", 0),
        ("--late reject --lateness 11s", "100,a\n100,b\n", 0),
    ] {
        let run = folder.echoless(format!("{options} {late}"));
        assert_eq!(run.text(), expected, "{late}");
        assert_eq!(folder.json("stats")["late"], count, "{late}");
    }
    for (lateness, line) in [("0s", 4), ("1s", 5)] {
        let run = folder.echoless(format!("{options} --late reject --lateness {lateness}"));
        run.fails(&format!(
            "in, line {line}: the record is later than window and lateness allow"
        ));
        assert_eq!(run.stdout, b"100,a\n100,b\n");
    }
}

#[test]
fn files_in_the_wrong_order_lose_no_record_and_the_summary_names_the_cure() {
    let day = |date: &str, hours: &[u32]| {
        let line = |hour: &u32| format!("{date}T{hour:02}:00:00Z,A\n");
        let records: String = hours.iter().map(line).collect();
        format!("t,caller\n{records}")
    };
    let folder = Folder::with(&[
        ("first", day("2025-01-01", &[10, 15, 20])),
        ("second", day("2025-01-02", &[10, 11])),
    ]);
    let args = "dedup -m 64k --csv --header -k caller --window 10m --time-field t";
    let cure = "sort the inputs by time, or set a longer --lateness";
    let passed = format!("3 records too late, passed unjudged; {cure}\n");
    let rejected = format!("3 records too late, rejected; {cure}");
    for (options, records, late) in [
        ("second first --summary full", 5, &*passed),
        ("first second --summary full", 5, ""),
        ("second first --summary line", 5, &passed),
        ("first second --summary line", 5, ""),
        // Judged at the clock, they are all of one instant.
        (
            "second first --late judge",
            2,
            "3 records too late, judged at the latest time; sort the inputs by time",
        ),
        // Within the lateness, too.
        ("second first --lateness 30h", 2, ""),
        ("second first --late reject --rejects rejects", 2, &rejected),
    ] {
        let run = folder.echoless(format!("{args} {options}"));
        let report = run.stderr;
        assert_eq!(run.code, 0, "{report}");
        let lines = run.stdout.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines, records + 1, "{options}");
        let found = report.matches(" too late").count();
        assert_eq!(found, usize::from(!late.is_empty()), "{options}: {report}");
        assert!(report.contains(late), "{options}: {report}");
    }
}

#[test]
fn a_long_window_of_records_is_the_same_on_threads_that_divide_the_filter() {
    // A tick has 1000 records, enough for three partitions, and not for four. Keys come back
    // before and after the end of the window.
    let window = 2_000_000;
    let records = |number: u64| match number % 5 {
        0 if number > window + 3000 => number - window - 3000,
        1 if number > window - 3000 => number + 3000 - window,
        _ => number,
    };
    let input: String = (0..2_600_000)
        .map(|number| format!("{}\n", records(number)))
        .collect();
    let passed = |threads| {
        let args = format!("-m 64MiB --window {window} --threads {threads}");
        dedup(args, &input).bytes()
    };
    let one = passed("1");
    assert!(!one.is_empty() && one.len() < input.len());
    for threads in ["3", "4"] {
        assert!(passed(threads) == one, "{threads} threads");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn verdicts_equal_those_of_a_map(
        records in vec((0_i64..100, 0_u64..8), 1..200),
        step in prop_oneof![Just(0_i64), Just(3), Just(50)],
        window in 1_i64..40,
        lateness in prop_oneof![Just(None), (0_i64..40).prop_map(Some)],
        refresh: bool,
        threads in 1_usize..4,
    ) {
        // Times with a trend, in nanoseconds: a window of up to 2000 of them is exact.
        let times: Vec<i64> = (0..).zip(&records).map(|(at, (time, _))| at * step + time).collect();
        let clocks = clocks(&times);
        // Late records pass and leave no trace; without a lateness here, all are judged.
        let is_late: Vec<bool> = clocks
            .iter()
            .zip(&times)
            .map(|(clock, time)| lateness.is_some_and(|lateness| clock - time > window + lateness))
            .collect();
        let keyed: Vec<(i64, u64)> = (clocks.iter().zip(&records).zip(&is_late))
            .filter(|(_, is_late)| !**is_late)
            .map(|((clock, (_, key)), _)| (*clock, *key))
            .collect();
        let lines: Vec<String> =
            times.iter().zip(&records).map(|(time, (_, key))| format!("{time},{key}\n")).collect();
        let late = match lateness {
            Some(lateness) => format!("--lateness {lateness}ns"),
            None => "--late judge".into(),
        };
        let renews = if refresh { "--refresh" } else { "" };
        let options = format!(
            "{EXACT} --time-format ns --window {window}ns --threads {threads} {renews} {late}"
        );
        let mut judged = passed(&keyed, window, refresh).into_iter();
        let passing: Vec<bool> =
            is_late.iter().map(|is_late| *is_late || judged.next().unwrap()).collect();
        let expected = kept(&lines, &passing);
        prop_assert_eq!(windowed(&options, &lines.concat()), expected);
    }

    #[test]
    fn counted_windows_equal_a_map(
        keys in vec(0_u64..20, 1..300),
        window in 1_i64..60,
        refresh: bool,
        threads in 1_usize..4,
    ) {
        let keyed: Vec<(i64, u64)> = (0..).zip(keys.iter().copied()).collect();
        let lines: Vec<String> = keys.iter().map(|key| format!("{key}\n")).collect();
        let renews = if refresh { "--refresh" } else { "" };
        let options = format!("{EXACT} --window {window} --threads {threads} {renews}");
        let expected = kept(&lines, &passed(&keyed, window, refresh));
        prop_assert_eq!(dedup(options, lines.concat()).text(), expected);
    }

    /// The default filter keeps its promise: a key is remembered for the window, and forgotten a
    /// granule later.
    #[test]
    fn clocked_verdicts_keep_the_promise(
        steps in vec((0_i64..300, 0_u64..30), 1..300),
        window in 100_i64..1000,
        refresh: bool,
    ) {
        let mut clock = 0;
        let mut lines = Vec::new();
        let mut keyed = Vec::new();
        for (step, key) in &steps {
            clock += step * step / 300;
            keyed.push((clock, *key));
            lines.push(format!("{clock},{key},{}\n", lines.len()));
        }
        let renews = if refresh { "--refresh" } else { "" };
        let options = format!("-m 1MiB --time-format ns --window {window}ns {renews}");
        let output = windowed(&options, &lines.concat());
        let fresh: Vec<&str> = output.split_inclusive('\n').collect();
        let mut fresh = fresh.into_iter().peekable();
        let mut last: HashMap<u64, i64> = HashMap::new();
        for ((clock, key), line) in keyed.iter().zip(&lines) {
            let is_fresh = fresh.next_if(|next| next == line).is_some();
            // The granule of the clocked lines is a fifth of the window, rounded up twice.
            let granule = (window + 4) / 5 * 6 - window;
            match last.get(key).map(|last| clock - last) {
                Some(age) if age <= window => prop_assert!(!is_fresh, "{} at {}", key, clock),
                Some(age) if age < window + granule => {}
                _ => prop_assert!(is_fresh, "{} at {}", key, clock),
            }
            if refresh || is_fresh {
                last.insert(*key, *clock);
            }
        }
        prop_assert!(fresh.next().is_none());
    }
}
