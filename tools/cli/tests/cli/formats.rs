//! The formats that `--format` names: fixed length, length-prefixed, times and threads with all of
//! them.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::json::JSON;
use crate::run::{assert_errors, dedup, echoless, file, split_seen};

#[test]
fn lines_csv_and_tsv_are_those_of_the_other_options() {
    let input = b"a,\"x\ny\"\na,\"x\ny\"\nb\t1\r\nc\t1\nb\t1\n";
    let same = |named: &[&str], other: &[&str]| {
        let named = dedup(named, input).bytes();
        assert_eq!(named, dedup(other, input).bytes(), "{other:?}");
    };
    same(&["--format", "lines"], &[]);
    same(&["--format", "lines", "--crlf"], &["--crlf"]);
    same(&["--format", "csv"], &["--csv"]);
    same(
        &["--format", "csv", "--csv", "--crlf", "-k", "1"],
        &["--csv", "-k", "1"],
    );
    let skip = ["-k", "2", "--missing", "skip"];
    let tabs = [&["-d", "tab"], &skip[..]].concat();
    same(&[&["--format", "tsv"], &skip[..]].concat(), &tabs);
    same(&[&["--format", "tsv"], &tabs[..]].concat(), &tabs);
    same(
        &[&["--format", "tsv", "--crlf"], &skip[..]].concat(),
        &[&["--crlf"], &tabs[..]].concat(),
    );
    // Quotes are content of tab-separated fields.
    let quoted = b"\"a\"\t1\na\t1\n";
    assert_eq!(
        dedup(&["--format", "tsv", "-k", "1"], quoted).bytes(),
        quoted
    );
    let header = ["--format", "tsv", "--header", "-k", "id"];
    assert_eq!(
        dedup(&header, b"n\tid\n1\t2\n3\t2\n").text(),
        "n\tid\n1\t2\n"
    );
}

#[test]
fn contradictions_are_errors() {
    let run = |args: &[&str]| echoless(&[&["dedup"], args].concat(), b"");
    let cases = [
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
    ];
    assert_errors(run, &cases);
}

#[test]
fn times_in_json_and_in_bytes() {
    let window = ["--window", "10s", "--time-field"];
    let args = [&JSON[..], &["k"], &window, &["at.t"]].concat();
    let input = concat!(
        "{\"k\":1,\"at\":{\"t\":\"2025-01-01T00:00:00Z\"}}\n",
        "{\"k\":1,\"at\":{\"t\":1735689605}}\n",
        "{\"k\":1,\"at\":{\"t\":1735689620.0}}\n",
    );
    let lines: Vec<&str> = input.split_inclusive('\n').collect();
    assert_eq!(
        dedup(&args, input.as_bytes()).text(),
        [lines[0], lines[2]].concat()
    );
    let run = dedup(&args, b"{\"k\":1,\"at\":{\"t\":true}}\n");
    assert!(
        run.error()
            .contains("line 1: `at.t` is not a time of --time-format")
    );
    let run = dedup(&args, b"{\"k\":1,\"at\":{}}\n");
    assert!(
        run.error()
            .contains("line 1: `at.t`, the time, is missing (--missing")
    );
    let fine = concat!(
        "{\"k\":1,\"at\":{\"t\":1.7e9}}\n",
        "{\"k\":1,\"at\":{\"t\":17000000099e-1}}\n",
        "{\"k\":1,\"at\":{\"t\":1.7000000121E+9}}\n",
        "{\"k\":1,\"at\":{\"t\":1.700000025e12}}\n",
    );
    let lines: Vec<&str> = fine.split_inclusive('\n').collect();
    assert_eq!(
        dedup(&args, fine.as_bytes()).text(),
        [lines[0], lines[2], lines[3]].concat()
    );
    for time in ["1e19", "1.7e99", "-1e400", "\"1.7e9\""] {
        let run = dedup(
            &args,
            format!("{{\"k\":1,\"at\":{{\"t\":{time}}}}}\n").as_bytes(),
        );
        let expected = format!(
            "line 1: `at.t` is not a time of --time-format auto: `{}` (--missing",
            time.trim_matches('"')
        );
        assert!(run.error().contains(&expected), "{}", run.error());
    }
    let fixed = [&["--format", "fixed:11", "-k", "0"], &window[..], &["1-10"]].concat();
    let input = b"a1735689600a1735689605a1735689620";
    assert_eq!(dedup(&fixed, input).bytes(), b"a1735689600a1735689620");
}

