//! Every link header, tag and tunnel in front of every kind of IP packet, cut at every length:
//! copies are equal wherever the guide promises it, no two different packets are, and only the bits
//! of ignored fields do not count.

use std::collections::HashMap;
use std::ops::Range;

use echoless_packets::key::{From, KeyOptions, KeyReader};
use echoless_packets::synth::{Header, Stack};
use echoless_packets::{LinkType, Packet};

use crate::support::{conditions_of, key_of, reader};

/// The headers in front of an IP packet of this version. The other variant of them differs in what
/// is not compared from the IP header on, and has the same length.
fn links(variant: u8, v6: bool) -> Vec<Vec<Header>> {
    let ethernet = || Header::Ethernet {
        destination: [2, 0, 0, 0, 0, variant],
        source: [2, 0, 0, 0, 1, variant],
    };
    let vlan = || Header::vlan(5 + u16::from(variant));
    let link = |kind, bytes: &[u8]| Header::Link {
        kind,
        bytes: bytes.to_vec(),
    };
    let capture = |kind, bytes: &[u8]| Header::Capture {
        kind,
        bytes: bytes.to_vec(),
    };
    let wireless = |between, qos| Header::Wireless {
        duration: variant.into(),
        addresses: [[2, 0, 0, 0, 0, variant]; 4],
        sequence: 0x10 * u16::from(variant),
        between_access_points: between,
        qos,
    };
    let snap = || Header::Snap;
    let mut all = vec![
        vec![],
        vec![Header::Null],
        vec![Header::Loop],
        vec![ethernet()],
        vec![ethernet(), vlan()],
        vec![ethernet(), vlan(), vlan()],
        vec![ethernet(), vlan(), Header::mpls(99 + u32::from(variant))],
        vec![ethernet(), Header::mpls(99), Header::mpls(3000)],
        vec![
            ethernet(),
            Header::Pppoe {
                session: variant.into(),
            },
        ],
        vec![ethernet(), snap()],
        vec![ethernet(), vlan(), snap()],
        vec![
            ethernet(),
            Header::Hsr {
                path: variant,
                sequence: 3,
            },
        ],
        vec![
            ethernet(),
            vlan(),
            Header::Hsr {
                path: variant,
                sequence: 3,
            },
            snap(),
        ],
        vec![
            capture(LinkType::RADIOTAP, &[0, 0, 9, 0, 0x20, 0, 0, 0, variant]),
            wireless(false, false),
            snap(),
        ],
        vec![
            Header::radiotap(variant.into(), variant),
            wireless(true, true),
            snap(),
        ],
        vec![wireless(false, true), snap()],
        vec![
            capture(LinkType::PPI, &[0, 0, 9, 0, 105, 0, 0, 0, variant]),
            wireless(false, false),
            snap(),
        ],
        vec![
            capture(LinkType::PPI, &[0, 0, 9, 0, 1, 0, 0, 0, variant]),
            ethernet(),
            vlan(),
        ],
        vec![
            capture(
                LinkType::PRISM,
                &[&[0x44, 0, 0, 0, 144, 0, 0, 0][..], &[variant; 136]].concat(),
            ),
            wireless(false, false),
            snap(),
        ],
        vec![
            capture(
                LinkType::AVS,
                &[&[0x80, 0x21, 0x10, 1, 0, 0, 0, 64][..], &[variant; 56]].concat(),
            ),
            wireless(false, false),
            snap(),
        ],
        vec![
            capture(
                LinkType::PKTAP,
                &[&[16, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0][..], &[variant; 4]].concat(),
            ),
            ethernet(),
        ],
        vec![capture(LinkType::NETANALYZER, &[variant; 4]), ethernet()],
        vec![
            capture(LinkType::JUNIPER_ETHERNET, &[b'M', b'G', b'C', variant & 1]),
            ethernet(),
        ],
        vec![
            capture(
                LinkType::ERF,
                &[&[variant; 8][..], &[2], &[variant; 9]].concat(),
            ),
            ethernet(),
        ],
        vec![link(LinkType::PPP, &[0xff, 3])],
        vec![link(LinkType::PPP, &[])],
        vec![link(LinkType::PPP_HDLC, &[0xff, 3])],
        vec![link(LinkType::PPP_PPPD, &[variant & 1, 3])],
        vec![link(LinkType::PPP_WITH_DIR, &[variant, 0xff, 3])],
        vec![
            link(LinkType::PPP_ETHER, &[]),
            Header::Pppoe {
                session: variant.into(),
            },
        ],
        vec![link(LinkType::C_HDLC, &[0x0f, 0])],
        vec![link(LinkType::C_HDLC_WITH_DIR, &[variant, 0x8f, 0])],
        vec![link(LinkType::FRAME_RELAY, &[variant & !1, 0x41, 3])],
        vec![link(
            LinkType::FRAME_RELAY_WITH_DIR,
            &[variant, 0x18, 0x41, 3, 0],
        )],
        vec![link(LinkType::MPLS, &[]), Header::mpls(variant.into())],
        vec![link(LinkType::ATM_RFC1483, &[]), snap()],
        vec![
            link(
                LinkType::TOKEN_RING,
                &[&[0x10, 0x40][..], &[variant & 0x7f; 12]].concat(),
            ),
            snap(),
        ],
        vec![
            link(LinkType::FDDI, &[&[0x57][..], &[variant; 12]].concat()),
            snap(),
        ],
        vec![link(LinkType::IP_OVER_FC, &[variant; 16]), snap()],
        vec![link(LinkType::IPOIB, &[variant; 40])],
        vec![link(
            LinkType::ENC,
            &[
                if v6 { 24 } else { 2 },
                0,
                0,
                0,
                variant,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
            ],
        )],
        vec![link(
            LinkType::PFLOG,
            &[&[61, if v6 { 24 } else { 2 }][..], &[variant; 62]].concat(),
        )],
        vec![link(
            LinkType::NFLOG,
            &[
                if v6 { 10 } else { 2 },
                0,
                0,
                0,
                5,
                0,
                10,
                0,
                variant,
                0,
                0,
                0,
            ],
        )],
        vec![Header::Sll {
            packet_type: variant.into(),
            arphrd: 1,
            address: [variant; 8],
        }],
        vec![
            Header::Sll {
                packet_type: variant.into(),
                arphrd: 801,
                address: [variant; 8],
            },
            snap(),
        ],
        vec![Header::Sll2 {
            interface: variant.into(),
            packet_type: variant,
            arphrd: 1,
            address: [variant; 8],
        }],
    ];
    let tags: [(u16, &[u8]); 8] = [
        (0xf1c1, &[0, 0, 0, variant]),
        (0x8926, &[variant; 4]),
        (0x893f, &[variant; 6]),
        (0x8909, &[1, 1, 0, 1, 0, variant]),
        (0xd28b, &[0, 1, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, variant]),
        (0xd28b, &[0, 1, 1, 0x20, 0, 0, 0, 0, 0, variant]),
        (0x88e7, &[variant; 16]),
        (0x8903, &[variant; 14]),
    ];
    for (ethertype, bytes) in tags {
        let tag = || Header::Tag {
            ethertype,
            bytes: bytes.to_vec(),
        };
        all.push(vec![ethernet(), tag()]);
        all.push(vec![ethernet(), vlan(), tag(), vlan()]);
    }
    all
}

