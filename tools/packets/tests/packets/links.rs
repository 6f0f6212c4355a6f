//! Link headers and tags, byte by byte: all kinds, their variants, and what is none.

use std::collections::HashMap;

use echoless_packets::key::{FieldSet, From, KeyOptions, KeyReader};
use echoless_packets::layers::Layers;
use echoless_packets::synth::{Header, Stack};
use echoless_packets::{LinkType, Packet};

use crate::support::{conditions_of, key_of, reader};

fn ip_packet() -> Vec<u8> {
    Stack::new(vec![Header::ipv4(), Header::tcp()]).bytes(b"content")
}

fn packet(link: LinkType, bytes: &[u8]) -> Packet<'_> {
    Packet {
        link,
        ..Stack::new(vec![]).packet(bytes)
    }
}

/// Whether IP is found behind exactly this header.
fn is_found(link: LinkType, header: &[u8]) -> bool {
    let bytes = [header, &ip_packet()].concat();
    let layers = Layers::outermost(&packet(link, &bytes));
    let found = layers.network.map(|ip| ip.start);
    assert!(found.is_none_or(|start| start == header.len()), "{link:?}");
    found.is_some()
}

const SNAP: [u8; 8] = [0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
const ETHERNET: [u8; 14] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];

/// A data frame of IEEE 802.11: its first bytes, and what follows the sequence number.
fn wireless(first: [u8; 2], rest: &[u8]) -> Vec<u8> {
    let mut header = first.to_vec();
    header.extend([44, 0]);
    header.extend([7; 18]);
    header.extend([0x30, 0x12]);
    header.extend(rest);
    header
}

