//! The canonical form of a JSON value: equal bytes exactly if the values are equal.
//!
//! - Strings are equal if their characters are, however they are escaped. A lone surrogate
//!   (`\ud800`) is a character of its own.
//! - Numbers are equal if their mathematical values are: `1`, `1.0` and `10e-1`, but no two
//!   different integers, however long. `-0` is `0`.
//! - Arrays are equal if their elements are, in order.
//! - Objects are equal if the same names have equal values; of several members with one name the
//!   last counts.
//! - Values of different types differ.
//!
//! | value | canonical form |
//! |---|---|
//! | string | `"`, the characters in UTF-8, `"` |
//! | number | sign, digits without zeros at either end, `e` and the exponent unless it is 0 |
//! | `true`, `false`, `null` | as written |
//! | array | `[`, the elements, `]` |
//! | object | `{`, each member as the string of its name and its value, sorted by name, `}` |
//!
//! In arrays and objects, a string is `"`, its length in 8 bytes and its characters, and a number
//! is followed by `,`.
//!
//! The common values, strings without escapes and integers that do not end with 0, are in canonical
//! form as they are written, and are not copied.

use std::collections::BTreeMap;

use memchr::memchr;

use super::find::Node;
use super::number::{append_number, append_without_exponent, is_canonical_integer};
use super::scan::{DEEPEST, Invalid, Scan, Stop};
use crate::split::FieldBytes;
use crate::text_form::TextForm;

/// What of a value is compared.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ComparedPart<'a> {
    /// The form of its strings, not of the names of members.
    pub(crate) text: TextForm,
    /// The values in it that are left out, as the ends of paths.
    pub(crate) excluded: Option<&'a Node>,
}

impl<'a> ComparedPart<'a> {
    /// The part of a value in this one, `node` being its node among the excluded ones; `None` if
    /// it is left out.
    fn of_child(self, node: Option<&'a Node>) -> Option<Self> {
        (!node.is_some_and(Node::ends_path)).then_some(Self {
            excluded: node,
            ..self
        })
    }

    /// Appends what is compared of a valid string, given without its quotes.
    fn append_text(self, content: &[u8], out: &mut Vec<u8>) {
        if self.text.is_plain() {
            return unescape(content, out);
        }
        let mut text = Vec::new();
        unescape(content, &mut text);
        self.text.append_folded(self.text.trimmed(&text), out);
    }
}

/// The canonical form of this part of the value at `start..end` of a record that [`Scan::find`]
/// accepts. `scratch` gets it where the record does not have it.
///
/// # Errors
/// [`Invalid`] if the exponent of a number has more than 18 digits.
#[inline]
pub(crate) fn canonical(
    record: &[u8],
    start: usize,
    end: usize,
    part: ComparedPart<'_>,
    scratch: &mut Vec<u8>,
) -> Result<FieldBytes, Invalid> {
    let text = &record[start..end];
    let assembled = scratch.len();
    match text {
        [b'"', content @ .., b'"'] => {
            if part.text.is_plain() && memchr(b'\\', content).is_none() {
                return Ok(FieldBytes::Record { start, end });
            }
            scratch.push(b'"');
            part.append_text(content, scratch);
            scratch.push(b'"');
        }
        [b'-' | b'0'..=b'9', ..] => {
            if is_canonical_integer(text) {
                return Ok(FieldBytes::Record { start, end });
            }
            append_number(text, scratch).ok_or_else(|| too_large(start))?;
        }
        [b'[' | b'{', ..] => {
            let mut scan = Scan::new(record);
            append(&mut scan, record, start, part, scratch).map_err(|Stop| too_large(start))?;
        }
        _ => return Ok(FieldBytes::Record { start, end }),
    }
    Ok(FieldBytes::Scratch {
        start: assembled,
        end: scratch.len(),
    })
}

/// The value at `start..end` as plain text: the characters of a string, a number without its
/// exponent unless that is too large, any other value as it is written.
pub(crate) fn plain(record: &[u8], start: usize, end: usize, scratch: &mut Vec<u8>) -> FieldBytes {
    let assembled = scratch.len();
    match &record[start..end] {
        [b'"', content @ .., b'"'] => unescape(content, scratch),
        number @ [b'-' | b'0'..=b'9', ..] => {
            if append_without_exponent(number, scratch).is_none() {
                return FieldBytes::Record { start, end };
            }
        }
        _ => return FieldBytes::Record { start, end },
    }
    FieldBytes::Scratch {
        start: assembled,
        end: scratch.len(),
    }
}

