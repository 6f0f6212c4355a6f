//! `echoless eval --input`: files as streams, and what is wrong with them.

use std::collections::HashSet;
use std::fs;

use serde_json::Value;

use crate::eval::{eval, json};
use crate::run::{echoless, file};

#[test]
fn a_file_is_a_stream_of_its_lines_or_fields() {
    let directory = tempfile::tempdir().unwrap();
    let lines: String = (0..5000_u32)
        .map(|i| format!("{i};{}\n", i * i % 997))
        .collect();
    let path = file(directory.path(), "lines", lines.as_bytes());
    let spec = "bloom:k=4,memory=64KiB";
    let score = |args: &[&str]| {
        json(&[&["--input", &path, spec], args].concat())["filters"][0]["score"].clone()
    };
    assert_eq!(score(&[])["distinct"], 5000);
    let keys: HashSet<u32> = (0..5000).map(|i| i * i % 997).collect();
    let by_field = score(&["-k", "2", "-d", ";"]);
    assert_eq!(by_field["distinct"], keys.len());
    assert_eq!(by_field["duplicates"], 5000 - keys.len());
    let run = echoless(
        &["eval", "--input", "-", spec, "--to-json", "-"],
        b"a\nb\na",
    );
    let all: Value = serde_json::from_str(&run.text()).unwrap();
    assert_eq!(all["filters"][0]["score"]["duplicates"], 1);
}

/// The records of a file of any format are those of `dedup`, and so are the errors.
#[test]
fn a_file_is_read_as_by_dedup() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| file(directory.path(), name, content);
    let csv = write("csv", b"\xef\xbb\xbfid,text\n1,\"a\nb\"\n\n2,\"a\nb\"\n3\n");
    let jsonl = write("jsonl", b"{\"id\":1}\n{\"id\":1.0}\n{\"id\":\"1\"}\n");
    let fixed = write("fixed", b"a1b2a3");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    std::io::Write::write_all(&mut encoder, b"a\nb\na\n").unwrap();
    let gzip = write("gzip", &encoder.finish().unwrap());
    let csv_key = ["--csv", "--header", "-k", "text"];
    for (path, options, fresh, duplicates) in [
        (&csv, &["--csv", "--header"][..], 4, 0),
        (&csv, &[&csv_key[..], &["--missing", "skip"]].concat(), 1, 1),
        (
            &csv,
            &[&csv_key[..], &["--missing", "empty"]].concat(),
            2,
            1,
        ),
        (&jsonl, &["--format", "jsonl", "-k", "id"], 2, 1),
        (&fixed, &["--format", "fixed:2", "-k", "0"], 2, 1),
        (&gzip, &[], 2, 1),
        (&gzip, &["--no-decompress"], 1, 0),
    ] {
        let score = json(&[&["--input", path, "lru:memory=64KiB"], options].concat());
        let score = &score["filters"][0]["score"];
        let counts = (score["distinct"].as_u64(), score["duplicates"].as_u64());
        assert_eq!(counts, (Some(fresh), Some(duplicates)), "{options:?}");
        let args = ["dedup", "-q", "--stats", "-", "-o", "/dev/null", path];
        let run = echoless(&[&args, options].concat(), b"");
        let stats: Value = serde_json::from_str(&run.text()).unwrap();
        assert_eq!(stats["duplicates"].as_u64(), counts.1, "{options:?}");
    }
    for (path, options) in [
        (&csv, &csv_key[..]),
        (&jsonl, &["--format", "jsonl", "-k", "name"]),
        (&csv, &["--max-record", "4"]),
        (&fixed, &["--format", "fixed:4"]),
        (&csv, &["--header", "-k", "name"]),
    ] {
        let dedup = ["dedup", "-q", "-o", "/dev/null", path];
        let expected = echoless(&[&dedup, options].concat(), b"")
            .error()
            .to_owned();
        let args = ["-m", "64k", "lru", "--input", path];
        assert_eq!(
            eval(&[&args, options].concat()).error(),
            expected,
            "{options:?}"
        );
        let args = ["plan", "-q", "-m", "64k", "--sample", path];
        let plan = echoless(&[&args, options].concat(), b"");
        assert_eq!(plan.error(), expected, "{options:?}");
    }
}

/// A file may have no end: its start is used, and so much memory.
#[test]
fn inputs_without_end_are_read_up_to_a_bound() {
    let lines: String = (0..5000).map(|i| format!("{}\n", i % 4000)).collect();
    let args = ["eval", "lru", "-m", "1M", "--input", "-", "--to-json", "-"];
    let most = ["--max-records", "4500"];
    let run = echoless(&[&args[..], &most].concat(), lines.as_bytes());
    let message =
        "echoless: standard input: only the first 4,500 records are used (--max-records)\n";
    assert_eq!((run.code, run.stderr.as_str()), (0, message));
    let all: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!(all["records"], 4500);
    assert_eq!(all["filters"][0]["score"]["duplicates"], 500);
    // The input has no more records than allowed, and a quiet run writes nothing to standard error.
    let most = ["--max-records", "5k"];
    let all = echoless(&[&args[..], &most].concat(), lines.as_bytes()).text();
    assert!(all.contains("\"records\": 5000"), "{all}");
    let quiet = ["--max-records", "10", "-q"];
    let all = echoless(&[&args[..], &quiet].concat(), lines.as_bytes()).text();
    assert!(all.contains("\"records\": 10"), "{all}");
    let sample = [
        "plan",
        "-q",
        "-m",
        "64k",
        "--max-records",
        "1000",
        "--spec-only",
    ];
    let sample = [&sample[..], &["--sample", "-", "--budget", "10ms"]].concat();
    assert!(echoless(&sample, lines.as_bytes()).text().contains(','));
}

#[cfg(unix)]
#[test]
fn devices_without_end_are_errors() {
    let run = eval(&[
        "lru",
        "-m",
        "1M",
        "--input",
        "/dev/zero",
        "--max-record",
        "1M",
    ]);
    assert!(
        run.error().contains("longer than 1 MiB (--max-record)"),
        "{}",
        run.error()
    );
    for (command, option) in [("eval", "--specs"), ("dedup", "--filter")] {
        let directory = tempfile::tempdir().unwrap();
        let endless = directory.path().join("endless.toml");
        std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
        let endless = endless.to_str().unwrap();
        let run = echoless(&[command, option, endless], b"");
        let expected = format!("{endless}: longer than 1,048,576 bytes");
        assert_eq!(run.error(), expected, "{command}");
    }
}

#[test]
fn bad_lines_and_overwritten_inputs_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "lines", b"a,b\nc\n");
    let run = eval(&["bloom", "-m", "1k", "--input", &path, "-k", "2"]);
    let expected = format!("{path}, line 2: field 2 of the key is missing");
    assert!(run.error().starts_with(&expected), "{}", run.error());
    let run = eval(&["bloom", "-m", "1k", "--input", &path, "--to-csv", &path]);
    assert_eq!(run.error(), format!("{path}: is also an input"));
    assert_eq!(fs::read(&path).unwrap(), b"a,b\nc\n");
    let empty = file(directory.path(), "empty", b"");
    let run = eval(&["bloom", "-m", "1k", "--input", &empty]);
    assert!(
        run.error()
            .contains("/empty: no record, or none with a key: expected 1 or more"),
        "{}",
        run.error()
    );
}
