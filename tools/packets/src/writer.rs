//! Writes capture files in memory, in either byte order.

use std::mem;

use crate::framing::{BYTE_ORDER_MAGIC, block_type};
use crate::packet::LinkType;

/// Numbers in the byte order of a file.
#[derive(Debug, Clone, Default)]
struct Output {
    bytes: Vec<u8>,
    big_endian: bool,
}

impl Output {
    fn u16(&mut self, number: u16) {
        let le = number.to_le_bytes();
        self.bytes.extend(if self.big_endian {
            number.to_be_bytes()
        } else {
            le
        });
    }

    fn u32(&mut self, number: u32) {
        let le = number.to_le_bytes();
        self.bytes.extend(if self.big_endian {
            number.to_be_bytes()
        } else {
            le
        });
    }

    /// A 64-bit number as two halves, the high one first.
    fn halves(&mut self, number: u64) {
        self.u32((number >> 32) as u32);
        self.u32(number as u32);
    }

    fn options(&mut self, options: &[(u16, &[u8])]) {
        for (code, value) in options {
            self.u16(*code);
            self.u16(value.len() as u16);
            self.padded(value);
        }
        if !options.is_empty() {
            self.u32(0);
        }
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let padding = bytes.len().next_multiple_of(4) - bytes.len();
        self.bytes.extend(&[0; 3][..padding]);
    }
}

/// Writes a pcap file.
///
/// # Examples
/// ```
/// use echoless_packets::writer::PcapWriter;
/// use echoless_packets::LinkType;
/// let mut file = PcapWriter::new(true, false, LinkType::ETHERNET);
/// file.packet(1_000_001, b"abc", 60);
/// let bytes = file.into_bytes();
/// assert_eq!(bytes[..4], [0xa1, 0xb2, 0xc3, 0xd4]);
/// assert_eq!(bytes[24..32], [0, 0, 0, 1, 0, 0, 0, 1]);
/// ```
#[derive(Debug, Clone)]
pub struct PcapWriter {
    out: Output,
    nanoseconds: bool,
}

impl PcapWriter {
    /// A file with its header. Times are in nanoseconds or microseconds.
    #[must_use]
    pub fn new(big_endian: bool, nanoseconds: bool, link: LinkType) -> Self {
        let mut out = Output {
            bytes: Vec::new(),
            big_endian,
        };
        out.u32(if nanoseconds {
            0xa1b2_3c4d
        } else {
            0xa1b2_c3d4
        });
        out.u16(2);
        out.u16(4);
        for number in [0, 0, 262_144, u32::from(link.0)] {
            out.u32(number);
        }
        Self { out, nanoseconds }
    }

    /// Appends a packet at the time `units` (nanoseconds or microseconds since 1970).
    pub fn packet(&mut self, units: u64, captured: &[u8], original_len: u32) {
        let second = if self.nanoseconds {
            1_000_000_000
        } else {
            1_000_000
        };
        self.out.u32((units / second) as u32);
        self.out.u32((units % second) as u32);
        self.out.u32(captured.len() as u32);
        self.out.u32(original_len);
        self.out.bytes.extend(captured);
    }

    /// The file.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.out.bytes
    }
}

/// Writes a pcapng file.
///
/// # Examples
/// ```
/// use echoless_packets::writer::PcapngWriter;
/// use echoless_packets::LinkType;
/// let mut file = PcapngWriter::new(false);
/// file.interface(LinkType::ETHERNET, 0, &[]);
/// file.packet(0, 1_000_001, b"abc", 60);
/// assert_eq!(file.into_bytes().len(), 28 + 20 + 36);
/// ```
#[derive(Debug, Clone)]
pub struct PcapngWriter {
    out: Output,
}

impl PcapngWriter {
    /// A file with the header of its first section.
    #[must_use]
    pub fn new(big_endian: bool) -> Self {
        let mut file = Self {
            out: Output::default(),
        };
        file.section(big_endian);
        file
    }

    /// Begins a section of unknown length.
    pub fn section(&mut self, big_endian: bool) {
        self.out.big_endian = big_endian;
        self.write(block_type::SECTION, |out| {
            out.u32(BYTE_ORDER_MAGIC);
            out.u16(1);
            out.u16(0);
            out.halves(u64::MAX);
        });
    }

    /// Describes the next interface of the section. Options are codes and values; the values of
    /// numbers must be in the byte order of the section.
    pub fn interface(&mut self, link: LinkType, snap_len: u32, options: &[(u16, &[u8])]) {
        self.write(block_type::INTERFACE, |out| {
            out.u16(link.0);
            out.u16(0);
            out.u32(snap_len);
            out.options(options);
        });
    }

    /// Appends an enhanced packet block, at a time in units of the interface.
    pub fn packet(&mut self, interface: u32, units: u64, captured: &[u8], original_len: u32) {
        self.write(block_type::ENHANCED_PACKET, |out| {
            out.u32(interface);
            out.halves(units);
            out.u32(captured.len() as u32);
            out.u32(original_len);
            out.padded(captured);
        });
    }

    /// Appends an obsolete packet block.
    pub fn obsolete_packet(
        &mut self,
        interface: u16,
        units: u64,
        captured: &[u8],
        original_len: u32,
    ) {
        self.write(block_type::OBSOLETE_PACKET, |out| {
            out.u16(interface);
            out.u16(0xffff);
            out.halves(units);
            out.u32(captured.len() as u32);
            out.u32(original_len);
            out.padded(captured);
        });
    }

    /// Appends a simple packet block.
    pub fn simple_packet(&mut self, captured: &[u8], original_len: u32) {
        self.write(block_type::SIMPLE_PACKET, |out| {
            out.u32(original_len);
            out.padded(captured);
        });
    }

    /// Appends the statistics of an interface, at a time in units of the interface. Options are as
    /// those of [`interface`](Self::interface).
    pub fn statistics(&mut self, interface: u32, units: u64, options: &[(u16, &[u8])]) {
        self.write(block_type::STATISTICS, |out| {
            out.u32(interface);
            out.halves(units);
            out.options(options);
        });
    }

    /// Appends a block of any type.
    pub fn block(&mut self, block_type: u32, body: &[u8]) {
        self.write(block_type, |out| out.padded(body));
    }

    /// The blocks since the last call. Further ones are of the same section.
    #[must_use]
    pub fn take_bytes(&mut self) -> Vec<u8> {
        mem::take(&mut self.out.bytes)
    }

    /// The file.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.out.bytes
    }

    fn write(&mut self, block_type: u32, body: impl FnOnce(&mut Output)) {
        let mut block = Output {
            bytes: Vec::new(),
            big_endian: self.out.big_endian,
        };
        body(&mut block);
        let len = block.bytes.len() as u32 + 12;
        self.out.u32(block_type);
        self.out.u32(len);
        self.out.bytes.extend(block.bytes);
        self.out.u32(len);
    }
}
