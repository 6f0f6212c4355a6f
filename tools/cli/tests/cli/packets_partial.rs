//! Captures that are cut, empty or damaged, alone and among others.

use std::fs;

use serde_json::Value;

use crate::codecs::compress;
use crate::packets_support::{blocks, numbered, packets, pcapng, with_ttl};
use crate::run::{Run, file};

/// A pcapng file with packets of these numbers, one of them in an obsolete block.
fn numbered_pcapng(numbers: &[u64]) -> Vec<u8> {
    let mut file = pcapng(true);
    for (time, number) in (0..).zip(numbers) {
        let frame = with_ttl(*number, 64);
        if time == 1 {
            file.obsolete_packet(0, time, &frame, 99);
        } else {
            file.packet(0, time, &frame, 99);
        }
    }
    file.into_bytes()
}

/// The lines of standard error without the command's name.
fn warnings(run: &Run) -> Vec<&str> {
    let lines = run.stderr.lines();
    lines
        .map(|line| line.strip_prefix("echoless: ").unwrap())
        .collect()
}

/// How a file ends too early.
struct Partial {
    content: Vec<u8>,
    /// The length of its part that is whole, as plain bytes.
    whole: usize,
    /// What the warning says.
    says: &'static str,
    code: i32,
}

/// Every way in which a capture can be partial, of this capture.
fn partials(capture: &[u8]) -> Vec<Partial> {
    let ends: Vec<usize> = blocks(capture).iter().map(|(range, _)| range.end).collect();
    let mut partials = Vec::new();
    let mut add = |content: &[u8], whole, says, code| {
        partials.push(Partial {
            content: content.to_vec(),
            whole,
            says,
            code,
        });
    };
    add(b"", 0, "the file is empty", 0);
    for cut in 1..capture.len() {
        // All cuts in the headers of the first packet, some of the others.
        let is_near = cut < ends[1] + 20 || cut % 13 == 0;
        if is_near && !ends.contains(&cut) {
            let whole = ends.iter().rfind(|end| **end < cut).copied().unwrap_or(0);
            add(
                &capture[..cut],
                whole,
                "the file is cut: the block at byte ",
                0,
            );
        }
    }
    // The length of a block, the third in either format: in front of it is a packet of pcap, or
    // the interface of pcapng.
    let is_pcapng = capture.starts_with(b"\n\r\r\n");
    let damaged = ends[if is_pcapng { 2 } else { 1 }];
    let mut content = capture.to_vec();
    let length_at = damaged + if is_pcapng { 4 } else { 8 };
    content[length_at..length_at + 4].fill(0xff);
    add(
        &content,
        damaged,
        "length=4294967295 in the block at byte ",
        2,
    );
    partials
}

#[test]
fn a_partial_capture_among_others_ends_there_and_the_next_one_is_read() {
    type Make = fn(&[u64]) -> Vec<u8>;
    let kinds: [Make; 2] = [numbered, numbered_pcapng];
    for make in kinds {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| file(directory.path(), name, content);
        let (before, after) = (make(&[1, 2]), make(&[3, 6, 7]));
        let header = if make(&[])[..4] == [b'\n', b'\r', b'\r', b'\n'] {
            0
        } else {
            24
        };
        let names = [write("before", &before), write("after", &after)];
        for (number, partial) in partials(&make(&[3, 4, 5])).into_iter().enumerate() {
            let name = write("partial", &partial.content);
            let mut expected = before.clone();
            let whole = write("whole", &make(&[3, 4, 5])[..partial.whole]);
            let inputs = if partial.whole == 0 {
                vec![&names[0], &names[1]]
            } else {
                vec![&names[0], &whole, &names[1]]
            };
            let inputs: Vec<&str> = inputs.into_iter().map(String::as_str).collect();
            if partial.whole > 0 {
                expected.extend(&make(&[3, 4, 5])[header..partial.whole]);
            }
            // What a run without the partial part writes, which the model above begins with.
            let written = packets(&inputs, b"").bytes();
            assert!(written.starts_with(&expected), "{number}");
            {
                let threads = ["1", "3"][number % 2];
                let args = ["--threads", threads, &names[0], &name, &names[1]];
                let run = packets(&args, b"");
                assert_eq!(run.code, partial.code, "{number}: {}", run.stderr);
                let [warning] = warnings(&run)[..] else {
                    panic!("{number}: {}", run.stderr);
                };
                assert!(warning.starts_with(&format!("{name}: ")), "{warning}");
                assert!(warning.contains(partial.says), "{warning}");
                assert!(run.stdout == written, "{number}");

                let strict = packets(&[&["--strict"], &args[..]].concat(), b"");
                assert!(strict.error().contains(partial.says), "{}", strict.stderr);
                assert!(strict.stdout == expected, "{number}");
            }
        }
    }
}

