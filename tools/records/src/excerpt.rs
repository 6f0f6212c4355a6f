//! The start of a field, for messages: problems are copied, and a field may be long.

use std::fmt;

use echoless::message::without_controls;

/// The most bytes of an excerpt: a time with an offset in any usual format.
const MOST: usize = 40;

/// The first bytes of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Excerpt {
    bytes: [u8; MOST],
    len: u8,
    /// Whether the field has more bytes.
    is_cut: bool,
}

impl Excerpt {
    pub(super) fn new(field: &[u8]) -> Self {
        let len = field.len().min(MOST);
        let mut bytes = [0; MOST];
        bytes[..len].copy_from_slice(&field[..len]);
        Self {
            bytes,
            len: len as u8,
            is_cut: field.len() > MOST,
        }
    }
}

/// As text in backticks; bytes that are no text, and control characters, are escaped.
impl fmt::Display for Excerpt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("`")?;
        for chunk in self.bytes[..self.len.into()].utf8_chunks() {
            out.write_str(&without_controls(chunk.valid()))?;
            write!(out, "{}", chunk.invalid().escape_ascii())?;
        }
        out.write_str(if self.is_cut { "..`" } else { "`" })
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_text() {
        let long = [b'7'; 100];
        let cut = format!("`{}..`", "7".repeat(MOST));
        for (field, text) in [
            (&b""[..], "``"),
            (b"12:00", "`12:00`"),
            ("1. M\u{e4}rz".as_bytes(), "`1. M\u{e4}rz`"),
            (b"\x25\x01\xff", "`%\\u{1}\\xff`"),
            ("a\u{202e}b".as_bytes(), "`a\\u{202e}b`"),
            (&long[..MOST], cut.replace("..", "").as_str()),
            (&long, &cut),
        ] {
            assert_eq!(Excerpt::new(field).to_string(), text);
        }
    }
}
