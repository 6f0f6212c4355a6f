//! The packets that most captures consist of, recognised by a few comparisons.

use super::link::{ETHERNET_LEN, LinkHeader};
use super::network::{IPV4_LEN, IPV6_LEN, IpVersion, Network};
use super::shim::{Shims, VLAN_LEN, is_vlan};
use super::stack::{Layers, Span};
use super::transport::{TCP, TCP_LEN, Transport, TransportKind, UDP, UDP_LEN};
use crate::bytes::array;
use crate::packet::{LinkType, Packet};

/// The most bytes of the headers of a plain packet: Ethernet with a VLAN tag, IPv6, TCP with
/// options.
pub(crate) const PLAIN_HEADERS: usize = ETHERNET_LEN + 2 + VLAN_LEN + IPV6_LEN + 60;

/// A packet that was captured whole, of Ethernet with at most one VLAN tag; IPv4 without options,
/// or IPv6 without extension headers, no fragment, with a length; and UDP or TCP.
///
/// It has the layers that [`Layers::outermost`] finds, but they are not in memory:
/// [`layers`](Self::layers) is called with constants, so what depends on them is compiled for each
/// version and transport.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plain {
    pub(crate) version: IpVersion,
    /// UDP or TCP.
    pub(crate) transport: TransportKind,
    /// The offset of the IP header.
    network: usize,
    /// The offset of the payload.
    payload: usize,
    /// The offsets behind the IP packet and the frame.
    end: usize,
    frame: usize,
}

impl Plain {
    /// Recognises a plain packet.
    #[inline(always)]
    pub(crate) fn read(packet: &Packet<'_>) -> Option<Self> {
        let bytes = packet.bytes;
        if packet.link != LinkType::ETHERNET || packet.original_len as usize != bytes.len() {
            return None;
        }
        let mut network = ETHERNET_LEN + 2;
        let mut ethertype = u16::from_be_bytes(*bytes.get(network - 2..)?.first_chunk()?);
        if is_vlan(ethertype) {
            network += VLAN_LEN;
            ethertype = u16::from_be_bytes(*bytes.get(network - 2..)?.first_chunk()?);
        }
        let version = IpVersion::from_ethertype(ethertype)?;
        let rest = &bytes[network..];
        let (fixed, total, protocol) = match version {
            IpVersion::V4 => {
                let header: &[u8; IPV4_LEN] = rest.first_chunk()?;
                let total = usize::from(u16::from_be_bytes(array(header, 2)));
                let fragment = u16::from_be_bytes(array(header, 6)) & 0x3fff != 0;
                if header[0] != 0x45 || fragment {
                    return None;
                }
                (IPV4_LEN, total, header[9])
            }
            IpVersion::V6 => {
                let header: &[u8; IPV6_LEN] = rest.first_chunk()?;
                let payload = usize::from(u16::from_be_bytes(array(header, 4)));
                if header[0] >> 4 != 6 {
                    return None;
                }
                (IPV6_LEN, IPV6_LEN + payload, header[6])
            }
        };
        // What has no length is shorter than its transport header.
        let content = rest.get(fixed..total)?;
        let (transport, len) = match protocol {
            UDP => (TransportKind::Udp, UDP_LEN),
            TCP => (TransportKind::Tcp, usize::from(content.get(12)? >> 4) * 4),
            _ => return None,
        };
        if len > content.len() || protocol == TCP && len < TCP_LEN {
            return None;
        }
        Some(Self {
            version,
            transport,
            network,
            payload: network + fixed + len,
            end: network + total,
            frame: bytes.len(),
        })
    }

    /// The layers, with `version` and `transport` for those fields, which they equal.
    #[inline(always)]
    pub(crate) fn layers(
        &self,
        bytes: &[u8],
        version: IpVersion,
        transport: TransportKind,
    ) -> Layers {
        debug_assert_eq!((version, transport), (self.version, self.transport));
        let (fixed, protocol) = (
            version.fixed_len(),
            match transport {
                TransportKind::Tcp => TCP,
                _ => UDP,
            },
        );
        let span = |start, end| Span {
            start,
            end,
            wire_end: end,
        };
        Layers {
            start: 0,
            link: Some(LinkHeader {
                kind: LinkType::ETHERNET,
                start: 0,
                end: ETHERNET_LEN,
            }),
            shims: Shims::vlan_tags(bytes, ETHERNET_LEN + 2, self.network),
            ethertype: version.ethertype(),
            network: Some(Network {
                version,
                start: self.network,
                end: self.network + fixed,
                protocol,
                fragment: false,
                cut: false,
                wire_end: self.end,
                no_length: false,
            }),
            transport: Some(Transport {
                kind: transport,
                protocol,
                start: self.network + fixed,
                end: self.payload,
            }),
            trailer: span(self.end, self.frame),
            ..Layers::of_frame(span(self.payload, self.end))
        }
    }
}
