//! The same packets and files as other crates read them: etherparse and pcap-file.

use echoless_packets::layers::{IpVersion, Layers, ShimKind, TransportKind};
use echoless_packets::synth::{Generator, Header, Stack};
use echoless_packets::writer::{PcapWriter, PcapngWriter};
use echoless_packets::{InterfaceId, LinkType};
use etherparse::{LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};

use crate::support::packets;

/// Where `part` begins in `whole`.
fn offset_of(whole: &[u8], part: &[u8]) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

/// Compares the layers of a frame, cut to `captured` bytes, with those that etherparse finds.
fn compare(stack: &Stack, bytes: &[u8], captured: usize) {
    let packet = echoless_packets::Packet {
        bytes: &bytes[..captured],
        ..stack.packet(bytes)
    };
    let layers = Layers::outermost(&packet);
    let sliced = match stack.link() {
        LinkType::ETHERNET => LaxSlicedPacket::from_ethernet(packet.bytes).expect("a frame"),
        _ => LaxSlicedPacket::from_ip(packet.bytes).expect("a packet"),
    };
    let network = match &sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) => Some((IpVersion::V4, ip.header().slice())),
        Some(LaxNetSlice::Ipv6(ip)) => Some((IpVersion::V6, ip.header().slice())),
        Some(LaxNetSlice::Arp(_)) | None => None,
    };
    let own = layers.network.map(|ip| (ip.version, ip.start));
    let theirs = network.map(|(version, slice)| (version, offset_of(packet.bytes, slice)));
    // There an IPv4 header with cut options is cut, too.
    if theirs.is_none() && layers.network.is_some_and(|ip| ip.cut) {
        return;
    }
    assert_eq!(own, theirs, "{stack:?} cut to {captured}");
    let Some(ip) = layers.network.filter(|ip| !ip.fragment && !ip.cut) else {
        return;
    };
    let (kind, header) = match &sliced.transport {
        Some(TransportSlice::Tcp(tcp)) => (TransportKind::Tcp, tcp.header_slice()),
        Some(TransportSlice::Udp(udp)) => (
            TransportKind::Udp,
            udp.slice().get(..8).unwrap_or(udp.slice()),
        ),
        Some(TransportSlice::Icmpv4(icmp)) => (TransportKind::Icmp, &icmp.slice()[..8]),
        Some(TransportSlice::Icmpv6(icmp)) => (TransportKind::Icmpv6, &icmp.slice()[..8]),
        Some(TransportSlice::Igmp(_)) | None => {
            let kind = layers.transport.map(|transport| transport.kind);
            assert!(
                matches!(kind, Some(TransportKind::Other | TransportKind::Sctp)),
                "{kind:?}: {stack:?} cut to {captured}"
            );
            return;
        }
    };
    let transport = layers.transport.expect("no fragment");
    // etherparse gives ICMP types with a longer header their own length; the fixed part is 8 bytes.
    assert_eq!(
        (transport.kind, transport.start),
        (kind, offset_of(packet.bytes, header))
    );
    assert_eq!(transport.end - transport.start, header.len());
    assert_eq!(ip.end, transport.start);
}

/// Drops what etherparse does not read: MPLS, PPPoE, tags, LLC, tunnels, and some extension
/// headers.
fn plain(stack: &Stack) -> Option<Stack> {
    let readable = |header: &Header| {
        if let Header::Ipv6(ip) = header {
            // Only chains in the order of RFC 8200.
            let kinds: Vec<u8> = ip.extensions.iter().map(|(kind, _)| *kind).collect();
            return match &kinds[..] {
                [] | [0 | 43] => true,
                [60] => ip.options.is_none(),
                _ => false,
            };
        }
        !matches!(
            header,
            Header::Mpls { .. }
                | Header::Pppoe { .. }
                | Header::ControlWord
                | Header::Hsr { .. }
                | Header::Tag { .. }
                | Header::Snap
                | Header::EtherIp
        )
    };
    let link = [LinkType::ETHERNET, LinkType::RAW].contains(&stack.link());
    (link && stack.headers.iter().all(readable)).then(|| stack.clone())
}

