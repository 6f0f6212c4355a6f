//! The two copies of a frame that redundant networks carry: PRP and HSR.

use echoless_packets::key::{From, KeyOptions, KeyReader};
use echoless_packets::synth::{Header, Stack};

use crate::support::{key_of, reader};

/// A frame with a PRP trailer of this network and sequence number.
fn prp(stack: &Stack, payload: &[u8], tags: usize, network: u8, sequence: u16) -> Vec<u8> {
    let mut frame = stack.bytes(payload);
    let len = frame.len() + 6 - 14 - 4 * tags;
    frame.extend(sequence.to_be_bytes());
    frame.extend((u16::from(network) << 12 | len as u16).to_be_bytes());
    frame.extend([0x88, 0xfb]);
    frame
}

fn stacks() -> Vec<(Stack, usize)> {
    let goose = Header::Opaque { ethertype: 0x88b8 };
    let ethernet = Header::ethernet;
    vec![
        (Stack::new(vec![ethernet(), goose.clone()]), 0),
        (
            Stack::new(vec![ethernet(), Header::vlan(5), goose.clone()]),
            1,
        ),
        // Some senders count the tag.
        (Stack::new(vec![ethernet(), Header::vlan(5), goose]), 0),
    ]
}

#[test]
fn the_network_of_a_prp_trailer_is_ignored_by_default_and_nothing_else() {
    let default = KeyReader::new(KeyOptions::default()).expect("good options");
    let strict = reader(From::Link, "none");
    for (stack, tags) in stacks() {
        let frame = |network, sequence| prp(&stack, b"message 7", tags, network, sequence);
        let (a, b) = (frame(0xa, 3), frame(0xb, 3));
        let [pa, pb] = [&a, &b].map(|bytes| stack.packet(bytes));
        assert_eq!(key_of(&default, &pa), key_of(&default, &pb));
        assert_ne!(key_of(&strict, &pa), key_of(&strict, &pb));
        let differing = default
            .ignored_fields(&pa)
            .differing(&default.ignored_fields(&pb));
        assert_eq!(differing.to_string(), "lan-id");
        // Every other bit counts, that of another network included.
        let key = key_of(&default, &pa);
        let network = 8 * (a.len() - 4) + 4;
        for bit in 0..8 * a.len() {
            let mut other = a.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            let equal = key_of(&default, &stack.packet(&other)) == key;
            assert_eq!(equal, bit == network, "{bit}");
        }
    }
}

#[test]
fn what_only_looks_like_a_prp_trailer_is_compared() {
    let default = KeyReader::new(KeyOptions::default()).expect("good options");
    let (stack, tags) = stacks().swap_remove(0);
    let differ = |a: &[u8], b: &[u8], original_len: Option<u32>| {
        let key = |bytes| {
            let packet = stack.packet(bytes);
            let original_len = original_len.unwrap_or(packet.original_len);
            key_of(
                &default,
                &echoless_packets::Packet {
                    original_len,
                    ..packet
                },
            )
        };
        key(a) != key(b)
    };
    let frames = [0xa, 0xb].map(|network| prp(&stack, b"message", tags, network, 3));
    let [a, b] = &frames;
    assert!(!differ(a, b, None));
    // More was on the wire, or follows: a frame check sequence.
    assert!(differ(a, b, Some(a.len() as u32 + 1)));
    let [a, b] = [a, b].map(|frame| [&frame[..], &[0; 4]].concat());
    assert!(differ(&a, &b, None));
    // Another length, another mark.
    for (at, value) in [(3, 1), (1, 0xfa)] {
        let [a, b] = frames.clone().map(|mut frame| {
            let at = frame.len() - at;
            frame[at] = value;
            frame
        });
        assert!(differ(&a, &b, None), "{at}");
    }
}

