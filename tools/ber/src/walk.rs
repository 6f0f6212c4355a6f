//! One walk over a record that finds the values on many paths.
//!
//! The paths of a key are joined into a tree of tags. A walk reads the headers of the elements on
//! the levels that the tree enters, and skips all other values by their length.

use crate::canonical::{Element, read_element};
use crate::element::{MAX_DEPTH, Tag, short_element};
use crate::error::Invalid;
use crate::select::Location;

/// A level of elements, and what they are for.
#[derive(Debug, Clone, Default)]
pub(crate) struct TagNode {
    /// The [bits](Tag::bit) of the tags in `entries`: most elements are skipped by them.
    tags: u64,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    tag: Tag,
    /// The fields that are these values.
    fields: Vec<usize>,
    /// What is inside of them.
    inside: TagNode,
}

impl TagNode {
    /// The entry at the end of a path.
    pub(crate) fn add(&mut self, path: &[Tag], field: usize) {
        let Some((tag, rest)) = path.split_first() else {
            return;
        };
        self.tags |= tag.bit();
        let known = self.entries.iter().position(|entry| entry.tag == *tag);
        let at = known.unwrap_or_else(|| {
            self.entries.push(Entry {
                tag: *tag,
                fields: Vec::new(),
                inside: Self::default(),
            });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[at];
        if rest.is_empty() {
            entry.fields.push(field);
        } else {
            entry.inside.add(rest, field);
        }
    }

    #[inline(always)]
    fn entry(&self, tag: Tag) -> Option<&Entry> {
        if self.tags & tag.bit() == 0 {
            return None;
        }
        self.entries.iter().find(|entry| entry.tag == tag)
    }

    /// Passes the values of all fields in `bytes[at..]`, the content of a value inside of
    /// `depth - 1` others, to the visitor.
    pub(crate) fn walk<V: Visitor>(
        &self,
        bytes: &[u8],
        mut at: usize,
        depth: usize,
        visitor: &mut V,
    ) -> Result<(), Invalid> {
        while at < bytes.len() {
            // Most elements are short and no field: skip them on their first octets.
            if let Some((tag, end)) = short_element(&bytes[at..])
                && self.tags & tag.bit() == 0
                && end <= bytes.len() - at
            {
                at += end;
                continue;
            }
            let element = read_element(bytes, at, depth)?;
            if let Some(entry) = self.entry(element.header.tag) {
                for field in &entry.fields {
                    let element = &element;
                    visitor.visit(Found {
                        field: *field,
                        element,
                        bytes,
                        depth,
                    })?;
                }
                if !entry.inside.entries.is_empty() && element.header.constructed {
                    if depth == MAX_DEPTH {
                        return Err(Invalid::too_deep(at));
                    }
                    let inside = &bytes[..element.content_end];
                    entry
                        .inside
                        .walk(inside, element.header.content, depth + 1, visitor)?;
                }
            }
            at = element.end;
        }
        Ok(())
    }
}

/// A value of a field that a walk found.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    field: usize,
    element: &'a Element,
    /// The record up to the end of the value around it.
    bytes: &'a [u8],
    /// The values around it.
    depth: usize,
}

impl Found<'_> {
    #[inline]
    fn append_canonical(self, out: &mut Vec<u8>) -> Result<(), Invalid> {
        self.element.append_canonical(self.bytes, self.depth, out)
    }
}

/// Takes the values that a walk finds.
pub(crate) trait Visitor {
    fn visit(&mut self, found: Found<'_>) -> Result<(), Invalid>;
}

/// Takes the first value of each field, and notes which fields have more.
pub(crate) struct First<'a, P> {
    pub(crate) found: &'a mut [P],
    pub(crate) scratch: &'a mut Vec<u8>,
    pub(crate) content_only: u64,
    pub(crate) repeated: u64,
}

impl<P: Location> Visitor for First<'_, P> {
    #[inline]
    fn visit(&mut self, found: Found<'_>) -> Result<(), Invalid> {
        let Found { field, element, .. } = found;
        let bit = 1 << field;
        if !self.found[field].is_absent() {
            self.repeated |= bit;
            return Ok(());
        }
        self.found[field] = if self.content_only & bit != 0 {
            P::in_record(element.header.content..element.content_end)
        } else if element.is_canonical(found.bytes, found.depth)? {
            P::in_record(element.header.length_at..element.content_end)
        } else {
            let start = self.scratch.len();
            found.append_canonical(self.scratch)?;
            P::in_scratch(start..self.scratch.len())
        };
        Ok(())
    }
}

/// Collects all values of one field.
pub(crate) struct All<'a> {
    pub(crate) field: usize,
    pub(crate) scratch: &'a mut Vec<u8>,
}

impl Visitor for All<'_> {
    fn visit(&mut self, found: Found<'_>) -> Result<(), Invalid> {
        if found.field == self.field {
            found.append_canonical(self.scratch)?;
        }
        Ok(())
    }
}