#[test]
fn fixed_records_have_no_terminator_and_no_mark() {
    let args = ["--format", "fixed:4"];
    assert_eq!(dedup(&args, b"").bytes(), b"");
    assert_eq!(dedup(&args, b"a\nb\0c\nb\0a\nb\0").bytes(), b"a\nb\0c\nb\0");
    let key = [&args[..], &["-k", "3,1"]].concat();
    assert_eq!(dedup(&key, b"abcdxbydabce").bytes(), b"abcdabce");
    // The bytes of a byte order mark are data.
    let marked = b"\xef\xbb\xbfa\xef\xbb\xbfb\xef\xbb\xbfa";
    assert_eq!(dedup(&args, marked).bytes(), &marked[..8]);
    assert_eq!(
        dedup(&["--format", "fixed:3"], b"\xef\xbb\xbf\xef\xbb\xbf").bytes(),
        b"\xef\xbb\xbf"
    );
    let run = dedup(&["--format", "fixed:100", "--max-record", "99"], &[0; 200]);
    let expected =
        "invalid --format=fixed:100: expected records of at most 99 bytes (--max-record)";
    assert_eq!(run.error(), expected);
}

#[test]
fn a_rest_shorter_than_a_record_is_an_error() {
    let run = dedup(&["--format", "fixed:64"], &[b'a'; 64 * 5 + 3]);
    assert_eq!(
        run.error(),
        "standard input, record 6: the input ends after 3 of 64 bytes of the record at byte offset 320"
    );
    assert_eq!(run.stdout, [b'a'; 64]);
    let directory = tempfile::tempdir().unwrap();
    let good = file(directory.path(), "good", &vec![b'a'; 64 * 10_000]);
    let cut = file(directory.path(), "cut", &vec![b'a'; 64 * 10_000 + 63]);
    for threads in ["1", "3"] {
        let args = [
            "--format",
            "fixed:64",
            "--threads",
            threads,
            &good,
            &cut,
            &good,
        ];
        assert_eq!(
            dedup(&args, b"").error(),
            format!(
                "{cut}, record 10001: the input ends after 63 of 64 bytes of the record at byte offset 640000"
            )
        );
    }
}

#[test]
fn prefixed_records_are_compared_by_their_payload() {
    let run = |length: &str, input: &[u8]| {
        dedup(&["--format", &format!("prefixed:{length}")], input).bytes()
    };
    assert_eq!(run("u8", b"\x01a\x02aa\0\x01a\0"), b"\x01a\x02aa\0");
    assert_eq!(run("u16be", b"\0\x01a\0\x01a"), b"\0\x01a");
    assert_eq!(run("u32le", b"\x01\0\0\0a\x01\0\0\0a"), b"\x01\0\0\0a");
    // Two ways to write the length 1.
    assert_eq!(run("varint", b"\x81\0a\x01a"), b"\x81\0a");
    let key = ["--format", "prefixed:u8", "-k", "1-2"];
    assert_eq!(
        dedup(&key, b"\x03abc\x04xbcy\x03abd").bytes(),
        b"\x03abc\x03abd"
    );
    let run = dedup(&key, b"\x03abc\x02ab");
    assert_eq!(
        run.error(),
        "standard input, record 2: byte range 1-2 of the key is missing: the record has 2 bytes after its length (--missing skip or empty allows that)"
    );
}

#[test]
fn cut_and_overlong_records_are_errors() {
    let args = ["--format", "prefixed:u16be"];
    for (input, message) in [
        (
            &b"\0\x01a\0"[..],
            "ends inside the length of the record at byte offset 3",
        ),
        (
            b"\0\x01a\0\x05bc",
            "ends after 4 of 7 bytes of the record at byte offset 3",
        ),
    ] {
        let run = dedup(&args, input);
        assert_eq!(
            run.error(),
            format!("standard input, record 2: the input {message}")
        );
        assert_eq!(run.stdout, b"\0\x01a");
    }
    let limited = ["--format", "prefixed:u32be", "--max-record", "300000"];
    let long = [&b"\xff\xff\xff\xff"[..], &[0; 400_000]].concat();
    assert!(
        dedup(&limited, &long)
            .error()
            .contains("record 1: the record that begins here is longer")
    );
    let fits = [&299_996u32.to_be_bytes()[..], &[0; 299_996]].concat();
    assert_eq!(dedup(&limited, &fits).bytes(), fits);
    let run = dedup(&["--format", "prefixed:varint"], &[0xff; 20]);
    assert_eq!(
        run.error(),
        "standard input, record 1: the length of the record exceeds 64 bits"
    );
}

