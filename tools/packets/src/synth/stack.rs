//! A packet as a list of headers, and its bytes.

use super::header::{Header, Ipv4, Ipv6, Tcp};
use crate::packet::{InterfaceId, LinkType, Packet};

/// The EtherType of a payload that nothing announces: local experiments.
const EXPERIMENT: u16 = 0x88b5;

/// The number of LLC in a Linux cooked capture.
const LLC: u16 = 4;

/// A packet as a list of headers, outermost first.
///
/// # Examples
/// ```
/// use echoless_packets::synth::{Header, Stack};
/// let stack = Stack::new(vec![Header::ethernet(), Header::ipv4(), Header::udp()]);
/// let bytes = stack.bytes(b"abc");
/// assert_eq!(bytes.len(), 14 + 20 + 8 + 3);
/// // The total length of the IPv4 header.
/// assert_eq!(bytes[16..18], [0, 31]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// The headers.
    pub headers: Vec<Header>,
}

impl Stack {
    /// A packet with these headers.
    #[must_use]
    pub fn new(headers: Vec<Header>) -> Self {
        Self { headers }
    }

    /// The link type of a file with this packet: raw IP if the first header is no link header.
    #[must_use]
    pub fn link(&self) -> LinkType {
        match self.headers.first() {
            Some(Header::Ethernet { .. }) => LinkType::ETHERNET,
            Some(Header::Sll { .. }) => LinkType::LINUX_SLL,
            Some(Header::Sll2 { .. }) => LinkType::LINUX_SLL2,
            Some(Header::Null) => LinkType::NULL,
            Some(Header::Loop) => LinkType::LOOP,
            Some(Header::Wireless { .. }) => LinkType::IEEE802_11,
            Some(Header::Capture { kind, .. } | Header::Link { kind, .. }) => *kind,
            Some(_) | None => LinkType::RAW,
        }
    }

    /// These bytes as a whole packet of the first interface, without a time.
    #[must_use]
    pub fn packet<'a>(&self, bytes: &'a [u8]) -> Packet<'a> {
        Packet {
            interface: InterfaceId::default(),
            link: self.link(),
            bytes,
            original_len: bytes.len() as u32,
            timestamp: None,
        }
    }

    /// The bytes of the packet with this payload.
    ///
    /// # Panics
    /// If a header cannot follow another one (TCP behind Ethernet), or if a length does not fit in
    /// its field.
    #[must_use]
    pub fn bytes(&self, payload: &[u8]) -> Vec<u8> {
        let mut bytes = payload.to_vec();
        for (at, header) in self.headers.iter().enumerate().rev() {
            bytes = wrap(header, self.headers.get(at + 1), &bytes);
        }
        bytes
    }
}

