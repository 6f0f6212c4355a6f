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
    for (port, start) in [
        (4789, Some(36)),
        (8472, Some(36)),
        (4790, Some(36)),
        (4788, None),
    ] {
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
fn headers_with_a_next_protocol() {
    let ip = inner_ip();
    // VXLAN-GPE, LISP-GPE and NSH have the same numbers.
    let nsh = |next: u8| [0x0f, 0xc2, 1, next, 0, 0, 1, 255];
    let next: [(u8, &[u8], Option<usize>); 6] = [
        (1, &[], Some(0)),
        (3, &ETHERNET, Some(0)),
        (4, &nsh(1), Some(8)),
        (5, &[0, 0, 0x11, 9], Some(0)),
        // The other version of IP, and a number without a meaning.
        (2, &[], None),
        (6, &[], None),
    ];
    for (number, between, start) in next {
        let start = |at: usize| start.map(|more| at + more);
        let gpe = [0x0c, 0, 0, number, 0, 0, 1, 0];
        assert_eq!(inner_start_in_udp(4790, &[&gpe, between, &ip]), start(36));
        let lisp = [0x04, 0, 0, number, 0, 0, 1, 0];
        assert_eq!(inner_start_in_udp(4341, &[&lisp, between, &ip]), start(36));
        let in_gre = [&[0, 0, 0x89, 0x4f][..], &nsh(number)].concat();
        assert_eq!(inner_start(47, &[&in_gre, between, &ip]), start(32));
        // Behind an EtherType, with metadata of 16 bytes.
        let frame = Stack::new(vec![
            Header::ethernet(),
            Header::Opaque { ethertype: 0x894f },
        ]);
        let metadata = [&[0x0f, 0xc6, 1, number, 0, 0, 1, 255][..], &[7; 16]].concat();
        assert_eq!(start_in(&frame, &[&metadata, between, &ip]), start(14 + 24));
        // Version 1, and a length without the path.
        for first in [[0x4f, 0xc6], [0x0f, 0xc1]] {
            let wrong = [&first[..], &metadata[2..]].concat();
            assert_eq!(start_in(&frame, &[&wrong, between, &ip]), None);
        }
    }
    // Headers in headers, up to 8; a crafted packet has thousands.
    let frame = Stack::new(vec![
        Header::ethernet(),
        Header::Opaque { ethertype: 0x894f },
    ]);
    let nested = |outer: usize| [nsh(4).repeat(outer), nsh(1).to_vec()].concat();
    assert_eq!(start_in(&frame, &[&nested(7), &ip]), Some(14 + 8 * 8));
    assert_eq!(start_in(&frame, &[&nested(8), &ip]), None);
    assert_eq!(start_in(&frame, &[&nested(100_000), &ip]), None);
    // A version of VXLAN-GPE that is not known.
    let gpe = [0x1c, 0, 0, 1, 0, 0, 1, 0];
    assert_eq!(inner_start_in_udp(4790, &[&gpe, &ip]), None);
}

#[test]
fn mirrors_and_access_points() {
    let ip = inner_ip();
    let mirror = [1, 0, 0, 1, 0x40, 0, 0, 1];
    assert_eq!(inner_start_in_udp(30030, &[&mirror, &ip]), Some(36));
    assert_eq!(inner_start_in_udp(30030, &[&mirror, &[0x99], &ip]), None);
    let lisp = [0x80, 0, 0, 1, 0, 0, 0, 1];
    assert_eq!(inner_start_in_udp(4341, &[&lisp, &ip]), Some(36));

    let capwap = |header: &[u8]| inner_start_in_udp(5247, &[header, &ETHERNET, &ip]);
    assert_eq!(capwap(&[0, 0x10, 2, 0, 0, 1, 0, 0]), Some(36));
    // With the address of a radio.
    let longer = [0, 0x20, 2, 0x10, 0, 1, 0, 0, 6, 2, 0, 0, 0, 0, 1, 0];
    assert_eq!(capwap(&longer), Some(44));
    // A fragment, a keep-alive, an encrypted packet, a frame of another binding.
    assert_eq!(capwap(&[0, 0x10, 2, 0x80, 0, 1, 0, 0]), None);
    assert_eq!(capwap(&[0, 0x10, 2, 0x08, 0, 1, 0, 0]), None);
    assert_eq!(capwap(&[1, 0x10, 2, 0, 0, 1, 0, 0]), None);
    assert_eq!(capwap(&[0, 0x10, 5, 0, 0, 1, 0, 0]), None);
    // A frame of IEEE 802.11: data, three addresses, sequence, LLC and SNAP.
    let mut wireless = vec![8, 1, 0, 0];
    wireless.extend([2; 18]);
    wireless.extend([0, 0, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
    let native = [0, 0x10, 3, 0, 0, 1, 0, 0];
    assert_eq!(
        inner_start_in_udp(5247, &[&native, &wireless, &ip]),
        Some(36)
    );
    // The way back has the port at its source.
    let udp = |source, destination| Header::Udp {
        source,
        destination,
        checksum: 0,
    };
    let back = Stack::new(vec![Header::ipv4(), udp(5247, 40_000)]);
    let header = [0, 0x10, 2, 0, 0, 1, 0, 0];
    assert_eq!(start_in(&back, &[&header, &ETHERNET, &ip]), Some(36));

    let frame = Stack::new(vec![
        Header::ethernet(),
        Header::Opaque { ethertype: 0x22f3 },
    ]);
    let trill = |header: &[u8]| start_in(&frame, &[header, &ETHERNET, &ip]);
    assert_eq!(trill(&[0, 0x21, 0, 1, 0, 2]), Some(20));
    // An option of a word, and version 1.
    assert_eq!(trill(&[0, 0x61, 0, 1, 0, 2, 0, 0, 0, 0]), Some(24));
    assert_eq!(trill(&[0x40, 0x21, 0, 1, 0, 2]), None);
}

#[test]
fn ppp_in_gre() {
    let ip = inner_ip();
    let ppp = |header: &[u8]| inner_start(47, &[header, &[0xff, 3, 0, 0x21], &ip]);
    let start = [0x30, 1, 0x88, 0x0b, 0, 9, 0, 1, 0, 0, 0, 1];
    assert_eq!(ppp(&start), Some(32));
    let acknowledges = [0x30, 0x81, 0x88, 0x0b, 0, 9, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2];
    assert_eq!(ppp(&acknowledges), Some(36));
    // An acknowledgement alone, no key, version 2.
    assert_eq!(ppp(&[0x20, 0x81, 0x88, 0x0b, 0, 0, 0, 1, 0, 0, 0, 2]), None);
    assert_eq!(ppp(&[0x10, 1, 0x88, 0x0b, 0, 0, 0, 1]), None);
    assert_eq!(ppp(&[0x30, 2, 0x88, 0x0b, 0, 9, 0, 1, 0, 0, 0, 1]), None);
}

#[test]
fn teredo() {
    let ip = Stack::new(vec![Header::ipv6(), Header::tcp()]).bytes(b"inner");
    let start = |udp: [u16; 2], between: &[u8]| {
        let udp = Header::Udp {
            source: udp[0],
            destination: udp[1],
            checksum: 0,
        };
        let stack = Stack::new(vec![Header::ipv4(), udp]);
        let bytes = stack.bytes(&[between, &ip].concat());
        let inner = Layers::outermost(&stack.packet(&bytes)).inner(&bytes)?;
        assert_eq!(bytes[inner.network?.start..], ip);
        Some(inner.start)
    };
    let origin = [0, 0, 1, 2, 3, 4, 5, 6];
    let mut authentication = vec![0, 1, 2, 3];
    authentication.extend([9; 2 + 3 + 9]);
    for udp in [[1, 3544], [3544, 1]] {
        assert_eq!(start(udp, &[]), Some(28));
        assert_eq!(start(udp, &origin), Some(36));
        assert_eq!(start(udp, &authentication), Some(46));
        let both = [&authentication[..], &origin].concat();
        assert_eq!(start(udp, &both), Some(54));
    }
    assert_eq!(start([1, 3545], &[]), None);
    // IPv4 is none.
    assert_eq!(inner_start_in_udp(3544, &[&inner_ip()]), None);
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
