//! Record ends among quoted fields (RFC 4180): a newline ends a record unless it is inside quotes.
//!
//! A quote opens a quoted field only at the start of a field; elsewhere outside of quotes it is
//! content. In a block of 64 bytes without such a stray quote, whether a byte is inside quotes is
//! the parity of the quotes before it, which takes a few operations on bit masks:
//!
//! ```text
//! bytes      a , " b \n c " \n     first byte on the left
//! quotes     0 0 1 0 0 0 1 0
//! inside     0 0 1 1 1 1 0 0      prefix parity of `quotes`
//! newlines   0 0 0 0 1 0 0 1
//! ends       0 0 0 0 0 0 0 1      newlines & !inside
//! ```
//!
//! A block with a stray quote is scanned byte by byte, and so are all bytes where a backslash makes
//! the byte behind it content.

use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr, memchr2, memchr3};

use super::terminators::{BLOCK, LF, occurrences};

pub(super) const QUOTE: u8 = b'"';
pub(super) const BACKSLASH: u8 = b'\\';

/// What bytes have a meaning in CSV beside quotes and newlines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) delimiter: u8,
    /// Whether a backslash makes the byte behind it content.
    pub(super) backslash: bool,
}

/// The state of a scan after the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quoting {
    #[default]
    Outside,
    Inside,
    /// After a quote inside quotes: another quote makes it a doubled one, any other byte the end.
    AtQuote,
    /// After a backslash, inside of quotes or not: the next byte is content.
    Escape {
        inside: bool,
    },
    /// Outside, after a byte behind a backslash: no field starts here.
    Escaped,
}

impl Quoting {
    /// All states.
    pub(super) const ALL: &[Self] = &[
        Self::Outside,
        Self::Inside,
        Self::AtQuote,
        Self::Escape { inside: false },
        Self::Escape { inside: true },
        Self::Escaped,
    ];

    /// Those where a backslash is content.
    pub(super) const WITHOUT_BACKSLASH: &[Self] = Self::ALL.split_at(3).0;

    /// Scans `bytes[from..]` and passes every record end to `found`. `bytes` begins with a record,
    /// and `bytes[..from]` was scanned by earlier calls.
    pub(super) fn scan(
        &mut self,
        bytes: &[u8],
        from: usize,
        dialect: Dialect,
        mut found: impl FnMut(usize),
    ) {
        let delimiter = dialect.delimiter;
        let mut at = from;
        while let Some(block) = bytes[at..].first_chunk::<BLOCK>()
            && !dialect.backslash
        {
            let at_field_start = starts_field(bytes, at, delimiter);
            if let Some(mut ends) = self.scan_block(block, at_field_start, delimiter) {
                while ends != 0 {
                    found(at + ends.trailing_zeros() as usize + 1);
                    ends &= ends - 1;
                }
            } else {
                self.scan_bytes(&bytes[..at + BLOCK], at, dialect, &mut found);
            }
            at += BLOCK;
        }
        self.scan_bytes(bytes, at, dialect, found);
    }

    fn scan_bytes(
        &mut self,
        bytes: &[u8],
        from: usize,
        dialect: Dialect,
        mut found: impl FnMut(usize),
    ) {
        let mut at = from;
        while let Some(end) = self.next_end(bytes, at, dialect) {
            found(end);
            at = end;
        }
    }

    /// The next record end in `bytes[from..]`.
    pub(super) fn next_end(
        &mut self,
        bytes: &[u8],
        from: usize,
        dialect: Dialect,
    ) -> Option<usize> {
        let mut at = from;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match *self {
                Self::Outside => {
                    at += if dialect.backslash {
                        memchr3(LF, QUOTE, BACKSLASH, rest)?
                    } else {
                        memchr2(LF, QUOTE, rest)?
                    };
                    match bytes[at] {
                        LF => return Some(at + 1),
                        BACKSLASH => *self = Self::Escape { inside: false },
                        _ if starts_field(bytes, at, dialect.delimiter) => *self = Self::Inside,
                        _ => {}
                    }
                    at += 1;
                }
                Self::Inside if dialect.backslash => {
                    at += memchr2(QUOTE, BACKSLASH, rest)?;
                    *self = match bytes[at] {
                        QUOTE => Self::AtQuote,
                        _ => Self::Escape { inside: true },
                    };
                    at += 1;
                }
                Self::Inside => {
                    at += memchr(QUOTE, rest)? + 1;
                    *self = Self::AtQuote;
                }
                Self::Escape { inside } => {
                    at += 1;
                    *self = if inside { Self::Inside } else { Self::Escaped };
                }
                Self::Escaped => {
                    at += usize::from(bytes[at] == QUOTE);
                    *self = Self::Outside;
                }
                Self::AtQuote => {
                    if bytes[at] == QUOTE {
                        at += 1;
                        *self = Self::Inside;
                    } else {
                        *self = Self::Outside;
                    }
                }
            }
        }
        None
    }

    /// The newlines of a block that end records, one bit each. If the block has a stray quote,
    /// returns `None` and leaves the state unchanged.
    #[inline]
    fn scan_block(
        &mut self,
        block: &[u8; BLOCK],
        at_field_start: bool,
        delimiter: u8,
    ) -> Option<u64> {
        let newlines = occurrences(block, LF);
        let quotes = occurrences(block, QUOTE);
        if quotes == 0 && *self == Self::Outside {
            return Some(newlines);
        }
        // Set from each opening quote up to the byte before the closing one. A doubled quote closes
        // and opens again at once, which leaves the bytes after it inside.
        let inside = parity(quotes) ^ if *self == Self::Inside { u64::MAX } else { 0 };
        let before_field = newlines | quotes | occurrences(block, delimiter);
        let may_open = before_field << 1 | u64::from(at_field_start || *self == Self::AtQuote);
        if quotes & inside & !may_open != 0 {
            return None;
        }
        *self = match (inside >> 63, quotes >> 63) {
            (1, _) => Self::Inside,
            (_, 1) => Self::AtQuote,
            _ => Self::Outside,
        };
        Some(newlines & !inside)
    }
}

