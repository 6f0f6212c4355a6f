//! Files that cannot be framed: each error, with its text.

use echoless_packets::LinkType;
use echoless_packets::framing::{DEFAULT_MAX_BLOCK, FrameError, Framer, MAX_INTERFACES, Next};
use echoless_packets::writer::{PcapWriter, PcapngWriter};

use crate::support::blocks;

/// The text of the error of a file, and the number of blocks before it.
fn error_of(file: &[u8]) -> (usize, String) {
    let (found, error) = blocks(file);
    (found.len(), error.expect("an error").to_string())
}

fn pcap() -> Vec<u8> {
    let mut file = PcapWriter::new(true, false, LinkType::ETHERNET);
    file.packet(1, b"abcdef", 6);
    file.packet(2, b"ghi", 3);
    file.into_bytes()
}

/// Section header at 0, interface at 28, packet at 48.
fn pcapng() -> Vec<u8> {
    let mut file = PcapngWriter::new(true);
    file.interface(LinkType::ETHERNET, 0, &[]);
    file.packet(0, 1, b"abcd", 4);
    file.into_bytes()
}

#[test]
fn other_files_are_named() {
    let cases: [(&[u8], &str, bool); 15] = [
        (b"\xa1\xb2\xcd\x34....", "Kuznetzov's modified pcap", true),
        (b"\x34\xcd\xb2\xa1....", "Kuznetzov's modified pcap", true),
        (b"\xa1\xb2\x34\xcd....", "Mesquita's modified pcap", false),
        (b"\xa1\x2b\x3c\x4d....", "Navtel pcap", false),
        (b"\xa1\xb2\xc3\xcb....", "BPF program savefile", false),
        (b"\xac\x01\x00\x1c....", "Ixia lcap (hardware)", true),
        (b"\xab\x01\x00\x1c....", "Ixia lcap (software)", true),
        (b"\x1f\x8b\x08\x00", "gzip", false),
        (b"\x28\xb5\x2f\xfd", "zstd", false),
        (b"\x04\x22\x4d\x18", "lz4", false),
        (b"\xfd7zXZ\x00", "xz", false),
        (b"BZh9", "bzip2", false),
        (b"snoop\0\0\0", "snoop", true),
        (b"GMBU", "Microsoft Network Monitor 2", true),
        (b"XCP\0", "NetXRay", true),
    ];
    for (file, name, is_capture) in cases {
        let mut expected = format!(
            "invalid file={name} at byte 0: expected pcap (microseconds or nanoseconds) or \
             pcapng, not compressed"
        );
        if is_capture {
            expected += " (editcap -F pcapng FILE - converts it)";
        }
        assert_eq!(error_of(file), (0, expected));
    }
    // The last one is an ERF record of Ethernet.
    for (file, found) in [
        (&b"hello"[..], "68656c6c"),
        (b"ab", "6162"),
        (b"\xa1\xb2\xc4", "a1b2c4"),
        (b"\0\0\0\0\0\xf1Se\x02\x04\0D\0\0\x002", "00000000"),
    ] {
        let expected = format!(
            "invalid magic={found} at byte 0: expected a pcap or pcapng file (editcap -F pcapng \
             FILE - converts many others, such as ERF)"
        );
        assert_eq!(error_of(file), (0, expected));
        let (_, error) = blocks(file);
        assert!(!error.unwrap().is_cut());
    }
    let expected = "the file is empty: expected a pcap or pcapng file";
    assert_eq!(error_of(b""), (0, expected.into()));
}

