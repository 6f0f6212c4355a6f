//! Helpers of the tests.

use echoless_packets::Packet;
use echoless_packets::framing::{BlockKind, FrameError, Framer, Next, PacketBlock};
use echoless_packets::key::{Conditions, Field, FieldSet, From, KeyOptions, KeyReader};
use proptest::prelude::*;

/// A reader that begins at `from` and leaves out the fields in `ignore`.
pub(crate) fn reader(from: From, ignore: &str) -> KeyReader {
    let ignore: FieldSet = ignore.parse().expect("known names");
    let options = KeyOptions {
        from,
        ignore,
        ..KeyOptions::default()
    };
    KeyReader::new(options).expect("good options")
}

/// The layer that a key begins at, and the fields that it leaves out: any.
pub(crate) fn layers_and_fields() -> impl Strategy<Value = (From, FieldSet)> {
    let from = prop::sample::select(vec![
        From::Link,
        From::Network,
        From::Transport,
        From::Payload,
    ]);
    let fields = prop::sample::subsequence(Field::ALL.to_vec(), 0..=Field::ALL.len());
    (from, fields.prop_map(|fields| FieldSet::of(&fields)))
}

/// The key as one byte string.
pub(crate) fn key_of(reader: &KeyReader, packet: &Packet<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    reader.key(packet, &mut Vec::new()).write_to(&mut key);
    key
}

/// How the reader read the packet.
pub(crate) fn conditions_of(reader: &KeyReader, packet: &Packet<'_>) -> Conditions {
    reader.key(packet, &mut Vec::new()).conditions
}

/// All blocks of a file that is in memory, and the error that ended it.
pub(crate) fn blocks(
    file: &[u8],
) -> (Vec<(std::ops::Range<usize>, BlockKind)>, Option<FrameError>) {
    let (mut framer, mut at, mut found) = (Framer::new(), 0, Vec::new());
    loop {
        let mut short = framer.clone();
        let packet = short.next_packet(file, at);
        match framer.next_block(file, at, true) {
            Ok(Next::Block { range, kind }) => {
                assert_eq!(range.start, at);
                // Of pcapng, enhanced packet blocks only: 6, in the byte order of the section.
                let is_pcapng = file.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]);
                let is_enhanced = [[6, 0, 0, 0], [0, 0, 0, 6]]
                    .iter()
                    .any(|kind| file[at..].starts_with(kind));
                if let BlockKind::Packet(expected) = &kind
                    && (!is_pcapng || is_enhanced)
                    && !framer.is_old_pcap()
                {
                    assert_eq!(packet, Some((range.end, expected.clone())));
                    assert_eq!(
                        (short.offset(), short.packets()),
                        (framer.offset(), framer.packets())
                    );
                } else {
                    assert_eq!(packet, None);
                }
                at = range.end;
                assert_eq!(framer.offset(), at as u64);
                found.push((range, kind));
            }
            Ok(Next::NeedMore(more)) => panic!("{more} bytes requested behind the last one"),
            Ok(Next::End) => {
                assert_eq!(packet, None);
                return (found, None);
            }
            Err(error) => {
                assert_eq!(packet, None);
                assert_eq!(framer.next_block(file, at, true), Err(error.clone()));
                return (found, Some(error));
            }
        }
    }
}

/// The packets of a good file.
pub(crate) fn packets(file: &[u8]) -> Vec<PacketBlock> {
    let (blocks, error) = blocks(file);
    assert_eq!(error, None);
    let packet = |(_, kind)| match kind {
        BlockKind::Packet(packet) => Some(packet),
        BlockKind::Header | BlockKind::Interface(_) | BlockKind::Other(_) => None,
    };
    blocks.into_iter().filter_map(packet).collect()
}
