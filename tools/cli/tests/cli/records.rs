//! The records of a stream: terminators, the last record, odd bytes, long records.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::run::{assert_runs, dedup, split_seen};

#[test]
fn first_occurrences_are_kept_in_order() {
    assert_runs(&[
        " | b\na\nb\nc\na\n | b\na\nc\n",
        " |  | ",
        "-z |  | ",
        "--csv |  | ",
        "--header |  | ",
        // Empty records are records.
        " | \n\na\n\n | \na\n",
    ]);
}

#[test]
fn terminators_are_no_content() {
    assert_runs(&[
        // A last record without terminator keeps its bytes and its key.
        " | a\nb | a\nb",
        " | a\nb\na | a\nb\n",
        "-z | a\0b | a\0b",
        // A CR is content without --crlf.
        " | a\r\na\nb\r\nb\r\n | a\r\na\nb\r\n",
        "--crlf | a\r\na\nb\r\nb\r\n | a\r\nb\r\n",
        "--crlf | a\r\na\r | a\r\na\r",
        "--csv -k 1 | a\r\na\nb\r\nb\r\n | a\r\nb\r\n",
        "-z | a\nb\0a\n\0a\nb\0 | a\nb\0a\n\0",
    ]);
    // Any bytes are allowed.
    let input = b"\xff\xfd\0\n\0\n\xff\xfd\0\n\xc3\n\0\n\xc3\x28\n";
    assert_eq!(
        dedup("", input).bytes(),
        b"\xff\xfd\0\n\0\n\xc3\n\xc3\x28\n"
    );
}

#[test]
fn records_longer_than_any_buffer() {
    let long = "x".repeat(3 << 20);
    let longer = format!("{long}y");
    for (args, end, quote) in [("", "\n", ""), ("-z", "\0", ""), ("--csv", "\n", "\"")] {
        let record = |text: &str| format!("{quote}{text}{quote}{end}");
        let once = ["a", &long, "b", &longer, "c"].map(record).concat();
        assert!(dedup(args, once.repeat(2)).text() == once, "{args}");
    }
}

#[test]
fn records_longer_than_allowed_end_the_run() {
    for (args, end) in [("", "\n"), ("-z", "\0"), ("--csv", "\n")] {
        for longest in [10, 300_000, 1 << 20] {
            let allowed = format!("{}{end}", "x".repeat(longest - 1));
            let args = format!("{args} --max-record {longest}");
            let fine = format!("a{end}{allowed}b{end}");
            assert!(dedup(&args, &fine).text() == fine, "{args}");

            let run = dedup(&args, format!("{fine}b{end}x{allowed}c{end}"));
            let unit = if end == "\0" { "record" } else { "line" };
            run.fails(&format!(
                "standard input, {unit} 5: the record that begins here is longer than "
            ));
            assert!(run.stdout == fine.as_bytes(), "{args}");

            let unterminated = format!("a{end}xx{allowed}");
            dedup(&args, unterminated.trim_end()).fails(&format!("{unit} 2: "));
        }
    }
    let long = "x".repeat(1_000_001);
    assert_runs(&[
        "--header --max-record 4 | abcd\n1\n | !! line 1: ",
        &format!(
            "--csv --max-record 64k | a\n\"{long} | a\n!! standard input, line 2: the record that begins here is longer than 64 KiB (--max-record)"
        ),
        // Limits that differ are told apart.
        &format!("--max-record 999999 | {long}\n | !! is longer than 999,999 bytes (--max-record)"),
        &format!("--max-record 1MB | {long}\n | !! is longer than 1,000,000 bytes (--max-record)"),
    ]);
    #[cfg(target_os = "linux")]
    assert_runs(&[
        "/dev/zero |  | !! /dev/zero, line 1: the record that begins here is longer than 64 MiB (--max-record)",
    ]);
}

#[test]
fn many_chunks_of_short_records() {
    let input: String = (0..400_000).map(|i| format!("{}\n", i % 7919)).collect();
    let expected: String = (0..7919).map(|i| format!("{i}\n")).collect();
    assert!(dedup("", input.as_bytes()).text() == expected);
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
        let (end, args) = if nul { (0, "-z") } else { (b'\n', "") };
        let records: Vec<&[u8]> = input.split_inclusive(|byte| *byte == end).collect();
        let content = |record: &[u8]| record.strip_suffix(&[end]).unwrap_or(record).to_vec();
        let (fresh, duplicates) = split_seen(&records, content);
        prop_assert_eq!(dedup(args, &input).bytes(), fresh);
        prop_assert_eq!(dedup(format!("{args} --invert"), &input).bytes(), duplicates);
    }
}
