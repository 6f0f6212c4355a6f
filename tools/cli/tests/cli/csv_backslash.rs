//! CSV in which a backslash makes the byte behind it content.

use crate::run::{dedup, echoless};

/// By RFC 4180 the value of the second record goes on in the third one.
const EXPORT: &str = "1,\"a\"\n1,\"size 3.5\\\"\"\n2,\"b\"\n3,\"c\"\n";

#[test]
fn quotes_behind_backslashes_end_no_field() {
    for (options, input, expected) in [
        (&["-k", "1"][..], EXPORT, "1,\"a\"\n2,\"b\"\n3,\"c\"\n"),
        (&[], EXPORT, EXPORT),
        // One value in several spellings.
        (
            &["-k", "2"],
            "1,\"3.5\\\"\"\n2,\"3.5\"\"\"\n3,3.5\\\"\n4,3.5\n",
            "1,\"3.5\\\"\"\n4,3.5\n",
        ),
        // Delimiters and newlines outside of quotes.
        (
            &["-k", "2"],
            "1,a\\,b\n2,\"a,b\"\n3,a\\\nb\n4,\"a\nb\"\n5,a\n",
            "1,a\\,b\n3,a\\\nb\n5,a\n",
        ),
        (
            &["-k", "a", "--header"],
            "b,a\n1,\\\"\n2,\"\\\"\"\n",
            "b,a\n1,\\\"\n",
        ),
        (
            &["-k", "1", "-d", ";", "--tag"],
            "a\\;b;1\n\"a;b\";2\n",
            "a\\;b;1;fresh\n\"a;b\";2;duplicate\n",
        ),
        // An escaped newline ends no record, at the end of the input either.
        (&["-k", "1", "--comment", "#"], "#\"\na\\\n", "#\"\na\\\n"),
        (
            &["--crlf", "-k", "1"],
            "a\\\\\r\na\\\\\nb\r\n",
            "a\\\\\r\nb\r\n",
        ),
    ] {
        for reads in [&[][..], &["--read-bytes", "1"], &["--threads", "3"]] {
            let args = [&["--csv-backslash"], options, reads].concat();
            assert_eq!(
                dedup(&args, input.as_bytes()).text(),
                expected,
                "{args:?} {input}"
            );
        }
    }
    for (input, problem) in [
        (
            "1,\"a\\\"\n2,b\n",
            "line 1: a quoted field that begins in this record does not end",
        ),
        ("1,a\n2,b\\", "line 2: the input ends behind a backslash"),
    ] {
        let run = dedup(&["--csv-backslash", "-k", "1"], input.as_bytes());
        assert!(run.error().ends_with(problem), "{}", run.error());
    }
    let run = dedup(&["--csv-backslash", "-d", "\\\\"], b"");
    assert!(
        run.error().starts_with("invalid --delimiter="),
        "{}",
        run.error()
    );
    let run = dedup(&["--csv-backslash", "-z"], b"");
    assert!(run.error().contains("--csv-backslash"), "{}", run.error());
}

#[test]
fn a_line_of_a_quoted_field_that_ends_in_an_escaped_quote_is_named_once() {
    let several = format!("{EXPORT}{EXPORT}");
    for (options, input, line) in [
        (&["--csv"][..], EXPORT, Some(2)),
        (&["--csv", "-k", "1"], &several, Some(2)),
        (
            &["--csv", "-k", "1"],
            "1,\"a\n\",\"b\\\"\"\r\n2,\"b\"\r\n",
            Some(2),
        ),
        (&["--csv", "-k", "1"], "1,\"a\n\\\"\"b\n\"\n", None),
        (&["--csv", "-k", "1"], "1,\"C:\\\",x\n2,\"a\nb\\\"\n", None),
        (&["--csv-backslash", "-k", "1"], EXPORT, None),
    ] {
        let args = [&["dedup", "-m", "64k", "--summary=line"], options].concat();
        let run = echoless(&args, input.as_bytes());
        let warnings: Vec<&str> = run
            .stderr
            .lines()
            .filter(|line| line.contains("quote"))
            .collect();
        let expected = line.map(|line| {
            format!("echoless: standard input, line {line}: a quote opens a field of ")
        });
        assert_eq!(
            warnings.len(),
            usize::from(expected.is_some()),
            "{input}: {warnings:?}"
        );
        if let Some(expected) = expected {
            assert!(warnings[0].starts_with(&expected), "{warnings:?}");
            assert!(
                warnings[0].contains("--csv-backslash reads"),
                "{warnings:?}"
            );
        }
        assert_eq!(run.code, 0);
    }
}
