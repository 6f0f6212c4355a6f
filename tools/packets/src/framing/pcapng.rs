//! The pcapng format: sections of typed blocks.
//!
//! ```text
//! | type | length | body, padded to 4 bytes | length |
//! ```
//! The section header decides the byte order up to the next one. Interfaces are numbered in the
//! order of their descriptions in the section.

use std::ops::Range;

use super::block::{BlockKind, PacketBlock, Read};
use super::error::InvalidField;
use super::interface::Interface;
use crate::bytes::{ByteOrder, array};
use crate::packet::InterfaceId;

/// The most interfaces of a section. A bound on memory: every description is kept.
pub const MAX_INTERFACES: usize = 1 << 16;

/// The types of blocks.
pub mod block_type {
    /// The header of a section.
    pub const SECTION: u32 = 0x0a0d_0d0a;
    /// The description of an interface.
    pub const INTERFACE: u32 = 1;
    /// A packet of files before 2004.
    pub const OBSOLETE_PACKET: u32 = 2;
    /// A packet without a time.
    pub const SIMPLE_PACKET: u32 = 3;
    /// The statistics of an interface.
    pub const STATISTICS: u32 = 5;
    /// A packet.
    pub const ENHANCED_PACKET: u32 = 6;
}

use block_type::{ENHANCED_PACKET, INTERFACE, OBSOLETE_PACKET, SECTION, SIMPLE_PACKET};

/// Tells the byte order of a section in its header.
pub const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

/// Type and length, which the body follows.
const BEFORE: usize = 8;
/// Type and both lengths.
const AROUND: usize = 12;
/// What the data of a packet block with a time follows.
const PACKET_DATA: usize = BEFORE + 20;

/// The bytes of a section header that hold the length of the section, the header not included.
const SECTION_LENGTH: Range<usize> = 16..24;

/// Marks the length of a section as unspecified in its header, a [`BlockKind::Header`] of a pcapng
/// file, and leaves any other header as it is. A copy without some of the blocks needs this:
/// readers may skip the section by its length.
///
/// # Examples
/// ```
/// use echoless_packets::framing::set_section_length_unspecified;
/// // Type, length and byte order of the block, version 1.0, length of the section, length again.
/// let mut header = [0; 28];
/// header[..4].copy_from_slice(&[0x0a, 0x0d, 0x0d, 0x0a]);
/// header[16] = 40;
/// set_section_length_unspecified(&mut header);
/// assert_eq!(header[16..24], [0xff; 8]);
/// ```
pub fn set_section_length_unspecified(header: &mut [u8]) {
    if header.starts_with(&SECTION.to_be_bytes())
        && let Some(length) = header.get_mut(SECTION_LENGTH)
    {
        // -1, which is the same bytes in both byte orders.
        length.fill(0xff);
    }
}

/// The state of a pcapng file: the current section.
#[derive(Debug, Clone)]
pub(super) struct PcapngFile {
    order: ByteOrder,
    /// Sections so far; the number of the current one is 1 less.
    sections: u32,
    interfaces: Vec<Interface>,
}

impl PcapngFile {
    pub(super) fn new() -> Self {
        Self {
            order: ByteOrder::Little,
            sections: 0,
            interfaces: Vec::new(),
        }
    }

    /// Reads the block at the beginning of `input`. The state changes only if it is whole and good.
    #[inline]
    pub(super) fn read_block(&mut self, input: &[u8], max: usize) -> Result<Read, InvalidField> {
        if input.len() < AROUND {
            return Ok(Read::Needs(AROUND));
        }
        // The type of a section header is the same in both byte orders.
        let is_section = array(input, 0) == SECTION.to_be_bytes();
        let order = if is_section {
            section_order(array(input, 8))?
        } else {
            self.order
        };
        let len = match block_len(order.u32(input, 4), max)? {
            len if input.len() < len => return Ok(Read::Needs(len)),
            len => len,
        };
        let trailing = order.u32(input, len - 4);
        if trailing as usize != len {
            let allowed = format!("{len}, the length in front");
            return Err(InvalidField::new(
                "trailing block length",
                trailing,
                allowed,
            ));
        }
        let body = &input[BEFORE..len - 4];
        let kind = if is_section {
            self.begin_section(order, body)?
        } else {
            self.read_body(order.u32(input, 0), body)?
        };
        Ok(Read::Block { len, kind })
    }

    /// The enhanced packet block at the beginning of `input` and its length, if it is whole and good:
    /// what [`read_block`](Self::read_block) reads, without its errors.
    #[inline(always)]
    pub(super) fn read_packet(&self, input: &[u8], max: usize) -> Option<(usize, PacketBlock)> {
        let header: &[u8; PACKET_DATA] = input.first_chunk()?;
        let number = |at| self.order.u32(header, at);
        let (len, captured) = (number(4) as usize, number(20) as usize);
        let trailing: &[u8; 4] = input.get(..len)?.last_chunk()?;
        let is_good = number(0) == ENHANCED_PACKET
            && len <= max
            && len.is_multiple_of(4)
            && self.order.u32(trailing, 0) as usize == len
            && len >= PACKET_DATA + 4
            && captured <= len - PACKET_DATA - 4;
        let interface = self
            .interfaces
            .get(number(8) as usize)
            .filter(|_| is_good)?;
        let packet = PacketBlock {
            interface: self.interface_id(number(8)),
            link: interface.link,
            data: PACKET_DATA..PACKET_DATA + captured,
            original_len: number(24),
            timestamp: interface.timestamp(self.order.halves(header, 12)),
        };
        Some((len, packet))
    }

