//! What identifies a record: its key, its value, or a part of a value in JSON.

use std::borrow::Cow;

use echoless::SpecError;
use serde_json::Value;

/// The part of a record that identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyPart {
    /// The key of the record.
    Key,
    /// The value of the record.
    Value,
    /// A string or a whole number in a value in JSON, by its pointer (RFC 6901).
    Pointer(String),
}

impl KeyPart {
    /// Parses the value of `--key`.
    ///
    /// # Errors
    /// [`SpecError`] for other texts.
    pub(crate) fn parse(text: &str) -> Result<Self, SpecError> {
        match text {
            "key" => Ok(Self::Key),
            "value" => Ok(Self::Value),
            _ if text.starts_with('/') => Ok(Self::Pointer(text.to_owned())),
            _ => {
                let allowed = "key, value, or a JSON pointer such as /call/id";
                Err(SpecError::new("--key", text, allowed))
            }
        }
    }

    /// The bytes that identify a record with this key and value; `None` if it has none.
    pub(crate) fn of<'r>(
        &self,
        key: Option<&'r [u8]>,
        value: Option<&'r [u8]>,
    ) -> Option<Cow<'r, [u8]>> {
        let pointer = match self {
            Self::Key => return key.map(Cow::Borrowed),
            Self::Value => return value.map(Cow::Borrowed),
            Self::Pointer(pointer) => pointer,
        };
        match serde_json::from_slice::<Value>(value?)
            .ok()?
            .pointer_mut(pointer)?
            .take()
        {
            Value::String(text) => Some(Cow::Owned(text.into_bytes())),
            // Longer and other numbers are read as floats, and different ones may become one.
            Value::Number(number) if !number.is_f64() => {
                Some(Cow::Owned(number.to_string().into_bytes()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(part: &str, value: &str) -> Option<String> {
        let part = KeyPart::parse(part).unwrap();
        let bytes = part.of(Some(b"switch 1"), Some(value.as_bytes()))?;
        Some(String::from_utf8(bytes.into_owned()).unwrap())
    }

    #[test]
    fn a_record_is_identified_by_a_part_of_it() {
        let value = r#"{"call": {"id": "a\u0062", "n": [7, -8]}, "id": 18446744073709551615}"#;
        for (part, expected) in [
            ("key", Some("switch 1")),
            ("value", Some(value)),
            ("/call/id", Some("ab")),
            ("/call/n/0", Some("7")),
            ("/call/n/1", Some("-8")),
            ("/id", Some("18446744073709551615")),
            ("/call", None),
            ("/call/n/2", None),
            ("/absent", None),
        ] {
            assert_eq!(key(part, value).as_deref(), expected, "{part}");
        }
    }

    #[test]
    fn what_is_not_exact_identifies_nothing() {
        for value in [
            r#"{"id": 18446744073709551616}"#,
            r#"{"id": 1.0}"#,
            r#"{"id": null}"#,
            r#"{"id": true}"#,
            r#"{"id": "a""#,
            "no JSON",
            "",
        ] {
            assert_eq!(key("/id", value), None, "{value}");
        }
        assert_eq!(
            KeyPart::Pointer("/id".to_owned()).of(Some(b"1"), None),
            None
        );
        assert_eq!(KeyPart::Value.of(Some(b"1"), None), None);
        assert_eq!(KeyPart::parse("id").unwrap_err().field, "--key");
    }
}