/// Puts `header` in front of `body`, which begins with the header `next`.
fn wrap(header: &Header, next: Option<&Header>, body: &[u8]) -> Vec<u8> {
    // The length of an LLC frame stands in the place of its EtherType, or the number of LLC.
    let ethertype_or = |llc: u16| match next {
        Some(Header::Snap) => llc.to_be_bytes(),
        Some(_) | None => next.map_or(EXPERIMENT, Header::ethertype).to_be_bytes(),
    };
    let ethertype = || ethertype_or(body.len() as u16);
    let mut out = Vec::with_capacity(body.len() + 60);
    match header {
        Header::Ethernet {
            destination,
            source,
        } => {
            out.extend(destination);
            out.extend(source);
            out.extend(ethertype());
        }
        Header::Sll {
            packet_type,
            arphrd,
            address,
        } => {
            out.extend(packet_type.to_be_bytes());
            out.extend(arphrd.to_be_bytes());
            out.extend([0, 6]);
            out.extend(address);
            out.extend(ethertype_or(LLC));
        }
        Header::Sll2 {
            interface,
            packet_type,
            arphrd,
            address,
        } => {
            out.extend(ethertype_or(LLC));
            out.extend([0, 0]);
            out.extend(interface.to_be_bytes());
            out.extend(arphrd.to_be_bytes());
            out.extend([*packet_type, 6]);
            out.extend(address);
        }
        Header::Null => out.extend(family(next).to_le_bytes()),
        Header::Loop => out.extend(family(next).to_be_bytes()),
        Header::Capture { bytes, .. } => out.extend(bytes),
        Header::Wireless {
            duration,
            addresses,
            sequence,
            between_access_points,
            qos,
        } => {
            out.push(if *qos { 0x88 } else { 0x08 });
            out.push(if *between_access_points { 3 } else { 1 });
            out.extend(duration.to_le_bytes());
            out.extend(addresses[..3].as_flattened());
            out.extend(sequence.to_le_bytes());
            out.extend(addresses[3].iter().filter(|_| *between_access_points));
            out.extend([0; 2].iter().filter(|_| *qos));
        }
        Header::Link { kind, bytes } => {
            out.extend(bytes);
            out.extend(announcement(*kind, next, body.len()));
        }
        Header::Snap => {
            out.extend([0xaa, 0xaa, 3, 0, 0, 0]);
            out.extend(ethertype());
        }
        Header::Hsr { path, sequence } => {
            // The tag itself and its EtherType count.
            let len = body.len() as u16 + 6;
            out.extend((u16::from(*path) << 12 | len & 0x0fff).to_be_bytes());
            out.extend(sequence.to_be_bytes());
            out.extend(ethertype());
        }
        Header::Tag { bytes, .. } => {
            out.extend(bytes);
            out.extend(ethertype());
        }
        Header::Vlan { tci, .. } => {
            out.extend(tci.to_be_bytes());
            out.extend(ethertype());
        }
        Header::Mpls { label, class, ttl } => {
            let bottom = u32::from(!matches!(next, Some(Header::Mpls { .. })));
            let word = label << 12 | u32::from(*class) << 9 | bottom << 8 | u32::from(*ttl);
            out.extend(word.to_be_bytes());
        }
        Header::ControlWord => out.extend([0; 4]),
        Header::Pppoe { session } => {
            out.extend([0x11, 0]);
            out.extend(session.to_be_bytes());
            out.extend(length(body.len() + 2));
            out.extend(ppp_protocol(next));
        }
        Header::Ipv4(ip) => ipv4(ip, next, body, &mut out),
        Header::Ipv6(ip) => ipv6(ip, next, body, &mut out),
        Header::Tcp(header) => tcp(header, &mut out),
        Header::Udp {
            source,
            destination,
            checksum,
        } => {
            let tunnel = next.and_then(Header::udp_port);
            out.extend(source.to_be_bytes());
            out.extend(tunnel.unwrap_or(*destination).to_be_bytes());
            out.extend(length(body.len() + 8));
            out.extend(checksum.to_be_bytes());
        }
        Header::Sctp {
            source,
            destination,
            verification,
            checksum,
        } => {
            out.extend(source.to_be_bytes());
            out.extend(destination.to_be_bytes());
            out.extend(verification.to_be_bytes());
            out.extend(checksum.to_be_bytes());
        }
        Header::Icmp {
            kind,
            code,
            checksum,
            rest,
        }
        | Header::Icmpv6 {
            kind,
            code,
            checksum,
            rest,
        } => {
            out.extend([*kind, *code]);
            out.extend(checksum.to_be_bytes());
            out.extend(rest.to_be_bytes());
        }
        Header::Gre {
            checksum,
            key,
            sequence,
        } => {
            let bits = [
                (*checksum, 0x80),
                (key.is_some(), 0x20),
                (sequence.is_some(), 0x10),
            ];
            let flags = bits
                .iter()
                .filter(|(set, _)| *set)
                .map(|(_, bit)| bit)
                .sum();
            out.extend([flags, 0]);
            out.extend(ethertype());
            out.extend([0; 4].iter().filter(|_| *checksum));
            out.extend(key.iter().flat_map(|key| key.to_be_bytes()));
            out.extend(sequence.iter().flat_map(|sequence| sequence.to_be_bytes()));
        }
        Header::Erspan { session } => {
            out.extend([0x10, 0]);
            out.extend(session.to_be_bytes());
            out.extend([0; 4]);
        }
        Header::Vxlan { vni } => {
            out.extend([0x08, 0, 0, 0]);
            out.extend((vni << 8).to_be_bytes());
        }
        Header::Geneve { vni, options } => {
            out.extend([(options.len() / 4) as u8, 0]);
            out.extend(ethertype());
            out.extend((vni << 8).to_be_bytes());
            out.extend(options);
        }
        Header::GtpU {
            teid,
            sequence,
            extension,
        } => gtp_u(*teid, *sequence, *extension, body, &mut out),
        Header::Tzsp { fields } => {
            let kind = if matches!(next, Some(Header::Wireless { .. })) {
                18
            } else {
                1
            };
            out.extend([1, 0, 0, kind]);
            out.extend(fields);
            out.push(1);
        }
        Header::L2tp { tunnel, session } => {
            out.extend([0x40, 2]);
            out.extend(length(body.len() + 8));
            out.extend(tunnel.to_be_bytes());
            out.extend(session.to_be_bytes());
        }
        Header::EtherIp => out.extend([0x30, 0]),
        Header::Opaque { .. } => {}
    }
    out.extend(body);
    out
}

/// What announces the header `next` behind the first bytes of a link header.
fn announcement(kind: LinkType, next: Option<&Header>, body: usize) -> Vec<u8> {
    let ethertype = || next.map_or(EXPERIMENT, Header::ethertype).to_be_bytes();
    match kind {
        LinkType::PPP | LinkType::PPP_HDLC | LinkType::PPP_PPPD | LinkType::PPP_WITH_DIR => {
            ppp_protocol(next).to_vec()
        }
        LinkType::C_HDLC | LinkType::C_HDLC_WITH_DIR => ethertype().to_vec(),
        LinkType::FRAME_RELAY | LinkType::FRAME_RELAY_WITH_DIR => match next {
            Some(Header::Ipv4(_)) => vec![0xcc],
            Some(Header::Ipv6(_)) => vec![0x8e],
            Some(_) | None => [&[0x80, 0, 0, 0][..], &ethertype()].concat(),
        },
        LinkType::NFLOG => [(body as u16 + 4).to_le_bytes(), [9, 0]].concat(),
        LinkType::IPOIB => [ethertype(), [0; 2]].concat(),
        _ => Vec::new(),
    }
}

