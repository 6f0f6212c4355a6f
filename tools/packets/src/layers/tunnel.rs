//! Tunnels: where the packet that another one carries begins.
//!
//! UDP tunnels are recognised by the destination port, those with a port at the server alone by
//! either.

use super::shim::{ETHERTYPE_MPLS, ShimKind};
use super::stack::Layers;
use super::transport::TransportKind;
use super::{link, network::IpVersion};
use crate::bytes::be16;
use crate::packet::LinkType;

const PROTOCOL_IPV4: u8 = 4;
const PROTOCOL_IPV6: u8 = 41;
const PROTOCOL_GRE: u8 = 47;
const PROTOCOL_ETHER_IP: u8 = 97;
const PROTOCOL_MPLS: u8 = 137;

/// The assigned port of VXLAN (RFC 7348), and the one that Linux used before.
const PORTS_VXLAN: [u16; 2] = [4789, 8472];
const PORT_GENEVE: u16 = 6081;
const PORT_GTP_U: u16 = 2152;
const PORT_TZSP: u16 = 37008;
const PORT_L2TP: u16 = 1701;
const PORT_MPLS: u16 = 6635;
const PORT_VXLAN_GPE: u16 = 4790;
const PORT_LISP: u16 = 4341;
const PORT_TEREDO: u16 = 3544;
const PORT_CAPWAP_DATA: u16 = 5247;
const PORT_JUNIPER_MIRROR: u16 = 30030;

/// The EtherType of bridged Ethernet in GRE and Geneve.
const ETHERTYPE_BRIDGED: u16 = 0x6558;
const ETHERTYPE_ERSPAN: u16 = 0x88be;
const ETHERTYPE_ERSPAN_3: u16 = 0x22eb;
/// PPP in GRE version 1.
const ETHERTYPE_PPP: u16 = 0x880b;
const ETHERTYPE_NSH: u16 = 0x894f;
const ETHERTYPE_TRILL: u16 = 0x22f3;
/// The next protocol of one Network Service Header in another.
const NEXT_NSH: u8 = 4;

/// What a packet begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// A link header.
    Link(LinkType),
    /// What this EtherType announces.
    Ethertype(u16),
}

/// The packet in a tunnel.
pub(super) struct Content {
    pub(super) at: usize,
    pub(super) entry: Entry,
    /// The tunnel carries link frames, so that a frame without IP counts as a packet.
    pub(super) carries_frames: bool,
}

impl Content {
    fn ip(at: usize, version: IpVersion) -> Self {
        Self::announced(at, version.ethertype())
    }

    fn frame(at: usize) -> Self {
        Self::link(at, LinkType::ETHERNET)
    }

    fn link(at: usize, kind: LinkType) -> Self {
        Self {
            at,
            entry: Entry::Link(kind),
            carries_frames: true,
        }
    }

    fn announced(at: usize, ethertype: u16) -> Self {
        if ethertype == ETHERTYPE_BRIDGED {
            return Self::frame(at);
        }
        Self {
            at,
            entry: Entry::Ethertype(ethertype),
            carries_frames: false,
        }
    }
}