#[test]
fn a_file_cut_anywhere_reports_what_is_whole() {
    for (file, ends) in [(pcap(), [24, 46, 65]), (pcapng(), [28, 48, 84])] {
        assert_eq!(file.len(), ends[2]);
        for len in 0..file.len() {
            let (found, error) = blocks(&file[..len]);
            let whole = ends.iter().filter(|end| **end <= len).count();
            assert_eq!(found.len(), whole, "cut to {len}");
            let offset = ends[..whole].last().copied().unwrap_or(0);
            if offset == len && len > 0 {
                assert_eq!(error, None);
                continue;
            }
            let cut = error.as_ref().unwrap();
            assert!(cut.is_cut(), "cut to {len}: {cut}");
            assert_eq!(cut.offset(), offset as u64);
            if len == 0 {
                assert_eq!(error, Some(FrameError::Empty));
                continue;
            }
            let Some(FrameError::Truncated {
                offset: at,
                found,
                expected,
                packets,
            }) = error
            else {
                panic!("cut to {len}: {error:?}");
            };
            assert_eq!((at, found), (offset as u64, len - offset));
            assert!(expected > found && expected <= ends[whole] - offset);
            let in_pcap = file[0] == 0xa1;
            assert_eq!(
                packets,
                if in_pcap {
                    whole.saturating_sub(1) as u64
                } else {
                    0
                }
            );
        }
    }
    let cut = pcap();
    let text = "the file is cut: the block at byte 46 has 18 of at least 19 bytes; \
                packets before it, all whole: 1";
    assert_eq!(error_of(&cut[..64]), (2, text.into()));
}

/// The error of a file after `change`: blocks before it, and the text.
fn changed(mut file: Vec<u8>, at: usize, bytes: &[u8]) -> (usize, String) {
    file[at..at + bytes.len()].copy_from_slice(bytes);
    error_of(&file)
}

#[test]
fn fields_of_pcap() {
    for (version, found) in [
        ([0, 2, 0, 5], "2.5"),
        ([0, 1, 0, 4], "1.4"),
        ([2, 31, 0, 1], "543.1"),
    ] {
        let text = format!("invalid version={found} in the block at byte 0: expected 2.0 to 2.4");
        assert_eq!(changed(pcap(), 4, &version), (0, text));
    }
    let text = "invalid captured length=4294967295 in the block at byte 24: expected at most \
                16777200";
    assert_eq!(changed(pcap(), 32, &[0xff; 4]), (1, text.into()));
}

#[test]
fn fields_of_pcapng() {
    let length = format!("expected a multiple of 4 from 12 to {DEFAULT_MAX_BLOCK}");
    let cases: [(usize, &[u8], usize, &str); 12] = [
        (
            8,
            b"\x01\x02\x03\x04",
            0,
            "byte order magic=01020304 in the block at byte 0: expected \
            1a2b3c4d or 4d3c2b1a",
        ),
        (
            12,
            &[0, 2],
            0,
            "version=2.0 in the block at byte 0: expected 1.0 or 1.2",
        ),
        (
            14,
            &[0, 1],
            0,
            "version=1.1 in the block at byte 0: expected 1.0 or 1.2",
        ),
        (
            7,
            &[27],
            0,
            &format!("block length=27 in the block at byte 0: {length}"),
        ),
        (
            35,
            &[8],
            1,
            &format!("block length=8 in the block at byte 28: {length}"),
        ),
        (
            32,
            &[1, 0, 0, 4],
            1,
            &format!("block length=16777220 in the block at byte 28: {length}"),
        ),
        (
            47,
            &[24],
            1,
            "trailing block length=24 in the block at byte 28: expected 20, the length \
            in front",
        ),
        (
            59,
            &[1],
            2,
            "interface=1 in the block at byte 48: expected less than 1, the interfaces \
            described in this section",
        ),
        (
            71,
            &[5],
            2,
            "captured length=5 in the block at byte 48: expected at most 4 (the end of \
            the block)",
        ),
        // The packet as a simple packet block: its first number is the original length.
        (
            51,
            &[3, 0, 0, 0, 36, 0, 0, 0, 25],
            2,
            "captured length=25 in the block at byte 48: \
            expected at most 20 (the end of the block)",
        ),
        // The interface as a packet block: it is too short.
        (
            31,
            &[6],
            1,
            "block length=20 in the block at byte 28: expected at least 32 for this type",
        ),
        (
            31,
            &[3, 0, 0, 0, 20, 0, 0, 0, 4],
            1,
            "interface=0 in the block at byte 28: expected \
            less than 0, the interfaces described in this section",
        ),
    ];
    for (at, bytes, before, text) in cases {
        assert_eq!(
            changed(pcapng(), at, bytes),
            (before, format!("invalid {text}"))
        );
    }
}

