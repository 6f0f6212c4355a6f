//! What a run of `echoless dedup` shall do: every value checked, every default filled in.

use super::detector::FilterChoice;
use super::fields::FieldList;
use super::keys::Missing;
use super::records::Framing;
use crate::files::{Source, Target};

/// A run of `echoless dedup`.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) sources: Vec<Source>,
    pub(crate) framing: Framing,
    /// The longest record, terminator included.
    pub(crate) max_record: usize,
    pub(crate) header: bool,
    /// The fields to compare; `None` compares whole records.
    pub(crate) key: Option<FieldList>,
    pub(crate) delimiter: u8,
    pub(crate) missing: Missing,
    pub(crate) filter: FilterChoice,
    pub(crate) output: Target,
    pub(crate) duplicates: Option<Target>,
    pub(crate) stats: Option<Target>,
    pub(crate) invert: bool,
    pub(crate) count: bool,
    pub(crate) fail_on_duplicates: bool,
    pub(crate) quiet: bool,
}
