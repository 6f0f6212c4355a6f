//! What is noted of a packet until its copies have come, and the flow that it belongs to.

use std::collections::HashMap;
use std::iter;

use echoless::{KeyHash, KeyHasher};
use echoless_packets::key::IgnoredFields;
use echoless_packets::layers::{IpVersion, Layers, ShimKind, TransportKind};
use echoless_packets::{InterfaceId, Packet};

/// The VLAN identifier in tag control information.
const VLAN_ID: u16 = 0x0fff;

/// The most flows that are counted apart; with more, counting begins anew.
const MOST_FLOWS: usize = 1 << 17;

/// A flow with copies has one for at most so many packets. One in 2 if all packets are copied.
const PACKETS_FOR_A_COPY: u64 = 4;

/// A packet that is seen more often, each time soon after the time before, may be sent periodically.
pub(super) const MOST_TIMES: usize = 8;

/// A packet as one of its keys sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sighting {
    pub(super) number: u64,
    pub(super) time: Option<i64>,
    /// The latest time so far, at which a window judges the packet.
    pub(super) clock: i64,
    pub(super) interface: InterfaceId,
    /// The outermost VLAN.
    pub(super) vlan: Option<u16>,
    /// The time to live of the packet that is compared.
    pub(super) ttl: Option<u8>,
    /// The IP identification; 0 without one.
    pub(super) id: u16,
    /// Whether its sender has numbered it: with an identification that is not the same in all its
    /// flow. A packet that is sent again has another one.
    pub(super) is_numbered: bool,
    /// Whether it has an IP header; otherwise it is compared from the link layer on.
    pub(super) has_network: bool,
    /// Whether it is for one link only: without IP, or for link-local multicast.
    pub(super) is_on_link: bool,
    /// The addresses of the tunnel whose content is compared.
    pub(super) tunnel: Option<KeyHash>,
    /// Whether it is compared as far as a snap length goes.
    pub(super) is_snapped: bool,
    /// How many bytes tell it from other packets of equal length: up to the end of the transport
    /// header, from the first compared one on. `None` if there is no checksum in them.
    pub(super) told_by: Option<u32>,
    /// The captured bytes from the first compared one on, and whether some were not captured.
    pub(super) captured: usize,
    pub(super) is_cut: bool,
    /// The fields that the key leaves out.
    pub(super) ignored: IgnoredFields,
    pub(super) flow: KeyHash,
    /// The packets of the flow up to this one.
    pub(super) flow_packets: u64,
    /// How often the same packet was seen, each time soon after the time before, and the greatest
    /// distance between two times: in nanoseconds, or in packets if they have no times.
    pub(super) times: usize,
    pub(super) longest: u64,
    /// The numbers of the first pairs of these that were counted as copies.
    pub(super) series: [Option<u16>; MOST_TIMES - 1],
}

impl Sighting {
    /// The least window, in nanoseconds, in which this packet is judged and an earlier one has a
    /// verdict, too. It is longer than the time between them if the packets of a stream are not in
    /// the order of time.
    pub(super) fn window_from(&self, original: &Self) -> Option<u64> {
        let late = |packet: &Self| Some(packet.clock.abs_diff(packet.time?));
        let both = late(self)?.max(late(original)?);
        Some(both.max(self.clock.abs_diff(original.clock)))
    }

