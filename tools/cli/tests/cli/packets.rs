//! Keys and options of `echoless packets`.

use std::fs;

use echoless_packets::LinkType;
use echoless_packets::key::Field;
use echoless_packets::synth::{Header, Stack};
use echoless_packets::writer::PcapWriter;

use crate::packets_support::{frame, numbered, packet_blocks, packets, pcap, pcapng, with_ttl};
use crate::run::{assert_errors, echoless, file};

/// How many packets of this capture are kept.
#[track_caller]
fn kept(args: &[&str], capture: &[u8]) -> usize {
    packet_blocks(&packets(args, capture).bytes()).len()
}

/// A capture of these packets, a microsecond apart.
fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
    pcap(&(0..).zip(frames.iter().cloned()).collect::<Vec<_>>())
}

fn stack(headers: Vec<Header>) -> Vec<u8> {
    Stack::new(headers).bytes(b"payload")
}

#[test]
fn what_a_router_changes_is_ignored_unless_it_is_asked_for() {
    let routed = capture(&[with_ttl(1, 64), with_ttl(1, 63)]);
    for (args, expected) in [
        (&[][..], 1),
        (&["--ignore", "ttl,checksum"], 1),
        (&["--ignore", "ttl"], 2),
        (&["--ignore", "none"], 2),
        (&["--ignore", "none", "--from", "transport"], 1),
        (&["--from", "link"], 1),
    ] {
        assert_eq!(kept(args, &routed), expected, "{args:?}");
    }
}

#[test]
fn layers_and_fields_of_the_link() {
    let mac = |last: u8| Header::Ethernet {
        destination: [2; 6],
        source: [2, 0, 0, 0, 0, last],
    };
    let vlan = |tci| Header::Vlan { tpid: 0x8100, tci };
    let ip = || vec![Header::ipv4(), Header::udp()];
    let frames = capture(&[
        stack([vec![mac(1)], ip()].concat()),
        stack([vec![mac(2)], ip()].concat()),
        stack([vec![mac(2), vlan(5)], ip()].concat()),
        stack([vec![mac(2), vlan(6)], ip()].concat()),
    ]);
    for (args, expected) in [
        (&[][..], 1),
        (&["--from", "link"], 4),
        (&["--from", "link", "--ignore", "mac"], 3),
        (&["--from", "link", "--ignore", "mac,vlan"], 1),
        (&["--from", "payload"], 1),
        (&["--group", "vlan"], 3),
        (&["--group", "interface"], 1),
    ] {
        assert_eq!(kept(args, &frames), expected, "{args:?}");
    }
}

#[test]
fn interfaces_are_groups_if_asked_for() {
    let mut file = pcapng(false);
    file.interface(LinkType::ETHERNET, 0, &[(9, &[9])]);
    for interface in [0, 1, 0, 1] {
        file.packet(interface, 5, &frame(1), 50);
    }
    let file = file.into_bytes();
    assert_eq!(kept(&[], &file), 1);
    assert_eq!(kept(&["--group", "interface"], &file), 2);
}

#[test]
fn the_innermost_packet_of_a_tunnel() {
    let inner = || vec![Header::ethernet(), Header::ipv4(), Header::udp()];
    let outer = |vni| {
        let vxlan = Header::Vxlan { vni };
        vec![Header::ethernet(), Header::ipv4(), Header::udp(), vxlan]
    };
    let frames = capture(&[
        stack(inner()),
        stack([outer(1), inner()].concat()),
        stack([outer(2), inner()].concat()),
    ]);
    assert_eq!(kept(&[], &frames), 3);
    assert_eq!(kept(&["--inner"], &frames), 1);
}

#[test]
fn the_two_copies_of_redundant_networks() {
    let copies = [0xa0, 0xb0].map(|network| {
        let goose = Header::Opaque { ethertype: 0x88b8 };
        let mut frame = Stack::new(vec![Header::ethernet(), goose]).bytes(&[7; 50]);
        frame.extend([0, 9, network, 56, 0x88, 0xfb]);
        frame
    });
    let copies = capture(&copies);
    assert_eq!(kept(&[], &copies), 1);
    assert_eq!(kept(&["--ignore", "ttl,checksum"], &copies), 2);
}

#[test]
fn headers_that_are_not_understood_can_be_skipped() {
    let mut file = PcapWriter::new(false, false, LinkType(147));
    for header in [1, 2] {
        let ip = stack(vec![Header::ipv4(), Header::udp()]);
        let frame = [&[header; 6][..], &ip].concat();
        file.packet(0, &frame, frame.len() as u32);
    }
    let file = file.into_bytes();
    assert_eq!(kept(&["--skip-bytes", "5"], &file), 2);
    assert_eq!(kept(&["--skip-bytes", "6"], &file), 1);
}

