//! The header of the stream: the first record of the first input. It is copied to the outputs;
//! equal headers of later inputs are dropped. The file header of a format, which has no names, is
//! copied in the same way. Where comment lines hold the names of the fields, they are the header,
//! and stay what they are. Later ones may have other names: the key is that of the same names then.

use std::collections::HashMap;
use std::sync::Arc;

use super::chunk::Chunk;
use super::field_list::HeaderNames;
use super::format::{all_fields, first_end};
use super::keys::SharedFormat;
use super::restart::SavedHeader;
use super::text_start::strip_mark;
use crate::failure::Failure;

/// The number of different headers that comment lines of a stream may hold: all of them are kept.
const MOST_LATER: usize = 10_000;

/// The header of the stream, once it is read.
#[derive(Debug)]
pub(crate) struct Header {
    format: SharedFormat,
    first: Option<FirstHeader>,
    /// The names of other comment lines, in the order in which they occurred first.
    later: Vec<Arc<[Vec<u8>]>>,
    /// The numbers of these.
    numbers: HashMap<Arc<[Vec<u8>]>, u32>,
    /// The names in force: 0 are those of the first header, n is number n-1 of `later`.
    number: u32,
}

/// The first header of the stream.
#[derive(Debug)]
struct FirstHeader {
    /// `None` if the names are those of a comment line.
    record: Option<Vec<u8>>,
    names: Arc<[Vec<u8>]>,
    /// The input that it is from; `None` if an earlier run has read it.
    source: Option<usize>,
}

impl Header {
    pub(crate) fn new(format: SharedFormat) -> Self {
        Self {
            format,
            first: None,
            later: Vec::new(),
            numbers: HashMap::new(),
            number: 0,
        }
    }

    /// Goes on with the header of a stream that an earlier run has read.
    pub(crate) fn restart(&mut self, saved: SavedHeader) {
        self.first = Some(FirstHeader {
            record: saved.record,
            names: saved.names.into(),
            source: None,
        });
        for names in saved.later {
            self.add_later(names);
        }
    }

    /// Goes on with an input behind names with this number.
    pub(crate) fn restart_input(&mut self, number: u32) {
        self.number = number;
    }

    /// Removes the header from a chunk that begins with it, and keeps the stream's first. `line` is
    /// its number in the input. Fails if the header differs from the first one: the key would mean
    /// other fields.
    pub(crate) fn remove_from(
        &mut self,
        chunk: &mut Chunk,
        line: u64,
        name: impl Fn(usize) -> String + Copy,
    ) -> Result<(), Failure> {
        self.number = 0;
        let file_header_end = self.format.facts().file_header_end;
        chunk.header.is_of_file = file_header_end.is_some();
        chunk.bytes.start = match file_header_end {
            Some(end) => end(chunk.bytes.all()),
            None => chunk.bytes.mark + first_end(&*self.format, chunk.bytes.behind_mark()),
        };
        let record = chunk.bytes.head();
        let own = self.content(record);
        let Some(first) = &self.first else {
            let names = if chunk.header.is_of_file {
                Vec::new()
            } else {
                all_fields(&*self.format, own)
            };
            self.first = Some(FirstHeader {
                record: Some(record.to_vec()),
                names: names.into(),
                source: Some(chunk.input.source),
            });
            return Ok(());
        };
        let content = first.record.as_ref().map(|record| self.content(record));
        let is_equal = match content {
            // It is about the file, not about the fields, so each file has another one.
            Some(_) if chunk.header.is_of_file => true,
            Some(first) => first == own,
            None => *first.names == all_fields(&*self.format, own)[..],
        };
        if is_equal {
            return Ok(());
        }
        let end = |header: &[u8]| header.strip_suffix(b"\r").map_or(header.len(), <[u8]>::len);
        let by_cr = content.is_some_and(|first| first[..end(first)] == own[..end(own)]);
        let hint = if by_cr {
            " by a CR at its end (--crlf and --csv allow that)"
        } else {
            ""
        };
        Err(Failure::Data {
            name: name(chunk.input.source),
            unit: self.format.facts().unit,
            number: line,
            problem: format!(
                "the header differs from that of {}{hint}",
                first.source.map_or("the state".into(), name)
            ),
        })
    }

    /// Notes that a comment line of this input holds the names of the fields that follow. Fails if
    /// the stream has too many different names.
    pub(crate) fn found_names(&mut self, names: Vec<Vec<u8>>, source: usize) -> Result<(), String> {
        let first = self.first.get_or_insert_with(|| FirstHeader {
            record: None,
            names: names.clone().into(),
            source: Some(source),
        });
        self.number = if *first.names == names[..] {
            0
        } else {
            match self.numbers.get(&names[..]) {
                Some(number) => *number,
                None if self.later.len() < MOST_LATER => self.add_later(names),
                None => {
                    return Err(format!(
                        "its comment lines hold more than {MOST_LATER} different headers"
                    ));
                }
            }
        };
        Ok(())
    }

    /// Adds names that no header had, and returns their number.
    fn add_later(&mut self, names: Vec<Vec<u8>>) -> u32 {
        let names: Arc<[_]> = names.into();
        self.later.push(Arc::clone(&names));
        let number = self.later.len() as u32;
        self.numbers.insert(names, number);
        number
    }

    /// Whether later comment lines may have other names: not behind a header that is a record, which
    /// the outputs begin with.
    pub(crate) fn may_change(&self) -> bool {
        (self.first.as_ref()).is_some_and(|first| first.record.is_none())
    }

    /// Whether other names than these are in force.
    pub(crate) fn differs(&self, names: &[Vec<u8>]) -> bool {
        *self.names().now != *names
    }

    /// The names of the fields; none before the header is read.
    pub(crate) fn names(&self) -> HeaderNames {
        let first =
            (self.first.as_ref()).map_or_else(|| Arc::from([]), |first| first.names.clone());
        let later = self.number.checked_sub(1);
        let later = later.and_then(|index| self.later.get(index as usize));
        HeaderNames {
            now: Arc::clone(later.unwrap_or(&first)),
            first,
            number: self.number,
        }
    }

    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        strip_mark(self.format.content(record))
    }
}
