//! Link headers: their length and the EtherType of what follows.

use super::capture_header;
use super::network::IpVersion;
use super::shim::{ETHERTYPE_LLC, ETHERTYPE_MPLS, ETHERTYPE_PPPOE_SESSION};
use super::{serial, wireless};
use crate::bytes::{array, be16};
use crate::packet::LinkType;

/// Two addresses; the EtherType behind them belongs to the shims.
pub(crate) const ETHERNET_LEN: usize = 12;
/// Linux cooked capture: packet type, ARPHRD type, address length, address, protocol.
pub(crate) const SLL_LEN: usize = 16;
/// Version 2: protocol, reserved, interface index, ARPHRD type, packet type, address.
pub(crate) const SLL2_LEN: usize = 20;
/// The address family of loopback headers.
const FAMILY_LEN: usize = 4;

/// The link header at the beginning of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkHeader {
    /// The kind.
    pub kind: LinkType,
    /// The offset of its first byte.
    pub start: usize,
    /// The offset behind it. For Ethernet this is where the EtherType is: EtherTypes belong to the
    /// shims. Equal to `start` if there is no header, or if it is of no known kind or cut.
    pub end: usize,
}

impl LinkHeader {
    /// The frame behind the header that the capturing program put in front of it, such as radiotap:
    /// its offset, and its kind. `bytes` are those that the header was read from.
    pub(crate) fn frame(&self, bytes: &[u8]) -> (usize, LinkType) {
        let header = &bytes[self.start..self.end];
        match capture_header::read(header, self.kind) {
            Some(found) => (self.start + found.len, found.frame),
            None => (self.start, self.kind),
        }
    }
}

/// The link header of a packet, and what follows it.
pub(super) struct LinkContent {
    pub(super) header: LinkHeader,
    /// The offset of what follows, and its EtherType. `None` if it cannot be known.
    pub(super) content: Option<(usize, u16)>,
    /// The header is of a known kind, but cut.
    pub(super) cut: bool,
}

/// Where a link header ends, and the EtherType of what follows; 0 if it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LinkEnd {
    pub(super) len: usize,
    pub(super) ethertype: u16,
}

impl LinkEnd {
    /// A header of a kind that is not known, or a variant of one.
    pub(super) const UNKNOWN: Self = Self::new(0, 0);

    pub(super) const fn new(len: usize, ethertype: u16) -> Self {
        Self { len, ethertype }
    }
}

/// Reads the link header of kind `kind` at `start`.
#[inline(always)]
pub(super) fn read(bytes: &[u8], start: usize, kind: LinkType) -> LinkContent {
    read_common(bytes, start, kind).unwrap_or_else(|| read_other(bytes, start, kind))
}

/// Reads a header of the kinds that most captures have; `None` if it is none of them.
#[inline(always)]
fn read_common(bytes: &[u8], start: usize, kind: LinkType) -> Option<LinkContent> {
    let rest = &bytes[start..];
    // The length of the header, the offset of what follows, and where its EtherType is found.
    let (len, content, ethertype) = match kind {
        LinkType::ETHERNET => (ETHERNET_LEN, ETHERNET_LEN + 2, be16(rest, ETHERNET_LEN)),
        LinkType::LINUX_SLL => (SLL_LEN, SLL_LEN, be16(rest, 14)),
        LinkType::LINUX_SLL2 if rest.len() >= SLL2_LEN => (SLL2_LEN, SLL2_LEN, be16(rest, 0)),
        LinkType::LINUX_SLL2 => (SLL2_LEN, SLL2_LEN, None),
        LinkType::NULL | LinkType::LOOP => (
            FAMILY_LEN,
            FAMILY_LEN,
            family(rest, kind).map(IpVersion::ethertype),
        ),
        LinkType::IPV4 => (0, 0, Some(IpVersion::V4.ethertype())),
        LinkType::IPV6 => (0, 0, Some(IpVersion::V6.ethertype())),
        raw if raw.is_raw_ip() => (0, 0, version(rest).map(IpVersion::ethertype)),
        _ => return None,
    };
    let cut = rest.len() < content;
    let end = start + if cut { 0 } else { len };
    Some(LinkContent {
        header: LinkHeader { kind, start, end },
        content: ethertype
            .filter(|_| !cut)
            .map(|kind| (start + content, kind)),
        cut,
    })
}

/// Reads a header of any other kind, and a header that the capturing program put in front of one.
#[inline(never)]
fn read_other(bytes: &[u8], start: usize, kind: LinkType) -> LinkContent {
    let cut = |end| LinkContent {
        header: LinkHeader { kind, start, end },
        content: None,
        cut: true,
    };
    let Some(outer) = capture_header::read(&bytes[start..], kind) else {
        return cut(start);
    };
    let frame = start + outer.len;
    if let Some(mut content) = read_common(bytes, frame, outer.frame) {
        (content.header.kind, content.header.start) = (kind, start);
        return content;
    }
    let rest = &bytes[frame..];
    let Some(end) = link_end(rest, outer.frame, outer.padded).filter(|end| end.len <= rest.len())
    else {
        return cut(frame);
    };
    let content = frame + end.len;
    LinkContent {
        header: LinkHeader {
            kind,
            start,
            end: content,
        },
        content: (end.ethertype != 0).then_some((content, end.ethertype)),
        cut: false,
    }
}