#[test]
fn the_first_and_the_last_capture_may_be_partial() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| file(directory.path(), name, content);
    let capture = numbered(&[1, 2]);
    let good = write("good", &capture);
    let (empty, cut) = (write("empty", b""), write("cut", &capture[..30]));
    for names in [
        [&empty, &good, &cut],
        [&cut, &good, &empty],
        [&empty, &cut, &good],
        [&good, &empty, &cut],
    ] {
        let run = packets(&names.map(String::as_str), b"");
        assert_eq!((run.code, &run.stdout), (0, &capture), "{}", run.stderr);
        assert_eq!(warnings(&run).len(), 2, "{}", run.stderr);
        // In the order of the inputs.
        let bad = names.into_iter().filter(|name| **name != good);
        for (name, warning) in bad.zip(warnings(&run)) {
            assert!(warning.starts_with(&format!("{name}: ")), "{}", run.stderr);
        }
    }
    // Standard input is one of them.
    let run = packets(&[&good, "-"], &capture[..capture.len() - 1]);
    assert_eq!((run.code, &run.stdout), (0, &capture));
    let cut = "standard input: the file is cut: the block at byte 90 has 65 of at least 66 bytes; \
               packets before it, all whole: 1 (--strict ends the run at such an input)";
    assert_eq!(warnings(&run), [cut]);
}

#[test]
fn a_run_without_a_whole_header_fails_and_leaves_the_output() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| file(directory.path(), name, content);
    let kept = write("kept", b"old");
    let (empty, cut) = (write("empty", b""), write("cut", &numbered(&[1])[..23]));
    for names in [vec![&empty], vec![&cut, &empty]] {
        let mut args = vec!["-o", &kept];
        args.extend(names.iter().map(|name| name.as_str()));
        let run = packets(&args, b"");
        assert!(
            run.error()
                .starts_with(&format!("{}: the file is ", names[0]))
        );
        assert_eq!(fs::read(&kept).unwrap(), b"old");
    }
}

#[test]
fn compressed_captures_may_be_partial_too() {
    let numbers: Vec<u64> = (0..20_000).collect();
    let capture = numbered(&numbers);
    let directory = tempfile::tempdir().unwrap();
    let next = file(directory.path(), "next", &numbered(&[30_000]));
    let last = &numbered(&[30_000])[24..];
    // The other codecs lose the block that is cut, which may be all of this capture.
    for codec in ["gzip", "zstd", "xz"] {
        let compressed = compress(codec, &capture);
        let cut = &compressed[..compressed.len() * 3 / 4];
        // Behind the data, so that it is decoded: a checksum, or another frame.
        let mut damaged = compressed.clone();
        if codec == "zstd" {
            damaged.extend_from_slice(b"something else");
        } else {
            let at = damaged.len() - 6;
            damaged[at] ^= 0x55;
        }
        for (content, code) in [(cut, 0), (&damaged, 2)] {
            let name = file(directory.path(), "partial", content);
            let run = packets(&["-m", "4MiB", &name, &next], b"");
            let says = format!("{name}: the {codec} data is cut or damaged after byte ");
            let [warning] = warnings(&run)[..] else {
                panic!("{codec}: {}", run.stderr);
            };
            assert_eq!(run.code, code, "{warning}");
            assert!(warning.starts_with(&says), "{warning}");
            let whole = run.stdout.strip_suffix(last).unwrap();
            assert!(whole.len() > capture.len() / 2, "{}", whole.len());
            assert!(capture.starts_with(whole));
            assert_eq!(blocks(whole).last().unwrap().0.end, whole.len());

            let strict = packets(&["--strict", "-m", "4MiB", &name, &next], b"");
            assert!(strict.error().starts_with(&says), "{}", strict.error());
            assert_eq!(strict.stdout, whole);
        }
    }
}

#[test]
fn statistics_and_summary_count_partial_captures() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| file(directory.path(), name, content);
    let capture = numbered(&[1, 2]);
    let mut damaged = capture.clone();
    damaged[90 + 8..90 + 12].fill(0xff);
    let cut = write("cut", &capture[..100]);
    let (damaged, stats) = (write("damaged", &damaged), write("stats", b""));
    for (names, partial, complete) in [
        (vec![&cut], 1, true),
        (vec![&cut, &damaged, &cut], 3, false),
    ] {
        let mut args = vec!["--summary", "line", "-m", "64k", "--stats", &stats];
        args.extend(names.iter().map(|name| name.as_str()));
        let run = crate::run::echoless([&["packets"], &args[..]].concat(), b"");
        let plural = if partial == 1 { "" } else { "s" };
        let counted = format!("; {partial} input{plural} not read to the end\n");
        assert!(run.stderr.ends_with(&counted), "{}", run.stderr);
        let stats: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
        assert_eq!(stats["partial_inputs"], partial);
        assert_eq!(stats["complete"], complete);
        if complete {
            assert_eq!(stats["error"], Value::Null);
        } else {
            let error = stats["error"].as_str().unwrap();
            assert!(
                error.starts_with(&format!("{}: invalid", &damaged)),
                "{error}"
            );
            assert_eq!(stats["reason"], "error");
        }
        assert_eq!(stats["records"], names.len());
    }
}