/// Link headers in front of IPv4.
fn known() -> Vec<(LinkType, Vec<u8>)> {
    let data = wireless([0x08, 1], &SNAP);
    let ethernet = |header: &[u8]| [header, &ETHERNET].concat();
    let wireless_behind = |header: &[u8]| [header, &data].concat();
    let mut prism = vec![0x44, 0, 0, 0, 144, 0, 0, 0];
    prism.resize(144, 1);
    let mut prism_big = vec![0, 0, 0, 0x44, 0, 0, 0, 144];
    prism_big.resize(144, 1);
    let mut avs = vec![0x80, 0x21, 0x10, 2, 0, 0, 0, 64];
    avs.resize(64, 1);
    let mut pktap = vec![0; 108];
    (pktap[0], pktap[8]) = (108, 1);
    let mut erf = vec![0; 18];
    erf[8] = 2;
    // The highest bit announces an extension, in it as well.
    let mut erf_extended = vec![0; 34];
    (erf_extended[8], erf_extended[16]) = (0x82, 0x80);
    let mut pflog = vec![61, 2];
    pflog.resize(64, 1);
    let mut token_ring = vec![0x10, 0x40];
    token_ring.resize(14, 2);
    let mut routed = token_ring.clone();
    routed[8] |= 0x80;
    routed.extend([0x06, 0x30, 0, 1, 0, 2]);
    let mut fddi = vec![0x57];
    fddi.resize(13, 2);
    let mut infiniband = vec![3; 40];
    infiniband.extend([8, 0, 0, 0]);
    // The headers of netfilter: a mark, then the packet; in either byte order.
    let nflog = [
        2, 0, 0, 5, 8, 0, 3, 0, 0, 0, 0, 1, 5, 0, 10, 0, 0, 0, 0, 0, 51, 0, 9, 0,
    ];
    let nflog_big = [2, 0, 0, 5, 0, 8, 0, 3, 0, 0, 0, 1, 0, 51, 0, 9];
    vec![
        (LinkType::PPP, vec![0xff, 3, 0, 0x21]),
        (LinkType::PPP, vec![0xff, 3, 0x21]),
        (LinkType::PPP, vec![0, 0x21]),
        (LinkType::PPP, vec![0x21]),
        (LinkType::PPP, vec![0xff, 3, 2, 0x81, 0, 0, 0x11, 9]),
        (LinkType::PPP_HDLC, vec![0xff, 3, 0, 0x21]),
        (LinkType::PPP_HDLC, vec![0x0f, 0, 8, 0]),
        (LinkType::PPP_PPPD, vec![0, 3, 0, 0x21]),
        (LinkType::PPP_PPPD, vec![1, 3, 0, 0x21]),
        (LinkType::PPP_WITH_DIR, vec![1, 0xff, 3, 0, 0x21]),
        (LinkType::PPP_WITH_DIR, vec![0, 0, 0x21]),
        (LinkType::PPP_ETHER, vec![0x11, 0, 0, 7, 0, 49, 0, 0x21]),
        (LinkType::C_HDLC, vec![0x0f, 0, 8, 0]),
        (LinkType::C_HDLC, vec![0x8f, 0, 0x88, 0x47, 0, 0, 0x11, 9]),
        (LinkType::C_HDLC_WITH_DIR, vec![1, 0x0f, 0, 8, 0]),
        (LinkType::FRAME_RELAY, vec![0x18, 0x41, 3, 0xcc]),
        (LinkType::FRAME_RELAY, vec![0x18, 0x41, 3, 0, 0xcc]),
        (
            LinkType::FRAME_RELAY,
            vec![0x18, 0x41, 3, 0, 0x80, 0, 0, 0, 8, 0],
        ),
        (LinkType::FRAME_RELAY_WITH_DIR, vec![0, 0x18, 0x41, 3, 0xcc]),
        (LinkType::ATM_RFC1483, SNAP.to_vec()),
        (LinkType::TOKEN_RING, [&token_ring[..], &SNAP].concat()),
        (LinkType::TOKEN_RING, [&routed[..], &SNAP].concat()),
        (LinkType::FDDI, [&fddi[..], &SNAP].concat()),
        (LinkType::IP_OVER_FC, [&[5; 16][..], &SNAP].concat()),
        (LinkType::IPOIB, infiniband),
        (LinkType::MPLS, vec![0, 0, 0x11, 9]),
        (LinkType::ENC, vec![2, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 8]),
        (LinkType::ENC, vec![0, 0, 0, 2, 1, 2, 3, 4, 0, 0, 0, 8]),
        (LinkType::PFLOG, pflog),
        (LinkType::NFLOG, nflog.to_vec()),
        (LinkType::NFLOG, nflog_big.to_vec()),
        (LinkType::NFLOG, vec![2, 0, 0, 0, 51, 0, 9, 0]),
        (LinkType::IEEE802_11, data.clone()),
        (LinkType::IEEE802_11, wireless([0x08, 2], &SNAP)),
        // Four addresses, quality of service, a field of IEEE 802.11n.
        (
            LinkType::IEEE802_11,
            wireless([0x08, 3], &[&[9; 6][..], &SNAP].concat()),
        ),
        (
            LinkType::IEEE802_11,
            wireless([0x88, 1], &[&[5, 0][..], &SNAP].concat()),
        ),
        (
            LinkType::IEEE802_11,
            wireless(
                [0x88, 0x83],
                &[&[9; 6][..], &[5, 0], &[0; 4], &SNAP].concat(),
            ),
        ),
        // The organisation of bridges.
        (
            LinkType::IEEE802_11,
            wireless([0x08, 1], &[0xaa, 0xaa, 3, 0, 0, 0xf8, 8, 0]),
        ),
        (
            LinkType::RADIOTAP,
            wireless_behind(&[0, 0, 8, 0, 0, 0, 0, 0]),
        ),
        (
            LinkType::RADIOTAP,
            wireless_behind(&[0, 0, 9, 0, 0x20, 0, 0, 0, 200]),
        ),
        (LinkType::PPI, wireless_behind(&[0, 0, 8, 0, 105, 0, 0, 0])),
        (
            LinkType::PPI,
            ethernet(&[0, 0, 12, 0, 1, 0, 0, 0, 1, 2, 3, 4]),
        ),
        (
            LinkType::PPI,
            wireless_behind(&[0, 0, 8, 0, 127, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0]),
        ),
        (LinkType::PRISM, wireless_behind(&prism)),
        (LinkType::PRISM, wireless_behind(&prism_big)),
        (LinkType::PRISM, wireless_behind(&avs)),
        (LinkType::AVS, wireless_behind(&avs)),
        (LinkType::PKTAP, ethernet(&pktap)),
        (LinkType::NETANALYZER, ethernet(&[1, 2, 3, 4])),
        (LinkType::JUNIPER_ETHERNET, ethernet(b"MGC\x01")),
        (LinkType::JUNIPER_ETHERNET, ethernet(b"MGC\x80\0\x03abc")),
        (LinkType::ERF, ethernet(&erf)),
        (LinkType::ERF, ethernet(&erf_extended)),
        (
            LinkType::ETHERNET,
            [&ETHERNET[..12], &[0, 75], &SNAP].concat(),
        ),
        (
            LinkType::ETHERNET,
            [&ETHERNET[..12], &[0x81, 0, 0, 7, 0, 75], &SNAP].concat(),
        ),
        (
            LinkType::LINUX_SLL,
            [&[0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 0, 4][..], &SNAP].concat(),
        ),
    ]
}

