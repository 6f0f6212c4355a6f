//! One pass over a JSON text: checks its syntax and finds the values on the paths of the key.
//!
//! Values off the paths are skipped without recursion: containers that are open are one bit each of
//! an integer, which is enough for the deepest nesting allowed. Strings are searched 16 bytes at a
//! time.

use wide::u8x16;

use super::path::{Path, Step};
use super::value::unescape;
use crate::records::split::FieldBytes;

/// The number of containers that may be open at once: the bits of the stack.
pub(crate) const DEEPEST: u32 = 128;

/// The number of bytes of a string compared at once.
const BLOCK: usize = 16;

/// What is wrong with a text that is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Invalid {
    /// The offset of the byte that cannot be there, from 0.
    pub(crate) at: usize,
    pub(crate) problem: &'static str,
}

/// The scan ended at an error, which [`Scan::invalid`] describes. Results with it fit in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stop;

/// The steps of all paths from one value on, joined where the paths agree.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The fields whose value this is.
    fields: Vec<usize>,
    /// The fields whose values are this one or in it.
    below: Vec<usize>,
    members: Vec<(Vec<u8>, Node)>,
    elements: Vec<(usize, Node)>,
}

impl Node {
    /// Joins paths; field number `i` is the value on path number `i`.
    pub(crate) fn join<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut root = Self::default();
        for (field, path) in paths.into_iter().enumerate() {
            let mut node = &mut root;
            node.below.push(field);
            for step in &path.steps {
                node = match step {
                    Step::Member(name) => child(&mut node.members, name),
                    Step::Element(index) => child(&mut node.elements, index),
                };
                node.below.push(field);
            }
            node.fields.push(field);
        }
        root
    }

    /// Forgets the values that an earlier member with the same name had.
    fn forget(&self, found: &mut [FieldBytes]) {
        for field in &self.below {
            found[*field] = FieldBytes::Absent;
        }
    }
}

fn child<'a, K: Clone + PartialEq>(children: &'a mut Vec<(K, Node)>, step: &K) -> &'a mut Node {
    let at = children.iter().position(|(other, _)| other == step);
    let at = at.unwrap_or_else(|| {
        children.push((step.clone(), Node::default()));
        children.len() - 1
    });
    &mut children[at].1
}

