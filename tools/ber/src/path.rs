//! Paths to values: the tags from the content of a record's element down, `0xA3/0x81`.

use std::str::FromStr;

use serde::Deserialize;
use thiserror::Error;

use crate::element::{MAX_DEPTH, Tag};

/// What a path is written as.
const SYNTAX: &str =
    "tags in hexadecimal identifier bytes, one inside the other: 0x80 or 0xA3/0xBF1F";

/// A path to a value.
///
/// Tags are written as their identifier bytes. The constructed bit (0x20) is no part of a tag:
/// 0x83 and 0xA3 name the same values.
///
/// # Examples
/// ```
/// use echoless_ber::TagPath;
///
/// assert_eq!("0xA3/0x81".parse::<TagPath>()?, "0x83/0x81".parse::<TagPath>()?);
/// assert!("83".parse::<TagPath>().is_err());
/// # Ok::<(), echoless_ber::PathError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct TagPath {
    pub(crate) tags: Vec<Tag>,
}

/// A text that is no path.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is no path: expected {SYNTAX}")]
pub struct PathError {
    /// The text.
    pub text: String,
}

impl PathError {
    /// What a path is written as.
    pub const EXPECTED: &str = SYNTAX;
}

impl FromStr for TagPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let tags: Option<Vec<Tag>> = text.split('/').map(parse_tag).collect();
        // The record itself is the first level.
        match tags {
            Some(tags) if tags.len() < MAX_DEPTH => Ok(Self { tags }),
            Some(_) | None => Err(PathError { text: text.into() }),
        }
    }
}

impl TryFrom<String> for TagPath {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        text.parse()
    }
}

/// The tag with these identifier bytes, `0xBF1F`.
fn parse_tag(text: &str) -> Option<Tag> {
    let digits = text.strip_prefix("0x")?.as_bytes();
    let (pairs, rest) = digits.as_chunks::<2>();
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let octets: Option<Vec<u8>> = pairs
        .iter()
        .map(|[high, low]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok())
        .collect();
    Tag::from_octets(&octets?).filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed_tag_by_tag() {
        let path: TagPath = "0xa3/0xBF1F/0x30".parse().unwrap();
        let tags: Vec<Tag> = [&b"\x83"[..], b"\x9f\x1f", b"\x10"]
            .map(|octets| Tag::from_octets(octets).unwrap())
            .to_vec();
        assert_eq!(path.tags, tags);
    }

    #[test]
    fn other_texts_are_rejected() {
        let deep = ["0x30"; MAX_DEPTH].join("/");
        for text in [
            "", "80", "0x", "0x8", "0x8g", "0x80/", "/0x80", "0x8080", "0xBF", "0x+1", &deep,
        ] {
            assert!(text.parse::<TagPath>().is_err(), "{text}");
        }
        assert!(deep[5..].parse::<TagPath>().is_ok());
    }
}