/// The headers between an outer and an inner IP header.
fn tunnels() -> Vec<Vec<Header>> {
    let ethernet = Header::ethernet;
    let gre = |sequence| Header::Gre {
        checksum: false,
        key: Some(7),
        sequence,
    };
    let ppp = Header::Link {
        kind: LinkType::PPP,
        bytes: vec![0xff, 3],
    };
    vec![
        vec![],
        vec![gre(None)],
        vec![gre(None), ethernet(), Header::vlan(3)],
        vec![
            gre(Some(9)),
            Header::Erspan { session: 1 },
            ethernet(),
            Header::vlan(1),
        ],
        vec![Header::udp(), Header::vxlan(4), ethernet()],
        vec![
            Header::udp(),
            Header::geneve(4),
            ethernet(),
            Header::vlan(3),
            Header::Snap,
        ],
        vec![Header::udp(), Header::geneve(4)],
        vec![Header::udp(), Header::gtp_u(4)],
        vec![
            Header::udp(),
            Header::Tzsp {
                fields: vec![0, 10, 1, 200],
            },
            ethernet(),
        ],
        vec![
            Header::udp(),
            Header::Tzsp { fields: vec![] },
            Header::wireless(),
            Header::Snap,
        ],
        vec![
            Header::udp(),
            Header::L2tp {
                tunnel: 1,
                session: 2,
            },
            ppp,
        ],
        vec![Header::udp(), Header::mpls(5)],
        vec![Header::mpls(5)],
        vec![Header::EtherIp, ethernet()],
    ]
}

