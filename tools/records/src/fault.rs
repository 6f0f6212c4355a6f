//! What can be wrong with a record, and the policy that decides what happens to it.

use clap::ValueEnum;

use super::excerpt::Excerpt;
use super::field_set::MissingField;
use super::json::scan::Invalid;
use crate::time::recurring::Unplaced;

/// A record that ends the run or is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The index of the record in its chunk.
    pub record: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What can be wrong with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The record lacks a field of the key.
    Lacks(MissingField),
    /// The same for a field that is counted from the last one on.
    LacksFromEnd(MissingField),
    /// The record lacks the field of its time.
    LacksTime(MissingField),
    /// The field of the time, numbered from 0, holds none that can be read; nor does it together
    /// with as many others as are joined to it.
    NoTime {
        /// The field of the time, from 0.
        field: usize,
        /// The number of fields joined to it.
        joined: usize,
        /// Whether it is a time, of a year that is not represented.
        out_of_range: bool,
        /// The start of its text.
        value: Excerpt,
    },
    /// The field of the time holds a date without a year, or a time of day, that has no time where
    /// the record is.
    Unplaced(Unplaced),
    /// The time is further ahead of the clock than `--max-advance` allows; of the clock of the
    /// system, if no record before has a time.
    Ahead {
        /// Whether the clock is that of the system.
        of_system: bool,
    },
    /// The record is later than the window and the lateness allow.
    Late,
    /// The bytes are not a record of the format, for this reason.
    Malformed(&'static str),
    /// The line is blank.
    Blank,
    /// A comment line has other names of fields than the header.
    OtherNames,
    /// A tag does not fit into the record, for this reason.
    NoRoomForTag(&'static str),
    /// The bytes at this offset in the record are not of the format, for this reason.
    MalformedAt {
        /// The offset in the record.
        at: usize,
        /// The reason.
        problem: &'static str,
    },
    /// The record is not JSON.
    Json(Invalid),
    /// The record is longer than this many bytes.
    TooLong(usize),
    /// The input ends inside the record: after `has` of its bytes, where it has `needs`, or
    /// inside the length at its start, which then is not known.
    CutShort {
        /// The bytes that the input has of the record.
        has: usize,
        /// The bytes of the whole record, if they are known.
        needs: Option<u64>,
    },
}

/// What to do with a record that lacks a field of the key, or a readable time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Missing {
    /// End the run with an error that names the file and the line
    Error,
    /// Pass the record on without a verdict
    Skip,
    /// Treat a missing field as an empty one, and judge a record without a time at the clock
    Empty,
}

/// What to do with a blank line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BlankLines {
    /// Pass the line on without a verdict
    Skip,
    /// Treat it as a faulty record
    Error,
    /// Judge it like any other record
    Keep,
}

/// What happens to faulty records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultPolicy {
    /// What to do with a record that lacks a field.
    pub missing: Missing,
    /// What to do with a blank line.
    pub blank_lines: BlankLines,
    /// Whether faulty records are set aside; otherwise the first one ends the run.
    pub rejects: bool,
}

/// What happens to a record without a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It passes.
    Passed,
    /// It passes, and is no record.
    Comment,
    /// It is set aside.
    Rejected(Problem),
    /// The run ends before it.
    EndsRun(Problem),
}

impl FaultPolicy {
    /// What happens to a record with this problem.
    #[cold]
    pub fn fate(&self, problem: Problem) -> Fate {
        let lacks = match problem {
            Problem::Lacks(_)
            | Problem::LacksFromEnd(_)
            | Problem::LacksTime(_)
            | Problem::NoTime { .. }
            | Problem::Unplaced(_)
            | Problem::Ahead { .. } => true,
            Problem::Late
            | Problem::Malformed(_)
            | Problem::Blank
            | Problem::OtherNames
            | Problem::NoRoomForTag(_)
            | Problem::MalformedAt { .. }
            | Problem::Json(_)
            | Problem::TooLong(_)
            | Problem::CutShort { .. } => false,
        };
        match (self.missing, self.rejects) {
            (Missing::Skip, rejects) if lacks || !rejects => Fate::Passed,
            (_, true) => Fate::Rejected(problem),
            (_, false) => Fate::EndsRun(problem),
        }
    }

    /// Whether a record without a time for this reason ends the run.
    pub fn ends_run(&self, problem: Problem) -> bool {
        self.missing != Missing::Empty && matches!(self.fate(problem), Fate::EndsRun(_))
    }

    /// What happens to a blank line; `None` if it is judged.
    pub(super) fn fate_of_blank_line(&self) -> Option<Fate> {
        let problem = Problem::Blank;
        match self.blank_lines {
            BlankLines::Keep => None,
            BlankLines::Skip => Some(Fate::Passed),
            BlankLines::Error if self.rejects => Some(Fate::Rejected(problem)),
            BlankLines::Error => Some(Fate::EndsRun(problem)),
        }
    }
}
