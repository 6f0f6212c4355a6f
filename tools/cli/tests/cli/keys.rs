//! The key of a record: fields, quoting, headers, missing fields.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::run::{dedup, echoless, file, split_seen};

#[test]
fn chosen_fields_decide() {
    let input = b"1,a,x\n2,a,y\n3,b,x\n1,a,z\n";
    for (key, expected) in [
        ("2", "1,a,x\n3,b,x\n"),
        ("1-2", "1,a,x\n2,a,y\n3,b,x\n"),
        ("2,1", "1,a,x\n2,a,y\n3,b,x\n"),
        ("2-", "1,a,x\n2,a,y\n3,b,x\n1,a,z\n"),
        ("3", "1,a,x\n2,a,y\n1,a,z\n"),
    ] {
        assert_eq!(dedup(&["-k", key], input).text(), expected, "{key}");
        assert_eq!(dedup(&["--key", key], input).text(), expected, "{key}");
    }
}

#[test]
fn all_fields_but_some_decide() {
    let csv = b"t,a,b\n1,x,y\n2,x,y\n3,\"x\",y\n3,x,z\n3,x\n4,x\n";
    let args = ["--csv", "--header", "-k", "!t"];
    let expected = "t,a,b\n1,x,y\n3,x,z\n3,x\n";
    assert_eq!(dedup(&args, csv).text(), expected);
    let lines = b"1,x,y,2,z\n3,x,y,4,z\n3,x,w,4,z\n";
    for key in ["!1,!4", "!4,!1", "2-,!4", "!1,!4-4", "2-3,5"] {
        let expected = "1,x,y,2,z\n3,x,w,4,z\n";
        assert_eq!(dedup(&["-k", key], lines).text(), expected, "{key}");
    }
    let tabs = b"1\tx\n2\tx\n";
    let args = ["--format", "tsv", "-k", "!1"];
    assert_eq!(dedup(&args, tabs).text(), "1\tx\n");
    let blanks = b"1  x y\n2 x  y\n";
    assert_eq!(dedup(&["-w", "-k", "!1"], blanks).text(), "1  x y\n");
    // The time is in a field that is not compared.
    let args = ["-k", "!1", "--window", "5s", "--time-field", "1"];
    assert_eq!(dedup(&args, b"1,x\n2,x\n99,x\n").text(), "1,x\n99,x\n");
    for (key, message) in [
        ("1,!1", "expected a key with at least one field"),
        ("!name", "names require --header"),
        ("!", "names require --header"),
    ] {
        let run = dedup(&["-k", key], b"1,x\n");
        assert!(run.error().contains(message), "{key}: {}", run.stderr);
    }
}

