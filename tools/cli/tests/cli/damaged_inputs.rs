//! Compressed inputs that are cut or damaged, among others: what was decoded passes, the next
//! inputs are read, and the exit code reports the loss. `--strict` ends the run.

use crate::codecs::{CODECS, compress};
use crate::run::{Folder, Run, run};

/// Lines that differ, of more than one block of a decoder.
fn lines(count: u64, seed: u64) -> Vec<u8> {
    let line = |id: u64| format!("{:x}\n", (id + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (0..count).flat_map(|id| line(id).into_bytes()).collect()
}

/// The lines of standard error, of which each names a file.
#[track_caller]
fn assert_lines(run: &Run, files: &[&str]) {
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), files.len(), "{lines:?}");
    for (line, file) in lines.iter().zip(files) {
        let start = format!("echoless: {file}: the ");
        assert!(line.starts_with(&start), "{line}");
        assert!(
            line.contains(" data is cut or damaged after byte "),
            "{line}"
        );
    }
}

#[test]
fn the_inputs_behind_a_cut_one_are_read() {
    let plain = lines(40_000, 0);
    // The first line of the cut file and one of its own.
    let first_line = &plain[..=plain.iter().position(|byte| *byte == b'\n').unwrap()];
    let folder = Folder::with(&[("last", [first_line, b"last\n"].concat())]);
    for codec in CODECS {
        let whole = compress(codec, &plain);
        folder.write("first", compress(codec, b"first\n"));
        for cut in [12, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
            folder.write("damaged", &whole[..cut]);
            let mut outputs = Vec::new();
            for threads in ["1", "2", "5"] {
                let args = format!("--threads {threads} first damaged last");
                let run = folder.dedup(&args);
                assert_eq!(run.code, 2);
                assert_lines(&run, &["damaged"]);
                let rest = run.stdout.strip_prefix(b"first\n").unwrap();
                let passed = rest.strip_suffix(b"last\n").unwrap();
                let of_last = if passed.len() > first_line.len() {
                    &b""[..]
                } else {
                    first_line
                };
                let of_damaged = passed.strip_suffix(of_last).unwrap();
                assert!(plain.starts_with(of_damaged), "{codec} {cut}");
                assert!(of_damaged.is_empty() || of_damaged.ends_with(b"\n"));

                let strict = folder.dedup(format!("--strict {args}"));
                strict.fails(&format!("damaged: the {codec} data"));
                assert!(strict.stdout == [b"first\n", of_damaged].concat());
                outputs.push(run.stdout);
            }
            assert!(outputs.windows(2).all(|pair| pair[0] == pair[1]));
        }
    }
}

#[test]
fn every_cut_of_a_small_file_leaves_whole_records() {
    let plain = lines(12, 0);
    let folder = Folder::with(&[("other", "other\n")]);
    let whole = compress("gzip", &plain);
    for cut in 4..whole.len() {
        folder.write("damaged", &whole[..cut]);
        let run = folder.dedup("damaged other");
        assert_lines(&run, &["damaged"]);
        let passed = run.stdout.strip_suffix(b"other\n").unwrap();
        assert!(plain.starts_with(passed));
        assert!(passed.is_empty() || passed.ends_with(b"\n"));
        // What is left out of the decompressed bytes is named.
        let after = run.stderr.split(" after byte ").nth(1).unwrap();
        let decoded: usize = after.split(' ').next().unwrap().parse().unwrap();
        let left_out = match run.stderr.split_once("; its last ") {
            Some((_, rest)) => rest.split(' ').next().unwrap().parse().unwrap(),
            None => 0,
        };
        assert_eq!(passed.len() + left_out, decoded, "{}", run.stderr);
    }
}

#[test]
fn damage_before_the_first_record_takes_no_header_away() {
    let table = b"id,name\n1,a\n2,b\n1,c\n";
    let folder = Folder::with(&[
        ("damaged", &compress("gzip", table)[..11]),
        ("whole", table),
        ("known", b"id,name\n2,z\n"),
    ]);
    for threads in ["1", "3"] {
        for (files, damaged, expected) in [
            ("damaged whole", &["damaged"][..], "id,name\n1,a\n2,b\n"),
            ("whole damaged", &["damaged"], "id,name\n1,a\n2,b\n"),
            // A known input that is damaged is one, too.
            (
                "--known damaged --known known damaged whole",
                &["damaged", "damaged"],
                "id,name\n1,a\n",
            ),
        ] {
            let run = folder.dedup(format!("--threads {threads} --csv --header -k id {files}"));
            assert_lines(&run, damaged);
            assert_eq!(
                (run.code, &run.stdout[..]),
                (2, expected.as_bytes()),
                "{files}"
            );
        }
    }
    let run = folder.dedup("--header damaged");
    assert_eq!((run.code, &run.stdout[..]), (2, &b""[..]));
}

#[test]
fn statistics_report_the_damage() {
    let whole = compress("xz", b"a\nb\n");
    let cut = &whole[..whole.len() - 1];
    let folder = Folder::with(&[("damaged", cut), ("other", b"a\nc\n")]);
    let run = folder.dedup("--stats stats --fail-on-duplicates damaged other");
    assert_eq!((run.code, &run.stdout[..]), (2, &b"a\nb\nc\n"[..]));
    let written = folder.json("stats");
    assert_eq!(written["complete"], false);
    assert_eq!(written["reason"], "error");
    assert_eq!(written["partial_inputs"], 1);
    let line = format!("echoless: {}", written["error"].as_str().unwrap());
    assert!(run.stderr.starts_with(&line), "{}", run.stderr);
    assert_eq!(written["records"], 4);
    assert_eq!(written["duplicates"], 1);
    assert_eq!(written["bytes_in"], cut.len() + 4);
}

#[test]
fn a_damaged_file_is_neither_replaced_nor_seen() {
    let whole = compress("gzip", b"a\na\nb\n");
    let cut = &whole[..whole.len() - 3];
    let folder = Folder::with(&[("damaged", cut), ("other", b"c\n")]);
    let run = folder.dedup("--in-place --compress gzip damaged");
    let lines: Vec<&str> = run.stderr.lines().collect();
    let damage = "the gzip data is cut or damaged after byte 6 ";
    assert!(lines[0].contains(damage), "{lines:?}");
    let left = "echoless: damaged: left as it was, as it was not read to its end";
    assert_eq!((run.code, &lines[1..]), (2, &[left][..]));
    assert!(folder.bytes("damaged") == cut);

    let run = folder.dedup("--skip-seen-files seen damaged other");
    assert_eq!((run.code, &run.stdout[..]), (2, &b"a\nb\nc\n"[..]));
    assert!(!folder.has("seen"));
}

#[test]
fn strict_may_stand_in_the_variable() {
    let folder = Folder::with(&[("cut", &compress("gzip", b"a\n")[..15]), ("other", b"b\n")]);
    for (variable, expected) in [("--strict", &b"a\n"[..]), ("-q", b"a\nb\n")] {
        let mut strict = folder.command("dedup -q -m 64k cut other");
        strict.env("ECHOLESS_OPTS", variable);
        let run = run(strict);
        assert_lines(&run, &["cut"]);
        assert_eq!((run.code, &run.stdout[..]), (2, expected));
    }
}
