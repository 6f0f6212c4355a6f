//! One captured packet, the same for every kind of capture file.

use crate::link_type::LinkType;

/// The interface that captured a packet, unique in one file.
///
/// A pcapng file numbers its interfaces anew in each section. A pcap file has one interface:
/// section 0, index 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct InterfaceId {
    /// The number of the section in the file, from 0.
    pub section: u32,
    /// The number of the interface in its section, from 0.
    pub index: u32,
}

/// One captured packet. The bytes are borrowed from the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The interface that captured the packet.
    pub interface: InterfaceId,
    /// The kind of link header that the bytes begin with.
    pub link: LinkType,
    /// The captured bytes, from the link header on; fewer than 4 GiB, as in every capture file.
    pub bytes: &'a [u8],
    /// The length of the packet on the wire in bytes. Greater than the number of captured bytes if
    /// the capture cut the packet to its snap length.
    pub original_len: u32,
    /// Nanoseconds since 1970-01-01 00:00 UTC, rounded down. `None` for simple packet blocks, which
    /// have no time, and for times that an `i64` cannot hold (before 1677 or after 2262).
    pub timestamp: Option<i64>,
}
