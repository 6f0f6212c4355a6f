//! Finds the values on the paths of the key in one pass over a JSON text, which it checks as a
//! whole.

use super::path::{Path, PathStep};
use super::scan::{DEEPEST, Invalid, Scan, Stop, unescape};
use crate::field_set::FieldBytes;

/// The steps of all paths from one value on, joined where the paths agree.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The fields whose value this is.
    fields: Vec<usize>,
    /// The fields whose values are this one or in it.
    below: Vec<usize>,
    members: Vec<(Vec<u8>, Node)>,
    /// One bit for the last byte of each name of a member, modulo 64: of an empty name for the
    /// quote before it.
    last_bytes: u64,
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
                    PathStep::Member(name) => {
                        node.last_bytes |= 1 << (name.last().unwrap_or(&b'"') % 64);
                        child(&mut node.members, name)
                    }
                    PathStep::Element(index) => child(&mut node.elements, index),
                };
                node.below.push(field);
            }
            node.fields.push(field);
        }
        root
    }

    /// Whether a path ends here.
    pub(super) fn ends_path(&self) -> bool {
        !self.fields.is_empty()
    }

    /// The node of the member with this name.
    pub(super) fn of_member(&self, name: &[u8]) -> Option<&Self> {
        let found = self.members.iter().find(|(wanted, _)| wanted == name);
        found.map(|(_, child)| child)
    }

    /// Whether the name of a member may end with this byte. Most names on no path end otherwise.
    #[inline(always)]
    fn may_end_with(&self, last: u8) -> bool {
        self.last_bytes >> (last % 64) & 1 == 1
    }

    /// The node of the element with this index.
    pub(super) fn of_element(&self, index: usize) -> Option<&Self> {
        let found = self.elements.iter().find(|(wanted, _)| *wanted == index);
        found.map(|(_, child)| child)
    }

    /// Clears the values that an earlier member with the same name had.
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

impl Scan<'_> {
    /// Checks that the text is one value, and stores where the values of the fields are. A field
    /// without value stays as it is. Fails if the text is not JSON, or nested more than [`DEEPEST`]
    /// deep.
    #[inline]
    pub(crate) fn find(mut self, root: &Node, found: &mut [FieldBytes]) -> Result<(), Invalid> {
        let start = self.space(0);
        let end = self.value(Some(root), start, DEEPEST, found);
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

    /// Scans the value at `at`, with the fields of `node` if it has any, and returns its end.
    /// `room` more containers may be open in it.
    #[inline(always)]
    fn value(
        &mut self,
        node: Option<&Node>,
        at: usize,
        room: u32,
        found: &mut [FieldBytes],
    ) -> Result<usize, Stop> {
        let first = self.peek(at);
        let end = match (first, node) {
            // The most common type first.
            (b'"', _) => self.string(at + 1)?,
            (b'{', Some(node)) if !node.members.is_empty() => self.object(node, at, room, found)?,
            (b'[', Some(node)) if !node.elements.is_empty() => self.array(node, at, room, found)?,
            (b'{' | b'[', _) => self.skip(at, room)?,
            _ => self.scalar(at, first)?,
        };
        if let Some(node) = node {
            for field in &node.fields {
                found[*field] = FieldBytes::Record { start: at, end };
            }
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
        at = self.name(at)?;
        loop {
            let name = at;
            self.escapes = false;
            let (end, value) = self.member(name)?;
            let child = if self.escapes {
                let mut unescaped = Vec::new();
                unescape(&self.bytes[name..end], &mut unescaped);
                node.of_member(&unescaped)
            } else if node.may_end_with(self.peek(end - 1)) {
                node.of_member(&self.bytes[name..end])
            } else {
                None
            };
            if let Some(child) = child {
                // The last of several members with one name counts.
                child.forget(found);
            }
            at = self.value(child, value, room, found)?;
            let more;
            (at, more) = self.next_member(at)?;
            if !more {
                return Ok(at);
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
            at = self.value(node.of_element(index), at, room, found)?;
            let more;
            (at, more) = self.next_element(at)?;
            if !more {
                break;
            }
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::json::path::parse_paths;
    use crate::json::tests::text;

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

    /// The value on a path, as serde_json understands the text.
    fn walk<'a>(value: &'a Value, steps: &[PathStep]) -> Option<&'a Value> {
        steps.iter().try_fold(value, |value, step| match step {
            PathStep::Member(name) => value.as_object()?.get(std::str::from_utf8(name).unwrap()),
            PathStep::Element(index) => value.as_array()?.get(*index),
        })
    }

    #[test]
    fn the_last_member_with_a_name_counts() {
        let text = r#"{"a":{"b":1},"\u0061":{"c":2}}"#;
        let found = [Some(text), None, Some("2")];
        assert_eq!(find(".,a.b,a.c", &format!(" {text} ")), found);
    }

    #[test]
    fn nesting_has_a_limit_on_and_off_the_paths() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let deepest = DEEPEST as usize;
        assert_eq!(find(".", &nested(deepest)).len(), 1);
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
    }
}
