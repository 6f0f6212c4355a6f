//! Any input: no panic, no two frames with one key, no error that hides a whole block.

use echoless_packets::framing::{BlockKind, Framer, Next};
use echoless_packets::key::{Field, FieldSet, From, Group, KeyOptions, KeyReader};
use echoless_packets::synth::{Generator, Header, Stack};
use echoless_packets::writer::{PcapWriter, PcapngWriter};
use echoless_packets::{LinkType, Packet};
use proptest::prelude::*;

use crate::support::{key_of, layers_and_fields, reader};

/// A change of some bytes.
#[derive(Debug, Clone)]
enum Edit {
    Flip(prop::sample::Index, u8),
    Set(prop::sample::Index, u8),
    Truncate(prop::sample::Index),
    Insert(prop::sample::Index, u8),
    Remove(prop::sample::Index),
}

fn edit() -> impl Strategy<Value = Edit> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        4 => (index(), 0u8..8).prop_map(|(at, bit)| Edit::Flip(at, bit)),
        2 => (index(), prop_oneof![Just(0), Just(255), any::<u8>()])
            .prop_map(|(at, byte)| Edit::Set(at, byte)),
        1 => index().prop_map(Edit::Truncate),
        1 => (index(), any::<u8>()).prop_map(|(at, byte)| Edit::Insert(at, byte)),
        1 => index().prop_map(Edit::Remove),
    ]
}

fn apply(bytes: &mut Vec<u8>, edits: &[Edit]) {
    for edit in edits {
        let len = bytes.len();
        if len == 0 {
            return;
        }
        match edit {
            Edit::Flip(at, bit) => bytes[at.index(len)] ^= 1 << bit,
            Edit::Set(at, byte) => bytes[at.index(len)] = *byte,
            Edit::Truncate(at) => bytes.truncate(at.index(bytes.len())),
            Edit::Insert(at, byte) => bytes.insert(at.index(bytes.len()), *byte),
            Edit::Remove(at) => drop(bytes.remove(at.index(bytes.len()))),
        }
    }
}

fn frame(seed: u64) -> (Stack, Vec<u8>) {
    let mut generator = Generator::new(seed);
    let (stack, payload) = (generator.stack(), generator.payload(60));
    let mut bytes = stack.bytes(&payload);
    bytes.extend(generator.payload(6));
    (stack, bytes)
}

/// The headers of a plain packet, or of one that is nearly so, and what follows it in the frame.
fn plain() -> impl Strategy<Value = (Vec<Header>, Vec<u8>)> {
    let vlans = prop_oneof![3 => Just(0), 3 => Just(1), 1 => Just(2)];
    let ip = prop::sample::select(vec![Header::ipv4(), Header::ipv6()]);
    let icmp = Header::Icmp {
        kind: 8,
        code: 0,
        checksum: 0,
        rest: 7,
    };
    let transport = prop::sample::select(vec![Header::tcp(), Header::udp(), icmp]);
    let options = prop_oneof![Just(0_usize), 1..11_usize];
    let tail = prop::collection::vec(any::<u8>(), 0..8);
    (vlans, ip, transport, options, tail).prop_map(|(vlans, ip, mut transport, words, tail)| {
        if let Header::Tcp(tcp) = &mut transport {
            tcp.options = vec![1; 4 * words];
        }
        let tags = (0..vlans).map(|tag| Header::vlan(tag + 7));
        let headers = [Header::ethernet()].into_iter().chain(tags);
        (headers.chain([ip, transport]).collect(), tail)
    })
}

