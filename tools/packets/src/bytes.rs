//! Fixed-size reads from slices.

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
