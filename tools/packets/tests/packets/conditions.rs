//! Packets that are not plain: fragments, cut and malformed headers, other protocols.

use echoless_packets::key::{Conditions, From};
use echoless_packets::layers::{Layers, TransportKind};
use echoless_packets::synth::{Header, Stack};
use echoless_packets::{LinkType, Packet};

use crate::support::{conditions_of, key_of, reader};

const PLAIN: Conditions = Conditions {
    whole: false,
    truncated: false,
    malformed: false,
    fragment: false,
    short: false,
    inner: false,
};

fn udp_over(ip: Header) -> Stack {
    Stack::new(vec![Header::ethernet(), ip, Header::udp()])
}

#[test]
fn fragments_are_told_apart_by_id_and_offset() {
    let fragment = |id, offset: u16| {
        let mut ip = Header::ipv4();
        if let Header::Ipv4(ip) = &mut ip {
            (ip.id, ip.fragment) = (id, 0x2000 | offset);
        }
        udp_over(ip)
    };
    let reader = reader(From::Network, "ip-id,checksum");
    let key = |stack: &Stack| {
        let bytes = stack.bytes(b"abcdefgh");
        let packet = stack.packet(&bytes);
        let expected = Conditions {
            fragment: true,
            ..PLAIN
        };
        assert_eq!(conditions_of(&reader, &packet), expected);
        assert_eq!(Layers::outermost(&packet).transport, None);
        key_of(&reader, &packet)
    };
    assert_eq!(key(&fragment(1, 0)), key(&fragment(1, 0)));
    assert_ne!(key(&fragment(1, 0)), key(&fragment(2, 0)));
    assert_ne!(key(&fragment(1, 0)), key(&fragment(1, 8)));

    let fragment = |id, offset| {
        let mut ip = Header::ipv6();
        if let Header::Ipv6(ip) = &mut ip {
            ip.fragment = Some((offset, id));
        }
        udp_over(ip)
    };
    assert_ne!(key(&fragment(1, 1)), key(&fragment(2, 1)));
    assert_ne!(key(&fragment(1, 1)), key(&fragment(1, 9)));
}

#[test]
fn a_fragment_header_of_a_whole_packet_is_no_fragment() {
    let mut ip = Header::ipv6();
    if let Header::Ipv6(ip) = &mut ip {
        ip.fragment = Some((0, 5));
    }
    let stack = udp_over(ip);
    let bytes = stack.bytes(b"abc");
    let layers = Layers::outermost(&stack.packet(&bytes));
    assert_eq!(layers.transport.map(|t| t.kind), Some(TransportKind::Udp));
    assert_eq!(layers.payload.bytes(&bytes), b"abc");
}

#[test]
fn a_cut_packet_has_the_layers_that_were_captured() {
    let stack = Stack::new(vec![Header::ethernet(), Header::ipv4(), Header::tcp()]);
    let bytes = stack.bytes(b"0123456789");
    let original_len = bytes.len() as u32;
    for captured in 0..bytes.len() {
        let packet = Packet {
            bytes: &bytes[..captured],
            original_len,
            ..stack.packet(&bytes)
        };
        let layers = Layers::outermost(&packet);
        assert!(layers.truncated && !layers.malformed, "{captured} captured");
        assert_eq!(layers.network.is_some(), captured >= 34);
        let kind = layers.transport.map(|t| t.kind);
        match captured {
            0..34 => assert_eq!(kind, None),
            34..54 => assert_eq!(kind, Some(TransportKind::Other)),
            54.. => {
                assert_eq!(kind, Some(TransportKind::Tcp));
                assert_eq!(layers.payload.wire_len(), 10);
                assert_eq!(layers.payload.captured_len(), captured - 54);
            }
        }
        let reader = reader(From::Network, "none");
        let expected = Conditions {
            truncated: true,
            whole: captured < 34,
            ..PLAIN
        };
        assert_eq!(conditions_of(&reader, &packet), expected);
        // The length on the wire is compared.
        let other = Packet {
            original_len: original_len + 1,
            ..packet
        };
        let from_link = crate::support::reader(From::Link, "none");
        assert_ne!(key_of(&from_link, &packet), key_of(&from_link, &other));
    }
}

