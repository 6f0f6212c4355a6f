//! The layers that `tshark` finds in the same files: addresses, ports, protocols, times to live,
//! identifications and VLANs, outermost first.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;

use echoless_packets::layers::{IpVersion, Layers, ShimKind, TransportKind};
use echoless_packets::synth::{Generator, Header, Stack};
use echoless_packets::writer::{PcapWriter, PcapngWriter};
use echoless_packets::{LinkType, Packet};

/// The fields, as `tshark` names them.
const FIELDS: [&str; 14] = [
    "ip.src",
    "ip.dst",
    "ip.proto",
    "ip.ttl",
    "ip.id",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.hlim",
    "tcp.srcport",
    "tcp.dstport",
    "udp.srcport",
    "udp.dstport",
    "sctp.srcport",
    "vlan.id",
];

/// Whether `tshark` is installed; a message if it is absent.
fn has_tshark() -> bool {
    let found = Command::new("tshark").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: tshark is absent");
    }
    found
}

/// Makes a header one that `tshark` reads the same way for every draw: options that move
/// addresses, errors that quote a packet, and ports of other protocols would add fields.
fn plain(header: &mut Header) {
    match header {
        Header::Ipv4(ip) => {
            ip.options.fill(1);
            // In GTP-U it takes the longest header for no IPv4.
            ip.options.truncate(36);
        }
        Header::Ipv6(ip) => {
            ip.options.iter_mut().for_each(|options| options.fill(0));
            // Padding, or a route that has been taken; no mobility.
            for (kind, content) in &mut ip.extensions {
                *kind = if *kind == 135 { 60 } else { *kind };
                content.fill(0);
            }
        }
        Header::Tcp(tcp) => {
            tcp.options.fill(1);
            (tcp.source, tcp.destination) = (tcp.source | 0xc000, tcp.destination | 0xc000);
        }
        Header::Udp {
            source,
            destination,
            ..
        } => (*source, *destination) = (*source | 0xc000, *destination | 0xc000),
        Header::Icmp { kind, .. } => *kind = 8,
        Header::Icmpv6 { kind, .. } => *kind = 128,
        // It guesses whether there is FabricPath.
        Header::Tag {
            ethertype: ethertype @ 0x8903,
            bytes,
        } => {
            *ethertype = 0xf1c1;
            bytes.truncate(4);
        }
        Header::Tag { .. } => {}
        // 802.1ad has fields of its own.
        Header::Vlan { tpid, .. } => *tpid = 0x8100,
        // Labels below 16 have a meaning.
        Header::Mpls { label, .. } => *label |= 0x8_0000,
        Header::Geneve { options, .. } => options.fill(0),
        Header::Ethernet { .. }
        | Header::Sll { .. }
        | Header::Sll2 { .. }
        | Header::Null
        | Header::Loop
        | Header::ControlWord
        | Header::Pppoe { .. }
        | Header::Sctp { .. }
        | Header::Gre { .. }
        | Header::Erspan { .. }
        | Header::Vxlan { .. }
        | Header::GtpU { .. }
        | Header::Capture { .. }
        | Header::Wireless { .. }
        | Header::Link { .. }
        | Header::Snap
        | Header::Hsr { .. }
        | Header::Tzsp { .. }
        | Header::L2tp { .. }
        | Header::EtherIp
        | Header::Opaque { .. } => {}
    }
}

/// Packets of all tunnels and shims in every link layer. Without pseudowires, whose content `tshark`
/// guesses by the addresses in it, and without an 802.3 length behind a tag other than a VLAN's,
/// which it takes for an `EtherType` (4.0.17); the standards have such tags in front of either.
fn stacks(count: usize) -> Vec<Stack> {
    let mut draws = Generator::new(11);
    let drawn = std::iter::repeat_with(|| draws.stack());
    let is_length_behind_tag = |pair: &[Header]| {
        matches!(
            pair,
            [Header::Hsr { .. } | Header::Tag { .. }, Header::Snap]
        )
    };
    let known = drawn.filter(|stack| {
        !stack.headers.contains(&Header::ControlWord)
            && !stack.headers.windows(2).any(is_length_behind_tag)
    });
    let mut stacks: Vec<Stack> = known.take(count).collect();
    for stack in &mut stacks {
        stack.headers.iter_mut().for_each(plain);
    }
    stacks
}