    /// The sighting of the packet in these layers, which are `outermost` or in a tunnel there.
    pub(super) fn new(
        packet: &Packet<'_>,
        outermost: &Layers,
        layers: &Layers,
        ignored: IgnoredFields,
    ) -> Self {
        let network = layers.network.as_ref();
        let ttl = network.map(|ip| match ip.version {
            IpVersion::V4 => packet.bytes[ip.start + 8],
            IpVersion::V6 => packet.bytes[ip.start + 7],
        });
        let number = |at| u16::from_be_bytes([packet.bytes[at], packet.bytes[at + 1]]);
        let v4 = network.filter(|ip| ip.version == IpVersion::V4);
        let id = v4.map_or(0, |ip| number(ip.start + 4));
        let is_on_link = network.is_none_or(|ip| match ip.version {
            IpVersion::V4 => packet.bytes[ip.start + 16..].starts_with(&[224, 0, 0]),
            IpVersion::V6 => number(ip.start + 24) & 0xff0f == 0xff02,
        });
        let told_by = network.zip(layers.transport).and_then(|(ip, header)| {
            let checksum = match header.kind {
                TransportKind::Tcp => 16,
                TransportKind::Udp => 6,
                TransportKind::Sctp => 8,
                TransportKind::Icmp | TransportKind::Icmpv6 => 2,
                TransportKind::Other => return None,
            };
            let is_told = id != 0 || number(header.start + checksum) != 0;
            // Packets are shorter than 4 GiB.
            is_told.then_some((header.end - ip.start) as u32)
        });
        let mut shims = outermost.shims.iter(packet.bytes);
        let vlan = shims
            .find(|shim| shim.kind == ShimKind::Vlan)
            .map(|shim| number(shim.start()) & VLAN_ID);
        Self {
            number: 0,
            time: packet.timestamp,
            clock: i64::MIN,
            interface: packet.interface,
            vlan,
            ttl,
            id,
            is_numbered: false,
            has_network: network.is_some(),
            is_on_link,
            tunnel: None,
            is_snapped: false,
            told_by,
            captured: packet.bytes.len() - network.map_or(layers.start, |ip| ip.start),
            is_cut: packet.bytes.len() < packet.original_len as usize,
            ignored,
            flow: KeyHash::from_uniform(0),
            flow_packets: 0,
            times: 1,
            longest: 0,
            series: [None; MOST_TIMES - 1],
        }
    }
}

/// The layers of the packet in all tunnels, if there is one.
pub(super) fn innermost(outermost: &Layers, bytes: &[u8]) -> Option<Layers> {
    let inner = |layers: &Layers| layers.inner(bytes);
    iter::successors(inner(outermost), inner).last()
}

/// The packets of a flow, and how many of them were equal to one shortly before.
#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    packets: u64,
    equal: u64,
    /// The last IP identification, and whether there was another one.
    id: u16,
    is_numbered: bool,
}

/// Flows: packets between the same addresses and ports, or of one protocol other than IP.
#[derive(Debug, Default)]
pub(super) struct Flows {
    all: HashMap<KeyHash, Flow>,
    /// The most equal packets in a flow where they are usual.
    pub(super) most_equal: u64,
}

impl Flows {
    /// Counts a packet of this flow, with this IP identification. Returns their number, and whether
    /// its sender has numbered it.
    pub(super) fn count(&mut self, flow: KeyHash, id: u16) -> (u64, bool) {
        if self.all.len() >= MOST_FLOWS && !self.all.contains_key(&flow) {
            self.all.clear();
        }
        let flow = self.all.entry(flow).or_default();
        flow.packets += 1;
        if id != 0 {
            flow.is_numbered |= flow.id != 0 && flow.id != id;
            flow.id = id;
        }
        (flow.packets, id != 0 && flow.is_numbered)
    }

    /// Notes that the last packet of this flow was equal to one shortly before, up to which the
    /// flow had so many packets. Returns whether equal packets are usual in the flow.
    pub(super) fn note_equal(&mut self, flow: KeyHash, packets: u64) -> bool {
        let flow = self.all.entry(flow).or_default();
        flow.equal += 1;
        // Copies that come late have more packets of the flow between them and their originals.
        let is_usual = flow.equal * PACKETS_FOR_A_COPY >= packets.min(flow.packets);
        if is_usual {
            self.most_equal = self.most_equal.max(flow.equal);
        }
        is_usual
    }
}

/// The flow of the packet with these layers.
pub(super) fn flow_of(hasher: &KeyHasher, layers: &Layers, bytes: &[u8]) -> KeyHash {
    use TransportKind::{Sctp, Tcp, Udp};
    let addresses = layers.network.map(|ip| match ip.version {
        IpVersion::V4 => &bytes[ip.start + 12..ip.start + 20],
        IpVersion::V6 => &bytes[ip.start + 8..ip.start + 40],
    });
    let transport = layers.transport;
    let transport = transport.filter(|header| matches!(header.kind, Tcp | Udp | Sctp));
    let ports = transport.map(|header| &bytes[header.start..header.start + 4]);
    let protocol = layers.ethertype.to_be_bytes();
    hasher.hash_fields([Some(&protocol[..]), addresses, ports])
}
