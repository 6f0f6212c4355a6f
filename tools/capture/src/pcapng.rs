//! Writes the blocks of a pcapng section in the byte order of the machine.
//!
//! ```text
//! | type | length | body, options | length |
//! ```

use crate::block::{BEFORE_TAG, Frame};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
/// The length of a section that is not known.
const UNKNOWN_LENGTH: u64 = u64::MAX;

/// `opt_endofopt`.
const END_OF_OPTIONS: [u8; 4] = [0; 4];

/// The options of an interface.
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_FILTER: u16 = 11;
/// Nanoseconds: a power of ten.
const NANOSECONDS: u8 = 9;
/// The kind of a filter in front of its text: that of libpcap.
const OF_LIBPCAP: u8 = 0;

/// The options of its statistics: frames that were received, that the system has dropped, and that
/// were written.
const ISB_IFRECV: u16 = 4;
const ISB_OSDROP: u16 = 7;
const ISB_USRDELIV: u16 = 8;

/// The option of a packet for its direction, and the bytes of a packet block around its data.
const EPB_FLAGS: u16 = 2;
const AROUND_DATA: usize = 28 + 8 + 4 + 4;

/// The header of a section.
pub(crate) fn section() -> Vec<u8> {
    let mut body = BYTE_ORDER_MAGIC.to_ne_bytes().to_vec();
    // Version 1.0.
    body.extend(1_u16.to_ne_bytes());
    body.extend(0_u16.to_ne_bytes());
    body.extend(UNKNOWN_LENGTH.to_ne_bytes());
    block(SECTION, &body)
}

/// The description of an interface.
pub(crate) fn interface(name: &str, link: u16, snap_len: u32, filter: Option<&str>) -> Vec<u8> {
    let mut body = link.to_ne_bytes().to_vec();
    body.extend([0; 2]);
    body.extend(snap_len.to_ne_bytes());
    push_option(&mut body, IF_NAME, name.as_bytes());
    push_option(&mut body, IF_TSRESOL, &[NANOSECONDS]);
    // An option has at most 64 KiB, and a filter that is longer is compiled all the same.
    let filter = filter.filter(|filter| filter.len() < usize::from(u16::MAX));
    if let Some(filter) = filter {
        push_option(
            &mut body,
            IF_FILTER,
            &[&[OF_LIBPCAP], filter.as_bytes()].concat(),
        );
    }
    body.extend(END_OF_OPTIONS);
    block(INTERFACE, &body)
}

/// The statistics of an interface of the section, at this time in nanoseconds.
pub(crate) fn statistics(
    interface: u32,
    time: u64,
    received: u64,
    dropped: u64,
    delivered: u64,
) -> Vec<u8> {
    let mut body = interface.to_ne_bytes().to_vec();
    body.extend(((time >> 32) as u32).to_ne_bytes());
    body.extend((time as u32).to_ne_bytes());
    push_option(&mut body, ISB_IFRECV, &received.to_ne_bytes());
    push_option(&mut body, ISB_OSDROP, &dropped.to_ne_bytes());
    push_option(&mut body, ISB_USRDELIV, &delivered.to_ne_bytes());
    body.extend(END_OF_OPTIONS);
    block(STATISTICS, &body)
}

/// The length of the block of a packet with so many captured bytes.
pub(crate) fn packet_len(captured: usize) -> usize {
    AROUND_DATA + captured.next_multiple_of(4)
}

/// Writes the block of a packet, with its VLAN tag put back, of which `captured` bytes count.
///
/// # Panics
/// If `out` does not have [`packet_len`] bytes, or the frame and its tag not so many.
#[inline]
pub(crate) fn write_packet(out: &mut [u8], interface: u32, frame: &Frame<'_>, captured: usize) {
    let len = packet_len(captured);
    assert_eq!(out.len(), len);
    let tag_len = frame.tag.map_or(0, |tag| tag.len());
    let numbers = [
        ENHANCED_PACKET,
        len as u32,
        interface,
        (frame.time >> 32) as u32,
        frame.time as u32,
        captured as u32,
        frame.original_len.saturating_add(tag_len as u32),
    ];
    for (place, number) in out.chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
    let (data, rest) = out[28..].split_at_mut(captured);
    match frame.tag {
        None => data.copy_from_slice(&frame.bytes[..captured]),
        Some(tag) => {
            let (addresses, behind) = frame.bytes.split_at(BEFORE_TAG);
            let mut rest = data;
            for part in [addresses, &tag, behind] {
                let (place, left) = rest.split_at_mut(part.len().min(rest.len()));
                place.copy_from_slice(&part[..place.len()]);
                rest = left;
            }
        }
    }
    let padding = captured.next_multiple_of(4) - captured;
    rest[..padding].fill(0);
    let rest = &mut rest[padding..];
    let [code, length] = [EPB_FLAGS.to_ne_bytes(), 4_u16.to_ne_bytes()];
    rest[..2].copy_from_slice(&code);
    rest[2..4].copy_from_slice(&length);
    rest[4..8].copy_from_slice(&flags(frame.packet_type).to_ne_bytes());
    rest[8..12].copy_from_slice(&END_OF_OPTIONS);
    rest[12..].copy_from_slice(&(len as u32).to_ne_bytes());
}

