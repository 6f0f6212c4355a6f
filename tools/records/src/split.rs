//! Splits one record into fields, plain or quoted, and removes the quotes.

use std::fmt::Debug;

use memchr::memmem::Finder;
use memchr::{Memchr, memchr, memchr_iter};

use super::compared::is_blank;
use super::field_set::{FieldBytes, FieldSet, MissingField};
use super::quoting::{BACKSLASH, QUOTE};
use super::terminators::{BLOCK, CR, LF, occurrences};

/// Splits records without quotes. Each implementation has loops of its own, so that the most common
/// delimiter, one byte, pays nothing for the others.
pub(crate) trait Splitter: Debug + Send + Sync {
    /// The fields of a record's content.
    fn fields<'a>(&'a self, content: &'a [u8]) -> impl Iterator<Item = FieldBytes>;

    /// Appends those fields of a record that are in `fields`. Fails if the record ends before the
    /// last of them.
    #[inline(always)]
    fn select(
        &self,
        fields: &FieldSet,
        content: &[u8],
        chosen: &mut Vec<FieldBytes>,
    ) -> Result<(), MissingField> {
        fields.select(self.fields(content), |field| chosen.push(field))
    }
}

/// Fields between bytes of this value.
impl Splitter for u8 {
    #[inline(always)]
    fn fields<'a>(&'a self, content: &'a [u8]) -> impl Iterator<Item = FieldBytes> {
        PlainFields::new(content, *self)
    }

    #[inline(always)]
    fn select(
        &self,
        fields: &FieldSet,
        content: &[u8],
        chosen: &mut Vec<FieldBytes>,
    ) -> Result<(), MissingField> {
        // One search finds the first field of a record sooner than a mask, and few fields of a
        // short one.
        if content.len() < BLOCK || fields.required() < 2 {
            fields.select(self.fields(content), |field| chosen.push(field))
        } else {
            fields.select(MaskedFields::new(content, *self), |field| {
                chosen.push(field);
            })
        }
    }
}

/// Fields between occurrences of some bytes: of two that overlap, the first counts.
#[derive(Debug)]
pub(crate) struct Sequence {
    finder: Finder<'static>,
}

impl Sequence {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self {
            finder: Finder::new(bytes).into_owned(),
        }
    }
}

impl Splitter for Sequence {
    #[inline]
    fn fields<'a>(&'a self, content: &'a [u8]) -> impl Iterator<Item = FieldBytes> {
        let length = self.finder.needle().len();
        let ends = self.finder.find_iter(content).chain([content.len()]);
        let mut start = 0;
        ends.map(move |end| {
            let field = FieldBytes::Record { start, end };
            start = end + length;
            field
        })
    }
}

/// Fields between runs of blanks, as awk has them: blanks at the start and at the end of a record
/// separate nothing, so a blank record has no field.
#[derive(Debug)]
pub(crate) struct Blanks;

impl Splitter for Blanks {
    #[inline]
    fn fields<'a>(&'a self, content: &'a [u8]) -> impl Iterator<Item = FieldBytes> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let rest = &content[at..];
            let start = at + rest.iter().position(|byte| !is_blank(*byte))?;
            let rest = &content[start..];
            let length = rest.iter().position(|byte| is_blank(*byte));
            at = start + length.unwrap_or(rest.len());
            Some(FieldBytes::Record { start, end: at })
        })
    }
}

/// The fields between the delimiters of a record.
pub(crate) struct PlainFields<'a> {
    delimiters: Memchr<'a>,
    start: usize,
    len: usize,
}

impl<'a> PlainFields<'a> {
    /// The fields of a record's content. An empty record has one field, which is empty.
    #[inline]
    pub(crate) fn new(content: &'a [u8], delimiter: u8) -> Self {
        Self {
            delimiters: memchr_iter(delimiter, content),
            start: 0,
            len: content.len(),
        }
    }
}

impl Iterator for PlainFields<'_> {
    type Item = FieldBytes;

    #[inline]
    fn next(&mut self) -> Option<FieldBytes> {
        if self.start > self.len {
            return None;
        }
        let end = self.delimiters.next().unwrap_or(self.len);
        let field = FieldBytes::Record {
            start: self.start,
            end,
        };
        self.start = end + 1;
        Some(field)
    }
}

