//! Compressed inputs: every codec reads like the plain file, and damage ends in one line.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Stdio;

use serde_json::Value;

use crate::codecs::{CODECS, Parts, READ_ONLY, compress, decompress, lines, read_only};
use crate::run::{Folder, Run, command, dedup, echoless, file, run};

/// Records of 12 bytes, a third of them repeats.
fn binary() -> Vec<u8> {
    let record = |index: u64| {
        let id = if index % 3 == 1 { index / 7 } else { index };
        let mut record = id
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .to_le_bytes()
            .to_vec();
        record.extend((id as u32).to_be_bytes());
        record
    };
    (0..100_000).flat_map(record).collect()
}

#[test]
fn every_codec_reads_like_the_plain_file() {
    let directory = tempfile::tempdir().unwrap();
    for (format, plain) in [("lines", lines()), ("fixed:12", binary())] {
        let expected = dedup(["--format", format], &plain).bytes();
        assert!(expected.len() > plain.len() / 2 && expected.len() < plain.len());
        let middle = plain.len() / 2 + 5;
        for codec in CODECS {
            // Frames may follow each other, and end anywhere in a record.
            let parts = [&plain[..middle], b"", &plain[middle..]];
            let parts = parts.map(|part| compress(codec, part)).concat();
            let path = file(directory.path(), codec, &parts);
            for threads in ["1", "3", "8"] {
                let args = ["--format", format, "--threads", threads, &path];
                assert!(dedup(args, b"").bytes() == expected, "{codec} {threads}");
            }
            let run = dedup(["--format", format], compress(codec, &plain));
            assert!(run.bytes() == expected, "{codec}");
        }
    }
}

