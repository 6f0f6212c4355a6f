//! What the blocks of a capture have beside their frames, and the block of a frame, which is written
//! where the caller wants it, in the byte order of the machine.

use echoless_packets::LinkType;
use echoless_packets::framing::block_type::ENHANCED_PACKET;
use echoless_packets::writer::PcapngWriter;

use crate::block::{BEFORE_TAG, Frame};
use crate::options::InterfaceCounts;

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
const AROUND_DATA: usize = BEFORE_DATA + 8 + 4 + 4;

/// A section in the byte order of the machine.
pub(crate) fn section() -> PcapngWriter {
    PcapngWriter::new(cfg!(target_endian = "big"))
}

/// Describes the next interface.
pub(crate) fn describe(
    writer: &mut PcapngWriter,
    name: &str,
    link: LinkType,
    snap_len: u32,
    filter: Option<&str>,
) {
    let filter = filter.map(|filter| [&[OF_LIBPCAP], filter.as_bytes()].concat());
    let mut options = vec![(IF_NAME, name.as_bytes()), (IF_TSRESOL, &[NANOSECONDS])];
    // An option has at most 64 KiB, and a filter that is longer is compiled all the same.
    let filter = filter
        .as_deref()
        .filter(|it| it.len() <= usize::from(u16::MAX));
    options.extend(filter.map(|filter| (IF_FILTER, filter)));
    writer.interface(link, snap_len, &options);
}

/// Writes the statistics of an interface at this time, in nanoseconds.
pub(crate) fn count(writer: &mut PcapngWriter, interface: u32, time: u64, of: &InterfaceCounts) {
    let numbers = [of.received(), of.dropped(), of.frames()].map(u64::to_ne_bytes);
    let options = [ISB_IFRECV, ISB_OSDROP, ISB_USRDELIV];
    let options: Vec<_> = options
        .into_iter()
        .zip(numbers.iter().map(|it| &it[..]))
        .collect();
    writer.statistics(interface, time, &options);
}

/// The bytes of such a block in front of its data.
pub(crate) const BEFORE_DATA: usize = 28;

/// The length of the block of a packet with so many captured bytes.
#[inline(always)]
pub(crate) fn packet_len(captured: usize) -> usize {
    AROUND_DATA + captured.next_multiple_of(4)
}

/// The bytes of a packet that its block has: its tag is put back, and at most `snap_len` count.
#[inline(always)]
pub(crate) fn captured(frame: &Frame<'_>, snap_len: usize) -> usize {
    let tag_len = frame.tag.map_or(0, |tag| tag.len());
    (frame.bytes.len() + tag_len).min(snap_len)
}

/// Writes the block of a packet, with its VLAN tag put back, of which `captured` bytes count.
/// Returns its length on the wire.
///
/// # Panics
/// If `out` does not have [`packet_len`] bytes, or the frame and its tag not so many.
#[inline]
pub(crate) fn write_packet(
    out: &mut [u8],
    interface: u32,
    frame: &Frame<'_>,
    captured: usize,
) -> u32 {
    let len = packet_len(captured);
    assert_eq!(out.len(), len);
    let tag_len = frame.tag.map_or(0, |tag| tag.len());
    let original_len = frame.original_len.saturating_add(tag_len as u32);
    let numbers = [
        ENHANCED_PACKET,
        len as u32,
        interface,
        (frame.time >> 32) as u32,
        frame.time as u32,
        captured as u32,
        original_len,
    ];
    let (header, out) = out.split_at_mut(BEFORE_DATA);
    let places = header.as_chunks_mut::<4>().0;
    for (place, number) in places.iter_mut().zip(numbers) {
        *place = number.to_ne_bytes();
    }
    let (data, rest) = out.split_at_mut(captured);
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
    original_len
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

#[cfg(test)]
mod tests {
    use echoless_packets::InterfaceId;
    use echoless_packets::framing::{BlockKind, Framer, Next, block_type};
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
        let mut writer = section();
        describe(
            &mut writer,
            "eth0",
            LinkType::ETHERNET,
            262_144,
            Some("udp"),
        );
        let long = "x".repeat(70_000);
        describe(&mut writer, "tun0", LinkType::RAW, 96, Some(&long));
        count(&mut writer, 1, 1 << 40, &InterfaceCounts::default());
        let bytes = writer.into_bytes();
        let numbered = |index| BlockKind::Interface(InterfaceId { section: 0, index });
        let expected = [
            BlockKind::Header,
            numbered(0),
            numbered(1),
            BlockKind::Other(block_type::STATISTICS),
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
            let has_partial_checksum = false;
            let frame = Frame {
                time, bytes: &data, original_len, tag, packet_type, has_partial_checksum,
            };
            let mut whole = data.clone();
            if let Some(tag) = tag {
                whole.splice(BEFORE_TAG..BEFORE_TAG, tag);
            }
            let captured = whole.len().min(snap_len);
            let mut writer = section();
            describe(&mut writer, "a", LinkType::ETHERNET, 0, None);
            let mut bytes = writer.into_bytes();
            let start = bytes.len();
            bytes.resize(start + packet_len(captured), 0xee);
            let on_wire = write_packet(&mut bytes[start..], 0, &frame, captured);
            let Some(BlockKind::Packet(packet)) = blocks(&bytes).pop() else {
                panic!("no packet");
            };
            prop_assert_eq!(&bytes[packet.data.clone()], &whole[..captured]);
            prop_assert_eq!(packet.timestamp, Some(time as i64));
            prop_assert_eq!(packet.link, LinkType::ETHERNET);
            let tag_len = tag.map_or(0, |_| 4);
            prop_assert_eq!(packet.original_len, original_len.saturating_add(tag_len));
            prop_assert_eq!(on_wire, packet.original_len);
            // Nothing behind the data is left as it was.
            prop_assert!(bytes[packet.data.end..].iter().all(|byte| *byte != 0xee));
        }
    }
}
