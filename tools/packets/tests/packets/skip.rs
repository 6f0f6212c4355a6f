//! Link headers that are not known, skipped by their length.

use echoless_packets::key::{From, KeyOptions, KeyReader};
use echoless_packets::synth::{Header, Stack};
use echoless_packets::{LinkType, Packet};
use proptest::prelude::*;

use crate::support::{conditions_of, key_of};

/// A link type of no standard.
const USER: LinkType = LinkType(147);

fn skipping(from: From, skip_bytes: u32) -> KeyReader {
    let options = KeyOptions {
        from,
        skip_bytes,
        ..KeyOptions::default()
    };
    KeyReader::new(options).expect("good options")
}

fn packet(link: LinkType, bytes: &[u8]) -> Packet<'_> {
    Packet {
        link,
        ..Stack::new(vec![]).packet(bytes)
    }
}

/// A header of 5 bytes in front of IP with this time to live.
fn behind(header: u8, ip: Header, ttl: u8, payload: &[u8]) -> Vec<u8> {
    let mut ip = ip;
    match &mut ip {
        Header::Ipv4(ip) => ip.ttl = ttl,
        Header::Ipv6(ip) => ip.hop_limit = ttl,
        other => panic!("{other:?} is not IP"),
    }
    let stack = Stack::new(vec![ip, Header::udp()]);
    [&[header; 5][..], &stack.bytes(payload)].concat()
}

#[test]
fn the_packet_behind_an_unknown_header_is_recognised() {
    for ip in [Header::ipv4(), Header::ipv6()] {
        let key = |skip, header, ttl, payload: &[u8]| {
            let bytes = behind(header, ip.clone(), ttl, payload);
            key_of(&skipping(From::Network, skip), &packet(USER, &bytes))
        };
        assert_eq!(key(5, 1, 64, b"abc"), key(5, 2, 63, b"abc"));
        assert_ne!(key(5, 1, 64, b"abc"), key(5, 1, 64, b"abd"));
        assert_ne!(key(5, 1, 64, b"abc"), key(5, 1, 64, b"abcd"));
        assert_ne!(key(0, 1, 64, b"abc"), key(0, 2, 64, b"abc"));
        // Behind other bytes there is no packet, and the time to live counts.
        assert_eq!(key(3, 1, 64, b"abc"), key(3, 1, 64, b"abc"));
        assert_ne!(key(3, 1, 64, b"abc"), key(3, 1, 63, b"abc"));
    }
}

#[test]
fn what_is_no_packet_beyond_doubt_is_compared_as_bytes() {
    let reader = skipping(From::Network, 5);
    let v4 = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = behind(1, Header::ipv4(), 64, b"abc");
        change(&mut bytes);
        bytes
    };
    let v6 = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = behind(1, Header::ipv6(), 64, b"abc");
        change(&mut bytes);
        bytes
    };
    for bytes in [
        // A wrong checksum, a frame check sequence behind IPv6, no IP, an empty rest of a frame.
        v4(&|bytes| bytes[15] ^= 1),
        v6(&|bytes| bytes.push(0)),
        v4(&|bytes| bytes[5] ^= 0x10),
        vec![1; 6],
    ] {
        let key = key_of(&reader, &packet(USER, &bytes));
        assert!(conditions_of(&reader, &packet(USER, &bytes)).whole);
        for bit in 0..8 * bytes.len() {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            let equal = key_of(&reader, &packet(USER, &other)) == key;
            assert_eq!(equal, bit < 40, "{bit} of {bytes:?}");
        }
        let other_link = packet(LinkType(148), &bytes);
        assert_ne!(key_of(&reader, &other_link), key);
    }
}

#[test]
fn frames_that_are_not_longer_are_compared_whole() {
    let (plain, reader) = (skipping(From::Network, 0), skipping(From::Network, 8));
    for len in 0..=8 {
        let bytes = vec![7; len];
        let packet = packet(USER, &bytes);
        assert_eq!(key_of(&reader, &packet), key_of(&plain, &packet));
    }
}

#[test]
fn layers_behind_the_skipped_bytes_are_compared_as_before() {
    let stack = Stack::new(vec![Header::ethernet(), Header::ipv4(), Header::tcp()]);
    let bytes = stack.bytes(b"abc");
    let mut routed = bytes.clone();
    for at in [0, 22, 24] {
        routed[at] ^= 1;
    }
    let frame = stack.packet(&bytes);
    for (from, start) in [
        (From::Network, 14),
        (From::Transport, 34),
        (From::Payload, 54),
    ] {
        let plain = key_of(&skipping(from, 0), &frame);
        for skip in 1..=bytes.len() as u32 {
            let reader = skipping(from, skip);
            let key = key_of(&reader, &frame);
            let whole = skip as usize == bytes.len();
            assert_eq!(key == plain, skip <= start || whole, "{from} {skip}");
            let equal = key_of(&reader, &stack.packet(&routed)) == key;
            // The bytes that a router changes are in front, or are not compared anyway.
            assert_eq!(equal, skip <= start || skip > 24, "{from} {skip}");
        }
    }
}

proptest! {
    /// Frames that differ behind the skipped bytes have different keys, unless only what a router
    /// changes differs.
    #[test]
    fn other_bytes_are_compared(
        bytes in prop::collection::vec(any::<u8>(), 1..90),
        bit: prop::sample::Index,
        skip in 0u32..90,
        link in prop::sample::select(vec![0u16, 1, 101, 127, 147]),
    ) {
        let reader = skipping(From::Link, skip);
        let mut other = bytes.clone();
        let bit = bit.index(8 * bytes.len());
        other[bit / 8] ^= 1 << (bit % 8);
        let (a, b) = (packet(LinkType(link), &bytes), packet(LinkType(link), &other));
        let (ka, kb) = (key_of(&reader, &a), key_of(&reader, &b));
        let skipped = bit / 8 < skip as usize && (skip as usize) < bytes.len();
        let differing = reader.ignored_fields(&a).differing(&reader.ignored_fields(&b));
        prop_assert!(ka != kb || skipped || !differing.is_empty());
    }
}
