//! `--repeated`: one record of each key that occurs again.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::run::{assert_errors, dedup, echoless, file, path};

const INPUT: &[u8] = b"a\nb\na\nc\nb\na\na\n";

#[test]
fn one_record_for_each_key_that_occurs_again() {
    assert_eq!(dedup(&["--repeated"], INPUT).text(), "a\nb\n");
    assert_eq!(dedup(&["--repeated", "--count"], INPUT).text(), "2\n");
    assert_eq!(dedup(&["--repeated"], b"a\nb\n").text(), "");
    // The record is the first duplicate, not the first record of the key.
    let args = ["--repeated", "--header", "-k", "1"];
    assert_eq!(dedup(&args, b"k,v\n1,a\n1,b\n1,c\n").text(), "k,v\n1,b\n");
    // Records without a key are not duplicates.
    let args = ["--repeated", "-k", "2", "--missing", "skip"];
    assert_eq!(dedup(&args, b"x\nx\n1,a\nx\n2,a\n").text(), "2,a\n");
}

#[test]
fn keys_are_counted_and_other_outputs_are_as_without_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name| path(&directory, name);
    let (dropped, stats) = (path("dropped"), path("stats"));
    let args = ["--repeated", "--duplicates", &dropped, "--stats", &stats];
    assert_eq!(dedup(&args, INPUT).text(), "a\nb\n");
    assert_eq!(fs::read(&dropped).unwrap(), b"a\nb\na\na\n");
    let stats: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    for (field, expected) in [
        ("repeated", 2),
        ("duplicates", 4),
        ("fresh", 3),
        ("bytes_out", 4),
    ] {
        assert_eq!(stats[field], expected, "{field}");
    }
    let run = echoless(&["dedup", "-m", "64k", "--repeated"], INPUT);
    let first = run.stderr.lines().next().unwrap();
    assert!(first.ends_with(", 2 keys with duplicates"), "{first}");
    assert_eq!(
        dedup(&["--repeated", "--fail-on-duplicates"], INPUT).code,
        1
    );
}

#[test]
fn known_keys_count_once() {
    let directory = tempfile::tempdir().unwrap();
    let known = file(directory.path(), "known", b"a\na\nz\n");
    let args = ["--repeated", "--known", &known];
    assert_eq!(dedup(&args, b"b\na\nb\na\n").text(), "a\nb\n");
}

#[test]
fn a_key_is_written_once_in_each_window() {
    let args = [
        "--repeated",
        "-k",
        "2",
        "--time-field",
        "1",
        "--window",
        "10s",
        "--filter",
        "stamped:bits=64",
    ];
    // Passed at 0 and 12; written at 1 and, as the second filter forgets too, at 13.
    let input = b"0,a\n1,a\n9,a\n12,a\n13,a\n14,a\n";
    assert_eq!(dedup(&args, input).text(), "1,a\n13,a\n");
}

#[test]
fn contradictions_are_errors() {
    assert_errors(
        |args| dedup(args, INPUT),
        &[
            "--repeated --invert | cannot be used with",
            "--repeated --tag | cannot be used with",
            "--repeated --tag-file f | cannot be used with",
        ],
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_output_is_that_of_counters_at_any_thread_count(
        keys in vec(0_u32..3000, 0..8000),
        window in prop::option::of(1_usize..900),
    ) {
        let mut input = String::new();
        for key in &keys {
            let _ = writeln!(input, "{key}");
        }
        // When each key was last passed, and last written.
        let (mut passed, mut written) = (HashMap::new(), HashMap::new());
        let inside = |last: Option<&usize>, now: usize| {
            last.is_some_and(|last| window.is_none_or(|window| now - last <= window))
        };
        let mut expected = String::new();
        for (now, key) in keys.iter().enumerate() {
            if !inside(passed.get(key), now) {
                passed.insert(key, now);
            } else if !inside(written.get(key), now) {
                written.insert(key, now);
                let _ = writeln!(expected, "{key}");
            }
        }
        let length = window.map(|window| window.to_string());
        let options = length.as_ref().map(|length| {
            ["--window", length.as_str(), "--filter", "stamped:bits=64"]
        });
        for threads in ["1", "3"] {
            let args = ["--repeated", "--threads", threads];
            let options: &[&str] = options.as_ref().map_or(&[], |options| &options[..]);
            let run = dedup(&[&args[..], options].concat(), input.as_bytes());
            prop_assert_eq!(run.text(), expected.as_str(), "{} threads", threads);
        }
    }
}
