//! Several captures as one stream: which headers may differ, and old versions of pcap.

use std::path::Path;

use echoless_packets::LinkType;
use echoless_packets::writer::PcapWriter;
use proptest::prelude::*;

use crate::codecs::compress;
use crate::packets_support::{frame, numbered, packets, pcap, pcapng};
use crate::run::{Folder, file, path};

/// The capture with another header: `number` at `offset`, in little-endian bytes.
fn with_header(mut capture: Vec<u8>, offset: usize, number: u32) -> Vec<u8> {
    capture[offset..offset + 4].copy_from_slice(&number.to_le_bytes());
    capture
}

#[test]
fn files_that_cannot_follow_are_rejected_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| file(directory.path(), name, content);
    let first = write("first", &numbered(&[1]));
    let writer =
        |big_endian, nanoseconds, link| PcapWriter::new(big_endian, nanoseconds, link).into_bytes();
    let ethernet = LinkType::ETHERNET;
    let others = [
        (writer(false, true, ethernet), "resolution of times"),
        (writer(true, true, ethernet), "byte order"),
        (writer(true, false, ethernet), "byte order"),
        (writer(false, false, LinkType::RAW), "link type"),
        (
            with_header(numbered(&[2]), 20, 0x2400_0001),
            "length of the frame check sequence",
        ),
        (pcapng(false).into_bytes(), "format"),
    ];
    let out = path(&directory, "out");
    for (other, difference) in others {
        for content in [other.clone(), compress("gzip", &other)] {
            let name = write("other", &content);
            let expected = |name: &str| {
                format!(
                    "{name}: begins unlike {first}, with another {difference}: expected pcap files \
                     of one link type, byte order and resolution of times, or only pcapng files \
                     (mergecap joins others)"
                )
            };
            let run = packets(&["-o", &out, &first, &name], b"");
            assert_eq!(run.error(), expected(&name));
            assert!(!Path::new(&out).exists());
            // The first bytes of a pipe are not known before they are read.
            let run = packets(&[&first, "-"], &content);
            assert_eq!(run.error(), expected("standard input"));
            assert_eq!(run.stdout, numbered(&[1]));
        }
    }
    // So are files that are no captures.
    for (content, problem) in [
        (&b"some text"[..], "invalid magic=736f6d65 at byte 0"),
        (
            b"PK\x03\x04rest",
            "compressed in a format that is not decoded",
        ),
        (
            &with_header(numbered(&[2]), 4, 5 << 16 | 2),
            "invalid version=2.5 in the block at byte 0: expected 2.0 to 2.4",
        ),
    ] {
        let name = write("other", content);
        let run = packets(&["-o", &out, &first, &name], b"");
        assert!(
            run.error().starts_with(&format!("{name}: {problem}")),
            "{}",
            run.error()
        );
        assert!(!Path::new(&out).exists());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn headers_that_readers_ignore_may_differ(
        headers in prop::collection::vec(
            (
                any::<u32>(),
                any::<u32>(),
                prop_oneof![Just(0), 1..300_000_u32, Just(i32::MAX as u32), any::<u32>()],
                any::<bool>(),
            ),
            1..5,
        ),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let mut expected = Vec::new();
        let mut names = Vec::new();
        for (number, (zone, accuracy, snap, compressed)) in headers.iter().enumerate() {
            let mut capture = numbered(&[number as u64]);
            for (offset, value) in [(8, zone), (12, accuracy), (16, snap)] {
                capture = with_header(capture, offset, *value);
            }
            expected.extend_from_slice(if number == 0 { &capture } else { &capture[24..] });
            let content = if *compressed { compress("zstd", &capture) } else { capture };
            names.push(file(directory.path(), &number.to_string(), &content));
        }
        // 0, and what libpcap cannot store, are no limit.
        let limit = |snap: u32| i32::try_from(snap).ok().filter(|it| *it > 0);
        let larger = |a: u32, b: u32| match (limit(a), limit(b)) {
            (None, _) => a,
            (Some(_), None) => b,
            (Some(first), Some(second)) => if second > first { b } else { a },
        };
        let largest = headers.iter().map(|header| header.2).reduce(larger).unwrap();
        expected = with_header(expected, 16, largest);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        prop_assert_eq!(packets(&names, b"").bytes(), expected);
    }
}

#[test]
fn the_snap_length_of_a_pipe_may_not_exceed_the_one_that_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let short = with_header(numbered(&[1]), 16, 96);
    let first = file(directory.path(), "first", &short);
    let run = packets(&[&first, "-"], &numbered(&[2]));
    assert_eq!(
        run.error(),
        "standard input: its snap length of 262144 is larger than the one in the header that is \
         already written: expected it first, or a regular file, which is looked at before"
    );
    assert_eq!(run.stdout, short);
    let expected = [&numbered(&[2])[..], &short[24..]].concat();
    assert_eq!(packets(&["-", &first], &numbered(&[2])).bytes(), expected);
}

#[test]
fn old_versions_are_read_and_written_as_the_current_one() {
    // Two packets, one of them cut, and a copy of each.
    let mut file = PcapWriter::new(true, true, LinkType::ETHERNET);
    for number in [0, 1, 0, 1] {
        let frame = frame(number);
        file.packet(number, &frame[..frame.len() - number as usize], 70);
    }
    let current = file.into_bytes();
    let mut old = current.clone();
    // Version 2.2, in which the two lengths of a packet are swapped.
    old[4..8].copy_from_slice(&[0, 2, 0, 2]);
    for (range, _) in crate::packets_support::blocks(&current).into_iter().skip(1) {
        old[range.start + 8..range.start + 16].rotate_left(4);
    }
    let expected = packets(&[], &current).bytes();
    assert!(expected.len() < current.len());
    let folder = Folder::with(&[("old", &old), ("current", &current)]);
    for threads in [1, 3] {
        let args =
            format!("packets -q -m 64k --threads {threads} --duplicates dropped old current");
        assert!(folder.echoless(args).bytes() == expected);
        // All of the second file are copies.
        let copies = [&expected[..24], &current[expected.len()..], &current[24..]];
        assert!(folder.bytes("dropped") == copies.concat());
    }
}

#[test]
fn captures_of_one_header_are_copied_byte_for_byte() {
    let capture = with_header(pcap(&[(0, frame(1))]), 8, 3600);
    assert_eq!(packets(&[], &capture).bytes(), capture);
}
