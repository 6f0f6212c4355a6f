//! Where in an input a record is: its number and its bytes, and for error messages its line, which
//! is counted only as far as they need it.

use super::chunk::Chunk;
use super::fault::{Fault, Problem};
use super::keys::{SharedFormat, format_of_chunk};
use super::restart::InputPosition;
use super::text_start::looks_wide;
use crate::failure::Failure;
use crate::number::{exact_bytes, grouped};
use crate::time::format::TimeFormat;
use crate::time::recurring::Unplaced;

/// The position of a record in its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordPosition {
    /// The number of the record, from 1 on. Headers and comment lines count; a block of a capture
    /// that is no packet does not.
    pub number: u64,
    /// The bytes of the input before the record, after decompression.
    pub offset: u64,
    /// The number of its bytes.
    pub bytes: u64,
}

impl InputPosition {
    /// The position behind this number of records.
    pub(crate) fn after(records: u64) -> Self {
        Self { records, bytes: 0 }
    }

    /// Counts a whole chunk as done.
    pub fn pass(&mut self, chunk: &Chunk) {
        *self = Self {
            records: self.number(chunk, chunk.layout.ends.len()) - 1,
            bytes: self.at(chunk).bytes + (chunk.bytes.filled - before_chunk(chunk)) as u64,
        };
    }

    /// The position of a record of the next chunk.
    pub fn position_of(self, chunk: &Chunk, record: usize) -> RecordPosition {
        let start = chunk.record_start(record);
        let end = chunk
            .layout
            .ends
            .get(record)
            .map_or(chunk.bytes.filled, |end| *end);
        RecordPosition {
            number: self.number(chunk, record),
            offset: self.at(chunk).bytes + (start - before_chunk(chunk)) as u64,
            bytes: (end - start) as u64,
        }
    }

    /// What is done of the input of the next chunk.
    fn at(self, chunk: &Chunk) -> Self {
        match &chunk.input.restart {
            Some(restart) => restart.position,
            None if chunk.input.is_first => Self::default(),
            None => self,
        }
    }

    fn number(self, chunk: &Chunk, record: usize) -> u64 {
        let frame = &chunk.unkeyed.frame;
        let before = record - frame.partition_point(|block| *block < record);
        // A header is not one of `chunk.layout.ends`; that of a file is no record. Comments count,
        // so that the number of a line is that of its record.
        let is_header = chunk.bytes.start > chunk.bytes.mark
            && !chunk.header.is_of_file
            && !chunk.input.is_capture;
        let before = before + usize::from(is_header);
        self.at(chunk).records + before as u64 + 1
    }
}

/// The bytes in the buffer that are of the chunk before. A byte order mark is of the first one.
fn before_chunk(chunk: &Chunk) -> usize {
    if chunk.input.is_first {
        0
    } else {
        chunk.bytes.mark
    }
}

/// The content of error messages about a record.
#[derive(Debug)]
pub struct FaultReporter {
    format: SharedFormat,
    time_format: TimeFormat,
    /// Lines of the current input that are done, in a format that counts lines.
    lines: u64,
    /// Whether a warning was returned.
    warned: bool,
}

impl FaultReporter {
    /// The start of a stream.
    pub fn new(format: SharedFormat) -> Self {
        Self {
            format,
            time_format: TimeFormat::Auto,
            lines: 0,
            warned: false,
        }
    }

    /// The lines of the current input that are done, in a format that counts lines.
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// Names this format in messages about times.
    pub fn with_time_format(mut self, time_format: TimeFormat) -> Self {
        self.time_format = time_format;
        self
    }

    /// Counts a whole chunk of the input `name` as done. Returns a warning, at most one in a
    /// stream, if the input is no text but a capture or UTF-16 text, or not what its name says, a
    /// quote seems to have swallowed records, records seem to be inside of other elements, or no
    /// record has a key.
    pub fn pass(&mut self, chunk: &Chunk, name: impl Fn() -> String) -> Option<String> {
        let before = self.lines_before(chunk);
        let facts = format_of_chunk(&*self.format, chunk).facts();
        let lines = facts.lines_in(chunk.bytes.behind_mark());
        self.lines = before + lines.unwrap_or(0);
        if self.warned {
            return None;
        }
        let warning = self
            .misread_elements(chunk)
            .or_else(|| self.misread_bytes(chunk));
        let warning = warning.or_else(|| self.misread_quote(chunk, before, lines?))?;
        self.warned = true;
        Some(format!("{}{warning}", name()))
    }

