//! Records of several lines: paragraphs, and a number of lines.

use crate::run::{Folder, assert_errors, assert_runs, dedup, echoless};

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
    let folder = Folder::new();
    for (options, input, expected) in [
        ("paragraphs", DETAIL, without(DETAIL, 4..8)),
        ("paragraphs", &crlf, without(&crlf, 4..8)),
        ("paragraphs -k 3", DETAIL, without(DETAIL, 4..12)),
        ("paragraphs -k !1", DETAIL, without(DETAIL, 4..8)),
        ("paragraphs --keep last", DETAIL, without(DETAIL, 0..4)),
        ("paragraphs -i -k 1", "A\nb\n\na\nc\n", "A\nb\n\n".into()),
        // Lines before a blank one, several blank ones, and none at the end.
        (
            "paragraphs",
            "\n\na\n\n\n\nb\n\n\na",
            "\n\na\n\n\n\nb\n\n".into(),
        ),
        ("paragraphs", "a\n\n\n\n", "a\n\n\n\n".into()),
        ("lines:2", BULK, without(BULK, 4..6)),
        ("lines:2 -k 2", BULK, without(BULK, 2..6)),
        ("lines:3", BULK, BULK.into()),
        ("lines:2", "a\nb\na\nb", "a\nb\n".into()),
        (
            "lines:2 --time-field 1 --window 10s -k 2 --time-format s",
            "1\nx\n2\nx\n20\nx\n",
            "1\nx\n20\nx\n".into(),
        ),
    ] {
        folder.write("input", input);
        for more in [
            "",
            "--read-bytes 1",
            "--threads 3 --read-bytes 20",
            "--duplicates dropped",
        ] {
            let case = format!("--format {options} {more} input | {expected}");
            folder.assert_runs(&[&case]);
        }
        assert_eq!(
            expected.len() + folder.read("dropped").len(),
            input.len(),
            "{options}"
        );
    }
}

#[test]
fn records_of_inputs_do_not_run_together() {
    let inputs = [
        ("0", "a\nb"),
        ("1", "c\n"),
        ("2", "d\r\n\r\ne\r\n"),
        ("3", "f\n\n"),
        ("4", "g"),
    ];
    let expected = "a\nb\n\nc\n\nd\r\n\r\ne\r\n\r\nf\n\ng";
    Folder::with(&inputs).assert_runs(&[&format!("--format paragraphs 0 1 2 3 4 | {expected}")]);
}

#[test]
fn a_record_without_its_last_line_is_an_error_or_set_aside() {
    let folder = Folder::with(&[("in", "a\nb\nc\na\nb\nc\nd\ne")]);
    folder.assert_runs(&[
        "--format lines:3 in | a\nb\nc\n!! in, line 7: the input ends before the last line of this record (--format lines:N)",
        "--format lines:3 --rejects rejects in | a\nb\nc\n",
    ]);
    assert_eq!(folder.read("rejects"), "d\ne");
    assert_runs(&[
        "--format lines:2 -k 1,3 | a\nb\nc\nd\n | !! standard input, line 1: field 3 of the key is missing: the record has 2",
    ]);
}

#[test]
fn blank_paragraphs_pass_unless_the_options_say_otherwise() {
    assert_runs(&[
        "--format paragraphs | a\n\n\n\na\n | a\n\n",
        "--format paragraphs --blank-lines keep | a\n\n\n\na\n | a\n\n",
    ]);
    let run = echoless(
        "dedup -m 64k --format paragraphs --summary=line",
        "a\n\n\n\n",
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