/// IP headers of both versions, with options and chains of extension headers.
fn ips() -> Vec<Header> {
    let mut all = Vec::new();
    for options in [0, 4, 40] {
        let mut ip = Header::ipv4();
        if let Header::Ipv4(ip) = &mut ip {
            ip.options = vec![1; options];
        }
        all.push(ip);
    }
    let chains: [&[(u8, usize)]; 8] = [
        &[],
        &[(0, 6)],
        &[(43, 54)],
        &[(51, 22)],
        &[(60, 14), (60, 6)],
        &[(0, 6), (43, 22), (51, 22), (60, 6)],
        &[(44, 6)],
        &[(135, 14)],
    ];
    for chain in chains {
        let mut ip = Header::ipv6();
        if let Header::Ipv6(ip) = &mut ip {
            // The content of a fragment header of a whole packet is 0.
            let content = |kind, len| vec![if kind == 44 { 0 } else { 1 }; len];
            ip.extensions = chain
                .iter()
                .map(|(kind, len)| (*kind, content(*kind, *len)))
                .collect();
        }
        all.push(ip);
    }
    let mut fragment = Header::ipv6();
    if let Header::Ipv6(ip) = &mut fragment {
        ip.fragment = Some((0x0101, 7));
    }
    all.push(fragment);
    all
}

const PAYLOAD: &[u8] = b"a payload";

/// Packets without link headers: the headers, and how many of them are in front of the packet that
/// a tunnel carries.
fn packets() -> Vec<(Vec<Header>, usize)> {
    let mut all = Vec::new();
    let tunnels = tunnels().into_iter().map(Some);
    for tunnel in [None].into_iter().chain(tunnels) {
        for (at, ip) in ips().into_iter().enumerate() {
            let transport = [Header::tcp(), Header::udp()][at % 2].clone();
            let outer = [Header::ipv4(), Header::ipv6()][at / 2 % 2].clone();
            let fragment = matches!(&ip, Header::Ipv6(ip) if ip.fragment.is_some());
            let mut headers = vec![];
            if let Some(tunnel) = &tunnel {
                headers.push(outer);
                headers.extend_from_slice(tunnel);
            }
            let inner = headers.len();
            headers.push(ip);
            if !fragment {
                headers.push(transport);
            }
            all.push((headers, inner));
        }
    }
    all
}

fn is_v6(header: &Header) -> bool {
    matches!(header, Header::Ipv6(_))
}

/// The length of an IP header without options and extension headers.
fn fixed_len(header: &Header) -> usize {
    if is_v6(header) { 40 } else { 20 }
}

/// The packet behind a router: one hop less, and the checksum that fits it.
fn routed(header: &Header) -> Header {
    let mut header = header.clone();
    match &mut header {
        Header::Ipv4(ip) => ip.ttl -= 1,
        Header::Ipv6(ip) => ip.hop_limit -= 1,
        other => panic!("{other:?} is not IP"),
    }
    header
}

/// The offset of a header in the bytes of a stack with [`PAYLOAD`].
fn offset(headers: &[Header], at: usize) -> usize {
    let len = |headers: &[Header]| Stack::new(headers.to_vec()).bytes(PAYLOAD).len();
    len(headers) - len(&headers[at..])
}

/// A packet of which `captured` bytes were captured.
fn cut<'a>(stack: &Stack, bytes: &'a [u8], captured: usize) -> Packet<'a> {
    Packet {
        bytes: &bytes[..captured],
        ..stack.packet(bytes)
    }
}

fn default_reader(inner: bool, snap_safe: Option<u32>) -> KeyReader {
    let tunnel = "tunnel".parse().expect("a field");
    let mut options = KeyOptions {
        snap_safe,
        ..KeyOptions::default()
    };
    if inner {
        options.ignore = options.ignore.union(tunnel);
    }
    KeyReader::new(options).expect("good options")
}

#[test]
fn copies_behind_all_headers_and_cuts_are_equal_and_nothing_else_is() {
    for inner in [false, true] {
        let reader = default_reader(inner, None);
        // Keys by what they are keys of: the captured bytes, and the length on the wire.
        let mut known: HashMap<Vec<u8>, (Vec<u8>, usize)> = HashMap::new();
        for (headers, carried) in &packets() {
            let compared = if inner { *carried } else { 0 };
            let plain = Stack::new(headers[compared..].to_vec());
            let packet = plain.bytes(PAYLOAD);
            let least = fixed_len(&headers[compared]);
            let keys: Vec<Vec<u8>> = (least..=packet.len())
                .map(|len| key_of(&reader, &cut(&plain, &packet, len)))
                .collect();
            for (len, key) in (least..).zip(&keys) {
                let own = (packet[..len].to_vec(), packet.len());
                let known = known.entry(key.clone()).or_insert_with(|| own.clone());
                assert_eq!(*known, own, "{headers:?}");
            }
            let mut copy = headers.clone();
            copy[compared] = routed(&headers[compared]);
            for (variant, link) in [1, 2].into_iter().flat_map(|variant| {
                links(variant, is_v6(&headers[0]))
                    .into_iter()
                    .map(move |link| (variant, link))
            }) {
                // One of the two is the copy behind a router.
                let packet = if variant == 1 { headers } else { &copy };
                let stack = Stack::new([link, packet.clone()].concat());
                let bytes = stack.bytes(PAYLOAD);
                let start = bytes.len() - plain.bytes(PAYLOAD).len();
                for (len, key) in (least..).zip(&keys) {
                    let cut = cut(&stack, &bytes, start + len);
                    assert_eq!(key_of(&reader, &cut), *key, "{len} of {:?}", stack.headers);
                    let conditions = conditions_of(&reader, &cut);
                    assert!(!conditions.whole);
                    assert_eq!(conditions.inner, compared > 0);
                }
            }
        }
    }
}