/// What the packet with these layers carries. `bytes` end where its payload ends.
pub(super) fn content(layers: &Layers, bytes: &[u8]) -> Option<Content> {
    let at = layers.payload.start;
    let Some(transport) = layers.transport else {
        return match layers.ethertype {
            ETHERTYPE_NSH => nsh(bytes, at),
            ETHERTYPE_TRILL => trill(bytes, at),
            _ => pseudowire(layers, bytes),
        };
    };
    match (transport.kind, transport.protocol) {
        (TransportKind::Other, PROTOCOL_IPV4) => Some(Content::ip(at, IpVersion::V4)),
        (TransportKind::Other, PROTOCOL_IPV6) => Some(Content::ip(at, IpVersion::V6)),
        (TransportKind::Other, PROTOCOL_MPLS) => Some(Content::announced(at, ETHERTYPE_MPLS)),
        (TransportKind::Other, PROTOCOL_GRE) => gre(bytes, at),
        // RFC 3378: version 3, and bits that are reserved.
        (TransportKind::Other, PROTOCOL_ETHER_IP) => {
            (be16(bytes, at)? == 0x3000).then(|| Content::frame(at + 2))
        }
        (TransportKind::Udp, _) => match be16(bytes, transport.start + 2)? {
            port if PORTS_VXLAN.contains(&port) => vxlan(bytes, at),
            PORT_GENEVE => geneve(bytes, at),
            PORT_GTP_U => gtp_u(bytes, at),
            PORT_TZSP => tzsp(bytes, at),
            PORT_L2TP => l2tp(bytes, at),
            PORT_MPLS => Some(Content::announced(at, ETHERTYPE_MPLS)),
            PORT_VXLAN_GPE => vxlan_gpe(bytes, at),
            PORT_LISP => lisp(bytes, at),
            PORT_JUNIPER_MIRROR => juniper_mirror(bytes, at),
            destination => match [destination, be16(bytes, transport.start)?] {
                ports if ports.contains(&PORT_TEREDO) => teredo(bytes, at),
                ports if ports.contains(&PORT_CAPWAP_DATA) => capwap(bytes, at),
                _ => None,
            },
        },
        (_, _) => None,
    }
}

/// Ethernet behind an MPLS label stack and a control word, whose first nibble is 0 (RFC 4385).
/// Without a control word the content of a label cannot be known, so it counts only if IP is in it.
fn pseudowire(layers: &Layers, bytes: &[u8]) -> Option<Content> {
    let at = layers.payload.start;
    let last = layers.shims.iter(bytes).last()?;
    if layers.network.is_some() || last.kind != ShimKind::Mpls || bytes.get(at)? >> 4 != 0 {
        return None;
    }
    Some(Content {
        carries_frames: false,
        ..Content::frame(at + 4)
    })
}

/// GRE version 0 (RFC 2784, RFC 2890), and ERSPAN types I to III in it.
fn gre(bytes: &[u8], at: usize) -> Option<Content> {
    const CHECKSUM: u16 = 0x8000;
    const ROUTING: u16 = 0x4000;
    const KEY: u16 = 0x2000;
    const SEQUENCE: u16 = 0x1000;
    const ACKNOWLEDGEMENT: u16 = 0x0080;
    const VERSION: u16 = 7;
    let (flags, ethertype) = (be16(bytes, at)?, be16(bytes, at + 2)?);
    // RFC 2637: version 1 carries PPP, in packets with a sequence number.
    if flags & VERSION == 1 && flags & (ROUTING | CHECKSUM) == 0 && ethertype == ETHERTYPE_PPP {
        let optional = (flags & (KEY | SEQUENCE | ACKNOWLEDGEMENT)).count_ones() as usize;
        let has_content = flags & KEY != 0 && flags & SEQUENCE != 0;
        return has_content.then(|| Content::link(at + 4 + 4 * optional, LinkType::PPP));
    }
    if flags & (ROUTING | VERSION) != 0 {
        return None;
    }
    let optional = (flags & (CHECKSUM | KEY | SEQUENCE)).count_ones() as usize;
    let at = at + 4 + 4 * optional;
    match ethertype {
        // Type I has no header of its own and no sequence number.
        ETHERTYPE_ERSPAN if flags & SEQUENCE == 0 => Some(Content::frame(at)),
        ETHERTYPE_ERSPAN => Some(Content::frame(at + 8)),
        ETHERTYPE_ERSPAN_3 => {
            // The last bit of the header announces a subheader of 8 bytes.
            let subheader = usize::from(bytes.get(at + 11)? & 1) * 8;
            Some(Content::frame(at + 12 + subheader))
        }
        ETHERTYPE_NSH => nsh(bytes, at),
        other => Some(Content::announced(at, other)),
    }
}

/// What a next protocol of the Network Service Header announces; VXLAN-GPE and LISP-GPE have the
/// same numbers.
fn next_protocol(bytes: &[u8], at: usize, number: u8) -> Option<Content> {
    match number {
        1 => Some(Content::ip(at, IpVersion::V4)),
        2 => Some(Content::ip(at, IpVersion::V6)),
        3 => Some(Content::frame(at)),
        NEXT_NSH => nsh(bytes, at),
        5 => Some(Content::announced(at, ETHERTYPE_MPLS)),
        _ => None,
    }
}

