//! IP packets whose length field is not that of the frame: shortened before they were captured, or
//! left at 0 by segmentation offload.

use std::collections::HashSet;

use echoless_packets::Packet;
use echoless_packets::key::{Conditions, From, KeyOptions, KeyReader};
use echoless_packets::layers::{Layers, TransportKind};
use echoless_packets::synth::{Header, Stack};

use crate::support::{conditions_of, key_of, reader};

/// TCP over both versions, with the offset of the length field.
fn stacks() -> [(Stack, usize); 2] {
    let over = |ip| Stack::new(vec![Header::ethernet(), ip, Header::tcp()]);
    [(over(Header::ipv4()), 16), (over(Header::ipv6()), 18)]
}

const TRUNCATED: Conditions = Conditions {
    whole: false,
    truncated: true,
    malformed: false,
    fragment: false,
    short: false,
    inner: false,
};

#[test]
fn a_packet_shortened_before_the_capture_is_read_like_one_that_the_capture_cut() {
    let reader = reader(From::Network, "ttl,checksum");
    for (stack, _) in stacks() {
        let bytes = stack.bytes(&[7; 100]);
        let whole = stack.packet(&bytes);
        let headers = bytes.len() - 100;
        let mut keys = HashSet::from([key_of(&reader, &whole)]);
        for len in headers..bytes.len() {
            let cut = Packet {
                bytes: &bytes[..len],
                ..whole
            };
            let shortened = stack.packet(&bytes[..len]);
            assert_eq!(conditions_of(&reader, &shortened), TRUNCATED, "{len}");
            let layers = Layers::outermost(&shortened);
            assert_eq!(layers.transport.map(|t| t.kind), Some(TransportKind::Tcp));
            assert_eq!(layers.payload.wire_len(), 100);
            assert_eq!(layers.payload.captured_len(), len - headers);
            assert_eq!(layers.trailer.wire_len(), 0);
            let key = key_of(&reader, &shortened);
            assert_eq!(key, key_of(&reader, &cut), "{len}");
            // One with fewer bytes, or with all of them, is another packet.
            assert!(keys.insert(key), "{len}");
        }
    }
}

#[test]
fn shortened_packets_are_copies_of_whole_ones_if_the_compared_bytes_are_there() {
    for from in [From::Link, From::Network, From::Transport, From::Payload] {
        let options = KeyOptions {
            from,
            snap_safe: Some(60),
            ..KeyOptions::default()
        };
        let reader = KeyReader::new(options).unwrap();
        for (stack, _) in stacks() {
            let bytes = stack.bytes(&[7; 200]);
            let whole = stack.packet(&bytes);
            let shortened = stack.packet(&bytes[..150]);
            assert_eq!(
                key_of(&reader, &whole),
                key_of(&reader, &shortened),
                "{from:?}"
            );
        }
    }
}

#[test]
fn a_router_changes_shortened_and_offloaded_packets_as_well() {
    let reader = reader(From::Network, "ttl,checksum");
    let [(stack, length_at), _] = stacks();
    let plain = stack.bytes(&[7; 100]);
    let mut offloaded = plain.clone();
    offloaded[length_at..length_at + 2].fill(0);
    for bytes in [&plain[..60], &offloaded] {
        let mut routed = bytes.to_vec();
        // Address, time to live, checksum.
        for at in [0, 22, 24] {
            routed[at] ^= 1;
        }
        let key = key_of(&reader, &stack.packet(bytes));
        assert_eq!(key_of(&reader, &stack.packet(&routed)), key);
        *routed.last_mut().unwrap() ^= 1;
        assert_ne!(key_of(&reader, &stack.packet(&routed)), key);
    }
}

