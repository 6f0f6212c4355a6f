//! The formats that `--format` names: fixed length, length-prefixed, times and threads with all of
//! them.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::run::{Folder, assert_errors, assert_runs, dedup, split_seen};

#[test]
fn lines_csv_and_tsv_are_those_of_the_other_options() {
    let input = "a,\"x\ny\"\na,\"x\ny\"\nb\t1\r\nc\t1\nb\t1\n";
    for (named, other) in [
        ("--format lines", ""),
        ("--format lines --crlf", "--crlf"),
        ("--format csv", "--csv"),
        ("--format csv --csv --crlf -k 1", "--csv -k 1"),
        (
            "--format tsv -k 2 --missing skip",
            "-d tab -k 2 --missing skip",
        ),
        (
            "--format tsv -d tab -k 2 --missing skip",
            "-d tab -k 2 --missing skip",
        ),
        (
            "--format tsv --crlf -k 2 --missing skip",
            "--crlf -d tab -k 2 --missing skip",
        ),
    ] {
        assert_eq!(
            dedup(named, input).bytes(),
            dedup(other, input).bytes(),
            "{named}"
        );
    }
    assert_runs(&[
        // Quotes are content of tab-separated fields.
        "--format tsv -k 1 | \"a\"\t1\na\t1\n | \"a\"\t1\na\t1\n",
        "--format tsv --header -k id | n\tid\n1\t2\n3\t2\n | n\tid\n1\t2\n",
    ]);
}

#[test]
fn contradictions_are_errors() {
    assert_errors(
        |args| dedup(args, ""),
        &[
            "--format yaml | invalid --format=yaml: expected lines, csv, tsv, jsonl, json, json:container=PATH, paragraphs, lines:N, fixed:SIZE, prefixed:LENGTH, ber, ber:OPTIONS",
            "--format fixed | invalid --format=fixed: expected lines",
            "--format jsonl:1 | invalid --format=jsonl:1: expected lines",
            "--format fixed: | invalid --format=fixed:: expected a whole number",
            "--format fixed:0 | invalid --format=fixed:0: expected 1 byte or more",
            "--format prefixed:u64 | invalid --format=prefixed:u64: expected u8, u16be, u16le",
            "--format fixed:99G | invalid --format=fixed:106300440576: expected records of at most 64 MiB (--max-record)",
            "--format fixed:4097 --max-record 4k | invalid --format=fixed:4097: expected records of at most 4 KiB",
            "--format lines --csv | invalid --format=lines: expected a format that --csv does not",
            "--format lines -z | --null does not contradict",
            "--format csv -z | --null does not contradict",
            "--format jsonl --csv | --csv does not contradict",
            "--format fixed:8 --crlf | --crlf does not contradict",
            "--format tsv -k 1 -d , | invalid --delimiter=,: expected no other delimiter than that of",
            "--format jsonl -d , -k a | expected no delimiter with --format jsonl",
            "--format jsonl --header | invalid --header: expected no header with --format jsonl",
            "--format fixed:8 --header | expected no header with --format fixed:8",
            "--format lines -d , | expected no delimiter without --key",
            "--format jsonl -k a..b | invalid --key=`a..b`: expected paths such as",
            "--format jsonl -k a --window 1s --time-field a, | invalid --time-field=",
            "--format fixed:8 -k 8 | invalid --key=`8`: expected bytes from 0 to 7, the last of",
            "--format fixed:8 -k name | invalid --key=`name`: expected bytes",
            "--format prefixed:u8 -k 3-1 | invalid --key=`3-1`: expected bytes numbered from 0",
        ],
    );
}

#[test]
fn times_in_json_and_in_bytes() {
    let args = "--format jsonl -k k --window 10s --time-field at.t";
    let record = |time: &str| format!("{{\"k\":1,\"at\":{{\"t\":{time}}}}}\n");
    for (times, dropped) in [
        (
            &["\"2025-01-01T00:00:00Z\"", "1735689605", "1735689620.0"][..],
            1,
        ),
        (
            &[
                "1.7e9",
                "17000000099e-1",
                "1.7000000121E+9",
                "1.700000025e12",
            ],
            1,
        ),
    ] {
        let mut records: Vec<String> = times.iter().map(|time| record(time)).collect();
        let input = records.concat();
        records.remove(dropped);
        assert_eq!(dedup(args, input).text(), records.concat());
    }
    dedup(args, record("true")).fails("line 1: `at.t` is not a time of --time-format");
    let missing = dedup(args, "{\"k\":1,\"at\":{}}\n");
    missing.fails("line 1: `at.t`, the time, is missing (--missing");
    for time in ["1e19", "1.7e99", "-1e400", "\"1.7e9\""] {
        dedup(args, record(time)).fails(&format!(
            "line 1: `at.t` is not a time of --time-format auto: `{}` (--missing",
            time.trim_matches('"')
        ));
    }
    assert_runs(&[
        "--format fixed:11 -k 0 --window 10s --time-field 1-10 | a1735689600a1735689605a1735689620 | a1735689600a1735689620",
    ]);
}

