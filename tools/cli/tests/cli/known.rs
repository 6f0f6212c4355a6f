//! `--known`: files whose records count as seen.

use std::collections::HashSet;
use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::run::{assert_errors, dedup, echoless, file, path};

#[test]
fn known_records_are_dropped_and_none_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let known = file(directory.path(), "known", b"a\nb\nb\nc");
    let more = file(directory.path(), "more", b"d\n");
    let empty = file(directory.path(), "empty", b"");
    let input = b"c\nx\nd\nx\na\ny";
    let one = dedup(&["--known", &known], input);
    assert_eq!(one.text(), "x\nd\ny");
    let both = ["--known", &known, "--known", &more, "--known", &empty];
    assert_eq!(dedup(&both, input).text(), "x\ny");
    let inverted = [&both[..], &["--invert"]].concat();
    assert_eq!(dedup(&inverted, input).text(), "c\nd\nx\na\n");
    let counted = [&both[..], &["--count"]].concat();
    assert_eq!(dedup(&counted, input).text(), "2\n");
    // Standard input can be the known one.
    let args = ["--known", "-", &known];
    assert_eq!(dedup(&args, b"b\nq\n").text(), "a\nc");
}

#[test]
fn duplicates_among_known_records_do_not_count() {
    let directory = tempfile::tempdir().unwrap();
    let known = file(directory.path(), "known", b"a\na\n");
    let stats = path(&directory, "stats");
    let args = ["--fail-on-duplicates", "--known", &known, "--stats", &stats];
    assert_eq!(dedup(&args, b"b\nc\nd\n").text(), "b\nc\nd\n");
    let found: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    for (field, expected) in [
        ("records", 3),
        ("fresh", 3),
        ("duplicates", 0),
        ("known", 2),
        ("known_unjudged", 0),
        ("bytes_in", 6),
        ("bytes_out", 6),
    ] {
        assert_eq!(found[field], expected, "{field}");
    }
    let run = dedup(&args, b"b\na\n");
    assert_eq!((run.code, run.stdout.as_slice()), (1, &b"b\n"[..]));

    let run = echoless(&["dedup", "-m", "64k", "--known", &known], b"b\n");
    let first = run.stderr.lines().next().unwrap();
    assert!(first.contains(" 1 record (2 B) "), "{first}");
    assert!(first.ends_with("; 2 records known"), "{first}");
}

#[test]
fn each_known_file_has_its_header() {
    let directory = tempfile::tempdir().unwrap();
    let known = file(directory.path(), "known", b"id,v\r\n1,a\r\n");
    let args = ["--header", "-k", "id", "--crlf", "--known", &known];
    // The header is written as the input has it.
    assert_eq!(dedup(&args, b"id,v\n1,b\n2,b\n").text(), "id,v\n2,b\n");
    assert_eq!(dedup(&args, b"").text(), "");
    let other = file(directory.path(), "other", b"v,id\na,1\n");
    let args = ["--header", "-k", "id", "--known", &other];
    let run = dedup(&args, b"id,v\n1,b\n");
    assert!(run.error().contains("header differs"), "{}", run.error());
}

#[test]
fn positions_are_those_of_the_inputs() {
    let directory = tempfile::tempdir().unwrap();
    let known = file(directory.path(), "known", b"a\nb\n");
    let input = file(directory.path(), "input", b"x\nb\nx\n");
    let explain = path(&directory, "why");
    let option = format!("--explain={explain}");
    assert_eq!(
        dedup(&[&option, "--known", &known, &input], b"").text(),
        "x\n"
    );
    let name = serde_json::to_string(&input).unwrap();
    assert_eq!(
        fs::read_to_string(&explain).unwrap(),
        format!(
            "{{\"input\":{name},\"record\":2,\"offset\":2,\"bytes\":2}}\n\
             {{\"input\":{name},\"record\":3,\"offset\":4,\"bytes\":2}}\n"
        )
    );
}

#[test]
fn faulty_known_records_end_the_run_or_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let known = file(directory.path(), "known", b"1,a\n2\n3,c\n");
    let output = file(directory.path(), "output", b"old");
    let args = ["-k", "2", "--known", &known, "-o", &output];
    let run = dedup(&args, b"4,d\n");
    let expected = format!("{known}, line 2: field 2 of the key is missing");
    assert!(run.error().starts_with(&expected), "{}", run.error());
    // Nothing was written, so the output is as it was.
    assert_eq!(fs::read(&output).unwrap(), b"old");

    let rejects = path(&directory, "bad");
    let stats = path(&directory, "stats");
    let args = [
        "-k",
        "2",
        "--known",
        &known,
        "--rejects",
        &rejects,
        "--stats",
        &stats,
    ];
    assert_eq!(dedup(&args, b"4,c\n5\n6,d\n").text(), "6,d\n");
    assert_eq!(fs::read(&rejects).unwrap(), b"5\n");
    let found: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    assert_eq!(
        (&found["known"], &found["known_unjudged"]),
        (&3.into(), &1.into())
    );
    assert_eq!(
        (&found["records"], &found["rejected"]),
        (&3.into(), &1.into())
    );
}

