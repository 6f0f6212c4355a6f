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

use std::borrow::Cow;
use std::collections::BTreeMap;

use memchr::memchr;

use super::find::Node;
use super::number::{append_number, append_without_exponent, is_canonical_integer};
use super::scan::{DEEPEST, Invalid, Scan, Stop, unescape};
use crate::field_set::FieldBytes;
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
/// accepts. `scratch` gets it where the record does not have it. Fails if the exponent of a number
/// has more than 18 digits.
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

/// The text of a canonical form: an array or an object as JSON.
pub(crate) fn shown(form: &[u8]) -> Cow<'_, [u8]> {
    let mut text = Vec::new();
    match form {
        [b'[' | b'{', ..] if show(&mut &*form, &mut text).is_some() => Cow::Owned(text),
        _ => Cow::Borrowed(form),
    }
}

/// Appends the text of the value that a form begins with, and takes the value from the form.
fn show(form: &mut &[u8], text: &mut Vec<u8>) -> Option<()> {
    let [first, rest @ ..] = *form else {
        return None;
    };
    match first {
        b'[' | b'{' => {
            let end = if *first == b'[' { b']' } else { b'}' };
            text.push(*first);
            *form = rest;
            while *form.first()? != end {
                if text.last() != Some(first) {
                    text.push(b',');
                }
                if *first == b'{' {
                    show(form, text)?;
                    text.push(b':');
                }
                show(form, text)?;
            }
            text.push(end);
            *form = &form[1..];
        }
        b'"' => {
            let (length, rest) = rest.split_first_chunk()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let (string, rest) = rest.split_at_checked(length)?;
            serde_json::to_writer(&mut *text, &String::from_utf8_lossy(string)).ok()?;
            *form = rest;
        }
        b'-' | b'0'..=b'9' => {
            let (number, rest) = rest.split_at(memchr(b',', rest)?);
            text.push(*first);
            text.extend_from_slice(number);
            *form = &rest[1..];
        }
        _ => {
            let (word, rest) = form.split_at_checked(if *first == b'f' { 5 } else { 4 })?;
            text.extend_from_slice(word);
            *form = rest;
        }
    }
    Some(())
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
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::json::find::Node;
    use crate::json::path::{KeyPaths, PathStep, parse_paths};
    use crate::json::tests::text;
    use crate::text_form::IgnoredCase;

    /// The canonical form of the whole text.
    fn form(text: &str) -> Result<Vec<u8>, Invalid> {
        form_of(text, ComparedPart::default())
    }

    /// The canonical form of this part of the whole text.
    fn form_of(text: &str, part: ComparedPart<'_>) -> Result<Vec<u8>, Invalid> {
        let root = Node::join(&parse_paths("--key", ".").unwrap());
        let mut found = [FieldBytes::Absent];
        Scan::new(text.as_bytes()).find(&root, &mut found)?;
        let FieldBytes::Record { start, end } = found[0] else {
            panic!("the whole text is a value");
        };
        let mut scratch = b"before".to_vec();
        let field = canonical(text.as_bytes(), start, end, part, &mut scratch)?;
        Ok(field.bytes(text.as_bytes(), &scratch).to_vec())
    }

    #[test]
    fn forms_are_shown_as_json() {
        for (text, expected) in [
            (
                r#"{ "k" : "v", "a": [1, 2.50, "x\"\u00e4"] }"#,
                r#"{"a":[1,25e-1,"x\"ä"],"k":"v"}"#,
            ),
            (r#"[ ]"#, "[]"),
            (
                r#"[{}, [[]], true, false, null, -1e9]"#,
                "[{},[[]],true,false,null,-1e9]",
            ),
            (r#"{"{":"[","[":{"a":{}}}"#, r#"{"[":{"a":{}},"{":"["}"#),
            ("\"x\"", "\"x\""),
            ("12", "12"),
        ] {
            let form = form(text).unwrap();
            let shown = shown(&form);
            assert_eq!(String::from_utf8_lossy(&shown), expected, "{text}");
        }
        // One that is cut is shown as it is.
        let cut = form(r#"["long"]"#).unwrap();
        assert_eq!(shown(&cut[..6]), &cut[..6]);
    }

    fn all_equal(texts: &[&str]) {
        for text in texts {
            assert_eq!(form(text), form(texts[0]), "{text} and {}", texts[0]);
        }
    }

    fn all_different(texts: &[&str]) {
        for (index, one) in texts.iter().enumerate() {
            for other in &texts[..index] {
                assert_ne!(
                    form(one).unwrap(),
                    form(other).unwrap(),
                    "{one} and {other}"
                );
            }
        }
    }

    #[test]
    fn numbers_are_equal_by_value() {
        all_equal(&["1", "1.0", "1e0", "10e-1", "0.1E+1", "1.000", "1e00", " 1 "]);
        all_equal(&["0", "-0", "0.0", "-0e5", "0e99999999999999999999"]);
        all_equal(&["100", "1e2", "1E+02", "1000e-1", "0.1e3"]);
        all_equal(&["-0.05", "-5e-2", "-0.050"]);
        all_equal(&["1e400", "10e399", "0.1e401"]);
        all_different(&[
            "0", "1", "-1", "10", "0.1", "1e400", "1e401", "11", "101", "1e-1000",
        ]);
        // Both are 2^53 as floating point numbers.
        all_different(&["9007199254740992", "9007199254740993"]);
        let long = "1234567890".repeat(20);
        all_different(&[&long, &format!("{long}1"), &format!("{long}.1")]);
    }

    #[test]
    fn exponents_have_18_digits() {
        assert!(form("1e999999999999999999").is_ok());
        assert!(form("1e-0000999999999999999999").is_ok());
        for text in ["1e1000000000000000000", "[1e-1000000000000000000]"] {
            assert!(form(text).unwrap_err().problem.contains("18 digits"));
        }
    }

    #[test]
    fn types_differ() {
        all_different(&[
            "1",
            r#""1""#,
            "null",
            r#""null""#,
            r#""""#,
            "true",
            "false",
            "[]",
            "{}",
            "[1]",
            r#"["1"]"#,
            "[null]",
            "[[]]",
            "[{}]",
            "[1,1]",
            "[11]",
            r#"{"":null}"#,
            r#"["1,1"]"#,
            r#"["1","1"]"#,
            r#"{"a":[]}"#,
            r#"{"a":{}}"#,
            "[0]",
            "[[],[]]",
            "[[[]]]",
        ]);
    }

    #[test]
    fn strings_are_equal_by_characters() {
        all_equal(&[r#""A""#, r#""\u0041""#]);
        all_equal(&[r#""é""#, r#""\u00e9""#, r#""\u00E9""#]);
        all_equal(&[r#""😀""#, r#""\ud83d\ude00""#, r#""\uD83D\uDE00""#]);
        all_equal(&[r#""/\"\\""#, r#""\/\u0022\u005c""#]);
        all_equal(&[r#""\b\f\n\r\t""#, r#""\u0008\u000c\u000a\u000d\u0009""#]);
        all_different(&[
            r#""A""#,
            r#""a""#,
            r#""\\u0041""#,
            r#""é""#,
            r#""e\u0301""#,
            r#""\ud83d""#,
            r#""\ude00""#,
            r#""\ude00\ud83d""#,
            r#""\ud83d\ude00""#,
            r#""\ud83d\ud83d\ude00""#,
            r#""\ufffd""#,
            r#""\ud83dx""#,
            r#""A\u0000""#,
        ]);
    }

    #[test]
    fn order_and_space_do_not_matter_in_objects() {
        all_equal(&[
            r#"{"a":1,"b":[2,{"c":null}]}"#,
            r#"{ "b" : [ 2.0 , { "\u0063" : null } ] , "a" : 1e0 }"#,
            r#"{"a":{"x":[]},"b":[2,{"c":null}],"a":1}"#,
        ]);
        all_different(&[
            r#"{"a":1,"b":2}"#,
            r#"{"a":2,"b":1}"#,
            r#"{"a":1}"#,
            r#"{"a":1,"b":null}"#,
            r#"{"a":{"b":1}}"#,
            r#"["a",1,"b",2]"#,
            r#"{"ab":1}"#,
            "[1,2]",
            "[2,1]",
        ]);
    }

    /// Numbers as floating point numbers, without the sign of zero.
    fn with_plain_numbers(value: Value) -> Value {
        match value {
            Value::Number(number) => (number.as_f64().unwrap() + 0.0).into(),
            Value::Array(elements) => elements.into_iter().map(with_plain_numbers).collect(),
            Value::Object(members) => members
                .into_iter()
                .map(|(name, value)| (name, with_plain_numbers(value)))
                .collect(),
            scalar @ (Value::Null | Value::Bool(_) | Value::String(_)) => scalar,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Equal key, equal value: the numbers of these texts are exact in floating point.
        #[test]
        fn forms_are_equal_exactly_if_values_of_serde_json_are(texts in vec(text(), 2..4)) {
            let values: Vec<(&String, Value)> = texts
                .iter()
                .filter_map(|text| Some((text, serde_json::from_str(text).ok()?)))
                .map(|(text, value)| (text, with_plain_numbers(value)))
                .collect();
            for (one, value) in &values {
                for (other, other_value) in &values {
                    let equal = form(one).unwrap() == form(other).unwrap();
                    prop_assert_eq!(equal, value == other_value, "{} and {}", one, other);
                }
            }
        }

        #[test]
        fn strings_equal_those_of_serde_json(
            characters in vec(prop::sample::select(vec![
                "a", "é", "😀", "\\n", "\\\"", "\\\\", "\\/", "\\u0041", "\\u00e9", "\\ud83d\\ude00",
                "\\u20ac", "\\u0000",
            ]), 0..40),
        ) {
            let text = format!("\"{}\"", characters.concat());
            let mut out = Vec::new();
            unescape(&text.as_bytes()[1..text.len() - 1], &mut out);
            let expected: String = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(out, expected.into_bytes());
        }
    }

    /// The value without the one on a path.
    fn without(value: &mut Value, steps: &[PathStep]) {
        match (steps, value) {
            ([PathStep::Member(name)], Value::Object(members)) => {
                members.remove(std::str::from_utf8(name).unwrap());
            }
            ([PathStep::Element(index)], Value::Array(elements)) if *index < elements.len() => {
                elements.remove(*index);
            }
            ([PathStep::Member(name), rest @ ..], Value::Object(members)) => {
                if let Some(value) = members.get_mut(std::str::from_utf8(name).unwrap()) {
                    without(value, rest);
                }
            }
            ([PathStep::Element(index), rest @ ..], Value::Array(elements)) => {
                if let Some(value) = elements.get_mut(*index) {
                    without(value, rest);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn strings_are_compared_in_a_form_and_names_are_not() {
        let part = ComparedPart {
            text: TextForm {
                trim: true,
                ignored_case: Some(IgnoredCase::Unicode),
            },
            excluded: None,
        };
        let equal = |one, other| form_of(one, part) == form_of(other, part);
        assert!(equal(r#"" \u00c4B""#, r#""äb\n""#));
        assert!(equal(r#"{"a":["X ",1E2]}"#, r#"{"a":[" x",100]}"#));
        assert!(!equal(r#"{"A":1}"#, r#"{"a":1}"#));
        assert!(!equal(r#"{"a ":1}"#, r#"{"a":1}"#));
        // Lengths are no letters.
        let string = |length| format!("[\"{}\"]", "x".repeat(length));
        assert!(!equal(&string(65), &string(97)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// The model removes the values with serde_json.
        #[test]
        fn excluded_values_are_left_out(one in text(), path in prop::sample::select(vec![
            "!a", "!b", "!a.b", r#"!"a.b""#, "!a[0]", "![1]", "![1].a", r#"!"""#, "!é.a", "![0][0]",
        ])) {
            let excluded = KeyPaths::parse(path).unwrap().excluded;
            let node = Node::join(&excluded);
            let part = ComparedPart { text: TextForm::default(), excluded: Some(&node) };
            let mut rest: Value = serde_json::from_str(&one).unwrap();
            without(&mut rest, &excluded[0].steps);
            prop_assert_eq!(form_of(&one, part), form(&rest.to_string()), "{} {}", path, one);
        }
    }
}