/// A scan of records among comment lines, which end at the next newline, with any quotes in them.
#[derive(Debug, Clone)]
pub(super) struct CommentedQuoting {
    /// What comment lines begin with.
    prefix: Arc<[u8]>,
    line: Line,
}

/// What the bytes since the last record end are.
#[derive(Debug, Clone, Copy)]
enum Line {
    /// So many bytes, which a comment may begin with.
    Start(usize),
    Comment,
    Record(Quoting),
}

impl CommentedQuoting {
    pub(super) fn new(prefix: &[u8]) -> Self {
        Self {
            prefix: prefix.into(),
            line: Line::Start(0),
        }
    }

    /// As [`Quoting::scan`].
    pub(super) fn scan(
        &mut self,
        bytes: &[u8],
        from: usize,
        dialect: Dialect,
        mut found: impl FnMut(usize),
    ) {
        let mut at = from;
        loop {
            let end = match &mut self.line {
                Line::Start(seen) => {
                    let start = at - *seen;
                    let rest = &bytes[start..];
                    if rest.starts_with(&self.prefix) {
                        at = start + self.prefix.len();
                        self.line = Line::Comment;
                    } else if self.prefix.starts_with(rest) {
                        *seen = rest.len();
                        return;
                    } else {
                        at = start;
                        self.line = Line::Record(Quoting::default());
                    }
                    continue;
                }
                Line::Comment => memchr(LF, &bytes[at..]).map(|newline| at + newline + 1),
                Line::Record(quoting) => quoting.next_end(bytes, at, dialect),
            };
            let Some(end) = end else {
                return;
            };
            found(end);
            at = end;
            self.line = Line::Start(0);
        }
    }

    /// The state after the last byte.
    pub(super) fn quoting(&self) -> Quoting {
        match self.line {
            Line::Record(quoting) => quoting,
            Line::Start(_) | Line::Comment => Quoting::Outside,
        }
    }

    /// Starts over with a new buffer.
    pub(super) fn reset(&mut self) {
        self.line = Line::Start(0);
    }
}

/// Whether a field starts at `at`, which is outside quotes.
fn starts_field(bytes: &[u8], at: usize, delimiter: u8) -> bool {
    at.checked_sub(1)
        .is_none_or(|before| bytes[before] == delimiter || bytes[before] == LF)
}

/// The content of each quoted field of a record, between its quotes; to the end of the record if it
/// ends inside quotes.
pub(super) fn quoted_fields(record: &[u8], dialect: Dialect) -> Vec<Range<usize>> {
    let mut fields = Vec::new();
    let mut at = 0;
    let next = |at: usize| {
        let rest = &record[at..];
        let found = match dialect.backslash {
            true => memchr2(QUOTE, BACKSLASH, rest),
            false => memchr(QUOTE, rest),
        };
        found.map(|found| at + found)
    };
    while let Some(quote) = next(at) {
        at = quote + 1;
        if record[quote] == BACKSLASH {
            // The byte behind it, and no field starts behind that.
            at += 1 + usize::from(record.get(at + 1) == Some(&QUOTE));
            at = at.min(record.len());
            continue;
        }
        if !starts_field(record, quote, dialect.delimiter) {
            continue;
        }
        let end = loop {
            let Some(next) = next(at) else {
                at = record.len();
                break at;
            };
            at = next + 1;
            if record[next] == QUOTE && record.get(at) != Some(&QUOTE) {
                break next;
            }
            at = (at + 1).min(record.len());
        };
        fields.push(quote + 1..end);
    }
    fields
}

/// Prefix parity: bit `i` is the parity of bits `0..=i`.
#[inline(always)]
const fn parity(bits: u64) -> u64 {
    let bits = bits ^ bits << 1;
    let bits = bits ^ bits << 2;
    let bits = bits ^ bits << 4;
    let bits = bits ^ bits << 8;
    let bits = bits ^ bits << 16;
    bits ^ bits << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_fields_begin_at_field_starts_and_end_at_single_quotes() {
        for (record, expected) in [
            ("", vec![]),
            ("a,b\"c\",d\n", vec![]),
            ("\"a\"\n", vec!["a"]),
            ("\"\",\"a\"\"b\"x\"y,\"c\nd", vec!["", "a\"\"b", "c\nd"]),
        ] {
            let dialect = Dialect {
                delimiter: b',',
                backslash: false,
            };
            let fields = quoted_fields(record.as_bytes(), dialect);
            let fields: Vec<&str> = fields.into_iter().map(|field| &record[field]).collect();
            assert_eq!(fields, expected, "{record}");
        }
        let dialect = Dialect {
            delimiter: b',',
            backslash: true,
        };
        for (record, expected) in [
            ("\"a\\\"\",\\\",\"b\\\\\"\n", vec!["a\\\"", "b\\\\"]),
            ("\\,\"a,\"b\\", vec!["b\\"]),
            ("\\", vec![]),
        ] {
            let fields = quoted_fields(record.as_bytes(), dialect);
            let fields: Vec<&str> = fields.into_iter().map(|field| &record[field]).collect();
            assert_eq!(fields, expected, "{record}");
        }
    }
}
