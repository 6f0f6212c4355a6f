//! The byte order mark that some programs put before the first field of an input. It belongs to no field.

const MARK: &[u8] = b"\xef\xbb\xbf";

/// The end of the mark that an input beginning with `bytes` begins with, 0 without one; `None` if more bytes must tell.
pub(crate) fn end(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with(MARK) {
        Some(MARK.len())
    } else if MARK.starts_with(bytes) {
        None
    } else {
        Some(0)
    }
}

/// An input's first record without the mark.
pub(crate) fn strip(record: &[u8]) -> &[u8] {
    record.strip_prefix(MARK).unwrap_or(record)
}
