//! Copies behind link headers, tags and tunnels of all kinds, and packets whose headers are cut or
//! have no length.

use echoless_packets::LinkType;
use echoless_packets::synth::{Header, Stack};
use echoless_packets::writer::PcapWriter;

use crate::packets_support::{packet_blocks, packets};

/// A packet of UDP in IPv4 with this time to live, behind these headers.
fn behind(mut headers: Vec<Header>, ttl: u8) -> Stack {
    let mut ip = Header::ipv4();
    if let Header::Ipv4(ip) = &mut ip {
        ip.ttl = ttl;
    }
    headers.extend([ip, Header::udp()]);
    Stack::new(headers)
}

/// How many packets are kept of these frames, which the capture cut to `snap` bytes.
#[track_caller]
fn kept(args: &[&str], link: LinkType, frames: &[Vec<u8>], snap: usize) -> usize {
    let mut file = PcapWriter::new(false, false, link);
    for (time, frame) in (0..).zip(frames) {
        let captured = &frame[..snap.min(frame.len())];
        file.packet(time, captured, frame.len() as u32);
    }
    packet_blocks(&packets(args, &file.into_bytes()).bytes()).len()
}

#[test]
fn copies_behind_link_headers_are_dropped() {
    let ethernet = Header::ethernet;
    let tag = |ethertype, bytes: &[u8]| Header::Tag {
        ethertype,
        bytes: bytes.to_vec(),
    };
    let link = |kind, bytes: &[u8]| Header::Link {
        kind,
        bytes: bytes.to_vec(),
    };
    // The headers of a packet and of its copy.
    let pairs = [
        [vec![ethernet()], vec![ethernet(), Header::Snap]],
        [
            vec![ethernet()],
            vec![ethernet(), tag(0xf1c1, &[0, 0, 0, 9])],
        ],
        [vec![ethernet()], vec![ethernet(), tag(0x8926, &[0; 4])]],
        [vec![ethernet()], vec![ethernet(), tag(0x893f, &[0; 6])]],
        [
            vec![ethernet()],
            vec![ethernet(), tag(0x8909, &[1, 1, 0, 1, 0, 7])],
        ],
        [1, 2].map(|time| {
            vec![
                ethernet(),
                tag(0xd28b, &[0, 1, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, time]),
            ]
        }),
        [0, 1].map(|path| vec![ethernet(), Header::Hsr { path, sequence: 3 }]),
        [200, 190].map(|signal| {
            vec![
                Header::radiotap(signal.into(), signal),
                Header::wireless(),
                Header::Snap,
            ]
        }),
        [
            vec![link(LinkType::PPP, &[0xff, 3])],
            vec![link(LinkType::PPP, &[])],
        ],
        [0x0f, 0x8f].map(|address| vec![link(LinkType::C_HDLC, &[address, 0])]),
        [1, 2].map(|mark| {
            vec![link(
                LinkType::NFLOG,
                &[2, 0, 0, 0, 8, 0, 3, 0, 0, 0, 0, mark],
            )]
        }),
    ];
    for [first, copy] in pairs {
        let stacks = [behind(first, 64), behind(copy, 63)];
        let frames = stacks.each_ref().map(|stack| stack.bytes(b"hello"));
        let link = stacks[0].link();
        assert_eq!(kept(&[], link, &frames, 1000), 1, "{stacks:?}");
        let from_link = ["--from", "link", "--ignore", "ttl,checksum"];
        assert_eq!(kept(&from_link, link, &frames, 1000), 2, "{stacks:?}");
        let other = [frames[0].clone(), stacks[1].bytes(b"hallo")];
        assert_eq!(kept(&[], link, &other, 1000), 2, "{stacks:?}");
    }
}

#[test]
fn copies_in_sniffing_tunnels_are_dropped_if_asked_for() {
    let tzsp = |ttl, outer| {
        let mut headers = behind(vec![Header::ethernet()], outer).headers;
        headers.extend([Header::Tzsp { fields: vec![0] }, Header::ethernet()]);
        behind(headers, ttl).bytes(b"hello")
    };
    // Another sender of the tunnel, which gives its own numbers.
    let mut copy = tzsp(63, 64);
    copy[19] ^= 1;
    let frames = [tzsp(64, 64), copy];
    assert_eq!(kept(&[], LinkType::ETHERNET, &frames, 1000), 2);
    assert_eq!(kept(&["--inner"], LinkType::ETHERNET, &frames, 1000), 1);
}

