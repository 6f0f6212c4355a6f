//! Neither the lengths of reads, from a byte to a block, nor the number of threads change the
//! outputs of any format.

use std::fs;

use echoless_ber::synth::Writer;
use sha2::{Digest, Sha256};

use crate::run::{echoless, file};

/// The payload of record number `index`: a key of eight digits that repeats, and text.
fn payload(index: u32) -> String {
    let key = index * 7919 % 1500;
    format!("{key:08}{}", "x".repeat(index as usize % 23))
}

/// An input of a format: `record` appends record number `index`.
fn input(records: u32, record: impl Fn(u32, &str, &mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    for index in 0..records {
        record(index, &payload(index), &mut bytes);
    }
    bytes
}

/// What `echoless gen` writes with these arguments.
fn generated(args: &str) -> Vec<u8> {
    let words: Vec<&str> = args.split(' ').collect();
    echoless([&["gen"], &words[..]].concat(), b"").bytes()
}

/// The options of a run, without its files, and an input, for every format.
fn formats() -> Vec<(&'static str, Vec<u8>)> {
    let framed = |length: fn(usize) -> Vec<u8>| {
        input(2500, |_, payload, bytes| {
            bytes.extend(length(payload.len()));
            bytes.extend(payload.bytes());
        })
    };
    let lines = |end: &'static str| {
        input(2500, move |_, payload, bytes| {
            let (key, rest) = payload.split_at(8);
            bytes.extend(format!("{rest},{key}{end}").bytes());
        })
    };
    let tabs = input(2500, |_, payload, bytes| {
        let (key, rest) = payload.split_at(8);
        bytes.extend(format!("{key}\t{rest}\n").bytes());
    });
    let quoted = input(2500, |index, payload, bytes| {
        let (key, rest) = payload.split_at(8);
        let quote = if index % 3 == 0 { "\"" } else { "" };
        bytes.extend(format!("\"{rest}\n\"\"\",{quote}{key}{quote}\r\n").bytes());
    });
    let escaped = input(2500, |index, payload, bytes| {
        let (key, rest) = payload.split_at(8);
        let quote = if index % 3 == 0 { "\"" } else { "" };
        bytes.extend(format!("\"{rest}\\\"\n\",\\\n{quote}{key}{quote}\r\n").bytes());
    });
    let json = input(2500, |index, payload, bytes| {
        let (key, rest) = payload.split_at(8);
        let id = key.parse::<u32>().unwrap();
        bytes.extend(
            format!("{{\"t\":\"{rest}\\u0041\",\"k\":{{\"id\":{id}.0}},\"n\":{index}}}\n").bytes(),
        );
    });
    let joined = |between: &'static str| {
        input(2500, move |index, payload, bytes| {
            let (key, rest) = payload.split_at(8);
            let id = key.parse::<u32>().unwrap();
            let blank = if index % 3 == 0 { "" } else { between };
            bytes.extend(format!("{{\"t\":\"{rest}}}\",\"k\":[{id}]}}{blank}").bytes());
        })
    };
    // Batches of 100 records in arrays.
    let lists = (0..25_u32).flat_map(|batch| {
        let record = |index| {
            let payload = payload(batch * 100 + index);
            let (key, rest) = payload.split_at(8);
            format!("{{\"t\":\"{rest}],\",\"k\":[\"{key}\"]}}")
        };
        let records: Vec<String> = (0..100).map(record).collect();
        let between = [",", ",\n", " , "][batch as usize % 3];
        let records = records.join(between);
        format!("{{\"n\":[{batch}],\"a\":{{\"Records\":[{records}]}}}}\n").into_bytes()
    });
    let lists = lists.collect();
    let paragraphs = input(2500, |index, payload, bytes| {
        let (key, rest) = payload.split_at(8);
        let blank = if index % 3 == 0 { "\n\r\n" } else { "" };
        bytes.extend(format!("{blank}{rest}x\n{key}\r\n\r\n").bytes());
    });
    let grouped = input(2500, |_, payload, bytes| {
        let (key, rest) = payload.split_at(8);
        bytes.extend(format!("{rest}\n{key}\r\n\n").bytes());
    });
    let commented = input(2500, |index, payload, bytes| {
        let (key, rest) = payload.split_at(8);
        let comment = if index % 5 == 0 { "#\"" } else { "" };
        bytes.extend(format!("{comment}{rest},{key}\n").bytes());
    });
    let fixed = input(2500, |_, payload, bytes| {
        bytes.extend(payload.as_bytes()[..8].iter().chain(b"...."));
    });
    // Batches of 100 records, every other one of indefinite length, with filler behind.
    let batches = (0..25_u32).flat_map(|batch| {
        let mut bytes = Vec::new();
        let records = |list: &mut Writer<'_>| {
            for index in 0..100 {
                let payload = payload(batch * 100 + index);
                let (key, rest) = payload.as_bytes().split_at(8);
                list.constructed(&[0x69], |record| {
                    record.primitive(&[0x80], key);
                    record.primitive(&[0x81], rest);
                });
            }
        };
        let inside = |outer: &mut Writer<'_>| {
            outer.primitive(&[0x44], &[7; 300]);
            outer.constructed(&[0x63], records);
            outer.indefinite(&[0x63], |_| {});
        };
        match batch % 2 {
            0 => Writer::new(&mut bytes).constructed(&[0x61], inside),
            _ => Writer::new(&mut bytes).indefinite(&[0x61], inside),
        }
        bytes.extend([0, 0xff]);
        bytes
    });
    let batches = batches.collect();
    // A record a second, from just before new year on, some of them late.
    let undated = input(2500, |index, payload, bytes| {
        let second = 86_000 + index - index % 7 / 6 * 30;
        let date = ["12-31", "01-01"][second as usize / 86_400];
        let (hour, minute) = (second / 3600 % 24, second / 60 % 60);
        let (key, rest) = payload.split_at(8);
        let key = key.parse::<u32>().unwrap() % 60;
        bytes.extend(
            format!(
                "{date}T{hour:02}:{minute:02}:{:02},{key},{rest}\n",
                second % 60
            )
            .bytes(),
        );
    });
    let captures = "packets -n 1200 --duplicates 0.4 --gap 20 --frame-bytes 60";
    vec![
        ("dedup -k 2", lines("\n")),
        ("dedup -k 2 --crlf", lines("\r\n")),
        ("dedup -z -k 2", lines("\0")),
        ("dedup --csv -k 2", quoted.clone()),
        ("dedup --dense --fpr 1e-3 --csv -k 2", quoted),
        ("dedup --csv-backslash -k 2", escaped),
        ("dedup --format tsv -k 1", tabs),
        ("dedup --format jsonl -k k.id", json),
        ("dedup --format jsonl -k k", joined(" ")),
        ("dedup --format json -k k", joined("\n")),
        ("dedup --format json:container=a.Records -k k", lists),
        ("dedup --format paragraphs -k 2", paragraphs),
        ("dedup --format lines:3 -k 2", grouped),
        ("dedup --comment # -k 2", commented.clone()),
        ("dedup --comment # --csv -k -1", commented.clone()),
        ("dedup --comment # --header --csv -k !1", commented),
        ("dedup --format fixed:12 -k 0-7", fixed),
        (
            "dedup --format prefixed:u16be -k 0-7",
            framed(|length| (length as u16).to_be_bytes().to_vec()),
        ),
        (
            "dedup --format prefixed:varint -k 0-7",
            framed(|length| vec![length as u8 | 0x80, 0]),
        ),
        (
            "dedup --format ber -k 0x80,0x81",
            generated("cdr --format ber -n 600 --duplicates 0.4"),
        ),
        ("dedup --format ber:container=0x61/0x63 -k 0x80", batches),
        (
            "dedup -k 2 --window 90s --time-field 1 --time-format %m-%dT%T --late judge",
            undated,
        ),
        ("packets", generated(captures)),
        (
            "packets --window-packets 20 --from link --ignore none",
            generated(&format!("{captures} --pcapng")),
        ),
    ]
}

