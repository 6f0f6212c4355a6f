//! Where JSON values end that follow one another without newlines in between, or have some inside.
//!
//! ```text
//! bytes     {"a":[1]} {"b":\n2}\n[3]"x"\n
//! records   |---------|----------|--|--|     a value, the blanks behind it, and a newline
//! ```
//!
//! Brackets are counted and strings are skipped; whether a value is valid is for its reader. A
//! number or a word ends at white space, so what is no value at all does, too.

use memchr::{memchr, memchr2};

const LF: u8 = b'\n';

/// The state of a scan in a value, behind its first byte: brackets are counted and strings skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InValue {
    state: Inside,
    /// The number of brackets that are open.
    depth: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// Between brackets, and outside of strings.
    Brackets,
    String,
    /// After a backslash in a string.
    Escape,
    /// In a number or a word.
    Word,
}

impl InValue {
    /// In a value with this first byte.
    pub(super) const fn begin(first: u8) -> Self {
        let (state, depth) = match first {
            b'{' | b'[' => (Inside::Brackets, 1),
            b'"' => (Inside::String, 0),
            _ => (Inside::Word, 0),
        };
        Self { state, depth }
    }

    /// The end of the value, if it is in `bytes`, which are all scanned if it is not. A number or a
    /// word ends in front of a byte for which `ends_word` holds.
    #[inline]
    pub(super) fn end(&mut self, bytes: &[u8], ends_word: impl Fn(&u8) -> bool) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            at += match self.state {
                Inside::Brackets => {
                    let is_token = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']');
                    let token = rest.iter().position(is_token)?;
                    match rest[token] {
                        b'"' => self.state = Inside::String,
                        b'{' | b'[' => self.depth += 1,
                        _ if self.depth == 1 => return Some(at + token + 1),
                        _ => self.depth -= 1,
                    }
                    token + 1
                }
                Inside::String => {
                    let token = memchr2(b'"', b'\\', rest)?;
                    self.state = match (rest[token], self.depth) {
                        (b'\\', _) => Inside::Escape,
                        (_, 0) => return Some(at + token + 1),
                        (_, _) => Inside::Brackets,
                    };
                    token + 1
                }
                Inside::Escape => {
                    self.state = Inside::String;
                    1
                }
                Inside::Word => return rest.iter().position(ends_word).map(|end| at + end),
            };
        }
        None
    }
}

/// The state of a scan after the last byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ValueScan {
    /// In front of a value.
    #[default]
    Before,
    In(InValue),
    /// Behind a value, where blanks and a newline still belong to it.
    After,
}

impl ValueScan {
    /// Whether a value has begun that only more bytes can end.
    pub(crate) fn is_inside(self) -> bool {
        matches!(self, Self::In(value) if value.state != Inside::Word)
    }

    /// Scans `bytes[from..]` and passes every record end to `found`; `bytes[..from]` was scanned by
    /// earlier calls. A value ends where the byte behind it is known. A newline in front of a value
    /// ends a blank record.
    pub(crate) fn scan(&mut self, bytes: &[u8], from: usize, mut found: impl FnMut(usize)) {
        let mut at = from;
        while at < bytes.len() {
            at += match self {
                Self::Before => {
                    match bytes[at] {
                        LF => found(at + 1),
                        b' ' | b'\t' | b'\r' => {}
                        first => *self = Self::In(InValue::begin(first)),
                    }
                    1
                }
                Self::In(value) => {
                    let Some(end) = value.end(&bytes[at..], u8::is_ascii_whitespace) else {
                        return;
                    };
                    *self = Self::After;
                    end
                }
                Self::After => match bytes[at] {
                    b' ' | b'\t' | b'\r' => 1,
                    LF => {
                        found(at + 1);
                        *self = Self::Before;
                        1
                    }
                    _ => {
                        found(at);
                        *self = Self::Before;
                        0
                    }
                },
            };
        }
    }
}

/// Finds out from the start of an input whether its first line has several values.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FirstLine {
    scan: ValueScan,
}

impl FirstLine {
    /// Whether a second array or object follows the first one on the first line of an input;
    /// `None` if later bytes tell. `bytes[..from]` was passed to earlier calls.
    pub(crate) fn has_several_values(&mut self, bytes: &[u8], from: usize) -> Option<bool> {
        let opens = |bytes: &[u8]| matches!(bytes.first(), Some(b'{' | b'['));
        let start = bytes
            .iter()
            .position(|byte| !matches!(byte, b' ' | b'\t' | b'\r'))?;
        if !opens(&bytes[start..]) {
            return Some(false);
        }
        let newline = memchr(LF, &bytes[from..]);
        let line = newline.map_or(bytes, |newline| &bytes[..from + newline]);
        let mut second = None;
        self.scan.scan(line, from, |end| {
            second.get_or_insert(end);
        });
        match second {
            Some(end) => Some(opens(&line[end..])),
            None => newline.map(|_| false),
        }
    }
}