#[test]
fn a_prp_trailer_behind_ip_belongs_to_the_link() {
    let stack = Stack::new(vec![Header::ethernet(), Header::ipv4(), Header::udp()]);
    let frame = |network, sequence| prp(&stack, b"abc", 0, network, sequence);
    let frames = [
        frame(0xa, 3),
        frame(0xb, 3),
        frame(0xa, 4),
        stack.bytes(b"abc"),
    ];
    let equal = |from, ignore| {
        let reader = reader(from, ignore);
        let keys: Vec<_> = frames
            .iter()
            .map(|bytes| key_of(&reader, &stack.packet(bytes)))
            .collect();
        [keys[1] == keys[0], keys[2] == keys[0], keys[3] == keys[0]]
    };
    assert_eq!(equal(From::Network, "none"), [true; 3]);
    assert_eq!(equal(From::Link, "none"), [false; 3]);
    assert_eq!(equal(From::Link, "lan-id"), [true, false, false]);
    assert_eq!(equal(From::Link, "padding"), [true; 3]);
}

#[test]
fn a_frame_without_ip_is_a_copy_of_the_one_with_the_prp_trailer_without_padding() {
    let (stack, tags) = stacks().swap_remove(0);
    let with = prp(&stack, b"message", tags, 0xa, 3);
    let without = stack.bytes(b"message");
    let [with, without] = [&with, &without].map(|bytes| stack.packet(bytes));
    for (ignore, equal) in [("lan-id", false), ("padding", true)] {
        let reader = reader(From::Network, ignore);
        assert_eq!(key_of(&reader, &with) == key_of(&reader, &without), equal);
    }
}

#[test]
fn the_path_of_an_hsr_tag_is_ignored_by_default_and_nothing_else() {
    let default = KeyReader::new(KeyOptions::default()).expect("good options");
    let stack = |path, sequence| {
        let goose = Header::Opaque { ethertype: 0x88b8 };
        Stack::new(vec![
            Header::ethernet(),
            Header::Hsr { path, sequence },
            goose,
        ])
    };
    let key = |path, sequence| {
        let stack = stack(path, sequence);
        key_of(&default, &stack.packet(&stack.bytes(b"message")))
    };
    assert_eq!(key(0, 7), key(1, 7));
    assert_ne!(key(0, 7), key(0, 8));
    let stack = stack(0, 7);
    let bytes = stack.bytes(b"message");
    for bit in 0..8 * bytes.len() {
        let mut other = bytes.clone();
        other[bit / 8] ^= 1 << (bit % 8);
        let equal = key_of(&default, &stack.packet(&other)) == key(0, 7);
        // The upper half of the first byte behind the EtherType.
        assert_eq!(equal, (116..120).contains(&bit), "{bit}");
    }
}

#[test]
fn padding_behind_an_arp_message_is_padding() {
    let stack = Stack::new(vec![
        Header::ethernet(),
        Header::Opaque { ethertype: 0x0806 },
    ]);
    let mut message = vec![0, 1, 8, 0, 6, 4, 0, 1];
    message.extend([7; 20]);
    let key = |reader: &KeyReader, frame: &[u8]| key_of(reader, &stack.packet(frame));
    let (ignoring, strict) = (reader(From::Link, "padding"), reader(From::Link, "none"));
    let short = stack.bytes(&message);
    let padded = |with: u8| [&short[..], &[with; 18]].concat();
    assert_eq!(key(&ignoring, &short), key(&ignoring, &padded(0)));
    assert_eq!(key(&ignoring, &padded(0)), key(&ignoring, &padded(9)));
    assert_ne!(key(&strict, &short), key(&strict, &padded(0)));
    assert_ne!(key(&strict, &padded(0)), key(&strict, &padded(9)));
    // The message itself is compared, and so are addresses of other lengths.
    for at in 14..short.len() {
        let mut other = padded(0);
        other[at] ^= 1;
        assert_ne!(key(&ignoring, &short), key(&ignoring, &other), "byte {at}");
    }
    // Of addresses of other lengths all is compared.
    for (at, length) in [(14 + 4, 200), (14 + 5, 200), (14 + 4, 0), (14 + 5, 0)] {
        let mut long = padded(0);
        long[at] = length;
        let mut other = long.clone();
        *other.last_mut().expect("bytes") ^= 1;
        assert_ne!(key(&ignoring, &long), key(&ignoring, &other));
    }
    // With the trailer of either network behind the padding.
    let lan = |network| prp(&stack, &[&message[..], &[0; 18]].concat(), 0, network, 3);
    let default = reader(From::Link, "lan-id");
    assert_eq!(key(&default, &lan(0xa)), key(&default, &lan(0xb)));
    assert_eq!(key(&ignoring, &lan(0xa)), key(&ignoring, &short));
}
