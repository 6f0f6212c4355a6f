//! `--format ber:ts32297`: files with the headers of 3GPP TS 32.297.

use echoless_ber::synth::{append_cdr, file_header};

use crate::run::{Folder, dedup, echoless};

const ARGS: &str = "--format ber:ts32297 -k 0x80";

/// A record with this key, and its CDR header.
fn cdr(key: u8) -> Vec<u8> {
    let mut cdr = Vec::new();
    append_cdr(&[0xa0, 5, 0x80, 3, key, key, key], &mut cdr);
    cdr
}

/// A file of records with these keys.
fn call_file(keys: &[u8], sequence: u32) -> Vec<u8> {
    let records: Vec<u8> = keys.iter().flat_map(|key| cdr(*key)).collect();
    [
        file_header(records.len() as u32, keys.len() as u32, sequence),
        records,
    ]
    .concat()
}

/// A file with the header of another, as it is.
fn with_header_of(header: &[u8], keys: &[u8]) -> Vec<u8> {
    let records: Vec<u8> = keys.iter().flat_map(|key| cdr(*key)).collect();
    [&header[..52], &records].concat()
}

#[test]
fn headers_are_passed_on() {
    let unique = call_file(&[1, 2, 3], 9);
    assert_eq!(dedup(ARGS, &unique).bytes(), unique);
    assert_eq!(dedup("--format ber:ts32297", &unique).bytes(), unique);
    let empty = call_file(&[], 9);
    assert_eq!(dedup(ARGS, &empty).bytes(), empty);
    assert_eq!(dedup(ARGS, b"").bytes(), b"");
    let repeated = call_file(&[1, 2, 1, 3, 2], 9);
    let kept = with_header_of(&repeated, &[1, 2, 3]);
    assert_eq!(dedup(ARGS, &repeated).bytes(), kept);
    // The CDR header is no part of what is compared: here, its release is another one, with an
    // octet more.
    let mut other = call_file(&[1, 1], 9);
    let last = other.len() - 7;
    other[last - 2] |= 0xe0;
    other.insert(last, 3);
    for args in [ARGS, "--format ber:ts32297"] {
        assert_eq!(dedup(args, &other).bytes(), other[..last - 4]);
    }
}

#[test]
fn several_files_have_the_header_of_the_first() {
    let one = call_file(&[1, 2], 1);
    let folder = Folder::with(&[
        ("one", &one[..]),
        ("nothing", b""),
        ("two", &call_file(&[2, 3], 2)),
        ("three", &call_file(&[3, 4], 3)),
    ]);
    let expected = with_header_of(&one, &[1, 2, 3, 4]);
    for threads in ["1", "3"] {
        let run = folder.dedup(format!("{ARGS} --threads {threads} one nothing two three"));
        assert_eq!(run.bytes(), expected);
    }
}

#[test]
fn fixed_headers_have_the_length_and_count_of_the_output() {
    let folder = Folder::new();
    let fixed = |input: &[u8], more: &str| {
        let files = "--fix-header -o kept --duplicates dropped";
        folder
            .dedup_on(format!("{ARGS} {files} {more}"), input)
            .text();
        (folder.bytes("kept"), folder.bytes("dropped"))
    };
    let input = call_file(&[1, 2, 1, 3, 2], 9);
    let expected = (call_file(&[1, 2, 3], 9), call_file(&[1, 2], 9));
    for threads in ["--threads 1", "--threads 2", "--threads 8"] {
        assert_eq!(fixed(&input, threads), expected);
    }
    // An old, longer output leaves nothing behind.
    let shorter = call_file(&[1], 4);
    assert_eq!(fixed(&shorter, ""), (shorter, call_file(&[], 4)));
    // A fixed file is fixed to itself.
    assert_eq!(fixed(&expected.0, "").0, expected.0);
    assert_eq!(fixed(b"", ""), (Vec::new(), Vec::new()));
    let args = format!("{ARGS} --fix-header --invert -o inverted");
    folder.dedup_on(args, &input).text();
    assert_eq!(folder.bytes("inverted"), expected.1);
}