/// A scan of one text.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    bytes: &'a [u8],
    invalid: Option<Invalid>,
    /// Whether the strings since this was last cleared have escapes.
    escapes: bool,
    /// Whether bytes around strings are not ASCII: only then the text can be invalid UTF-8.
    beyond_ascii: bool,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            invalid: None,
            escapes: false,
            beyond_ascii: false,
        }
    }

    /// Checks that the text is one value, and stores where the values of the fields are. A field
    /// without value stays as it is.
    ///
    /// # Errors
    /// [`Invalid`] if the text is not JSON, or nested more than [`DEEPEST`] deep.
    #[inline]
    pub(crate) fn find(mut self, root: &Node, found: &mut [FieldBytes]) -> Result<(), Invalid> {
        let start = self.space(0);
        let end = self.value(root, start, DEEPEST, found);
        match end.map(|end| self.space(end)) {
            Ok(end) if end == self.bytes.len() => self.check_utf8(),
            Ok(end) => Err(Invalid {
                at: end,
                problem: "expected the end of the record after its value",
            }),
            Err(Stop) => Err(self.invalid.unwrap_or(Invalid {
                at: start,
                problem: "expected a value",
            })),
        }
    }

    /// Checks the encoding of a text whose syntax is valid.
    #[inline]
    fn check_utf8(&self) -> Result<(), Invalid> {
        if !self.beyond_ascii {
            return Ok(());
        }
        match std::str::from_utf8(self.bytes) {
            Ok(_) => Ok(()),
            Err(error) => Err(Invalid {
                at: error.valid_up_to(),
                problem: "invalid UTF-8",
            }),
        }
    }

    /// Scans the value at `at`, with the fields of `node`, and returns its end. `room` more
    /// containers may be open in it.
    fn value(
        &mut self,
        node: &Node,
        at: usize,
        room: u32,
        found: &mut [FieldBytes],
    ) -> Result<usize, Stop> {
        let end = match self.peek(at) {
            b'{' if !node.members.is_empty() => self.object(node, at, room, found)?,
            b'[' if !node.elements.is_empty() => self.array(node, at, room, found)?,
            _ => self.skip(at, room)?,
        };
        for field in &node.fields {
            found[*field] = FieldBytes::Record { start: at, end };
        }
        Ok(end)
    }

    fn object(
        &mut self,
        node: &Node,
        at: usize,
        room: u32,
        found: &mut [FieldBytes],
    ) -> Result<usize, Stop> {
        let room = self.enter(at, room)?;
        let mut at = self.space(at + 1);
        if self.peek(at) == b'}' {
            return Ok(at + 1);
        }
        loop {
            self.escapes = false;
            let start = at + 1;
            let end = self.name(at)?;
            let child = if self.escapes {
                let mut name = Vec::new();
                unescape(&self.bytes[start..end - 1], &mut name);
                member(node, &name)
            } else {
                member(node, &self.bytes[start..end - 1])
            };
            at = self.colon(end)?;
            at = match child {
                // Most members are scalars off the paths.
                None => match self.peek(at) {
                    b'"' => self.string(at + 1)?,
                    b'-' | b'0'..=b'9' => self.number(at)?,
                    _ => self.skip(at, room)?,
                },
                Some(child) => {
                    // The last of several members with one name counts.
                    child.forget(found);
                    self.value(child, at, room, found)?
                }
            };
            at = self.space(at);
            match self.peek(at) {
                b',' => at = self.space(at + 1),
                b'}' => return Ok(at + 1),
                _ => return self.fail(at, "expected `,` or `}`"),
            }
        }
    }

    fn array(
        &mut self,
        node: &Node,
        at: usize,
        room: u32,
        found: &mut [FieldBytes],
    ) -> Result<usize, Stop> {
        let room = self.enter(at, room)?;
        let mut at = self.space(at + 1);
        if self.peek(at) == b']' {
            return Ok(at + 1);
        }
        for index in 0.. {
            let child = node.elements.iter().find(|(wanted, _)| *wanted == index);
            at = match child {
                None => self.skip(at, room)?,
                Some((_, child)) => self.value(child, at, room, found)?,
            };
            at = self.space(at);
            match self.peek(at) {
                b',' => at = self.space(at + 1),
                b']' => break,
                _ => return self.fail(at, "expected `,` or `]`"),
            }
        }
        Ok(at + 1)
    }

    fn enter(&mut self, at: usize, room: u32) -> Result<u32, Stop> {
        match room.checked_sub(1) {
            Some(room) => Ok(room),
            None => self.fail(at, "more than 128 arrays and objects in each other"),
        }
    }

    /// Scans a value without fields.
    ///
    /// ```text
    /// text     [ { "a" : [ 1 ,
    /// objects  1 bit for each open container, the innermost in bit 0: 0 1 0
    /// ```
    pub(super) fn skip(&mut self, start: usize, room: u32) -> Result<usize, Stop> {
        let mut at = start;
        let mut objects = 0_u128;
        let mut open = 0;
        'value: loop {
            match self.peek(at) {
                b'"' => at = self.string(at + 1)?,
                b'-' | b'0'..=b'9' => at = self.number(at)?,
                bracket @ (b'{' | b'[') => {
                    self.enter(at, room - open)?;
                    let is_object = bracket == b'{';
                    at = self.space(at + 1);
                    if self.peek(at) == if is_object { b'}' } else { b']' } {
                        at += 1;
                    } else {
                        open += 1;
                        objects = objects << 1 | u128::from(is_object);
                        if is_object {
                            at = self.name(at)?;
                            at = self.colon(at)?;
                        }
                        continue 'value;
                    }
                }
                b't' => at = self.literal(at, b"true")?,
                b'f' => at = self.literal(at, b"false")?,
                b'n' => at = self.literal(at, b"null")?,
                _ => return self.fail(at, "expected a value"),
            }
            loop {
                if open == 0 {
                    return Ok(at);
                }
                at = self.space(at);
                let in_object = objects & 1 == 1;
                match self.peek(at) {
                    b',' => {
                        at = self.space(at + 1);
                        if in_object {
                            at = self.name(at)?;
                            at = self.colon(at)?;
                        }
                        continue 'value;
                    }
                    b'}' if in_object => {}
                    b']' if !in_object => {}
                    _ if in_object => return self.fail(at, "expected `,` or `}`"),
                    _ => return self.fail(at, "expected `,` or `]`"),
                }
                at += 1;
                open -= 1;
                objects >>= 1;
            }
        }
    }

    /// The end of the name of a member, which begins at `at`.
    #[inline(always)]
    pub(super) fn name(&mut self, at: usize) -> Result<usize, Stop> {
        if self.peek(at) != b'"' {
            return self.fail(at, "expected the name of a member in double quotes");
        }
        self.string(at + 1)
    }

    /// The start of the value after a name that ends at `at`.
    #[inline(always)]
    pub(super) fn colon(&mut self, at: usize) -> Result<usize, Stop> {
        let at = self.space(at);
        if self.peek(at) != b':' {
            return self.fail(at, "expected `:`");
        }
        Ok(self.space(at + 1))
    }

    /// The end of a string whose first byte after the quote is at `start`.
    #[inline(always)]
    pub(crate) fn string(&mut self, start: usize) -> Result<usize, Stop> {
        let mut at = start;
        loop {
            at = self.special(at);
            match self.peek(at) {
                b'"' => return Ok(at + 1),
                b'\\' => at = self.escape(at)?,
                _ if at == self.bytes.len() => return self.fail(at, "the string does not end"),
                _ => return self.fail(at, "control character in a string"),
            }
        }
    }

    /// The first quote, backslash or control character from `at` on, or the end of the text.
    #[inline(always)]
    fn special(&mut self, mut at: usize) -> usize {
        let len = self.bytes.len();
        while let Some(block) = self.bytes[at..].first_chunk::<BLOCK>() {
            let (found, beyond_ascii) = specials(block);
            self.beyond_ascii |= beyond_ascii;
            if found != 0 {
                return at + found.trailing_zeros() as usize;
            }
            at += BLOCK;
        }
        // The last block of the text, without the bytes before `at`.
        match self.bytes.last_chunk::<BLOCK>() {
            Some(block) => {
                let seen = BLOCK - (len - at);
                let (found, beyond_ascii) = specials(block);
                self.beyond_ascii |= beyond_ascii;
                let found = found >> seen;
                at + (found.trailing_zeros() as usize).min(len - at)
            }
            None => {
                self.beyond_ascii |= !self.bytes.is_ascii();
                let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
                let found = self.bytes[at..].iter().position(is_special);
                found.map_or(len, |offset| at + offset)
            }
        }
    }

    /// The end of the escape sequence at `at`.
    #[cold]
    fn escape(&mut self, at: usize) -> Result<usize, Stop> {
        self.escapes = true;
        match self.peek(at + 1) {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(at + 2),
            b'u' => {
                let digits = self.bytes.get(at + 2..at + 6);
                if digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    Ok(at + 6)
                } else {
                    self.fail(at, "expected four hexadecimal digits after `\\u`")
                }
            }
            _ => self.fail(at, "no escape sequence begins like this"),
        }
    }

    /// The end of the number at `at`.
    #[inline]
    pub(super) fn number(&mut self, at: usize) -> Result<usize, Stop> {
        let start = at + usize::from(self.peek(at) == b'-');
        let mut at = self.digits(start)?;
        if self.peek(start) == b'0' && at > start + 1 {
            return self.fail(start, "a number with a leading zero");
        }
        if self.peek(at) == b'.' {
            at = self.digits(at + 1)?;
        }
        if matches!(self.peek(at), b'e' | b'E') {
            at += 1;
            at = self.digits(at + usize::from(matches!(self.peek(at), b'+' | b'-')))?;
        }
        Ok(at)
    }

    /// The end of one or more digits.
    #[inline(always)]
    fn digits(&mut self, start: usize) -> Result<usize, Stop> {
        let mut at = start;
        while self.peek(at).is_ascii_digit() {
            at += 1;
        }
        if at == start {
            return self.fail(at, "expected a digit");
        }
        Ok(at)
    }

    #[inline]
    fn literal(&mut self, at: usize, literal: &[u8]) -> Result<usize, Stop> {
        if self.bytes[at..].starts_with(literal) {
            Ok(at + literal.len())
        } else {
            self.fail(at, "expected a value")
        }
    }

    /// The first byte from `at` on that is not white space.
    #[inline(always)]
    pub(super) fn space(&self, mut at: usize) -> usize {
        // One comparison where there is none, as in most texts.
        if self.peek(at) > b' ' {
            return at;
        }
        while matches!(self.peek(at), b' ' | b'\t' | b'\n' | b'\r') {
            at += 1;
        }
        at
    }

    /// The byte at `at`; after the end NUL, which no token begins with.
    #[inline(always)]
    pub(super) fn peek(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    #[cold]
    fn fail<T>(&mut self, at: usize, problem: &'static str) -> Result<T, Stop> {
        self.invalid = Some(Invalid { at, problem });
        Err(Stop)
    }
}

