//! `--format ber`: call records in BER, their fields, and what is wrong with faulty ones.

use echoless_ber::synth::Writer;

use crate::run::{Folder, assert_errors, dedup};

const KEY: &str = "--format ber -k 0x80,0xA3/0x81";

/// `[tag] { [0] number, [3] { [1] text } }`.
pub(crate) fn record(tag: u8, number: u8, text: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    Writer::new(&mut record).constructed(&[tag], |fields| {
        fields.primitive(&[0x80], &[number]);
        fields.constructed(&[0xa3], |inner| inner.primitive(&[0x81], text));
    });
    record
}

/// The same with indefinite lengths and a length octet too many.
fn loose_record(tag: u8, number: u8, text: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    Writer::new(&mut record).indefinite(&[tag], |fields| {
        fields.indefinite(&[0xa3], |inner| inner.primitive(&[0x81], text));
        // The identifier octet, and a length of 1 in two octets: 0x81 is written as if of the tag.
        fields.primitive(&[0x80, 0x81], &[number]);
    });
    record
}

#[test]
fn encoding_and_type_of_record_do_not_count_in_values() {
    let first = record(0xa0, 7, b"abc");
    for other in [record(0xa1, 7, b"abc"), loose_record(0xb4, 7, b"abc")] {
        let input = [&first[..], &other, &record(0xa0, 7, b"abd"), &other].concat();
        let expected = [&first[..], &record(0xa0, 7, b"abd")].concat();
        assert_eq!(dedup(KEY, &input).bytes(), expected);
    }
    // Without a key, the bytes are compared, and only they.
    let input = [record(0xa0, 7, b"abc"), loose_record(0xa0, 7, b"abc")].concat();
    assert_eq!(dedup("--format ber", &input).bytes(), input);
    let input = [&input[..], &input].concat();
    assert_eq!(
        dedup("--format ber", &input).bytes(),
        input[..input.len() / 2]
    );
}

#[test]
fn filler_belongs_to_the_record_before_it() {
    let (one, two) = (record(0xa0, 1, b"x"), loose_record(0xbf, 2, b"y"));
    let two = [b"\xbf\x4f", &two[1..]].concat();
    let with_filler = [
        b"\0\xff\0",
        &one[..],
        b"\xff\xff",
        &two,
        &[0; 37],
        &one,
        b"\xff",
        &two,
    ]
    .concat();
    let kept = [b"\0\xff\0", &one[..], b"\xff\xff", &two, &[0; 37]].concat();
    let dropped = [&one[..], b"\xff", &two].concat();
    for args in [KEY, "--format ber"] {
        assert_eq!(dedup(args, &with_filler).bytes(), kept);
        let inverted = dedup(format!("{args} --invert"), &with_filler);
        assert_eq!(inverted.bytes(), dropped);
        assert_eq!(dedup(args, &kept).bytes(), kept);
    }
    // Filler alone is a record without fields.
    assert_eq!(dedup("--format ber", [0; 9]).bytes(), [0; 9]);
    dedup(KEY, [0xff; 9]).fails("record 1: `0x80` of the key is missing");
}

#[test]
fn filler_alone_is_judged_as_a_record_without_fields() {
    let (filler, without) = (b"\0\0", b"\xa0\0");
    for (args, missing) in [
        ("-k 0x83?", None),
        ("-k 0x83?,0xA3/0x81?", None),
        ("-k 0x83?,0x80", Some("`0x80` of the key")),
        ("-k 0x83?,0x80 --missing skip", None),
        ("-k 0x83?,0x80 --missing empty", None),
        ("-k 0x83? --window 1h --time-field 0x84", Some("`0x84`")),
    ] {
        let args = format!("--format ber {args}");
        let run = dedup(&args, filler);
        assert_eq!(run.stderr, dedup(&args, without).stderr, "{args}");
        match missing {
            None => assert_eq!(run.bytes(), filler, "{args}"),
            Some(field) => run.fails(field),
        }
    }
    // Neither has the field, so an element without it is a copy of filler alone.
    let folder = Folder::with(&[("filler", filler), ("without", without)]);
    let run = folder.dedup("--format ber -k 0x83? filler without");
    assert_eq!(run.bytes(), filler);
}

#[test]
fn all_values_on_a_path_are_compared() {
    let list = |items: &[&[u8]]| {
        let mut record = Vec::new();
        Writer::new(&mut record).constructed(&[0xa0], |fields| {
            fields.constructed(&[0xa5], |list| {
                items.iter().for_each(|item| list.primitive(&[0x04], item));
            });
        });
        record
    };
    let records = [
        list(&[b"a", b"b"]),
        list(&[b"b", b"a"]),
        list(&[b"ab"]),
        list(&[b"a", b"", b"b"]),
        list(&[b""]),
        list(&[]),
    ];
    let input = [&records.concat()[..], &records.concat()].concat();
    let args = "--format ber -k 0xA5/0x04?";
    assert_eq!(dedup(args, &input).bytes(), records.concat());
}

