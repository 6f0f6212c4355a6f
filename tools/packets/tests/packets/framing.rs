//! Blocks of good files: every variant, whole and in pieces.

use echoless_packets::framing::{BlockKind, Framer, Next, set_section_length_unspecified};
use echoless_packets::writer::{PcapWriter, PcapngWriter};
use echoless_packets::{InterfaceId, LinkType};
use proptest::prelude::*;

use crate::support::{blocks, packets};

const TSRESOL: u16 = 9;
const TSOFFSET: u16 = 14;

/// Two sections in different byte orders, every kind of block.
fn pcapng(big_endian: bool) -> Vec<u8> {
    let mut file = PcapngWriter::new(big_endian);
    file.interface(LinkType::ETHERNET, 5, &[]);
    file.interface(LinkType::RAW, 0, &[(TSRESOL, &[9])]);
    file.block(4, b"name resolution.");
    file.packet(1, 7, b"nanoseconds", 20);
    file.packet(0, 7, b"micro", 5);
    file.simple_packet(b"12345", 9);
    file.block(10, b"secrets.");
    file.section(!big_endian);
    file.block(0x0bad, b"custom..");
    file.interface(LinkType::LINUX_SLL, 0, &[(2, b"eth0"), (TSRESOL, &[0x80])]);
    file.obsolete_packet(0, 3, b"", 60);
    file.block(5, b"statistics..");
    file.into_bytes()
}

/// The captured and the original length of packets of one file. They decide which is which in
/// version 2.3.
const LENGTHS: [(usize, u32); 4] = [(3, 60), (5, 5), (0, 0), (1, 2)];

#[test]
fn lengths_of_old_versions_are_swapped() {
    for (big_endian, nanoseconds) in [(false, true), (true, false)] {
        let mut writer = PcapWriter::new(big_endian, nanoseconds, LinkType::ETHERNET);
        for (captured, original) in LENGTHS {
            writer.packet(7, &b"abcde"[..captured], original);
        }
        let current = writer.into_bytes();
        for (major, minor) in [(2, 0), (2, 1), (2, 2), (2, 3), (2, 4), (543, 0)] {
            // Version 2.3 has both orders, the older ones the opposite one.
            for swapped in [false, true] {
                let is_possible = match (major, minor) {
                    (2, 3) => true,
                    (2, 4) => !swapped,
                    (_, _) => swapped,
                };
                if !is_possible {
                    continue;
                }
                let mut file = current.clone();
                for (at, number) in [(4, major), (6, minor)] {
                    let number: u16 = number;
                    file[at..at + 2].copy_from_slice(&match big_endian {
                        true => number.to_be_bytes(),
                        false => number.to_le_bytes(),
                    });
                }
                for (range, _) in blocks(&current).0.into_iter().skip(1).filter(|_| swapped) {
                    file[range.start + 8..range.start + 16].rotate_left(4);
                }
                let found = packets(&file);
                let lengths: Vec<_> = (found.iter())
                    .map(|packet| (packet.data.len(), packet.original_len))
                    .collect();
                assert_eq!(lengths, LENGTHS, "{major}.{minor} {swapped}");

                // Upgraded block by block, the file is that of the current version.
                let (mut framer, mut at) = (Framer::new(), 0);
                while let Next::Block { range, kind } = framer.next_block(&file, at, true).unwrap()
                {
                    at = range.end;
                    assert_eq!(framer.is_old_pcap(), (major, minor) != (2, 4));
                    framer.upgrade(&mut file[range], &kind);
                }
                assert_eq!(file, current);
            }
        }
    }
}

#[test]
fn blocks_of_pcapng_need_no_upgrade() {
    let expected = pcapng(true);
    let (mut file, mut framer, mut at) = (expected.clone(), Framer::new(), 0);
    while let Next::Block { range, kind } = framer.next_block(&file, at, true).unwrap() {
        at = range.end;
        assert!(!framer.is_old_pcap());
        framer.upgrade(&mut file[range], &kind);
    }
    assert_eq!(file, expected);
}

#[test]
fn only_the_length_of_a_section_is_set_unspecified() {
    for big_endian in [false, true] {
        let expected = pcapng(big_endian);
        let mut file = expected.clone();
        file[16..24].copy_from_slice(&[0, 0, 1, 2, 3, 4, 5, 6]);
        set_section_length_unspecified(&mut file[..28]);
        assert_eq!(file, expected);
        let expected = PcapWriter::new(big_endian, false, LinkType::ETHERNET).into_bytes();
        let mut file = expected.clone();
        set_section_length_unspecified(&mut file);
        assert_eq!(file, expected);
    }
}

#[test]
fn the_length_of_a_frame_check_sequence_is_not_part_of_the_link_type() {
    let mut file = PcapWriter::new(true, false, LinkType::ETHERNET);
    file.packet(0, b"abc", 3);
    let mut file = file.into_bytes();
    file[20] = 0x24;
    assert_eq!(packets(&file)[0].link, LinkType::ETHERNET);
}

