//! The header of IEEE 802.11.

use std::ops::Range;

use super::link::LinkEnd;
use super::shim::ETHERTYPE_LLC;

/// Control, duration, three addresses, sequence.
const HEADER_LEN: usize = 24;
/// The fourth address, in frames between access points.
const FOURTH_LEN: usize = 6;
const QOS_LEN: usize = 2;
const HT_LEN: usize = 4;

/// Flags in the second byte.
const BOTH_DIRECTIONS: u8 = 0x03;
const MORE_FRAGMENTS: u8 = 0x04;
const PROTECTED: u8 = 0x40;
const ORDER: u8 = 0x80;

/// The end of the header; `None` if it is cut. Only data frames have content that can be read:
/// whole, not encrypted, one in a frame. If they are `padded`, they begin at a multiple of 4 bytes.
pub(super) fn end(frame: &[u8], padded: bool) -> Option<LinkEnd> {
    const MANAGEMENT: u8 = 0;
    const DATA: u8 = 2;
    const QOS: u8 = 8;
    const WITHOUT_DATA: u8 = 4;
    const AGGREGATED: u8 = 0x80;
    let [first, flags] = *frame.first_chunk()?;
    let (protocol, kind, subtype) = (first & 3, first >> 2 & 3, first >> 4);
    match (protocol, kind) {
        (0, MANAGEMENT) => return Some(LinkEnd::new(HEADER_LEN, 0)),
        (0, DATA) => {}
        (_, _) => return Some(LinkEnd::UNKNOWN),
    }
    let mut len = HEADER_LEN;
    if flags & BOTH_DIRECTIONS == BOTH_DIRECTIONS {
        len += FOURTH_LEN;
    }
    let mut readable = subtype & WITHOUT_DATA == 0 && flags & (PROTECTED | MORE_FRAGMENTS) == 0;
    // The number of the fragment.
    readable &= frame.get(22)? & 0x0f == 0;
    if subtype & QOS != 0 {
        readable &= frame.get(len)? & AGGREGATED == 0;
        len += QOS_LEN;
        if flags & ORDER != 0 {
            len += HT_LEN;
        }
    }
    if padded {
        len = len.next_multiple_of(4);
    }
    Some(LinkEnd::new(len, if readable { ETHERTYPE_LLC } else { 0 }))
}

/// Where the addresses are in this header.
pub(crate) fn addresses(header: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let whole = header.len() >= HEADER_LEN;
    let fourth = HEADER_LEN..HEADER_LEN + FOURTH_LEN;
    let four = header.len() >= fourth.end && header[1] & BOTH_DIRECTIONS == BOTH_DIRECTIONS;
    let three = whole.then_some(4..22);
    three.into_iter().chain(four.then_some(fourth))
}
