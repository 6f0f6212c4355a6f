//! How records are read: what a record is, what its key, and which faults it may have.

use std::sync::Arc;

use crate::comments::CommentLines;
use crate::compared::Compared;
use crate::compression::codec::Detection;
use crate::fault::FaultPolicy;
use crate::field_list::FieldList;
use crate::format::SharedFormat;

/// Records, and the parts of them that are compared.
#[derive(Debug)]
pub struct RecordReading {
    /// The format of the records.
    pub format: SharedFormat,
    /// Whether compressed inputs are read as they are.
    pub as_they_are: bool,
    /// The length of the longest record allowed, in bytes, terminator included.
    pub(crate) max_record: usize,
    pub(crate) header: bool,
    /// Which lines are comments, if inputs may have any.
    pub(crate) comments: Option<Arc<CommentLines>>,
    /// Whether the first line of an input may announce them.
    pub(crate) announced_comments: bool,
    /// The fields to compare; `None` compares whole records.
    pub key: Option<FieldList>,
    /// The part of a key that is compared.
    pub(crate) compared: Compared,
    pub(crate) faults: FaultPolicy,
}

impl RecordReading {
    /// What inputs may be taken for by their first bytes.
    pub fn detection(&self) -> Detection {
        match (self.as_they_are, self.format.facts().is_text) {
            (true, _) => Detection::Off,
            (false, true) => Detection::Text,
            (false, false) => Detection::Binary,
        }
    }
}
