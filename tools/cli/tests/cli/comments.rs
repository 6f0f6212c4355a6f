//! Comment lines: copied in place, never judged, and no records; and the names of fields in them.

use std::fs;
use std::io::Write;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;

use crate::run::{assert_errors, dedup, echoless, file, split_seen};

const VCF: &str =
    "##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\n1\t100\t.\tA\tG\n1\t100\trs1\tA\tG\n";

const ZEEK: &str =
    "#separator \\x09\n#fields\tts\tuid\n#types\ttime\tstring\n1.5\tC1\n1.6\tC1\n#close\t2020\n";

const W3C: &str = "#Version: 1.0\r\n#Fields: time cs-uri\r\n10:00 /a\r\n10:01 /a\r\n#Fields: time cs-uri\r\n10:02 /b\r\n";

/// The text without the line with this number, from 0.
fn without(text: &str, line: usize) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.remove(line);
    lines.concat()
}

#[test]
fn first_lines_announce_comments() {
    for (args, input, dropped) in [
        (&["--format", "tsv", "-k", "1,2,4,5"][..], VCF, 3),
        (
            &["--format", "tsv", "-k", "1,2,4,5"],
            &VCF.replace('\n', "\r\n"),
            3,
        ),
        (&["-d", "tab", "-k", "!3", "--header"], VCF, 3),
        (&["-w", "--header", "-k", "CHROM,POS,REF,ALT"], VCF, 3),
        (&["--format", "tsv", "--header", "-k", "uid"], ZEEK, 4),
        (&["--format", "tsv", "-k", "2"], ZEEK, 4),
        (&["--format", "tsv", "-k", "-1"], ZEEK, 4),
        (&["-w", "--header", "-k", "cs-uri"], W3C, 3),
        (&["-d", " ", "--crlf", "--header", "-k", "cs-uri"], W3C, 3),
        (
            &["-d", "tab", "--header", "-k", "cs-uri"],
            &W3C.replace(" /", "\t/"),
            3,
        ),
    ] {
        for threads in ["1", "3"] {
            for reads in ["1", "7", "100000"] {
                let more = ["--threads", threads, "--read-bytes", reads];
                let run = dedup(&[args, &more].concat(), input.as_bytes());
                assert_eq!(run.text(), without(input, dropped), "{args:?}");
            }
        }
    }
    // Whole lines are not known to be those of any file, and '' turns the names off.
    assert_eq!(
        dedup(&[], b"#Version: 1\n#\n#\n").text(),
        "#Version: 1\n#\n"
    );
    let off = ["--comment", "", "--format", "tsv", "-k", "1"];
    let run = dedup(&off, b"#Version: 1\n#a\n#a\n");
    assert_eq!(run.text(), "#Version: 1\n#a\n");
    assert_eq!(dedup(&["-k", "1"], b"#a\n#a\n").text(), "#a\n");
}

