//! Arrays that hold records: on a path of names from each value of an input, which is `.` if the
//! value itself is the array.
//!
//! ```text
//! bytes   {"n":2,"Records":[{"id":1},\n{"id":2}]}\n
//! pieces  |----------------|--------|---------|---|     frame, record, record, frame
//! ```
//!
//! A record begins behind the record before it, so the comma between them is at its start. Whether
//! a record is valid is for its reader; around records, brackets are counted.

use std::sync::Arc;

use echoless::SpecError;
use memchr::memchr2;

use super::framing::InValue;
use super::path::{PathStep, parse_paths};
use super::scan::Invalid;

/// More bytes of a name are not compared with those of a path.
const LONGEST_NAME: usize = 64 << 10;

/// The names that lead to an array of records.
#[derive(Debug, Clone)]
pub(crate) struct ListPath(Arc<[Vec<u8>]>);

impl ListPath {
    /// Parses `Records`, `data.items` or `.`.
    pub(crate) fn parse(text: &str) -> Result<Self, SpecError> {
        let invalid = || {
            let allowed = "container=PATH with names of members, such as Records or data.items, or . \
                           for the value itself";
            SpecError::new("--format json", format!("container={text}"), allowed)
        };
        let paths = parse_paths("--format json", text).map_err(|_| invalid())?;
        let [path] = &paths[..] else {
            return Err(invalid());
        };
        let names = path.steps.iter().map(|step| match step {
            PathStep::Member(name) => Some(name.clone()),
            PathStep::Element(_) => None,
        });
        let names: Option<Vec<_>> = names.collect();
        Ok(Self(names.ok_or_else(invalid)?.into()))
    }
}

/// A part of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListPiece {
    Record,
    /// Bytes around records, up to the bracket that opens an array of them, with the number of
    /// objects that are open around it.
    Opens {
        objects: usize,
    },
    /// The bracket that closes the array, with what is before it.
    Closes,
    Frame,
}

/// The state of a scan after the last byte.
#[derive(Debug, Clone)]
pub(crate) struct ListScan {
    path: ListPath,
    state: State,
    /// The number of open brackets outside of records, and how many of them, the outermost, are
    /// objects on the path.
    depth: usize,
    matched: usize,
    /// The last name in an object on the path, as it is written.
    name: Vec<u8>,
    has_begun: bool,
    has_list: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Around records, and outside of strings.
    Frame(Next),
    FrameString,
    FrameEscape,
    Name,
    NameEscape,
    /// In an array of records, in front of a record, which must be there behind a comma.
    Before {
        comma: bool,
    },
    /// In a record.
    In(InValue),
    /// Behind a record.
    After,
}

/// What follows among the brackets on the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Name,
    Value { is_on_path: bool },
    Other,
}

impl ListScan {
    /// A scan at the start of an input.
    pub(crate) fn new(path: ListPath) -> Self {
        Self {
            path,
            state: State::Frame(Next::Value { is_on_path: true }),
            depth: 0,
            matched: 0,
            name: Vec::new(),
            has_begun: false,
            has_list: false,
        }
    }

    /// Whether no bracket is open.
    pub(crate) fn is_outside(&self) -> bool {
        self.is_in_frame() && self.depth == 0
    }

    /// Whether the scan is around records, and outside of strings.
    pub(crate) fn is_in_frame(&self) -> bool {
        matches!(self.state, State::Frame(_))
    }

    /// Whether a byte was scanned.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether an array of records was found.
    pub(crate) fn has_list(&self) -> bool {
        self.has_list
    }

