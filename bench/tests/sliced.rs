//! The experiments of paper 001 as a command: rows, comparisons and errors.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn sliced(arguments: &[&str], log: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_echoless-bench"));
    command.arg("sliced").args(arguments);
    command.arg("--log").arg(log).output().unwrap()
}

#[test]
fn messages_and_trees_agree_with_their_formulas() {
    let folder = tempfile::tempdir().unwrap();
    let absent = folder.path().join("absent.log");
    let csv = folder.path().join("rows.csv");
    let csv_text = csv.to_str().unwrap();
    let arguments = ["--only", "messages,tree", "--runs", "5", "--csv", csv_text];
    let output = sliced(&arguments, &absent);
    assert!(output.status.success(), "{output:?}");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("absent.log is absent"), "{errors}");
    assert!(errors.contains("within 10 % of their formulas"), "{errors}");
    let rows = fs::read_to_string(&csv).unwrap();
    let of = |part: &str| rows.lines().filter(|row| row.starts_with(part)).count();
    // Two measures of nine numbers of slices, three lookups and three streams.
    assert_eq!(of("messages,"), 2 * 9 * 3 * 3);
    // Hits and accesses of 2 + 5 levels and five levels of top-down testing, in two modes.
    assert_eq!(of("tree,"), 2 * 2 * (2 * 7 + 5));
    assert_eq!(of("fpr,"), 0);
    assert_eq!(rows.lines().filter(|row| row.ends_with(",no")).count(), 0);
    // The same again.
    assert!(sliced(&arguments, &absent).status.success());
    assert_eq!(fs::read_to_string(&csv).unwrap(), rows);
}

#[test]
fn an_access_log_is_a_stream_and_an_invalid_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let line = |client: u32, path: u32| {
        format!("10.0.0.{client} - - [1/May/2015:10:00:00 +0000] \"GET /{path} HTTP/1.1\" 200 1\n")
    };
    let text: String = (0..600)
        .map(|number| line(number % 7, number % 150))
        .collect();
    fs::write(&log, &text).unwrap();
    let output = sliced(&["--only", "tree", "--runs", "1"], &log);
    assert!(output.status.success(), "{output:?}");
    let rows = String::from_utf8(output.stdout).unwrap();
    assert!(rows.contains("access log"), "{rows}");
    fs::write(&log, text + "short\n").unwrap();
    let output = sliced(&["--only", "tree"], &log);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("access.log: line 601: expected at least 7 words"),
        "{error}"
    );
}
