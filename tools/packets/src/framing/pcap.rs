//! The pcap format: one file header, then packets.
//!
//! ```text
//! file header, 24 bytes              packet header, 16 bytes, then the data
//! | magic | 2 | 4 | zone | sigfigs | | seconds | fraction | captured | original |
//! | snap length | link type        |
//! ```

use super::block::{BlockKind, PacketBlock, Read};
use super::byte_order::ByteOrder;
use super::error::InvalidField;
use crate::link_type::LinkType;
use crate::packet::InterfaceId;

const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

/// The values of the file header.
#[derive(Debug, Clone)]
pub(super) struct PcapFile {
    order: ByteOrder,
    nanoseconds: bool,
    link: LinkType,
}

impl PcapFile {
    /// Reads the file header, whose magic is known. `None` if `input` is shorter; it must have
    /// [`FILE_HEADER`] bytes.
    pub(super) fn read_header(
        order: ByteOrder,
        nanoseconds: bool,
        input: &[u8],
    ) -> Result<(Read, Option<Self>), InvalidField> {
        if input.len() < FILE_HEADER {
            return Ok((Read::Needs(FILE_HEADER), None));
        }
        let version = (order.u16(input, 4), order.u16(input, 6));
        if version != (2, 4) {
            // Before 2.4 the two lengths of a packet may be swapped.
            let found = format!("{}.{}", version.0, version.1);
            return Err(InvalidField::new("version", found, "2.4"));
        }
        let file = Self {
            order,
            nanoseconds,
            // The high half holds the length of the frame check sequence.
            link: LinkType((order.u32(input, 20) & 0xffff) as u16),
        };
        let header = Read::Block {
            len: FILE_HEADER,
            kind: BlockKind::Header,
        };
        Ok((header, Some(file)))
    }

    /// Reads the packet at the beginning of `input`.
    #[inline]
    pub(super) fn read_packet(&self, input: &[u8], max: usize) -> Result<Read, InvalidField> {
        if input.len() < PACKET_HEADER {
            return Ok(Read::Needs(PACKET_HEADER));
        }
        let order = self.order;
        let captured = order.u32(input, 8);
        let len = usize::try_from(captured)
            .ok()
            .and_then(|n| n.checked_add(PACKET_HEADER));
        let Some(len) = len.filter(|len| *len <= max) else {
            let allowed = format!("at most {}", max.saturating_sub(PACKET_HEADER));
            return Err(InvalidField::new("captured length", captured, allowed));
        };
        if input.len() < len {
            return Ok(Read::Needs(len));
        }
        let unit = if self.nanoseconds { 1 } else { 1000 };
        // At most 2^32 seconds and 2^32 milliseconds: no overflow.
        let nanoseconds =
            i64::from(order.u32(input, 0)) * 1_000_000_000 + i64::from(order.u32(input, 4)) * unit;
        let packet = PacketBlock {
            interface: InterfaceId::default(),
            link: self.link,
            data: PACKET_HEADER..len,
            original_len: order.u32(input, 12),
            timestamp: Some(nanoseconds),
        };
        let kind = BlockKind::Packet(packet);
        Ok(Read::Block { len, kind })
    }
}
