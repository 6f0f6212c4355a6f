//! Headers of serial links: PPP, Cisco HDLC, frame relay.

use super::link::LinkEnd;
use super::network::IpVersion;
use super::shim::{ETHERTYPE_MPLS, ETHERTYPE_MPLS_MULTICAST};
use crate::bytes::be16;
use crate::packet::LinkType;

/// The address and control bytes of PPP in HDLC-like framing (RFC 1662).
const PPP_FRAMING: [u8; 2] = [0xff, 0x03];
/// The address bytes of Cisco HDLC: unicast and multicast.
const CISCO_ADDRESSES: [u8; 2] = [0x0f, 0x8f];

/// The EtherType of what this PPP protocol number announces; 0 if it has none.
pub(super) fn ppp_ethertype(protocol: u16) -> u16 {
    match protocol {
        0x0021 => IpVersion::V4.ethertype(),
        0x0057 => IpVersion::V6.ethertype(),
        0x0281 => ETHERTYPE_MPLS,
        0x0283 => ETHERTYPE_MPLS_MULTICAST,
        _ => 0,
    }
}

/// PPP: address and control if the frame has them, then the protocol.
pub(super) fn ppp(frame: &[u8], kind: LinkType) -> Option<LinkEnd> {
    let first = *frame.first()?;
    if kind == LinkType::PPP_HDLC && CISCO_ADDRESSES.contains(&first) {
        return cisco_hdlc(frame);
    }
    let framed = kind == LinkType::PPP_PPPD || frame.starts_with(&PPP_FRAMING);
    let at = if framed { PPP_FRAMING.len() } else { 0 };
    // A compressed number has one byte, which is odd; others begin with an even one.
    let first = *frame.get(at)?;
    let (len, protocol) = if first & 1 == 1 {
        (at + 1, u16::from(first))
    } else {
        (at + 2, be16(frame, at)?)
    };
    Some(LinkEnd::new(len, ppp_ethertype(protocol)))
}

/// Cisco HDLC: address, control, EtherType.
pub(super) fn cisco_hdlc(frame: &[u8]) -> Option<LinkEnd> {
    Some(LinkEnd::new(4, be16(frame, 2)?))
}

/// Frame relay with an address of 2 bytes (RFC 2427): address, control, an identifier of the
/// protocol.
pub(super) fn frame_relay(frame: &[u8]) -> Option<LinkEnd> {
    const LAST_OF_ADDRESS: u8 = 1;
    const UNNUMBERED: u8 = 0x03;
    let [first, second, control] = *frame.first_chunk()?;
    if first & LAST_OF_ADDRESS != 0 || second & LAST_OF_ADDRESS == 0 || control != UNNUMBERED {
        return Some(LinkEnd::UNKNOWN);
    }
    // A byte of padding makes the length even.
    let at = 3 + usize::from(*frame.get(3)? == 0);
    Some(match frame.get(at)? {
        0xcc => LinkEnd::new(at + 1, IpVersion::V4.ethertype()),
        0x8e => LinkEnd::new(at + 1, IpVersion::V6.ethertype()),
        // SNAP: an organisation, and its number of the protocol.
        0x80 if frame.get(at + 1..at + 4)? == [0; 3] => LinkEnd::new(at + 6, be16(frame, at + 4)?),
        _ => LinkEnd::UNKNOWN,
    })
}
