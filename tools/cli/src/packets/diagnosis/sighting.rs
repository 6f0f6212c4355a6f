//! What is noted of a packet until its copies have come, and the flow that it belongs to.

use std::collections::HashMap;
use std::iter;

use echoless::{KeyHash, KeyHasher};
use echoless_packets::key::IgnoredFields;
use echoless_packets::layers::{IpVersion, Layers, ShimKind, TransportKind};
use echoless_packets::{InterfaceId, Packet};

use super::cause::Match;

/// The VLAN identifier in tag control information.
const VLAN_ID: u16 = 0x0fff;

/// The most flows that are counted apart; with more, counting begins anew.
const MOST_FLOWS: usize = 1 << 17;

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
    /// Whether its sender has numbered it: an IP identification that is not 0. A packet that is sent
    /// again has another one.
    pub(super) is_numbered: bool,
    /// Whether it has an IP header; otherwise it is compared from the link layer on.
    pub(super) has_network: bool,
    /// The key that sees it.
    pub(super) seen_by: Match,
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
    pub(super) times: u32,
    pub(super) longest: u64,
}

impl Sighting {
    /// This sighting with the place in the stream of another one of the same packet.
    pub(super) fn numbered_as(self, other: &Self) -> Self {
        Self {
            number: other.number,
            clock: other.clock,
            flow: other.flow,
            flow_packets: other.flow_packets,
            ..self
        }
    }

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
        let is_numbered = network.is_some_and(|ip| {
            ip.version == IpVersion::V4 && packet.bytes[ip.start + 4..ip.start + 6] != [0, 0]
        });
        let mut shims = outermost.shims.iter(packet.bytes);
        let vlan = shims.find(|shim| shim.kind == ShimKind::Vlan).map(|shim| {
            let tag = [packet.bytes[shim.start()], packet.bytes[shim.start() + 1]];
            u16::from_be_bytes(tag) & VLAN_ID
        });
        Self {
            number: 0,
            time: packet.timestamp,
            clock: i64::MIN,
            interface: packet.interface,
            vlan,
            ttl,
            is_numbered,
            has_network: network.is_some(),
            seen_by: if layers.start == outermost.start {
                Match::Whole
            } else {
                Match::Inner
            },
            captured: packet.bytes.len() - network.map_or(layers.start, |ip| ip.start),
            is_cut: packet.bytes.len() < packet.original_len as usize,
            ignored,
            flow: KeyHash::from_uniform(0),
            flow_packets: 0,
            times: 1,
            longest: 0,
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
}

/// Flows: packets between the same addresses and ports, or of one protocol other than IP.
#[derive(Debug, Default)]
pub(super) struct Flows(HashMap<KeyHash, Flow>);

impl Flows {
    /// Counts a packet of this flow. Returns their number.
    pub(super) fn count(&mut self, flow: KeyHash) -> u64 {
        if self.0.len() >= MOST_FLOWS && !self.0.contains_key(&flow) {
            self.0.clear();
        }
        let flow = self.0.entry(flow).or_default();
        flow.packets += 1;
        flow.packets
    }

    /// Notes that the last packet of this flow was equal to one shortly before. Returns how many
    /// were, and how many packets there are.
    pub(super) fn note_equal(&mut self, flow: KeyHash) -> (u64, u64) {
        let flow = self.0.entry(flow).or_default();
        flow.equal += 1;
        (flow.equal, flow.packets)
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
