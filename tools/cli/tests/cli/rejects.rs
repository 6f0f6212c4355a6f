//! Faulty records that are set aside, and the positions of dropped ones.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::run::{Run, assert_errors, dedup, echoless, file};

/// The files of a run, in a folder of its own.
struct Files {
    directory: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().into()
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap()).into_owned()
    }

    /// The lines of a file of positions.
    fn positions(&self, name: &str) -> Vec<Value> {
        let text = self.text(name);
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Runs with `--rejects` and checks that the positions are those of the rejected bytes in `input`.
#[track_caller]
fn rejecting(files: &Files, args: &[&str], input: &[u8]) -> (Run, Vec<String>) {
    let bad = files.path("bad");
    let run = dedup(&[args, &["--rejects", &bad]].concat(), input);
    let mut listed = Vec::new();
    let mut reasons = Vec::new();
    for position in files.positions("bad.jsonl") {
        assert_eq!(position["input"], "standard input");
        let at = |name: &str| usize::try_from(position[name].as_u64().unwrap()).unwrap();
        let (offset, bytes) = (at("offset"), at("bytes"));
        listed.extend(&input[offset..offset + bytes]);
        let reason = position["reason"].as_str().unwrap();
        reasons.push(format!("{}: {reason}", at("record")));
    }
    let written = fs::read(&bad).unwrap();
    // A terminator that the input lacks is supplied.
    assert!(listed == written || [&listed[..], b"\n"].concat() == written);
    (run, reasons)
}

#[test]
fn records_without_a_key_are_rejected() {
    let files = Files::new();
    let input = "1,a\n2\n3,a\n\n4,b\n";
    let (run, reasons) = rejecting(&files, &["-k", "2"], input.as_bytes());
    assert_eq!(run.text(), "1,a\n4,b\n");
    assert_eq!(files.text("bad"), "2\n\n");
    assert_eq!(
        reasons,
        [
            "2: field 2 of the key is missing: the record has 1",
            "4: field 2 of the key is missing: the record has 1",
        ]
    );
    // A header is the first record, and every output of records has it.
    let bad = files.path("bad");
    let run = dedup(
        &["-k", "2", "--header", "--rejects", &bad],
        input.as_bytes(),
    );
    assert_eq!(run.text(), "1,a\n3,a\n4,b\n");
    assert_eq!(files.text("bad"), "1,a\n2\n\n");
    let numbers: Vec<u64> = (files.positions("bad.jsonl").iter())
        .map(|position| position["record"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [2, 4]);
    // Records that --missing allows are not faulty.
    let (run, reasons) = rejecting(&files, &["-k", "2", "--missing", "skip"], input.as_bytes());
    assert_eq!(run.text(), "1,a\n2\n\n4,b\n");
    assert_eq!(reasons, [""; 0]);
}

#[test]
fn json_that_is_none_is_rejected_even_if_missing_members_pass() {
    let files = Files::new();
    let input = "{\"a\":1}\n{\"a\":\n{\"b\":1}\n{\"a\":1.0}\nx\n";
    let args = ["--format", "jsonl", "-k", "a"];
    let (run, reasons) = rejecting(&files, &args, input.as_bytes());
    assert_eq!(run.text(), "{\"a\":1}\n");
    assert_eq!(
        reasons,
        [
            "2: invalid JSON at column 6: expected a value",
            "3: `a` of the key is missing",
            "5: invalid JSON at column 1: expected a value",
        ]
    );
    let skip = [&args[..], &["--missing", "skip"]].concat();
    let (run, reasons) = rejecting(&files, &skip, input.as_bytes());
    assert_eq!(run.text(), "{\"a\":1}\n{\"b\":1}\n");
    assert_eq!(reasons.len(), 2);
}

#[test]
fn the_incomplete_end_of_an_input_is_rejected_and_the_next_input_follows() {
    let files = Files::new();
    let directory = files.directory.path();
    let bad = files.path("bad");
    for (format, cut, whole, kept, rejected, reason) in [
        (
            "fixed:2",
            &b"ababc"[..],
            &b"abxy"[..],
            &b"abxy"[..],
            &b"c"[..],
            "after 1 of 2 bytes",
        ),
        (
            "prefixed:u8",
            b"\x01a\x03bc",
            b"\x01a\x01b",
            b"\x01a\x01b",
            b"\x03bc",
            "after 3 of 4 bytes",
        ),
        (
            "csv",
            b"a\n\"b\nc\n",
            b"c\na\n",
            b"a\nc\n",
            b"\"b\nc\n",
            "does not end",
        ),
    ] {
        let inputs = [file(directory, "cut", cut), file(directory, "whole", whole)];
        let args = [
            "--format",
            format,
            "--rejects",
            &bad,
            &inputs[0],
            &inputs[1],
        ];
        assert_eq!(dedup(&args, b"").bytes(), kept, "{format}");
        assert_eq!(fs::read(&bad).unwrap(), rejected, "{format}");
        let [position] = &files.positions("bad.jsonl")[..] else {
            panic!("{format}: one position");
        };
        assert_eq!(position["input"], inputs[0].as_str());
        assert_eq!(position["offset"], cut.len() - rejected.len());
        assert!(
            position["reason"].as_str().unwrap().contains(reason),
            "{format}: {position}"
        );
        // Without --rejects it ends the run.
        let ended = dedup(&["--format", format, &inputs[0], &inputs[1]], b"");
        assert!(ended.error().contains(reason), "{}", ended.error());
    }
}

#[test]
fn late_records_and_those_without_a_time_are_rejected() {
    let files = Files::new();
    let args = [
        "--window",
        "10s",
        "--time-field",
        "2",
        "-k",
        "1",
        "--late",
        "reject",
    ];
    let input = "a,100\nb,200\nc,150\nd,x\nb,205\nc,150\ne,206\n";
    let (run, reasons) = rejecting(&files, &args, input.as_bytes());
    assert_eq!(run.text(), "a,100\nb,200\ne,206\n");
    let late = "the record is later than window and lateness allow";
    assert_eq!(
        reasons,
        [
            format!("3: {late}"),
            "4: field 2 is not a time of --time-format auto: `x`".into(),
            format!("6: {late}"),
        ]
    );
    // With the window of a count, rejected records count as records.
    let args = ["--window", "2", "-k", "2"];
    let (run, _) = rejecting(&files, &args, b"1,a\n2\n3,a\n4\n5\n6,a\n");
    assert_eq!(run.text(), "1,a\n6,a\n");
}

#[test]
fn the_counts_of_rejected_records_are_told() {
    let files = Files::new();
    let (bad, stats) = (files.path("bad"), files.path("stats"));
    let args = [
        "dedup",
        "-m",
        "1MiB",
        "-k",
        "2",
        "--rejects",
        &bad,
        "--stats",
        &stats,
    ];
    let run = echoless(&args, b"1,a\n2\n3,a\n");
    assert_eq!(run.code, 0);
    assert!(
        run.stderr.contains("3 records (10 B)")
            && run
                .stderr
                .contains("1 fresh, 1 duplicate (33.33 %), 1 rejected"),
        "{}",
        run.stderr
    );
    let stats: Value = serde_json::from_str(&files.text("stats")).unwrap();
    assert_eq!(stats["rejected"], 1);
    assert_eq!(stats["fresh"], 1);
    assert_eq!(stats["unkeyed"], 0);
    let count = dedup(&["-k", "2", "--rejects", &bad, "--count"], b"1,a\n2\n3,a\n");
    assert_eq!(count.text(), "1\n");
}

#[test]
fn positions_of_dropped_records() {
    let files = Files::new();
    let directory = files.directory.path();
    let one = file(directory, "one", b"id,name\n1,\"a\nb\"\n1,x\n");
    let two = file(directory, "two", b"id,name\n2,c\n1,d\n");
    let dropped = files.path("dropped");
    let args = ["--csv", "--header", "-k", "id", "--duplicates", &dropped];
    let run = dedup(&[&args[..], &["--explain", &one, &two]].concat(), b"");
    assert_eq!(run.text(), "id,name\n1,\"a\nb\"\n2,c\n");
    assert_eq!(files.text("dropped"), "id,name\n1,x\n1,d\n");
    let expected = [
        json!({"input": one, "record": 3, "offset": 16, "bytes": 4}),
        json!({"input": two, "record": 3, "offset": 12, "bytes": 4}),
    ];
    assert_eq!(files.positions("dropped.jsonl"), expected);
    // The file may have a name of its own, and needs no file of duplicates.
    let option = format!("--explain={}", files.path("why"));
    let run = dedup(&[&args[..4], &[&option, &one, &two]].concat(), b"");
    assert_eq!(run.code, 0);
    assert_eq!(files.positions("why"), expected);
}

#[test]
fn positions_lead_to_the_records_on_any_number_of_threads() {
    let files = Files::new();
    let mut input = Vec::new();
    for index in 0_u32..200_000 {
        let line = match index % 1000 {
            7 => "no comma\n".into(),
            _ => format!("{index},{}\n", index * 7919 % 100_003),
        };
        input.extend(line.bytes());
    }
    let input_file = file(files.directory.path(), "in", &input);
    let (bad, dropped) = (files.path("bad"), files.path("dropped"));
    let mut first = None;
    for threads in ["1", "2", "3", "8"] {
        let args = ["-k", "2", "--threads", threads, "--rejects", &bad];
        let side = [
            "-m",
            "8MiB",
            "--duplicates",
            &dropped,
            "--explain",
            &input_file,
        ];
        let run = echoless(&[&["dedup", "-q"], &args[..], &side].concat(), b"");
        let outputs = ["bad", "bad.jsonl", "dropped", "dropped.jsonl"].map(|name| files.text(name));
        let outputs = (run.bytes(), outputs);
        assert!(
            *first.get_or_insert_with(|| outputs.clone()) == outputs,
            "{threads}"
        );
    }
    for (records, count) in [("bad", 200), ("dropped", 199_800 - 100_003)] {
        let positions = files.positions(&format!("{records}.jsonl"));
        assert_eq!(positions.len(), count);
        let lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
        let found: Vec<u8> = (positions.iter())
            .flat_map(|position| {
                let at = |name: &str| usize::try_from(position[name].as_u64().unwrap()).unwrap();
                let bytes = &input[at("offset")..at("offset") + at("bytes")];
                assert_eq!(bytes, lines[at("record") - 1]);
                bytes
            })
            .copied()
            .collect();
        assert!(found == fs::read(files.path(records)).unwrap());
    }
}

#[test]
fn positions_of_dropped_packets() {
    let files = Files::new();
    let capture = files.path("capture");
    let args = [
        "gen",
        "packets",
        "-n",
        "500",
        "--duplicates",
        "0.4",
        "-o",
        &capture,
    ];
    let generated = echoless(&args, b"");
    assert_eq!(generated.code, 0, "{}", generated.stderr);
    let dropped = files.path("dropped");
    let args = [
        "packets",
        "-q",
        &capture,
        "-o",
        "-",
        "--duplicates",
        &dropped,
        "--explain",
    ];
    let run = echoless(&args, b"");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let bytes = fs::read(Path::new(&capture)).unwrap();
    let positions = files.positions("dropped.jsonl");
    assert!(!positions.is_empty());
    let at =
        |position: &Value, name: &str| usize::try_from(position[name].as_u64().unwrap()).unwrap();
    let packets: Vec<u8> = (positions.iter())
        .flat_map(|position| {
            &bytes[at(position, "offset")..at(position, "offset") + at(position, "bytes")]
        })
        .copied()
        .collect();
    assert!(fs::read(dropped).unwrap().ends_with(&packets));
    assert!(
        positions
            .iter()
            .all(|position| (1..=500).contains(&at(position, "record")))
    );
}

#[test]
fn bad_combinations() {
    assert_errors(
        |args| dedup(args, b""),
        &[
            "--rejects - | expected the name of a file",
            "--rejects /dev/null | expected the name of a file",
            "--explain | --explain=FILE, or --duplicates FILE beside --explain",
            "--explain --duplicates - | expected the name of a file",
            "--explain --invert --duplicates x | cannot be used with",
            "--rejects /no/such/position | /no/such/position",
        ],
    );
}
