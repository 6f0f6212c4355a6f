//! Call records in BER: generated ones, their times, and the profiles that name their fields.

use crate::ber::record;
use crate::run::{Folder, dedup, echoless};

const GENERATE: &str = "gen cdr --format ber --duplicates 0.3";

#[test]
fn generated_records_have_the_keys_of_the_delimited_ones() {
    let ber = echoless(format!("{GENERATE} -n 20000"), b"").bytes();
    let csv = echoless("gen cdr --duplicates 0.3 -n 20000", b"").bytes();
    assert!((100..300).contains(&(ber.len() / 20_000)), "{}", ber.len());
    let count = |args: &str, input: &[u8]| dedup(format!("{args} --count"), input).text();
    let expected = count("", &csv);
    let key = "0x80,servedIMSI,callReference?,messageReference?,originationTime?";
    for args in [
        "--format ber:3gpp",
        "--format ber",
        &format!("--format ber:3gpp -k {key}"),
    ] {
        assert_eq!(count(args, &ber), expected, "{args}");
    }
    // All calls of a subscriber have one identity, in records of any type.
    let imsi = count("--format ber:3gpp -k servedIMSI", &ber);
    let imsi: u32 = imsi.trim().parse().unwrap();
    assert!(imsi < expected.trim().parse().unwrap());
    let fresh = dedup("--format ber:3gpp", &ber).bytes();
    assert_eq!(dedup("--format ber:3gpp", &fresh).bytes(), fresh);
    let error = echoless("gen keys --format ber", b"");
    error.fails("cdr with --format");
    let error = echoless("gen cdr --format ber --header", b"");
    error.fails("no header with --format ber");
}

#[test]
fn times_of_call_records_are_a_clock() {
    let ber = echoless(format!("{GENERATE} -n 20000 --gap 2000"), b"").bytes();
    let count = |window, field| {
        let format = "--format ber:3gpp --time-format bcd --missing empty --count";
        let args = format!("{format} --window {window} --time-field {field}");
        dedup(&args, &ber).text().trim().parse::<u32>().unwrap()
    };
    // There are 500 records in a second, so that each repeat comes 4 seconds later, with the same
    // time: the clock is that of the records between them.
    let (all, half) = (count("60s", "seizureTime"), count("1s", "seizureTime"));
    assert!(all < 15_000, "{all}");
    assert!(half > 18_000, "{half}");
    let run = dedup(
        "--format ber --window 1s --time-field 0x80 --time-format bcd",
        record(0xa0, 1, b"x"),
    );
    run.fails("`0x80` is not a time of --time-format bcd: `");
}

#[test]
fn profiles_name_fields_and_keys() {
    let text = "[records.one]\ntag = \"0xA0\"\nkey = [\"number\", \"text?\"]\n\
                [records.one.fields]\nnumber = \"0x80\"\ntext = \"0xA3/0x81\"\n\
                [records.other]\ntag = \"0xA1\"\nkey = [\"text\"]\n\
                fields = { text = \"0xA3/0x81\" }\n";
    let broken = text.replace("0xA3", "A3");
    let folder = Folder::with(&[("calls.toml", text), ("broken.toml", &broken)]);
    let run = |more: &str, input: &[u8]| {
        folder.dedup_on(format!("--format ber:profile=calls.toml {more}"), input)
    };
    let records = [
        record(0xa0, 1, b"x"),
        record(0xa0, 2, b"x"),
        b"\xa0\x03\x80\x01\x01".to_vec(),
        record(0xa1, 1, b"y"),
        record(0xa1, 2, b"y"),
    ];
    let input = [&records.concat()[..], &records.concat()].concat();
    assert_eq!(run("", &input).bytes(), records[..4].concat());
    let named = run("-k text?", &input).bytes();
    assert_eq!(named, [&records[0][..], &records[2], &records[3]].concat());
    // A type without the field lacks it, and so does one that is not in the profile.
    let missing = run("-k number", &records[3]);
    missing.fails("record 1: `number` of the key is missing");
    let unknown = record(0xa2, 1, b"x");
    run("", &unknown).fails("record 1: `number` or `text` of the key is missing");
    assert_eq!(run("--missing skip", &unknown).bytes(), unknown);
    // It must not be overwritten.
    run("-o calls.toml", &input).fails("is also a file that an option reads");
    let run = folder.dedup("--format ber:profile=broken.toml");
    run.fails("broken.toml, line 6: `A3/0x81` is no path");
}