/// The same fields in a record of 64 bytes or more: a block is searched once for the delimiters of
/// several fields. 100 bytes with a key of the second and fifth of ten fields take 276 instructions
/// in place of 430.
struct MaskedFields<'a> {
    content: &'a [u8],
    delimiter: u8,
    start: usize,
    /// The start of the block that is searched, and of the next one.
    block: usize,
    next: usize,
    /// One bit for each byte of the block that is a delimiter and was not passed yet.
    delimiters: u64,
}

impl<'a> MaskedFields<'a> {
    #[inline]
    fn new(content: &'a [u8], delimiter: u8) -> Self {
        debug_assert!(content.len() >= BLOCK);
        Self {
            content,
            delimiter,
            start: 0,
            block: 0,
            next: 0,
            delimiters: 0,
        }
    }

    /// Searches the next blocks up to one with a delimiter. Returns whether there is one.
    #[inline(never)]
    fn advance(&mut self) -> bool {
        while self.delimiters == 0 && self.next < self.content.len() {
            // The last block overlaps the one before it.
            let block = self.next.min(self.content.len() - BLOCK);
            let passed = self.next - block;
            let Some(bytes) = self.content[block..].first_chunk() else {
                return false;
            };
            self.delimiters = occurrences(bytes, self.delimiter) >> passed << passed;
            self.block = block;
            self.next = block + BLOCK;
        }
        self.delimiters != 0
    }
}

impl Iterator for MaskedFields<'_> {
    type Item = FieldBytes;

    #[inline]
    fn next(&mut self) -> Option<FieldBytes> {
        if self.start > self.content.len() {
            return None;
        }
        let mut end = self.content.len();
        if self.delimiters != 0 || self.advance() {
            end = self.block + self.delimiters.trailing_zeros() as usize;
            // Clears the lowest set bit.
            self.delimiters &= self.delimiters - 1;
        }
        let field = FieldBytes::Record {
            start: self.start,
            end,
        };
        self.start = end + 1;
        Some(field)
    }
}

/// The fields of a record with RFC 4180 quoting.
///
/// The bytes after a closing quote are copied unchanged, and so is a quote inside an unquoted
/// field. With `ESCAPES`, a backslash makes the byte behind it content, inside of quotes and
/// outside. It is left out of the value in front of a quote, a delimiter, CR and LF. In front of
/// other bytes it stays, so that `\n` and `n` differ, and `\\n` and `\n` do.
pub(crate) struct QuotedFields<'a, const ESCAPES: bool> {
    content: &'a [u8],
    delimiter: u8,
    start: usize,
    scratch: &'a mut Vec<u8>,
}

impl<'a, const ESCAPES: bool> QuotedFields<'a, ESCAPES> {
    /// The fields of a record's content. Values that are not one piece of it are appended to
    /// `scratch`.
    #[inline]
    pub(crate) fn new(content: &'a [u8], delimiter: u8, scratch: &'a mut Vec<u8>) -> Self {
        Self {
            content,
            delimiter,
            start: 0,
            scratch,
        }
    }

    /// The end of the unquoted bytes that begin at `from`.
    #[inline]
    fn unquoted_end(&self, from: usize) -> usize {
        memchr(self.delimiter, &self.content[from..]).map_or(self.content.len(), |at| from + at)
    }

    /// Removes the quotes of the field whose opening quote is just before `start`. Returns its
    /// value and the end of the field.
    fn quoted(&mut self, start: usize) -> (FieldBytes, usize) {
        let assembled = self.scratch.len();
        let mut piece = start;
        loop {
            let rest = &self.content[piece..];
            // The closing quote is missing only if the record was cut short.
            let quote = memchr(QUOTE, rest).map_or(self.content.len(), |at| piece + at);
            let after = (quote + 1).min(self.content.len());
            if self.content.get(after) == Some(&QUOTE) {
                // A doubled quote: keep the first, skip the second.
                self.scratch.extend_from_slice(&self.content[piece..after]);
                piece = after + 1;
                continue;
            }
            let end = self.unquoted_end(after);
            if assembled == self.scratch.len() && piece == start && end == after {
                return (FieldBytes::Record { start, end: quote }, end);
            }
            self.scratch.extend_from_slice(&self.content[piece..quote]);
            self.scratch.extend_from_slice(&self.content[after..end]);
            let content = FieldBytes::Scratch {
                start: assembled,
                end: self.scratch.len(),
            };
            return (content, end);
        }
    }

