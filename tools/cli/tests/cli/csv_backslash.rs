//! CSV in which a backslash makes the byte behind it content.

use crate::run::{assert_runs, assert_runs_with, echoless};

/// By RFC 4180 the value of the second record goes on in the third one.
const EXPORT: &str = "1,\"a\"\n1,\"size 3.5\\\"\"\n2,\"b\"\n3,\"c\"\n";

#[test]
fn quotes_behind_backslashes_end_no_field() {
    let keyed = format!("--csv-backslash -k 1 | {EXPORT} | 1,\"a\"\n2,\"b\"\n3,\"c\"\n");
    assert_runs_with(
        &["", "--read-bytes 1", "--threads 3"],
        &[
            &keyed,
            &format!("--csv-backslash | {EXPORT} | {EXPORT}"),
            // One value in several spellings.
            "--csv-backslash -k 2 | 1,\"3.5\\\"\"\n2,\"3.5\"\"\"\n3,3.5\\\"\n4,3.5\n | 1,\"3.5\\\"\"\n4,3.5\n",
            // Delimiters and newlines outside of quotes.
            "--csv-backslash -k 2 | 1,a\\,b\n2,\"a,b\"\n3,a\\\nb\n4,\"a\nb\"\n5,a\n | 1,a\\,b\n3,a\\\nb\n5,a\n",
            "--csv-backslash -k a --header | b,a\n1,\\\"\n2,\"\\\"\"\n | b,a\n1,\\\"\n",
            "--csv-backslash -k 1 -d ; --tag | a\\;b;1\n\"a;b\";2\n | a\\;b;1;fresh\n\"a;b\";2;duplicate\n",
            // An escaped newline ends no record, at the end of the input either.
            "--csv-backslash -k 1 --comment # | #\"\na\\\n | #\"\na\\\n",
            "--csv-backslash --crlf -k 1 | a\\\\\r\na\\\\\nb\r\n | a\\\\\r\nb\r\n",
        ],
    );
    assert_runs(&[
        "--csv-backslash -k 1 | 1,\"a\\\"\n2,b\n | !! line 1: a quoted field that begins in this record does not end",
        "--csv-backslash -k 1 | 1,a\n2,b\\ | 1,a\n!! line 2: the input ends behind a backslash",
        "--csv-backslash -d \\\\ |  | !! invalid --delimiter=",
        "--csv-backslash -z |  | !! --csv-backslash",
    ]);
}

#[test]
fn a_line_of_a_quoted_field_that_ends_in_an_escaped_quote_is_named_once() {
    let several = format!("{EXPORT}{EXPORT}");
    for (options, input, warns) in [
        ("--csv", EXPORT, true),
        ("--csv -k 1", &several, true),
        ("--csv -k 1", "1,\"a\n\",\"b\\\"\"\r\n2,\"b\"\r\n", true),
        ("--csv -k 1", "1,\"a\n\\\"\"b\n\"\n", false),
        ("--csv -k 1", "1,\"C:\\\",x\n2,\"a\nb\\\"\n", false),
        ("--csv-backslash -k 1", EXPORT, false),
    ] {
        let run = echoless(format!("dedup -m 64k --summary=line {options}"), input);
        let lines = run.stderr.lines();
        let warnings: Vec<&str> = lines.filter(|line| line.contains("quote")).collect();
        let is_of_line = |warning: &&str| {
            warning.starts_with("echoless: standard input, line 2: a quote opens a field of ")
                && warning.contains("--csv-backslash reads")
        };
        assert!(warnings.iter().all(is_of_line), "{input}: {warnings:?}");
        assert_eq!(
            (run.code, warnings.len()),
            (0, usize::from(warns)),
            "{input}: {warnings:?}"
        );
    }
}