/// Appends the characters of a valid string, given without its quotes.
///
/// A lone surrogate is encoded like any other code point of three bytes (WTF-8), which no valid
/// UTF-8 contains.
pub(crate) fn unescape(content: &[u8], out: &mut Vec<u8>) {
    let mut rest = content;
    while let Some(at) = memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let (escaped, after) = match rest.get(at + 1) {
            Some(b'u') => {
                let (high, after) = (unit(&rest[at + 2..]), &rest[at + 6..]);
                let low = after.strip_prefix(b"\\u").map(unit);
                match (high, low) {
                    (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => (
                        0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00)),
                        &after[6..],
                    ),
                    _ => (high, after),
                }
            }
            Some(byte) => {
                let escaped = match byte {
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => *other,
                };
                (escaped.into(), &rest[at + 2..])
            }
            None => return,
        };
        push_code_point(escaped, out);
        rest = after;
    }
    out.extend_from_slice(rest);
}

/// The UTF-16 code unit in the four hexadecimal digits at the start of `digits`.
fn unit(digits: &[u8]) -> u32 {
    let value = |digit: &u8| char::from(*digit).to_digit(16).unwrap_or(0);
    digits
        .iter()
        .take(4)
        .fold(0, |unit, digit| unit << 4 | value(digit))
}

/// Appends a code point in UTF-8, surrogates included.
fn push_code_point(point: u32, out: &mut Vec<u8>) {
    if let Some(character) = char::from_u32(point) {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        let continuation = |shift: u32| 0x80 | (point >> shift & 0x3f) as u8;
        out.extend_from_slice(&[0xe0 | (point >> 12) as u8, continuation(6), continuation(0)]);
    }
}

fn too_large(at: usize) -> Invalid {
    Invalid {
        at,
        problem: "the exponent of a number in this value has more than 18 digits",
    }
}

/// Appends the canonical form of this part of the valid value at `at`, inside an array or object,
/// and returns the end of the value.
fn append(
    scan: &mut Scan<'_>,
    record: &[u8],
    at: usize,
    part: ComparedPart<'_>,
    out: &mut Vec<u8>,
) -> Result<usize, Stop> {
    let end = match scan.peek(at) {
        b'[' => {
            out.push(b'[');
            let mut at = scan.space(at + 1);
            for index in 0.. {
                if scan.peek(at) == b']' {
                    break;
                }
                let node = part.excluded.and_then(|node| node.of_element(index));
                at = match part.of_child(node) {
                    Some(part) => append(scan, record, at, part, out)?,
                    None => scan.skip(at, DEEPEST)?,
                };
                at = scan.space(at);
                if scan.peek(at) == b',' {
                    at = scan.space(at + 1);
                }
            }
            out.push(b']');
            at + 1
        }
        b'{' => {
            // Sorted by name; a later member replaces an earlier one.
            let mut members = BTreeMap::new();
            let mut at = scan.space(at + 1);
            while scan.peek(at) != b'}' {
                let (end, value) = scan.member(at + 1)?;
                let mut name = Vec::new();
                unescape(&record[at + 1..end], &mut name);
                at = value;
                let node = part.excluded.and_then(|node| node.of_member(&name));
                at = match part.of_child(node) {
                    Some(part) => {
                        let mut value = Vec::new();
                        let end = append(scan, record, at, part, &mut value)?;
                        members.insert(name, value);
                        end
                    }
                    None => scan.skip(at, DEEPEST)?,
                };
                at = scan.space(at);
                if scan.peek(at) == b',' {
                    at = scan.space(at + 1);
                }
            }
            out.push(b'{');
            for (name, value) in members {
                out.push(b'"');
                out.extend_from_slice(&(name.len() as u64).to_le_bytes());
                out.extend_from_slice(&name);
                out.extend_from_slice(&value);
            }
            out.push(b'}');
            at + 1
        }
        b'"' => {
            let end = scan.string(at + 1)?;
            out.push(b'"');
            let length = out.len();
            out.extend_from_slice(&[0; 8]);
            part.append_text(&record[at + 1..end - 1], out);
            let bytes = (out.len() - length - 8) as u64;
            out[length..length + 8].copy_from_slice(&bytes.to_le_bytes());
            end
        }
        b'-' | b'0'..=b'9' => {
            let end = scan.number(at)?;
            append_number(&record[at..end], out).ok_or(Stop)?;
            out.push(b',');
            end
        }
        _ => {
            let end = scan.skip(at, 0)?;
            out.extend_from_slice(&record[at..end]);
            end
        }
    };
    Ok(end)
}

#[cfg(test)]
mod tests;