#[test]
fn parts_of_the_payload() {
    let udp = |payload: &[u8]| {
        let headers = vec![Header::ethernet(), Header::ipv4(), Header::udp()];
        Stack::new(headers).bytes(payload)
    };
    let frames = capture(&[udp(b"abcd-1"), udp(b"abcd-2"), udp(b"abcx-1")]);
    for (limit, expected) in [("6", 3), ("4", 2), ("3", 1), ("0", 1)] {
        assert_eq!(
            kept(&["--payload-bytes", limit], &frames),
            expected,
            "{limit}"
        );
    }
    // The second capture cut the packet behind 60 bytes of the IP packet.
    let long = udp(&[7; 300]);
    let mut file = PcapWriter::new(false, false, LinkType::ETHERNET);
    file.packet(1, &long, long.len() as u32);
    file.packet(2, &long[..74], long.len() as u32);
    let cut = file.into_bytes();
    for (args, expected) in [
        (&[][..], 2),
        (&["--snap-safe", "60"], 1),
        (&["--snap-safe", "61"], 2),
    ] {
        assert_eq!(kept(args, &cut), expected, "{args:?}");
    }
}

#[test]
fn invalid_options_are_one_line() {
    assert_errors(
        |args| packets(args, &numbered(&[1])),
        &[
            "--window 5 | invalid --window=5: expected a time such as 100ms",
            "--window 0.05 | invalid --window=0.05: expected a time such as 100ms, 500us or 0.05s",
            "--window 0s | invalid --window=0s: expected a time",
            "--window -1s | invalid --window=-1s: expected a time",
            "--window-packets 0 | invalid --window-packets=0: expected a number of packets, 1 to",
            "--window-packets 10000000T | invalid --window-packets=10000000T: expected a number",
            "--window 300000d | at most 106751d",
            "--window-packets 1s | invalid --window-packets=1s: expected a number of packets",
            "--window-packets 18446744073709551615 | invalid --window-packets=",
            "--from ip | invalid --from=ip: expected link, network, transport, payload",
            "--ignore ttl,colour | invalid --ignore=colour: expected capture-header, mac, vlan",
            "--ignore mac --ignore vlan | the argument '--ignore <FIELDS>' cannot be used multiple",
            "--group mac | invalid --group=mac: expected none, interface, vlan",
            "--group vlan --ignore vlan | invalid --group=vlan: expected none or interface",
            "--snap-safe 39 | invalid --snap-safe=39: expected at least 40 bytes",
            "--snap-safe x | invalid --snap-safe=x: expected a number of bytes",
            "--skip-bytes -1 | invalid --skip-bytes=-1: expected a number of bytes",
            "--from payload --payload-bytes 0 | invalid --payload-bytes=0: expected at least 1",
            "--payload-bytes -1 | invalid --payload-bytes=-1: expected a number of bytes",
            "-m 0 | invalid --memory=0: expected 1 byte or more",
            "-m 16 | invalid memory=16",
            "--threads 0 | invalid --threads=0: expected a whole number from 1 to 1024",
            "--invert --duplicates x | cannot be used with",
            "--key 1 | unexpected argument '--key' found",
            "--hash-key no-such-key | no-such-key: No such file",
        ],
    );
}

#[test]
fn the_keyed_hash_gives_the_same_packets() {
    let directory = tempfile::tempdir().unwrap();
    let key = file(directory.path(), "key", b"00112233445566778899aabbccddeeff");
    let capture = numbered(&[1, 2, 1, 3, 2]);
    let expected = packets(&[], &capture).bytes();
    assert_eq!(packets(&["--hash-key", &key], &capture).bytes(), expected);
    assert_eq!(packets(&["--seed", "7"], &capture).bytes(), expected);
    assert_eq!(fs::read(key).unwrap().len(), 32);
}

#[test]
fn help_and_page_list_every_field() {
    let page = include_str!("../../PACKETS.md");
    let help = echoless(["packets", "--help"], b"").text();
    for field in Field::ALL {
        let name = field.name();
        assert!(page.contains(&format!("`{name}`")), "{name}");
        let words = help.split(|letter: char| !letter.is_ascii_alphabetic() && letter != '-');
        assert!(words.into_iter().any(|word| word == name), "{name}");
    }
}
