//! `--compress`: outputs decompress to the plain output, also after runs that fail.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;

use crate::codecs::{CODECS, compress, decoder, decompress, lines};
use crate::packets_support::{numbered, packets};
use crate::run::{Folder, assert_errors, command, dedup, send};

#[test]
fn outputs_of_files_are_the_same_bytes_on_any_number_of_threads() {
    for (format, input) in [("lines", lines()), ("fixed:8", lines()[..300_000].to_vec())] {
        let folder = Folder::with(&[("input", input)]);
        let expected = folder
            .dedup(format!("--format {format} --duplicates plain input"))
            .bytes();
        for codec in CODECS {
            let mut first = None;
            for threads in ["1", "3", "8"] {
                let args = format!(
                    "--format {format} --threads {threads} --compress {codec} --duplicates dropped \
                     input"
                );
                let records = folder.dedup(&args).bytes();
                let dropped = folder.bytes("dropped");
                assert!(decompress(codec, &records) == expected, "{codec}");
                assert!(
                    decompress(codec, &dropped) == folder.bytes("plain"),
                    "{codec}"
                );
                let outputs = (records, dropped);
                let is_same = first.get_or_insert_with(|| outputs.clone()) == &outputs;
                assert!(is_same, "{codec}");
            }
            // What the command writes it reads, and a file is the same.
            let (records, _) = first.unwrap();
            let args = format!("--format {format} --compress {codec} -o output input");
            assert_eq!(folder.dedup(args).text(), "");
            assert!(folder.bytes("output") == records);
            assert!(dedup(format!("--format {format}"), &records).bytes() == expected);
        }
    }
}

#[test]
fn outputs_of_many_frames_are_the_same_bytes_on_any_number_of_threads() {
    let line = |id: u64| format!("{id},{:x}\n", id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40);
    let plain: Vec<u8> = (0..300_000).flat_map(|id| line(id).into_bytes()).collect();
    assert!(plain.len() > 3 << 20);
    let folder = Folder::with(&[("input", &plain)]);
    for codec in ["zstd", "zstd:10", "gzip:1", "lz4", "bzip2:1", "xz:0"] {
        let (name, _) = codec.split_once(':').unwrap_or((codec, ""));
        let mut first = None;
        for threads in ["1", "2", "4"] {
            let args = format!("--threads {threads} --compress {codec} input");
            let output = folder.dedup(args).bytes();
            let is_same = *first.get_or_insert_with(|| output.clone()) == output;
            assert!(is_same, "{codec} {threads}");
        }
        let output = folder.path("output");
        std::fs::write(&output, first.unwrap()).unwrap();
        assert!(folder.dedup("output").bytes() == plain, "{codec}");
        match Command::new(name).arg("-dc").arg(&output).output() {
            Ok(tool) => assert!(tool.status.success() && tool.stdout == plain, "{codec}"),
            Err(_) => eprintln!("skipped: {name} is missing"),
        }
        // A decoder of the crate for lz4 reads one frame.
        if name != "lz4" {
            assert!(
                decompress(name, &folder.bytes("output")) == plain,
                "{codec}"
            );
        }
    }
}

#[test]
fn outputs_of_streams_have_the_same_content() {
    let input = lines();
    let expected = dedup("", &input).bytes();
    for codec in CODECS {
        for (input, expected) in [(&input[..], &expected[..]), (b"", b"")] {
            let run = dedup(format!("--compress {codec}"), input);
            assert!(decompress(codec, &run.bytes()) == expected, "{codec}");
        }
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
    let expected = dedup("", &input).bytes();
    for (codec, low, high) in [("zstd", 1, 19), ("gzip", 0, 9), ("xz", 0, 6)] {
        let [low, high] = [low, high].map(|level| {
            let output = dedup(format!("--compress {codec}:{level}"), &input).bytes();
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
        let output = dedup(format!("--compress {codec}"), &input).bytes();
        assert!(output.starts_with(start) && decompress("bzip2", &output) == expected);
    }
}

#[test]
fn the_tools_of_the_codecs_read_the_outputs() {
    let input = lines();
    let expected = dedup("", &input).bytes();
    for codec in CODECS {
        let output = dedup(format!("--compress {codec}"), &input).bytes();
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
        assert!(plain.status.success(), "{codec}");
        assert!(plain.stdout == expected, "{codec}");
    }
}

#[test]
fn counts_and_statistics_are_not_compressed() {
    let folder = Folder::with(&[("input", "a\na\nb\n")]);
    let args = "--compress zstd --count --stats stats --duplicates dropped input";
    assert_eq!(folder.dedup(args).text(), "2\n");
    assert_eq!(decompress("zstd", &folder.bytes("dropped")), b"a\n");
    assert_eq!(folder.json("stats")["duplicates"], 1);
    // The bytes out are those of the compressed file.
    let output = folder.dedup("--compress xz --stats stats input").bytes();
    let stats = folder.json("stats");
    assert_eq!(
        (&stats["bytes_out"], &stats["bytes_in"]),
        (&output.len().into(), &6.into())
    );
}

#[test]
fn a_run_that_fails_ends_the_frame_after_a_whole_record() {
    let folder = Folder::with(&[("in", "a,1\nb,2\nno field\n"), ("rejected", "old")]);
    for codec in CODECS {
        for threads in ["1", "2"] {
            let args = format!("--compress {codec} -o output --threads {threads} -k 2 in");
            folder.dedup(args).fails("line 3");
            assert_eq!(decompress(codec, &folder.bytes("output")), b"a,1\nb,2\n");
        }
        // A run that is rejected changes nothing.
        let run = folder.dedup(format!("--compress {codec} -o rejected no-such-file"));
        run.fails("no-such-file: ");
        assert_eq!(folder.read("rejected"), "old");
    }
}

#[test]
fn records_of_a_slow_producer_are_compressed_at_once() {
    for codec in CODECS {
        for threads in ["1", "2"] {
            let args = format!("dedup -q -m 64k --compress {codec} --threads {threads}");
            let mut child = command(args).spawn().unwrap();
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
        let args = format!("dedup -q -m 64k --compress {codec}");
        let mut child = command(args).spawn().unwrap();
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

#[test]
fn a_signal_ends_the_frame() {
    let folder = Folder::new();
    for codec in CODECS {
        let args = format!("dedup -q -m 64k --compress {codec} --duplicates dropped");
        let mut child = folder.command(args).spawn().unwrap();
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
        assert_eq!(decompress(codec, &folder.bytes("dropped")), b"a\n");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_ends_in_one_line() {
    for codec in CODECS {
        let run = dedup(format!("--compress {codec} -o /dev/full"), lines());
        run.fails("/dev/full: No space left");
        let run = dedup(
            format!("--compress {codec} --duplicates /dev/full"),
            "a\na\n",
        );
        run.fails("/dev/full: No space left");
    }
}

#[test]
fn other_codecs_and_levels_are_rejected() {
    assert_errors(
        |args| dedup(args, "a\n"),
        &[
            "--compress zip | invalid --compress=zip: expected zstd, gzip, lz4, xz, bzip2, or one of them with :LEVEL",
            "--compress lz4:1 | invalid --compress=lz4:1: expected lz4 without a level",
        ],
    );
}