#[test]
fn ip_is_found_behind_every_link_header() {
    let default = KeyReader::new(KeyOptions::default()).expect("good options");
    let strict = reader(From::Link, "none");
    let ip = ip_packet();
    let plain = key_of(&default, &packet(LinkType::RAW, &ip));
    let mut seen = HashMap::new();
    for (link, header) in known() {
        assert!(is_found(link, &header), "{link:?} {header:02x?}");
        let bytes = [&header[..], &ip].concat();
        let whole = packet(link, &bytes);
        assert_eq!(key_of(&default, &whole), plain, "{link:?} {header:02x?}");
        // A cut header is no header, and no two cuts are equal.
        for captured in 0..=header.len() {
            let cut = Packet {
                bytes: &bytes[..captured],
                ..whole
            };
            assert!(conditions_of(&strict, &cut).truncated, "{link:?}");
            assert_eq!(Layers::outermost(&cut).network, None, "{link:?}");
            let known = seen.insert(key_of(&strict, &cut), (link, bytes[..captured].to_vec()));
            let same = (link, bytes[..captured].to_vec());
            assert!(known.is_none_or(|known| known == same), "{link:?}");
        }
    }
}

#[test]
fn content_that_is_no_ip_is_compared_as_bytes() {
    let data = |first, rest: &[u8]| wireless(first, rest);
    let none: [(&str, LinkType, Vec<u8>); 22] = [
        ("LCP", LinkType::PPP, vec![0xff, 3, 0xc0, 0x21]),
        ("another address", LinkType::PPP, vec![0xfe, 3, 0, 0x21]),
        ("SLARP", LinkType::C_HDLC, vec![0x8f, 0, 0x80, 0x35]),
        (
            "a long address",
            LinkType::FRAME_RELAY,
            vec![0x18, 0x40, 3, 0xcc],
        ),
        (
            "a control frame",
            LinkType::FRAME_RELAY,
            vec![0x18, 0x41, 8, 0xcc],
        ),
        (
            "an organisation",
            LinkType::FRAME_RELAY,
            vec![0x18, 0x41, 3, 0x80, 0, 0, 0xc, 8, 0],
        ),
        (
            "another family",
            LinkType::NFLOG,
            vec![7, 0, 0, 0, 51, 0, 9, 0],
        ),
        (
            "an empty element",
            LinkType::NFLOG,
            vec![2, 0, 0, 0, 0, 0, 3, 0],
        ),
        ("another family", LinkType::PFLOG, vec![4, 9, 0, 0]),
        ("a token", LinkType::FDDI, [&[0x80; 13][..], &SNAP].concat()),
        ("a beacon", LinkType::IEEE802_11, data([0x80, 0], &SNAP)),
        (
            "an acknowledgment",
            LinkType::IEEE802_11,
            vec![0xd4, 0, 0, 0, 2, 2, 2, 2, 2, 2],
        ),
        ("no data", LinkType::IEEE802_11, data([0x48, 1], &SNAP)),
        ("encrypted", LinkType::IEEE802_11, data([0x08, 0x41], &SNAP)),
        (
            "the first fragment",
            LinkType::IEEE802_11,
            data([0x08, 0x05], &SNAP),
        ),
        (
            "several in one",
            LinkType::IEEE802_11,
            data([0x88, 1], &[&[0x80, 0][..], &SNAP].concat()),
        ),
        (
            "another version",
            LinkType::IEEE802_11,
            data([0x09, 1], &SNAP),
        ),
        (
            "another version",
            LinkType::RADIOTAP,
            [&[1, 0, 8, 0, 0, 0, 0, 0][..], &data([8, 1], &SNAP)].concat(),
        ),
        (
            "shorter than itself",
            LinkType::RADIOTAP,
            [&[0, 0, 7, 0, 0, 0, 0, 0][..], &data([8, 1], &SNAP)].concat(),
        ),
        (
            "an unknown kind",
            LinkType::PPI,
            [&[0, 0, 8, 0, 147, 0, 0, 0][..], &ETHERNET].concat(),
        ),
        (
            "no link header",
            LinkType::JUNIPER_ETHERNET,
            b"MGC\x02\0\0\0\x02".to_vec(),
        ),
        (
            "another service",
            LinkType::ETHERNET,
            [&ETHERNET[..12], &[0, 50, 0x42, 0x42, 3]].concat(),
        ),
    ];
    let default = KeyReader::new(KeyOptions::default()).expect("good options");
    for (name, link, header) in none {
        assert!(!is_found(link, &header), "{name}");
        let bytes = [&header[..], &ip_packet()].concat();
        let whole = packet(link, &bytes);
        let conditions = conditions_of(&default, &whole);
        assert!(
            conditions.whole && !conditions.truncated && !conditions.malformed,
            "{name}"
        );
        let key = key_of(&default, &whole);
        for bit in 0..8 * bytes.len() {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(key_of(&default, &packet(link, &other)), key, "{name} {bit}");
        }
    }
}