#[test]
fn the_last_fields_decide() {
    let paths = b"x/y/f1\nz/f1\nq/f2\nf1\n";
    let args = ["-d", "/", "-k", "-1"];
    assert_eq!(dedup(&args, paths).text(), "x/y/f1\nq/f2\n");
    let args = ["-d/", "-k-1"];
    assert_eq!(dedup(&args, paths).text(), "x/y/f1\nq/f2\n");
    let input = b"1,a,b,c\na,b,d\n2,a,b,e\n";
    for (key, expected) in [
        ("-3--2", "1,a,b,c\n"),
        ("-2", "1,a,b,c\n"),
        ("2--2", "1,a,b,c\na,b,d\n"),
        ("1,-1", "1,a,b,c\na,b,d\n2,a,b,e\n"),
        ("!-1,!1", "1,a,b,c\na,b,d\n"),
    ] {
        assert_eq!(dedup(&["-k", key], input).text(), expected, "{key}");
    }
    let csv = b"a,\"x,1\"\nb,c,\"x,1\"\n";
    assert_eq!(dedup(&["--csv", "-k", "-1"], csv).text(), "a,\"x,1\"\n");
    assert_eq!(dedup(&["-i", "-k", "-1"], b"a,X\nx\n").text(), "a,X\n");
    // A record without the field.
    let run = dedup(&["-k", "-2"], b"a,b\nb\n");
    assert_eq!(
        run.error(),
        "standard input, line 2: field -2 of the key is missing: the record has 1 (--missing skip or empty allows that)"
    );
    let skip = ["-k", "-2", "--missing", "skip"];
    assert_eq!(dedup(&skip, b"a,b\nb\nb\n").text(), "a,b\nb\nb\n");
    let empty = ["-k", "1,-2", "--missing", "empty"];
    assert_eq!(dedup(&empty, b"a,b\nb\nb\n").text(), "a,b\nb\n");
    for key in ["-0", "-1-2", "-1--2", "-1000001"] {
        let run = dedup(&["-k", key], b"");
        assert!(
            run.error().starts_with("invalid --key=`-"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn fields_do_not_merge() {
    let input = b"ab,c\na,bc\n,abc\nabc,\n";
    assert_eq!(dedup(&["-k", "1,2"], input).bytes(), input);
}

#[test]
fn an_open_range_distinguishes_numbers_of_fields() {
    let input = b"k,a\nk,a,\nk,a,,\nk,a\n";
    assert_eq!(dedup(&["-k", "2-"], input).text(), "k,a\nk,a,\nk,a,,\n");
}

#[test]
fn delimiters() {
    for (delimiter, byte) in [
        (";", ';'),
        ("\\t", '\t'),
        ("tab", '\t'),
        (" ", ' '),
        ("-", '-'),
    ] {
        let input = format!("1{byte}a\n2{byte}a\n1,x{byte}b\n");
        let expected = format!("1{byte}a\n1,x{byte}b\n");
        let run = dedup(&["-d", delimiter, "-k", "2"], input.as_bytes());
        assert_eq!(run.text(), expected, "{delimiter}");
    }
}

#[test]
fn a_delimiter_that_is_not_text() {
    let input = b"1\xff\xc3\n2\xff\xc3\n3\xff\xc4\n";
    let expected = b"1\xff\xc3\n3\xff\xc4\n";
    assert_eq!(dedup(&["-d", "\\xff", "-k", "2"], input).bytes(), expected);
}

#[test]
fn fields_of_nul_terminated_records() {
    let input = b"1\na\0 2\na\0 3\nb\0";
    let args = ["-z", "-d", "\n", "-k", "2"];
    assert_eq!(dedup(&args, input).text(), "1\na\0 3\nb\0");
}

#[test]
fn quoted_and_unquoted_fields_of_equal_content_are_equal() {
    let input = b"1,a\n2,\"a\"\n3,\"a\"\"b\"\n4,\"a\"\"b\"\n5,a\"b\n6,\"a,b\"\n7,a,b\n";
    let expected = "1,a\n3,\"a\"\"b\"\n6,\"a,b\"\n";
    assert_eq!(dedup(&["--csv", "-k", "2"], input).text(), expected);
}

#[test]
fn quoted_fields_hold_newlines() {
    let input = b"1,\"x\ny\"\n2,\"x\ny\"\n3,x\n\"\n\",\"\n\"\n4,\"\n\"\n";
    let expected = "1,\"x\ny\"\n3,x\n\"\n\",\"\n\"\n";
    assert_eq!(dedup(&["--csv", "-k", "2"], input).text(), expected);
}

#[test]
fn whole_csv_records_are_compared_as_they_are_written() {
    let input = b"a,\"b\nc\"\na,\"b\nc\"\n\"a\",\"b\nc\"\n";
    let expected = "a,\"b\nc\"\n\"a\",\"b\nc\"\n";
    assert_eq!(dedup(&["--csv"], input).text(), expected);
    assert_eq!(dedup(&["--csv", "-k", "1-"], input).text(), "a,\"b\nc\"\n");
}

#[test]
fn csv_with_another_delimiter() {
    let input = b"1;\"a;b\"\n2;\"a;b\"\n3;a,b\n";
    let args = ["--csv", "-d", ";", "-k", "2"];
    assert_eq!(dedup(&args, input).text(), "1;\"a;b\"\n3;a,b\n");
}

#[test]
fn a_header_passes_and_names_fields() {
    let input = b"id,name\n1,a\nid,name\n2,a\nid,name\n";
    let expected = "id,name\n1,a\nid,name\n";
    assert_eq!(dedup(&["--header", "-k", "name"], input).text(), expected);
    assert_eq!(dedup(&["--header", "-k", "2"], input).text(), expected);
    let csv = b"\xef\xbb\xbf\"the \"\"id\"\"\",\"na\nme\"\r\n1,a\r\n1,b\r\n";
    let args = ["--csv", "--header", "-k", "the \"id\""];
    assert_eq!(dedup(&args, csv).bytes(), &csv[..csv.len() - 5]);
}

#[test]
fn a_byte_order_mark_without_a_record_behind_it_is_no_fault_of_its_own() {
    for threads in ["1", "2"] {
        let alone = echoless(&["dedup", "-q", "--threads", threads], b"\xef\xbb\xbf");
        assert_eq!(alone.stdout, b"\xef\xbb\xbf");
        let directory = tempfile::tempdir().unwrap();
        let good = file(directory.path(), "good", b"a,1\nb,2\n");
        let open = file(directory.path(), "open", b"\xef\xbb\xbf\"a,b\n");
        let args = ["dedup", "-q", "--csv", "--threads", threads, &good, &open];
        let run = echoless(&args, b"");
        assert_eq!((run.code, &run.stdout[..]), (2, &b"a,1\nb,2\n"[..]));
        assert!(run.stderr.contains("quote"), "{}", run.stderr);
    }
}

#[test]
fn a_byte_order_mark_alone_has_no_records_and_before_a_header_it_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let mark = file(directory.path(), "mark", b"\xef\xbb\xbf");
    let good = file(directory.path(), "good", b"id,at\n1,5\n2,6\n1,7\n");
    let expected = "id,at\n1,5\n2,6\n";
    let stats = file(directory.path(), "stats", b"{}");
    for options in [
        &["--csv", "--header", "-k", "id"][..],
        &["--csv", "--header", "-k", "1"],
        &["--header", "-k", "id"],
        &[
            "--header",
            "-k",
            "id",
            "--window",
            "1m",
            "--time-field",
            "at",
        ],
    ] {
        for threads in ["1", "3"] {
            let options = [options, &["--threads", threads, "--stats", &stats]].concat();
            let alone = dedup(&[&options[..], &[&mark]].concat(), b"");
            assert_eq!(alone.bytes(), b"", "{options:?}");
            let written = std::fs::read(&stats).unwrap();
            let written: serde_json::Value = serde_json::from_slice(&written).unwrap();
            assert_eq!(
                (&written["records"], &written["bytes_in"]),
                (&0.into(), &3.into())
            );
            for files in [[&mark, &good], [&good, &mark]] {
                let files = files.map(String::as_str);
                let run = dedup(&[&options[..], &files].concat(), b"");
                assert_eq!(run.text(), expected, "{options:?}");
            }
        }
    }
    for options in [
        &["--csv", "-k", "2"][..],
        &["--format", "jsonl", "-k", "id"],
        &["--window", "1m", "--time-field", "1"],
    ] {
        let alone = dedup(options, b"\xef\xbb\xbf").bytes();
        assert_eq!(alone, b"\xef\xbb\xbf", "{options:?}");
    }
}

#[test]
fn a_byte_order_mark_is_not_part_of_any_field() {
    let directory = tempfile::tempdir().unwrap();
    let marked = file(
        directory.path(),
        "marked",
        b"\xef\xbb\xbf\"a\nb\",1\n\"a\nb\",2\n",
    );
    let plain = file(directory.path(), "plain", b"\"a\nb\",3\nc,4\n");
    let args = ["--csv", "-k", "1", &marked, &plain];
    assert_eq!(dedup(&args, b"").text(), "\u{feff}\"a\nb\",1\nc,4\n");
    let args = ["--csv", "-k", "1", &plain, &marked];
    assert_eq!(dedup(&args, b"").text(), "\"a\nb\",3\nc,4\n");
    let marked = file(directory.path(), "marked", b"\xef\xbb\xbf\"i\nd\",n\n1,a\n");
    let plain = file(directory.path(), "plain", b"\"i\nd\",n\n1,b\n2,b\n");
    let args = ["--csv", "--header", "-k", "i\nd"];
    let run = dedup(&[&args[..], &[&marked, &plain]].concat(), b"");
    assert_eq!(run.text(), "\u{feff}\"i\nd\",n\n1,a\n2,b\n");
    let run = dedup(&[&args[..], &[&plain, &marked]].concat(), b"");
    assert_eq!(run.text(), "\"i\nd\",n\n1,b\n2,b\n");
}

#[test]
fn a_header_alone_passes() {
    assert_eq!(dedup(&["--header", "-k", "b"], b"a,b").text(), "a,b");
    assert_eq!(dedup(&["--header"], b"a,b\n").text(), "a,b\n");
}

#[test]
fn the_header_of_later_inputs_is_dropped_if_it_is_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let first = file(directory.path(), "first", b"id,name\n1,a\n");
    let second = file(directory.path(), "second", b"id,name\r\n2,b\n1,a\n");
    let third = file(directory.path(), "third", b"name,id\n2,c\n");
    let args = ["--header", "--crlf", &first, &second];
    assert_eq!(dedup(&args, b"").text(), "id,name\n1,a\n2,b\n");
    let run = dedup(&["--header", &first, &third], b"");
    assert_eq!(
        run.error(),
        format!("{third}, line 1: the header differs from that of {first}")
    );
    let known = dedup(&["--header", "--known", &second, &first], b"");
    assert_eq!(
        known.error(),
        format!(
            "{first}, line 1: the header differs from that of {second} by a CR at its end (--crlf \
             and --csv allow that)"
        )
    );
    assert_eq!(run.stdout, b"id,name\n1,a\n");
}

#[test]
fn a_missing_field_ends_the_run_by_default() {
    let directory = tempfile::tempdir().unwrap();
    let first = file(directory.path(), "first", b"1,a\n2,b\n");
    let second = file(directory.path(), "second", b"h,h\n3,c\n1,a\n4\n5,d\n");
    for missing in [&[][..], &["--missing", "error"]] {
        let args = [&["-k", "2", &first, &second], missing].concat();
        let run = dedup(&args, b"");
        assert_eq!(
            run.error(),
            format!(
                "{second}, line 4: field 2 of the key is missing: the record has 1 (--missing skip or empty allows that)"
            )
        );
        assert_eq!(run.stdout, b"1,a\n2,b\nh,h\n3,c\n");
    }
}

#[test]
fn lines_are_counted_where_records_are_not_lines() {
    let input = b"h,i\n\"a\nb\",1\n\"c\n\n\",2\nd\n";
    let run = dedup(&["--csv", "--header", "-k", "i"], input);
    assert!(run.error().starts_with("standard input, line 7: "));
    let run = dedup(&["-z", "-k", "2"], b"a,b\0c\0");
    assert!(run.error().starts_with("standard input, record 2: "));
}

#[test]
fn lines_are_counted_over_chunks() {
    let mut input: String = (0..100_000).map(|i| format!("{i},{i}\n")).collect();
    input.push_str("short\n");
    let run = dedup(&["-k", "2"], input.as_bytes());
    assert!(run.error().starts_with("standard input, line 100001: "));
    assert_eq!(run.stdout, &input.as_bytes()[..input.len() - 6]);
}

#[test]
fn merged_ranges_still_require_their_fields() {
    let run = dedup(&["-k", "2-5,4-"], b"a,b,c,d,e\na,b,c,d\n");
    assert!(
        run.error()
            .contains("line 2: field 5 of the key is missing: the record has 4"),
        "{}",
        run.error()
    );
    let args = ["-k", "2,3-", "--missing", "empty"];
    assert_eq!(dedup(&args, b"1\n2,\n3,,\n4,,,\n").text(), "1\n4,,,\n");
}

#[test]
fn skip_passes_records_without_a_key() {
    let input = b"1,a\n2\n3,a\n2\n4,b\n";
    let args = ["-k", "2", "--missing", "skip"];
    assert_eq!(dedup(&args, input).text(), "1,a\n2\n2\n4,b\n");
    let inverted = [&args[..], &["--invert"]].concat();
    assert_eq!(dedup(&inverted, input).text(), "3,a\n");
}

#[test]
fn empty_treats_a_missing_field_as_an_empty_one() {
    let input = b"1,,x\n2\n3,\n4,a\n5,,x,y\n6,,,\n";
    let args = ["-k", "2,4", "--missing", "empty"];
    assert_eq!(dedup(&args, input).text(), "1,,x\n4,a\n5,,x,y\n");
    let args = ["-k", "2-", "--missing", "empty"];
    assert_eq!(dedup(&args, b"1\n2,\n3,,\n").text(), "1\n3,,\n");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn keys_equal_those_of_a_split(
        lines in vec(vec("[ab]{0,2}", 1..5), 0..60),
        first in 1usize..4,
        more in 0usize..3,
    ) {
        let input: String = lines.iter().map(|fields| fields.join(",") + "\n").collect();
        let records: Vec<&[u8]> = input.as_bytes().split_inclusive(|byte| *byte == b'\n').collect();
        let key = |record: &[u8]| -> Vec<Vec<u8>> {
            let mut fields: Vec<_> = record[..record.len() - 1]
                .split(|byte| *byte == b',')
                .map(<[u8]>::to_vec)
                .collect();
            fields.resize(fields.len().max(first + more), Vec::new());
            fields[first - 1..first + more].to_vec()
        };
        let (fresh, _) = split_seen(&records, key);
        let range = format!("{first}-{}", first + more);
        let run = dedup(&["-k", &range, "--missing", "empty"], input.as_bytes());
        prop_assert_eq!(run.bytes(), fresh);
    }
}

#[test]
fn blank_lines_of_csv_are_no_records() {
    let input = b"1,a\n\n2,a\r\n\r\n\"\",b\n,c\n";
    let csv = ["--csv", "-k", "1"];
    assert_eq!(dedup(&csv, input).text(), "1,a\n\n2,a\r\n\r\n\"\",b\n");
    let second = ["--csv", "-k", "2"];
    assert_eq!(dedup(&second, input).text(), "1,a\n\n\r\n\"\",b\n,c\n");
    let window = ["--window", "10s", "--time-field", "1", "-k", "2"];
    let timed = [&["--csv"], &window[..]].concat();
    assert_eq!(dedup(&timed, b"1,a\n\n2,a\n\n").text(), "1,a\n\n\n");

    let error = [&second[..], &["--blank-lines", "error"]].concat();
    let ended = dedup(&error, input);
    assert_eq!(
        ended.error(),
        "standard input, line 2: the line is blank (--blank-lines skip or keep allows that)"
    );
    assert_eq!(ended.stdout, b"1,a\n");
    let keep = [&csv[..], &["--blank-lines", "keep"]].concat();
    assert_eq!(dedup(&keep, input).text(), "1,a\n\n2,a\r\n");
    let keep = [&second[..], &["--blank-lines", "keep"]].concat();
    let lacks = "line 2: field 2 of the key is missing: the record has 1";
    assert!(dedup(&keep, input).error().contains(lacks));

    // Without a key, and in other formats, a blank line is a record unless the option is given.
    assert_eq!(dedup(&["--csv"], b"\na\n\n").text(), "\na\n");
    assert!(dedup(&["-k", "2"], b"\n").error().contains("line 1"));
    let skip = ["--csv", "--blank-lines", "skip"];
    assert_eq!(dedup(&skip, b"\na\n\na\n").text(), "\na\n\n");
}

#[test]
fn blank_lines_are_kept_skipped_or_faulty() {
    let input = b"a\n\n b\n\n \t\n\r\na\n \t\n";
    let skip = ["--blank-lines", "skip"];
    assert_eq!(dedup(&skip, input).bytes(), b"a\n\n b\n\n \t\n\r\n \t\n");
    for args in [&[][..], &["--blank-lines", "keep"]] {
        assert_eq!(dedup(args, input).bytes(), b"a\n\n b\n \t\n\r\n");
    }
    let run = dedup(&["--blank-lines", "error"], input);
    assert!(
        run.error().contains("line 2: the line is blank"),
        "{}",
        run.stderr
    );
    assert_eq!(run.stdout, b"a\n");
    let keyed = ["--blank-lines", "skip", "-k", "2"];
    assert_eq!(dedup(&keyed, b"1,a\n\n2,a\n \n").text(), "1,a\n\n \n");
    let tagged = [&skip[..], &["--tag"]].concat();
    assert_eq!(
        dedup(&tagged, b"a\n \na\n").text(),
        "a,fresh\n \na,duplicate\n"
    );
    // A record of CSV may be blanks.
    let csv = ["--csv", "--blank-lines", "skip"];
    assert_eq!(dedup(&csv, b"a\n \n\n \n\n").text(), "a\n \n\n\n");
    assert_eq!(dedup(&csv, b"\"a\"\n \n\n \n\n").text(), "\"a\"\n \n\n\n");
    let run = dedup(&["--format", "fixed:2", "--blank-lines", "skip"], b"");
    let expected = "invalid --blank-lines: expected records of text, not binary ones";
    assert_eq!(run.error(), expected);
}
