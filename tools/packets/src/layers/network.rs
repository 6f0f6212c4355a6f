//! IP headers: IPv4 with options, IPv6 with extension headers.

use crate::bytes::{array, be16};

pub(super) const IPV4_LEN: usize = 20;
pub(super) const IPV6_LEN: usize = 40;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
/// Nothing follows.
const NO_NEXT_HEADER: u8 = 59;
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
    /// The offset behind it, options and whole extension headers included.
    pub end: usize,
    /// The protocol of what follows, by its IP protocol number.
    pub protocol: u8,
    /// Whether the packet is a fragment, the first one included. A fragment has no transport layer.
    pub fragment: bool,
    /// The capture ends inside the options, which are not part of the header then, or inside the
    /// extension header that follows it. There is no transport layer.
    pub cut: bool,
    /// The offset at which the packet ends on the wire, by its length field. Behind the end of the
    /// frame if the frame was shortened before it was captured.
    pub wire_end: usize,
    /// The length field is 0, as segmentation offload leaves it: the packet ends with the frame; or
    /// with the length of a jumbo payload option.
    pub no_length: bool,
}

impl Network {
    /// Whether these bytes are a packet beyond doubt, in a frame that ends at `wire_end`, without
    /// anything that announces it: its checksum is right, or it has exactly the length of the rest.
    pub(super) fn is_certain(&self, bytes: &[u8], wire_end: usize) -> bool {
        let right = match self.version {
            IpVersion::V4 => is_checksum_right(&bytes[self.start..self.end]),
            IpVersion::V6 => self.wire_end == wire_end,
        };
        right && !self.cut && !self.no_length && self.wire_end <= wire_end
    }
}

/// Whether the 16-bit words of an IPv4 header add up as its checksum demands.
fn is_checksum_right(header: &[u8]) -> bool {
    let words = header
        .chunks_exact(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    // At most 30 words: one carry from the sum of the carries.
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (folded & 0xffff) + (folded >> 16) == 0xffff
}

/// The reason why there is no IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IpFault {
    /// The capture ends inside it.
    Cut,
    /// It contradicts itself or the length of the frame.
    Malformed,
}

/// What suggests that there is an IP header, and thus which lengths show that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    /// The frame announces it. A length beyond the frame is that of a packet which was shortened
    /// before it was captured, as packet brokers do.
    Frame,
    /// A header in the frame announces it: a length beyond what that header bounds shows that there
    /// is none.
    Inside,
    /// Its first nibble alone. Most other content would pass for a packet that was shortened or has
    /// no length.
    Nibble,
}

/// Reads the IP header at `start`. What it is in ends at `wire_end` on the wire.
#[inline(always)]
pub(super) fn read(
    bytes: &[u8],
    start: usize,
    version: IpVersion,
    wire_end: usize,
    evidence: Evidence,
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
    let frame = wire_end.saturating_sub(start);
    let network = match version {
        IpVersion::V4 => read_v4(header, start, frame)?,
        IpVersion::V6 => read_v6(header, start, frame)?,
    };
    let fits = network.wire_end <= wire_end || evidence == Evidence::Frame;
    if !fits || network.no_length && evidence == Evidence::Nibble {
        return Err(IpFault::Malformed);
    }
    Ok(network)
}

#[inline(always)]
fn read_v4(header: &[u8], start: usize, frame: usize) -> Result<Network, IpFault> {
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let stated = usize::from(u16::from_be_bytes(array(header, 2)));
    let no_length = stated == 0;
    let total = if no_length { frame } else { stated };
    if header_len < IPV4_LEN || total < header_len {
        return Err(IpFault::Malformed);
    }
    let cut = header.len() < header_len;
    // More fragments, and the offset; not "don't fragment".
    let fragment = u16::from_be_bytes(array(header, 6)) & 0x3fff != 0;
    Ok(Network {
        version: IpVersion::V4,
        start,
        end: start + if cut { IPV4_LEN } else { header_len },
        protocol: header[9],
        fragment,
        cut,
        wire_end: start + total,
        no_length,
    })
}

#[inline(always)]
fn read_v6(header: &[u8], start: usize, frame: usize) -> Result<Network, IpFault> {
    let payload = usize::from(u16::from_be_bytes(array(header, 4)));
    let mut protocol = header[6];
    // Only where nothing can follow, what follows is padding.
    let no_length = payload == 0 && protocol != NO_NEXT_HEADER && frame > IPV6_LEN;
    let total = if no_length {
        jumbo_len(header).unwrap_or(frame)
    } else {
        IPV6_LEN + payload
    };
    let mut at = IPV6_LEN;
    let (mut fragment, mut cut) = (false, false);
    while let Some(len) = extension_len(header, at, protocol) {
        if at + len > total {
            return Err(IpFault::Malformed);
        }
        if at + len > header.len() {
            cut = true;
            break;
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
        cut,
        wire_end: start + total,
        no_length,
    })
}

/// The length of a jumbogram (RFC 2675), from an option in front of all other extension headers.
/// The option may be absent: Linux leaves it out on the way to the network interface.
#[cold]
fn jumbo_len(header: &[u8]) -> Option<usize> {
    const PADDING: u8 = 0;
    const JUMBO_PAYLOAD: u8 = 0xc2;
    if header[6] != HOP_BY_HOP {
        return None;
    }
    let end = IPV6_LEN + extension_len(header, IPV6_LEN, HOP_BY_HOP)?;
    let options = header.get(..end)?;
    let mut at = IPV6_LEN + 2;
    while let Some(kind) = options.get(at) {
        let len = usize::from(*options.get(at + 1)?);
        match *kind {
            PADDING => at += 1,
            JUMBO_PAYLOAD => {
                let value = *options.get(at + 2..)?.first_chunk()?;
                let payload = usize::try_from(u32::from_be_bytes(value)).ok()?;
                // A shorter packet has no use for the option.
                let valid = len == 4 && payload > usize::from(u16::MAX);
                return valid.then_some(IPV6_LEN + payload);
            }
            _ => at += 2 + len,
        }
    }
    None
}

/// The length of the extension header `kind` at `at`, or the least one if it is not captured;
/// `None` if `kind` is none.
fn extension_len(header: &[u8], at: usize, kind: u8) -> Option<usize> {
    let units = header.get(at + 1).map_or(0, |len| usize::from(*len));
    match kind {
        HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HOST_IDENTITY | SHIM6 => {
            Some((units + 1) * 8)
        }
        FRAGMENT => Some(8),
        AUTHENTICATION => Some((units + 2) * 4),
        _ => None,
    }
}
