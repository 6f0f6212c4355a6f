//! What can be wrong with a record, and the policy that decides what happens to it.

use clap::ValueEnum;

use super::excerpt::Excerpt;
use super::field_set::MissingField;
use super::json::scan::Invalid;
use crate::time::recurring::Unplaced;

/// A record that ends the run or is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) record: usize,
    pub(crate) problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    Lacks(MissingField),
    /// The record lacks the field of its time.
    LacksTime(MissingField),
    /// The field of the time, numbered from 0, holds none that can be read; nor does it together
    /// with as many others as are joined to it.
    NoTime {
        field: usize,
        joined: usize,
        /// Whether it is a time, of a year that is not represented.
        out_of_range: bool,
        value: Excerpt,
    },
    /// The field of the time holds a date without a year, or a time of day, that has no time where
    /// the record is.
    Unplaced(Unplaced),
    /// The record is later than the window and the lateness allow.
    Late,
    /// The bytes are not a record of the format, for this reason.
    Malformed(&'static str),
    /// The line is blank.
    Blank,
    /// A tag does not fit into the record, for this reason.
    NoRoomForTag(&'static str),
    /// The bytes at this offset in the record are not of the format, for this reason.
    MalformedAt {
        at: usize,
        problem: &'static str,
    },
    /// The record is not JSON.
    Json(Invalid),
    /// The record is longer than this many bytes.
    TooLong(usize),
    /// The input ends inside the record: after `has` of its bytes, where it has `needs`, or
    /// inside the length at its start, which then is not known.
    CutShort {
        has: usize,
        needs: Option<u64>,
    },
}

/// What to do with a record that lacks a field of the key, or a readable time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Missing {
    /// End the run with an error that names the file and the line
    Error,
    /// Pass the record on without a verdict
    Skip,
    /// Treat a missing field as an empty one, and judge a record without a time at the clock
    Empty,
}

/// What to do with a blank line of CSV, if the key is some fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum BlankLines {
    /// Pass the line on without a verdict: it is no record
    #[default]
    Skip,
    /// Treat it as a faulty record
    Error,
    /// Treat it as a record with one empty field
    Keep,
}

/// What happens to faulty records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FaultPolicy {
    pub(crate) missing: Missing,
    /// Blank lines are records like any other in formats without quotes.
    pub(crate) blank_lines: BlankLines,
    /// Whether faulty records are set aside; otherwise the first one ends the run.
    pub(crate) rejects: bool,
}

/// What happens to a faulty record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It passes without a verdict.
    Passed,
    /// It is set aside.
    Rejected,
    EndsRun,
}

impl FaultPolicy {
    /// What happens to a record with this problem.
    #[cold]
    pub(crate) fn fate(&self, problem: Problem) -> Fate {
        let lacks = match problem {
            Problem::Lacks(_)
            | Problem::LacksTime(_)
            | Problem::NoTime { .. }
            | Problem::Unplaced(_) => true,
            Problem::Late
            | Problem::Malformed(_)
            | Problem::Blank
            | Problem::NoRoomForTag(_)
            | Problem::MalformedAt { .. }
            | Problem::Json(_)
            | Problem::TooLong(_)
            | Problem::CutShort { .. } => false,
        };
        match (self.missing, self.rejects) {
            (Missing::Skip, rejects) if lacks || !rejects => Fate::Passed,
            (_, true) => Fate::Rejected,
            (_, false) => Fate::EndsRun,
        }
    }

    /// What happens to a record with this content because it is a blank line.
    #[inline]
    pub(super) fn blank_line(&self, content: &[u8]) -> Option<(Fate, Problem)> {
        if content.is_empty() {
            self.fate_of_blank_line()
        } else {
            None
        }
    }

    #[cold]
    fn fate_of_blank_line(&self) -> Option<(Fate, Problem)> {
        let problem = Problem::Blank;
        match self.blank_lines {
            BlankLines::Keep => None,
            BlankLines::Skip => Some((Fate::Passed, problem)),
            BlankLines::Error if self.rejects => Some((Fate::Rejected, problem)),
            BlankLines::Error => Some((Fate::EndsRun, problem)),
        }
    }
}
