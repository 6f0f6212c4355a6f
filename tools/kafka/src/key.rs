//! What identifies a record: its key, its value, headers, or parts of a value in JSON.

use std::borrow::Cow;

use echoless::SpecError;
use serde_json::Value;

/// The parts of a record that identify it, in this order; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyParts(Vec<KeyPart>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyPart {
    /// The key of the record.
    Key,
    /// The value of the record.
    Value,
    /// The last header of a name.
    Header(String),
    /// A string or a whole number in a value in JSON, by its pointer (RFC 6901).
    Pointer(String),
}

/// A record that may have a key, a value and headers.
pub(crate) trait Record {
    fn key(&self) -> Option<&[u8]>;
    fn value(&self) -> Option<&[u8]>;
    /// The value of the last header of this name.
    fn header(&self, name: &str) -> Option<&[u8]>;
}

impl KeyParts {
    /// Parses the value of `--key`: parts with commas between them. A comma that no part follows
    /// belongs to a name.
    pub(crate) fn parse(text: &str) -> Result<Self, SpecError> {
        let mut parts: Vec<String> = Vec::new();
        for piece in text.split(',') {
            let is_part = KeyPart::parse(piece).is_some();
            match parts.last_mut() {
                Some(last) if !is_part => {
                    last.push(',');
                    last.push_str(piece);
                }
                _ => parts.push(piece.to_owned()),
            }
        }
        let parsed: Option<Vec<KeyPart>> = parts.iter().map(|part| KeyPart::parse(part)).collect();
        parsed.map(Self).ok_or_else(|| {
            let allowed = "key, value, header:NAME, a JSON pointer such as /call/id, or several of \
                           them with commas";
            SpecError::new("--key", text, allowed)
        })
    }

    /// The bytes that identify a record; `None` if it lacks a part. Several parts have their
    /// lengths in front (`3:abc1:d`), so that no two lists of parts have the same bytes.
    pub(crate) fn of<'r>(&self, record: &'r impl Record) -> Option<Cow<'r, [u8]>> {
        let mut json = None;
        if let [part] = &self.0[..] {
            return part.of(record, &mut json);
        }
        let mut bytes = Vec::new();
        for part in &self.0 {
            let part = part.of(record, &mut json)?;
            bytes.extend(format!("{}:", part.len()).bytes());
            bytes.extend_from_slice(&part);
        }
        Some(Cow::Owned(bytes))
    }
}

impl KeyPart {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "key" => Some(Self::Key),
            "value" => Some(Self::Value),
            _ if text.starts_with('/') => Some(Self::Pointer(text.to_owned())),
            _ => {
                let name = text.strip_prefix("header:")?;
                (!name.is_empty()).then(|| Self::Header(name.to_owned()))
            }
        }
    }

    /// The bytes of this part. `json` has the value once it was parsed.
    fn of<'r>(&self, record: &'r impl Record, json: &mut Option<Value>) -> Option<Cow<'r, [u8]>> {
        let pointer = match self {
            Self::Key => return record.key().map(Cow::Borrowed),
            Self::Value => return record.value().map(Cow::Borrowed),
            Self::Header(name) => return record.header(name).map(Cow::Borrowed),
            Self::Pointer(pointer) => pointer,
        };
        if json.is_none() {
            *json = Some(serde_json::from_slice(record.value()?).ok()?);
        }
        match json.as_ref()?.pointer(pointer)? {
            Value::String(text) => Some(Cow::Owned(text.clone().into_bytes())),
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

    struct Example<'a>(Option<&'a [u8]>, Option<&'a [u8]>);

    impl Record for Example<'_> {
        fn key(&self) -> Option<&[u8]> {
            self.0
        }

        fn value(&self) -> Option<&[u8]> {
            self.1
        }

        fn header(&self, name: &str) -> Option<&[u8]> {
            match name {
                "id" => Some(b"7"),
                "a,b" => Some(b"comma"),
                _ => None,
            }
        }
    }

    fn key(parts: &str, value: &str) -> Option<String> {
        let parts = KeyParts::parse(parts).unwrap();
        let record = Example(Some(b"switch 1"), Some(value.as_bytes()));
        let bytes = parts.of(&record)?;
        Some(String::from_utf8(bytes.into_owned()).unwrap())
    }

    #[test]
    fn a_record_is_identified_by_parts_of_it() {
        let value = r#"{"call": {"id": "a\u0062", "n": [7, -8]}, "id": 18446744073709551615}"#;
        for (parts, expected) in [
            ("key", Some("switch 1")),
            ("value", Some(value)),
            ("header:id", Some("7")),
            ("header:a,b", Some("comma")),
            ("header:absent", None),
            ("/call/id", Some("ab")),
            ("/call/n/0", Some("7")),
            ("/call/n/1", Some("-8")),
            ("/id", Some("18446744073709551615")),
            ("/call", None),
            ("/call/n/2", None),
            ("/absent", None),
            ("/absent,x", None),
            ("key,/call/id", Some("8:switch 12:ab")),
            ("/call/id,/call/n/0,header:id", Some("2:ab1:71:7")),
            ("header:a,b,key", Some("5:comma8:switch 1")),
            ("key,/absent", None),
        ] {
            assert_eq!(key(parts, value).as_deref(), expected, "{parts}");
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
            assert_eq!(key("/id,key", value), None, "{value}");
        }
        for parts in ["/id", "value"] {
            assert_eq!(
                KeyParts::parse(parts)
                    .unwrap()
                    .of(&Example(Some(b"1"), None)),
                None
            );
        }
        for text in ["", "id", "header:", ",key", "Key"] {
            assert_eq!(KeyParts::parse(text).unwrap_err().field, "--key", "{text}");
        }
    }
}