/// The layers of an Ethernet frame after a change.
fn after(stack: &Stack, change: impl FnOnce(&mut Vec<u8>)) -> (Layers, Vec<u8>) {
    let mut bytes = stack.bytes(b"payload");
    change(&mut bytes);
    (Layers::outermost(&stack.packet(&bytes)), bytes)
}

#[test]
fn malformed_headers_are_compared_as_bytes() {
    let tcp = Stack::new(vec![Header::ethernet(), Header::ipv4(), Header::tcp()]);
    let v6 = Stack::new(vec![Header::ethernet(), Header::ipv6(), Header::udp()]);
    let whole: [(&str, &Stack, usize, &[u8]); 5] = [
        ("version of the other EtherType", &tcp, 14, &[0x65]),
        ("IPv4 header shorter than 20", &tcp, 14, &[0x44]),
        ("total length shorter than the header", &tcp, 16, &[0, 19]),
        ("IPv6 version", &v6, 14, &[0x40]),
        ("jumbogram", &v6, 18, &[0, 0, 0]),
    ];
    for (name, stack, at, bytes) in whole {
        let (layers, frame) = after(stack, |frame| {
            frame[at..at + bytes.len()].copy_from_slice(bytes);
        });
        assert!(layers.malformed && !layers.truncated, "{name}");
        assert_eq!((layers.network, layers.transport), (None, None), "{name}");
        assert_eq!(layers.payload.bytes(&frame), &frame[14..], "{name}");
        let reader = reader(From::Network, "ttl");
        let expected = Conditions {
            malformed: true,
            whole: true,
            ..PLAIN
        };
        assert_eq!(
            conditions_of(&reader, &stack.packet(&frame)),
            expected,
            "{name}"
        );
    }
    let (layers, frame) = after(&tcp, |frame| frame[46] = 0x40);
    assert!(layers.malformed && layers.network.is_some());
    assert_eq!(layers.transport.map(|t| t.kind), Some(TransportKind::Other));
    assert_eq!(layers.payload.bytes(&frame), &frame[34..]);
    // A TCP header that ends behind the packet.
    let (layers, _) = after(&tcp, |frame| frame[46] = 0xf0);
    assert!(layers.malformed && layers.network.is_some());
    // Extension headers that end behind the packet.
    let (layers, _) = after(&v6, |frame| frame[20] = 60);
    assert!(layers.malformed && layers.network.is_none());
}

#[test]
fn too_many_shims_are_malformed() {
    let mut headers = vec![Header::ethernet()];
    headers.extend((0..8).map(Header::vlan));
    let deep = Stack::new([&headers[..], &[Header::ipv4(), Header::udp()]].concat());
    let (layers, _) = after(&deep, |_| {});
    assert!(!layers.malformed && layers.network.is_some());
    assert_eq!(layers.shims.len(), 8);
    headers.push(Header::vlan(9));
    let deeper = Stack::new([&headers[..], &[Header::ipv4(), Header::udp()]].concat());
    let (layers, _) = after(&deeper, |_| {});
    assert!(layers.malformed && layers.network.is_none());
}

#[test]
fn tunnels_in_tunnels_end_after_eight_levels() {
    let headers = |ips: usize| vec![Header::ipv4(); ips];
    for (ips, levels) in [(3, 3), (8, 8), (12, 8)] {
        let stack = Stack::new(headers(ips));
        let bytes = stack.bytes(b"x");
        let mut layers = Layers::outermost(&stack.packet(&bytes));
        let mut found = 1;
        while let Some(inner) = layers.inner(&bytes) {
            layers = inner;
            found += 1;
        }
        assert_eq!(found, levels);
    }
}

#[test]
fn an_original_length_below_the_captured_one_is_malformed() {
    let stack = udp_over(Header::ipv4());
    let bytes = stack.bytes(b"abc");
    let packet = Packet {
        original_len: 5,
        ..stack.packet(&bytes)
    };
    let reader = reader(From::Network, "none");
    let expected = Conditions {
        malformed: true,
        ..PLAIN
    };
    assert_eq!(conditions_of(&reader, &packet), expected);
    assert_eq!(
        key_of(&reader, &packet),
        key_of(&reader, &stack.packet(&bytes))
    );
}

