//! The pcap format: one file header, then packets.
//!
//! ```text
//! file header, 24 bytes              packet header, 16 bytes, then the data
//! | magic | 2 | 4 | zone | sigfigs | | seconds | fraction | captured | original |
//! | snap length | link type        |
//! ```
//! Versions before 2.3 have the lengths of a packet in the opposite order, and so have some files
//! of version 2.3. There the larger one is taken for the original length, as libpcap does.

use super::block::{BlockKind, PacketBlock, Read};
use super::error::InvalidField;
use crate::bytes::ByteOrder;
use crate::packet::{InterfaceId, LinkType};

const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

/// The current version of the format.
const VERSION: (u16, u16) = (2, 4);

/// The values of the file header.
#[derive(Debug, Clone)]
pub(super) struct PcapFile {
    order: ByteOrder,
    nanoseconds: bool,
    link: LinkType,
    version: (u16, u16),
    lengths: Lengths,
}

/// The order of the two lengths of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lengths {
    /// Captured, original.
    Usual,
    /// Original, captured.
    Swapped,
    /// Either; the captured length is not the larger one.
    Unknown,
}

impl Lengths {
    /// The order in files of this version, if the version is known.
    fn of_version(version: (u16, u16)) -> Option<Self> {
        match version {
            VERSION => Some(Self::Usual),
            (2, 3) => Some(Self::Unknown),
            // tcpdump of DG/UX writes 543.0.
            (2, 0..=2) | (543, 0) => Some(Self::Swapped),
            (_, _) => None,
        }
    }

    /// Whether these two lengths, in the order of the file, are swapped.
    #[inline]
    fn are_swapped(self, first: u32, second: u32) -> bool {
        match self {
            Self::Usual => false,
            Self::Swapped => true,
            Self::Unknown => first > second,
        }
    }
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
        let Some(lengths) = Lengths::of_version(version) else {
            let found = format!("{}.{}", version.0, version.1);
            return Err(InvalidField::new("version", found, "2.0 to 2.4"));
        };
        let file = Self {
            order,
            nanoseconds,
            // The high half holds the length of the frame check sequence.
            link: LinkType((order.u32(input, 20) & 0xffff) as u16),
            version,
            lengths,
        };
        let header = Read::Block {
            len: FILE_HEADER,
            kind: BlockKind::Header,
        };
        Ok((header, Some(file)))
    }

    /// Reads the packet at the beginning of `input`.
    #[inline(always)]
    pub(super) fn read_packet(&self, input: &[u8], max: usize) -> Result<Read, InvalidField> {
        if input.len() < PACKET_HEADER {
            return Ok(Read::Needs(PACKET_HEADER));
        }
        let order = self.order;
        let (mut captured, mut original) = (order.u32(input, 8), order.u32(input, 12));
        if self.lengths.are_swapped(captured, original) {
            (captured, original) = (original, captured);
        }
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
            original_len: original,
            timestamp: Some(nanoseconds),
        };
        let kind = BlockKind::Packet(packet);
        Ok(Read::Block { len, kind })
    }

    /// Whether the version is one before the current one.
    #[inline]
    pub(super) fn is_old(&self) -> bool {
        self.version != VERSION
    }

    /// Rewrites a block of the file in the form of the current version.
    pub(super) fn upgrade(&self, block: &mut [u8], kind: &BlockKind) {
        let order = self.order;
        match kind {
            BlockKind::Header => {
                order.put_u16(block, 4, VERSION.0);
                order.put_u16(block, 6, VERSION.1);
            }
            BlockKind::Packet(packet) => {
                // The length of the data is at most that of a block.
                order.put_u32(block, 8, packet.data.len() as u32);
                order.put_u32(block, 12, packet.original_len);
            }
            BlockKind::Interface(_) | BlockKind::Other(_) => {}
        }
    }
}
