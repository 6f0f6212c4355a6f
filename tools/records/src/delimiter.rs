//! What separates the fields of a record: one byte, several, or runs of blanks.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use echoless::SpecError;

use crate::failure::Failure;

/// What separates fields, from `--delimiter` or `--whitespace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delimiter {
    /// One byte.
    Byte(u8),
    /// Two bytes or more.
    Sequence(Vec<u8>),
    /// Any number of spaces, tabs and newlines; those around a record separate nothing.
    Blanks,
}

impl Default for Delimiter {
    fn default() -> Self {
        Self::Byte(b',')
    }
}

impl Delimiter {
    /// Parses the value of `--delimiter`: `tab`, one byte, or any bytes with the escapes `\t`,
    /// `\\` and `\xHH`.
    ///
    /// # Errors
    /// [`SpecError`] if it is empty, or has a backslash that begins no escape.
    pub fn parse(typed: &OsStr) -> Result<Self, SpecError> {
        let unescaped = match typed.as_bytes() {
            b"tab" => Some(vec![b'\t']),
            [byte] => Some(vec![*byte]),
            bytes => unescape(bytes),
        };
        match unescaped.as_deref() {
            Some([byte]) => Ok(Self::Byte(*byte)),
            Some(sequence @ [_, _, ..]) => Ok(Self::Sequence(sequence.into())),
            Some([]) | None => {
                let allowed = "one byte or more, \\t or tab, \\xHH for any byte, \\\\ for a \
                               backslash beside other bytes";
                let typed = typed.to_string_lossy();
                Err(SpecError::new("--delimiter", typed, allowed))
            }
        }
    }

    /// The bytes between two fields that are written.
    pub(crate) fn written(&self) -> &[u8] {
        match self {
            Self::Byte(byte) => std::slice::from_ref(byte),
            Self::Sequence(bytes) => bytes,
            Self::Blanks => b" ",
        }
    }

    /// The error of the option that sets this delimiter.
    pub(crate) fn invalid(&self, allowed: impl Into<String>) -> Failure {
        match self {
            Self::Blanks => Failure::option("--whitespace", allowed.into()),
            Self::Byte(_) | Self::Sequence(_) => {
                let asked = self.written().escape_ascii().to_string();
                SpecError::new("--delimiter", asked, allowed).into()
            }
        }
    }

    /// Rejects a delimiter with one of the `reserved` bytes of a record format. Runs of blanks may
    /// have them: then no field does.
    pub(super) fn check(&self, reserved: &[u8]) -> Result<(), Failure> {
        let is_reserved = |byte: &u8| reserved.contains(byte);
        match self {
            Self::Byte(_) | Self::Sequence(_) if self.written().iter().any(is_reserved) => {
                Err(self.invalid("bytes that neither end nor quote these records"))
            }
            Self::Byte(_) | Self::Sequence(_) | Self::Blanks => Ok(()),
        }
    }

    /// The delimiter of a format whose delimiters are one byte. `format` selects it. The failure
    /// names the option that sets another one.
    pub(super) fn one_byte(&self, format: &str) -> Result<u8, Failure> {
        match self {
            Self::Byte(byte) => Ok(*byte),
            Self::Sequence(_) => Err(self.invalid(format!("one byte with {format}"))),
            Self::Blanks => Err(self.invalid(format!(
                "lines of fields, as fields of {format} are separated by one byte"
            ))),
        }
    }
}

/// A value of `--delimiter` in text, which means the same.
pub(crate) fn as_text(typed: &OsStr) -> String {
    let escaped = || {
        typed
            .as_bytes()
            .iter()
            .map(|byte| format!("\\x{byte:02x}"))
            .collect()
    };
    typed.to_str().map_or_else(escaped, str::to_owned)
}

/// Replaces escapes; `None` if a backslash begins none.
fn unescape(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    let mut rest = bytes;
    loop {
        let (byte, after) = match rest {
            [] => return Some(plain),
            [b'\\', b't', after @ ..] => (b'\t', after),
            [b'\\', b'\\', after @ ..] => (b'\\', after),
            [b'\\', b'x', high, low, after @ ..] => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let value = digit(*high)? << 4 | digit(*low)?;
                (u8::try_from(value).ok()?, after)
            }
            [b'\\', ..] => return None,
            [byte, after @ ..] => (*byte, after),
        };
        plain.push(byte);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Option<Vec<u8>> {
        let parsed = Delimiter::parse(OsStr::new(text)).ok()?;
        Some(parsed.written().to_vec())
    }

    #[test]
    fn delimiters_are_bytes_or_escapes() {
        for (text, bytes) in [
            (";", &b";"[..]),
            ("\t", b"\t"),
            ("\\", b"\\"),
            ("tab", b"\t"),
            ("\\t", b"\t"),
            ("\\x00", b"\0"),
            ("\\xfF", b"\xff"),
            ("||", b"||"),
            ("tabs", b"tabs"),
            ("\\t\\t", b"\t\t"),
            ("<\\x00>", b"<\0>"),
            ("\\\\n", b"\\n"),
            ("\u{b7}", b"\xc2\xb7"),
        ] {
            assert_eq!(parse(text).as_deref(), Some(bytes), "{text}");
        }
        for text in ["", "\\n", "\\x0", "\\x0g", "\\x", "a\\", "\\xf\u{e9}"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn delimiters_need_not_be_text() {
        for bytes in [&b"\xff"[..], b"\xa7\xa7"] {
            let parsed = Delimiter::parse(OsStr::from_bytes(bytes)).unwrap();
            assert_eq!(parsed.written(), bytes);
            assert_eq!(
                parse(&as_text(OsStr::from_bytes(bytes))).as_deref(),
                Some(bytes)
            );
        }
    }

    #[test]
    fn bytes_that_end_records_are_rejected() {
        for (delimiter, fits) in [
            (Delimiter::Byte(b'\n'), false),
            (Delimiter::Byte(b'|'), true),
            (Delimiter::Sequence(b"|\n|".into()), false),
            (Delimiter::Sequence(b"||".into()), true),
            (Delimiter::Blanks, true),
        ] {
            assert_eq!(delimiter.check(b"\n").is_ok(), fits, "{delimiter:?}");
        }
        assert_eq!(Delimiter::default().one_byte("--csv").unwrap(), b',');
        let error = Delimiter::Sequence(b"||".into())
            .one_byte("--csv")
            .unwrap_err();
        let text = error.to_string();
        assert_eq!(text, "invalid --delimiter=||: expected one byte with --csv");
        let error = Delimiter::Blanks.one_byte("--csv").unwrap_err();
        let expected = "invalid --whitespace: expected lines of fields, as fields of --csv are separated by one byte";
        assert_eq!(error.to_string(), expected);
    }

    proptest! {
        #[test]
        fn escaped_bytes_are_parsed_as_they_were(bytes in vec(any::<u8>(), 1..6)) {
            let escaped: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
            prop_assert_eq!(parse(&escaped), Some(bytes));
        }
    }
}
