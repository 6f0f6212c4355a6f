//! Files of `echoless packets`: blocks that are no packets, several files, compression, cuts.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;

use echoless_packets::LinkType;

use crate::codecs::{CODECS, compress};
use crate::packets_support::{blocks, frame, numbered, packets, pcap, pcapng, split};
use crate::run::{assert_errors, command, file};

/// Blocks of all kinds around packets 1, 1, 2, 1 in two sections of different byte order.
fn all_kinds() -> Vec<u8> {
    let mut file = pcapng(false);
    let frame_of = |number| frame(number);
    // Name resolution, interface statistics, decryption secrets, custom, unknown.
    file.block(4, &[0; 8]);
    file.packet(0, 1, &frame_of(1), 50);
    file.block(5, &[0; 12]);
    file.packet(0, 2, &frame_of(1), 50);
    file.block(10, b"TLSK\x04\0\0\0abcd");
    file.section(true);
    file.interface(LinkType::ETHERNET, 0, &[(9, &[9])]);
    file.interface(LinkType::ETHERNET, 0, &[]);
    file.block(0xbad, b"custom..");
    file.packet(0, 3, &frame_of(2), 50);
    file.block(0x4711_4711, b"");
    file.packet(0, 4, &frame_of(1), 50);
    file.block(5, &[1; 12]);
    file.into_bytes()
}

#[test]
fn every_block_that_is_no_packet_is_in_every_output() {
    let capture = all_kinds();
    let (kept, dropped) = split(&capture, &[false, true, false, true]);
    let directory = tempfile::tempdir().unwrap();
    let side = file(directory.path(), "dropped", b"");
    assert_eq!(packets(&["--duplicates", &side], &capture).bytes(), kept);
    assert_eq!(fs::read(&side).unwrap(), dropped);
    assert_eq!(packets(&["--invert"], &capture).bytes(), dropped);
    assert_eq!(packets(&["--count"], &capture).text(), "2\n");
    let stats = file(directory.path(), "stats", b"");
    packets(&["--stats", &stats], &capture).bytes();
    let stats: serde_json::Value = serde_json::from_slice(&fs::read(&stats).unwrap()).unwrap();
    let frames = blocks(&capture)
        .iter()
        .filter(|(_, packet)| !packet)
        .count();
    assert_eq!(stats["frame_blocks"], frames);
    assert_eq!(stats["records"], 4);
    assert_eq!(stats["duplicates"], 2);
    assert_eq!(stats["unkeyed"], 0);
}

#[test]
fn sections_of_outputs_have_no_length() {
    // The length is 8 bytes at this offset of a header; the sections differ in their byte order.
    let length_at = 16..24;
    for first_states_length in [true, false] {
        let mut capture = all_kinds();
        let sections: Vec<usize> = blocks(&capture)
            .into_iter()
            .filter(|(range, _)| capture[range.start..].starts_with(b"\n\r\r\n"))
            .map(|(range, _)| range.start)
            .collect();
        let unspecified = capture.clone();
        for (at, length) in sections
            .iter()
            .zip([308_u64.to_le_bytes(), 308_u64.to_be_bytes()])
        {
            if first_states_length || *at > 0 {
                capture[at + length_at.start..at + length_at.end].copy_from_slice(&length);
            }
        }
        let directory = tempfile::tempdir().unwrap();
        let side = file(directory.path(), "dropped", b"");
        let (kept, dropped) = split(&unspecified, &[false, true, false, true]);
        for threads in ["1", "2"] {
            let args = ["--threads", threads, "--duplicates", &side];
            assert_eq!(packets(&args, &capture).bytes(), kept);
            assert_eq!(fs::read(&side).unwrap(), dropped);
            let tagged = |input: &[u8]| packets(&["--tag", "--threads", threads], input).bytes();
            assert_eq!(tagged(&capture), tagged(&unspecified));
            assert_eq!(tagged(&capture)[length_at.clone()], [0xff; 8]);
        }
    }
}

#[test]
fn the_length_of_a_section_is_left_out_even_without_duplicates() {
    for big_endian in [false, true] {
        let mut file = pcapng(big_endian);
        file.packet(0, 1, &frame(1), 50);
        file.packet(0, 2, &frame(2), 50);
        let expected = file.into_bytes();
        let mut capture = expected.clone();
        let length = (capture.len() - 28) as u64;
        capture[16..24].copy_from_slice(&match big_endian {
            true => length.to_be_bytes(),
            false => length.to_le_bytes(),
        });
        assert_eq!(packets(&[], &capture).bytes(), expected);
    }
}

#[test]
fn a_capture_without_packets_passes() {
    for capture in [pcap(&[]), pcapng(true).into_bytes()] {
        assert_eq!(packets(&[], &capture).bytes(), capture);
        assert_eq!(packets(&["--invert"], &capture).bytes(), capture);
    }
}