#[test]
fn wrong_headers_are_announced() {
    let folder = Folder::new();
    let words = "the file header is a copy: its file length and number of records are wrong \
                 (--fix-header corrects them)";
    for (keys, more, is_wrong) in [
        ([1, 1], "", true),
        ([1, 2], "", false),
        ([1, 1], "--count", false),
        ([1, 1], "--fix-header -o out", false),
        ([1, 1], "-o out", true),
    ] {
        let run = folder.echoless_on(format!("dedup -m 1MiB {ARGS} {more}"), call_file(&keys, 1));
        assert_eq!(run.code, 0);
        assert_eq!(
            run.stderr.contains(words),
            is_wrong,
            "{keys:?} {more}: {}",
            run.stderr
        );
    }
    let args = format!("dedup -m 1MiB --summary=line {ARGS}");
    let line = echoless(args, call_file(&[1, 1], 1)).stderr;
    assert!(
        line.ends_with("; the file header is a copy (--fix-header)\n"),
        "{line}"
    );
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn only_regular_files_are_fixed() {
    let folder = Folder::new();
    for (more, name) in [
        ("", "standard output"),
        ("-o /dev/null", "/dev/null"),
        ("-o out --duplicates /dev/null", "/dev/null"),
    ] {
        let run = folder.dedup(format!("{ARGS} --fix-header {more}"));
        run.fails_with(&format!(
            "invalid --fix-header={name}: expected regular files as outputs, such as -o FILE"
        ));
    }
    assert!(!folder.has("out"), "a rejected run leaves no output");
}

#[test]
fn faulty_files_end_the_run() {
    let good = call_file(&[1, 2], 1);
    let mut no_length = good.clone();
    no_length[52..54].copy_from_slice(&[0, 0]);
    let mut packed = good.clone();
    packed[52 + 3] = 0x46;
    let mut short = good.clone();
    // The element ends a byte before the record does.
    short[52 + 5] -= 1;
    for (input, message) in [
        (
            &good[..good.len() - 1],
            "record 2: the input ends after 10 of 11 bytes of the record at byte offset 63",
        ),
        (
            &good[..good.len() - 9],
            "record 2: the input ends inside the length of the record at byte offset 63",
        ),
        (
            &good[..20],
            "record 1: the input ends after 20 of 52 bytes of the record at byte offset 0",
        ),
        (
            &good[..7],
            "record 1: the input ends inside the length of the record at byte offset 0",
        ),
        (
            &good[52..],
            "record 1: the length of the file header is not 48 to 131124, as in files of TS 32.297: byte 4 of the record at byte offset 0",
        ),
        (
            &no_length,
            "record 1: the CDR length is 0: byte 0 of the record at byte offset 52",
        ),
        (
            &packed,
            "record 1: the data record format in the CDR header is not 1, BER: byte 3 of the record at byte offset 52",
        ),
        (
            &short,
            "record 1: bytes follow the value of the record: byte 6 of the record at byte offset 52",
        ),
    ] {
        let run = dedup(ARGS, input);
        run.fails_with(&format!("standard input, {message}"));
    }
    // Every cut is an error, or the end of a record.
    for cut in 1..good.len() {
        let run = dedup(ARGS, &good[..cut]);
        assert_eq!(run.code == 0, [52, 63].contains(&cut), "{cut}");
    }
    let limited = |most: u32| dedup(format!("{ARGS} --max-record {most}"), &good);
    assert_eq!(limited(11).bytes(), good);
    let run = limited(10);
    run.fails_with(
        "standard input, record 1: the record that begins here is longer than 10 bytes \
         (--max-record)",
    );
    assert_eq!(run.stdout, good[..52]);
}