#[test]
fn pcapng_blocks_in_order() {
    for big_endian in [false, true] {
        let file = pcapng(big_endian);
        let (found, error) = blocks(&file);
        assert_eq!(error, None);
        let id = |section, index| InterfaceId { section, index };
        let kinds: Vec<String> = found
            .iter()
            .map(|(_, kind)| match kind {
                BlockKind::Header => "header".into(),
                BlockKind::Interface(id) => format!("interface {} {}", id.section, id.index),
                BlockKind::Packet(packet) => {
                    String::from_utf8_lossy(packet.packet(&file).bytes).into_owned()
                }
                BlockKind::Other(number) => format!("{number:x}"),
            })
            .collect();
        let expected = [
            "header",
            "interface 0 0",
            "interface 0 1",
            "4",
            "nanoseconds",
            "micro",
            "12345",
            "a",
            "header",
            "bad",
            "interface 1 0",
            "",
            "5",
        ];
        assert_eq!(kinds, expected);
        let found: Vec<_> = packets(&file).iter().map(|p| p.packet(&file)).collect();
        let facts: Vec<_> = found
            .iter()
            .map(|p| (p.interface, p.link, p.original_len, p.timestamp))
            .collect();
        let expected = [
            (id(0, 1), LinkType::RAW, 20, Some(7)),
            (id(0, 0), LinkType::ETHERNET, 5, Some(7000)),
            (id(0, 0), LinkType::ETHERNET, 9, None),
            (id(1, 0), LinkType::LINUX_SLL, 60, Some(3_000_000_000)),
        ];
        assert_eq!(facts, expected);
    }
}

#[test]
fn clocks_of_pcapng_interfaces() {
    let cases: [(&[u8], i64, u64, Option<i64>); 12] = [
        (&[0], 0, 2, Some(2_000_000_000)),
        (&[3], 0, 2, Some(2_000_000)),
        (&[6], 1, 2, Some(1_000_002_000)),
        (&[9], -2, 5, Some(-1_999_999_995)),
        (&[12], 0, 2999, Some(2)),
        (&[19], 0, u64::MAX, Some(1_844_674_407)),
        (&[0x80], 0, 4, Some(4_000_000_000)),
        (&[0x81], 0, 3, Some(1_500_000_000)),
        (&[0x80 | 10], 0, 1025, Some(1_000_976_562)),
        (&[0x80 | 63], 0, 1 << 63, Some(1_000_000_000)),
        (&[9], 0, u64::MAX, None),
        (&[6], i64::MAX, 0, None),
    ];
    for (resolution, offset, units, nanoseconds) in cases {
        for big_endian in [false, true] {
            let number = if big_endian {
                offset.to_be_bytes()
            } else {
                offset.to_le_bytes()
            };
            let mut file = PcapngWriter::new(big_endian);
            let options = [(TSRESOL, resolution), (TSOFFSET, &number[..])];
            file.interface(LinkType::ETHERNET, 0, &options);
            file.packet(0, units, b"abc", 3);
            let found = packets(&file.into_bytes());
            assert_eq!(
                found[0].timestamp, nanoseconds,
                "{resolution:?} {offset} {units}"
            );
        }
    }
}

#[test]
fn options_behind_the_end_of_options_do_not_count() {
    let mut file = PcapngWriter::new(false);
    file.interface(LinkType::ETHERNET, 0, &[(0, b""), (TSRESOL, &[200, 1, 1])]);
    file.packet(0, 1, b"abc", 3);
    assert_eq!(packets(&file.into_bytes())[0].timestamp, Some(1000));
}

#[test]
fn version_1_2_is_version_1_0() {
    let mut file = pcapng(false);
    file[14] = 2;
    assert_eq!(packets(&file).len(), 4);
}

/// Feeds the framer the file in pieces of these sizes, in a buffer that keeps what is not framed.
fn framed_in_pieces(file: &[u8], pieces: &[usize]) -> Vec<(Vec<u8>, String)> {
    let (mut framer, mut buffer, mut read, mut found) = (Framer::new(), Vec::new(), 0, Vec::new());
    let mut pieces = pieces.iter().cycle();
    loop {
        match framer
            .next_block(&buffer, 0, read == file.len())
            .expect("a good file")
        {
            Next::Block { range, kind } => {
                let summary = match &kind {
                    BlockKind::Packet(p) => format!("{:?} {:?}", p.packet(&buffer), p.timestamp),
                    other => format!("{other:?}"),
                };
                found.push((buffer[range.clone()].to_vec(), summary));
                buffer.drain(range);
            }
            Next::NeedMore(more) => {
                assert!(more >= 1 && more <= file.len() - read, "{more} more bytes");
                let piece = (*pieces.next().expect("endless")).min(file.len() - read);
                buffer.extend(&file[read..read + piece]);
                read += piece;
            }
            Next::End => {
                assert!(buffer.is_empty());
                return found;
            }
        }
    }
}

proptest! {
    #[test]
    fn pieces_do_not_matter(
        big_endian: bool,
        ng: bool,
        pieces in prop::collection::vec(1usize..40, 1..20),
    ) {
        let file = if ng {
            pcapng(big_endian)
        } else {
            let mut file = PcapWriter::new(big_endian, false, LinkType::ETHERNET);
            for len in [0usize, 1, 100, 17] {
                file.packet(len as u64, &vec![len as u8; len], 1000);
            }
            file.into_bytes()
        };
        let whole = framed_in_pieces(&file, &[file.len()]);
        prop_assert_eq!(&framed_in_pieces(&file, &pieces), &whole);
        // The blocks are the file, byte for byte.
        let copy: Vec<u8> = whole.into_iter().flat_map(|(bytes, _)| bytes).collect();
        prop_assert_eq!(copy, file);
    }
}
