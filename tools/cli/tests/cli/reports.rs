//! What a run tells about itself: the statistics, the summary, the line for logs.

use std::fs;

use serde_json::Value;

use crate::outputs::INPUT;
use crate::run::{dedup, echoless, path};

#[test]
fn statistics_are_json() {
    let directory = tempfile::tempdir().unwrap();
    let path = path(&directory, "stats");
    let input = b"h,k\n1,a\n2,a\n3\n4,b\n";
    let args = "--header -k k --missing skip --kernel scalar --threads 3 --stats";
    let args: Vec<&str> = args.split(' ').chain([path.as_str()]).collect();
    assert_eq!(dedup(&args, input).text(), "h,k\n1,a\n3\n4,b\n");
    let stats: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for (field, expected) in [
        ("records", Value::from(4)),
        ("fresh", 2.into()),
        ("duplicates", 1.into()),
        ("unkeyed", 1.into()),
        ("bytes_in", 18.into()),
        ("bytes_out", 14.into()),
        ("evictions", 0.into()),
        ("estimated_missed_duplicates", 0.into()),
        ("memory_bytes", (1 << 20).into()),
        ("kernel", "scalar".into()),
        ("threads", 3.into()),
        ("slot_bits", 32.into()),
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("schema_version", 1.into()),
        ("complete", true.into()),
        ("reason", "end of input".into()),
        ("error", Value::Null),
    ] {
        assert_eq!(stats[field], expected, "{field}");
    }
    assert!(stats["huge_page_bytes"].is_u64());
    assert_eq!(stats["miss_age_unit"], "distinct keys");
    assert_eq!(stats["miss_age_since"], "last seen");
    for field in [
        "seconds",
        "expected_false_duplicates_high",
        "expected_fpr",
        "fill",
        "miss_age",
    ] {
        assert!(
            stats[field].as_f64().is_some_and(|value| value > 0.0),
            "{field}"
        );
    }
}

#[test]
fn statistics_can_go_to_standard_output() {
    let run = dedup(&["-o", "/dev/null", "--stats", "-"], INPUT);
    let stats: Value = serde_json::from_slice(&run.bytes()).unwrap();
    assert_eq!(stats["duplicates"], 3);
}

#[test]
fn the_summary_is_for_people() {
    let run = echoless(&["dedup", "-m", "64k"], INPUT);
    assert_eq!((run.code, run.stdout.as_slice()), (0, &b"a\nb\nc\n"[..]));
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{}", run.stderr);
    assert!(lines.iter().all(|line| line.starts_with("echoless: ")));
    assert!(lines[0].contains("6 records (12 B)"), "{}", lines[0]);
    assert!(
        lines[0].contains("3 fresh, 3 duplicates (50.00 %)"),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].contains("memory=64KiB") && lines[1].contains(", fill 0.0 %; "),
        "{}",
        lines[1]
    );
    assert!(lines[2].starts_with(
        "echoless: no evictions: no duplicate was missed (once full, 1 duplicate in 1000 is missed at an age of "
    ));
}

#[test]
fn the_summary_excludes_records_without_a_verdict() {
    let run = echoless(&["dedup", "-m", "64k"], b"a\na\n");
    assert!(run.stderr.contains(" 2 records (4 B) "), "{}", run.stderr);
    assert!(run.stderr.contains(" 1 fresh, 1 duplicate (50.00 %)"));
    let args = ["dedup", "-m", "64k", "-k", "2", "--missing", "skip"];
    let run = echoless(&args, b"a\na\nb,c\n");
    assert!(run.stderr.contains(", 2 passed unjudged\n"));
    assert!(
        run.stderr
            .contains("no duplicate of the judged records was missed"),
        "{}",
        run.stderr
    );
}

#[test]
fn ages_count_from_the_moment_that_the_replacement_goes_by() {
    for (replacement, since) in [
        (&[][..], Some("last seen")),
        (&["--replacement", "lru"], Some("last seen")),
        (&["--replacement", "fifo"], Some("recorded")),
        (&["--replacement", "qqhtd"], None),
    ] {
        let run = echoless(&[&["dedup", "-m", "64k"], replacement].concat(), INPUT);
        let line = run.stderr.lines().last().unwrap();
        match since {
            Some(since) => {
                let end = format!(" distinct keys since it was {since})");
                assert!(line.ends_with(&end), "{line}");
            }
            None => assert_eq!(line, "echoless: no evictions: no duplicate was missed"),
        }
    }
}

