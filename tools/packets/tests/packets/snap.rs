//! Copies captured with different snap lengths.

use echoless_packets::Packet;
use echoless_packets::key::{FieldSet, From, KeyOptions, KeyReader};
use echoless_packets::layers::Layers;
use echoless_packets::synth::{Generator, Header, Stack};
use proptest::prelude::*;

use crate::support::{conditions_of, key_of};

fn snap_reader(from: From, snap: u32, ignore: &str) -> KeyReader {
    let ignore: FieldSet = ignore.parse().expect("known names");
    let options = KeyOptions {
        from,
        ignore,
        snap_safe: Some(snap),
        ..KeyOptions::default()
    };
    KeyReader::new(options).expect("good options")
}

fn cut<'a>(stack: &Stack, bytes: &'a [u8], captured: usize) -> Packet<'a> {
    Packet {
        bytes: &bytes[..captured.min(bytes.len())],
        ..stack.packet(bytes)
    }
}

#[test]
fn bytes_up_to_the_limit_and_the_length_are_compared() {
    let stack = Stack::new(vec![Header::ethernet(), Header::ipv4(), Header::tcp()]);
    let reader = snap_reader(From::Network, 60, "ttl,checksum");
    let key = |bytes: &[u8]| key_of(&reader, &cut(&stack, bytes, 96));
    let bytes = stack.bytes(&[7; 1000]);
    assert!(conditions_of(&reader, &cut(&stack, &bytes, 96)).truncated);
    for (at, is_compared) in [(73, true), (74, false)] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert_eq!(key(&changed) != key(&bytes), is_compared, "{at}");
    }
    assert_ne!(key(&stack.bytes(&[7; 1001])), key(&bytes));
}

#[test]
fn a_short_packet_that_was_captured_whole_is_not_short() {
    let stack = Stack::new(vec![Header::ethernet(), Header::ipv4(), Header::udp()]);
    let mut bytes = stack.bytes(b"abc");
    let reader = snap_reader(From::Network, 100, "none");
    let key = key_of(&reader, &stack.packet(&bytes));
    assert!(!conditions_of(&reader, &stack.packet(&bytes)).short);
    bytes.resize(60, 0);
    assert_eq!(key_of(&reader, &stack.packet(&bytes)), key);
    // Only padding is missing.
    let cut = cut(&stack, &bytes, 50);
    assert_eq!(key_of(&reader, &cut), key);
    assert!(!conditions_of(&reader, &cut).short);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Any two captures of one packet that are not short have equal keys, if the limit holds the
    /// headers.
    #[test]
    fn captures_that_are_not_short_are_equal(
        seed: u64,
        snap in 300u32..400,
        captured in 0usize..1000,
        from in prop::sample::select(vec![From::Link, From::Network, From::Transport]),
        tunnel: bool,
    ) {
        let mut generator = Generator::new(seed);
        let (stack, payload) = (generator.stack(), generator.payload(900));
        let bytes = stack.bytes(&payload);
        let ignore = if tunnel { "ttl,checksum,tunnel" } else { "ttl,checksum" };
        let reader = snap_reader(from, snap, ignore);
        let (whole, part) = (stack.packet(&bytes), cut(&stack, &bytes, captured));
        prop_assert!(!conditions_of(&reader, &whole).short);
        let mut layers = Layers::outermost(&whole);
        while tunnel && let Some(inner) = layers.inner(&bytes) {
            layers = inner;
        }
        let start = match from {
            From::Link => layers.start,
            From::Network => layers.network.map_or(layers.start, |ip| ip.start),
            From::Transport | From::Payload => layers.transport.map_or(layers.start, |t| t.start),
        };
        let enough = captured >= bytes.len().min(start + snap as usize);
        if enough {
            prop_assert!(!conditions_of(&reader, &part).short);
            prop_assert_eq!(key_of(&reader, &part), key_of(&reader, &whole));
        } else {
            prop_assert!(conditions_of(&reader, &part).short);
        }
    }
}