/// A gzip member with the field of BGZF, which says how long it is.
fn bgzf(plain: &[u8]) -> Vec<u8> {
    let builder = flate2::GzBuilder::new().extra(*b"BC\x02\0\0\0");
    let mut encoder = builder.write(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(plain).unwrap();
    let mut member = encoder.finish().unwrap();
    let size = u16::try_from(member.len() - 1).unwrap();
    member[16..18].copy_from_slice(&size.to_le_bytes());
    member
}

#[test]
fn files_of_many_frames_read_the_same_on_any_number_of_threads() {
    let folder = Folder::with(&[("other", "other\n")]);
    let plain = lines().repeat(3);
    let expected = dedup("", &plain).bytes();
    for codec in ["zstd", "lz4", "gzip"] {
        let frame = |part: &[u8]| match codec {
            "gzip" => bgzf(part),
            codec => compress(codec, part),
        };
        let whole: Vec<u8> = plain.chunks(60_000).flat_map(frame).collect();
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 0x10;
        let garbage = [&whole[..], b"garbage"].concat();
        let of_one_frame = compress(codec, &plain);
        let mixed = [&whole[..], &of_one_frame, &whole].concat();
        for (file, is_whole) in [
            (&whole[..], true),
            (&mixed, true),
            (&flipped, false),
            (&garbage, codec == "gzip"),
            (&whole[..whole.len() - 1], false),
            (&whole[..whole.len() / 3], false),
        ] {
            folder.write("many", file);
            let run_on = |threads: usize| {
                let run = folder.dedup(format!("--threads {threads} --stats stats many other"));
                assert_eq!(run.code, if is_whole { 0 } else { 2 }, "{codec}");
                let bytes_in = folder.json("stats")["bytes_in"].clone();
                (run.stdout, run.stderr, bytes_in)
            };
            let one = run_on(1);
            if is_whole {
                assert!(one.0 == [&expected[..], b"other\n"].concat(), "{codec}");
            }
            for threads in [3, 8] {
                assert!(run_on(threads) == one, "{codec} {threads}");
            }
        }
    }
}

/// Frames of several blocks behind one that is skipped, as pzstd writes them: how many records come
/// in front of the damage depends on no thread.
#[test]
fn records_before_damage_are_the_same_on_any_number_of_threads() {
    let folder = Folder::new();
    let line = |number: u64| format!("{}\n", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut file = b"\x50\x2a\x4d\x18\x04\0\0\0\0\0\0\0".to_vec();
    let frame = |number: u64| {
        let lines: String = (number * 60_000..(number + 1) * 60_000).map(line).collect();
        file.extend(compress("zstd", lines.as_bytes()));
        file.len()
    };
    let ends: Vec<usize> = (0..4).map(frame).collect();
    let (start, end) = (ends[1], ends[2]);
    for damaged in [(start + end) / 2, end - 2, end - (end - start) / 7] {
        let mut file = file.clone();
        file[damaged] ^= 0x55;
        folder.write("damaged", &file);
        let one = folder.dedup("--threads 1 damaged");
        assert_eq!(one.code, 2);
        for threads in [2, 4] {
            let several = folder.dedup(format!("--threads {threads} damaged"));
            assert!(several.stdout == one.stdout, "{damaged} {threads}");
            assert_eq!(several.stderr, one.stderr);
        }
    }
}

#[test]
fn plain_and_compressed_inputs_are_one_stream() {
    let directory = tempfile::tempdir().unwrap();
    let mut args = vec!["--header".to_owned(), "-k".into(), "id".into()];
    for (index, codec) in CODECS.into_iter().enumerate() {
        let text = format!("id,name\n{index},a\n0,b\n");
        let name = format!("{codec}-file");
        args.push(file(
            directory.path(),
            &name,
            &compress(codec, text.as_bytes()),
        ));
        args.push(file(directory.path(), &format!("{index}"), text.as_bytes()));
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let expected = "id,name\n0,a\n1,a\n2,a\n3,a\n4,a\n";
    assert_eq!(dedup(&args, b"").text(), expected);
}

#[test]
fn an_empty_file_stays_empty_and_zeros_may_pad_some_codecs() {
    for codec in CODECS {
        assert_eq!(dedup("", compress(codec, b"")).text(), "", "{codec}");
    }
    for codec in ["gzip", "xz", "bzip2"] {
        let padded = [
            &compress(codec, b"a\n"),
            &[0; 512][..],
            &compress(codec, b"a\nb\n"),
            &[0; 8],
        ];
        assert_eq!(dedup("", padded.concat()).text(), "a\nb\n", "{codec}");
    }
}

#[test]
fn a_regular_file_as_standard_input() {
    let directory = tempfile::tempdir().unwrap();
    for codec in CODECS {
        let path = file(directory.path(), "input", &compress(codec, b"a\na\nb\n"));
        let mut command = command(["dedup", "-q"]);
        command.stdin(Stdio::from(File::open(path).unwrap()));
        assert_eq!(run(command).text(), "a\nb\n", "{codec}");
    }
}

/// Runs on a damaged file: one line that names codec and position, and whole records before it, the
/// first ones of `whole`.
#[track_caller]
fn assert_damaged(codec: &str, damaged: &[u8], whole: Option<&[u8]>) {
    let directory = tempfile::tempdir().unwrap();
    let path = file(directory.path(), "damaged", damaged);
    let mut outputs = Vec::new();
    for threads in ["1", "3"] {
        let run = dedup(["--threads", threads, &path], b"");
        let line = run.error();
        let start = format!("{path}: the {codec} data is cut or damaged after byte ");
        let rest = line
            .strip_prefix(&start)
            .unwrap_or_else(|| panic!("{line}"));
        let (position, rest) = rest.split_once(' ').unwrap();
        let position: usize = position.parse().unwrap();
        assert!(rest.starts_with("of the decompressed file: "), "{line}");
        assert!(position >= run.stdout.len(), "{line}");
        if let Some(whole) = whole {
            assert!(whole.starts_with(&run.stdout));
        }
        assert!(run.stdout.is_empty() || run.stdout.ends_with(b"\n"));
        outputs.push(run.stdout);
    }
    assert!(outputs[0] == outputs[1]);
}

#[test]
fn a_cut_or_damaged_file_ends_in_one_line() {
    let plain: Vec<u8> = (0..60_000u64)
        .flat_map(|id| format!("{:x}\n", id.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes())
        .collect();
    for codec in CODECS {
        let whole = compress(codec, &plain);
        for cut in [
            11,
            whole.len() / 3,
            whole.len() / 2,
            whole.len() - 5,
            whole.len() - 1,
        ] {
            assert_damaged(codec, &whole[..cut], Some(&plain));
        }
        // A second frame that is cut is no end of the file.
        let second = [&whole[..], &whole[..whole.len() / 2]].concat();
        assert_damaged(codec, &second, Some(&plain));
        for flipped in [whole.len() / 3, whole.len() / 2, whole.len() - 6] {
            let mut damaged = whole.clone();
            damaged[flipped] ^= 0x55;
            // The checksum comes after the data, so wrong records may be passed on before.
            assert_damaged(codec, &damaged, None);
        }
        // The tools of these codecs fail as well.
        if ["zstd", "lz4", "xz"].contains(&codec) {
            let followed = [&whole[..], b"something else"].concat();
            assert_damaged(codec, &followed, Some(&plain));
        }
    }
}

#[test]
fn most_of_a_cut_file_is_read() {
    let plain = lines();
    for codec in CODECS {
        let whole = compress(codec, &plain);
        let run = dedup("", &whole[..whole.len() - 3]);
        assert!(run.error().contains(codec), "{}", run.error());
        let expected = dedup("", &plain).bytes();
        // Up to a block of bzip2, of 900 kB, is lost with its end.
        let lost = if codec == "bzip2" { 900_000 } else { 0 };
        assert!(run.stdout.len() + lost >= expected.len(), "{codec}");
    }
}

#[test]
fn data_of_a_slow_producer_is_passed_on_at_once() {
    for codec in CODECS {
        for threads in ["1", "2"] {
            let args = ["dedup", "-q", "-m", "64k", "--threads", threads];
            let mut child = command(args).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let mut stdout = child.stdout.take().unwrap();
            let mut parts = Parts::new(codec);
            // The second part is several times the buffer of a decoder, and compresses well.
            let long = "y".repeat(700_000) + "\n" + &"z".repeat(300_000) + "\n";
            for sent in ["a\n", &long, "c\nd\n"] {
                parts.send(&mut stdin, sent.as_bytes()).unwrap();
                let mut output = vec![0; sent.len()];
                // Blocks forever if decompressed data is held back.
                stdout.read_exact(&mut output).unwrap();
                assert!(output == sent.as_bytes(), "{codec}");
            }
            parts.end(&mut stdin).unwrap();
            drop(stdin);
            assert_eq!(stdout.read(&mut [0]).unwrap(), 0);
            assert!(child.wait().unwrap().success());
        }
    }
}

#[test]
fn text_that_begins_like_a_signature_is_not_waited_for() {
    let mut child = command(["dedup", "-q", "-m", "64k"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    for sent in ["BZ\n", "BZh9\n"] {
        stdin.write_all(sent.as_bytes()).unwrap();
        let mut output = vec![0; sent.len()];
        stdout.read_exact(&mut output).unwrap();
        assert_eq!(output, sent.as_bytes());
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
    for whole in ["BZh91AY&S", "B", ""] {
        assert_eq!(dedup("", whole.as_bytes()).text(), whole);
    }
}

#[test]
fn formats_that_are_not_decoded_are_refused() {
    for (first, command) in [
        (&b"\x1f\x9d\x90"[..], "zcat FILE.Z"),
        (b"PK\x03\x04", "unzip -p FILE.zip"),
        (b"7z\xbc\xaf\x27\x1c", "7z x -so FILE.7z"),
        (b"Rar!\x1a\x07\x01\0", "unrar p -inul FILE.rar"),
        (b"\xff\x06\0\0sNaPpY", "snzip -dc FILE.sz"),
        (b"\x89LZO\0\r\n\x1a\n", "lzop -dc FILE.lzo"),
    ] {
        let input = [first, b"\nrecords\n"].concat();
        let expected = format!(
            "standard input: compressed in a format that is not decoded: expected its plain bytes on \
             standard input, as from {command}, or --no-decompress"
        );
        let without_option = echoless(["packets"], &input);
        assert!(
            without_option
                .error()
                .ends_with(&format!(", as from {command}"))
        );
        assert_eq!(dedup("", &input).error(), expected);
    }
}

#[test]
fn no_decompress_reads_records_as_they_are() {
    // Records of 4 bytes, the first of them the signature of zstd.
    let records = b"\x28\xb5\x2f\xfdabcdabcd";
    let run = dedup(["--format", "fixed:4"], records);
    let line = run.error();
    assert!(line.starts_with("standard input: the zstd data is cut or damaged after byte 0 "));
    let args = ["--format", "fixed:4", "--no-decompress"];
    assert_eq!(dedup(args, records).bytes(), b"\x28\xb5\x2f\xfdabcd");
    let directory = tempfile::tempdir().unwrap();
    for codec in CODECS {
        let compressed = compress(codec, &lines());
        let records = format!("fixed:{}", compressed.len());
        let path = file(directory.path(), "twice", &compressed.repeat(2));
        let args = ["--format", &records, "--no-decompress", &path];
        assert!(dedup(args, b"").bytes() == compressed, "{codec}");
    }
}

#[test]
fn statistics_count_the_bytes_of_the_files_and_their_length_bounds_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let stats = file(directory.path(), "stats", b"");
    // A small file of many records: sized by its length the filter would be too small.
    let plain: Vec<u8> = (0..40_000)
        .flat_map(|id| format!("{id:08}\n").into_bytes())
        .collect();
    for codec in CODECS {
        let compressed = compress(codec, &plain);
        let path = file(directory.path(), "input", &compressed);
        for (threads, memory) in [("1", None), ("2", Some("1MiB"))] {
            let mut args = vec!["dedup", "-q", "--stats", &stats, "--threads", threads];
            args.extend(memory.into_iter().flat_map(|memory| ["-m", memory]));
            args.push(&path);
            assert!(echoless(&args, b"").bytes() == plain, "{codec}");
            let stats: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
            assert_eq!(stats["bytes_in"], compressed.len());
            assert_eq!(stats["bytes_out"], plain.len());
            if memory.is_none() {
                assert_eq!(stats["memory_bytes"], 256 << 20);
            }
        }
    }
}

#[test]
fn eval_reads_compressed_files() {
    let directory = tempfile::tempdir().unwrap();
    let plain = lines();
    let run = |content: &[u8]| {
        let path = file(directory.path(), "input", content);
        let args = ["eval", "-q", "--input", &path, "bloom:k=2,memory=2KiB"];
        echoless(args, b"")
    };
    // The line of the stream: its records and how many of them are distinct.
    let stream = |run: Run| run.text().lines().nth(1).map(str::to_owned);
    let expected = stream(run(&plain)).unwrap();
    assert!(expected.starts_with("60,000 records: "), "{expected}");
    for codec in CODECS {
        let found = stream(run(&compress(codec, &plain)));
        assert_eq!(found.as_ref(), Some(&expected), "{codec}");
    }
    let cut = compress("gzip", &plain);
    let run = run(&cut[..cut.len() / 2]);
    assert!((run.error()).contains("the gzip data is cut or damaged after byte "));
}

/// A frame that decoders skip: zstd and lz4 share its form.
fn skipped_frame(content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap().to_le_bytes();
    [&[0x5a, 0x2a, 0x4d, 0x18][..], &length, content].concat()
}

#[test]
fn frames_before_the_first_one_are_of_any_length_and_arrive_in_any_parts() {
    let long = skipped_frame(&vec![b'\n'; 1 << 20]);
    for codec in ["lz4", "zstd"] {
        let frame = compress(codec, b"a\na\nb\n");
        let whole = [&skipped_frame(b"")[..], &long, &frame].concat();
        assert_eq!(dedup("", &whole).text(), "a\nb\n", "{codec}");
        // In place, the codec behind them counts.
        let directory = tempfile::tempdir().unwrap();
        let path = file(directory.path(), "input", &whole);
        let other = if codec == "lz4" { "zstd" } else { "lz4" };
        let run = dedup(["--in-place", "--compress", other, &path], b"");
        assert!(
            run.error()
                .contains(&format!("expected --compress {codec} beside"))
        );
        let run = dedup(["--in-place", "--compress", codec, &path], b"");
        assert_eq!(run.text(), "");
        assert_eq!(decompress(codec, &fs::read(&path).unwrap()), b"a\nb\n");

        let mut child = command(["dedup", "-q", "-m", "64k"]).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // A signature in pieces, and then byte after byte around the end of each frame.
        let short = [&skipped_frame(b"x")[..], &skipped_frame(b""), &frame].concat();
        for byte in short {
            stdin.write_all(&[byte]).unwrap();
        }
        drop(stdin);
        let mut output = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut output)
            .unwrap();
        assert_eq!(output, "a\nb\n", "{codec}");
        assert!(child.wait().unwrap().success());
    }
    // Without any other frame, there is nothing to read.
    assert_eq!(dedup("", &long).text(), "");
    let cut = dedup("", &long[..long.len() - 1]);
    assert!(
        cut.error()
            .contains("the zstd or lz4 data is cut or damaged after byte 0 ")
    );
}

#[test]
fn codecs_that_are_only_read() {
    let directory = tempfile::tempdir().unwrap();
    let plain = lines();
    let expected = dedup("", &plain).bytes();
    for codec in READ_ONLY {
        let whole = read_only(codec, &plain);
        let path = file(directory.path(), "input", &whole);
        for threads in ["1", "3"] {
            assert!(
                dedup(["--threads", threads, &path], b"").bytes() == expected,
                "{codec}"
            );
        }
        assert!(
            dedup(["--read-bytes", "7"], &whole).bytes() == expected,
            "{codec}"
        );
        let cut = dedup("", &whole[..whole.len() / 2]);
        let name = if codec == "legacy lz4" { "lz4" } else { codec };
        let start = format!("standard input: the {name} data is cut or damaged after byte ");
        assert!(cut.error().starts_with(&start), "{}", cut.error());
        assert!(expected.starts_with(&cut.stdout));
        assert_eq!(dedup("", read_only(codec, b"")).text(), "", "{codec}");
        // Only the codecs of outputs can replace a file.
        if name != "lz4" {
            let run = dedup(["--in-place", "--compress", "xz", &path], b"");
            let error =
                format!("invalid --in-place: expected one input, a regular file, not {name}");
            assert!(run.error().starts_with(&error), "{}", run.error());
        }
        let run = dedup(["--no-decompress", "--format", "fixed:4"], &whole);
        assert!(run.code == 0 || run.error().contains("bytes of the record"));
    }
    // Members of lzip follow each other, other bytes are left.
    let (first, second) = (read_only("lzip", b"a\n"), read_only("lzip", b"a\nb\n"));
    assert_eq!(dedup("", [&first[..], &second].concat()).text(), "a\nb\n");
    let run = echoless(
        ["dedup", "--summary=line"],
        [&first[..], b"behind"].concat(),
    );
    assert_eq!((run.code, &run.stdout[..]), (0, &b"a\n"[..]));
    let warning = "standard input: 6 bytes of trailing garbage behind the lzip data, ignored\n";
    assert!(run.stderr.contains(warning), "{}", run.stderr);
    // Binary records may begin like lzma.
    let records = read_only("lzma", b"a\n");
    let length = format!("fixed:{}", records.len());
    let run = dedup(["--format", &length], records.repeat(2));
    assert!(run.bytes() == records);
}

#[test]
fn bytes_behind_the_last_member_are_left_with_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let last = file(directory.path(), "last", b"b\nc\n");
    for codec in ["gzip", "bzip2"] {
        let member = compress(codec, b"a\nb\n");
        for (behind, left) in [
            (&b"trailing garbage"[..], 16),
            (b"\0\0\0\0plain\n", 6),
            (b"\x1f", 1),
            (b"B", 1),
        ] {
            // The start of a member that is cut.
            if compress(codec, b"").starts_with(behind) {
                continue;
            }
            let path = file(directory.path(), "input", &[&member, behind].concat());
            for threads in ["1", "2"] {
                let args = ["dedup", "-m", "64k", "--summary=line", "--threads", threads];
                let run = echoless([&args[..], &[&path, &last]].concat(), b"");
                assert_eq!((run.code, &run.stdout[..]), (0, &b"a\nb\nc\n"[..]));
                let line = format!(
                    "echoless: {path}: {left} bytes of trailing garbage behind the {codec} data, \
                     ignored\n"
                );
                assert!(run.stderr.starts_with(&line), "{}", run.stderr);
                assert_eq!(dedup([&path, &last], b"").text(), "a\nb\nc\n");
            }
            let strict = dedup(["--strict", &path, &last], b"");
            let end = format!("bytes of trailing garbage behind the {codec} data");
            assert!(strict.error().ends_with(&end), "{}", strict.error());
            assert_eq!(strict.stdout, b"a\nb\n");
        }
        // All of it is read, and counted.
        let stats = file(directory.path(), "stats", b"");
        let long = [&member[..], &vec![b'x'; 1 << 20]].concat();
        let path = file(directory.path(), "input", &long);
        assert_eq!(dedup(["--stats", &stats, &path], b"").text(), "a\nb\n");
        let stats: Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
        assert_eq!(stats["bytes_in"], long.len());
        assert_eq!(stats["complete"], true);
        // The start of a second member is one that is cut.
        for cut in 1..3 {
            let begun = [&member[..], &member[..cut]].concat();
            let run = dedup("", &begun);
            assert!(run.error().contains("is cut or damaged after byte 4 "));
            assert_eq!(run.stdout, b"a\nb\n");
        }
    }
}

#[test]
fn a_window_beyond_the_limit_of_zstd_is_named() {
    use zstd::zstd_safe::CParameter;
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.set_parameter(CParameter::WindowLog(28)).unwrap();
    std::io::Write::write_all(&mut encoder, b"a\n").unwrap();
    let run = dedup("", encoder.finish().unwrap());
    assert!(run.error().contains("zstd -d --long=31"), "{}", run.error());
}
