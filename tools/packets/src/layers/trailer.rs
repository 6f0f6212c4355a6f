//! The trailer of redundant networks, behind the payload and its padding.

use crate::packet::LinkType;

use super::link::{ETHERNET_LEN, LinkHeader};
use super::shim::{ShimKind, Shims};

/// The length of the trailer of the Parallel Redundancy Protocol (IEC 62439-3), by which a receiver
/// tells the two copies of a frame apart that come over two networks.
///
/// ```text
/// | sequence number, 2 bytes | network, 4 bits | length, 12 bits | 88 fb |
/// ```
pub(crate) const PRP_LEN: usize = 6;

/// Whether the last bytes of a frame end as a trailer does.
#[inline(always)]
pub(super) fn is_prp_marked(trailer: &[u8; PRP_LEN]) -> bool {
    trailer[4..] == [0x88, 0xfb]
}

/// Whether the marked bytes at the end of a frame are a trailer: they name one of the two networks,
/// and the length of the frame behind its EtherType, which VLAN tags may stand in front of.
#[inline(never)]
pub(super) fn is_prp_trailer(
    trailer: &[u8; PRP_LEN],
    bytes: &[u8],
    link: LinkHeader,
    shims: Shims,
) -> bool {
    const NETWORKS: [u8; 2] = [0xa, 0xb];
    let stated = usize::from(u16::from_be_bytes([trailer[2], trailer[3]]) & 0x0fff);
    let is_vlan = |kind| kind == ShimKind::Vlan;
    let tags = shims.iter(bytes).take_while(|shim| is_vlan(shim.kind));
    let headers = (0..=tags.count()).map(|tags| ETHERNET_LEN + 2 + 4 * tags);
    link.kind == LinkType::ETHERNET
        && NETWORKS.contains(&(trailer[2] >> 4))
        && headers.into_iter().any(|len| len + stated == bytes.len())
}
