//! Records of several lines: paragraphs, and a number of lines.

use std::fs;

use crate::run::{assert_errors, dedup, echoless, file};

/// Sessions as a RADIUS server logs them. The second is a copy of the first.
const DETAIL: &str = "Mon Jan  6 10:00:00 2025\n\tId = \"1\"\n\tUser = \"u\"\n\n\
    Mon Jan  6 10:00:00 2025\n\tId = \"1\"\n\tUser = \"u\"\n\n\
    Mon Jan  6 10:00:01 2025\n\tId = \"2\"\n\tUser = \"u\"\n\n";

/// Pairs of lines, as bulk requests have them. The last is a copy of the first.
const BULK: &str = "{\"index\":{\"_id\":\"1\"}}\n{\"v\":\"a\"}\n{\"index\":{\"_id\":\"2\"}}\n\
    {\"v\":\"a\"}\n{\"index\":{\"_id\":\"1\"}}\n{\"v\":\"a\"}\n";

/// The text without these lines, numbered from 0.
fn without(text: &str, dropped: std::ops::Range<usize>) -> String {
    let lines = text.split_inclusive('\n').enumerate();
    lines
        .filter(|(at, _)| !dropped.contains(at))
        .map(|(_, line)| line)
        .collect()
}

#[test]
fn lines_stay_together() {
    let crlf = DETAIL.replace('\n', "\r\n");
    let directory = tempfile::tempdir().unwrap();
    for (options, input, expected) in [
        (
            &["--format", "paragraphs"][..],
            DETAIL,
            without(DETAIL, 4..8),
        ),
        (&["--format", "paragraphs"], &crlf, without(&crlf, 4..8)),
        (
            &["--format", "paragraphs", "-k", "3"],
            DETAIL,
            without(DETAIL, 4..12),
        ),
        (
            &["--format", "paragraphs", "-k", "!1"],
            DETAIL,
            without(DETAIL, 4..8),
        ),
        (
            &["--format", "paragraphs", "--keep", "last"],
            DETAIL,
            without(DETAIL, 0..4),
        ),
        (
            &["--format", "paragraphs", "-i", "-k", "1"],
            "A\nb\n\na\nc\n",
            "A\nb\n\n".into(),
        ),
        // Lines before a blank one, several blank ones, and none at the end.
        (
            &["--format", "paragraphs"],
            "\n\na\n\n\n\nb\n\n\na",
            "\n\na\n\n\n\nb\n\n".into(),
        ),
        (&["--format", "paragraphs"], "a\n\n\n\n", "a\n\n\n\n".into()),
        (&["--format", "lines:2"], BULK, without(BULK, 4..6)),
        (
            &["--format", "lines:2", "-k", "2"],
            BULK,
            without(BULK, 2..6),
        ),
        (&["--format", "lines:3"], BULK, BULK.into()),
        (&["--format", "lines:2"], "a\nb\na\nb", "a\nb\n".into()),
        (
            &[
                "--format",
                "lines:2",
                "--time-field",
                "1",
                "--window",
                "10s",
                "-k",
                "2",
                "--time-format",
                "s",
            ],
            "1\nx\n2\nx\n20\nx\n",
            "1\nx\n20\nx\n".into(),
        ),
    ] {
        for more in [
            &[][..],
            &["--read-bytes", "1"],
            &["--threads", "3", "--read-bytes", "20"],
        ] {
            let path = file(directory.path(), "input", input.as_bytes());
            let args = [options, more, &[&path]].concat();
            assert_eq!(dedup(&args, b"").text(), expected, "{args:?}");
        }
        let dropped = file(directory.path(), "dropped", b"");
        let path = file(directory.path(), "input", input.as_bytes());
        let args = [options, &["--duplicates", &dropped, &path]].concat();
        let kept = dedup(&args, b"").text();
        let dropped = fs::read_to_string(&dropped).unwrap();
        assert_eq!(kept.len() + dropped.len(), input.len(), "{args:?}");
    }
}

#[test]
fn records_of_inputs_do_not_run_together() {
    let directory = tempfile::tempdir().unwrap();
    let inputs = ["a\nb", "c\n", "d\r\n\r\ne\r\n", "f\n\n", "g"];
    let paths = inputs.iter().enumerate();
    let paths: Vec<String> = paths
        .map(|(at, text)| file(directory.path(), &at.to_string(), text.as_bytes()))
        .collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let run = dedup(&[&["--format", "paragraphs"], &paths[..]].concat(), b"");
    assert_eq!(run.text(), "a\nb\n\nc\n\nd\r\n\r\ne\r\n\r\nf\n\ng");
}

#[test]
fn a_record_without_its_last_line_is_an_error_or_set_aside() {
    let input = "a\nb\nc\na\nb\nc\nd\ne";
    let run = dedup(&["--format", "lines:3"], input.as_bytes());
    assert_eq!(
        run.error(),
        "standard input, line 7: the input ends before the last line of this record (--format \
         lines:N)"
    );
    assert_eq!(run.stdout, b"a\nb\nc\n");
    let directory = tempfile::tempdir().unwrap();
    let rejects = file(directory.path(), "rejects", b"");
    let run = dedup(
        &["--format", "lines:3", "--rejects", &rejects],
        input.as_bytes(),
    );
    assert_eq!(run.text(), "a\nb\nc\n");
    assert_eq!(fs::read_to_string(&rejects).unwrap(), "d\ne");
    let run = dedup(&["--format", "lines:2", "-k", "1,3"], b"a\nb\nc\nd\n");
    assert!(
        run.error()
            .starts_with("standard input, line 1: field 3 of the key is missing: the record has 2"),
        "{}",
        run.error()
    );
}

#[test]
fn blank_paragraphs_pass_unless_the_options_say_otherwise() {
    let input = "a\n\n\n\na\n";
    for (options, expected) in [(&[][..], "a\n\n"), (&["--blank-lines", "keep"], "a\n\n")] {
        let args = [&["--format", "paragraphs"], options].concat();
        assert_eq!(
            dedup(&args, input.as_bytes()).text(),
            expected,
            "{options:?}"
        );
    }
    let run = echoless(
        &[
            "dedup",
            "-m",
            "64k",
            "--format",
            "paragraphs",
            "--summary=line",
        ],
        b"a\n\n\n\n",
    );
    assert_eq!((run.code, &run.stdout[..]), (0, &b"a\n\n\n\n"[..]));
    assert_errors(
        |args| dedup(args, b""),
        &[
            "--format lines:0 | invalid --format=lines:0: expected a whole number from 1 to 1000",
            "--format lines:1001 | invalid --format=lines:1001",
            "--format lines:x -k 1 | invalid --format=lines:x",
            "--format paragraphs:2 | expected lines",
            "--format paragraphs --header | expected no header",
            "--format paragraphs -d ; -k 1 | expected no delimiter",
            "--format paragraphs --tag | expected fields with delimiters",
            "--format paragraphs --comment # | expected records that are lines",
            "--format paragraphs -k name | expected field numbers",
            "--format lines:2 -z | --null does not contradict",
        ],
    );
}