fn all_options() -> impl Strategy<Value = KeyOptions> {
    let limits = (
        prop::option::of(1u32..50),
        prop::option::of(40u32..90),
        prop_oneof![Just(0u32), 1u32..90],
    );
    (layers_and_fields(), limits, any::<bool>()).prop_map(|((from, ignore), limits, group)| {
        KeyOptions {
            from,
            ignore,
            payload_bytes: limits.0,
            snap_safe: limits.1,
            skip_bytes: limits.2,
            group: if group { Group::Interface } else { Group::None },
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Keys from the link layer with nothing ignored lose nothing: packets with equal keys are the
    /// same packet.
    #[test]
    fn nothing_ignored_is_injective(
        seed: u64,
        first in prop::collection::vec(edit(), 0..3),
        second in prop::collection::vec(edit(), 1..3),
        cut in 0u32..3,
    ) {
        let (stack, mut a) = frame(seed);
        apply(&mut a, &first);
        let mut b = a.clone();
        apply(&mut b, &second);
        let strict = reader(From::Link, "none");
        let original_len = a.len().max(b.len()) as u32 + cut;
        let packet = |bytes| Packet { original_len, ..stack.packet(bytes) };
        let (pa, pb) = (packet(&a), packet(&b));
        prop_assert_eq!(key_of(&strict, &pa) == key_of(&strict, &pb), a == b);
        // The length on the wire is compared, too.
        let longer = Packet { original_len: original_len + 1, ..pa };
        prop_assert_ne!(key_of(&strict, &pa), key_of(&strict, &longer));
    }

    /// The report names what a mask ignores: two frames with equal keys are the same, or
    /// the ignored fields differ.
    #[test]
    fn equal_keys_differ_in_ignored_fields_only(
        seed: u64,
        edit in edit(),
        fields in prop::sample::subsequence(Field::ALL.to_vec(), 0..=Field::ALL.len()),
    ) {
        let (stack, a) = frame(seed);
        let mut b = a.clone();
        apply(&mut b, &[edit]);
        let options = KeyOptions {
            from: From::Link,
            ignore: FieldSet::of(&fields).without(Field::Tunnel),
            ..KeyOptions::default()
        };
        let reader = KeyReader::new(options).expect("good options");
        let (pa, pb) = (stack.packet(&a), stack.packet(&b));
        let differing = reader.ignored_fields(&pa).differing(&reader.ignored_fields(&pb));
        if key_of(&reader, &pa) == key_of(&reader, &pb) {
            prop_assert_eq!(differing.is_empty(), a == b);
        }
    }

    #[test]
    fn any_bytes_have_a_key(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        link in prop_oneof![
            prop::sample::select(vec![
                0u16, 1, 6, 9, 10, 12, 14, 50, 51, 100, 101, 104, 105, 107, 108, 109, 113, 117, 119,
                122, 127, 163, 166, 178, 192, 197, 204, 205, 206, 219, 228, 229, 239, 240, 242, 258,
                276,
            ]),
            any::<u16>()
        ],
        original_len in prop_oneof![0u32..200, any::<u32>()],
        options in all_options(),
    ) {
        let reader = KeyReader::new(options).expect("good options");
        let base = Stack::new(vec![]);
        let link = LinkType(link);
        let packet = Packet { link, original_len, ..base.packet(&bytes) };
        let key = key_of(&reader, &packet);
        prop_assert_eq!(&key_of(&reader, &packet), &key);
        let ignored = reader.ignored_fields(&packet);
        prop_assert_eq!(ignored.differing(&ignored), FieldSet::EMPTY);
    }

    /// The short way of plain packets gives the key of the general one, which a limit behind every
    /// packet takes.
    #[test]
    fn plain_packets_have_the_keys_of_the_general_way(
        (headers, tail) in plain(),
        payload in prop::collection::vec(any::<u8>(), 0..20),
        edits in prop::collection::vec(edit(), 0..3),
        other_len in prop::option::weighted(0.1, 0u32..200),
        payload_bytes in prop::option::of(0u32..20),
    ) {
        let stack = Stack::new(headers);
        let mut bytes = stack.bytes(&payload);
        bytes.extend(tail);
        apply(&mut bytes, &edits);
        let original_len = other_len.unwrap_or(bytes.len() as u32);
        let packet = Packet { original_len, ..stack.packet(&bytes) };
        let options = KeyOptions { payload_bytes, ..KeyOptions::default() };
        let general = KeyOptions { snap_safe: Some(1 << 30), ..options.clone() };
        let [short, general] = [options, general].map(|o| KeyReader::new(o).expect("good options"));
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let key = short.key(&packet, &mut first);
        let mut expected = general.key(&packet, &mut second);
        // Only a limit can be missed.
        expected.conditions.short = false;
        prop_assert_eq!(key, expected);
    }

    #[test]
    fn any_damaged_packet_has_a_key(
        seed: u64,
        edits in prop::collection::vec(edit(), 1..6),
        options in all_options(),
    ) {
        let (stack, mut bytes) = frame(seed);
        let original_len = bytes.len() as u32;
        apply(&mut bytes, &edits);
        let reader = KeyReader::new(options).expect("good options");
        let packet = Packet { original_len, ..stack.packet(&bytes) };
        let key = key_of(&reader, &packet);
        prop_assert_eq!(&key_of(&reader, &packet), &key);
        let ignored = reader.ignored_fields(&packet);
        prop_assert!(ignored.present().iter().all(|f| f == Field::Tunnel
            || reader.left_out().contains(f)));
    }

    /// A damaged file gives whole blocks in order, then the end or one error.
    #[test]
    fn any_damaged_file_is_framed_up_to_the_damage(
        ng: bool,
        big_endian: bool,
        edits in prop::collection::vec(edit(), 0..4),
    ) {
        let mut file = if ng {
            let mut file = PcapngWriter::new(big_endian);
            file.interface(LinkType::ETHERNET, 10, &[(9, &[6]), (14, &[0; 8])]);
            file.packet(0, 1, b"abcdefg", 7);
            file.simple_packet(b"abc", 3);
            file.section(!big_endian);
            file.interface(LinkType::RAW, 0, &[]);
            file.obsolete_packet(0, 1, b"abcdefg", 7);
            file.into_bytes()
        } else {
            let mut file = PcapWriter::new(big_endian, false, LinkType::ETHERNET);
            file.packet(1, b"abcdefg", 7);
            file.packet(2, b"xyz", 3);
            file.into_bytes()
        };
        apply(&mut file, &edits);
        let (mut framer, mut at) = (Framer::new(), 0);
        while let Ok(Next::Block { range, kind }) = framer.next_block(&file, at, true) {
            prop_assert!(range.start == at && range.end > at && range.end <= file.len());
            if let BlockKind::Packet(packet) = kind {
                prop_assert!(range.start < packet.data.start && packet.data.end <= range.end);
            }
            at = range.end;
        }
        prop_assert_eq!(framer.offset(), at as u64);
        let outcome = framer.next_block(&file, at, true);
        prop_assert_eq!(outcome == Ok(Next::End), at == file.len() && at > 0);
        prop_assert_eq!(framer.next_block(&file, at, true), outcome);
    }
}
