//! Verdicts inside records: a last field, or a member of an object.

use std::sync::Arc;

use echoless::SpecError;

use super::chunk::Chunk;
use super::fault::{Fault, Problem};
use super::field_set::FieldBytes;
use super::format::{Format, TagStyle};
use super::json::find::Node;
use super::json::path::Path;
use super::json::scan::Scan;

/// Why an object has no room for a tag: unlike other records without room, it would seem to have
/// one.
const HAS_MEMBER: &str =
    "the object has a member with the name of --tag (--tag=NAME takes another)";

/// What `--tag` writes about a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// The key is new.
    Fresh,
    /// The key was seen before.
    Duplicate,
    /// The record lacks its key and passed without a verdict.
    Unjudged,
    /// A line that is no record.
    Comment,
}

impl Tag {
    /// The word in the output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Duplicate => "duplicate",
            Self::Unjudged => "unjudged",
            Self::Comment => "comment",
        }
    }

    /// The tags of the records of a chunk with verdicts that are not rejected, with their indices.
    pub fn all(chunk: &Chunk) -> impl Iterator<Item = (usize, Self)> {
        let duplicates = chunk.duplicates();
        let mut unkeyed = chunk.unkeyed.all.iter().copied().peekable();
        let mut comments = chunk.unkeyed.comments.iter().copied().peekable();
        let mut rejected = chunk.unkeyed.rejected_records().peekable();
        let mut frame = chunk.unkeyed.frame.iter().copied().peekable();
        (0..chunk.records()).filter_map(move |record| {
            let lacks_key = unkeyed.next_if_eq(&record).is_some();
            if frame.next_if_eq(&record).is_some() {
                return None;
            }
            let is_comment = comments.next_if_eq(&record).is_some();
            if rejected.next_if_eq(&record).is_some() {
                return None;
            }
            let tag = if is_comment {
                Self::Comment
            } else if lacks_key {
                Self::Unjudged
            } else if duplicates[record / 64] >> (record % 64) & 1 == 1 {
                Self::Duplicate
            } else {
                Self::Fresh
            };
            Some((record, tag))
        })
    }
}

/// Writes records with their tags.
#[derive(Debug)]
pub struct Tagger {
    format: Arc<dyn Format>,
    style: TagStyle,
    /// The name of the field or member.
    name: String,
    /// The member of that name, for a search.
    member: Node,
    rejects: bool,
}

impl Tagger {
    /// A tagger of records of this format. With `rejects`, records without room for a tag are set
    /// aside.
    pub fn new(format: Arc<dyn Format>, style: TagStyle, name: String, rejects: bool) -> Self {
        Self {
            format,
            style,
            member: Node::join([&Path::member(&name)]),
            name,
            rejects,
        }
    }

    /// Takes the records out of a chunk that have no room for a tag, or ends it before the first
    /// one. Without `rejects`, those that pass without a verdict need no room.
    pub(crate) fn check(&self, chunk: &mut Chunk) {
        if self.style != TagStyle::Member {
            return;
        }
        let mut rejected = chunk.unkeyed.rejected_records().peekable();
        let records = (0..chunk.records()).filter(move |at| rejected.next_if_eq(at).is_none());
        let fault = |record: usize| {
            let problem = self.check_member(self.content(chunk, record)).err()?;
            let unjudged = chunk.unkeyed.all.binary_search(&record).is_ok();
            let is_blank = || self.format.facts().is_blank(self.content(chunk, record));
            if unjudged && (chunk.unkeyed.is_comment(record) || is_blank()) {
                return None;
            }
            let passes = unjudged && !self.rejects && problem != Problem::NoRoomForTag(HAS_MEMBER);
            (!passes).then_some(Fault { record, problem })
        };
        let faults: Vec<Fault> = records.filter_map(fault).collect();
        if self.rejects {
            chunk.reject_records(&faults);
        } else if let Some(first) = faults.first() {
            chunk.end_at(*first);
        }
    }

