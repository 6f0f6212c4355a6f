//! The layers of one packet, at one level of encapsulation.

use super::link::{self, LinkHeader};
use super::network::{self, Evidence, IpFault, IpVersion, Network};
use super::shim::{self, Shims};
use super::trailer::{self, PRP_LEN};
use super::transport::{self, Transport, TransportKind};
use super::tunnel::{self, Entry};
use crate::packet::Packet;

const ETHERTYPE_ARP: u16 = 0x0806;

/// More levels of encapsulation than this are payload.
const MAX_LEVELS: usize = 8;

/// Bytes that were captured, and the length that they had on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The offset of the first byte.
    pub start: usize,
    /// The offset behind the last captured byte; `start` if the capture ends before it.
    pub end: usize,
    /// The offset behind the last byte on the wire: at least `end`.
    pub wire_end: usize,
}

impl Span {
    /// The number of bytes on the wire.
    #[must_use]
    #[inline]
    pub fn wire_len(&self) -> usize {
        self.wire_end - self.start
    }

    /// The captured bytes, of the packet that the span was found in. Empty if none was captured.
    #[must_use]
    #[inline]
    pub fn bytes<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        packet.get(self.start..self.end).unwrap_or_default()
    }

    /// The number of captured bytes.
    #[must_use]
    #[inline]
    pub fn captured_len(&self) -> usize {
        self.end - self.start
    }
}

/// The layers of one packet, at one level of encapsulation. All offsets are from the first captured
/// byte of the outermost frame.
///
/// # Examples
/// ```
/// use echoless_packets::layers::{Layers, TransportKind};
/// use echoless_packets::synth::{Header, Stack};
/// use echoless_packets::LinkType;
///
/// let stack = Stack::new(vec![
///     Header::ethernet(), Header::vlan(7), Header::ipv4(), Header::udp(), Header::vxlan(42),
///     Header::ethernet(), Header::ipv6(), Header::tcp(),
/// ]);
/// let bytes = stack.bytes(b"hello");
/// let packet = stack.packet(&bytes);
/// let outer = Layers::outermost(&packet);
/// assert_eq!(outer.network.map(|ip| ip.start), Some(18));
/// assert_eq!(outer.transport.map(|t| t.kind), Some(TransportKind::Udp));
/// let inner = outer.inner(&bytes).expect("VXLAN carries a frame");
/// assert_eq!(inner.transport.map(|t| t.kind), Some(TransportKind::Tcp));
/// assert_eq!(inner.payload.bytes(&bytes), b"hello");
/// assert!(inner.inner(&bytes).is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layers {
    /// The offset of the first byte of this level.
    pub start: usize,
    /// The link header; `None` in tunnels that carry IP directly.
    pub link: Option<LinkHeader>,
    /// What stands between link and network header.
    pub shims: Shims,
    /// The EtherType of what follows the shims; 0 if it is unknown.
    pub ethertype: u16,
    /// The IP header; `None` for other protocols, if its fixed part is cut, and if it is malformed.
    pub network: Option<Network>,
    /// The transport header; `None` without an IP header, for fragments, and if the IP header is
    /// cut.
    pub transport: Option<Transport>,
    /// The bytes behind the last header that was read, up to the end of the IP packet or frame.
    pub payload: Span,
    /// The bytes of the frame behind the IP packet: padding, and perhaps a frame check sequence.
    pub trailer: Span,
    /// The number of bytes that the IP packet has beyond the frame; 0 unless the frame was
    /// shortened before it was captured.
    pub missing: usize,
    /// The capture has fewer bytes than the wire, or the IP packet has more than the frame, or the
    /// packet ends inside a header.
    pub truncated: bool,
    /// A header contradicts itself or the lengths around it, so its layer is absent.
    pub malformed: bool,
    pub(super) level: usize,
}

impl Layers {
    /// The layers of a packet in front of any tunnel.
    #[must_use]
    #[inline(always)]
    pub fn outermost(packet: &Packet<'_>) -> Self {
        let captured = packet.bytes.len();
        // An original length below the captured one contradicts the capture.
        let wire = (packet.original_len as usize).max(captured);
        let mut layers = Self::read(packet.bytes, 0, wire, Entry::Link(packet.link), 0);
        layers.malformed |= (packet.original_len as usize) < captured;
        layers
    }