    /// The next field, in which bytes may be behind backslashes.
    fn escaped(&mut self) -> FieldBytes {
        let (content, start) = (self.content, self.start);
        let assembled = self.scratch.len();
        let mut inside = content.get(start) == Some(&QUOTE);
        // The bytes of the value from here on are not copied yet.
        let mut piece = start + usize::from(inside);
        let mut at = piece;
        while let Some(byte) = content.get(at) {
            let next = content.get(at + 1);
            match (*byte, next) {
                (BACKSLASH, Some(next)) => {
                    if [QUOTE, self.delimiter, CR, LF].contains(next) {
                        self.scratch.extend_from_slice(&content[piece..at]);
                        piece = at + 1;
                    }
                    at += 2;
                }
                (QUOTE, Some(&QUOTE)) if inside => {
                    self.scratch.extend_from_slice(&content[piece..=at]);
                    at += 2;
                    piece = at;
                }
                (QUOTE, _) if inside => {
                    self.scratch.extend_from_slice(&content[piece..at]);
                    at += 1;
                    piece = at;
                    inside = false;
                }
                (byte, _) if byte == self.delimiter && !inside => break,
                _ => at += 1,
            }
        }
        self.start = at + 1;
        if assembled == self.scratch.len() {
            return FieldBytes::Record {
                start: piece,
                end: at,
            };
        }
        self.scratch.extend_from_slice(&content[piece..at]);
        FieldBytes::Scratch {
            start: assembled,
            end: self.scratch.len(),
        }
    }
}

impl<const ESCAPES: bool> Iterator for QuotedFields<'_, ESCAPES> {
    type Item = FieldBytes;

    #[inline]
    fn next(&mut self) -> Option<FieldBytes> {
        let start = self.start;
        if start > self.content.len() {
            return None;
        }
        if ESCAPES {
            return Some(self.escaped());
        }
        let (field, end) = if self.content.get(start) == Some(&QUOTE) {
            self.quoted(start + 1)
        } else {
            let end = self.unquoted_end(start);
            (FieldBytes::Record { start, end }, end)
        };
        self.start = end + 1;
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn fields(splitter: &impl Splitter, content: &[u8]) -> Vec<Vec<u8>> {
        let value = |field: FieldBytes| field.bytes(content, &[]).to_vec();
        splitter.fields(content).map(value).collect()
    }

    proptest! {
        #[test]
        fn blanks_split_as_white_space_does(text in "[ab \t\n\u{e9}\r]{0,40}") {
            let expected: Vec<Vec<u8>> = text
                .split([' ', '\t', '\n'])
                .filter(|field| !field.is_empty())
                .map(|field| field.as_bytes().to_vec())
                .collect();
            prop_assert_eq!(fields(&Blanks, text.as_bytes()), expected);
        }

        #[test]
        fn sequences_split_as_strings_do(
            text in "[a|,]{0,40}",
            delimiter in prop::sample::select(vec!["||", "|,|", "a|", "|||"]),
        ) {
            let expected: Vec<Vec<u8>> =
                text.split(delimiter).map(|field| field.as_bytes().to_vec()).collect();
            prop_assert_eq!(fields(&Sequence::new(delimiter.as_bytes()), text.as_bytes()), expected);
        }

        #[test]
        fn bytes_split_as_slices_do(
            // Runs, so that fields are short and long and end anywhere in a block.
            runs in vec((prop::sample::select(b"a,,\0\xff".to_vec()), 1_usize..150), 0..12),
            single in vec(prop::sample::select(b"ab,,\0".to_vec()), 0..140),
            delimiter in prop::sample::select(b",\0".to_vec()),
        ) {
            let mut bytes = single;
            for (byte, length) in runs {
                bytes.extend(std::iter::repeat_n(byte, if byte == delimiter { 1 } else { length }));
            }
            let expected: Vec<&[u8]> = bytes.split(|byte| *byte == delimiter).collect();
            prop_assert_eq!(fields(&delimiter, &bytes), expected.clone());
            if bytes.len() >= BLOCK {
                let masked = MaskedFields::new(&bytes, delimiter);
                let masked: Vec<FieldBytes> = masked.collect();
                let masked: Vec<&[u8]> = masked.iter().map(|field| field.bytes(&bytes, &[])).collect();
                prop_assert_eq!(masked, expected);
            }
        }
    }
}
