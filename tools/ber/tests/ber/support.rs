//! BER trees, an encoder of them with every choice that BER leaves, and the fields of a record as
//! bytes.

use std::ops::Range;

use echoless_ber::{Invalid, Location, Selector};
use proptest::collection::vec;
use proptest::prelude::*;

/// An element: class and number of its tag, and its content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tree {
    pub(crate) class: u8,
    pub(crate) number: u32,
    pub(crate) content: Content,
    /// How many length octets more than necessary.
    padding: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    Bytes(Vec<u8>),
    Trees { inside: Vec<Tree>, indefinite: bool },
}

/// How an element is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// With the lengths that the tree defines.
    Own,
    /// With definite lengths in the fewest octets.
    Canonical,
}

impl Tree {
    pub(crate) fn write(&self, form: Form, out: &mut Vec<u8>) {
        let constructed = matches!(self.content, Content::Trees { .. });
        let first = self.class << 6 | u8::from(constructed) << 5;
        if self.number < 31 {
            out.push(first | self.number as u8);
        } else {
            out.push(first | 31);
            let groups: Vec<u8> = (0..5)
                .map(|at| (self.number >> (7 * at) & 0x7f) as u8)
                .collect();
            let last = groups.iter().rposition(|group| *group != 0).unwrap_or(0);
            for (index, group) in groups[..=last].iter().enumerate().rev() {
                out.push(if index == 0 { *group } else { group | 0x80 });
            }
        }
        self.write_value(form, out);
    }

    /// Length and content.
    pub(crate) fn write_value(&self, form: Form, out: &mut Vec<u8>) {
        let mut content = Vec::new();
        let mut endless = false;
        match &self.content {
            Content::Bytes(bytes) => content.extend(bytes),
            Content::Trees { inside, indefinite } => {
                inside
                    .iter()
                    .for_each(|tree| tree.write(form, &mut content));
                endless = *indefinite && form == Form::Own;
            }
        }
        if endless {
            out.push(0x80);
            out.extend(content);
            out.extend([0, 0]);
            return;
        }
        let padding = if form == Form::Own { self.padding } else { 0 };
        let octets = content.len().to_be_bytes();
        let zeros = octets.iter().take_while(|octet| **octet == 0).count();
        if content.len() < 128 && padding == 0 {
            out.push(content.len() as u8);
        } else {
            let significant = &octets[zeros..];
            out.push(0x80 | (padding + significant.len()) as u8);
            out.extend(vec![0; padding]);
            out.extend(significant);
        }
        out.extend(content);
    }

    pub(crate) fn bytes(&self, form: Form) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(form, &mut out);
        out
    }

    pub(crate) fn inside(&self) -> &[Tree] {
        match &self.content {
            Content::Bytes(_) => &[],
            Content::Trees { inside, .. } => inside,
        }
    }

    /// The values on a path of tags, in order.
    pub(crate) fn on_path(&self, path: &[(u8, u32)]) -> Vec<&Tree> {
        match path {
            [] => vec![self],
            [(class, number), rest @ ..] => self
                .inside()
                .iter()
                .filter(|tree| (tree.class, tree.number) == (*class, *number))
                .flat_map(|tree| tree.on_path(rest))
                .collect(),
        }
    }
}

/// A few tags, so that they repeat, with one octet and with more.
pub(crate) fn tag() -> impl Strategy<Value = (u8, u32)> {
    prop::sample::select(vec![
        (2, 0),
        (2, 1),
        (2, 3),
        (0, 16),
        (2, 31),
        (2, 33),
        (2, 33 + 64),
        (1, 300),
        (3, 1),
    ])
}

/// The text of a tag in a path.
pub(crate) fn tag_text((class, number): (u8, u32), constructed: bool) -> String {
    let content = Content::Bytes(Vec::new());
    let tree = Tree {
        class,
        number,
        content,
        padding: 0,
    };
    let mut octets = tree.bytes(Form::Canonical);
    octets.pop();
    octets[0] |= u8::from(constructed) << 5;
    let digits: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
    format!("0x{digits}")
}

/// Trees of a few levels. The record itself is constructed, and no private tag begins it with 0xFF.
pub(crate) fn tree() -> impl Strategy<Value = Tree> {
    let padding = prop_oneof![5 => Just(0_usize), 1 => 1..3_usize];
    let bytes = prop_oneof![
        10 => vec(any::<u8>(), 0..6),
        1 => vec(any::<u8>(), 120..300),
    ];
    let leaf = (tag(), bytes, padding.clone()).prop_map(|((class, number), bytes, padding)| Tree {
        class,
        number,
        content: Content::Bytes(bytes),
        padding,
    });
    let inner = leaf.prop_recursive(4, 40, 6, move |inner| {
        let padding = padding.clone();
        (tag(), vec(inner, 0..6), any::<bool>(), padding).prop_map(
            |((class, number), inside, indefinite, padding)| Tree {
                class,
                number,
                content: Content::Trees { inside, indefinite },
                padding,
            },
        )
    });
    (0..80_u32, vec(inner, 0..8), any::<bool>()).prop_map(|(number, inside, indefinite)| Tree {
        class: 2,
        number,
        content: Content::Trees { inside, indefinite },
        padding: 0,
    })
}

/// Where the bytes of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bytes {
    Absent,
    Record(usize, usize),
    Scratch(usize, usize),
}

impl Location for Bytes {
    const ABSENT: Self = Self::Absent;

    fn in_record(range: Range<usize>) -> Self {
        Self::Record(range.start, range.end)
    }

    fn in_scratch(range: Range<usize>) -> Self {
        Self::Scratch(range.start, range.end)
    }

    fn is_absent(&self) -> bool {
        *self == Self::Absent
    }
}

/// The bytes of all fields; `None` of an absent one.
pub(crate) type Fields = Vec<Option<Vec<u8>>>;

/// The fields of a record, and the first required one that it lacks.
pub(crate) fn select(
    selector: &Selector,
    record: &[u8],
) -> Result<(Fields, Option<usize>), Invalid> {
    let mut scratch = Vec::new();
    let mut found = vec![Bytes::ABSENT; selector.fields()];
    let lacking = selector.select(record, &mut scratch, &mut found)?;
    let bytes = |place: &Bytes| match *place {
        Bytes::Absent => None,
        Bytes::Record(start, end) => Some(record[start..end].to_vec()),
        Bytes::Scratch(start, end) => Some(scratch[start..end].to_vec()),
    };
    Ok((found.iter().map(bytes).collect(), lacking))
}