#[test]
fn a_length_of_0_ends_with_the_frame() {
    let reader = reader(From::Network, "ttl,checksum");
    for (stack, length_at) in stacks() {
        let plain = stack.bytes(&[7; 100]);
        let mut bytes = plain.clone();
        bytes[length_at..length_at + 2].fill(0);
        let packet = stack.packet(&bytes);
        assert_eq!(conditions_of(&reader, &packet), Conditions::default());
        let layers = Layers::outermost(&packet);
        assert_eq!(layers.transport.map(|t| t.kind), Some(TransportKind::Tcp));
        assert_eq!(layers.payload.bytes(&bytes), [7; 100]);
        let key = key_of(&reader, &packet);
        assert_ne!(key, key_of(&reader, &stack.packet(&plain)));
        // The sequence number, and the last byte.
        for at in [bytes.len() - 116, bytes.len() - 1] {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_ne!(key_of(&reader, &stack.packet(&other)), key, "{at}");
        }
        // The capture cut it.
        let cut = Packet {
            bytes: &bytes[..bytes.len() - 50],
            ..packet
        };
        assert_eq!(conditions_of(&reader, &cut), TRUNCATED);
        assert_ne!(key_of(&reader, &cut), key);
    }
}

#[test]
fn behind_an_ipv6_packet_without_payload_there_is_padding_only_if_nothing_can_follow() {
    let reader = reader(From::Network, "ttl,checksum");
    for protocol in 0..=u8::MAX {
        let mut ip = Header::ipv6();
        if let Header::Ipv6(ip) = &mut ip {
            ip.protocol = protocol;
        }
        for link in [
            vec![Header::ethernet()],
            vec![Header::ethernet(), Header::vlan(3)],
            vec![],
        ] {
            let stack = Stack::new([link, vec![ip.clone()]].concat());
            let bytes = stack.bytes(&[]);
            let followed = |content: [u8; 8]| {
                let bytes = [&bytes[..], &content].concat();
                key_of(&reader, &stack.packet(&bytes))
            };
            let (one, other) = (followed([51; 8]), followed([79; 8]));
            assert_eq!(one == other, protocol == 59, "{protocol}");
            let alone = key_of(&reader, &stack.packet(&bytes));
            assert_eq!(alone == one, protocol == 59, "{protocol}");
        }
    }
}

#[test]
fn a_length_of_0_inside_other_headers_ends_with_what_they_bound() {
    let reader = reader(From::Network, "ttl,checksum,tunnel");
    let ethernet = Header::ethernet;
    let outer = || vec![ethernet(), Header::ipv4(), Header::udp()];
    let bounded = [
        vec![ethernet(), Header::Pppoe { session: 1 }],
        [outer(), vec![Header::vxlan(1), ethernet()]].concat(),
        vec![ethernet(), Header::ipv4(), Header::gre()],
        vec![ethernet(), Header::ipv6()],
        [outer(), vec![Header::gtp_u(1)]].concat(),
    ];
    // A label does not announce IP: what would be a packet without a length is content.
    let guessed = [
        vec![ethernet(), Header::mpls(7)],
        [outer(), vec![Header::mpls(7)]].concat(),
    ];
    for (headers, announced) in bounded
        .into_iter()
        .map(|headers| (headers, true))
        .chain(guessed.into_iter().map(|headers| (headers, false)))
    {
        for (ip, length_at) in [(Header::ipv4(), 2), (Header::ipv6(), 4)] {
            let all = [&headers[..], &[ip, Header::tcp()]].concat();
            let stack = Stack::new(all.clone());
            let plain = stack.bytes(&[7; 30]);
            let inner = Stack::new(all[headers.len()..].to_vec());
            let start = plain.len() - inner.bytes(&[7; 30]).len();
            let mut bytes = plain.clone();
            bytes[start + length_at..start + length_at + 2].fill(0);
            bytes.extend([0; 6]);
            let key = key_of(&reader, &stack.packet(&bytes));
            // The content and its last byte; the padding, unless it may be content.
            for at in [start + 42, plain.len() - 1] {
                let mut other = bytes.clone();
                other[at] ^= 1;
                assert_ne!(
                    key_of(&reader, &stack.packet(&other)),
                    key,
                    "{headers:?} {at}"
                );
            }
            // The addresses of the frame, and the time to live of the packet.
            let mut routed = bytes.clone();
            routed[0] ^= 1;
            routed[start + if length_at == 2 { 8 } else { 7 }] ^= 1;
            let equal = key_of(&reader, &stack.packet(&routed)) == key;
            assert_eq!(equal, announced, "{headers:?}");
        }
    }
}