    fn begin_section(&mut self, order: ByteOrder, body: &[u8]) -> Result<BlockKind, InvalidField> {
        at_least(body, 16)?;
        let version = (order.u16(body, 4), order.u16(body, 6));
        // Some writers put 1.2 in files of version 1.0 (the draft, section 4.1).
        if version.0 != 1 || ![0, 2].contains(&version.1) {
            let found = format!("{}.{}", version.0, version.1);
            return Err(InvalidField::new("version", found, "1.0 or 1.2"));
        }
        self.order = order;
        self.sections = self.sections.saturating_add(1);
        self.interfaces.clear();
        Ok(BlockKind::Header)
    }

    #[inline]
    fn read_body(&mut self, block_type: u32, body: &[u8]) -> Result<BlockKind, InvalidField> {
        let order = self.order;
        match block_type {
            INTERFACE => {
                at_least(body, 8)?;
                let index = self.interfaces.len();
                if index == MAX_INTERFACES {
                    let allowed = format!("at most {MAX_INTERFACES} in a section");
                    return Err(InvalidField::new("interfaces", index + 1, allowed));
                }
                self.interfaces.push(Interface::read(order, body)?);
                Ok(BlockKind::Interface(self.interface_id(index as u32)))
            }
            ENHANCED_PACKET => {
                at_least(body, 20)?;
                self.timed_packet(order.u32(body, 0), body)
            }
            OBSOLETE_PACKET => {
                at_least(body, 20)?;
                self.timed_packet(u32::from(order.u16(body, 0)), body)
            }
            SIMPLE_PACKET => {
                at_least(body, 4)?;
                self.simple_packet(body)
            }
            other => Ok(BlockKind::Other(other)),
        }
    }

    /// A packet block with interface, time and both lengths: in an enhanced and in an obsolete
    /// block they are at the same places.
    #[inline]
    fn timed_packet(&self, index: u32, body: &[u8]) -> Result<BlockKind, InvalidField> {
        let order = self.order;
        let interface = self.interface(index)?;
        let captured = order.u32(body, 12);
        let room = body.len() - 20;
        if captured as usize > room {
            let allowed = format!("at most {room} (the end of the block)");
            return Err(InvalidField::new("captured length", captured, allowed));
        }
        Ok(BlockKind::Packet(PacketBlock {
            interface: self.interface_id(index),
            link: interface.link,
            data: PACKET_DATA..PACKET_DATA + captured as usize,
            original_len: order.u32(body, 16),
            timestamp: interface.timestamp(order.halves(body, 4)),
        }))
    }

    /// A packet block with the original length only: interface 0, no time, and the captured length
    /// follows from the snap length.
    fn simple_packet(&self, body: &[u8]) -> Result<BlockKind, InvalidField> {
        let interface = self.interface(0)?;
        let original_len = self.order.u32(body, 0);
        let captured = match interface.snap_len {
            0 => original_len,
            limit => original_len.min(limit),
        };
        let room = body.len() - 4;
        if captured as usize > room {
            let allowed = format!("at most {room} (the end of the block)");
            return Err(InvalidField::new("captured length", captured, allowed));
        }
        let start = BEFORE + 4;
        Ok(BlockKind::Packet(PacketBlock {
            interface: self.interface_id(0),
            link: interface.link,
            data: start..start + captured as usize,
            original_len,
            timestamp: None,
        }))
    }

    fn interface(&self, index: u32) -> Result<&Interface, InvalidField> {
        self.interfaces.get(index as usize).ok_or_else(|| {
            let count = self.interfaces.len();
            let allowed = format!("less than {count}, the interfaces described in this section");
            InvalidField::new("interface", index, allowed)
        })
    }

    fn interface_id(&self, index: u32) -> InterfaceId {
        InterfaceId {
            section: self.sections.saturating_sub(1),
            index,
        }
    }
}

/// The byte order of the section whose header has this byte order magic.
fn section_order(magic: [u8; 4]) -> Result<ByteOrder, InvalidField> {
    if u32::from_be_bytes(magic) == BYTE_ORDER_MAGIC {
        Ok(ByteOrder::Big)
    } else if u32::from_le_bytes(magic) == BYTE_ORDER_MAGIC {
        Ok(ByteOrder::Little)
    } else {
        let found = format!("{:08x}", u32::from_be_bytes(magic));
        let allowed = "1a2b3c4d or 4d3c2b1a";
        Err(InvalidField::new("byte order magic", found, allowed))
    }
}

/// Checks the length of a block.
fn block_len(len: u32, max: usize) -> Result<usize, InvalidField> {
    let whole = len as usize;
    if whole < AROUND || whole > max || !whole.is_multiple_of(4) {
        let allowed = format!("a multiple of 4 from {AROUND} to {max}");
        return Err(InvalidField::new("block length", len, allowed));
    }
    Ok(whole)
}

/// Checks that the fixed part of a body is there.
fn at_least(body: &[u8], fixed: usize) -> Result<(), InvalidField> {
    if body.len() < fixed {
        let allowed = format!("at least {} for this type", fixed + AROUND);
        return Err(InvalidField::new(
            "block length",
            body.len() + AROUND,
            allowed,
        ));
    }
    Ok(())
}