#[test]
fn times_of_known_records_count() {
    let directory = tempfile::tempdir().unwrap();
    let known = file(directory.path(), "known", b"0,a\n100,b\n");
    let args = [
        "-k",
        "2",
        "--time-field",
        "1",
        "--window",
        "10s",
        "--filter",
        "stamped:bits=64",
        "--known",
        &known,
    ];
    assert_eq!(dedup(&args, b"105,b\n105,a\n").text(), "105,a\n");
    // In a window of records, known records count as records.
    let known = file(directory.path(), "many", b"a\nb\nc\nd\n");
    for (window, expected) in [("3", "a\n"), ("4", "")] {
        let args = [
            "--window",
            window,
            "--filter",
            "stamped:bits=64",
            "--known",
            &known,
        ];
        assert_eq!(dedup(&args, b"a\n").text(), expected, "{window}");
    }
}

#[test]
fn adding_to_a_known_file_is_answered_with_tee() {
    let directory = tempfile::tempdir().unwrap();
    let known = file(directory.path(), "known", b"a\n");
    let appending = fs::OpenOptions::new().append(true).open(&known).unwrap();
    let mut command = crate::run::command(&["dedup", "-q", "--known", &known]);
    command.stdout(appending);
    assert_eq!(
        crate::run::run_on(command, b"a\nb\n").error(),
        format!(
            "standard output: is also a file of --known; to add the records to it, end the command \
             with | tee -a {known}"
        )
    );
    assert_eq!(fs::read(&known).unwrap(), b"a\n");
}

#[test]
fn what_known_files_cannot_be() {
    let directory = tempfile::tempdir().unwrap();
    let known = file(directory.path(), "known", b"a\n");
    let missing = directory.path().join("missing");
    let cases = [
        format!("--known {known} -o {known} | is also a file of --known; to add"),
        format!("--known {known} --duplicates {known} | is also a file of --known"),
        format!("--known {} | No such file", missing.display()),
        "--known - | invalid --known=-: expected a file".into(),
        "--known - - | invalid --known=-: expected a file".into(),
        format!("--known - --known - {known} | invalid --known=-: expected a file"),
    ];
    let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
    assert_errors(|args| dedup(args, b"a\n"), &cases);
    assert_eq!(fs::read(&known).unwrap(), b"a\n");
}

#[test]
fn known_files_are_read_again_by_every_run() {
    let directory = tempfile::tempdir().unwrap();
    let known = file(directory.path(), "known", b"a\n");
    let input = file(directory.path(), "input", b"a\nb\n");
    let again = file(directory.path(), "again", b"a\nb\nc\n");
    let list = path(&directory, "list");
    let args = ["--known", &known, "--skip-seen-files", &list];
    let run = |input: &str| dedup(&[&args[..], &[input]].concat(), b"").text();
    assert_eq!(run(&input), "b\n");
    assert_eq!(run(&input), "");
    assert_eq!(run(&again), "b\nc\n");
}

#[cfg(unix)]
#[test]
fn compressed_known_files_are_decompressed() {
    let directory = tempfile::tempdir().unwrap();
    let known = path(&directory, "known.gz");
    let packed = dedup(&["--compress", "gzip", "-o", &known], b"a\nb\n");
    assert_eq!(packed.text(), "");
    assert_eq!(dedup(&["--known", &known], b"b\nc\n").text(), "c\n");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_output_is_that_of_a_set(
        known in vec(0_u32..2000, 0..3000),
        input in vec(0_u32..2000, 0..3000),
        threads in 1_usize..4,
        default_memory: bool,
    ) {
        let text = |records: &[u32]| -> String {
            records.iter().map(|record| format!("{record}\n")).collect()
        };
        let mut seen: HashSet<u32> = known.iter().copied().collect();
        let expected: Vec<u32> = input.iter().copied().filter(|key| seen.insert(*key)).collect();
        let directory = tempfile::tempdir().unwrap();
        let known = file(directory.path(), "known", text(&known).as_bytes());
        let input = file(directory.path(), "input", text(&input).as_bytes());
        let threads = threads.to_string();
        let memory: &[&str] = if default_memory { &[] } else { &["-m", "1MiB"] };
        let args = ["dedup", "-q", "--threads", &threads, "--known", &known, &input];
        let run = echoless(&[&args[..], memory].concat(), b"");
        prop_assert_eq!(run.text(), text(&expected));
    }
}