#[test]
fn missing_fields_are_treated_as_configured() {
    let whole = record(0xa0, 1, b"x");
    let without = b"\xa0\x03\x80\x01\x01".to_vec();
    let empty = record(0xa0, 1, b"");
    let input = [&whole[..], &without, &empty, &without].concat();
    let run = dedup(KEY, &input);
    assert_eq!(
        run.error(),
        "standard input, record 2: `0xA3/0x81` of the key is missing (--missing skip or empty allows that)"
    );
    assert_eq!(run.stdout, whole);
    let missing = |how| dedup(format!("{KEY} --missing {how}"), &input).bytes();
    assert_eq!(missing("skip"), input);
    assert_eq!(missing("empty"), input[..input.len() - without.len()]);
    // A field that may be missing is as an empty one for `--missing`, and no value equals it.
    let optional = dedup("--format ber -k 0x80,0xA3/0x81?", &input).bytes();
    assert_eq!(optional, input[..input.len() - without.len()]);
}

#[test]
fn malformed_records_end_the_run_with_their_position() {
    let good = record(0xa0, 1, b"x");
    let deep = b"\xa0\x80".repeat(33);
    for (bad, message) in [
        (
            &b"\xa0\xff\x01"[..],
            "a length begins with the reserved byte 0xFF: byte 0 of the record at byte offset 10",
        ),
        (
            b"\x80\x80",
            "a primitive value of indefinite length: byte 0 of the record at byte offset 10",
        ),
        (
            &deep,
            "nested deeper than 32 levels: byte 64 of the record at byte offset 10",
        ),
        (
            b"\xa0\x05\x80\x04abc\xa0\0",
            "an element is longer than the value around it: byte 2 of the record at byte offset 10",
        ),
        (
            b"\xa0\x03\x80\x01x\x01",
            "the input ends inside the length of the record at byte offset 15",
        ),
        (
            b"\xa0\x09\x80\x01x",
            "the input ends after 5 of 11 bytes of the record at byte offset 10",
        ),
        (
            b"\xa0\x80\x80\x01x\0",
            "the input ends before the end-of-contents of the record: byte 6 of the record at byte offset 10",
        ),
    ] {
        let input = [&good[..], bad].concat();
        let run = dedup("--format ber -k 0x80", &input);
        let record = if message.ends_with("15") { 3 } else { 2 };
        assert_eq!(
            run.error(),
            format!("standard input, record {record}: {message}")
        );
        assert!(run.stdout.starts_with(&good));
    }
    // A broken length is an error where it is, not at the end of the input, under every
    // `--missing`.
    let input = [&good[..], b"\xa0\xff", &vec![b'x'; 1 << 20]].concat();
    for missing in ["error", "skip", "empty"] {
        let run = dedup(format!("{KEY} --missing {missing}"), &input);
        run.fails("record 2: a length begins with");
        assert_eq!(run.stdout, good);
    }
    // A record that cannot be read inside passes with `--missing skip`.
    let input = [&good[..], b"\xa0\x05\x80\x04abc\xa0\0\xff", &good].concat();
    let skip = dedup("--format ber -k 0x80? --missing skip", &input);
    assert_eq!(skip.bytes(), input[..input.len() - good.len()]);
    let limit = "--format ber --max-record 300000";
    let long = [&good[..], b"\xa0\x84\xff\xff\xff\xff", &vec![b'x'; 1 << 20]].concat();
    dedup(limit, &long).fails("record 2: the record that begins here is longer");
}

#[test]
fn faulty_records_are_set_aside_where_their_end_is_known() {
    let (one, two) = (record(0xa0, 1, b"x"), record(0xa0, 2, b"y"));
    let faulty = b"\xa0\x05\x80\x04abc\xff\xff";
    let folder = Folder::with(&[
        ("faulty", [&one[..], faulty, &two].concat()),
        ("endless", [&one[..], b"\xa0\xff", &two].concat()),
    ]);
    let run = |name: &str| folder.dedup(format!("--format ber -k 0x80 --rejects rejects {name}"));
    assert_eq!(run("faulty").bytes(), [&one[..], &two].concat());
    assert_eq!(folder.bytes("rejects"), faulty);
    let place = folder.read("rejects.jsonl");
    let longer = "an element is longer than the value around it";
    assert!(place.contains(longer), "{place}");
    let run = run("endless");
    run.fails("record 2: a length begins with the reserved byte 0xFF");
    assert_eq!(run.stdout, one);
}

#[test]
fn contradictions_are_errors() {
    let cases = [
        "--format ber -k 80 | invalid --key=`80`: expected tags in hexadecimal identifier bytes",
        "--format ber -k 0x80,0x8 | invalid --key=`0x8`: expected tags",
        "--format ber -k recordType | invalid --key=`recordType`: expected tags",
        "--format ber:3gpp -k recordtype | invalid --key=`recordtype`: expected tags",
        "--format ber -k 0x80 --window 1s --time-field 0x8080 | invalid --time-field=`0x8080`",
        "--format ber: | missing --format ber: expected 3gpp or profile=FILE.toml",
        "--format ber:4gpp | invalid --format ber=4gpp: expected 3gpp or profile=FILE.toml, and container=TAG/TAG or ts32297",
        "--format ber:3gpp,3gpp | invalid --format ber=3gpp,3gpp: expected",
        "--format ber:profile=missing.toml | missing.toml: No such file",
        "--format ber --header | expected no header with --format ber",
        "--format ber --csv | --csv does not contradict",
        "--format ber --missing skip | --key or --time-field beside --missing",
        "--fix-header | invalid --fix-header: expected a format with file headers",
        "--format ber:3gpp --fix-header | expected a format with file headers, --format ber:ts32297",
        "--format ber:ts32297 --fix-header --count | expected an output of records, not --count",
        "--format ber:ts32297 --fix-header | invalid --fix-header=standard output: expected regular files",
    ];
    assert_errors(|args| dedup(args, ""), &cases);
}