#[test]
fn packets_without_the_layer_are_compared_whole() {
    let arp = Stack::new(vec![
        Header::ethernet(),
        Header::Opaque { ethertype: 0x0806 },
    ]);
    let icmp = Header::Icmp {
        kind: 8,
        code: 0,
        checksum: 0,
        rest: 7,
    };
    let other = Stack::new(vec![Header::ethernet(), Header::ipv4()]);
    let ping = Stack::new(vec![Header::ethernet(), Header::ipv4(), icmp]);
    let tcp = Stack::new(vec![Header::ethernet(), Header::ipv4(), Header::tcp()]);
    let cases: [(&str, &Stack, &[u8], [bool; 4]); 5] = [
        ("ARP", &arp, b"request", [false, true, true, true]),
        (
            "another protocol",
            &other,
            b"data",
            [false, false, false, true],
        ),
        ("ICMP", &ping, b"data", [false; 4]),
        ("TCP", &tcp, b"data", [false; 4]),
        (
            "TCP without payload",
            &tcp,
            b"",
            [false, false, false, true],
        ),
    ];
    for (name, stack, payload, whole) in cases {
        let bytes = stack.bytes(payload);
        let packet = stack.packet(&bytes);
        let mut moved = bytes.clone();
        moved[0] ^= 2;
        let moved = stack.packet(&moved);
        let layers = [From::Link, From::Network, From::Transport, From::Payload];
        for (from, whole) in layers.into_iter().zip(whole) {
            let strict = reader(from, "none");
            assert_eq!(
                conditions_of(&strict, &packet).whole,
                whole,
                "{name} {from}"
            );
            let equal = key_of(&strict, &packet) == key_of(&strict, &moved);
            assert_eq!(equal, !whole && from != From::Link, "{name} {from}");
            let mac = reader(from, "mac");
            assert_eq!(key_of(&mac, &packet), key_of(&mac, &moved), "{name} {from}");
        }
    }
}

#[test]
fn unknown_link_types_are_compared_whole() {
    let packet = Packet {
        link: LinkType(147),
        ..Stack::new(vec![]).packet(b"unknown frame")
    };
    let reader = reader(From::Network, "ttl,checksum");
    assert_eq!(
        conditions_of(&reader, &packet),
        Conditions {
            whole: true,
            ..PLAIN
        }
    );
    let key = reader.key(&packet, &mut Vec::new()).payload.to_vec();
    assert_eq!(key, b"unknown frame");
    let other_link = Packet {
        link: LinkType(148),
        ..packet
    };
    assert_ne!(key_of(&reader, &packet), key_of(&reader, &other_link));
}

#[test]
fn raw_ip_and_loopback_numbers() {
    for ip in [Header::ipv4(), Header::ipv6()] {
        let stack = Stack::new(vec![ip.clone(), Header::udp()]);
        let bytes = stack.bytes(b"abc");
        let own = if ip == Header::ipv4() {
            LinkType::IPV4
        } else {
            LinkType::IPV6
        };
        for link in [LinkType(12), LinkType(14), LinkType::RAW, own] {
            let packet = Packet {
                link,
                ..stack.packet(&bytes)
            };
            assert!(Layers::outermost(&packet).transport.is_some(), "{link:?}");
        }
        let other = if own == LinkType::IPV4 {
            LinkType::IPV6
        } else {
            LinkType::IPV4
        };
        let packet = Packet {
            link: other,
            ..stack.packet(&bytes)
        };
        assert!(Layers::outermost(&packet).malformed);
    }
    for (family, known) in [
        (2u32, true),
        (10, false),
        (24, false),
        (28, false),
        (7, false),
    ] {
        for (link, header) in [
            (LinkType::NULL, family.to_le_bytes()),
            (LinkType::NULL, family.to_be_bytes()),
            (LinkType::LOOP, family.to_be_bytes()),
        ] {
            let mut bytes = header.to_vec();
            bytes.extend(Stack::new(vec![Header::ipv4(), Header::udp()]).bytes(b"abc"));
            let packet = Packet {
                link,
                ..Stack::new(vec![]).packet(&bytes)
            };
            let layers = Layers::outermost(&packet);
            assert_eq!(layers.network.is_some(), known, "{link:?} {family}");
            // IPv4 behind the number of IPv6 is malformed; behind an unknown one it is payload.
            assert_eq!(layers.malformed, !known && family != 7, "{link:?} {family}");
        }
    }
}
