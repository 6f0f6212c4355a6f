//! `echoless gen packets`: captures with known copies.

use std::collections::HashSet;

use echoless_packets::framing::{BlockKind, Framer, Next, PacketBlock};

use crate::packets_support::packets;
use crate::run::{assert_errors, echoless};

fn generate(args: &[&str]) -> Vec<u8> {
    let mut all = vec!["gen", "packets", "-n", "2000", "--duplicates", "0.25"];
    all.extend_from_slice(args);
    echoless(&all, b"").bytes()
}

/// The packets of a file.
fn framed(file: &[u8]) -> Vec<PacketBlock> {
    let (mut framer, mut at, mut packets) = (Framer::new(), 0, Vec::new());
    while let Next::Block { range, kind } = framer.next_block(file, at, true).unwrap() {
        at = range.end;
        if let BlockKind::Packet(packet) = kind {
            packets.push(packet);
        }
    }
    packets
}

/// The number of packets without the copies: the different positions in their payloads.
fn originals(file: &[u8]) -> usize {
    let position = |packet: &PacketBlock| {
        let frame = &file[packet.data.clone()];
        let tag = if frame[12..14] == [0x81, 0] { 4 } else { 0 };
        frame[tag + 42..tag + 50].to_vec()
    };
    let positions: HashSet<Vec<u8>> = framed(file).iter().map(position).collect();
    positions.len()
}

#[test]
fn the_copies_are_those_that_are_removed() {
    for args in [
        &[][..],
        &["--pcapng"],
        &["--pcapng", "--nanoseconds", "--seed", "3"],
        &["--nanoseconds", "--frame-bytes", "60"],
        &["--copies", "ttl,mac,vlan", "--gap", "7"],
        &["--distribution", "zipf"],
    ] {
        let capture = generate(args);
        assert_eq!(framed(&capture).len(), 2000, "{args:?}");
        let fresh = originals(&capture);
        assert!((1400..1600).contains(&fresh), "{args:?}: {fresh}");
        let kept = packets(
            &["--count", "--window-packets", "2000", "-m", "1MiB"],
            &capture,
        );
        assert_eq!(kept.text(), format!("{fresh}\n"), "{args:?}");
        assert_eq!(generate(args), capture);
    }
    assert_ne!(generate(&["--seed", "1"]), generate(&["--seed", "2"]));
}

#[test]
fn changed_copies_differ_where_they_should() {
    let all = |capture: &[u8]| packets(&["--from", "link", "--ignore", "none", "--count"], capture);
    for changes in ["ttl", "mac", "vlan"] {
        let capture = generate(&["--copies", changes]);
        // Two copies of one packet are changed alike.
        let frames = framed(&capture);
        let frames: HashSet<&[u8]> = frames.iter().map(|it| &capture[it.data.clone()]).collect();
        assert!(frames.len() > originals(&capture) + 300, "{changes}");
        let kept = all(&capture).text();
        assert_eq!(kept, format!("{}\n", frames.len()), "{changes}");
    }
    let capture = generate(&["--copies", "none"]);
    assert_eq!(all(&capture).text(), format!("{}\n", originals(&capture)));
}

#[test]
fn lengths_times_and_snap_lengths() {
    let imix = generate(&[]);
    let lengths: HashSet<usize> = framed(&imix)
        .iter()
        .map(|packet| packet.data.len())
        .collect();
    assert_eq!(lengths, HashSet::from([60, 590, 1514]));
    let capture = generate(&["--frame-bytes", "100", "--snap", "80", "--rate", "500000"]);
    let packets = framed(&capture);
    assert!(packets.iter().all(|packet| packet.data.len() == 80));
    assert!(packets.iter().all(|packet| packet.original_len == 100));
    let time = |at: usize| packets[at].timestamp.unwrap();
    assert_eq!(time(1) - time(0), 2000);
    assert_eq!(time(1999) - time(0), 1999 * 2000);
}

#[test]
fn invalid_options_are_one_line() {
    assert_errors(
        |args| echoless([&["gen"], args].concat(), b""),
        &[
            "packets --frame-bytes 59 | invalid --frame-bytes=59: expected imix or 60 to 9216",
            "packets --frame-bytes x | invalid --frame-bytes=x: expected imix or 60",
            "packets --copies ttl,ip --duplicates .1 | invalid --copies=ip: expected ttl, mac, vlan or none alone",
            "packets --rate 0 | invalid --rate=0: expected a whole number above 0",
            "packets --rate 2G | invalid --rate=2G: expected 1 to 1G",
            "packets --header | invalid KIND=packets: expected cdr with --header",
            "packets --record-bytes 9 | invalid --record-bytes=9: expected no length except",
            "cdr --pcapng | invalid KIND=cdr: expected packets with --pcapng",
            "keys --rate 5 | invalid KIND=keys: expected packets with --rate",
        ],
    );
}