#[test]
fn copies_with_other_snap_lengths_are_equal_if_they_have_enough() {
    for inner in [false, true] {
        for snap in [40, 60, 64, 100] {
            let reader = default_reader(inner, Some(snap));
            for (headers, carried) in packets() {
                let compared = if inner { carried } else { 0 };
                let plain = Stack::new(headers[compared..].to_vec());
                let packet = plain.bytes(PAYLOAD);
                let key = key_of(&reader, &plain.packet(&packet));
                for link in links(1, is_v6(&headers[0])).into_iter().step_by(5) {
                    let stack = Stack::new([link, headers.clone()].concat());
                    let bytes = stack.bytes(PAYLOAD);
                    let start = bytes.len() - packet.len();
                    let enough = (start + snap as usize).min(bytes.len());
                    for captured in enough..=bytes.len() {
                        let cut = cut(&stack, &bytes, captured);
                        assert_eq!(key_of(&reader, &cut), key, "{captured} of {stack:?}");
                        assert!(!conditions_of(&reader, &cut).short);
                    }
                    let short = cut(&stack, &bytes, enough - 1);
                    assert_ne!(key_of(&reader, &short), key, "{stack:?}");
                }
            }
        }
    }
}

/// The bits that the default leaves out of a packet whose IP header is the one at `compared`, from
/// the headers as data: the bytes in front of it, its time to live, and checksums.
fn ignored(headers: &[Header], compared: usize) -> Vec<Range<usize>> {
    let start = offset(headers, compared);
    let mut all = match &headers[compared] {
        Header::Ipv4(_) => vec![0..start, start + 8..start + 9, start + 10..start + 12],
        Header::Ipv6(_) => vec![0..start, start + 7..start + 8],
        other => panic!("{other:?} is not IP"),
    };
    if let Some(transport) = headers.get(compared + 1) {
        let start = offset(headers, compared + 1);
        match transport {
            Header::Tcp(_) => all.push(start + 16..start + 18),
            Header::Udp { .. } => all.push(start + 6..start + 8),
            _ => {}
        }
    }
    all
}

#[test]
fn every_bit_counts_unless_its_field_is_ignored() {
    let strict = reader(From::Link, "none");
    let readers = [false, true].map(|inner| default_reader(inner, None));
    let links = [false, true].map(|v6| links(1, v6));
    for (number, (packet, carried)) in packets().into_iter().enumerate() {
        let links = &links[usize::from(is_v6(&packet[0]))];
        // Every link header meets every tunnel and every chain, but not every pair of them.
        for link in links.iter().skip(number % 11).step_by(11) {
            let headers = [&link[..], &packet].concat();
            let stack = Stack::new(headers.clone());
            let bytes = [&stack.bytes(PAYLOAD)[..], &[0; 3]].concat();
            let whole = bytes.len() - 3;
            let cuts = [bytes.len(), offset(&headers, link.len()) + 20 + number % 60];
            for captured in cuts.into_iter().filter(|captured| *captured <= bytes.len()) {
                let base = cut(&stack, &bytes, captured);
                let keys = [&strict, &readers[0], &readers[1]].map(|reader| key_of(reader, &base));
                let ignored = [link.len(), link.len() + carried].map(|at| ignored(&headers, at));
                let mut changed = bytes.clone();
                for bit in 0..8 * captured {
                    let at = bit / 8;
                    changed[at] ^= 1 << (bit % 8);
                    let packet = cut(&stack, &changed, captured);
                    let context = || format!("bit {bit} of {captured} of {headers:?}");
                    assert_ne!(key_of(&strict, &packet), keys[0], "{}", context());
                    for (number, reader) in readers.iter().enumerate() {
                        let named = ignored[number].iter().any(|range| range.contains(&at));
                        if !named && at < whole {
                            assert_ne!(key_of(reader, &packet), keys[number + 1], "{}", context());
                        }
                    }
                    changed[at] ^= 1 << (bit % 8);
                }
            }
        }
    }
}
