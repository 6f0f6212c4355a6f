//! What can be wrong with a record, and the policy that decides what happens to it.

use std::fmt;

use clap::ValueEnum;
use echoless::message::without_controls;

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

impl Problem {
    /// Whether the record lacks a field of the key, or a readable time.
    pub(crate) const fn is_missing(self) -> bool {
        match self {
            Self::Lacks(_)
            | Self::LacksFromEnd(_)
            | Self::LacksTime(_)
            | Self::NoTime { .. }
            | Self::Unplaced(_)
            | Self::Ahead { .. } => true,
            Self::Late
            | Self::Malformed(_)
            | Self::Blank
            | Self::OtherNames
            | Self::NoRoomForTag(_)
            | Self::MalformedAt { .. }
            | Self::Json(_)
            | Self::TooLong(_)
            | Self::CutShort { .. } => false,
        }
    }
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
        let lacks = problem.is_missing();
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

/// The most bytes of an excerpt: a time with an offset in any usual format.
const MOST_SHOWN: usize = 40;

/// The first bytes of a field, for messages: problems are copied, and a field may be long.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Excerpt {
    bytes: [u8; MOST_SHOWN],
    len: u8,
    /// Whether the field has more bytes.
    is_cut: bool,
}

impl Excerpt {
    pub(crate) fn new(field: &[u8]) -> Self {
        let len = field.len().min(MOST_SHOWN);
        let mut bytes = [0; MOST_SHOWN];
        bytes[..len].copy_from_slice(&field[..len]);
        Self {
            bytes,
            len: len as u8,
            is_cut: field.len() > MOST_SHOWN,
        }
    }
}

/// As text in backticks; bytes that are no text, and control characters, are escaped.
impl fmt::Display for Excerpt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("`")?;
        for chunk in self.bytes[..self.len.into()].utf8_chunks() {
            out.write_str(&without_controls(chunk.valid()))?;
            write!(out, "{}", chunk.invalid().escape_ascii())?;
        }
        out.write_str(if self.is_cut { "..`" } else { "`" })
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_short_text() {
        let long = [b'7'; 100];
        let cut = format!("`{}..`", "7".repeat(MOST_SHOWN));
        for (field, text) in [
            (&b""[..], "``"),
            (b"12:00", "`12:00`"),
            ("1. M\u{e4}rz".as_bytes(), "`1. M\u{e4}rz`"),
            (b"\x25\x01\xff", "`%\\u{1}\\xff`"),
            ("a\u{202e}b".as_bytes(), "`a\\u{202e}b`"),
            (&long[..MOST_SHOWN], cut.replace("..", "").as_str()),
            (&long, &cut),
        ] {
            assert_eq!(Excerpt::new(field).to_string(), text);
        }
    }
}