    /// The warning for an input whose bytes seem to be of another kind, behind its name.
    fn misread_bytes(&self, chunk: &Chunk) -> Option<String> {
        if let Some(codec) = chunk.input.belied_codec {
            return Some(format!(
                " has the name of a {codec} file, but its bytes are no {codec} data, and are read \
                 as they are"
            ));
        }
        if chunk.input.has_no_key {
            let warning = ": no record has a field beside those behind `!` in --key, so all of \
                           them are equal: is the delimiter another one (-d)?";
            return Some(warning.into());
        }
        if !chunk.input.is_first || !self.format.facts().is_text {
            return None;
        }
        if is_capture(chunk.bytes.all()) {
            let warning = " is a capture file, and its bytes are read as text: echoless packets \
                           removes duplicate packets";
            return Some(warning.into());
        }
        if self.format.facts().terminator == b"\0" {
            return None;
        }
        let encoding = looks_wide(chunk.bytes.all())?;
        Some(format!(
            " looks like {encoding} text without a byte order mark, and its bytes are read as they \
             are: iconv -f {encoding} -t UTF-8 converts it"
        ))
    }

    /// The warning for a chunk of this number of lines, behind as many `before`, in which a quote
    /// seems to have swallowed records.
    fn misread_quote(&self, chunk: &Chunk, before: u64, lines: u64) -> Option<String> {
        // As many lines as records: no record holds a newline.
        if lines <= chunk.layout.ends.len() as u64 {
            return None;
        }
        let record = |index| chunk.bytes_of(index..index + 1);
        let stray = |index| Some((index, self.format.stray_quote(record(index))?));
        let (index, quote) = (0..chunk.layout.ends.len()).find_map(stray)?;
        let quote_at = chunk.record_start(index) + quote.at;
        let above = &chunk.bytes.buffer[chunk.bytes.mark..quote_at];
        let line = before + self.format.facts().lines_in(above)? + 1;
        let of_record = grouped(self.format.facts().lines_in(record(index))?);
        if quote.is_by_backslash {
            return Some(format!(
                ", line {line}: a quote opens a field of {of_record} lines here, and one of them \
                 ends in \\\"\": --csv-backslash reads quotes behind backslashes as content"
            ));
        }
        Some(format!(
            ", line {line}: a quote opens a field here whose record has {of_record} lines and {} \
             bytes: is a quote missing, or one too many?",
            grouped(record(index).len() as u64)
        ))
    }

    /// The warning for an input that is one record which holds others, or that has none of the
    /// elements that would hold them.
    fn misread_elements(&self, chunk: &Chunk) -> Option<String> {
        if chunk.input.lacks_records {
            let format = if self.format.facts().is_text {
                "array on the path of json:container"
            } else {
                "element on the path of ber:container"
            };
            return Some(format!(
                " has no {format}, so all of it is copied and nothing is compared"
            ));
        }
        if !(chunk.input.is_first && chunk.input.is_last && chunk.records() == 1) {
            return None;
        }
        let option = self.format.records_inside(chunk.bytes_of(0..1))?;
        Some(format!(
            ": 1 record holds the whole input: name the element that holds the records, {option}, \
             and paths to fields from a record on"
        ))
    }

    /// The error for a faulty record of the input `name`, which is done up to `done`.
    pub fn failure(
        &self,
        chunk: &Chunk,
        fault: Fault,
        name: String,
        done: InputPosition,
    ) -> Failure {
        let position = done.position_of(chunk, fault.record);
        let mut problem = self.reason(fault.problem, position);
        let lacks = matches!(fault.problem, Problem::Lacks(_) | Problem::LacksTime(_));
        let inside = (lacks && fault.record < chunk.layout.ends.len())
            .then(|| chunk.bytes_of(fault.record..fault.record + 1))
            .and_then(|record| self.format.records_inside(record));
        if let Some(option) = inside {
            // What else is allowed would pass all of them, duplicates among them.
            problem = format!("{problem}: {option} reads the records inside of this one");
        } else if let Some(hint) = hint(fault.problem) {
            problem = format!("{problem} ({hint} allows that)");
        }
        let before = &chunk.bytes.buffer[chunk.bytes.mark..chunk.record_start(fault.record)];
        let facts = format_of_chunk(&*self.format, chunk).facts();
        let lines = facts.lines_in(before);
        Failure::Data {
            name,
            unit: self.format.facts().unit,
            number: lines.map_or(position.number, |lines| {
                self.lines_before(chunk) + lines + 1
            }),
            problem,
        }
    }

