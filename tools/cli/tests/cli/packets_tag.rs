//! `echoless packets --tag`: every packet passes, and duplicates carry a comment.

use std::fs;
use std::ops::Range;

use echoless_packets::framing::{BlockKind, Framer, Next, PacketBlock};

use crate::packets_support::{frame, numbered, packets, pcapng};
use crate::run::{assert_errors, file};

const COMMENT: &[u8] = b"echoless: duplicate";

/// Sections in both byte orders with blocks of all kinds that can be tagged, and which packets are
/// duplicates.
fn sections() -> (Vec<u8>, Vec<bool>) {
    let (mut bytes, mut duplicates) = (Vec::new(), Vec::new());
    for big_endian in [false, true] {
        let mut file = pcapng(big_endian);
        let u16_of = |number: u16| match big_endian {
            true => number.to_be_bytes(),
            false => number.to_le_bytes(),
        };
        let u32_of = |number: u32| match big_endian {
            true => number.to_be_bytes(),
            false => number.to_le_bytes(),
        };
        for number in [1, 2, 1, 3, 2] {
            let number = number + u64::from(big_endian) * 10;
            file.packet(0, 1_000_000, &frame(number), 100);
            file.block(5, &[0; 12]);
        }
        duplicates.extend([false, false, true, false, true]);
        // A copy with a flags option behind its data, with and without an end of the options.
        for end in [&[0; 4][..], &[]] {
            let data = frame(1 + u64::from(big_endian) * 10);
            let mut body = [0, 0, 1_000_000, data.len() as u32, 100]
                .map(u32_of)
                .concat();
            body.extend(&data);
            body.resize(body.len().next_multiple_of(4), 0);
            body.extend([u16_of(2), u16_of(4)].concat());
            body.extend([0, 0, 0, 1]);
            body.extend(end);
            file.block(6, &body);
            duplicates.push(true);
        }
        file.obsolete_packet(0, 1_000_000, &frame(3 + u64::from(big_endian) * 10), 100);
        duplicates.push(true);
        bytes.extend(file.into_bytes());
    }
    (bytes, duplicates)
}

/// The blocks of a file, with its packets.
fn framed(file: &[u8]) -> Vec<(Range<usize>, Option<PacketBlock>)> {
    let (mut framer, mut at, mut blocks) = (Framer::new(), 0, Vec::new());
    while let Next::Block { range, kind } = framer.next_block(file, at, true).unwrap() {
        at = range.end;
        let packet = match kind {
            BlockKind::Packet(packet) => Some(packet),
            BlockKind::Header | BlockKind::Interface(_) | BlockKind::Other(_) => None,
        };
        blocks.push((range, packet));
    }
    blocks
}

#[test]
fn every_packet_passes_and_duplicates_carry_the_comment() {
    let (capture, duplicates) = sections();
    let directory = tempfile::tempdir().unwrap();
    let dropped = file(directory.path(), "dropped", b"");
    let tagged = packets(&["--tag", "--duplicates", &dropped], &capture).bytes();
    // The side file has the copies as they came.
    let plain = packets(&["--invert"], &capture).bytes();
    assert_eq!(fs::read(&dropped).unwrap(), plain);

    let (before, after) = (framed(&capture), framed(&tagged));
    assert_eq!(before.len(), after.len());
    let mut duplicates = duplicates.into_iter();
    for ((old, old_packet), (new, new_packet)) in before.into_iter().zip(after) {
        let (old, new) = (&capture[old], &tagged[new]);
        let (Some(old_packet), Some(new_packet)) = (old_packet, new_packet) else {
            assert_eq!(old, new);
            continue;
        };
        assert_eq!(
            old_packet.packet(&capture),
            new_packet.packet(&tagged),
            "the packet is the same"
        );
        let has_comment = new.windows(COMMENT.len()).any(|bytes| bytes == COMMENT);
        let duplicate = duplicates.next().unwrap();
        assert_eq!(has_comment, duplicate);
        if !duplicate {
            assert_eq!(old, new);
        }
    }
    assert_eq!(duplicates.next(), None);
}

#[test]
fn tagged_files_are_the_same_for_any_number_of_threads() {
    let mut file = pcapng(false);
    for number in 0..20_000_u64 {
        file.packet(0, 1000 * number, &frame(number / 3 * 2), 100);
    }
    let capture = file.into_bytes();
    let tagged = packets(&["--tag", "--threads", "1"], &capture).bytes();
    // Two of three packets repeat the one before: a comment has 24 bytes, the end of options 4.
    let copies = 20_000 - 20_000_usize.div_ceil(3);
    assert_eq!(tagged.len(), capture.len() + copies * 28);
    for threads in ["2", "3", "8"] {
        let again = packets(&["--tag", "--threads", threads], &capture).bytes();
        assert!(again == tagged, "{threads}");
    }
}

#[test]
fn files_without_comments_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let pcap = file(directory.path(), "pcap", &numbered(&[1, 1]));
    let mut simple = pcapng(false);
    simple.packet(0, 0, &frame(1), 100);
    let before = simple.clone().into_bytes();
    simple.simple_packet(&frame(1), frame(1).len() as u32);
    let simple = file(directory.path(), "simple", &simple.into_bytes());
    let expected = "expected pcapng files with enhanced packet blocks, \
                    the only packets that can have a comment";
    let run = packets(&["--tag", &pcap], b"");
    let message = format!("{pcap}: invalid --tag with a pcap file: {expected}");
    assert_eq!((run.error(), run.stdout.len()), (&message[..], 0));
    // The packets in front of the first one that cannot have a comment are written.
    let run = packets(&["--tag", &simple], b"");
    let message = format!("{simple}: invalid --tag with a simple packet block: {expected}");
    assert_eq!((run.error(), &run.stdout), (&message[..], &before));
    assert_errors(
        |args| packets(args, b""),
        &[
            "--tag --invert | '--tag' cannot be used with '--invert'",
            "--tag --count | '--tag' cannot be used with '--count'",
        ],
    );
}