/// IPv6 with a jumbo payload option of this value, behind `before` in the options.
fn jumbogram(value: u32, before: &[u8], payload: usize) -> (Stack, Vec<u8>) {
    let mut ip = Header::ipv6();
    if let Header::Ipv6(ip) = &mut ip {
        let mut options = [before, &[0xc2, 4], &value.to_be_bytes()].concat();
        options.resize((options.len() + 2).next_multiple_of(8) - 2, 0);
        ip.extensions = vec![(0, options)];
    }
    let stack = Stack::new(vec![Header::ethernet(), ip, Header::tcp()]);
    let mut bytes = stack.bytes(&vec![7; payload]);
    bytes[18..20].fill(0);
    (stack, bytes)
}

#[test]
fn jumbograms_end_where_their_option_says() {
    let reader = reader(From::Network, "ttl,checksum");
    // Options in front: none, padding of one byte, padding of several.
    for before in [&[][..], &[0; 4], &[1, 2, 0, 0, 0, 0, 0, 0]] {
        let (stack, plain) = jumbogram(0, before, 70_000);
        let value = plain.len() as u32 - 54;
        let (_, bytes) = jumbogram(value, before, 70_000);
        let padded = [&bytes[..], &[9; 4]].concat();
        let layers = Layers::outermost(&stack.packet(&padded));
        assert_eq!(layers.transport.map(|t| t.kind), Some(TransportKind::Tcp));
        assert_eq!(layers.trailer.bytes(&padded), [9; 4]);
        let key = key_of(&reader, &stack.packet(&bytes));
        assert_eq!(key_of(&reader, &stack.packet(&padded)), key);
        // Without a valid option, the packet ends with the frame.
        assert_ne!(key_of(&reader, &stack.packet(&plain)), key);
        let followed = [&plain[..], &[9; 4]].concat();
        assert_ne!(
            key_of(&reader, &stack.packet(&followed)),
            key_of(&reader, &stack.packet(&plain))
        );
    }
    // Linux leaves the option out.
    let stack = Stack::new(vec![Header::ethernet(), Header::ipv6(), Header::tcp()]);
    let mut bytes = stack.bytes(&vec![7; 70_000]);
    assert_eq!(bytes[18..20], [0, 0]);
    let key = key_of(&reader, &stack.packet(&bytes));
    let layers = Layers::outermost(&stack.packet(&bytes));
    assert_eq!(layers.payload.wire_len(), 70_000);
    bytes[21] ^= 1;
    assert_eq!(key_of(&reader, &stack.packet(&bytes)), key);
    *bytes.last_mut().unwrap() ^= 1;
    assert_ne!(key_of(&reader, &stack.packet(&bytes)), key);
}

#[test]
fn frames_that_differ_in_the_length_alone_have_different_keys() {
    for from in [From::Link, From::Network] {
        let reader = reader(from, "none");
        for (stack, length_at) in stacks() {
            let mut bytes = stack.bytes(&[7; 20]);
            bytes.extend([0; 10]);
            let mut keys = HashSet::new();
            for length in 0..=u16::MAX {
                bytes[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
                let key = key_of(&reader, &stack.packet(&bytes));
                assert!(keys.insert(key), "{from} {length}");
            }
        }
    }
}

#[test]
fn behind_a_label_a_length_beyond_the_frame_shows_that_it_is_no_ip() {
    let headers = vec![
        Header::ethernet(),
        Header::mpls(7),
        Header::ipv4(),
        Header::udp(),
    ];
    let stack = Stack::new(headers);
    let bytes = stack.bytes(&[7; 100]);
    for len in [60, bytes.len() - 1] {
        let layers = Layers::outermost(&stack.packet(&bytes[..len]));
        assert!(layers.malformed && layers.network.is_none(), "{len}");
    }
    assert!(Layers::outermost(&stack.packet(&bytes)).network.is_some());
}
