//! How records are read: what a record is, what its key, and which faults it may have.

use std::sync::Arc;

use super::comments::CommentLines;
use super::compared::Compared;
use super::fault::FaultPolicy;
use super::field_list::FieldList;
use super::format::SharedFormat;
use crate::compression::codec::Detection;

/// Records, and the parts of them that are compared.
#[derive(Debug)]
pub(crate) struct RecordReading {
    pub(crate) format: SharedFormat,
    /// Whether compressed inputs are read as they are.
    pub(crate) as_they_are: bool,
    /// The length of the longest record allowed, in bytes, terminator included.
    pub(crate) max_record: usize,
    pub(crate) header: bool,
    /// Which lines are comments, if inputs may have any.
    pub(crate) comments: Option<Arc<CommentLines>>,
    /// Whether the first line of an input may announce them.
    pub(crate) announced_comments: bool,
    /// The fields to compare; `None` compares whole records.
    pub(crate) key: Option<FieldList>,
    /// The part of a key that is compared.
    pub(crate) compared: Compared,
    pub(crate) faults: FaultPolicy,
}

impl RecordReading {
    /// What inputs may be taken for by their first bytes.
    pub(crate) fn detection(&self) -> Detection {
        match (self.as_they_are, self.format.facts().is_text) {
            (true, _) => Detection::Off,
            (false, true) => Detection::Text,
            (false, false) => Detection::Binary,
        }
    }
}