#[test]
fn layers_as_etherparse_reads_them() {
    let mut generator = Generator::new(1);
    let mut compared = 0;
    for _ in 0..8000 {
        let (stack, payload) = (generator.stack(), generator.payload(80));
        let Some(stack) = plain(&stack) else { continue };
        let mut bytes = stack.bytes(&payload);
        if stack.link() == LinkType::ETHERNET {
            bytes.extend(generator.payload(8));
        }
        // etherparse needs a whole Ethernet and IP header to begin with.
        let cut = 60 + generator.below(bytes.len() as u64) as usize;
        compare(&stack, &bytes, bytes.len());
        compare(&stack, &bytes, cut.min(bytes.len()));
        compared += 1;
    }
    assert!(compared > 800, "{compared} compared");
}

#[test]
fn vlan_tags_as_etherparse_reads_them() {
    let stack = Stack::new(vec![
        Header::ethernet(),
        Header::Vlan {
            tpid: 0x88a8,
            tci: 0xf123,
        },
        Header::vlan(7),
        Header::ipv4(),
        Header::udp(),
    ]);
    let bytes = stack.bytes(b"abc");
    let sliced = LaxSlicedPacket::from_ethernet(&bytes).expect("a frame");
    let theirs: Vec<u16> = sliced.vlan_ids().iter().map(|id| id.value()).collect();
    let layers = Layers::outermost(&stack.packet(&bytes));
    let own: Vec<u16> = layers
        .shims
        .iter(&bytes)
        .filter(|shim| shim.kind == ShimKind::Vlan)
        .map(|shim| u16::from_be_bytes([bytes[shim.start()], bytes[shim.start() + 1]]) & 0xfff)
        .collect();
    assert_eq!(own, theirs);
    assert_eq!(own, [0x123, 7]);
}

#[test]
fn pcap_files_as_pcap_file_reads_them() {
    for (big_endian, nanoseconds) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut generator = Generator::new(2);
        let mut file = PcapWriter::new(big_endian, nanoseconds, LinkType::LINUX_SLL2);
        for _ in 0..200 {
            let payload = generator.payload(300);
            let time = generator.below(4_000_000_000_000_000);
            file.packet(
                time,
                &payload,
                payload.len() as u32 + generator.below(2) as u32,
            );
        }
        let file = file.into_bytes();
        let mut theirs = PcapReader::new(&file[..]).expect("a pcap file");
        let mut compared = 0;
        for block in packets(&file) {
            let packet = block.packet(&file);
            let other = theirs
                .next_packet()
                .expect("a packet")
                .expect("a good packet");
            assert_eq!(packet.bytes, &other.data[..]);
            assert_eq!(packet.original_len, other.orig_len);
            let nanos = i64::try_from(other.timestamp.as_nanos()).expect("in range");
            assert_eq!(packet.timestamp, Some(nanos));
            let (link, interface) = (packet.link, packet.interface);
            assert_eq!(
                (link, interface),
                (LinkType::LINUX_SLL2, InterfaceId::default())
            );
            compared += 1;
        }
        assert!(theirs.next_packet().is_none());
        assert_eq!(compared, 200);
    }
}

#[test]
fn pcapng_files_as_pcap_file_reads_them() {
    for big_endian in [false, true] {
        let mut generator = Generator::new(3);
        let mut file = PcapngWriter::new(big_endian);
        file.interface(LinkType::ETHERNET, 0, &[]);
        file.interface(LinkType::RAW, 0, &[]);
        for _ in 0..200 {
            let payload = generator.payload(300);
            let interface = generator.below(2) as u32;
            file.packet(
                interface,
                generator.below(1 << 50),
                &payload,
                payload.len() as u32,
            );
            file.block(0x0bad_0001, &payload);
        }
        let file = file.into_bytes();
        let mut theirs = PcapNgReader::new(&file[..]).expect("a pcapng file");
        let mut found = packets(&file).into_iter();
        let mut compared = 0;
        while let Some(block) = theirs.next_block() {
            let Block::EnhancedPacket(other) = block.expect("a good block") else {
                continue;
            };
            let packet = found.next().expect("as many packets").packet(&file);
            assert_eq!(packet.bytes, &other.data[..]);
            assert_eq!(packet.interface.index, other.interface_id);
            assert_eq!(packet.original_len, other.original_len);
            compared += 1;
        }
        assert_eq!((found.next(), compared), (None, 200));
    }
}
