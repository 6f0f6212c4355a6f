//! Names of inputs that say how they are compressed, and bytes that say otherwise.

use crate::codecs::compress;
use crate::run::{dedup, echoless, file};

/// What the extension of a name says, with its first bytes.
const FILES: [(&str, &str, &[u8]); 8] = [
    ("gz", "gzip", b"\x1f\x8b\x08"),
    ("tgz", "gzip", b"\x1f\x8b\x08"),
    ("bz2", "bzip2", b"BZh91AY&SY"),
    ("XZ", "xz", b"\xfd7zXZ\0"),
    (
        "lzma",
        "lzma",
        b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0",
    ),
    ("zst", "zstd", b"\x28\xb5\x2f\xfd"),
    ("lz4", "lz4", b"\x04\x22\x4d\x18"),
    ("lz", "lzip", b"LZIP\x01"),
];

#[test]
fn a_file_that_is_cut_in_its_first_bytes_is_a_cut_one() {
    let directory = tempfile::tempdir().unwrap();
    for (extension, codec, begin) in FILES {
        for len in 1..=begin.len() {
            let path = file(directory.path(), &format!("log.{extension}"), &begin[..len]);
            let run = dedup([&path], b"");
            assert!(run.stdout.is_empty(), "{extension} {len}");
            let found = format!("{path}: the {codec} data is cut or damaged after byte 0");
            assert!(run.stderr.contains(&found), "{len}: {}", run.stderr);
            assert_eq!(run.code, 2, "{extension} {len}");
            // As it is, for those who want that.
            let run = dedup(["--no-decompress", "-z", &path], b"");
            assert_eq!(run.bytes(), &begin[..len]);
        }
    }
}

#[test]
fn a_file_that_is_not_what_its_name_says_is_named() {
    let directory = tempfile::tempdir().unwrap();
    for (extension, codec, _) in FILES {
        let path = file(directory.path(), &format!("log.{extension}"), b"B\na\nB\n");
        let run = echoless(["dedup", "-m", "64k", "--summary=line", &path], b"");
        let warning = format!(
            "echoless: {path} has the name of a {codec} file, but its bytes are no {codec} data, and \
             are read as they are\n"
        );
        assert!(run.stderr.starts_with(&warning), "{}", run.stderr);
        assert_eq!((run.code, &run.stdout[..]), (0, &b"B\na\n"[..]));
        for (name, bytes) in [
            (format!("log.{extension}"), &b""[..]),
            ("log.txt".into(), b"B\n"),
            (format!("{extension}.txt"), b"B\n"),
        ] {
            let path = file(directory.path(), &name, bytes);
            let run = echoless(["dedup", "-m", "64k", "--summary=line", &path], b"");
            assert!(!run.stderr.contains("no "), "{}", run.stderr);
        }
    }
    // Another codec than that of the name is no matter.
    let path = file(directory.path(), "log.gz", &compress("bzip2", b"a\na\n"));
    assert_eq!(dedup([&path], b"").text(), "a\n");
}

#[test]
fn bytes_behind_lzma_data_take_no_record_with_them() {
    let Some(lzma) = lzma(b"a\nb") else {
        eprintln!("skipped: no xz");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    for behind in [&b"garbage"[..], b"\0\0\0", b"\x5dno", b""] {
        let path = file(directory.path(), "log.lzma", &[&lzma[..], behind].concat());
        let run = echoless(["dedup", "-m", "64k", "--summary=line", &path], b"");
        assert_eq!((run.code, &run.stdout[..]), (0, &b"a\nb"[..]));
        let warned = run
            .stderr
            .contains("bytes of trailing garbage behind the lzma data, ignored");
        assert_eq!(warned, !behind.is_empty(), "{}", run.stderr);
    }
    // Another stream is read.
    let path = file(directory.path(), "log.lzma", &[&lzma[..], &lzma].concat());
    assert_eq!(dedup([&path], b"").text(), "a\nba\nb");
}

#[test]
fn streams_of_lzma_with_any_properties_follow_one_another() {
    let Some(first) = lzma_of("--lzma1", b"a\nb\n") else {
        eprintln!("skipped: no xz");
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    for options in [
        "lc=0",
        "lc=1,lp=3",
        "pb=0",
        "dict=4096",
        "dict=96KiB",
        "lc=0,pb=4,dict=3MiB",
    ] {
        let next = lzma_of(&format!("--lzma1={options}"), b"b\nc\n").unwrap();
        let whole = [&first[..], &next, &first, &next].concat();
        let path = file(directory.path(), "log", &whole);
        let run = dedup(["--summary=line", &path], b"");
        assert!(!run.stderr.contains("garbage"), "{options}: {}", run.stderr);
        assert_eq!(run.text(), "a\nb\nc\n", "{options}");
        // What has a header is no garbage, cut or damaged.
        let start = first.len();
        for len in [13, 14, 17, next.len() - 1] {
            let path = file(directory.path(), "log", &whole[..start + len]);
            let run = dedup(["--strict", &path], b"");
            assert!(
                run.error()
                    .contains("the lzma data is cut or damaged after byte "),
                "{options}: {}",
                run.stderr
            );
        }
        let mut damaged = whole.clone();
        damaged[start + 13] = 1;
        let path = file(directory.path(), "log", &damaged);
        assert_ne!(dedup(["--strict", &path], b"").code, 0, "{options}");
    }
}

/// The bytes as lzma, if there is a program that writes it.
fn lzma(bytes: &[u8]) -> Option<Vec<u8>> {
    lzma_of("--lzma1", bytes)
}

/// The same with these options of the encoder.
fn lzma_of(options: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    use std::io::Write;
    use std::process::{Command, Stdio};

    let mut child = Command::new("xz")
        .args(["--format=lzma", options, "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(bytes).ok()?;
    let output = child.wait_with_output().ok()?;
    output.status.success().then_some(output.stdout)
}

#[test]
fn a_key_without_fields_is_named() {
    for (options, input, warns) in [
        (&["-k", "!1"][..], "a\nb\nc\n", true),
        (&["-k", "!1", "-d", ";"], "a,1\nb,2\n", true),
        (&["-k", "!-1"], "a\nb\n", true),
        (&["-k", "!1"], "a\nb,1\n", false),
        (&["-k", "!1"], "a,1\nb\n", false),
        (&["-k", "!1"], "a\n", false),
        (&["-k", "!2"], "a\nb\n", false),
        (&["-k", "1"], "a\nb\n", false),
        (&["--csv", "--header", "-k", "!a"], "a\n1\n2\n", true),
    ] {
        for threads in ["1", "3"] {
            let more = ["dedup", "-m", "64k", "--summary=line", "--threads", threads];
            let run = echoless([&more[..], options].concat(), input.as_bytes());
            let warned = run
                .stderr
                .contains("no record has a field beside those behind `!`");
            assert_eq!(warned, warns, "{options:?} {input}: {}", run.stderr);
            assert_eq!(run.code, 0);
        }
    }
}