    /// What is wrong with a record.
    pub fn reason(&self, problem: Problem, position: RecordPosition) -> String {
        let facts = self.format.facts();
        match problem {
            Problem::Malformed(problem) | Problem::NoRoomForTag(problem) => problem.into(),
            Problem::Blank => "the line is blank (--blank-lines skip or keep allows that)".into(),
            Problem::OtherNames => {
                "the names of the fields differ from those of the header, and do \
                                    not tell which fields are compared"
                    .into()
            }
            Problem::MalformedAt { at, problem } => {
                let offset = position.offset;
                format!("{problem}: byte {at} of the record at byte offset {offset}")
            }
            Problem::Json(invalid) => format!(
                "invalid JSON at column {}: {}",
                invalid.at + 1,
                invalid.problem
            ),
            Problem::TooLong(longest) => format!(
                "the record that begins here is longer than {} (--max-record)",
                exact_bytes(longest as u64)
            ),
            Problem::CutShort { has, needs } => {
                let part = match needs {
                    Some(needs) => format!("after {has} of {needs} bytes"),
                    None => "inside the length".into(),
                };
                let offset = position.offset;
                format!("the input ends {part} of the record at byte offset {offset}")
            }
            Problem::LacksTime(lacking) => format!(
                "{}, the time, is missing{}",
                facts.field_name(lacking.field),
                facts.extent.clause(lacking.fields)
            ),
            Problem::NoTime {
                field,
                joined,
                out_of_range,
                value,
            } => {
                let name = facts.field_name(field);
                let others = match joined {
                    0 => String::new(),
                    others => format!(", joined with {others} more,"),
                };
                if out_of_range {
                    return format!(
                        "{name}{others} is a time outside of the years 1678 to 2261: {value}"
                    );
                }
                let format = &self.time_format;
                format!("{name}{others} is not a time of --time-format {format}: {value}")
            }
            Problem::Unplaced(Unplaced::NoLeapDay(year)) => format!(
                "the time is of the year {year}, which has no February 29 (--time-year is the year \
                 of the first record)"
            ),
            Problem::Unplaced(Unplaced::TooFar) => {
                "the time is outside of the years 1678 to 2261: times that fall back by more than \
                 half a year, or half a day, begin the next one"
                    .into()
            }
            Problem::Ahead { of_system: false } => {
                "the time is further ahead of the latest one before it than --max-advance allows"
                    .into()
            }
            Problem::Ahead { of_system: true } => {
                "the first time is further ahead of the clock of the system than --max-advance \
                 allows"
                    .into()
            }
            Problem::Late => "the record is later than window and lateness allow".into(),
            Problem::Lacks(lacking) => format!(
                "{} of the key is missing{}",
                facts.field_name(lacking.field),
                facts.extent.clause(lacking.fields)
            ),
            Problem::LacksFromEnd(lacking) => format!(
                "field -{} of the key is missing{}",
                lacking.field + 1,
                facts.extent.clause(lacking.fields)
            ),
        }
    }

    fn lines_before(&self, chunk: &Chunk) -> u64 {
        match &chunk.input.restart {
            Some(restart) => restart.lines,
            None if chunk.input.is_first => 0,
            None => self.lines,
        }
    }
}

/// Whether an input begins like pcap, in either byte order and with either unit of time, or like
/// pcapng.
fn is_capture(bytes: &[u8]) -> bool {
    match bytes {
        [0xa1, 0xb2, 0xc3, 0xd4, ..]
        | [0xd4, 0xc3, 0xb2, 0xa1, ..]
        | [0xa1, 0xb2, 0x3c, 0x4d, ..]
        | [0x4d, 0x3c, 0xb2, 0xa1, ..] => true,
        // Alone, the type of its first block may be blank lines of text.
        [b'\n', b'\r', b'\r', b'\n', _, _, _, _, order @ ..] => {
            order.starts_with(&[0x1a, 0x2b, 0x3c, 0x4d])
                || order.starts_with(&[0x4d, 0x3c, 0x2b, 0x1a])
        }
        _ => false,
    }
}

/// The options with which a record with this problem is not an error.
const fn hint(problem: Problem) -> Option<&'static str> {
    match problem {
        Problem::Late => Some("--late pass or judge"),
        problem if problem.is_missing() => Some("--missing skip or empty"),
        _ => None,
    }
}