    /// Scans `bytes[from..]` and passes each piece that ends there to `found`, with its end;
    /// `bytes[..from]` was scanned by earlier calls. Fails if a byte cannot be there, with its
    /// offset in `bytes`.
    pub(crate) fn scan(
        &mut self,
        bytes: &[u8],
        from: usize,
        mut found: impl FnMut(ListPiece, usize),
    ) -> Result<(), Invalid> {
        let mut at = from;
        self.has_begun |= at < bytes.len();
        while at < bytes.len() {
            let rest = &bytes[at..];
            at += match &mut self.state {
                State::Frame(next) => {
                    let next = *next;
                    self.frame(next, rest[0], at, &mut found)?;
                    1
                }
                State::FrameString => {
                    let Some(token) = memchr2(b'"', b'\\', rest) else {
                        break;
                    };
                    self.state = match rest[token] {
                        b'\\' => State::FrameEscape,
                        _ => State::Frame(Next::Other),
                    };
                    token + 1
                }
                State::FrameEscape => {
                    self.state = State::FrameString;
                    1
                }
                State::Name => {
                    self.state = match rest[0] {
                        b'"' => State::Frame(Next::Other),
                        b'\\' => State::NameEscape,
                        _ => State::Name,
                    };
                    if self.state != State::Frame(Next::Other) {
                        self.push_name(rest[0]);
                    }
                    1
                }
                State::NameEscape => {
                    self.push_name(rest[0]);
                    self.state = State::Name;
                    1
                }
                State::Before { comma } => {
                    match rest[0] {
                        byte if byte.is_ascii_whitespace() => {}
                        b']' if !*comma => self.close(at, &mut found),
                        b']' | b'}' | b',' | b':' => {
                            return Err(invalid(at, "expected a record of the array"));
                        }
                        first => self.state = State::In(InValue::begin(first)),
                    }
                    1
                }
                State::In(record) => {
                    let ends_word = |byte: &u8| {
                        byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}')
                    };
                    let Some(end) = record.end(rest, ends_word) else {
                        break;
                    };
                    found(ListPiece::Record, at + end);
                    self.state = State::After;
                    end
                }
                State::After => {
                    match rest[0] {
                        byte if byte.is_ascii_whitespace() => {}
                        b',' => self.state = State::Before { comma: true },
                        b']' => self.close(at, &mut found),
                        _ => return Err(invalid(at, "expected a comma or ] behind a record")),
                    }
                    1
                }
            };
        }
        let is_frame = matches!(
            self.state,
            State::Frame(_)
                | State::FrameString
                | State::FrameEscape
                | State::Name
                | State::NameEscape
        );
        if is_frame && from < bytes.len() {
            found(ListPiece::Frame, bytes.len());
        }
        Ok(())
    }

    /// Notes a byte of a name, as far as names on a path go.
    fn push_name(&mut self, byte: u8) {
        if self.name.len() < LONGEST_NAME {
            self.name.push(byte);
        }
    }

    /// A byte around records, and outside of strings.
    fn frame(
        &mut self,
        next: Next,
        byte: u8,
        at: usize,
        found: &mut impl FnMut(ListPiece, usize),
    ) -> Result<(), Invalid> {
        let is_on_path = self.depth == self.matched && next == Next::Value { is_on_path: true };
        let next = match byte {
            b'"' if self.depth == self.matched && next == Next::Name => {
                self.name.clear();
                self.state = State::Name;
                return Ok(());
            }
            b'"' => {
                self.state = State::FrameString;
                return Ok(());
            }
            b'[' if is_on_path && self.matched == self.path.0.len() => {
                let objects = self.matched;
                found(ListPiece::Opens { objects }, at + 1);
                self.has_list = true;
                self.state = State::Before { comma: false };
                return Ok(());
            }
            b'{' if is_on_path && self.matched < self.path.0.len() => {
                self.depth += 1;
                self.matched += 1;
                Next::Name
            }
            b'{' | b'[' => {
                self.depth += 1;
                Next::Other
            }
            b'}' | b']' => {
                if self.depth == 0 {
                    return Err(invalid(at, "a bracket closes nothing"));
                }
                if self.depth == self.matched {
                    self.matched -= 1;
                }
                self.depth -= 1;
                self.behind_value()
            }
            b',' if self.depth == self.matched && self.depth > 0 => Next::Name,
            b':' if self.depth == self.matched && self.depth > 0 => Next::Value {
                is_on_path: is_name(&self.name, &self.path.0[self.matched - 1]),
            },
            _ if self.depth == 0 => self.behind_value(),
            _ => next,
        };
        self.state = State::Frame(next);
        Ok(())
    }

    /// What follows a value, or a byte between values of the input.
    fn behind_value(&self) -> Next {
        if self.depth == 0 {
            Next::Value { is_on_path: true }
        } else {
            Next::Other
        }
    }

    fn close(&mut self, at: usize, found: &mut impl FnMut(ListPiece, usize)) {
        found(ListPiece::Closes, at + 1);
        self.state = State::Frame(self.behind_value());
    }
}

