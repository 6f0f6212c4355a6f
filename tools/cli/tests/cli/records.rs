//! The records of a stream: terminators, the last record, odd bytes, long records.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::run::{dedup, split_seen};

#[test]
fn first_occurrences_are_kept_in_order() {
    assert_eq!(dedup(&[], b"b\na\nb\nc\na\n").text(), "b\na\nc\n");
}

#[test]
fn empty_input_gives_empty_output() {
    for args in [&[][..], &["-z"], &["--csv"], &["--header"]] {
        assert_eq!(dedup(args, b"").text(), "");
    }
}

#[test]
fn empty_records_are_records() {
    assert_eq!(dedup(&[], b"\n\na\n\n").text(), "\na\n");
}

#[test]
fn a_last_record_without_terminator_keeps_its_bytes_and_its_key() {
    assert_eq!(dedup(&[], b"a\nb").text(), "a\nb");
    assert_eq!(dedup(&[], b"a\nb\na").text(), "a\nb\n");
    assert_eq!(dedup(&["-z"], b"a\0b").text(), "a\0b");
}

#[test]
fn a_cr_is_content_without_crlf() {
    let input = b"a\r\na\nb\r\nb\r\n";
    assert_eq!(dedup(&[], input).text(), "a\r\na\nb\r\n");
    assert_eq!(dedup(&["--crlf"], input).text(), "a\r\nb\r\n");
    assert_eq!(dedup(&["--crlf"], b"a\r\na\r").text(), "a\r\na\r");
    assert_eq!(dedup(&["--csv", "-k", "1"], input).text(), "a\r\nb\r\n");
}

#[test]
fn nul_terminated_records_hold_newlines() {
    assert_eq!(dedup(&["-z"], b"a\nb\0a\n\0a\nb\0").text(), "a\nb\0a\n\0");
}

#[test]
fn any_bytes_are_allowed() {
    let input = b"\xff\xfd\0\n\0\n\xff\xfd\0\n\xc3\n\0\n\xc3\x28\n";
    let expected = b"\xff\xfd\0\n\0\n\xc3\n\xc3\x28\n";
    assert_eq!(dedup(&[], input).bytes(), expected);
}

#[test]
fn records_longer_than_any_buffer() {
    let long = "x".repeat(3 << 20);
    let longer = format!("{long}y");
    for (args, end, quote) in [
        (&[][..], "\n", ""),
        (&["-z"], "\0", ""),
        (&["--csv"], "\n", "\""),
    ] {
        let record = |text: &str| format!("{quote}{text}{quote}{end}");
        let records = [
            record("a"),
            record(&long),
            record("b"),
            record(&longer),
            record("c"),
        ];
        let once = records.concat();
        let twice = [once.clone(), once.clone()].concat();
        assert!(dedup(args, twice.as_bytes()).text() == once, "{args:?}");
    }
}

#[test]
fn records_longer_than_allowed_end_the_run() {
    for (args, end) in [(&[][..], "\n"), (&["-z"], "\0"), (&["--csv"], "\n")] {
        for longest in [10, 300_000, 1 << 20] {
            let allowed = format!("{}{end}", "x".repeat(longest - 1));
            let limit = longest.to_string();
            let args = [args, &["--max-record", &limit]].concat();
            let fine = format!("a{end}{allowed}b{end}");
            assert!(dedup(&args, fine.as_bytes()).text() == fine, "{args:?}");

            let run = dedup(&args, format!("{fine}b{end}x{allowed}c{end}").as_bytes());
            let unit = if end == "\0" { "record" } else { "line" };
            let place =
                format!("standard input, {unit} 5: the record that begins here is longer than ");
            assert!(run.error().starts_with(&place), "{}", run.error());
            assert!(run.stdout == fine.as_bytes(), "{args:?}");

            let unterminated = dedup(&args, format!("a{end}xx{allowed}").trim_end().as_bytes());
            assert!(unterminated.error().contains(&format!("{unit} 2: ")));
        }
    }
    let args = ["--header", "--max-record", "4"];
    assert!(dedup(&args, b"abcd\n1\n").error().contains("line 1: "));
    let run = dedup(
        &["--csv", "--max-record", "64k"],
        &[b"a\n\"", &[b'x'; 1 << 20][..]].concat(),
    );
    assert_eq!(
        run.error(),
        "standard input, line 2: the record that begins here is longer than 64 KiB (--max-record)"
    );
}

#[test]
fn limits_that_differ_are_told_apart_in_messages() {
    let mut input = vec![b'x'; 1_000_001];
    input.push(b'\n');
    for (limit, shown) in [("999999", "999,999 bytes"), ("1MB", "1,000,000 bytes")] {
        let run = dedup(&["--max-record", limit], &input);
        let expected = format!("is longer than {shown} (--max-record)");
        assert!(run.error().ends_with(&expected), "{}", run.error());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_input_that_never_ends_a_record_is_rejected() {
    let run = dedup(&["/dev/zero"], b"");
    assert_eq!(
        run.error(),
        "/dev/zero, line 1: the record that begins here is longer than 64 MiB (--max-record)"
    );
}

#[test]
fn many_chunks_of_short_records() {
    let input: String = (0..400_000).map(|i| format!("{}\n", i % 7919)).collect();
    let expected: String = (0..7919).map(|i| format!("{i}\n")).collect();
    assert!(dedup(&[], input.as_bytes()).text() == expected);
}

fn framed(terminator: u8) -> impl Strategy<Value = Vec<u8>> {
    let alphabet = vec![b'a', b'b', b'\r', 0xff, terminator, terminator];
    vec(prop::sample::select(alphabet), 0..300)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn output_equals_a_set_of_records(
        (nul, input) in any::<bool>().prop_flat_map(|nul| (Just(nul), framed(if nul { 0 } else { b'\n' }))),
    ) {
        let (end, args) = if nul { (0, vec!["-z"]) } else { (b'\n', vec![]) };
        let records: Vec<&[u8]> = input.split_inclusive(|byte| *byte == end).collect();
        let content = |record: &[u8]| record.strip_suffix(&[end]).unwrap_or(record).to_vec();
        let (fresh, duplicates) = split_seen(&records, content);
        prop_assert_eq!(dedup(&args, &input).bytes(), fresh);
        let inverted = [args, vec!["--invert"]].concat();
        prop_assert_eq!(dedup(&inverted, &input).bytes(), duplicates);
    }
}