#[test]
fn options_of_interfaces() {
    let cases: [(u16, &[u8], &str); 6] = [
        (
            9,
            &[20],
            "if_tsresol=0x14 in the block at byte 28: expected 10 to the power of -0 to -19 \
            (0x00 to 0x13) or 2 to the power of -0 to -63 (0x80 to 0xbf)",
        ),
        (
            9,
            &[0xc0],
            "if_tsresol=0xc0 in the block at byte 28: expected 10 to the power of -0 to \
            -19 (0x00 to 0x13) or 2 to the power of -0 to -63 (0x80 to 0xbf)",
        ),
        (
            9,
            &[6, 6],
            "length of if_tsresol=2 in the block at byte 28: expected 1",
        ),
        (
            9,
            &[],
            "length of if_tsresol=0 in the block at byte 28: expected 1",
        ),
        (
            14,
            &[0; 4],
            "length of if_tsoffset=4 in the block at byte 28: expected 8",
        ),
        (2, &[7; 300], ""),
    ];
    for (code, value, text) in cases {
        let mut file = PcapngWriter::new(false);
        file.interface(LinkType::ETHERNET, 0, &[(code, value)]);
        let mut file = file.into_bytes();
        let text = if text.is_empty() {
            // The length of the option now exceeds the block.
            file[46..48].copy_from_slice(&[0x31, 0x01]);
            "option length=305 in the block at byte 28: expected at most 304 (the end of the \
             block)"
        } else {
            text
        };
        assert_eq!(error_of(&file), (1, format!("invalid {text}")));
    }
}

#[test]
fn a_section_has_a_bounded_number_of_interfaces() {
    let mut file = PcapngWriter::new(false);
    for _ in 0..=MAX_INTERFACES {
        file.interface(LinkType::ETHERNET, 0, &[]);
    }
    let offset = 28 + 20 * MAX_INTERFACES;
    let text = format!(
        "invalid interfaces=65537 in the block at byte {offset}: expected at most 65536 in a \
         section"
    );
    // Without the copies of a framer that other tests compare.
    let (file, mut framer) = (file.into_bytes(), Framer::new());
    let (mut at, mut blocks) = (0, 0);
    let error = loop {
        match framer.next_block(&file, at, true) {
            Ok(Next::Block { range, .. }) => (at, blocks) = (range.end, blocks + 1),
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error.to_string(),
        }
    };
    assert_eq!((blocks, error), (1 + MAX_INTERFACES, text));
}

#[test]
fn the_longest_block_can_be_chosen() {
    let file = pcap();
    let mut framer = Framer::with_max_block(21);
    assert!(matches!(
        framer.next_block(&file, 0, true),
        Ok(Next::Block { .. })
    ));
    let error = framer.next_block(&file, 24, true).unwrap_err();
    let text = "invalid captured length=6 in the block at byte 24: expected at most 5";
    assert_eq!(error.to_string(), text);
    let mut framer = Framer::with_max_block(22);
    assert!(matches!(
        framer.next_block(&file, 0, true),
        Ok(Next::Block { .. })
    ));
    assert!(matches!(
        framer.next_block(&file, 24, true),
        Ok(Next::Block { .. })
    ));
    // A length that is too large is rejected before its bytes are requested.
    let mut framer = Framer::with_max_block(22);
    let mut long = file;
    long[34] = 1;
    assert!(matches!(
        framer.next_block(&long[..24], 0, false),
        Ok(Next::Block { .. })
    ));
    assert!(framer.next_block(&long[..40], 24, false).is_err());
}