/// The options of each format with a key, and a stream of records that fills many chunks.
fn streams() -> Vec<(Vec<&'static str>, Vec<u8>)> {
    let keys = || (0_u32..60_000).map(|index| index.wrapping_mul(2_654_435_761) >> 17);
    let all = |record: &dyn Fn(u32) -> Vec<u8>| keys().flat_map(record).collect::<Vec<u8>>();
    let json = |key| {
        let name = if key % 2 == 0 { "A" } else { "\\u0041" };
        format!("{{\"user\":{{\"name\":\"{name}\"}},\"id\":{key},\"text\":\"{key:>50}\"}}\n")
            .into_bytes()
    };
    let prefixed = |key: u32| {
        let payload = format!("{key:0>width$}", width = 5 + key as usize % 100).into_bytes();
        [&[payload.len() as u8][..], &payload].concat()
    };
    vec![
        (vec!["--format", "jsonl", "-k", "id,user.name"], all(&json)),
        (
            vec!["--format", "fixed:9", "-k", "0-3"],
            all(&|key| [&key.to_le_bytes()[..], b"\n\0 \xef\xbb"].concat()),
        ),
        (vec!["--format", "prefixed:u8"], all(&prefixed)),
        (
            vec!["--format", "prefixed:varint", "-k", "0-4"],
            all(&prefixed),
        ),
        (
            vec!["--format", "tsv", "-k", "2"],
            all(&|key| format!("x\t{key}\n").into_bytes()),
        ),
        (
            vec!["--format", "csv", "-k", "1"],
            all(&|key| format!("\"{key}\"\n").into_bytes()),
        ),
        (
            vec!["--format", "lines"],
            all(&|key| format!("{key}\n").into_bytes()),
        ),
    ]
}

#[test]
fn any_number_of_threads_gives_the_same_bytes_and_errors() {
    for (args, input) in streams() {
        // Too little memory for all keys, so that another order of the records shows.
        let run = |threads, input: &[u8]| {
            let all = [
                &["dedup", "-q", "-m", "64k", "--threads", threads],
                &args[..],
            ]
            .concat();
            let run = echoless(&all, input);
            (run.stdout, run.stderr, run.code)
        };
        let cut = &input[..input.len() - 1];
        let broken = [&input[..], b"\xff{", &input[..]].concat();
        for input in [&input[..], cut, &broken] {
            let expected = run("1", input);
            for threads in ["2", "3", "8"] {
                assert!(
                    run(threads, input) == expected,
                    "{args:?}, {threads} threads"
                );
            }
        }
    }
}

/// Whether `kept` is `all` without some of its elements.
fn is_subsequence(kept: &[&[u8]], all: &[&[u8]]) -> bool {
    let mut rest = all.iter();
    kept.iter().all(|record| rest.any(|other| other == record))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn fixed_output_equals_a_set_of_records(
        records in vec(prop::array::uniform3(prop::sample::select(b"ab\n".to_vec())), 0..60),
    ) {
        let records: Vec<&[u8]> = records.iter().map(<[u8; 3]>::as_slice).collect();
        let (fresh, duplicates) = split_seen(&records, |record| [record[0], record[2]]);
        let args = ["--format", "fixed:3", "-k", "0,2"];
        prop_assert_eq!(dedup(&args, &records.concat()).bytes(), fresh);
        let inverted = [&args[..], &["--invert"]].concat();
        prop_assert_eq!(dedup(&inverted, &records.concat()).bytes(), duplicates);
    }

    /// Any bytes give whole records of the input in their order, and at most one error.
    #[test]
    fn kept_records_are_a_subsequence(bytes in vec(prop_oneof![0u8..4, any::<u8>()], 0..200)) {
        let run = dedup(&["--format", "prefixed:u8"], &bytes);
        let split = |bytes: &[u8]| {
            let mut ends = vec![0];
            let mut at = 0;
            while at < bytes.len() && at + 1 + usize::from(bytes[at]) <= bytes.len() {
                at += 1 + usize::from(bytes[at]);
                ends.push(at);
            }
            ends
        };
        let records = |bytes| -> Vec<Vec<u8>> {
            split(bytes).windows(2).map(|ends| bytes[ends[0]..ends[1]].to_vec()).collect()
        };
        let (all, kept) = (records(&bytes), records(&run.stdout));
        let kept: Vec<&[u8]> = kept.iter().map(Vec::as_slice).collect();
        let all: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        prop_assert!(is_subsequence(&kept, &all));
        let distinct: HashSet<_> = all.iter().collect();
        prop_assert_eq!(kept.len(), distinct.len());
        prop_assert_eq!(kept.concat(), run.stdout);
        let whole = split(&bytes).last().copied() == Some(bytes.len());
        prop_assert_eq!(run.code, if whole { 0 } else { 2 });
        prop_assert_eq!(run.stderr.matches('\n').count(), usize::from(!whole));
    }
}

#[test]
fn byte_ranges_that_meet_are_missing_one_by_one() {
    let keys = ["--format", "prefixed:u8", "-k", "0-3,4-"];
    let input = b"\x04abcd\x04wxyz\x04abcd\x05abcde";
    let empty = [&keys[..], &["--missing", "empty"]].concat();
    assert_eq!(dedup(&empty, input).bytes(), b"\x04abcd\x04wxyz\x05abcde");
    let error = dedup(&keys, input);
    assert!(
        error.error().contains("byte range 4- of the key"),
        "{}",
        error.error()
    );
}
