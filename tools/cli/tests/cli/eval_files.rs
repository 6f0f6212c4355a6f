//! `echoless eval --input`: files as streams, and what is wrong with them.

use std::collections::HashSet;

use serde_json::Value;

use crate::codecs::compress;
use crate::eval::eval;
use crate::run::{Folder, echoless};

/// What `eval` finds in a file of the folder.
fn found(folder: &Folder, args: &str) -> Value {
    let run = folder.echoless(format!("eval {args} --to-json -"));
    serde_json::from_str(&run.text()).unwrap()
}

#[test]
fn a_file_is_a_stream_of_its_lines_or_fields() {
    let lines: String = (0..5000_u32)
        .map(|i| format!("{i};{}\n", i * i % 997))
        .collect();
    let folder = Folder::with(&[("lines", lines)]);
    let spec = "bloom:k=4,memory=64KiB";
    let score = |options: &str| {
        let all = found(&folder, &format!("{spec} --input lines {options}"));
        all["filters"][0]["score"].clone()
    };
    assert_eq!(score("")["distinct"], 5000);
    let keys: HashSet<u32> = (0..5000).map(|i| i * i % 997).collect();
    let by_field = score("-k 2 -d ;");
    assert_eq!(by_field["distinct"], keys.len());
    assert_eq!(by_field["duplicates"], 5000 - keys.len());
    let run = echoless(format!("eval --input - {spec} --to-json -"), "a\nb\na");
    let all: Value = serde_json::from_str(&run.text()).unwrap();
    assert_eq!(all["filters"][0]["score"]["duplicates"], 1);
}

/// The records of a file of any format are those of `dedup`, and so are the errors.
#[test]
fn a_file_is_read_as_by_dedup() {
    let folder = Folder::with(&[
        (
            "csv",
            &b"\xef\xbb\xbfid,text\n1,\"a\nb\"\n\n2,\"a\nb\"\n3\n"[..],
        ),
        ("jsonl", b"{\"id\":1}\n{\"id\":1.0}\n{\"id\":\"1\"}\n"),
        ("fixed", b"a1b2a3"),
        ("gzip", &compress("gzip", b"a\nb\na\n")),
    ]);
    for (args, fresh, duplicates) in [
        ("csv --csv --header", 4, 0),
        ("csv --csv --header -k text --missing skip", 1, 1),
        ("csv --csv --header -k text --missing empty", 2, 1),
        ("jsonl --format jsonl -k id", 2, 1),
        ("fixed --format fixed:2 -k 0", 2, 1),
        ("gzip", 2, 1),
        ("gzip --no-decompress", 1, 0),
    ] {
        let all = found(&folder, &format!("lru:memory=64KiB --input {args}"));
        let score = &all["filters"][0]["score"];
        let counts = (score["distinct"].as_u64(), score["duplicates"].as_u64());
        assert_eq!(counts, (Some(fresh), Some(duplicates)), "{args}");
        let run = folder.echoless(format!("dedup -q --stats - -o /dev/null {args}"));
        let stats: Value = serde_json::from_str(&run.text()).unwrap();
        assert_eq!(stats["duplicates"].as_u64(), counts.1, "{args}");
    }
    for args in [
        "csv --csv --header -k text",
        "jsonl --format jsonl -k name",
        "csv --max-record 4",
        "fixed --format fixed:4",
        "csv --header -k name",
    ] {
        let run = folder.echoless(format!("dedup -q -o /dev/null {args}"));
        for other in ["eval -m 64k lru --input", "plan -q -m 64k --sample"] {
            let found = folder.echoless(format!("{other} {args}"));
            assert_eq!(found.error(), run.error(), "{other} {args}");
        }
    }
}

/// A file may have no end: its start is used, and so much memory.
#[test]
fn inputs_without_end_are_read_up_to_a_bound() {
    let lines: String = (0..5000).map(|i| format!("{}\n", i % 4000)).collect();
    let args = "eval lru -m 1M --input - --to-json - --max-records";
    let run = echoless(format!("{args} 4500"), &lines);
    let message =
        "echoless: standard input: only the first 4,500 records are used (--max-records)\n";
    assert_eq!((run.code, run.stderr.as_str()), (0, message));
    let all: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(all["records"], 4500);
    assert_eq!(all["filters"][0]["score"]["duplicates"], 500);
    // The input has no more records than allowed, and a quiet run writes nothing to standard error.
    for (most, told) in [("5k", "\"records\": 5000"), ("10 -q", "\"records\": 10")] {
        let all = echoless(format!("{args} {most}"), &lines).text();
        assert!(all.contains(told), "{all}");
    }
    let sample = "plan -q -m 64k --max-records 1000 --spec-only --sample - --budget 10ms";
    assert!(echoless(sample, &lines).text().contains(','));
}

#[test]
fn devices_without_end_are_errors() {
    let run = eval("lru -m 1M --input /dev/zero --max-record 1M");
    run.fails_with(
        "/dev/zero, line 1: the record that begins here is longer than 1 MiB (--max-record)",
    );
    let folder = Folder::new();
    std::os::unix::fs::symlink("/dev/zero", folder.path("endless.toml")).unwrap();
    for args in ["eval --specs endless.toml", "dedup --filter endless.toml"] {
        let run = folder.echoless(args);
        run.fails_with("endless.toml: longer than 1,048,576 bytes");
    }
}

#[test]
fn bad_lines_and_overwritten_inputs_are_named() {
    let folder = Folder::with(&[("lines", "a,b\nc\n"), ("empty", "")]);
    for (args, error) in [
        (
            "lines -k 2",
            "lines, line 2: field 2 of the key is missing: the record has 1 (--missing skip or \
             empty allows that)",
        ),
        ("lines --to-csv lines", "lines: is also an input"),
        (
            "empty",
            "empty: no record, or none with a key: expected 1 or more",
        ),
    ] {
        folder
            .echoless(format!("eval bloom -m 1k --input {args}"))
            .fails_with(error);
        assert_eq!(folder.read("lines"), "a,b\nc\n");
    }
}