/// The digests of the kept and the dropped records, and of the positions of the latter.
fn digests(args: &str, more: &str, input: &str, directory: &std::path::Path) -> [String; 3] {
    let dropped = file(directory, "dropped", b"");
    let words: Vec<&str> = args.split(' ').chain(more.split(' ')).collect();
    let side = [
        "-q",
        "-m",
        "64k",
        "--duplicates",
        &dropped,
        "--explain",
        input,
    ];
    let kept = echoless([&words[..], &side].concat(), b"").bytes();
    let outputs = [
        kept,
        fs::read(&dropped).unwrap(),
        fs::read(format!("{dropped}.jsonl")).unwrap(),
    ];
    assert!(
        outputs.iter().all(|bytes| !bytes.is_empty()),
        "{args}: {words:?}"
    );
    outputs.map(|bytes| format!("{:x?}", Sha256::digest(bytes)))
}

#[test]
fn neither_reads_nor_threads_change_a_byte() {
    let directory = tempfile::tempdir().unwrap();
    for (args, bytes) in formats() {
        let path = file(directory.path(), "input", &bytes);
        let digests = |more: &str| digests(args, more, &path, directory.path());
        let expected = digests("--threads 1");
        for reads in ["1", "1000"] {
            let more = format!("--threads 1 --read-bytes {reads}");
            assert_eq!(digests(&more), expected, "{args} {more}");
        }
        for threads in ["3", "8"] {
            for reads in ["61", "5000"] {
                let more = format!("--threads {threads} --read-bytes {reads}");
                assert_eq!(digests(&more), expected, "{args} {more}");
            }
        }
    }
}