/// Whether a name as it is written is this one.
fn is_name(written: &[u8], name: &[u8]) -> bool {
    if !written.contains(&b'\\') {
        return written == name;
    }
    let quoted = [b"\"", written, b"\""].concat();
    serde_json::from_slice::<String>(&quoted).is_ok_and(|read| read.as_bytes() == name)
}

const fn invalid(at: usize, problem: &'static str) -> Invalid {
    Invalid { at, problem }
}

/// A record without the comma in front of it, and white space around it.
#[inline]
pub(crate) fn without_comma(record: &[u8]) -> &[u8] {
    let record = record.trim_ascii();
    let inner = record.strip_prefix(b",").map(<[u8]>::trim_ascii_start);
    inner.unwrap_or(record)
}

/// The path to an array of objects that is most of a value, as it is typed.
pub(crate) fn list_inside(value: &[u8]) -> Option<String> {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace();
    let mut names: Vec<&[u8]> = Vec::new();
    let mut last: &[u8] = b"";
    let mut arrays = 0_usize;
    // The start of an array that may be the one.
    let mut list = None;
    let mut at = 0;
    while let Some(byte) = value.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let start = at;
                loop {
                    let token = at + memchr2(b'"', b'\\', value.get(at..)?)?;
                    at = token + 1;
                    if value[token] == b'"' {
                        last = &value[start..token];
                        break;
                    }
                    at += 1;
                }
            }
            b'{' if arrays == 0 => names.push(last),
            b'[' => {
                let first = value[at..].iter().find(|byte| !is_blank(byte));
                if arrays == 0 && first == Some(&b'{') {
                    list = Some((at, last));
                }
                arrays += 1;
            }
            b']' => {
                arrays = arrays.checked_sub(1)?;
                if let Some((start, name)) = list.filter(|_| arrays == 0) {
                    if 2 * (at - start) >= value.len() {
                        // The outermost object has no name.
                        let outer = names.iter().skip(1).copied();
                        let path = outer.chain((!names.is_empty()).then_some(name));
                        return path_text(path);
                    }
                    list = None;
                }
            }
            b'}' if arrays == 0 => {
                names.pop()?;
            }
            _ => {}
        }
    }
    None
}