#[test]
fn an_option_gives_what_comments_begin_with() {
    for (args, input, expected) in [
        (
            &["--comment", "#"][..],
            "#\na\n#\na\n# b\n",
            "#\na\n#\n# b\n",
        ),
        (
            &["--comment", "//", "-k", "1"],
            "// a\n/,b\n// a\n/,c\n",
            "// a\n/,b\n// a\n",
        ),
        (
            &["--comment", "!", "-i"],
            "! x\n||ads^\n||ADS^\n! x",
            "! x\n||ads^\n! x",
        ),
        (
            &["--comment=--", "-k", "2", "--missing", "error"],
            "--\n1,a\n2,a\n",
            "--\n1,a\n",
        ),
        (&["--comment", "#", "-z"], "#a\0b\0b\0#a\0", "#a\0b\0#a\0"),
        (
            &["--comment", "#", "--crlf"],
            "#\r\na\r\na\n#\r\n",
            "#\r\na\r\n#\r\n",
        ),
        (
            &["--comment", "#", "--csv", "-k", "1"],
            "# it's,\"open\na,1\n#,\"\"\"\n\"a\",2\n",
            "# it's,\"open\na,1\n#,\"\"\"\n",
        ),
        (
            &["--comment", "#", "--format", "jsonl", "-k", "id"],
            "# {\n{\"id\":1}\n#\n{\"id\":1.0}\n",
            "# {\n{\"id\":1}\n#\n",
        ),
        (
            &[
                "--comment",
                "#",
                "--window",
                "5s",
                "--time-field",
                "1",
                "-k",
                "2",
            ],
            "# t\n1,a\n#\n2,a\n",
            "# t\n1,a\n#\n",
        ),
        (
            &["--comment", "#", "-k", "1"],
            "\u{feff}# a\nb\n#\nb\n",
            "\u{feff}# a\nb\n#\n",
        ),
    ] {
        for reads in ["1", "100000"] {
            let run = dedup(&[args, &["--read-bytes", reads]].concat(), input.as_bytes());
            assert_eq!(run.text(), expected, "{args:?}");
        }
    }
    // Comments are no records of a window.
    let window = [
        "--comment",
        "#",
        "--window",
        "1",
        "--filter",
        "stamped:bits=64",
    ];
    assert_eq!(
        dedup(&window, b"a\n#\n#\na\nb\n#\na\n").text(),
        "a\n#\n#\nb\n#\na\n"
    );
    assert_errors(
        |args| dedup(args, b"a\n"),
        &[
            "--comment # --format fixed:2 | invalid --comment: expected records that are lines",
            "--comment # --format json -k a | invalid --comment: expected records that are lines",
        ],
    );
    let run = dedup(&["--comment", "a\nb"], b"");
    assert!(
        run.error().contains("expected bytes that end no record"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_header_follows_comments() {
    let args = ["--comment", "#", "--header", "-k", "id"];
    let first = "# one\n#\nid,v\n1,a\n";
    let directory = tempfile::tempdir().unwrap();
    let one = file(directory.path(), "one", first.as_bytes());
    let two = file(directory.path(), "two", b"# two\nid,v\n1,b\n# end\n2,c\n");
    let known = file(directory.path(), "known", b"# known\nid,v\n9,x\n");
    let dropped = file(directory.path(), "dropped", b"");
    for threads in ["1", "3"] {
        for reads in ["1", "9", "100000"] {
            let more = [
                "--threads",
                threads,
                "--read-bytes",
                reads,
                "--duplicates",
                &dropped,
            ];
            let run = dedup(&[&args[..], &more, &[&one, &two]].concat(), b"");
            assert_eq!(run.text(), format!("{first}# two\n# end\n2,c\n"));
            assert_eq!(fs::read_to_string(&dropped).unwrap(), "id,v\n1,b\n");
        }
    }
    let run = dedup(&[&args[..], &["--known", &known, &one]].concat(), b"");
    assert_eq!(run.text(), first);
    // A header that differs is found behind comments, too.
    let other = file(directory.path(), "other", b"# other\n#\nid,w\n");
    let run = dedup(&[&args[..], &[&one, &other]].concat(), b"");
    let expected = format!("{other}, line 3: the header differs from that of {one}");
    assert_eq!(run.error(), expected);
    // Comments alone have no names, and nothing is written before that is known.
    let out = file(directory.path(), "out", b"kept");
    let run = dedup(&[&args[..], &["-o", &out]].concat(), b"# a\n# b\n");
    assert!(
        run.error().contains("expected a header with names"),
        "{}",
        run.stderr
    );
    assert_eq!(fs::read_to_string(&out).unwrap(), "kept");
    let run = dedup(&["--comment", "#", "--header"], b"# a\n# b\n");
    assert_eq!(run.text(), "# a\n# b\n");
    let long = [&args[..], &["--max-record", "100"]].concat();
    let run = dedup(&long, "# comment\n".repeat(20).as_bytes());
    assert!(
        run.error().ends_with(
            "comment lines of more than 100 bytes in front of the header (--max-record)"
        ),
        "{}",
        run.stderr
    );
}

#[test]
fn later_comments_may_have_other_names() {
    let directory = tempfile::tempdir().unwrap();
    let comments = |text: &str| -> String {
        let lines = text.split_inclusive('\n');
        lines.filter(|line| line.starts_with('#')).collect()
    };
    let one = file(directory.path(), "one", ZEEK.as_bytes());
    // The same two values in the other order of fields.
    let swapped = ZEEK
        .replace("ts\tuid", "uid\tts")
        .replace("1.5\tC1", "C1\t1.5");
    let swapped = swapped.replace("1.6\tC1", "C2\t1.5");
    let two = file(directory.path(), "two", swapped.as_bytes());
    for (key, kept) in [
        ("uid", "C2\t1.5\n"),
        ("2", "C2\t1.5\n"),
        ("ts,uid", "C2\t1.5\n"),
        ("ts", ""),
    ] {
        for threads in ["1", "3"] {
            let args = [
                "--format",
                "tsv",
                "--header",
                "-k",
                key,
                "--threads",
                threads,
            ];
            let run = dedup(&[&args[..], &[&one, &one]].concat(), b"");
            let first = dedup(&[&args[..], &[&one]].concat(), b"").text();
            assert_eq!(run.text(), format!("{first}{}", comments(ZEEK)));
            let run = dedup(&[&args[..], &[&one, &two]].concat(), b"");
            let mut expected = comments(&swapped);
            expected.insert_str(expected.find("#close").unwrap(), kept);
            assert_eq!(run.text(), first + &expected, "{key}");
        }
    }
    // What names do not tell.
    let lacking = file(
        directory.path(),
        "lacking",
        swapped.replace("\tts", "\tat").as_bytes(),
    );
    for (key, input) in [
        (&["-k", "!ts"][..], &lacking),
        (&["-k", "1-"], &lacking),
        (&["-k", "ts"], &lacking),
        (&["-k", "-1"], &two),
        (&[], &two),
        (
            &[
                "-k",
                "uid",
                "--time-field",
                "ts",
                "--window",
                "1m",
                "--time-format",
                "s",
            ],
            &lacking,
        ),
    ] {
        let args = [&["--format", "tsv", "--header"], key, &[&one, input]].concat();
        let expected = format!(
            "{input}, line 2: the names of the fields differ from those of the header, and do not \
             tell which fields are compared"
        );
        assert_eq!(dedup(&args, b"").error(), expected, "{key:?}");
    }
    // Numbers of fields mean what they say.
    let args = ["--format", "tsv", "-k", "2"];
    assert_eq!(dedup(&[&args[..], &[&one, &two]].concat(), b"").code, 0);
    // A plain file with the same names in its header follows. Behind one, names stay.
    let plain = file(directory.path(), "plain", b"ts\tuid\n9\tC2\n");
    let args = ["--format", "tsv", "--header", "-k", "uid"];
    let run = dedup(&[&args[..], &[&one, &plain]].concat(), b"");
    assert_eq!(run.text(), without(ZEEK, 4) + "9\tC2\n");
    let run = dedup(&[&args[..], &[&plain, &two]].concat(), b"");
    assert!(
        run.error().contains("the names of the fields differ"),
        "{}",
        run.stderr
    );
}

/// A log of a web server whose fields change twice, and one of a mail server.
const CHANGED: &str = "#Software: Web Server\n#Fields: date time c-ip sc-status\n\
    2025-01-01 00:00:21 192.0.2.1 200\n2025-01-01 00:00:21 192.0.2.1 200\n\
    #Date: 2025-01-01 01:00:21\n#Fields: date time c-ip cs-uri-stem sc-status\n\
    2025-01-01 00:00:21 192.0.2.1 / 200\n2025-01-01 01:00:22 192.0.2.1 / 200\n\
    #Fields: sc-status c-ip time date\n200 192.0.2.1 01:00:22 2025-01-01\n\
    200 192.0.2.1 01:00:23 2025-01-01\n";

const MAIL: &str = "#Software: Mail Server\r\n#Version: 15.0.0.0\r\n\
    #Fields: date-time, session,\"source\",description\r\n\
    2025-01-01T23:29:49.958Z,08A,SMTP,\"a,b\"\r\n2025-01-01T23:29:49.958Z,08A,SMTP,\"a,b\"\r\n\
    #Fields: session,date-time\r\n08A,2025-01-01T23:29:49.958Z\r\n08B,\"2025\n\"\r\n";

#[test]
fn fields_of_a_log_may_change_within_it() {
    let directory = tempfile::tempdir().unwrap();
    for (case, (options, input, dropped)) in [
        (
            &["-w", "--header", "-k", "date,time,c-ip,sc-status"][..],
            CHANGED,
            &[3, 6, 9][..],
        ),
        (
            &[
                "-w",
                "--header",
                "-k",
                "c-ip",
                "--time-field",
                "date,time",
                "--window",
                "1m",
            ],
            CHANGED,
            &[3, 6, 9, 10],
        ),
        (
            &["--csv", "--header", "-k", "session,date-time"],
            MAIL,
            &[4, 6],
        ),
        (&["--csv", "--header", "-k", "2"], MAIL, &[4, 6]),
    ]
    .into_iter()
    .enumerate()
    {
        let lines = input.split_inclusive('\n').enumerate();
        let kept = lines.filter(|(at, _)| !dropped.contains(at));
        let expected: String = kept.map(|(_, line)| line).collect();
        for more in [
            &["--threads", "1"][..],
            &["--read-bytes", "1"],
            &["--threads", "3", "--read-bytes", "50"],
            &["--keep", "first"],
        ] {
            let args = [options, more].concat();
            assert_eq!(dedup(&args, input.as_bytes()).text(), expected, "{args:?}");
        }
        // A run that stops between any two lines goes on with the names in force there.
        let ends = input.match_indices('\n').map(|(at, _)| at + 1);
        for (number, end) in ends.enumerate().skip(2) {
            let folder = directory.path().join(format!("{case}-{number}"));
            let folder = folder.to_str().unwrap();
            let out = file(directory.path(), "out", b"");
            fs::remove_file(&out).unwrap();
            let path = file(directory.path(), "log", &input.as_bytes()[..end]);
            let args = [options, &["--state", folder, "-o", &out, &path]].concat();
            if dedup(&args, b"").code != 0 {
                // Inside of a quoted field.
                continue;
            }
            let mut log = fs::OpenOptions::new().append(true).open(&path).unwrap();
            log.write_all(&input.as_bytes()[end..]).unwrap();
            dedup(&args, b"").text();
            assert_eq!(
                fs::read_to_string(&out).unwrap(),
                expected,
                "{options:?} {end}"
            );
        }
    }
    let top = file(directory.path(), "top", b"");
    let args = ["-w", "--header", "-k", "time,c-ip", "--top-keys", &top];
    dedup(&args, CHANGED.as_bytes()).text();
    let top = fs::read_to_string(top).unwrap();
    assert!(
        top.contains(r#""duplicates_low":2,"duplicates_high":2,"key":["00:00:21","192.0.2.1"]"#),
        "{top}"
    );
    assert!(top.contains(r#""key":["01:00:22","192.0.2.1"]"#), "{top}");
    // Tags, between the delimiters of the names.
    let run = dedup(
        &["--csv", "--header", "-k", "session", "--tag"],
        MAIL.as_bytes(),
    );
    let text = run.text();
    assert!(
        text.contains("#Fields: date-time, session,\"source\",description,verdict\r\n"),
        "{text}"
    );
    assert!(
        text.contains(
            "#Fields: session,date-time,verdict\r\n08A,2025-01-01T23:29:49.958Z,duplicate\r\n"
        ),
        "{text}"
    );
    let run = dedup(
        &["--csv", "--header", "-k", "session", "--tag=description"],
        MAIL.as_bytes(),
    );
    assert!(run.error().contains("--tag"), "{}", run.error());
}

#[test]
fn a_log_may_have_ten_thousand_other_headers_and_no_more() {
    let mut log = String::from("#Version: 1.0\n#Fields: id first\n1 a\n");
    for number in 0..10_000 {
        log += &format!("#Fields: x{number} id\n{number} {}\n", number % 5000);
    }
    let args = ["-w", "--header", "-k", "id"];
    let kept = dedup(&args, log.as_bytes()).text();
    // Each key comes twice, and that of the first record a third time.
    let records = kept.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(records.count(), 5000);
    let pieces = dedup(
        &[&args[..], &["--read-bytes", "5000"]].concat(),
        log.as_bytes(),
    );
    assert!(pieces.text() == kept);
    let failed = dedup(&args, (log + "#Fields: id last\n").as_bytes());
    assert_eq!(
        failed.error(),
        "standard input: its comment lines hold more than 10000 different headers"
    );
}

#[test]
fn comments_are_counted_and_never_tagged() {
    let directory = tempfile::tempdir().unwrap();
    let [stats, tags, rejects] =
        ["stats", "tags", "rejects"].map(|name| file(directory.path(), name, b""));
    let input = b"# a\n1,x\n#\n2,x\n3\n# b";
    let args = ["dedup", "--comment", "#", "-k", "2", "--stats", &stats];
    let more = ["--rejects", &rejects, "--tag-file", &tags];
    let run = echoless(&[&args[..], &more].concat(), input);
    assert_eq!(run.stdout, b"# a\n1,x\n#\n2,x\n# b");
    assert!(
        run.stderr.starts_with("echoless: 3 records (")
            && run.stderr.contains("1 rejected, 3 comment lines"),
        "{}",
        run.stderr
    );
    let found: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    for (name, number) in [
        ("records", 3),
        ("fresh", 1),
        ("duplicates", 1),
        ("unkeyed", 0),
        ("rejected", 1),
        ("comments", 3),
    ] {
        assert_eq!(found[name], number, "{name}");
    }
    let expected = "comment\nfresh\ncomment\nduplicate\ncomment\n";
    assert_eq!(fs::read_to_string(&tags).unwrap(), expected);
    assert_eq!(fs::read_to_string(&rejects).unwrap(), "3\n");
    // The names of the fields get that of the tag.
    for (args, input, expected) in [
        (
            &["--format", "tsv", "--header", "-k", "uid"][..],
            ZEEK,
            "#separator \\x09\n#fields\tts\tuid\tverdict\n#types\ttime\tstring\tstring\n1.5\tC1\tfresh\n1.6\tC1\tduplicate\n#close\t2020\n",
        ),
        (
            &["--comment", "#", "--header", "-k", "1"],
            "# a\nid\n1\n#\n1\n",
            "# a\nid,verdict\n1,fresh\n#\n1,duplicate\n",
        ),
        (
            &["--comment", "#", "--format", "jsonl", "-k", "a"],
            "#\n{\"a\":1}\n",
            "#\n{\"a\":1,\"verdict\":\"fresh\"}\n",
        ),
    ] {
        let run = dedup(&[args, &["--tag"]].concat(), input.as_bytes());
        assert_eq!(run.text(), expected, "{args:?}");
    }
    // They are not set aside either.
    let args = [
        "--comment",
        "#",
        "--format",
        "jsonl",
        "-k",
        "a",
        "--tag",
        "--rejects",
        &rejects,
    ];
    let run = dedup(&args, b"#\n\n{\"a\":1}\n");
    assert_eq!(run.text(), "#\n\n{\"a\":1,\"verdict\":\"fresh\"}\n");
    assert_eq!(fs::read(&rejects).unwrap(), b"");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn output_equals_a_set_of_records_among_comments(
        lines in vec(prop_oneof![
            3 => "[ab],[ab]\n",
            1 => "//[ab\"]?\n",
            1 => "/,[ab]\n",
        ], 0..60),
        csv: bool,
        read in 1_usize..50,
    ) {
        let records: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        let judged: Vec<&[u8]> =
            records.iter().copied().filter(|line| !line.starts_with(b"//")).collect();
        let (fresh, _) = split_seen(&judged, |record: &[u8]| record[2..].to_vec());
        let mut expected = Vec::new();
        let mut fresh = fresh.split_inclusive(|byte| *byte == b'\n').peekable();
        let mut seen = std::collections::HashSet::new();
        for line in records {
            if line.starts_with(b"//") {
                expected.extend_from_slice(line);
            } else if seen.insert(line[2..].to_vec()) {
                expected.extend_from_slice(fresh.next().unwrap());
            }
        }
        let read = read.to_string();
        let mut args = vec!["--comment", "//", "-k", "2", "--read-bytes", &read];
        if csv {
            args.push("--csv");
        }
        prop_assert_eq!(dedup(&args, lines.concat().as_bytes()).bytes(), expected);
    }
}
