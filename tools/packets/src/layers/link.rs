//! Link headers: their length and the EtherType of what follows.

use super::network::IpVersion;
use crate::bytes::{array, be16};
use crate::link_type::LinkType;

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

/// The link header of a packet, and what follows it.
pub(super) struct LinkContent {
    pub(super) header: LinkHeader,
    /// The offset of what follows, and its EtherType. `None` if it cannot be known.
    pub(super) content: Option<(usize, u16)>,
    /// The header is of a known kind, but cut.
    pub(super) cut: bool,
}

/// Reads the link header of kind `kind` at `start`.
#[inline(always)]
pub(super) fn read(bytes: &[u8], start: usize, kind: LinkType) -> LinkContent {
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
        _ => (0, 0, None),
    };
    let cut = rest.len() < content;
    let end = start + if cut { 0 } else { len };
    LinkContent {
        header: LinkHeader { kind, start, end },
        content: ethertype
            .filter(|_| !cut)
            .map(|kind| (start + content, kind)),
        cut,
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

/// The IP version of a loopback header. Systems differ in the number of IPv6: 10 on Linux, 24, 28
/// or 30 on the BSDs.
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
    match family {
        2 => Some(IpVersion::V4),
        10 | 24 | 28 | 30 => Some(IpVersion::V6),
        _ => None,
    }
}