/// A path of names that are written as in JSON.
fn path_text<'a>(names: impl Iterator<Item = &'a [u8]>) -> Option<String> {
    let mut text = String::new();
    for name in names {
        let name = std::str::from_utf8(name).ok()?;
        let is_plain = !name.is_empty()
            && !name.starts_with('!')
            && !name.contains(['.', ',', '[', ']', '"', '\\']);
        if !text.is_empty() {
            text.push('.');
        }
        if is_plain {
            text.push_str(name);
        } else {
            text.extend(["\"", name, "\""]);
        }
    }
    Some(if text.is_empty() { ".".into() } else { text })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::{Deserializer, Value};

    use super::*;
    use crate::json::tests::text;

    /// The pieces of a text that arrives in parts of this size, or what is wrong with it.
    fn pieces(path: &str, bytes: &[u8], size: usize) -> Result<Vec<(ListPiece, usize)>, Invalid> {
        let mut scan = ListScan::new(ListPath::parse(path).unwrap());
        let mut pieces: Vec<(ListPiece, usize)> = Vec::new();
        for from in (0..bytes.len()).step_by(size) {
            let until = bytes.len().min(from + size);
            scan.scan(&bytes[..until], from, |piece, end| {
                match pieces.last_mut() {
                    Some((ListPiece::Frame, last)) if piece != ListPiece::Record => {
                        *last = end;
                        pieces.last_mut().unwrap().0 = piece;
                    }
                    _ => pieces.push((piece, end)),
                }
            })?;
        }
        Ok(pieces)
    }

    fn records<'a>(path: &str, text: &'a str) -> Vec<&'a str> {
        let pieces = pieces(path, text.as_bytes(), 1).unwrap();
        let starts = std::iter::once(0).chain(pieces.iter().map(|(_, end)| *end));
        let all = starts
            .zip(&pieces)
            .filter(|(_, (piece, _))| *piece == ListPiece::Record);
        all.map(|(start, (_, end))| &text[start..*end]).collect()
    }

    #[test]
    fn records_are_the_elements_on_the_path() {
        for (path, text, expected) in [
            (".", "[]", &[][..]),
            (
                ".",
                "[ ] [1,\n \"a]\",{\"b\":[2]} ,[3]]",
                &["1", ",\n \"a]\"", ",{\"b\":[2]}", " ,[3]"],
            ),
            (
                "Records",
                "{\"Records\":[{\"a\":1},{}]}",
                &["{\"a\":1}", ",{}"],
            ),
            (
                "a",
                "{\"b\":[1],\"a\": [2], \"c\":{\"a\":[3]},\"\\u0061\":[4]}{\"a\":5}",
                &["2", "4"],
            ),
            ("a", "[{\"a\":[1]}] \"a\" {\"x\":\"a\",\"a\":[2]}", &["2"]),
            (
                "a.b",
                "{\"a\":{\"c\":{\"b\":[0]},\"b\":[1]},\"b\":[2],\"a\":{\"b\":[3]}}",
                &["1", "3"],
            ),
            ("\"a.b\"", "{\"a.b\":[true,null]}", &["true", ",null"]),
            (
                "a",
                "{\"a\":[\"\\\"\",\"\\\\\"]}",
                &["\"\\\"\"", ",\"\\\\\""],
            ),
        ] {
            assert_eq!(records(path, text), expected, "{path} {text}");
        }
        for (path, text, at) in [
            (".", "[1,]", 3),
            (".", "[,1]", 1),
            (".", "[{}{}]", 3),
            (".", "[1}", 2),
            (".", "[]]", 2),
            ("a", "{}}", 2),
        ] {
            let error = pieces(path, text.as_bytes(), 100).unwrap_err();
            assert_eq!(error.at, at, "{path} {text}");
        }
        for path in ["", "a[0]", "a,b", "a..b", "[0]"] {
            assert!(ListPath::parse(path).is_err(), "{path}");
        }
    }

    #[test]
    fn the_array_that_is_most_of_a_value_is_found() {
        for (text, path) in [
            ("[{\"a\":1}]", Some(".")),
            (" [ {\"a\":[{}]}]\n", Some(".")),
            ("{\"Records\":[{\"id\":1},{\"id\":2}]}", Some("Records")),
            (
                "{\"took\":3,\"hits\":{\"total\":[1],\"hits\":[{\"id\":[{},{}]},{\"id\":[1,2,3,4,5,6,7]},{}]}}",
                Some("hits.hits"),
            ),
            ("{\"a.b\":[{\"id\":1}]}", Some("\"a.b\"")),
            ("{\"name\":\"a long name\",\"items\":[{}]}", None),
            ("{\"a\":[1,2,3]}", None),
            ("[[{}]]", None),
            ("{\"a\":\"[{\"", None),
            ("]", None),
            ("}", None),
        ] {
            assert_eq!(list_inside(text.as_bytes()).as_deref(), path, "{text}");
        }
    }

    proptest! {
        #[test]
        fn pieces_do_not_depend_on_how_the_bytes_arrive(
            bytes in vec(prop::sample::select(b"{}[]\"\\ \n1a,:".to_vec()), 0..60),
            start in prop::sample::select(vec!["", "[", "{\"a\":[", "{\"a\":"]),
            size in 1_usize..9,
        ) {
            let bytes = [start.as_bytes(), &bytes].concat();
            for path in [".", "a"] {
                prop_assert_eq!(pieces(path, &bytes, size), pieces(path, &bytes, 100));
            }
        }

        /// The model is serde_json.
        #[test]
        fn records_are_those_of_serde_json(
            lists in vec(vec((text(), prop::sample::select(vec!["", " ", "\r\n"])), 0..5), 1..4),
        ) {
            let mut bytes = String::new();
            for list in &lists {
                bytes.push_str("{\"x\":[0],\"a\":[");
                for (index, (text, space)) in list.iter().enumerate() {
                    let comma = if index > 0 { "," } else { "" };
                    bytes.extend([space, comma, space, text.trim(), space]);
                }
                bytes.push_str("]} ");
            }
            let found: Vec<Value> = records("a", &bytes)
                .into_iter()
                .map(|record| serde_json::from_slice(without_comma(record.as_bytes())).unwrap())
                .collect();
            let values = Deserializer::from_str(&bytes).into_iter::<Value>();
            let expected: Vec<Value> = values
                .flat_map(|value| value.unwrap()["a"].as_array().unwrap().clone())
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