/// At least the number of values that end in a part of a text of JSON lines: that of its newlines,
/// and of the arrays and objects that follow another one without a comma.
pub(crate) fn count_values(bytes: &[u8]) -> usize {
    let follows = |at: &usize| {
        let before = bytes[..*at].iter().rev();
        let before = before
            .copied()
            .find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
        matches!(before, Some(b'}' | b']'))
    };
    let joined = memchr::memchr2_iter(b'{', b'[', bytes).filter(follows);
    memchr::memchr_iter(LF, bytes).count() + joined.count()
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::{Deserializer, Value};

    use super::*;
    use crate::json::tests::text;

    fn ends(bytes: &[u8]) -> Vec<usize> {
        let mut ends = Vec::new();
        ValueScan::default().scan(bytes, 0, |end| ends.push(end));
        ends
    }

    #[test]
    fn values_end_behind_their_blanks() {
        for (text, expected) in [
            ("", &[][..]),
            ("{\"a\":[1]} {\"b\":\n2}\n[3]\"x\"\n", &[10, 19, 22, 26]),
            ("1 2\r\n3", &[2, 5]),
            ("\n\n {}\n", &[1, 2, 6]),
            ("{\"}\\\"\":\"{\"}{}", &[11]),
            ("}]x,\n{}1", &[5, 7]),
            ("{\"a\":1]{}", &[7]),
        ] {
            assert_eq!(ends(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_first_line_tells_whether_values_are_joined() {
        for (text, expected) in [
            ("{}{}", Some(true)),
            ("  {\"a\":\"}{\"} [", Some(true)),
            ("[1]{", Some(true)),
            ("{}\n{}{}", Some(false)),
            ("{}", None),
            ("{\"a\":", None),
            ("  ", None),
            ("{\"a\":\n1}{}", Some(false)),
            ("\n{}{}", Some(false)),
            ("{}}", Some(false)),
            ("{} x", Some(false)),
            ("{}1", Some(false)),
            ("1 2", Some(false)),
            ("\"a\"\"b\"", Some(false)),
        ] {
            let bytes = text.as_bytes();
            assert_eq!(
                FirstLine::default().has_several_values(bytes, 0),
                expected,
                "{text}"
            );
            let mut pieces = FirstLine::default();
            let found =
                (0..bytes.len()).find_map(|at| pieces.has_several_values(&bytes[..=at], at));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn joined_values_are_counted_and_others_are_not() {
        for (text, expected) in [
            ("{\"a\":{\"b\":[{},{}]}}\n{}\n", 2),
            ("{}{}\n[] {}\n", 4),
            ("}{", 1),
            ("[[1],[2]]\n", 1),
        ] {
            assert_eq!(count_values(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        /// The model is serde_json, which reads the values one after the other.
        #[test]
        fn joined_values_are_those_of_serde_json(
            texts in vec((text(), prop::sample::select(vec!["", " ", "\n", "\r\n", "\n\n", "  \n"])), 0..8),
        ) {
            let mut bytes = Vec::new();
            for (text, space) in &texts {
                let text = text.trim();
                bytes.extend_from_slice(text.as_bytes());
                bytes.extend_from_slice(space.as_bytes());
                if !text.ends_with(['}', ']']) {
                    bytes.push(b' ');
                }
            }
            let expected: Vec<Value> =
                Deserializer::from_slice(&bytes).into_iter().collect::<Result<_, _>>().unwrap();
            let mut ends = ends(&bytes);
            ends.push(bytes.len());
            let mut start = 0;
            let mut found = Vec::new();
            for end in ends {
                let record = bytes[start..end].trim_ascii();
                start = end;
                if !record.is_empty() {
                    found.push(serde_json::from_slice::<Value>(record).unwrap());
                }
            }
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn ends_do_not_depend_on_how_the_bytes_arrive(
            bytes in vec(prop::sample::select(b"{}[]\"\\ \n1a".to_vec()), 0..60),
            size in 1_usize..9,
        ) {
            let mut scan = ValueScan::default();
            let mut found = Vec::new();
            for from in (0..bytes.len()).step_by(size) {
                let until = bytes.len().min(from + size);
                scan.scan(&bytes[..until], from, |end| found.push(end));
            }
            prop_assert_eq!(found, ends(&bytes));
        }
    }
}