#[test]
fn the_guide_lists_the_statistics() {
    let guide = include_str!("../../GUIDE.md");
    let table = guide.split("| field | type | meaning |").nth(1).unwrap();
    let table = table.split("\n\n").next().unwrap();
    let mut listed = std::collections::BTreeMap::new();
    for row in table.lines().skip(2) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for name in cells[1].split(", ") {
            listed.insert(name.trim_matches('`').to_owned(), cells[2].to_owned());
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| path(&directory, name);
    let known = crate::run::file(directory.path(), "known", b"9,b\n");
    let input = crate::run::file(directory.path(), "input", b"10,a\n11,a\n");
    let (stats, seen) = (path("stats"), path("seen"));
    let args = ["--window", "10s", "--time-field", "1", "-k", "2"];
    let files = ["--stats", &stats, "--skip-seen-files", &seen, &input];
    let top = path("top");
    let more = ["--repeated", "--known", &known, "--top-keys", &top];
    let run = dedup(&[&args[..], &more, &files].concat(), b"");
    assert_eq!(run.text(), "11,a\n");
    let written = |stats: &str| {
        let stats: Value = serde_json::from_slice(&fs::read(stats).unwrap()).unwrap();
        stats.as_object().unwrap().clone()
    };
    let mut stats = written(&stats);
    // What does not go together with a window.
    let (state, saved, other) = (path("state"), path("saved"), path("other"));
    let of_state = path("of_state");
    let with_stats = ["--state", &state, "-k", "2", "--stats", &of_state, &input];
    dedup(&with_stats, b"").text();
    echoless(&["state", "export", &state, "-o", &saved], b"").text();
    let args = [
        "--known-state",
        &saved,
        "-k",
        "2",
        "--stats",
        &other,
        &input,
    ];
    dedup(&args, b"").text();
    for (name, value) in written(&other).into_iter().chain(written(&of_state)) {
        stats.entry(name).or_insert(value);
    }
    let written: Vec<&String> = stats.keys().collect();
    assert_eq!(written, listed.keys().collect::<Vec<_>>());
    for (name, kind) in &listed {
        let value = &stats[name];
        let agrees = match kind.as_str() {
            "integer" => value.is_u64(),
            "number" => value.is_f64(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            other => panic!("{other}"),
        };
        assert!(agrees || value.is_null(), "{name}: {value} is no {kind}");
    }
}

#[test]
fn logs_get_one_line_and_quiet_runs_none() {
    let summary = |args: &[&str]| {
        let all = [&["dedup", "-m", "64k"], args].concat();
        echoless(&all, INPUT).stderr
    };
    for line in [summary(&["--summary", "line"]), {
        let mut plain = std::process::Command::new(env!("CARGO_BIN_EXE_echoless"));
        plain.args(["dedup", "-m", "64k", "/dev/null"]);
        String::from_utf8(plain.output().unwrap().stderr).unwrap()
    }] {
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        assert!(
            line.starts_with("echoless: ") && line.contains(" records ("),
            "{line}"
        );
    }
    assert!(summary(&["--summary", "line"]).ends_with(" %)\n"));
    assert!(summary(&["--summary", "full"]).matches('\n').count() > 2);
    assert_eq!(summary(&["-q", "--summary", "full"]), "");
}

#[test]
fn the_line_for_logs_names_what_was_lost() {
    let line = |args: &[&str], input: &str| {
        let all = [&["dedup", "--count", "--summary", "line"], args].concat();
        let run = echoless(&all, input.as_bytes());
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);
        run.stderr
    };
    // The same keys in turns, many more than fit: the estimate is that of the full summary.
    let keys: String = (0..60_000)
        .map(|key| format!("{}\n", key % 20_000))
        .collect();
    let args = ["-m", "4KiB", "--threads", "1"];
    let evicting = line(&args, &keys);
    let full = echoless(
        &[&["dedup", "--count"], &args[..]].concat(),
        keys.as_bytes(),
    )
    .stderr;
    let errors = full.lines().nth(2).unwrap();
    let errors = errors.strip_prefix("echoless: ").unwrap();
    let lost = errors.split("; ").next().unwrap();
    assert!(lost.contains(" evictions: about "), "{full}");
    assert!(evicting.ends_with(&format!(" %); {lost}\n")), "{evicting}");
    // Other filters count no evictions.
    let sampled = line(&["--filter", "rlbsbf:k=2,memory=1KiB"], &keys);
    assert!(!sampled.contains("eviction"), "{sampled}");
    assert!(sampled.contains(" duplicates missed ("), "{sampled}");
    // One time far in the future makes all later records late.
    let times = "4070908800,a\n1735689600,b\n1735689601,c\n";
    let late = line(&["--window", "24h", "--time-field", "1"], times);
    let lost = " %), 2 passed unjudged; 2 records too late, passed unjudged; sort the inputs by \
                time, or set a longer --lateness\n";
    assert!(late.ends_with(lost), "{late}");
}
