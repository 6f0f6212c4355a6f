//! The UTF-8 byte order mark that some programs write at the start of a file. It is copied through
//! and is not part of any field.

const MARK: &[u8] = b"\xef\xbb\xbf";

/// The length of the mark at the start of an input that begins with `bytes`, 0 if there is none;
/// `None` if more bytes are needed to decide.
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