/// The direction in bits 0 and 1, and to whom the frame is in bits 2 to 4.
const fn flags(packet_type: u8) -> u32 {
    const INBOUND: u32 = 1;
    const OUTBOUND: u32 = 2;
    match packet_type {
        libc::PACKET_HOST => 1 << 2 | INBOUND,
        libc::PACKET_MULTICAST => 2 << 2 | INBOUND,
        libc::PACKET_BROADCAST => 3 << 2 | INBOUND,
        libc::PACKET_OTHERHOST => 4 << 2 | INBOUND,
        libc::PACKET_OUTGOING => OUTBOUND,
        _ => 0,
    }
}

fn push_option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend(code.to_ne_bytes());
    body.extend((value.len() as u16).to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

fn block(block_type: u32, body: &[u8]) -> Vec<u8> {
    let len = (body.len() as u32 + 12).to_ne_bytes();
    [&block_type.to_ne_bytes(), &len, body, &len].concat()
}

#[cfg(test)]
mod tests {
    use echoless_packets::framing::{BlockKind, Framer, Next};
    use echoless_packets::{InterfaceId, LinkType};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// All blocks of a section.
    fn blocks(section: &[u8]) -> Vec<BlockKind> {
        let (mut framer, mut at, mut kinds) = (Framer::new(), 0, Vec::new());
        while let Next::Block { range, kind } = framer.next_block(section, at, true).unwrap() {
            at = range.end;
            kinds.push(kind);
        }
        kinds
    }

    #[test]
    fn a_section_is_framed() {
        let mut bytes = section();
        bytes.extend(interface("eth0", 1, 262_144, Some("udp")));
        bytes.extend(interface("tun0", 101, 96, Some(&"x".repeat(70_000))));
        bytes.extend(statistics(1, 1 << 40, 5, 3, 2));
        let numbered = |index| BlockKind::Interface(InterfaceId { section: 0, index });
        let expected = [
            BlockKind::Header,
            numbered(0),
            numbered(1),
            BlockKind::Other(STATISTICS),
        ];
        assert_eq!(blocks(&bytes), expected);
    }

    proptest! {
        #[test]
        fn a_packet_has_its_tag_back(
            data in vec(any::<u8>(), 0..100),
            tag: Option<[u8; 4]>,
            numbers in (any::<u32>(), 0..i64::MAX as u64, 0..8_u8),
            snap_len in 0..120_usize,
        ) {
            let (original_len, time, packet_type) = numbers;
            let tag = tag.filter(|_| data.len() >= BEFORE_TAG);
            let frame = Frame { time, bytes: &data, original_len, tag, packet_type };
            let mut whole = data.clone();
            if let Some(tag) = tag {
                whole.splice(BEFORE_TAG..BEFORE_TAG, tag);
            }
            let captured = whole.len().min(snap_len);
            let mut bytes = [section(), interface("a", 1, 0, None)].concat();
            let start = bytes.len();
            bytes.resize(start + packet_len(captured), 0xee);
            write_packet(&mut bytes[start..], 0, &frame, captured);
            let Some(BlockKind::Packet(packet)) = blocks(&bytes).pop() else {
                panic!("no packet");
            };
            prop_assert_eq!(&bytes[packet.data.clone()], &whole[..captured]);
            prop_assert_eq!(packet.timestamp, Some(time as i64));
            prop_assert_eq!(packet.link, LinkType::ETHERNET);
            let tag_len = tag.map_or(0, |_| 4);
            prop_assert_eq!(packet.original_len, original_len.saturating_add(tag_len));
            // Nothing behind the data is left as it was.
            prop_assert!(bytes[packet.data.end..].iter().all(|byte| *byte != 0xee));
        }
    }
}