#[test]
fn the_two_copies_of_redundant_networks() {
    let frame = |network: u8| {
        let goose = Header::Opaque { ethertype: 0x88b8 };
        let mut frame = Stack::new(vec![Header::ethernet(), goose]).bytes(&[7; 50]);
        frame.extend([0, 9, network << 4, 56, 0x88, 0xfb]);
        frame
    };
    let frames = [frame(0xa), frame(0xb)];
    for (args, expected) in [
        (&[][..], 1),
        (&["--from", "link"], 1),
        (&["--ignore", "ttl,checksum"], 2),
        (&["--ignore", "none"], 2),
    ] {
        assert_eq!(
            kept(args, LinkType::ETHERNET, &frames, 1000),
            expected,
            "{args:?}"
        );
    }
}

#[test]
fn an_ipv6_length_of_0_hides_nothing() {
    for protocol in [47, 50, 58, 253] {
        let frames = [[1; 60], [2; 60]].map(|content| {
            let mut ip = Header::ipv6();
            if let Header::Ipv6(ip) = &mut ip {
                ip.protocol = protocol;
            }
            let mut frame = Stack::new(vec![Header::ethernet(), ip]).bytes(&content);
            frame[18..20].fill(0);
            frame
        });
        assert_eq!(
            kept(&[], LinkType::ETHERNET, &frames, 1000),
            2,
            "{protocol}"
        );
    }
}

#[test]
fn packets_with_cut_extension_headers_are_compared_as_far_as_they_go() {
    for kind in [0, 43, 51, 60, 135] {
        let frame = |hop_limit, mac, last| {
            let mut ip = Header::ipv6();
            if let Header::Ipv6(ip) = &mut ip {
                ip.hop_limit = hop_limit;
                let mut route = vec![1; 54];
                route[5] = last;
                ip.extensions = vec![(kind, route)];
            }
            let destination = [2, 0, 0, 0, 0, mac];
            let source = [2; 6];
            let ethernet = Header::Ethernet {
                destination,
                source,
            };
            Stack::new(vec![ethernet, ip, Header::udp()]).bytes(b"hello")
        };
        let frames = [frame(64, 1, 1), frame(63, 2, 1), frame(64, 1, 2)];
        for snap in [62, 68, 90, 1000] {
            assert_eq!(
                kept(&[], LinkType::ETHERNET, &frames, snap),
                2,
                "{kind} {snap}"
            );
        }
        let args = ["--snap-safe", "60"];
        assert_eq!(kept(&args, LinkType::ETHERNET, &frames, 1000), 2, "{kind}");
    }
}

#[test]
fn headers_that_are_not_understood_can_be_skipped() {
    let frame = |header: u8, ttl, payload: &[u8]| {
        [&[header; 6][..], &behind(vec![], ttl).bytes(payload)].concat()
    };
    let frames = [
        frame(1, 64, b"hello"),
        frame(2, 64, b"hello"),
        frame(3, 63, b"hello"),
        frame(1, 64, b"hallo"),
    ];
    for (skip, expected) in [("0", 4), ("5", 4), ("6", 2), ("7", 3)] {
        let args = ["--skip-bytes", skip];
        assert_eq!(
            kept(&args, LinkType(147), &frames, 1000),
            expected,
            "{skip}"
        );
    }
    // As with `editcap -I 26`: addresses and ports are compared, and what follows.
    let ethernet = |ttl, payload: &[u8]| behind(vec![Header::ethernet()], ttl).bytes(payload);
    let mut other_id = ethernet(64, b"hello");
    other_id[19] ^= 1;
    let frames = [ethernet(64, b"hello"), other_id, ethernet(64, b"hallo")];
    for (args, expected) in [(&[][..], 3), (&["--skip-bytes", "26"], 2)] {
        assert_eq!(kept(args, LinkType::ETHERNET, &frames, 1000), expected);
    }
}
