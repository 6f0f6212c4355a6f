//! Numbers in either byte order.

use crate::bytes::array;

/// The byte order of a file or section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Big,
    Little,
}

/// All functions panic if the number is not inside `bytes`: blocks are whole when they are read.
impl ByteOrder {
    #[inline]
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let raw = array(bytes, at);
        match self {
            Self::Big => u16::from_be_bytes(raw),
            Self::Little => u16::from_le_bytes(raw),
        }
    }

    #[inline]
    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let raw = array(bytes, at);
        match self {
            Self::Big => u32::from_be_bytes(raw),
            Self::Little => u32::from_le_bytes(raw),
        }
    }

    pub(super) fn put_u16(self, bytes: &mut [u8], at: usize, number: u16) {
        bytes[at..at + 2].copy_from_slice(&match self {
            Self::Big => number.to_be_bytes(),
            Self::Little => number.to_le_bytes(),
        });
    }

    pub(super) fn put_u32(self, bytes: &mut [u8], at: usize, number: u32) {
        bytes[at..at + 4].copy_from_slice(&match self {
            Self::Big => number.to_be_bytes(),
            Self::Little => number.to_le_bytes(),
        });
    }

    #[inline]
    pub(super) fn i64(self, bytes: &[u8], at: usize) -> i64 {
        let raw = array(bytes, at);
        match self {
            Self::Big => i64::from_be_bytes(raw),
            Self::Little => i64::from_le_bytes(raw),
        }
    }

    /// Two 32-bit halves, the high one first: how pcapng stores times in either byte order.
    #[inline]
    pub(super) fn halves(self, bytes: &[u8], at: usize) -> u64 {
        u64::from(self.u32(bytes, at)) << 32 | u64::from(self.u32(bytes, at + 4))
    }
}