    /// Whether there is a whole header of TCP, UDP, SCTP or ICMP in front of the payload.
    #[must_use]
    #[inline(always)]
    pub fn has_transport_header(&self) -> bool {
        self.transport
            .is_some_and(|header| header.kind != TransportKind::Other)
    }

    /// The layers of the packet that this one carries in a tunnel: MPLS pseudowire (with a control
    /// word), NSH, TRILL, GRE, PPP in GRE, ERSPAN, IP in IP, Ethernet in IP, VXLAN, VXLAN-GPE,
    /// Geneve, GTP-U, TZSP, L2TP, LISP, Teredo, CAPWAP, the mirror of Juniper routers or MPLS in
    /// UDP. `bytes` are those of the packet.
    ///
    /// `None` if there is no tunnel, or if no packet can be read in it.
    #[must_use]
    #[inline(never)]
    pub fn inner(&self, bytes: &[u8]) -> Option<Self> {
        let captured = bytes.get(..self.payload.end)?;
        let tunnel = tunnel::content(self, captured)?;
        if self.level + 1 == MAX_LEVELS || tunnel.at >= captured.len() {
            return None;
        }
        let (at, wire_end) = (tunnel.at, self.payload.wire_end);
        let inner = Self::read(captured, at, wire_end, tunnel.entry, self.level + 1);
        let readable = inner.network.is_some() || tunnel.carries_frames && !inner.link_is_cut();
        readable.then_some(inner)
    }

    /// The layers where `skip` bytes in front are a header that nobody can read: IP if version,
    /// length and checksum of the packet agree, else bytes. `None` if the packet is not longer.
    #[inline(never)]
    pub(crate) fn behind(packet: &Packet<'_>, skip: usize) -> Option<Self> {
        let wire = (packet.original_len as usize).max(packet.bytes.len());
        let content = packet.bytes.get(skip..).filter(|rest| !rest.is_empty())?;
        let ip = link::version(content).map(IpVersion::ethertype);
        let mut layers = Self::read(
            packet.bytes,
            skip,
            wire,
            Entry::Ethertype(ip.unwrap_or(0)),
            0,
        );
        let certain = |ip: &Network| ip.is_certain(packet.bytes, wire);
        if layers.network.as_ref().is_none_or(|ip| !certain(ip)) {
            layers = Self::read(packet.bytes, skip, wire, Entry::Ethertype(0), 0);
        }
        layers.link = Some(LinkHeader {
            kind: packet.link,
            start: skip,
            end: skip,
        });
        layers.malformed |= (packet.original_len as usize) < packet.bytes.len();
        Some(layers)
    }

    /// Takes what follows an ARP message off the payload. Not when the layers are read: most packets
    /// are IP, and their layers stay in registers.
    #[inline(always)]
    pub(crate) fn end_arp(&mut self, bytes: &[u8]) {
        if self.ethertype == ETHERTYPE_ARP
            && let Some(end) = arp_end(bytes, self.payload.start)
            && end < self.payload.wire_end
        {
            self.trailer = Span {
                start: end,
                end: bytes.len().max(end),
                wire_end: self.payload.wire_end,
            };
            self.payload.end = self.payload.end.min(end);
            self.payload.wire_end = end;
        }
    }

    /// Takes the trailer of the Parallel Redundancy Protocol off the end of an Ethernet frame.
    #[inline(always)]
    pub(crate) fn split_prp(&mut self, bytes: &[u8]) -> Option<[u8; PRP_LEN]> {
        let prp = *bytes.last_chunk()?;
        let link = self
            .link
            .filter(|_| self.start == 0 && trailer::is_prp_marked(&prp))?;
        let last = if self.network.is_some() || self.trailer.wire_len() > 0 {
            &mut self.trailer
        } else {
            &mut self.payload
        };
        let whole = last.end == bytes.len() && last.wire_end == bytes.len() && self.missing == 0;
        let room = last.end - last.start >= PRP_LEN;
        if !whole || !room || !trailer::is_prp_trailer(&prp, bytes, link, self.shims) {
            return None;
        }
        last.end -= PRP_LEN;
        last.wire_end -= PRP_LEN;
        Some(prp)
    }

