//! What a run with a window reports: its summary and its statistics, against the truth.

use std::fmt::Write as _;

use serde_json::Value;

use crate::run::Folder;

#[test]
fn statistics_and_summary_name_the_window() {
    let folder = Folder::new();
    let args = "dedup --window 10m --time-field 1 -k 2 --stats stats";
    let input = b"2025-01-01T00:00:00Z,a\n2025-01-01T00:20:00Z,a\n2025-01-01T00:00:01Z,a\n";
    let run = folder.echoless_on(format!("{args} -m 1MiB"), input);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stderr
            .contains("clock from 2025-01-01T00:00:00Z to 2025-01-01T00:20:00Z; 1 key expired\necholess: 1 record too late, passed"),
        "{}",
        run.stderr
    );
    let json = folder.json("stats");
    for (field, expected) in [
        ("window", Value::from(600.0)),
        ("granule", Value::from(120.0)),
        ("window_unit", Value::from("seconds")),
        ("clock_from", Value::from(1_735_689_600.0)),
        ("clock_to", Value::from(1_735_690_800.0)),
        ("late", Value::from(1)),
        ("estimated_missed_duplicates", Value::from(0)),
    ] {
        assert_eq!(json[field], expected, "{field}");
    }
    // The specification in the statistics gives the same filter.
    let spec = json["filter"].as_str().unwrap();
    assert!(
        spec.starts_with("clocked:window=3000,refresh=false,bits="),
        "{spec}"
    );
    let again = folder.echoless_on(format!("{args} --filter {spec}"), input);
    assert_eq!((again.code, again.stdout), (0, run.stdout));
    let args = "dedup -q --window 1000000 --stats stats";
    assert_eq!(folder.echoless_on(args, "a\na\n").text(), "a\n");
    let json = folder.json("stats");
    assert_eq!(
        (&json["window"], &json["window_unit"]),
        (&1e6.into(), &"records".into())
    );
    assert_eq!(json["clock_from"], Value::Null);
    assert_eq!(folder.dedup("--stats stats").code, 0);
    let json = folder.json("stats");
    assert_eq!(
        (&json["window"], &json["late"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn times_of_the_clock_have_no_digits_that_the_input_lacks() {
    let folder = Folder::new();
    for (window, from, to) in [
        ("10m", "1700000000", "1700000001.8"),
        ("1s", "1700000000.12", "1700000001.875"),
        ("1us", "1700000000.12", "1700000001.875"),
    ] {
        let args = format!("--window {window} --time-field 1 --stats stats");
        folder
            .dedup_on(&args, b"1700000000.12,a\n1700000001.875,b\n")
            .text();
        let text = folder.read("stats");
        for (name, expected) in [("clock_from", from), ("clock_to", to)] {
            let value = text.split(&format!("\"{name}\": ")).nth(1).unwrap();
            let value = value.split(',').next().unwrap();
            assert_eq!(value.trim_end_matches(".0"), expected, "{window} {name}");
        }
    }
}

#[test]
fn the_busiest_window_has_no_more_keys_than_records() {
    let folder = Folder::new();
    let lines = |from: u64, to: u64| {
        (from..to).fold(String::new(), |mut text, number| {
            let _ = writeln!(text, "{number}");
            text
        })
    };
    let times = |count: u64| lines(1_700_000_000, 1_700_000_000 + count);
    for (options, input, most) in [
        ("--window 100000", lines(0, 400_000), 100_000),
        ("--window 3000", lines(0, 400_000), 3000),
        ("--window 3000 --refresh --dense", lines(0, 400_000), 3000),
        ("--window 10d --time-field 1", times(90_000), 90_000),
    ] {
        let args = format!("{options} -m 16MiB --count --stats stats");
        folder.dedup_on(args, input).text();
        let json = folder.json("stats");
        let busiest = json["busiest_window_keys"].as_u64().unwrap();
        assert!(busiest <= most, "{options}: {busiest}");
        assert!(busiest * 10 >= most * 9, "{options}: {busiest}");
    }
}

/// Records of a second and a key: 50 new keys a second for 4000 s, and each key a second time 990 s
/// later. A window of 1000 s holds 50,000 keys.
fn repeats_at_the_end_of_the_window() -> (String, u64) {
    let (mut input, mut repeats) = (String::new(), 0);
    for number in 0..200_000_u64 {
        let second = number / 50;
        let _ = writeln!(input, "{second},{number}");
        if let Some(earlier) = number.checked_sub(990 * 50) {
            let _ = writeln!(input, "{second},{earlier}");
            repeats += 1;
        }
    }
    (input, repeats)
}

/// Runs a filter without enough memory, then with the memory that its summary suggests.
fn assert_suggestion(options: &str, little: &str, suggested: &str, most_missed: f64) {
    let folder = Folder::new();
    let (input, repeats) = repeats_at_the_end_of_the_window();
    let args = format!("dedup --window 1000s --time-field 1 -k 2 --count {options} --stats stats");
    let run = |memory: &str| {
        let run = folder.echoless_on(format!("{args} -m {memory}"), &input);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let stats = folder.json("stats");
        let missed = repeats - stats["duplicates"].as_u64().unwrap();
        (missed as f64 / repeats as f64, stats, run.stderr)
    };
    let (missed, small, summary) = run(little);
    assert!(missed > 0.5, "{missed}");
    let busiest = small["busiest_window_keys"].as_u64().unwrap();
    // Missed duplicates take slots of their own, so up to twice the keys are recorded.
    assert!((48_000..105_000).contains(&busiest), "{busiest}");
    let fnr = small["estimated_fnr"].as_f64().unwrap();
    assert!(
        (fnr / missed - 1.0).abs() < 0.05,
        "{fnr} instead of {missed}"
    );
    let age = small["busiest_window_miss_age"].as_f64().unwrap();
    assert!((100.0..900.0).contains(&age), "{age}");
    let memory = small["busiest_window_memory_bytes"].as_u64().unwrap();
    let words = "where they came fastest, 1 duplicate in 1000 is missed at an age of";
    assert!(summary.contains(words), "{summary}");
    assert!(
        summary.contains(&format!("; -m {suggested} is enough for all of it")),
        "{summary}"
    );
    let (missed, enough, summary) = run(&memory.to_string());
    assert!(missed < 0.002, "{missed} in {memory} bytes");
    assert!(!summary.contains("busiest window"), "{summary}");
    assert_eq!(enough["busiest_window_miss_age"], Value::Null);
    let busiest = enough["busiest_window_keys"].as_u64().unwrap();
    assert!((48_000..53_000).contains(&busiest), "{busiest}");
    // Keys are recorded once, and all but those of the last window and granule expire.
    let expired = enough["expired"].as_u64().unwrap();
    assert!((135_000..155_000).contains(&expired), "{expired}");
    // That run has hardly a second record of a missed duplicate in its busiest window.
    let least = enough["busiest_window_memory_bytes"].as_u64().unwrap();
    let (missed, ..) = run(&least.to_string());
    assert!(missed <= most_missed, "{missed} in {least} bytes");
}

/// A run on bursts of 40,000 keys in a second, each of which comes again so many microseconds
/// later, in a window of 100 s: the missed part of the duplicates, and the age in its statistics.
fn burst(delay: u64) -> (f64, f64) {
    burst_in("", delay)
}

/// The same in the filter of these options.
fn burst_in(filter: &str, delay: u64) -> (f64, f64) {
    const KEYS: u64 = 40_000;
    let folder = Folder::new();
    let mut records = Vec::new();
    for burst in 0..3 {
        let start = 1_700_000_000_000_000 + burst * 200_000_000;
        for key in 0..KEYS {
            let time = start + key * 25;
            records.extend([(time, burst, key), (time + delay, burst, key)]);
        }
    }
    records.sort_unstable();
    let input = records.iter().fold(String::new(), |mut text, record| {
        let (time, burst, key) = record;
        let _ = writeln!(text, "{time},{burst}-{key}");
        text
    });
    let args = "-d , -k 2 --window 100s --time-field 1 -m 256KiB --count --stats stats";
    folder.dedup_on(format!("{args} {filter}"), input).text();
    let json = folder.json("stats");
    let found = json["duplicates"].as_f64().unwrap();
    let age = json["busiest_window_miss_age"].as_f64().unwrap();
    (1.0 - found / (3 * KEYS) as f64, age)
}

#[test]
fn slices_of_lines_have_the_age_of_the_whole() {
    let whole = burst_in("--filter clocked", 1_000_000);
    assert!(whole.0 > 0.05 && whole.1 < 1.0, "{whole:?}");
    let sliced = burst_in("--filter horizontal:slices=8/clocked", 1_000_000);
    assert_eq!(sliced, whole);
}

#[test]
fn the_age_at_which_misses_begin_holds_in_a_burst() {
    let (missed, age) = burst(1_000_000);
    assert!(missed > 0.05 && age < 1.0, "{missed} missed, {age} s");
    // Below that age few are missed.
    let (missed, _) = burst((age * 0.9e6) as u64);
    assert!(missed < 2e-3, "{missed}");
    assert!(age > 0.3, "{age} s");
}

#[test]
fn the_memory_of_a_small_window_is_a_page_of_dense_lines() {
    let folder = Folder::new();
    for (options, unit) in [("--dense", 4096), ("", 64)] {
        for (input, window) in [("a\nb\nc\n", "2"), ("", "100"), ("a\n", "1000")] {
            let args = format!("{options} --window {window} --count");
            folder
                .dedup_on(format!("{args} --stats stats"), input)
                .text();
            let memory = folder.json("stats")["busiest_window_memory_bytes"]
                .as_u64()
                .unwrap();
            assert!(
                memory > 0 && memory.is_multiple_of(unit),
                "{options}: {memory}"
            );
            folder.dedup_on(format!("{args} -m {memory}"), input).text();
        }
    }
}

#[test]
fn bounds_that_say_nothing_are_not_printed() {
    let folder = Folder::new();
    let input: String = (0..300)
        .map(|number| format!("{}\n", number % 200))
        .collect();
    // Of 1 key in 64 it is known whether it was seen before, so all duplicates may be false.
    let options = "--filter bloom:k=4 -m 1KiB --stats stats";
    let run = folder.echoless_on(format!("dedup --summary full {options}"), &input);
    let json = folder.json("stats");
    let duplicates = json["duplicates"].as_u64().unwrap();
    assert!((100..340).contains(&duplicates), "{duplicates}");
    for end in ["", "_low", "_high"] {
        assert_eq!(
            json[format!("estimated_false_duplicates{end}")],
            Value::Null,
            "{end}"
        );
    }
    let words = "unknown how many fresh records were mistaken for duplicates";
    assert!(run.stderr.contains(words), "{}", run.stderr);
    assert!(
        !run.stderr.contains(&format!("{words}, at most")),
        "{}",
        run.stderr
    );
}

#[test]
fn the_memory_that_the_summary_suggests_is_enough_for_the_busiest_window() {
    // Where every key recurs, a missed duplicate takes a second slot and displaces others.
    assert_suggestion("", "256KiB", "2MiB", 6e-3);
}

#[test]
fn the_memory_that_is_suggested_for_dense_lines_is_half_and_enough() {
    assert_suggestion("--dense", "128KiB", "1MiB", 1e-3);
}

#[test]
fn records_without_a_key_at_the_end_move_the_clock() {
    let folder = Folder::new();
    let input = format!("a,1\nb,2\n{}", "c\n".repeat(300));
    for (window, is_empty) in [("100", true), ("1000", false)] {
        for threads in ["1", "3"] {
            let args = format!("-k 2 --missing skip --window {window} --threads {threads}");
            assert_eq!(
                folder
                    .dedup_on(format!("{args} --stats stats"), &input)
                    .code,
                0
            );
            let json = folder.json("stats");
            assert_eq!(json["fill"].as_f64().unwrap() == 0.0, is_empty, "{window}");
        }
    }
}