/// The PPP protocol number of the header `next`.
fn ppp_protocol(next: Option<&Header>) -> [u8; 2] {
    let protocol: u16 = match next {
        Some(Header::Ipv4(_)) => 0x0021,
        Some(Header::Ipv6(_)) => 0x0057,
        Some(Header::Mpls { .. }) => 0x0281,
        Some(_) | None => 0xc021,
    };
    protocol.to_be_bytes()
}

/// A 16-bit length field.
fn length(len: usize) -> [u8; 2] {
    u16::try_from(len)
        .expect("the length fits in its field")
        .to_be_bytes()
}

/// The address family of a loopback header.
fn family(next: Option<&Header>) -> u32 {
    match next {
        Some(Header::Ipv6(_)) => 30,
        Some(_) | None => 2,
    }
}

fn ipv4(ip: &Ipv4, next: Option<&Header>, body: &[u8], out: &mut Vec<u8>) {
    let len = 20 + ip.options.len();
    out.extend([0x40 | (len / 4) as u8, ip.tos]);
    out.extend(length(len + body.len()));
    out.extend(ip.id.to_be_bytes());
    out.extend(ip.fragment.to_be_bytes());
    out.extend([ip.ttl, next.map_or(ip.protocol, Header::protocol), 0, 0]);
    out.extend(ip.source);
    out.extend(ip.destination);
    out.extend(&ip.options);
    let words = out
        .chunks_exact(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let correct = !((folded & 0xffff) + (folded >> 16)) as u16;
    out[10..12].copy_from_slice(&ip.checksum.unwrap_or(correct).to_be_bytes());
}

fn ipv6(ip: &Ipv6, next: Option<&Header>, body: &[u8], out: &mut Vec<u8>) {
    let protocol = next.map_or(ip.protocol, Header::protocol);
    let mut extensions = Vec::new();
    let mut first = protocol;
    if let Some((offset, id)) = ip.fragment {
        extensions.extend([first, 0]);
        extensions.extend(offset.to_be_bytes());
        extensions.extend(id.to_be_bytes());
        first = 44;
    }
    if let Some(options) = &ip.options {
        let mut header = vec![first, (options.len() / 8) as u8];
        header.extend(options);
        header.extend(&extensions);
        extensions = header;
        first = 60;
    }
    for (kind, content) in ip.extensions.iter().rev() {
        const FRAGMENT: u8 = 44;
        const AUTHENTICATION: u8 = 51;
        let len = content.len() + 2;
        let units = match *kind {
            FRAGMENT => 0,
            AUTHENTICATION => len / 4 - 2,
            _ => len / 8 - 1,
        };
        let mut header = vec![first, units as u8];
        header.extend(content);
        header.extend(&extensions);
        extensions = header;
        first = *kind;
    }
    let word = 6 << 28 | u32::from(ip.class) << 20 | ip.flow_label;
    out.extend(word.to_be_bytes());
    let len = u16::try_from(extensions.len() + body.len()).unwrap_or(0);
    out.extend(len.to_be_bytes());
    out.extend([first, ip.hop_limit]);
    out.extend(ip.source);
    out.extend(ip.destination);
    out.extend(extensions);
}

fn tcp(tcp: &Tcp, out: &mut Vec<u8>) {
    let len = 20 + tcp.options.len();
    out.extend(tcp.source.to_be_bytes());
    out.extend(tcp.destination.to_be_bytes());
    out.extend(tcp.seq.to_be_bytes());
    out.extend(tcp.ack.to_be_bytes());
    out.extend([((len / 4) as u8) << 4, tcp.flags]);
    out.extend(tcp.window.to_be_bytes());
    out.extend(tcp.checksum.to_be_bytes());
    out.extend(tcp.urgent.to_be_bytes());
    out.extend(&tcp.options);
}

fn gtp_u(teid: u32, sequence: Option<u16>, extension: bool, body: &[u8], out: &mut Vec<u8>) {
    let flags = 0x30 | u8::from(extension) << 2 | u8::from(sequence.is_some()) << 1;
    let mut optional = Vec::new();
    if flags & 7 != 0 {
        optional.extend(sequence.unwrap_or(0).to_be_bytes());
        optional.extend([0, if extension { 0x85 } else { 0 }]);
    }
    if extension {
        // One word: its length, two bytes of content, no further extension.
        optional.extend([1, 0, 9, 0]);
    }
    out.extend([flags, 255]);
    out.extend(length(optional.len() + body.len()));
    out.extend(teid.to_be_bytes());
    out.extend(optional);
}
