//! `--compress`: outputs decompress to the plain output, also after runs that fail.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::codecs::{CODECS, compress, decoder, decompress, lines};
use crate::packets_support::{numbered, packets};
use crate::run::{assert_errors, command, dedup, echoless, file, send};

#[test]
fn outputs_of_files_are_the_same_bytes_on_any_number_of_threads() {
    let directory = tempfile::tempdir().unwrap();
    let [plain_duplicates, duplicates, output] =
        ["plain", "duplicates", "output"].map(|name| file(directory.path(), name, b"old"));
    for (format, input) in [
        ("lines", lines()),
        ("fixed:8", lines().repeat(2)[..1 << 20].to_vec()),
    ] {
        let path = file(directory.path(), "input", &input);
        let args = ["--format", format, "--duplicates", &plain_duplicates, &path];
        let expected = dedup(&args, b"").bytes();
        for codec in CODECS {
            let mut first = None;
            for threads in ["1", "2", "3", "8"] {
                let args = [
                    "--format",
                    format,
                    "--threads",
                    threads,
                    "--compress",
                    codec,
                    "--duplicates",
                    &duplicates,
                    &path,
                ];
                let records = dedup(&args, b"").bytes();
                let dropped = fs::read(&duplicates).unwrap();
                assert!(decompress(codec, &records) == expected, "{codec}");
                let plain = decompress(codec, &dropped);
                assert!(plain == fs::read(&plain_duplicates).unwrap(), "{codec}");
                let args = [&args[..], &["-o", &output]].concat();
                assert_eq!(dedup(&args, b"").text(), "");
                assert!(fs::read(&output).unwrap() == records);
                let outputs = (records, dropped);
                assert!(
                    first.get_or_insert_with(|| outputs.clone()) == &outputs,
                    "{codec}"
                );
            }
            // What the command writes it reads.
            let (records, _) = first.unwrap();
            assert!(dedup(&["--format", format], &records).bytes() == expected);
        }
    }
}

#[test]
fn outputs_of_streams_have_the_same_content() {
    let input = lines();
    let expected = dedup(&[], &input).bytes();
    for codec in CODECS {
        let run = dedup(&["--compress", codec], &input);
        assert!(decompress(codec, &run.bytes()) == expected, "{codec}");
        assert_eq!(
            decompress(codec, &dedup(&["--compress", codec], b"").bytes()),
            b""
        );
    }
}

#[test]
fn packets_are_compressed_as_well() {
    let capture = numbered(&(0..5000).map(|number| number % 3000).collect::<Vec<_>>());
    let args = ["--window-packets", "3000", "-m", "1MiB"];
    let expected = packets(&args, &capture).bytes();
    for codec in CODECS {
        let args = [&args[..], &["--compress", codec]].concat();
        let run = packets(&args, &compress(codec, &capture));
        assert!(decompress(codec, &run.bytes()) == expected, "{codec}");
    }
}

#[test]
fn levels_change_the_size_and_not_the_content() {
    let input = lines();
    let expected = dedup(&[], &input).bytes();
    for (codec, low, high) in [("zstd", 1, 19), ("gzip", 0, 9), ("xz", 0, 6)] {
        let [low, high] = [low, high].map(|level| {
            let output = dedup(&["--compress", &format!("{codec}:{level}")], &input).bytes();
            assert!(decompress(codec, &output) == expected, "{codec}");
            output.len()
        });
        assert!(high < low, "{codec}: {high} {low}");
    }
    // A level of bzip2 is the size of its blocks, and its fourth byte.
    for (codec, start) in [
        ("bzip2", b"BZh9"),
        ("bzip2:1", b"BZh1"),
        ("bzip2:5", b"BZh5"),
    ] {
        let output = dedup(&["--compress", codec], &input).bytes();
        assert!(output.starts_with(start) && decompress("bzip2", &output) == expected);
    }
}

#[test]
fn the_tools_of_the_codecs_read_the_outputs() {
    let input = lines();
    let expected = dedup(&[], &input).bytes();
    for codec in CODECS {
        let output = dedup(&["--compress", codec], &input).bytes();
        let tool = Command::new(codec)
            .arg("-dc")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut tool) = tool else {
            eprintln!("skipped: {codec} is missing");
            continue;
        };
        let mut pipe = tool.stdin.take().unwrap();
        let feeding = thread::spawn(move || pipe.write_all(&output));
        let plain = tool.wait_with_output().unwrap();
        feeding.join().unwrap().unwrap();
        assert!(
            plain.status.success() && plain.stdout == expected,
            "{codec}"
        );
    }
}

#[test]
fn counts_and_statistics_are_not_compressed() {
    let directory = tempfile::tempdir().unwrap();
    let [stats, duplicates, input] =
        ["stats", "duplicates", "input"].map(|name| file(directory.path(), name, b"a\na\nb\n"));
    let args = [
        "--compress",
        "zstd",
        "--count",
        "--stats",
        &stats,
        "--duplicates",
        &duplicates,
        &input,
    ];
    assert_eq!(dedup(&args, b"").text(), "2\n");
    assert_eq!(decompress("zstd", &fs::read(&duplicates).unwrap()), b"a\n");
    let read = || serde_json::from_slice::<Value>(&fs::read(&stats).unwrap()).unwrap();
    assert_eq!(read()["duplicates"], 1);
    // The bytes out are those of the compressed file.
    let output = dedup(&["--compress", "xz", "--stats", &stats, &input], b"").bytes();
    assert_eq!(read()["bytes_out"], output.len());
    assert_eq!(read()["bytes_in"], 6);
}