    fn link_is_cut(&self) -> bool {
        self.link.is_none_or(|link| link.end == link.start)
    }

    /// A frame in which nothing was read: all of it is payload.
    #[inline(always)]
    pub(super) fn of_frame(frame: Span) -> Self {
        Self {
            start: frame.start,
            link: None,
            shims: Shims::NONE,
            ethertype: 0,
            network: None,
            transport: None,
            payload: frame,
            // Without IP, everything up to the end of the frame is payload.
            trailer: Span {
                start: frame.wire_end,
                end: frame.wire_end,
                wire_end: frame.wire_end,
            },
            missing: 0,
            truncated: frame.end < frame.wire_end,
            malformed: false,
            level: 0,
        }
    }

    /// Reads the layers from `start` to the end of `bytes`; the frame ends at `wire_end`.
    ///
    /// Inlined with all that it calls: the layers of a packet then stay in registers, while a call
    /// would return them through memory.
    #[inline(always)]
    fn read(bytes: &[u8], start: usize, wire_end: usize, entry: Entry, level: usize) -> Self {
        let frame = Span {
            start,
            end: bytes.len(),
            wire_end,
        };
        let mut layers = Self {
            level,
            ..Self::of_frame(frame)
        };
        let (at, ethertype) = match entry {
            Entry::Ethertype(ethertype) => (start, ethertype),
            Entry::Link(kind) => {
                let link = link::read(bytes, start, kind);
                layers.link = Some(link.header);
                layers.truncated |= link.cut;
                layers.payload.start = link.header.end;
                let Some(content) = link.content else {
                    return layers;
                };
                content
            }
        };
        let content = shim::read(bytes, at, ethertype, wire_end);
        layers.shims = content.shims;
        layers.ethertype = content.ethertype;
        layers.payload.start = content.at;
        layers.malformed |= content.incomplete;
        if let Some(version) = IpVersion::from_ethertype(content.ethertype) {
            let evidence = if content.is_guessed {
                Evidence::Nibble
            } else if level == 0 && content.wire_end == wire_end {
                Evidence::Frame
            } else {
                Evidence::Inside
            };
            match network::read(bytes, content.at, version, content.wire_end, evidence) {
                Ok(network) => layers.set_network(bytes, network),
                Err(IpFault::Cut) => layers.truncated = true,
                Err(IpFault::Malformed) => layers.malformed = true,
            }
        }
        layers
    }

    /// Sets the IP header, and with it the end of the payload; reads what the packet carries.
    #[inline(always)]
    fn set_network(&mut self, bytes: &[u8], network: Network) {
        let end = network.wire_end.min(bytes.len());
        let frame_wire_end = self.payload.wire_end;
        self.network = Some(network);
        self.payload = Span {
            start: network.end,
            end,
            wire_end: network.wire_end,
        };
        self.trailer = Span {
            start: network.wire_end,
            end: bytes.len().max(network.wire_end),
            wire_end: frame_wire_end.max(network.wire_end),
        };
        self.missing = network.wire_end.saturating_sub(frame_wire_end);
        // Only bytes of the packet itself count, not those of the trailer.
        self.truncated = end < network.wire_end;
        if network.fragment || network.cut {
            return;
        }
        let (transport, incomplete) = transport::read(&bytes[..end], network.end, network.protocol);
        self.transport = Some(transport);
        self.payload.start = transport.end;
        self.malformed |= incomplete && !self.truncated;
    }
}

/// The end of an ARP message, which is shorter than the shortest frame of Ethernet: hardware,
/// protocol, the lengths of both addresses, operation; then the addresses of both sides. Only of
/// Ethernet and IPv4, as a crafted message of shorter addresses would hide what it carries.
#[cold]
fn arp_end(bytes: &[u8], at: usize) -> Option<usize> {
    const LENGTHS: [u8; 2] = [6, 4];
    const MESSAGE: usize = 8 + 2 * (6 + 4);
    (bytes.get(at + 4..at + 6) == Some(&LENGTHS)).then_some(at + MESSAGE)
}