#[test]
fn padding_between_wireless_header_and_content_is_announced_by_radiotap() {
    // 26 bytes with quality of service, and 2 of padding.
    let padded = wireless([0x88, 1], &[&[5, 0, 0, 0][..], &SNAP].concat());
    let plain = wireless([0x88, 1], &[&[5, 0][..], &SNAP].concat());
    // The flags are the first field, or behind a time that begins at a multiple of 8, or behind
    // further words of what follows.
    let headers: [&[u8]; 3] = [
        &[0, 0, 9, 0, 2, 0, 0, 0, 0x20],
        &[0, 0, 17, 0, 3, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0x20],
        &[0, 0, 14, 0, 2, 0, 0, 0x80, 0, 0, 0, 0, 0x20, 0],
    ];
    for header in headers {
        assert!(
            is_found(LinkType::RADIOTAP, &[header, &padded].concat()),
            "{header:?}"
        );
        assert!(
            !is_found(LinkType::RADIOTAP, &[header, &plain].concat()),
            "{header:?}"
        );
        let mut without = header.to_vec();
        let flags = without
            .iter()
            .rposition(|byte| *byte == 0x20)
            .expect("flags");
        without[flags] = 0;
        assert!(
            is_found(LinkType::RADIOTAP, &[&without, &plain[..]].concat()),
            "{header:?}"
        );
    }
}

#[test]
fn tags_behind_the_addresses() {
    let tags: [(u16, &[u8], bool); 16] = [
        (0x892f, &[0x10, 80, 0, 5], true),
        (0xf1c1, &[0, 0, 0, 5], true),
        (0x8926, &[0x80, 1, 0, 2], true),
        (0x893f, &[0, 1, 0, 2, 0, 0], true),
        (0x8909, &[1, 1, 0, 1, 0, 7], true),
        (0x8909, &[1, 2, 0, 1, 0, 7], false),
        (0xd28b, &[0, 1, 0, 0x10, 1, 2, 3, 4, 5, 6, 7, 8], true),
        (0xd28b, &[0, 1, 1, 0x10, 1, 2, 3, 4, 5, 6, 7, 8], true),
        (0xd28b, &[0, 1, 0, 0x11, 1, 2, 3, 4, 5, 6, 7, 8], true),
        (0xd28b, &[0, 1, 1, 0x20, 1, 2, 3, 4, 5, 6], true),
        (0xd28b, &[0, 1, 0, 0x30, 1, 2, 3, 4, 5, 6, 7, 8], false),
        (0xd28b, &[0, 2, 0, 0x10, 1, 2, 3, 4, 5, 6, 7, 8], false),
        (
            0x88e7,
            &[0, 0, 0, 9, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3],
            true,
        ),
        (0x8903, &[0, 0x41, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3], true),
        // MACsec and PTP have no content that can be read.
        (0x88e5, &[0x2c, 0, 0, 0], false),
        (0x88f7, &[0x2c, 0, 0, 0], false),
    ];
    let default = KeyReader::new(KeyOptions::default()).expect("good options");
    let plain = key_of(&default, &packet(LinkType::RAW, &ip_packet()));
    for vlan in [
        &[][..],
        &[0x81, 0, 0, 7],
        &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8],
    ] {
        for (ethertype, tag, known) in tags {
            let announced = ethertype.to_be_bytes();
            let header = [&ETHERNET[..12], vlan, &announced, tag, &[8, 0]].concat();
            assert_eq!(
                is_found(LinkType::ETHERNET, &header),
                known,
                "{ethertype:x} {tag:?}"
            );
            let bytes = [&header[..], &ip_packet()].concat();
            let key = key_of(&default, &packet(LinkType::ETHERNET, &bytes));
            assert_eq!(key == plain, known, "{ethertype:x} {tag:?}");
            // A VLAN tag may follow, too.
            let behind = [&ETHERNET[..12], &announced, tag, vlan, &[8, 0]].concat();
            assert_eq!(
                is_found(LinkType::ETHERNET, &behind),
                known,
                "{ethertype:x}"
            );
        }
    }
}

#[test]
fn frames_without_ip_are_equal_without_what_their_capture_added() {
    let beacon = wireless([0x80, 0], b"a network");
    let captured = |signal| [&[0, 0, 9, 0, 0x20, 0, 0, 0, signal][..], &beacon].concat();
    let (a, b) = (captured(200), captured(190));
    let [a, b] = [&a, &b].map(|bytes| packet(LinkType::RADIOTAP, bytes));
    let default = KeyReader::new(KeyOptions::default()).expect("good options");
    assert_ne!(key_of(&default, &a), key_of(&default, &b));
    let ignored: FieldSet = "capture-header".parse().expect("a field");
    let options = KeyOptions::default();
    let options = KeyOptions {
        ignore: options.ignore.union(ignored),
        ..options
    };
    let without = KeyReader::new(options).expect("good options");
    assert_eq!(key_of(&without, &a), key_of(&without, &b));
    let differing = without
        .ignored_fields(&a)
        .differing(&without.ignored_fields(&b));
    assert_eq!(differing, ignored);
}
