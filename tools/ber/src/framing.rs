//! Where records end: top-level elements, and the filler between them.
//!
//! Filler is any run of 0x00 and 0xFF bytes where a tag would begin. It belongs to the record
//! before it, and at the beginning of a stream to the first record. So every byte belongs to one
//! record, however the bytes were cut into blocks, and a record ends only where another
//! one, or nothing, follows.
//!
//! ```text
//! | filler | element | filler | element | element | filler |
//! |------ record 0 ----------| record 1 |---- record 2 ----|
//! ```

use std::ops::Range;

use crate::element::{Length, MAX_DEPTH, NoHeader, read_header};
use crate::error::Invalid;

/// Whether this byte is filler where a tag would begin.
#[inline(always)]
pub(crate) const fn is_filler(byte: u8) -> bool {
    byte == 0x00 || byte == 0xff
}

/// A search for the end of one record, which goes on where it was when more bytes arrive. Each
/// element is read once; the content of elements of definite length is skipped.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordScan {
    /// The offset of the next element or filler, from the start of the record. It may lie behind
    /// the bytes that have arrived.
    at: u64,
    part: Part,
}

/// The part of a record that is next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Part {
    /// Filler, and then the tag.
    #[default]
    Leading,
    /// An element inside of this many indefinite lengths.
    Nested(usize),
    /// Filler after the element.
    Trailing,
}

/// What a record lacks if no more bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lack {
    /// It is whole.
    Nothing,
    /// It has this number of bytes in all, filler before it included.
    Bytes(u64),
    /// Its tag or its length is incomplete.
    Header,
    /// It has an indefinite length, and its end-of-contents is missing.
    EndOfContents,
}

impl RecordScan {
    /// The end of the record that begins at `start`; `None` if it may go on behind `bytes`. Calls
    /// that follow get the same bytes and more.
    ///
    /// # Errors
    /// [`Invalid`] if the record cannot be read. Further calls return the same error.
    #[inline]
    pub fn end(&mut self, bytes: &[u8], start: usize) -> Result<Option<usize>, Invalid> {
        let bytes = &bytes[start..];
        loop {
            let Some(at) = usize::try_from(self.at)
                .ok()
                .filter(|at| *at <= bytes.len())
            else {
                return Ok(None);
            };
            match self.part {
                Part::Leading | Part::Trailing => {
                    let filler = bytes[at..].iter().take_while(|byte| is_filler(**byte));
                    self.at += filler.count() as u64;
                    let at = self.at as usize;
                    if at == bytes.len() {
                        return Ok(None);
                    }
                    if self.part == Part::Trailing {
                        return Ok(Some(start + at));
                    }
                    if !self.enter(bytes, at, 0)? {
                        return Ok(None);
                    }
                }
                Part::Nested(depth) => {
                    if !self.enter(bytes, at, depth)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// The end of the element of the record that begins at `start`, without the filler after it;
    /// `None` if it goes on behind `bytes`. Calls that follow get the same bytes and more.
    pub(crate) fn element_end(
        &mut self,
        bytes: &[u8],
        start: usize,
    ) -> Result<Option<usize>, Invalid> {
        let bytes = &bytes[start..];
        loop {
            let at = usize::try_from(self.at).ok();
            let Some(at) = at.filter(|at| *at <= bytes.len()) else {
                return Ok(None);
            };
            let depth = match self.part {
                Part::Leading => 0,
                Part::Nested(depth) => depth,
                Part::Trailing => return Ok(Some(start + at)),
            };
            if !self.enter(bytes, at, depth)? {
                return Ok(None);
            }
        }
    }

    /// Reads the header of the element at `at`, inside of `depth` indefinite lengths; returns
    /// `false` if it is incomplete.
    #[inline]
    fn enter(&mut self, bytes: &[u8], at: usize, depth: usize) -> Result<bool, Invalid> {
        let header = match read_header(bytes, at) {
            Ok(header) => header,
            Err(NoHeader::Cut) => return Ok(false),
            Err(error @ NoHeader::Invalid(_)) => return Err(Invalid::header(at, error)),
        };
        let content = header.content as u64;
        let inside = match header.length {
            Length::Indefinite if depth == MAX_DEPTH => return Err(Invalid::too_deep(at)),
            Length::Indefinite => {
                self.at = content;
                depth + 1
            }
            Length::Definite(length) => {
                self.at = content.saturating_add(length);
                depth - usize::from(depth > 0 && header.is_end_of_contents())
            }
        };
        self.part = match inside {
            0 => Part::Trailing,
            depth => Part::Nested(depth),
        };
        Ok(true)
    }

    /// What the record lacks if it ends after `len` bytes.
    pub fn lack(&self, len: usize) -> Lack {
        match self.part {
            // All of it may be filler.
            Part::Leading if self.at == len as u64 => Lack::Nothing,
            Part::Leading => Lack::Header,
            Part::Nested(_) => Lack::EndOfContents,
            Part::Trailing if self.at <= len as u64 => Lack::Nothing,
            Part::Trailing => Lack::Bytes(self.at),
        }
    }
}

/// Appends the end of every record of `bytes[start..]`, the last one whole or not.
pub fn record_ends(bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
    let mut at = start;
    while at < bytes.len() {
        let end = RecordScan::default().end(bytes, at);
        at = end.ok().flatten().unwrap_or(bytes.len());
        ends.push(at);
    }
}

/// The element of a record, without the filler around it. If it is cut off or invalid, everything
/// after the leading filler; empty if all is filler.
#[inline]
pub fn element(record: &[u8]) -> Range<usize> {
    let start = match record.first() {
        Some(first) if is_filler(*first) => {
            let filler = record.iter().take_while(|byte| is_filler(**byte));
            filler.count()
        }
        Some(_) | None => 0,
    };
    let end = read_header(record, start)
        .ok()
        .and_then(|header| match header.length {
            Length::Definite(length) => {
                let rest = (record.len() - header.content) as u64;
                (length <= rest).then(|| header.content + length as usize)
            }
            Length::Indefinite => skip_indefinite(record, header.content, start, 1).ok(),
        });
    start..end.unwrap_or(record.len())
}

/// The end of the element at `at` whose content, of indefinite length, begins at `content` and is
/// inside of `depth` values, after its end-of-contents.
pub(crate) fn skip_indefinite(
    bytes: &[u8],
    content: usize,
    at: usize,
    depth: usize,
) -> Result<usize, Invalid> {
    let mut next = content;
    let mut open = depth;
    loop {
        let header = match read_header(bytes, next) {
            Ok(header) => header,
            Err(NoHeader::Cut) => return Err(Invalid::unfinished(at)),
            Err(error @ NoHeader::Invalid(_)) => return Err(Invalid::header(next, error)),
        };
        match header.length {
            Length::Indefinite if open == MAX_DEPTH => return Err(Invalid::too_deep(next)),
            Length::Indefinite => {
                open += 1;
                next = header.content;
            }
            Length::Definite(length) => {
                let rest = (bytes.len() - header.content) as u64;
                if length > rest {
                    return Err(Invalid::too_long(next));
                }
                let is_end = header.is_end_of_contents();
                next = header.content + length as usize;
                if is_end {
                    if open == depth {
                        return Ok(next);
                    }
                    open -= 1;
                }
            }
        }
    }
}
