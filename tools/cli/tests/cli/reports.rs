//! What a run tells about itself: the statistics, the summary, the line for logs.

use serde_json::Value;

use crate::outputs::INPUT;
use crate::run::{Folder, dedup, echoless};

#[test]
fn statistics_are_json() {
    let folder = Folder::new();
    let args = "--header -k k --missing skip --kernel scalar --threads 3 --stats stats";
    let run = folder.dedup_on(args, "h,k\n1,a\n2,a\n3\n4,b\n");
    assert_eq!(run.text(), "h,k\n1,a\n3\n4,b\n");
    let stats = folder.json("stats");
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
    let fields = "seconds expected_false_duplicates_high expected_fpr fill miss_age";
    for field in fields.split(' ') {
        assert!(stats[field].as_f64() > Some(0.0), "{field}");
    }
}

#[test]
fn statistics_can_go_to_standard_output() {
    let run = dedup("-o /dev/null --stats -", INPUT);
    let stats: Value = serde_json::from_slice(&run.bytes()).unwrap();
    assert_eq!(stats["duplicates"], 3);
}

#[test]
fn the_summary_is_for_people() {
    let run = echoless("dedup -m 64k", INPUT);
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
    assert!(lines[1].contains("memory=64KiB"), "{}", lines[1]);
    assert!(lines[1].contains(", fill 0.0 %; "), "{}", lines[1]);
    assert!(lines[2].starts_with(
        "echoless: no evictions: no duplicate was missed (once full, 1 duplicate in 1000 is missed at an age of "
    ));
}

#[test]
fn the_summary_excludes_records_without_a_verdict() {
    let run = echoless("dedup -m 64k", b"a\na\n");
    assert!(run.stderr.contains(" 2 records (4 B) "), "{}", run.stderr);
    assert!(run.stderr.contains(" 1 fresh, 1 duplicate (50.00 %)"));
    let run = echoless("dedup -m 64k -k 2 --missing skip", b"a\na\nb,c\n");
    assert!(run.stderr.contains(", 2 passed unjudged\n"));
    let missed = "no duplicate of the judged records was missed";
    assert!(run.stderr.contains(missed), "{}", run.stderr);
}

#[test]
fn ages_count_from_the_moment_that_the_replacement_goes_by() {
    for (replacement, since) in [
        ("", Some("last seen")),
        ("--replacement lru", Some("last seen")),
        ("--replacement fifo", Some("recorded")),
        ("--replacement qqhtd", None),
    ] {
        let run = echoless(format!("dedup -m 64k {replacement}"), INPUT);
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
    let folder = Folder::with(&[("known", "9,b\n"), ("in", "10,a\n11,a\n")]);
    let args = "--window 10s --time-field 1 -k 2 --repeated --known known --top-keys top";
    let run = folder.dedup(format!("{args} --stats stats --skip-seen-files seen in"));
    assert_eq!(run.text(), "11,a\n");
    let written = |name: &str| folder.json(name).as_object().unwrap().clone();
    let mut stats = written("stats");
    // What does not go together with a window.
    folder
        .dedup("--state state -k 2 --stats of_state in")
        .text();
    folder.echoless("state export state -o saved").text();
    folder
        .dedup("--known-state saved -k 2 --stats other in")
        .text();
    folder.dedup("--exact -k 2 --stats exact in").text();
    for (name, value) in ["other", "of_state", "exact"].into_iter().flat_map(written) {
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
            "object" => value.is_object(),
            other => panic!("{other}"),
        };
        assert!(agrees || value.is_null(), "{name}: {value} is no {kind}");
    }
}

#[test]
fn logs_get_one_line_and_quiet_runs_none() {
    let summary = |args: &str| echoless(format!("dedup -m 64k {args}"), INPUT).stderr;
    // Standard error is no terminal, so that a line is the default.
    let mut plain = std::process::Command::new(env!("CARGO_BIN_EXE_echoless"));
    plain.args(["dedup", "-m", "64k", "/dev/null"]);
    let plain = String::from_utf8(plain.output().unwrap().stderr).unwrap();
    for line in [&summary("--summary line"), &plain] {
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        assert!(
            line.starts_with("echoless: ") && line.contains(" records ("),
            "{line}"
        );
    }
    assert!(summary("--summary line").ends_with(" %)\n"));
    assert!(summary("--summary full").matches('\n').count() > 2);
    assert_eq!(summary("-q --summary full"), "");
}

#[test]
fn the_line_for_logs_names_what_was_lost() {
    let line = |args: &str, input: &str| {
        let run = echoless(format!("dedup --count --summary line {args}"), input);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(run.stderr.matches('\n').count(), 1, "{}", run.stderr);
        run.stderr
    };
    // The same keys in turns, many more than fit: the estimate is that of the full summary.
    let keys: String = (0..60_000)
        .map(|key| format!("{}\n", key % 20_000))
        .collect();
    let evicting = line("-m 4KiB --threads 1", &keys);
    let full = echoless("dedup --count -m 4KiB --threads 1", &keys).stderr;
    let errors = full.lines().nth(2).unwrap();
    let errors = errors.strip_prefix("echoless: ").unwrap();
    let lost = errors.split("; ").next().unwrap();
    assert!(lost.contains(" evictions: about "), "{full}");
    assert!(evicting.ends_with(&format!(" %); {lost}\n")), "{evicting}");
    // Other filters count no evictions.
    let sampled = line("--filter rlbsbf:k=2,memory=1KiB", &keys);
    assert!(!sampled.contains("eviction"), "{sampled}");
    assert!(sampled.contains(" duplicates missed ("), "{sampled}");
    // One time far in the future makes all later records late.
    let times = "4070908800,a\n1735689600,b\n1735689601,c\n";
    let late = line("--window 24h --time-field 1", times);
    let lost = " %), 2 passed unjudged; 2 records too late, passed unjudged; sort the inputs by \
                time, or set a longer --lateness\n";
    assert!(late.ends_with(lost), "{late}");
}
