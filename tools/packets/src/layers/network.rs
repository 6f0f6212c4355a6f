//! IP headers: IPv4 with options, IPv6 with extension headers.

use super::transport::{TCP, UDP};
use crate::bytes::{array, be16};

const IPV4_LEN: usize = 20;
const IPV6_LEN: usize = 40;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;

/// A version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IpVersion {
    /// RFC 791.
    V4,
    /// RFC 8200.
    V6,
}

impl IpVersion {
    /// The EtherType that announces it.
    #[must_use]
    #[inline]
    pub fn ethertype(self) -> u16 {
        match self {
            Self::V4 => 0x0800,
            Self::V6 => 0x86dd,
        }
    }

    /// The version that an EtherType announces.
    #[must_use]
    #[inline]
    pub fn from_ethertype(ethertype: u16) -> Option<Self> {
        [Self::V4, Self::V6]
            .into_iter()
            .find(|version| version.ethertype() == ethertype)
    }

    /// The length of the header without options and extension headers, in bytes.
    #[must_use]
    #[inline]
    pub fn fixed_len(self) -> usize {
        match self {
            Self::V4 => IPV4_LEN,
            Self::V6 => IPV6_LEN,
        }
    }
}

/// An IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// The version.
    pub version: IpVersion,
    /// The offset of its first byte.
    pub start: usize,
    /// The offset behind it, options and extension headers included.
    pub end: usize,
    /// The protocol of what follows, by its IP protocol number.
    pub protocol: u8,
    /// Whether the packet is a fragment, the first one included. A fragment has no transport layer.
    pub fragment: bool,
    /// The offset at which the packet ends on the wire, by its length field. Behind the end of the
    /// frame if the frame was shortened before it was captured.
    pub wire_end: usize,
    /// The length field is 0, as segmentation offload leaves it: the packet ends with the frame.
    pub offloaded: bool,
}

impl Network {
    /// The offset behind the fixed part of the header: the IPv4 options or the IPv6 extension
    /// headers begin here.
    #[must_use]
    pub fn fixed_end(&self) -> usize {
        self.start + self.version.fixed_len()
    }
}

/// The reason why there is no IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IpFault {
    /// The capture ends inside it.
    Cut,
    /// It contradicts itself or the length of the frame.
    Malformed,
}

/// Reads the IP header at `start`. The frame ends at `wire_end` on the wire.
///
/// If it `is_announced`, a length beyond the frame is that of a packet which was shortened before
/// it was captured, as packet brokers do. Where the first nibble is all that suggests IP, it is
/// not: most other content would pass for such a packet.
#[inline(always)]
pub(super) fn read(
    bytes: &[u8],
    start: usize,
    version: IpVersion,
    wire_end: usize,
    is_announced: bool,
) -> Result<Network, IpFault> {
    let header = bytes
        .get(start..)
        .filter(|rest| !rest.is_empty())
        .ok_or(IpFault::Cut)?;
    if super::link::version(header) != Some(version) {
        return Err(IpFault::Malformed);
    }
    if header.len() < version.fixed_len() {
        return Err(IpFault::Cut);
    }
    // What a packet without a length takes of the frame.
    let frame = is_announced.then(|| wire_end.saturating_sub(start));
    let network = match version {
        IpVersion::V4 => read_v4(header, start, frame)?,
        IpVersion::V6 => read_v6(header, start, frame)?,
    };
    if network.wire_end > wire_end && !is_announced {
        return Err(IpFault::Malformed);
    }
    Ok(network)
}

#[inline(always)]
fn read_v4(header: &[u8], start: usize, frame: Option<usize>) -> Result<Network, IpFault> {
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let stated = usize::from(u16::from_be_bytes(array(header, 2)));
    let offloaded = stated == 0 && frame.is_some();
    let total = frame.filter(|_| offloaded).unwrap_or(stated);
    if header_len < IPV4_LEN || total < header_len {
        return Err(IpFault::Malformed);
    }
    if header.len() < header_len {
        return Err(IpFault::Cut);
    }
    // More fragments, and the offset; not "don't fragment".
    let fragment = u16::from_be_bytes(array(header, 6)) & 0x3fff != 0;
    Ok(Network {
        version: IpVersion::V4,
        start,
        end: start + header_len,
        protocol: header[9],
        fragment,
        wire_end: start + total,
        offloaded,
    })
}

#[inline(always)]
fn read_v6(header: &[u8], start: usize, frame: Option<usize>) -> Result<Network, IpFault> {
    let payload = usize::from(u16::from_be_bytes(array(header, 4)));
    let mut protocol = header[6];
    // A packet may have no payload, and what follows is padding then; but not one of TCP or UDP,
    // which are what segmentation is offloaded of.
    let has_payload = matches!(protocol, TCP | UDP);
    let frame = frame.filter(|frame| payload == 0 && has_payload && *frame > IPV6_LEN);
    let offloaded = frame.is_some();
    let total = frame.unwrap_or(IPV6_LEN + payload);
    let mut at = IPV6_LEN;
    let mut fragment = false;
    // A payload length of 0 in front of hop-by-hop options is a jumbogram, which is compared whole.
    while let Some(len) = extension_len(header, at, protocol) {
        let len = len.ok_or(IpFault::Cut)?;
        if at + len > total {
            return Err(IpFault::Malformed);
        }
        if at + len > header.len() {
            return Err(IpFault::Cut);
        }
        if protocol == FRAGMENT {
            // The offset and "more fragments". A fragment header of a whole packet is legal.
            fragment |= be16(header, at + 2).is_some_and(|word| word & 0xfff9 != 0);
        }
        protocol = header[at];
        at += len;
        if fragment {
            // What follows is the middle of another packet, or its first part.
            break;
        }
    }
    Ok(Network {
        version: IpVersion::V6,
        start,
        end: start + at,
        protocol,
        fragment,
        wire_end: start + total,
        offloaded,
    })
}

/// The length of the extension header `kind` at `at`: `None` if `kind` is none, `Some(None)` if its
/// length is not captured.
fn extension_len(header: &[u8], at: usize, kind: u8) -> Option<Option<usize>> {
    let units = header.get(at + 1).map(|len| usize::from(*len));
    match kind {
        HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HOST_IDENTITY | SHIM6 => {
            Some(units.map(|units| (units + 1) * 8))
        }
        FRAGMENT => Some(units.map(|_| 8)),
        AUTHENTICATION => Some(units.map(|units| (units + 2) * 4)),
        _ => None,
    }
}
