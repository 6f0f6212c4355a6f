//! Tunnel headers byte by byte: the variants that synthetic packets do not have, and what is none.

use echoless_packets::Packet;
use echoless_packets::layers::Layers;
use echoless_packets::synth::{Header, Stack};

/// The IP packet that every tunnel here carries.
fn inner_ip() -> Vec<u8> {
    Stack::new(vec![Header::ipv4(), Header::tcp()]).bytes(b"inner")
}

/// The offset of the inner packet in an outer IPv4 packet of this protocol with this payload.
fn inner_start(protocol: u8, payload: &[&[u8]]) -> Option<usize> {
    let mut ip = Header::ipv4();
    if let Header::Ipv4(ip) = &mut ip {
        ip.protocol = protocol;
    }
    start_in(&Stack::new(vec![ip]), payload)
}

/// The offset of the inner packet in a UDP packet to this port.
fn inner_start_in_udp(destination: u16, payload: &[&[u8]]) -> Option<usize> {
    let udp = Header::Udp {
        source: 1,
        destination,
        checksum: 0,
    };
    start_in(&Stack::new(vec![Header::ipv4(), udp]), payload)
}

fn start_in(stack: &Stack, payload: &[&[u8]]) -> Option<usize> {
    let bytes = stack.bytes(&payload.concat());
    let inner = Layers::outermost(&stack.packet(&bytes)).inner(&bytes)?;
    let ip = inner.network?;
    assert_eq!(bytes[ip.start..], inner_ip());
    Some(inner.start)
}

const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];

#[test]
fn gre() {
    let ip = inner_ip();
    let cases: [(&[u8], Option<usize>); 9] = [
        (&[0, 0, 8, 0], Some(4)),
        (&[0x80, 0, 8, 0, 0, 0, 0, 0], Some(8)),
        (&[0x20, 0, 8, 0, 0, 0, 0, 1], Some(8)),
        (
            &[0xb0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2],
            Some(16),
        ),
        // Routing, version 1, an unknown EtherType, the other version of IP.
        (&[0x40, 0, 8, 0, 0, 0, 0, 0], None),
        (&[0x20, 1, 8, 0, 0, 0, 0, 0], None),
        (&[0, 0, 0x88, 0xb5], None),
        (&[0, 0, 0x86, 0xdd], None),
        // A label stack in GRE.
        (&[0, 0, 0x88, 0x47, 0, 0, 0x11, 9], Some(4)),
    ];
    for (header, start) in cases {
        assert_eq!(
            inner_start(47, &[header, &ip]),
            start.map(|at| 20 + at),
            "{header:x?}"
        );
    }
}

#[test]
fn erspan() {
    let ip = inner_ip();
    let frame = |header: &[u8]| inner_start(47, &[header, &ETHERNET, &ip]);
    // Type I has neither sequence number nor header.
    assert_eq!(frame(&[0, 0, 0x88, 0xbe]), Some(24));
    let two = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 1, 0, 0, 0, 0];
    assert_eq!(frame(&two), Some(36));
    // Type III: 12 bytes, the last bit announces 8 more.
    let mut three = vec![0x10, 0, 0x22, 0xeb, 0, 0, 0, 1];
    three.extend([0x20, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(frame(&three), Some(40));
    three[19] = 1;
    three.extend([0; 8]);
    assert_eq!(frame(&three), Some(48));
}

#[test]
fn tunnels_in_udp() {
    let ip = inner_ip();
    for (port, start) in [(4789, Some(36)), (8472, Some(36)), (4790, None)] {
        let vxlan = [8, 0, 0, 0, 0, 0, 1, 0];
        assert_eq!(inner_start_in_udp(port, &[&vxlan, &ETHERNET, &ip]), start);
        // The network identifier is not valid.
        let invalid = [0; 8];
        assert_eq!(inner_start_in_udp(port, &[&invalid, &ETHERNET, &ip]), None);
    }
    let geneve = |first: u8, options: &[u8]| {
        inner_start_in_udp(6081, &[&[first, 0, 8, 0, 0, 0, 1, 0], options, &ip])
    };
    assert_eq!(geneve(0, &[]), Some(36));
    assert_eq!(geneve(2, &[0; 8]), Some(44));
    assert_eq!(geneve(0x40, &[]), None);
    // Options that end behind the packet.
    assert_eq!(geneve(0x3f, &[]), None);
    let gtp = |header: &[u8]| inner_start_in_udp(2152, &[header, &ip]);
    assert_eq!(gtp(&[0x30, 255, 0, 0, 0, 0, 0, 1]), Some(36));
    assert_eq!(gtp(&[0x32, 255, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0]), Some(40));
    let extended = [
        0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0, 0, 0x85, 1, 0, 0, 0,
    ];
    assert_eq!(gtp(&extended), Some(48));
    // An echo request, GTP prime, version 2, an extension of no length.
    assert_eq!(gtp(&[0x30, 1, 0, 0, 0, 0, 0, 1]), None);
    assert_eq!(gtp(&[0x20, 255, 0, 0, 0, 0, 0, 1]), None);
    assert_eq!(gtp(&[0x50, 255, 0, 0, 0, 0, 0, 1]), None);
    assert_eq!(
        gtp(&[0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 0, 0, 0, 0]),
        None
    );
}

#[test]
fn ip_in_ip() {
    let ip = inner_ip();
    assert_eq!(inner_start(4, &[&ip]), Some(20));
    // The protocol number announces IPv6.
    assert_eq!(inner_start(41, &[&ip]), None);
    // MPLS in IP: one label.
    assert_eq!(inner_start(137, &[&[0, 0, 0x11, 9], &ip]), Some(20));
    assert_eq!(inner_start(253, &[&ip]), None);
    assert_eq!(inner_start(4, &[]), None);
}

#[test]
fn a_frame_without_ip_in_a_tunnel_counts_as_a_packet() {
    let stack = Stack::new(vec![
        Header::ipv4(),
        Header::udp(),
        Header::vxlan(1),
        Header::ethernet(),
        Header::Opaque { ethertype: 0x0806 },
    ]);
    let bytes = stack.bytes(b"request");
    let inner = Layers::outermost(&stack.packet(&bytes))
        .inner(&bytes)
        .expect("a frame");
    assert_eq!(
        (inner.start, inner.ethertype, inner.network),
        (36, 0x0806, None)
    );
    assert_eq!(inner.payload.bytes(&bytes), b"request");
    // A frame whose header is cut does not.
    let cut = &bytes[..36 + 13];
    let packet = Packet {
        bytes: cut,
        ..stack.packet(&bytes)
    };
    assert_eq!(Layers::outermost(&packet).inner(cut), None);
}

#[test]
fn fragments_carry_no_packet() {
    let mut outer = Header::ipv4();
    if let Header::Ipv4(ip) = &mut outer {
        ip.fragment = 0x2000;
    }
    let stack = Stack::new(vec![outer, Header::ipv4(), Header::udp()]);
    let bytes = stack.bytes(b"abc");
    assert_eq!(Layers::outermost(&stack.packet(&bytes)).inner(&bytes), None);
}
