//! What a framer returns: a block of the file and what it is.

use std::ops::Range;

use crate::packet::{InterfaceId, LinkType, Packet};

/// The outcome of [`Framer::next_block`](super::Framer::next_block).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// A whole block. The next one begins at `range.end`.
    Block {
        /// The bytes of the block in the buffer.
        range: Range<usize>,
        /// What the block is.
        kind: BlockKind,
    },
    /// The block is not whole. At least this many bytes are needed after the buffer's last one; 1
    /// or more.
    NeedMore(usize),
    /// The file ended after a whole block.
    End,
}

/// What a block of a capture file is. All but packets belong to the frame of the file: a copy of
/// some packets must contain all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockKind {
    /// The header of a pcap file, or of a section of a pcapng file.
    Header,
    /// The description of this interface.
    Interface(InterfaceId),
    /// A packet.
    Packet(PacketBlock),
    /// Any other pcapng block, with its type: name resolution, statistics, decryption secrets,
    /// custom and unknown blocks.
    Other(u32),
}

/// A packet in a buffer, with the values of its block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PacketBlock {
    /// The interface that captured the packet.
    pub interface: InterfaceId,
    /// The kind of link header.
    pub link: LinkType,
    /// The captured bytes in the buffer.
    pub data: Range<usize>,
    /// The length on the wire in bytes.
    pub original_len: u32,
    /// Nanoseconds since 1970; see [`Packet::timestamp`].
    pub timestamp: Option<i64>,
}

impl PacketBlock {
    /// The packet, with its bytes in `buffer`.
    ///
    /// # Panics
    /// If `buffer` is shorter than the buffer in which the block was found.
    #[must_use]
    #[inline]
    pub fn packet<'a>(&self, buffer: &'a [u8]) -> Packet<'a> {
        Packet {
            interface: self.interface,
            link: self.link,
            bytes: &buffer[self.data.clone()],
            original_len: self.original_len,
            timestamp: self.timestamp,
        }
    }
}

/// The outcome of reading one block at the beginning of a slice. Ranges are relative to the slice.
#[derive(Debug)]
pub(super) enum Read {
    /// A whole block of `len` bytes.
    Block { len: usize, kind: BlockKind },
    /// The slice must have at least this many bytes.
    Needs(usize),
}
