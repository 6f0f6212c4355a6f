//! Fixed-size reads from slices, and numbers in either byte order.

/// The `N` bytes from `at` on.
///
/// # Panics
/// If they are not inside `bytes`.
#[inline]
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// The big-endian number at `at`, if it is inside `bytes`.
#[inline]
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let raw = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*raw))
}

/// The byte order of a file or section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    Big,
    Little,
}

/// All functions panic if the number is not inside `bytes`: blocks are whole when they are read.
impl ByteOrder {
    #[inline]
    pub(crate) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let raw = array(bytes, at);
        match self {
            Self::Big => u16::from_be_bytes(raw),
            Self::Little => u16::from_le_bytes(raw),
        }
    }

    #[inline]
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let raw = array(bytes, at);
        match self {
            Self::Big => u32::from_be_bytes(raw),
            Self::Little => u32::from_le_bytes(raw),
        }
    }

    pub(crate) fn put_u16(self, bytes: &mut [u8], at: usize, number: u16) {
        bytes[at..at + 2].copy_from_slice(&match self {
            Self::Big => number.to_be_bytes(),
            Self::Little => number.to_le_bytes(),
        });
    }

    pub(crate) fn put_u32(self, bytes: &mut [u8], at: usize, number: u32) {
        bytes[at..at + 4].copy_from_slice(&match self {
            Self::Big => number.to_be_bytes(),
            Self::Little => number.to_le_bytes(),
        });
    }

    #[inline]
    pub(crate) fn i64(self, bytes: &[u8], at: usize) -> i64 {
        let raw = array(bytes, at);
        match self {
            Self::Big => i64::from_be_bytes(raw),
            Self::Little => i64::from_le_bytes(raw),
        }
    }

    /// Two 32-bit halves, the high one first: how pcapng stores times in either byte order.
    #[inline]
    pub(crate) fn halves(self, bytes: &[u8], at: usize) -> u64 {
        u64::from(self.u32(bytes, at)) << 32 | u64::from(self.u32(bytes, at + 4))
    }
}