#[test]
fn several_files_are_one_stream() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| file(directory.path(), name, content);
    let pcaps = [numbered(&[1, 2]), numbered(&[2, 3])];
    let names = [write("a.pcap", &pcaps[0]), write("b.pcap", &pcaps[1])];
    let args = ["--window-packets", "9", &names[0], &names[1]];
    let mut expected = pcaps[0].clone();
    expected.extend(&split(&pcaps[1], &[true, false]).0[24..]);
    assert_eq!(packets(&args, b"").bytes(), expected);

    // Sections of pcapng files may differ, and each file's interfaces are its own.
    let mut other = pcapng(true);
    other.packet(0, 5, &frame(1), 50);
    let (first, second) = (all_kinds(), other.into_bytes());
    let names = [write("a.pcapng", &first), write("b.pcapng", &second)];
    let expected = [
        split(&first, &[false, true, false, true]).0,
        split(&second, &[true]).0,
    ];
    assert_eq!(
        packets(&[&names[0], &names[1]], b"").bytes(),
        expected.concat()
    );
    let args = ["--group", "interface", &names[0], &names[1]];
    let expected = [split(&first, &[false, true, false, false]).0, second];
    assert_eq!(packets(&args, b"").bytes(), expected.concat());
}

#[test]
fn compressed_files_are_recognised_by_content() {
    let numbers: Vec<u64> = (0..20_000).map(|number| number % 15_000).collect();
    let capture = numbered(&numbers);
    let args = ["--window-packets", "15000", "-m", "4MiB"];
    let expected = packets(&args, &capture).bytes();
    assert_eq!(blocks(&expected).len(), 15_001);
    let half = capture.len() / 2;
    for codec in CODECS {
        assert_eq!(packets(&args, &compress(codec, &capture)).bytes(), expected);
        // Members and frames may follow each other.
        let parts = [&capture[..half], &capture[half..]];
        let parts = parts.map(|part| compress(codec, part)).concat();
        assert_eq!(packets(&args, &parts).bytes(), expected);
        let directory = tempfile::tempdir().unwrap();
        let name = file(directory.path(), "capture", &parts);
        let run = packets(&["--window-packets", "15000", "-m", "4MiB", &name], b"");
        assert_eq!(run.bytes(), expected);
    }
}

#[test]
fn other_files_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let kept = file(directory.path(), "kept", b"old");
    for (input, expected) in [
        (
            &b""[..],
            "the file is empty: expected a pcap or pcapng file",
        ),
        (b"abc", "invalid magic=616263 at byte 0"),
        (b"a,b,c\n", "invalid magic=612c622c at byte 0"),
        (b"BZh91AY", "invalid file=bzip2 at byte 0"),
        (
            b"\x1f\x8b\x08no gzip",
            "standard input: the gzip data is cut or damaged after byte 0",
        ),
    ] {
        let run = packets(&["-o", &kept], input);
        assert!(run.error().contains(expected), "{}", run.error());
        // Nothing is truncated for a run that is rejected.
        assert_eq!(fs::read(&kept).unwrap(), b"old");
    }
    let directory = directory.path().to_str().unwrap();
    assert_errors(
        |args| packets(args, b""),
        &[
            "no-such-file | no-such-file: No such file",
            &format!("{directory} | is a directory"),
        ],
    );
}

#[test]
fn an_input_is_never_an_output() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(directory.path(), "capture", &numbered(&[1]));
    let run = packets(&[&name, "-o", &name], b"");
    assert_eq!(run.error(), format!("{name}: is also an input"));
    assert_eq!(fs::read(&name).unwrap(), numbered(&[1]));
}

#[test]
fn packets_of_a_slow_capture_are_written_at_once() {
    for capture in [numbered(&[1, 1, 2, 1, 3]), all_kinds()] {
        let expected = packets(&[], &capture).bytes();
        for threads in ["1", "2"] {
            let args = ["packets", "-q", "-m", "64k", "--threads", threads];
            let mut child = command(args).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let mut stdout = child.stdout.take().unwrap();
            let mut written = Vec::new();
            let mut framed = 0;
            for (range, _) in blocks(&capture) {
                // The start of the next block comes with this one.
                let sent = capture.len().min(range.end + 3);
                stdin.write_all(&capture[framed..sent]).unwrap();
                framed = sent;
                let whole = packets(&[], &capture[..range.end]).bytes();
                // Blocks forever if the command holds a whole block back.
                let mut output = vec![0; whole.len() - written.len()];
                stdout.read_exact(&mut output).unwrap();
                written.extend(output);
            }
            drop(stdin);
            stdout.read_to_end(&mut written).unwrap();
            assert_eq!(written, expected);
            assert!(child.wait().unwrap().success());
        }
    }
}

/// The sample capture; `None`, with a message, if it is absent.
pub(crate) fn sample() -> Option<String> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = workspace.join("../shared/data/test.pcap");
    if path.exists() {
        return Some(path.to_str()?.to_owned());
    }
    eprintln!("skipped: {} is absent", path.display());
    None
}