    /// Checks that a record is an object without a member of the tag's name.
    fn check_member(&self, content: &[u8]) -> Result<(), Problem> {
        let mut found = [FieldBytes::Absent];
        let scanned = Scan::new(content).find(&self.member, &mut found);
        scanned.map_err(Problem::Json)?;
        if !content.trim_ascii_start().starts_with(b"{") {
            return Err(Problem::NoRoomForTag(
                "the value is no object, so it has no room for the member of --tag",
            ));
        }
        match found {
            [FieldBytes::Absent] => Ok(()),
            _ => Err(Problem::NoRoomForTag(HAS_MEMBER)),
        }
    }

    /// Checks that no field of a header has the name of the tag. Later commands could not tell them
    /// apart.
    pub(crate) fn check_header(&self, names: &[Vec<u8>]) -> Result<(), SpecError> {
        if names.iter().any(|name| name == self.name.as_bytes()) {
            let allowed = "--tag=NAME with a name that no field of the header has";
            return Err(SpecError::new("--tag", self.name.as_str(), allowed));
        }
        Ok(())
    }

    /// The header with the name of the tag, if the records are fields behind a header.
    pub fn header(&self, header: &[u8]) -> Vec<u8> {
        let mut tagged = Vec::new();
        self.append(header, &self.name, &mut tagged);
        tagged
    }

    /// Appends the records of a chunk with their tags to `tagged`, and the length of each to
    /// `lengths`.
    pub fn tag(&self, chunk: &Chunk, tagged: &mut Vec<u8>, lengths: &mut Vec<u64>) {
        for (record, tag) in Tag::all(chunk) {
            let before = tagged.len();
            let bytes = chunk.bytes_of(record..record + 1);
            match tag {
                Tag::Comment => self.append_comment(chunk, record, tagged),
                Tag::Unjudged if !self.has_room(self.content(chunk, record)) => {
                    tagged.extend_from_slice(bytes);
                }
                Tag::Unjudged | Tag::Fresh | Tag::Duplicate => {
                    self.append(bytes, tag.name(), tagged);
                }
            }
            lengths.push((tagged.len() - before) as u64);
        }
    }

    /// Appends a comment line. One with the names of the fields gets that of the tag.
    fn append_comment(&self, chunk: &Chunk, record: usize, tagged: &mut Vec<u8>) {
        let bytes = chunk.bytes_of(record..record + 1);
        let content = self.format.content(bytes);
        tagged.extend_from_slice(content);
        if let (Some(announced), TagStyle::Field(delimiter)) = (chunk.input.announced, &self.style)
        {
            let named = announced.tag(self.content(chunk, record), delimiter, &self.name);
            tagged.extend(named.into_iter().flatten());
        }
        tagged.extend_from_slice(&bytes[content.len()..]);
    }

    /// Whether a record without a verdict gets a tag all the same.
    fn has_room(&self, content: &[u8]) -> bool {
        match self.style {
            // A blank line among lines with fields: with a tag it would have fields, too few.
            TagStyle::Field(_) => !self.format.facts().is_blank(content),
            TagStyle::Member => self.check_member(content).is_ok(),
        }
    }

    /// The content of a record.
    fn content<'a>(&self, chunk: &'a Chunk, record: usize) -> &'a [u8] {
        self.format.content(chunk.bytes_of(record..record + 1))
    }

    fn append(&self, record: &[u8], tag: &str, tagged: &mut Vec<u8>) {
        let content = self.format.content(record);
        let terminator = &record[content.len()..];
        match &self.style {
            TagStyle::Field(delimiter) => {
                tagged.extend_from_slice(content);
                tagged.extend_from_slice(delimiter);
                tagged.extend_from_slice(tag.as_bytes());
            }
            TagStyle::Member => {
                // `check` has verified that the record is an object.
                let object = content.trim_ascii_end();
                let open = object.strip_suffix(b"}").unwrap_or(object);
                tagged.extend_from_slice(open);
                if !open.trim_ascii_end().ends_with(b"{") {
                    tagged.push(b',');
                }
                for piece in ["\"", &self.name, "\":\"", tag, "\""] {
                    tagged.extend_from_slice(piece.as_bytes());
                }
                tagged.extend_from_slice(&content[open.len()..]);
            }
        }
        tagged.extend_from_slice(terminator);
    }
}
