//! How text inputs begin: byte order marks are no part of records, and UTF-16, UTF-32 and archives
//! are rejected, wherever text is read.

use crate::codecs::{CODECS, compress, decompress};
use crate::run::{Folder, assert_runs, dedup, echoless, run_on};

const MARK: &[u8] = b"\xef\xbb\xbf";

/// The text in UTF-16, with a mark.
fn utf_16(text: &str, order: fn(u16) -> [u8; 2]) -> Vec<u8> {
    format!("\u{feff}{text}")
        .encode_utf16()
        .flat_map(order)
        .collect()
}

/// The same in UTF-32.
fn utf_32(text: &str, order: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let characters = ['\u{feff}'].into_iter().chain(text.chars());
    characters
        .flat_map(|character| order(character.into()))
        .collect()
}

/// A text in each of the encodings that are rejected, with its name.
fn encoded(text: &str) -> [(&'static str, Vec<u8>); 4] {
    [
        ("UTF-16", utf_16(text, u16::to_le_bytes)),
        ("UTF-16", utf_16(text, u16::to_be_bytes)),
        ("UTF-32", utf_32(text, u32::to_le_bytes)),
        ("UTF-32", utf_32(text, u32::to_be_bytes)),
    ]
}

#[test]
fn utf_16_and_utf_32_are_rejected_in_every_format_of_text() {
    // The letters of the case have a newline byte among their own. The last text is empty.
    for text in ["xਅ\nyਅ\nend\n", "a,b\n1,2\n", ""] {
        for (name, bytes) in encoded(text) {
            let folder = Folder::with(&[("plain", &b"a\n"[..]), ("encoded", &bytes[..])]);
            let problem = format!(
                "{name} text, which is not read: expected UTF-8 text on standard input, as from "
            );
            let command = format!("iconv -f {name} -t UTF-8");
            let options = [
                "",
                "-z",
                "--crlf",
                "--csv --header -k a",
                "--csv -k 1",
                "--format tsv",
                "--format jsonl",
                "--threads 3 --read-bytes 1",
                "--rejects rejects --missing skip -k 1",
            ];
            // Every way for the first text; the others decide on the encoding alone.
            let is_first = text.starts_with('x');
            for options in &options[..if is_first { options.len() } else { 2 }] {
                let run = run_on(folder.command(format!("dedup -q {options}")), &bytes);
                let expected = format!("standard input: {problem}{command} FILE");
                assert_eq!(run.error(), expected, "{options}");
                assert_eq!(run.stdout, b"");
            }
            for codec in CODECS.into_iter().filter(|_| is_first) {
                let run = dedup("", compress(codec, &bytes));
                let piped = format!("standard input: {problem}{codec} -dc FILE | {command} -");
                assert_eq!(run.error(), piped);
            }
            let expected = format!("encoded: {problem}{command} FILE");
            let others = [
                "dedup -q --known encoded plain",
                "dedup -q encoded",
                "eval -q --input encoded bloom:k=2,memory=2KiB",
                "plan -q -m 2KiB --sample encoded",
            ];
            for args in others.into_iter().filter(|_| is_first) {
                assert_eq!(folder.echoless(args).error(), expected, "{args}");
            }
            // What was written before stays.
            folder.assert_runs(&[&format!("plain encoded | a\n!! {expected}")]);
        }
    }
    // The bytes as they are, for those who want them.
    let run = dedup("--no-decompress -z", [0xff, 0xfe, 0]);
    assert_eq!(run.bytes(), [0xff, 0xfe, 0]);
}

#[test]
fn binary_records_may_begin_like_any_encoding() {
    for (_, bytes) in encoded("abcd") {
        let run = dedup(format!("--format fixed:{}", bytes.len()), bytes.repeat(2));
        assert!(run.bytes() == bytes);
        // The mark of UTF-32 and that of UTF-16 are lengths.
        let records = [&[2][..], &bytes[..2], &[2], &bytes[..2]].concat();
        assert!(dedup("--format prefixed:u8", &records).bytes() == records[..3]);
    }
}

#[test]
fn text_that_looks_like_utf_16_without_a_mark_draws_a_warning() {
    let text = "caller,callee\n4917012345,4917054321\n";
    for (name, order) in [
        ("UTF-16LE", u16::to_le_bytes as fn(u16) -> [u8; 2]),
        ("UTF-16BE", u16::to_be_bytes),
    ] {
        let bytes = &utf_16(text, order)[2..];
        let run = echoless("dedup -m 64k --summary=line", bytes);
        let warning = format!(
            "echoless: standard input looks like {name} text without a byte order mark, and its \
             bytes are read as they are: iconv -f {name} -t UTF-8 converts it\n"
        );
        assert!(run.stderr.starts_with(&warning), "{}", run.stderr);
        assert_eq!(run.code, 0);
        assert!(dedup("", bytes).bytes().starts_with(&bytes[..20]));
    }
    let short_records = &b"a\0b\0c\0d\0e\0f\0g\0h\0i\0j\0"[..];
    for (options, input) in [("-z", short_records), ("", text.as_bytes())] {
        let run = echoless(format!("dedup -m 64k --summary=line {options}"), input);
        assert!(!run.stderr.contains("UTF-16"), "{}", run.stderr);
    }
}

/// How binary files begin that hold records, with a word of the message about each.
const FILES: [(&[u8], &str, &str); 21] = [
    (b"PAR1\x15\x04\x15\x08\n", "Parquet", "duckdb"),
    (
        b"Obj\x01\x02\x16avro.schema\x10\"string\"\0\n",
        "Avro",
        "avrocat",
    ),
    (b"ORC\x05\0\0\n", "ORC", "orc-contents"),
    (b"ORC\n\x13\n\x06\x12\x04\x08\n", "ORC", "orc-contents"),
    (b"ARROW1\0\0\xff\xff\xff\xff\n", "Arrow file", "open_file"),
    (
        b"\xff\xff\xff\xff\xb0\0\0\0\x10\0\0\0\n",
        "Arrow stream",
        "open_stream",
    ),
    (b"FEA1\0\0\0\0\n", "Feather", "read_feather"),
    (b"SQLite format 3\0\x10\0\n", "SQLite", "sqlite3"),
    (b"ElfFile\0\0\n", "Windows event log", "evtx_dump"),
    (b"\x30\0\0\0LfLe\x01\n", "Windows event log", "evtexport"),
    (b"LPKSHHRH\0\0\0\0\n", "journal", "journalctl"),
    (b"\x89HDF\r\n\x1a\n\0", "HDF5", "h5dump"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\n", "Excel", "in2csv"),
    (b"\0\x01\0\0Standard ACE DB\0\x02\n", "Access", "mdb-export"),
    (b"\x0c\xa5\x01\0\n", "nfdump", "nfdump"),
    (b"\xfebin\x01\n", "MySQL", "mysqlbinlog"),
    (b"SEQ\x06\x19\n", "Hadoop", "hadoop"),
    (b"%PDF-1.7\n", "PDF", "pdftotext"),
    (b"PGDMP\x01\x0e\n", "PostgreSQL", "pg_restore"),
    (b"bplist00\xd1\x01\x02\n", "property list", "plutil"),
    (b"12345678DUCK\x40\0\0\0\0\0\0\0\n", "DuckDB", "duckdb"),
];

#[test]
fn binary_files_of_records_are_rejected_with_the_command_that_converts_them() {
    for (begin, name, command) in FILES {
        let bytes = [begin, b"v\nv\n"].concat();
        let folder = Folder::with(&[("bin", &bytes), ("gz", &compress("gzip", &bytes))]);
        // All of them for the first name: what follows depends on no name.
        let ways = [
            ("dedup -q bin", ""),
            ("dedup -q --csv -k 1 bin", ""),
            ("dedup -q --format jsonl bin", ""),
            ("dedup -q --threads 3 bin", ""),
            ("dedup -q --known bin", ""),
            ("eval -q --input bin bloom:k=2,memory=2KiB", ""),
            ("dedup -q gz", "gzip -dc FILE > PLAIN; "),
        ];
        let ways = &ways[..if name == FILES[0].1 { ways.len() } else { 1 }];
        for (args, from) in ways {
            let run = folder.echoless(args);
            assert!(run.stdout.is_empty(), "{args}");
            for part in [name, command, "which is not read", " as from ", from] {
                run.fails(part);
            }
        }
        if name != FILES[0].1 {
            continue;
        }
        dedup("", &bytes).fails(name);
        let run = dedup("--no-decompress", &bytes);
        assert!(bytes.starts_with(&run.bytes()[..begin.len()]), "{name}");
        let run = dedup(format!("--format fixed:{}", bytes.len()), bytes.repeat(2));
        assert_eq!(run.bytes(), bytes, "{name}");
    }
}

#[test]
fn text_may_begin_like_the_name_of_a_binary_format() {
    for word in [
        "PAR1", "PARE", "ORC", "FEA1", "LPKSHHRH", "PGDMP", "%PDF", "Obj", "ARROW1",
    ] {
        let other = format!("{word}\n\tother {word},1\n");
        assert_runs(&[
            &format!(" | {word}\n{other} | {other}"),
            &format!("--read-bytes 1 | {word}\n{other} | {other}"),
            &format!(" | {word} | {word}"),
        ]);
    }
    // Unless the file has the name of one.
    let folder = Folder::with(&[
        ("x.orc", "ORC\nv\n"),
        ("x.PARQUET", "PAR1\nv\n"),
        ("x.journal", "LPKSHHRH\nv\n"),
        ("x.feather", "FEA1\nv\n"),
    ]);
    for name in ["x.orc", "x.PARQUET", "x.journal", "x.feather"] {
        folder.dedup(name).fails("which is not read");
    }
}

/// An archive of one file with this content.
fn tar(content: &[u8], magic: &[u8; 8]) -> Vec<u8> {
    let mut header = [0; 512];
    header[..8].copy_from_slice(b"file.txt");
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    header[156] = b'0';
    header[257..265].copy_from_slice(magic);
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let padding = content.len().next_multiple_of(512) - content.len() + 1024;
    [&header[..], content, &vec![0; padding]].concat()
}

#[test]
fn tar_archives_are_rejected_plain_or_compressed() {
    for magic in [b"ustar\x0000", b"ustar  \0"] {
        let archive = tar(b"a\nb\na\n", magic);
        let problem = "standard input: a tar archive, which is not read: expected UTF-8 text on \
                       standard input, as from ";
        for options in ["", "--csv", "--read-bytes 100", "--threads 2"] {
            let run = dedup(options, &archive);
            assert_eq!(run.error(), format!("{problem}tar -xOf FILE"));
            assert_eq!(run.stdout, b"");
        }
        for codec in CODECS {
            let run = dedup("", compress(codec, &archive));
            assert_eq!(
                run.error(),
                format!("{problem}{codec} -dc FILE | tar -xOf -")
            );
        }
        let as_it_is = dedup("--no-decompress", &archive).bytes();
        assert!(as_it_is.starts_with(b"file.txt"));
        let blocks = dedup("--format fixed:512", &archive);
        assert_eq!(blocks.bytes().len(), 3 * 512);
    }
    // Text with the same letters at the same place.
    let text = [&vec![b'x'; 257][..], b"ustar  \0", &[b'y'; 400], b"\n"].concat();
    assert!(dedup("", &text).bytes() == text);
}

#[test]
fn the_mark_of_each_input_is_no_part_of_its_records() {
    let folder = Folder::with(&[
        ("first", "\u{feff}a\nb\n"),
        ("second", "\u{feff}a\nc\n"),
        ("plain", "b\nd\n"),
        ("empty", ""),
        ("quoted", "\u{feff}\"a,\nb\",1\n\"a,\nb\",1\n"),
        ("times", "\u{feff}1,a\n2,b\n"),
    ]);
    for threads in ["1", "3"] {
        for case in [
            "first second plain | \u{feff}a\nb\nc\nd\n",
            "plain first second | b\nd\na\nc\n",
            // The first input that is not empty decides on the mark of the output.
            "empty first plain | \u{feff}a\nb\nd\n",
            "empty plain first | b\nd\na\n",
            "--known first second | \u{feff}c\n",
            "--known second first second | \u{feff}b\n",
            "--invert first second | \u{feff}a\n",
            "--repeated first second plain | \u{feff}a\nb\n",
            "--count first second | 3\n",
            "--tag first second | \u{feff}a,fresh\nb,fresh\na,duplicate\nc,fresh\n",
            // Whole records of CSV with a quote behind the mark, and with times.
            "--csv quoted quoted | \u{feff}\"a,\nb\",1\n",
            "--window 1m --time-field 1 times times | \u{feff}1,a\n2,b\n",
        ] {
            folder.assert_runs(&[&format!("--threads {threads} {case}")]);
        }
    }
    let outputs = "--duplicates dropped --explain=explained";
    folder.assert_runs(&[&format!("{outputs} first second | \u{feff}a\nb\nc\n")]);
    assert_eq!(folder.read("dropped"), "a\n");
    let explained = folder.read("explained");
    let position = r#""record":1,"offset":3,"bytes":2}"#;
    assert!(explained.trim_end().ends_with(position), "{explained}");
}

#[test]
fn a_file_in_place_keeps_its_mark() {
    for (options, before, after) in [
        ("", "a\na\nb\n", "a\nb\n"),
        ("--header", "id\n1\n1\n", "id\n1\n"),
        ("", "last\nlast", "last\n"),
        ("", "", ""),
    ] {
        let marked = [MARK, before.as_bytes()].concat();
        let folder = Folder::with(&[("in", &marked), ("gzip", &compress("gzip", &marked))]);
        folder.assert_runs(&[&format!("{options} --in-place in | ")]);
        assert_eq!(folder.read("in"), format!("\u{feff}{after}"));
        let out = folder.dedup("--compress gzip gzip").bytes();
        assert!(decompress("gzip", &out).starts_with(MARK));
    }
}
