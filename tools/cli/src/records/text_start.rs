//! How a text input begins: with a byte order mark, or in a form that is not read as records.
//!
//! The UTF-8 mark, which some programs write at the start of a file, is part of no record. That of
//! the first input is copied to the main output. UTF-16 and UTF-32 are rejected, since a newline
//! byte may be half of a character there, and so is an archive.

const UTF_8: &[u8] = b"\xef\xbb\xbf";

/// The marks of other encodings, by the names of `iconv`. UTF-32 begins like UTF-16.
const FOREIGN: [(&[u8], &str); 4] = [
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
];

/// The bytes that tell encodings without a mark.
const SAMPLE_BYTES: usize = 256;

/// The length of a block of a tar archive.
const TAR_BLOCK: usize = 512;

/// What the first bytes of a text input show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextStart {
    /// More bytes are needed.
    Undecided,
    /// The length of the UTF-8 mark; 0 if there is none.
    Mark(usize),
    /// The name of an encoding that is not read.
    Foreign(&'static str),
}

impl TextStart {
    /// The start of an input that begins with `bytes`, and ends with them if they are `all`.
    pub(crate) fn of(bytes: &[u8], all: bool) -> Self {
        if bytes.starts_with(UTF_8) {
            return Self::Mark(UTF_8.len());
        }
        let marks = FOREIGN.iter().map(|(mark, _)| *mark).chain([UTF_8]);
        let is_open = |mark: &[u8]| mark.len() > bytes.len() && mark.starts_with(bytes);
        if !all && marks.into_iter().any(is_open) {
            return Self::Undecided;
        }
        let found = FOREIGN.iter().find(|(mark, _)| bytes.starts_with(mark));
        found.map_or(Self::Mark(0), |(_, name)| Self::Foreign(name))
    }
}

/// An input's first record without the mark.
pub(crate) fn strip_mark(record: &[u8]) -> &[u8] {
    record.strip_prefix(UTF_8).unwrap_or(record)
}

/// The encoding of text without a mark in which every other byte of ASCII characters is zero, if
/// the first bytes look like that.
pub(crate) fn looks_wide(bytes: &[u8]) -> Option<&'static str> {
    let sample = &bytes[..bytes.len().min(SAMPLE_BYTES)];
    let zeros = |parity: usize| {
        let bytes = sample.iter().skip(parity).step_by(2);
        bytes.filter(|byte| **byte == 0).count()
    };
    // Enough that few zero bytes in other data do not suffice.
    let many = |zeros: usize| sample.len() >= 16 && zeros >= sample.len() * 3 / 8;
    match (zeros(0), zeros(1)) {
        (0, odd) if many(odd) => Some("UTF-16LE"),
        (even, 0) if many(even) => Some("UTF-16BE"),
        _ => None,
    }
}

/// Whether an input begins with the header of a tar archive, with its checksum.
pub(crate) fn is_tar(bytes: &[u8]) -> bool {
    let Some(header) = bytes.get(..TAR_BLOCK) else {
        return false;
    };
    let checksum = 148..156;
    let stored = header[checksum.clone()].iter();
    let octal = stored
        .skip_while(|byte| **byte == b' ')
        .take_while(|byte| (b'0'..=b'7').contains(byte))
        .fold(0, |sum, digit| 8 * sum + u32::from(digit - b'0'));
    let is_stored = |at: &usize| checksum.contains(at);
    let bytes = header.iter().enumerate();
    // The checksum counts as blanks.
    let sum = bytes.map(|(at, byte)| u32::from(if is_stored(&at) { b' ' } else { *byte }));
    header[257..].starts_with(b"ustar") && sum.sum::<u32>() == octal
}

#[cfg(test)]
mod tests {
    use super::TextStart::{Foreign, Mark, Undecided};
    use super::*;

    #[test]
    fn a_start_is_decided_as_early_as_possible() {
        for (bytes, more, all) in [
            (&b""[..], Undecided, Mark(0)),
            (b"a", Mark(0), Mark(0)),
            (b"\xef\xbb", Undecided, Mark(0)),
            (b"\xef\xbb\xbf", Mark(3), Mark(3)),
            (b"\xef\xbb\n", Mark(0), Mark(0)),
            (b"\xff", Undecided, Mark(0)),
            (b"\xff\n", Mark(0), Mark(0)),
            (b"\xff\xfe", Undecided, Foreign("UTF-16")),
            (b"\xff\xfea", Foreign("UTF-16"), Foreign("UTF-16")),
            (b"\xff\xfe\0", Undecided, Foreign("UTF-16")),
            (b"\xff\xfe\0\n", Foreign("UTF-16"), Foreign("UTF-16")),
            (b"\xff\xfe\0\0", Foreign("UTF-32"), Foreign("UTF-32")),
            (b"\xfe\xff", Foreign("UTF-16"), Foreign("UTF-16")),
            (b"\0\0\xfe", Undecided, Mark(0)),
            (b"\0\0\xfe\xff", Foreign("UTF-32"), Foreign("UTF-32")),
            (b"\0\n", Mark(0), Mark(0)),
        ] {
            assert_eq!(TextStart::of(bytes, false), more, "{bytes:?}");
            assert_eq!(TextStart::of(bytes, true), all, "{bytes:?}");
        }
    }

    #[test]
    fn zeros_at_every_other_byte_tell_utf_16() {
        let wide = |text: &str, order: fn(u16) -> [u8; 2]| -> Vec<u8> {
            text.encode_utf16().flat_map(order).collect()
        };
        let text = "caller,start\n49170,08:15\n";
        assert_eq!(looks_wide(&wide(text, u16::to_le_bytes)), Some("UTF-16LE"));
        assert_eq!(looks_wide(&wide(text, u16::to_be_bytes)), Some("UTF-16BE"));
        // Too short, plain text, zeros at both, few of them.
        for bytes in [
            &b"a\0b\0"[..],
            text.as_bytes(),
            &[0; 64],
            b"ab\0 and much more text",
        ] {
            assert_eq!(looks_wide(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_tar_header_has_its_checksum() {
        let mut header = [0; TAR_BLOCK];
        header[..8].copy_from_slice(b"file.txt");
        header[257..265].copy_from_slice(b"ustar\x0000");
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        assert!(is_tar(&header));
        assert!(!is_tar(&header[..TAR_BLOCK - 1]));
        for at in [0, 100, 148, 153, 257, 300, 511] {
            let mut other = header;
            other[at] ^= 1;
            assert!(!is_tar(&other), "{at}");
        }
        let mut text = [b'a'; TAR_BLOCK];
        text[257..262].copy_from_slice(b"ustar");
        assert!(!is_tar(&text));
    }
}