/// The node of the member with this name.
#[inline(always)]
fn member<'a>(node: &'a Node, name: &[u8]) -> Option<&'a Node> {
    // Most names differ in length or in the last byte, which spares a call to compare them.
    let is_name = |(wanted, _): &&(Vec<u8>, Node)| {
        wanted.len() == name.len() && wanted.last() == name.last() && wanted == name
    };
    let found = node.members.iter().find(is_name);
    found.map(|(_, child)| child)
}

/// One bit for each byte that does not stand for itself in a string: quotes, backslashes, control
/// characters. And whether any byte is not ASCII.
#[inline(always)]
fn specials(block: &[u8; BLOCK]) -> (u32, bool) {
    let block = u8x16::new(*block);
    let control = block.min(u8x16::splat(0x1f)).simd_eq(block);
    let quote = block.simd_eq(u8x16::splat(b'"'));
    let backslash = block.simd_eq(u8x16::splat(b'\\'));
    let found = (control | quote | backslash).to_bitmask() & 0xffff;
    // The mask of a vector is made of the highest bits of its bytes.
    (found, block.to_bitmask() & 0xffff != 0)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde::de::IgnoredAny;
    use serde_json::Value;

    use super::*;
    use crate::records::json::path::parse_paths;

    fn check(text: &[u8]) -> Result<(), Invalid> {
        Scan::new(text).find(&Node::default(), &mut [])
    }

    /// The text of the value on each path.
    fn find<'a>(paths: &str, text: &'a str) -> Vec<Option<&'a str>> {
        let paths = parse_paths("--key", paths).unwrap();
        let mut found = vec![FieldBytes::Absent; paths.len()];
        let scan = Scan::new(text.as_bytes());
        scan.find(&Node::join(&paths), &mut found).unwrap();
        let value = |field: &FieldBytes| match *field {
            FieldBytes::Record { start, end } => Some(&text[start..end]),
            FieldBytes::Absent => None,
            FieldBytes::Scratch { .. } => panic!("a scan copies nothing"),
        };
        found.iter().map(value).collect()
    }

    /// JSON with few names and values, so that paths and whole texts are often equal.
    pub(crate) fn text() -> impl Strategy<Value = String> {
        let scalar = prop::sample::select(vec![
            "0",
            "-0",
            "0.0",
            "1",
            "1.0",
            "1e0",
            "10e-1",
            "10",
            "1e1",
            "-2.5",
            "-25e-1",
            "true",
            "false",
            "null",
            "\"\"",
            "\"a\"",
            "\"\\u0061\"",
            "\"1\"",
            "\"longer than one block\"",
            "\"longer than one \\u0062lock\"",
            "\"é\"",
            "\"\\u00e9\"",
        ]);
        let space = || prop::sample::select(vec!["", "", "", " ", "\t", " \r\n "]);
        let name = prop::sample::select(vec!["a", "b", "\\u0061", "a.b", "", "é"]);
        scalar
            .prop_map(str::to_owned)
            .prop_recursive(4, 24, 4, move |inner| {
                let joined = |items: Vec<String>, (open, close), space: &str| {
                    format!(
                        "{space}{open}{space}{}{space}{close}{space}",
                        items.join(",")
                    )
                };
                let member =
                    (name.clone(), space(), inner.clone()).prop_map(|(name, space, value)| {
                        format!("{space}\"{name}\"{space}:{space}{value}")
                    });
                prop_oneof![
                    (vec(inner, 0..4), space()).prop_map(move |(items, space)| joined(
                        items,
                        ('[', ']'),
                        space
                    )),
                    (vec(member, 0..4), space()).prop_map(move |(items, space)| joined(
                        items,
                        ('{', '}'),
                        space
                    )),
                ]
            })
    }

    /// The value on a path, as serde_json understands the text.
    fn walk<'a>(value: &'a Value, steps: &[Step]) -> Option<&'a Value> {
        steps.iter().try_fold(value, |value, step| match step {
            Step::Member(name) => value.as_object()?.get(std::str::from_utf8(name).unwrap()),
            Step::Element(index) => value.as_array()?.get(*index),
        })
    }

    #[test]
    fn values_on_paths() {
        let text = r#"{"id": 7, "user": {"name": "x", "tags": ["p", "q", {"z": [1]}]}, "n": null}"#;
        assert_eq!(find("id", text), [Some("7")]);
        assert_eq!(find("user.tags[1],n", text), [Some("null"), Some("\"q\"")]);
        assert_eq!(find("user.tags[2].z[0]", text), [Some("1")]);
        assert_eq!(find("user.tags[3],x,id.y,n[0],user[0]", text), [None; 5]);
        assert_eq!(find(".,user.name", text), [Some(text), Some("\"x\"")]);
        assert_eq!(
            find("user,user.name", r#" {"user":{"name":1}} "#),
            [Some(r#"{"name":1}"#), Some("1")]
        );
    }

    #[test]
    fn the_last_member_with_a_name_counts() {
        assert_eq!(find("a", r#"{"a":1,"a":2}"#), [Some("2")]);
        assert_eq!(find("a", r#"{"a":1,"\u0061":2}"#), [Some("2")]);
        assert_eq!(
            find("a.b,a.c", r#"{"a":{"b":1},"a":{"c":2}}"#),
            [None, Some("2")]
        );
        assert_eq!(find("a.b", r#"{"a":{"b":1},"a":3}"#), [None]);
    }

    #[test]
    fn what_is_wrong_and_where() {
        for (text, at, problem) in [
            ("", 0, "expected a value"),
            ("  ", 2, "expected a value"),
            ("{\"a\":1", 6, "expected `,` or `}`"),
            ("[1 2]", 3, "expected `,` or `]`"),
            ("[1,]", 3, "expected a value"),
            ("{\"a\":1,}", 7, "name of a member"),
            ("{a:1}", 1, "name of a member"),
            ("{\"a\" 1}", 5, "expected `:`"),
            ("[1}", 2, "expected `,` or `]`"),
            ("01", 0, "leading zero"),
            ("1.", 2, "expected a digit"),
            ("-", 1, "expected a digit"),
            ("1e+", 3, "expected a digit"),
            ("truth", 0, "expected a value"),
            ("1 1", 2, "end of the record"),
            ("\"ab", 3, "does not end"),
            ("\"a\tb\"", 2, "control character"),
            ("\"\\x\"", 1, "escape sequence"),
            ("\"\\u12g4\"", 1, "four hexadecimal digits"),
            ("NaN", 0, "expected a value"),
            ("'a'", 0, "expected a value"),
        ] {
            let invalid = check(text.as_bytes()).unwrap_err();
            assert_eq!(invalid.at, at, "{text}: {}", invalid.problem);
            assert!(
                invalid.problem.contains(problem),
                "{text}: {}",
                invalid.problem
            );
        }
        let invalid = check(b"\"ab\xff\"").unwrap_err();
        assert_eq!((invalid.at, invalid.problem), (3, "invalid UTF-8"));
    }

    #[test]
    fn nesting_has_a_limit_on_and_off_the_paths() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let deepest = DEEPEST as usize;
        assert_eq!(check(nested(deepest).as_bytes()), Ok(()));
        assert!(check(nested(deepest + 1).as_bytes()).is_err());
        let within = |depth| format!("{{\"a\":{{\"b\":{}}}}}", nested(depth));
        assert!(find("a.b[0]", &within(deepest - 2))[0].is_some());
        let paths = parse_paths("--key", "a.b[0]").unwrap();
        let text = within(deepest - 1);
        let found = &mut [FieldBytes::Absent];
        let scan = Scan::new(text.as_bytes());
        assert!(scan.find(&Node::join(&paths), found).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn values_on_paths_equal_those_of_serde_json(text in text()) {
            let paths = parse_paths("--key", r#"a,b,a.b,"a.b",a[0],[1],[1].a,"",a.a,é,[0][0]"#).unwrap();
            let mut found = vec![FieldBytes::Absent; paths.len()];
            let scan = Scan::new(text.as_bytes());
            prop_assert_eq!(scan.find(&Node::join(&paths), &mut found), Ok(()));
            let whole: Value = serde_json::from_str(&text).unwrap();
            for (path, field) in paths.iter().zip(found) {
                let found: Option<Value> = match field {
                    FieldBytes::Record { start, end } => {
                        Some(serde_json::from_str(&text[start..end]).unwrap())
                    }
                    FieldBytes::Scratch { .. } | FieldBytes::Absent => None,
                };
                prop_assert_eq!(found.as_ref(), walk(&whole, &path.steps), "{}", path.text);
            }
        }

        /// Texts with a byte changed, removed or added are JSON for both or for neither.
        #[test]
        fn serde_json_accepts_the_same_texts(
            text in text(),
            at in any::<prop::sample::Index>(),
            byte in prop::sample::select(b"{}[]\",:\\u0019-+.eEtfn \n\x01\x7f\xc3\xa9".to_vec()),
            change in 0..3,
        ) {
            let mut bytes = text.into_bytes();
            let at = at.index(bytes.len());
            match change {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at),
            }
            let expected = std::str::from_utf8(&bytes).is_ok()
                && serde_json::from_slice::<IgnoredAny>(&bytes).is_ok();
            let paths = parse_paths("--key", "a.b,[1].a,a[0]").unwrap();
            for root in [Node::default(), Node::join(&paths)] {
                let mut found = [FieldBytes::Absent; 3];
                let accepted = Scan::new(&bytes).find(&root, &mut found).is_ok();
                prop_assert_eq!(accepted, expected, "{}", bytes.escape_ascii());
            }
        }

        #[test]
        fn any_bytes_are_scanned(bytes in vec(any::<u8>(), 0..80)) {
            let expected = std::str::from_utf8(&bytes).is_ok()
                && serde_json::from_slice::<IgnoredAny>(&bytes).is_ok();
            prop_assert_eq!(check(&bytes).is_ok(), expected);
        }

        #[test]
        fn specials_are_found_at_any_offset(
            bytes in vec(prop::sample::select(b"aaaaaaaaaaa\"\\\x1f\x20\x7f\x80\xff".to_vec()), 0..60),
            from in any::<prop::sample::Index>(),
        ) {
            let from = from.index(bytes.len() + 1);
            let is_special = |byte: &u8| *byte == b'"' || *byte == b'\\' || *byte < b' ';
            let expected = bytes[from..].iter().position(is_special);
            let expected = expected.map_or(bytes.len(), |offset| from + offset);
            prop_assert_eq!(Scan::new(&bytes).special(from), expected);
        }
    }
}