#[test]
fn a_run_that_fails_ends_the_frame_after_a_whole_record() {
    let directory = tempfile::tempdir().unwrap();
    let output = file(directory.path(), "output", b"old");
    for codec in CODECS {
        for threads in ["1", "2"] {
            let args = [
                "--compress",
                codec,
                "-o",
                &output,
                "--threads",
                threads,
                "-k",
                "2",
            ];
            let run = dedup(&args, b"a,1\nb,2\nno field\n");
            assert!(run.error().contains("line 3"), "{}", run.error());
            assert_eq!(
                decompress(codec, &fs::read(&output).unwrap()),
                b"a,1\nb,2\n"
            );
        }
        // A run that is rejected changes nothing.
        let rejected = file(directory.path(), "rejected", b"old");
        let run = dedup(&["--compress", codec, "-o", &rejected, "no-such-file"], b"");
        assert!(run.error().starts_with("no-such-file: "));
        assert_eq!(fs::read(&rejected).unwrap(), b"old");
    }
}

#[test]
fn records_of_a_slow_producer_are_compressed_at_once() {
    for codec in CODECS {
        for threads in ["1", "2"] {
            let args = [
                "dedup",
                "-q",
                "-m",
                "64k",
                "--compress",
                codec,
                "--threads",
                threads,
            ];
            let mut child = command(&args).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(b"a\n").unwrap();
            // The decoder of gzip reads when it is made.
            let mut plain = decoder(codec, child.stdout.take().unwrap());
            for (sent, expected) in [("", "a\n"), ("a\nb\n", "b\n"), ("c\nd\n", "c\nd\n")] {
                stdin.write_all(sent.as_bytes()).unwrap();
                let mut output = vec![0; expected.len()];
                // Blocks forever if a record is held back.
                plain.read_exact(&mut output).unwrap();
                assert_eq!(output, expected.as_bytes(), "{codec}");
            }
            drop(stdin);
            let mut rest = Vec::new();
            if codec == "lz4" {
                // The decoder of the crate ends at the end of a frame.
                assert_eq!(plain.read(&mut [0]).unwrap(), 0);
            } else {
                plain.read_to_end(&mut rest).unwrap();
            }
            assert_eq!(rest, b"", "{codec}");
            assert!(child.wait().unwrap().success());
        }
    }
}

#[test]
fn a_reader_that_closes_the_pipe_ends_the_run_quietly() {
    for codec in CODECS {
        let args = ["dedup", "-q", "-m", "64k", "--compress", codec];
        let mut child = command(&args).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        // Writes until the command ends.
        let producer = thread::spawn(move || {
            let mut line = 0u64;
            while writeln!(stdin, "{}", line.wrapping_mul(0x9e37_79b9_7f4a_7c15)).is_ok() {
                line += 1;
            }
        });
        stdout.read_exact(&mut [0; 4]).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        producer.join().unwrap();
        assert_eq!(output.status.code(), Some(0), "{codec}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{codec}");
    }
}

#[cfg(unix)]
#[test]
fn a_signal_ends_the_frame() {
    let directory = tempfile::tempdir().unwrap();
    for codec in CODECS {
        let dropped = file(directory.path(), "dropped", b"");
        let args = [
            "dedup",
            "-q",
            "-m",
            "64k",
            "--compress",
            codec,
            "--duplicates",
            &dropped,
        ];
        let mut child = command(&args).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdin.write_all(b"a\na\nb\nhalf of a rec").unwrap();
        let mut output = vec![0];
        stdout.read_exact(&mut output).unwrap();
        // The records may still be on their way, so the first ones are read before the signal.
        let mut plain = decoder(codec, output.as_slice().chain(&mut stdout));
        let mut records = [0; 4];
        plain.read_exact(&mut records).unwrap();
        assert_eq!(&records, b"a\nb\n");
        send(&child, "-INT");
        let mut rest = [0];
        assert_eq!(plain.read(&mut rest).unwrap(), 0, "{codec}");
        drop(plain);
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        assert_eq!(output.status.code(), Some(130), "{codec}");
        assert_eq!(decompress(codec, &fs::read(&dropped).unwrap()), b"a\n");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_ends_in_one_line() {
    for codec in CODECS {
        let run = dedup(&["--compress", codec, "-o", "/dev/full"], &lines());
        assert!(
            run.error().starts_with("/dev/full: No space left"),
            "{}",
            run.error()
        );
        let run = dedup(
            &["--compress", codec, "--duplicates", "/dev/full"],
            b"a\na\n",
        );
        assert!(
            run.error().starts_with("/dev/full: No space left"),
            "{}",
            run.error()
        );
    }
}

#[test]
fn other_codecs_and_levels_are_rejected() {
    assert_errors(
        |args| echoless(&[&["dedup"], args].concat(), b"a\n"),
        &[
            "--compress zip | invalid --compress=zip: expected zstd, gzip, lz4, xz, bzip2, or one of them with :LEVEL",
            "--compress zstd:23 | invalid --compress=zstd:23: expected zstd:1 to zstd:22",
            "--compress lz4:1 | invalid --compress=lz4:1: expected lz4 without a level",
            "--compress bzip2:0 | expected bzip2:1 to bzip2:9",
            "--compress gzip:-1 | expected gzip:0 to gzip:9",
        ],
    );
}