/// The values of [`FIELDS`] that the layers of a packet have, with commas in between.
fn own_fields(packet: &Packet<'_>) -> Vec<String> {
    let mut values = vec![Vec::new(); FIELDS.len()];
    let mut push = |field: &str, value: String| {
        let at = FIELDS.iter().position(|name| *name == field).unwrap();
        values[at].push(value);
    };
    let bytes = packet.bytes;
    let u16_at = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let mut level = Some(Layers::outermost(packet));
    while let Some(layers) = level {
        for shim in layers.shims.iter(bytes) {
            if shim.kind == ShimKind::Vlan {
                push("vlan.id", (u16_at(shim.start()) & 0xfff).to_string());
            }
        }
        if let Some(ip) = layers.network {
            let header = &bytes[ip.start..ip.end];
            match ip.version {
                IpVersion::V4 => {
                    let address =
                        |at: usize| Ipv4Addr::from(*header[at..].first_chunk::<4>().unwrap());
                    push("ip.src", address(12).to_string());
                    push("ip.dst", address(16).to_string());
                    push("ip.proto", ip.protocol.to_string());
                    push("ip.ttl", header[8].to_string());
                    push("ip.id", format!("0x{:04x}", u16_at(ip.start + 4)));
                }
                IpVersion::V6 => {
                    let address =
                        |at: usize| Ipv6Addr::from(*header[at..].first_chunk::<16>().unwrap());
                    push("ipv6.src", address(8).to_string());
                    push("ipv6.dst", address(24).to_string());
                    push("ipv6.hlim", header[7].to_string());
                }
            }
        }
        if let Some(transport) = layers.transport {
            let name = match transport.kind {
                TransportKind::Tcp => Some("tcp"),
                TransportKind::Udp => Some("udp"),
                TransportKind::Sctp => Some("sctp"),
                TransportKind::Icmp | TransportKind::Icmpv6 | TransportKind::Other => None,
            };
            if let Some(name) = name {
                push(
                    &format!("{name}.srcport"),
                    u16_at(transport.start).to_string(),
                );
                if name != "sctp" {
                    let destination = u16_at(transport.start + 2);
                    push(&format!("{name}.dstport"), destination.to_string());
                }
            }
        }
        level = layers.inner(bytes);
    }
    values.into_iter().map(|values| values.join(",")).collect()
}

/// The values of [`FIELDS`] that `tshark` finds in each packet of a file.
fn their_fields(file: &[u8]) -> Vec<Vec<String>> {
    let path = std::env::temp_dir().join(format!(
        "echoless-tshark-{}-{}",
        std::process::id(),
        file.len()
    ));
    std::fs::write(&path, file).unwrap();
    let mut command = Command::new("tshark");
    command.arg("-n").arg("-r").arg(&path);
    command.args(["-T", "fields", "-E", "separator=/t", "-E", "occurrence=a"]);
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let run = command.output().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(run.status.success(), "{run:?}");
    let text = String::from_utf8(run.stdout).unwrap();
    let fields = |line: &str| line.split('\t').map(str::to_owned).collect();
    text.lines().map(fields).collect()
}

#[test]
fn the_layers_of_tshark_are_found() {
    if !has_tshark() {
        return;
    }
    let stacks = stacks(4000);
    let frames: Vec<Vec<u8>> = stacks
        .iter()
        .map(|stack| stack.bytes(b"echoless"))
        .collect();
    let own: Vec<Vec<String>> = stacks
        .iter()
        .zip(&frames)
        .map(|(stack, frame)| own_fields(&stack.packet(frame)))
        .collect();
    // Every field and every depth occurs.
    for (at, field) in FIELDS.iter().enumerate() {
        assert!(own.iter().any(|values| !values[at].is_empty()), "{field}");
    }
    assert!(own.iter().any(|values| values[0].matches(',').count() == 2));

    let links = [
        LinkType::ETHERNET,
        LinkType::LINUX_SLL,
        LinkType::LINUX_SLL2,
        LinkType::NULL,
        LinkType::LOOP,
        LinkType::RAW,
        LinkType::RADIOTAP,
        LinkType::IEEE802_11,
        LinkType::PPP,
        LinkType::PPP_HDLC,
        LinkType::C_HDLC,
        LinkType::FRAME_RELAY,
        LinkType::IPOIB,
    ];
    // All of them are interfaces of one pcapng file, in either byte order.
    for big_endian in [false, true] {
        let mut all = PcapngWriter::new(big_endian);
        for link in links {
            all.interface(link, 0, &[]);
        }
        for (stack, frame) in stacks.iter().zip(&frames) {
            let interface = links.iter().position(|link| *link == stack.link()).unwrap();
            all.packet(interface as u32, 1_000_001, frame, frame.len() as u32);
        }
        compare(&their_fields(&all.into_bytes()), &own, &stacks);
    }
    // A pcap file has one link type.
    for link in links {
        let chosen = |at: &usize| stacks[*at].link() == link;
        let chosen: Vec<usize> = (0..stacks.len()).filter(chosen).collect();
        assert!(chosen.len() > 50, "{link:?}");
        let mut file = PcapWriter::new(link == LinkType::RAW, false, link);
        for at in &chosen {
            file.packet(1_000_001, &frames[*at], frames[*at].len() as u32);
        }
        let own: Vec<Vec<String>> = chosen.iter().map(|at| own[*at].clone()).collect();
        let stacks: Vec<Stack> = chosen.iter().map(|at| stacks[*at].clone()).collect();
        compare(&their_fields(&file.into_bytes()), &own, &stacks);
    }
}

fn compare(theirs: &[Vec<String>], own: &[Vec<String>], stacks: &[Stack]) {
    assert_eq!(theirs.len(), own.len());
    for ((theirs, own), stack) in theirs.iter().zip(own).zip(stacks) {
        assert_eq!(own, theirs, "{FIELDS:?} of {stack:?}");
    }
}