/// Network Service Header (RFC 8300): version, flags, time to live, length in words; the kind of
/// metadata, next protocol, path; metadata. Perhaps in others, of which more than 8 are malformed.
fn nsh(bytes: &[u8], mut at: usize) -> Option<Content> {
    const VERSION: u16 = 0xc000;
    const LEAST_WORDS: u16 = 2;
    const MOST: usize = 8;
    for _ in 0..MOST {
        let (first, next) = (be16(bytes, at)?, *bytes.get(at + 3)?);
        let words = first & 0x3f;
        if first & VERSION != 0 || words < LEAST_WORDS {
            return None;
        }
        at += usize::from(words) * 4;
        if next != NEXT_NSH {
            return next_protocol(bytes, at, next);
        }
    }
    None
}

/// TRILL (RFC 6325): version, flags, length of the options in words, hop count; two nicknames.
fn trill(bytes: &[u8], at: usize) -> Option<Content> {
    const VERSION: u16 = 0xc000;
    let first = be16(bytes, at)?;
    let options = usize::from(first >> 6 & 0x1f) * 4;
    (first & VERSION == 0).then(|| Content::frame(at + 6 + options))
}

/// draft-ietf-nvo3-vxlan-gpe: VXLAN whose last reserved byte in front of the network identifier is
/// the next protocol, if a flag says so.
fn vxlan_gpe(bytes: &[u8], at: usize) -> Option<Content> {
    const VERSION: u8 = 0x30;
    const NEXT_PROTOCOL: u8 = 0x04;
    let flags = *bytes.get(at)?;
    if flags & VERSION != 0 {
        return None;
    }
    if flags & NEXT_PROTOCOL == 0 {
        return vxlan(bytes, at);
    }
    next_protocol(bytes, at + 8, *bytes.get(at + 3)?)
}

/// LISP (RFC 9300): flags, nonce or map versions, instance or locators; 8 bytes. With the flag of
/// RFC 9305 the last byte of the first word is the next protocol.
fn lisp(bytes: &[u8], at: usize) -> Option<Content> {
    const NEXT_PROTOCOL: u8 = 0x04;
    let flags = *bytes.get(at)?;
    if flags & NEXT_PROTOCOL != 0 {
        return next_protocol(bytes, at + 8, *bytes.get(at + 3)?);
    }
    Some(Content::ip(at + 8, link::version(bytes.get(at + 8..)?)?))
}

/// The mirror of Juniper routers: two identifiers of 4 bytes, then IP.
fn juniper_mirror(bytes: &[u8], at: usize) -> Option<Content> {
    Some(Content::ip(at + 8, link::version(bytes.get(at + 8..)?)?))
}

/// Teredo (RFC 4380): IPv6 behind an authentication and an origin, either of which may be absent.
fn teredo(bytes: &[u8], mut at: usize) -> Option<Content> {
    const AUTHENTICATION: u16 = 1;
    const ORIGIN: u16 = 0;
    if be16(bytes, at)? == AUTHENTICATION {
        let (client, value) = (*bytes.get(at + 2)?, *bytes.get(at + 3)?);
        // Behind both, a nonce of 8 bytes and a confirmation.
        at += 4 + usize::from(client) + usize::from(value) + 9;
    }
    if be16(bytes, at)? == ORIGIN {
        at += 8;
    }
    let version = link::version(bytes.get(at..)?)?;
    (version == IpVersion::V6).then(|| Content::ip(at, version))
}