/// The end of the header of a frame of this kind; `None` if it is cut.
fn link_end(frame: &[u8], kind: LinkType, padded: bool) -> Option<LinkEnd> {
    /// The control, the addresses, and the length of the route if a bit of the source says so.
    const TOKEN_RING_LEN: usize = 14;
    const ROUTED: u8 = 0x80;
    /// The control and the addresses.
    const FDDI_LEN: usize = 13;
    /// Two addresses of 8 bytes.
    const FC_LEN: usize = 16;
    /// A global routing header, then an EtherType and 2 bytes that are reserved.
    const IPOIB_LEN: usize = 44;
    const ENC_LEN: usize = 12;

    Some(match kind {
        LinkType::IEEE802_11 => wireless::end(frame, padded)?,
        LinkType::PPP | LinkType::PPP_HDLC | LinkType::PPP_PPPD => serial::ppp(frame, kind)?,
        LinkType::C_HDLC => serial::cisco_hdlc(frame)?,
        LinkType::FRAME_RELAY => serial::frame_relay(frame)?,
        LinkType::PPP_ETHER => LinkEnd::new(0, ETHERTYPE_PPPOE_SESSION),
        LinkType::MPLS => LinkEnd::new(0, ETHERTYPE_MPLS),
        LinkType::ATM_RFC1483 => LinkEnd::new(0, ETHERTYPE_LLC),
        LinkType::TOKEN_RING if *frame.get(8)? & ROUTED != 0 => {
            let route = usize::from(frame.get(TOKEN_RING_LEN)? & 0x1f);
            LinkEnd::new(TOKEN_RING_LEN + route, ETHERTYPE_LLC)
        }
        LinkType::TOKEN_RING => LinkEnd::new(TOKEN_RING_LEN, ETHERTYPE_LLC),
        // Frames with LLC, not tokens or those of the station management.
        LinkType::FDDI if frame.first()? & 0x50 == 0x50 => LinkEnd::new(FDDI_LEN, ETHERTYPE_LLC),
        LinkType::IP_OVER_FC => LinkEnd::new(FC_LEN, ETHERTYPE_LLC),
        LinkType::IPOIB => LinkEnd::new(IPOIB_LEN, be16(frame, IPOIB_LEN - 4)?),
        LinkType::ENC => {
            let version = family(frame.get(..ENC_LEN)?, LinkType::NULL);
            LinkEnd::new(ENC_LEN, version.map_or(0, IpVersion::ethertype))
        }
        LinkType::PFLOG => {
            // Its length without the padding to a multiple of 4, and the address family.
            let (len, family) = (usize::from(*frame.first()?), *frame.get(1)?);
            let version = ip_of_family(family.into());
            let ethertype = version.map_or(0, IpVersion::ethertype);
            LinkEnd::new(len.next_multiple_of(4), ethertype)
        }
        LinkType::NFLOG => nflog(frame)?,
        _ => LinkEnd::UNKNOWN,
    })
}

/// The log of netfilter: family, version, resource, then elements of length, type and value in the
/// byte order of the machine. The packet is the value of the last one.
fn nflog(frame: &[u8]) -> Option<LinkEnd> {
    const HEADER_LEN: usize = 4;
    /// The length and the type of an element; the length includes them.
    const ELEMENT_LEN: usize = 4;
    const PAYLOAD: u16 = 9;
    let version = ip_of_family(u32::from(*frame.first()?));
    let ethertype = version.map_or(0, IpVersion::ethertype);
    // The types are small numbers, so only one byte order can fit.
    let big_endian = be16(frame, HEADER_LEN + 2)? < 0x100;
    let number = |at| {
        let number = be16(frame, at)?;
        Some(if big_endian {
            number
        } else {
            number.swap_bytes()
        })
    };
    let mut at = HEADER_LEN;
    loop {
        let (len, kind) = (usize::from(number(at)?), number(at + 2)?);
        if kind == PAYLOAD {
            return Some(LinkEnd::new(at + ELEMENT_LEN, ethertype));
        }
        if len < ELEMENT_LEN {
            return Some(LinkEnd::UNKNOWN);
        }
        at += len.next_multiple_of(4);
    }
}

/// The IP version that the first nibble names.
#[inline]
pub(super) fn version(bytes: &[u8]) -> Option<IpVersion> {
    match bytes.first()? >> 4 {
        4 => Some(IpVersion::V4),
        6 => Some(IpVersion::V6),
        0..=3 | 5 | 7.. => None,
    }
}

/// The IP version of a loopback header.
fn family(bytes: &[u8], kind: LinkType) -> Option<IpVersion> {
    if bytes.len() < FAMILY_LEN {
        return None;
    }
    let (big, little) = (
        u32::from_be_bytes(array(bytes, 0)),
        u32::from_le_bytes(array(bytes, 0)),
    );
    // The capturing machine's byte order is unknown; the numbers are small, so only one can fit.
    let family = if kind == LinkType::LOOP || big < 0x1_0000 {
        big
    } else {
        little
    };
    ip_of_family(family)
}

/// The IP version of an address family. Systems differ in the number of IPv6: 10 on Linux, 24, 28
/// or 30 on the BSDs.
fn ip_of_family(family: u32) -> Option<IpVersion> {
    match family {
        2 => Some(IpVersion::V4),
        10 | 24 | 28 | 30 => Some(IpVersion::V6),
        _ => None,
    }
}