#[test]
fn fixed_records_have_no_terminator_and_no_mark() {
    assert_runs(&[
        "--format fixed:4 |  | ",
        "--format fixed:4 | a\nb\0c\nb\0a\nb\0 | a\nb\0c\nb\0",
        "--format fixed:4 -k 3,1 | abcdxbydabce | abcdabce",
        // The bytes of a byte order mark are data.
        "--format fixed:4 | \u{feff}a\u{feff}b\u{feff}a | \u{feff}a\u{feff}b",
        "--format fixed:3 | \u{feff}\u{feff} | \u{feff}",
        "--format fixed:100 --max-record 99 |  | !! invalid --format=fixed:100: expected records of at most 99 bytes (--max-record)",
    ]);
}

#[test]
fn a_rest_shorter_than_a_record_is_an_error() {
    let run = dedup("--format fixed:64", [b'a'; 64 * 5 + 3]);
    assert_eq!(
        run.error(),
        "standard input, record 6: the input ends after 3 of 64 bytes of the record at byte offset 320"
    );
    assert_eq!(run.stdout, [b'a'; 64]);
    let records = vec![b'a'; 64 * 10_000 + 63];
    let folder = Folder::with(&[("good", &records[..64 * 10_000]), ("cut", &records)]);
    for threads in ["1", "3"] {
        let run = folder.dedup(format!(
            "--format fixed:64 --threads {threads} good cut good"
        ));
        assert_eq!(
            run.error(),
            "cut, record 10001: the input ends after 63 of 64 bytes of the record at byte offset 640000"
        );
    }
}

#[test]
fn prefixed_records_are_compared_by_their_payload() {
    for (length, input, expected) in [
        ("u8", &b"\x01a\x02aa\0\x01a\0"[..], &b"\x01a\x02aa\0"[..]),
        ("u16be", b"\0\x01a\0\x01a", b"\0\x01a"),
        ("u32le", b"\x01\0\0\0a\x01\0\0\0a", b"\x01\0\0\0a"),
        // Two ways to write the length 1.
        ("varint", b"\x81\0a\x01a", b"\x81\0a"),
        ("u8 -k 1-2", b"\x03abc\x04xbcy\x03abd", b"\x03abc\x03abd"),
        (
            "u8 -k 0-3,4- --missing empty",
            b"\x04abcd\x04wxyz\x04abcd\x05abcde",
            b"\x04abcd\x04wxyz\x05abcde",
        ),
    ] {
        let run = dedup(format!("--format prefixed:{length}"), input);
        assert_eq!(run.bytes(), expected, "{length}");
    }
    assert_runs(&[
        "--format prefixed:u8 -k 1-2 | \x03abc\x02ab | \x03abc!! standard input, record 2: byte range 1-2 of the key is missing: the record has 2 bytes after its length (--missing skip or empty allows that)",
        // Ranges that meet are missing one by one.
        "--format prefixed:u8 -k 0-3,4- | \x04abcd | !! byte range 4- of the key",
    ]);
}

#[test]
fn cut_and_overlong_records_are_errors() {
    assert_runs(&[
        "--format prefixed:u16be | \0\x01a\0 | \0\x01a!! standard input, record 2: the input ends inside the length of the record at byte offset 3",
        "--format prefixed:u16be | \0\x01a\0\x05bc | \0\x01a!! standard input, record 2: the input ends after 4 of 7 bytes of the record at byte offset 3",
    ]);
    let limited = "--format prefixed:u32be --max-record 300000";
    let long = dedup(limited, [&b"\xff\xff\xff\xff"[..], &[0; 400_000]].concat());
    long.fails("record 1: the record that begins here is longer");
    let fits = [&299_996u32.to_be_bytes()[..], &[0; 299_996]].concat();
    assert_eq!(dedup(limited, &fits).bytes(), fits);
    let run = dedup("--format prefixed:varint", [0xff; 20]);
    run.fails("standard input, record 1: the length of the record exceeds 64 bits");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn fixed_output_equals_a_set_of_records(
        records in vec(prop::array::uniform3(prop::sample::select(b"ab\n".to_vec())), 0..60),
    ) {
        let records: Vec<&[u8]> = records.iter().map(<[u8; 3]>::as_slice).collect();
        let (fresh, duplicates) = split_seen(&records, |record| [record[0], record[2]]);
        let args = "--format fixed:3 -k 0,2";
        prop_assert_eq!(dedup(args, records.concat()).bytes(), fresh);
        let inverted = format!("{args} --invert");
        prop_assert_eq!(dedup(inverted, records.concat()).bytes(), duplicates);
    }
}