/// The data of CAPWAP (RFC 5415): an unencrypted header of so many words, and a frame.
///
/// ```text
/// | preamble 8 | length 5 | radio 5 | binding 5 | T F L W M K | flags 3 |    T: a frame of the
/// | fragment 16 | offset 13 | reserved 3 | ...                                 binding
/// ```
fn capwap(bytes: &[u8], at: usize) -> Option<Content> {
    const NATIVE: u16 = 1 << 8;
    const FRAGMENT: u16 = 1 << 7;
    const KEEP_ALIVE: u16 = 1 << 3;
    const WIRELESS: u16 = 1;
    let (first, second) = (be16(bytes, at)?, be16(bytes, at + 2)?);
    let words = usize::from(first >> 3 & 0x1f);
    if first >> 8 != 0 || words < 2 || second & (FRAGMENT | KEEP_ALIVE) != 0 {
        return None;
    }
    let frame = at + words * 4;
    match (second & NATIVE != 0, second >> 9 & 0x1f) {
        (false, _) => Some(Content::frame(frame)),
        (true, WIRELESS) => Some(Content::link(frame, LinkType::IEEE802_11)),
        (true, _) => None,
    }
}

/// RFC 7348: flags, of which one is set if the network identifier is valid; 8 bytes.
fn vxlan(bytes: &[u8], at: usize) -> Option<Content> {
    (bytes.get(at)? & 0x08 != 0).then(|| Content::frame(at + 8))
}

/// RFC 8926: version and length of the options, flags, EtherType, network identifier; 8 bytes.
fn geneve(bytes: &[u8], at: usize) -> Option<Content> {
    let first = bytes.get(at)?;
    let options = usize::from(first & 0x3f) * 4;
    let ethertype = be16(bytes, at + 2)?;
    (first >> 6 == 0).then(|| Content::announced(at + 8 + options, ethertype))
}

/// 3GPP TS 29.281: a user packet (message 255) of version 1, with its extension headers.
fn gtp_u(bytes: &[u8], at: usize) -> Option<Content> {
    let (flags, message) = (*bytes.get(at)?, *bytes.get(at + 1)?);
    // Version 1, protocol type GTP.
    if flags >> 4 != 0b0011 || message != 255 {
        return None;
    }
    let mut end = at + 8;
    if flags & 0b111 != 0 {
        end += 4;
    }
    if flags & 0b100 != 0 {
        // The type of the next extension is the last byte of each, 0 behind the last.
        while *bytes.get(end - 1)? != 0 {
            let words = usize::from(*bytes.get(end)?);
            if words == 0 {
                return None;
            }
            end += words * 4;
        }
    }
    Some(Content::ip(end, link::version(bytes.get(end..)?)?))
}

/// The protocol of TaZmen Sniffer: version, type, kind of the frame, then fields of type, length
/// and value up to the last one.
fn tzsp(bytes: &[u8], at: usize) -> Option<Content> {
    const PADDING: u8 = 0;
    const LAST: u8 = 1;
    // Version 1; a received frame, or one to send.
    if !matches!(be16(bytes, at)?, 0x0100 | 0x0101) {
        return None;
    }
    let kind = match be16(bytes, at + 2)? {
        1 => LinkType::ETHERNET,
        18 => LinkType::IEEE802_11,
        119 => LinkType::PRISM,
        127 => LinkType::AVS,
        _ => return None,
    };
    let mut at = at + 4;
    loop {
        match *bytes.get(at)? {
            PADDING => at += 1,
            LAST => return Some(Content::link(at + 1, kind)),
            _ => at += 2 + usize::from(*bytes.get(at + 1)?),
        }
    }
}

/// L2TP version 2 (RFC 2661): a data message with PPP. Flags, length, tunnel, session, sequence
/// numbers, padding.
fn l2tp(bytes: &[u8], at: usize) -> Option<Content> {
    const CONTROL: u16 = 0x8000;
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    const VERSION: u16 = 0x000f;
    let flags = be16(bytes, at)?;
    if flags & CONTROL != 0 || flags & VERSION != 2 {
        return None;
    }
    let has = |flag| usize::from(flags & flag != 0);
    let mut at = at + 6 + 2 * has(LENGTH) + 4 * has(SEQUENCE);
    if has(OFFSET) == 1 {
        at += 2 + usize::from(be16(bytes, at)?);
    }
    Some(Content::link(at, LinkType::PPP))
}
