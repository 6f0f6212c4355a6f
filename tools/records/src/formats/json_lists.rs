//! `--format json:container=PATH`: records in the arrays on a path, or in an array that is all of
//! the input.
//!
//! As with elements of BER, where records begin depends on all bytes before, so the search for the
//! last whole record hands over the pieces that it passes. The comma in front of a record is at its
//! start: an output drops that of the first record which it gets of an array.

use super::containers::Found;
use super::json::JsonValues;
use crate::chunk::{Chunk, Edge};
use crate::fault::Problem;
use crate::field_set::FieldSet;
use crate::format::{Format, FormatFacts, LastEnd};
use crate::json::lists::{ListPath, ListPiece, ListScan, without_comma};
use crate::json::scan::Invalid;
use crate::split::FieldBytes;
use crate::terminators::append_last;

/// The elements of the arrays on a path.
#[derive(Debug)]
pub(super) struct JsonLists {
    values: JsonValues,
    facts: FormatFacts,
    /// At the start of an input.
    scan: ListScan,
}

impl JsonLists {
    /// The elements, with the fields of these values.
    pub(super) fn new(path: ListPath, values: JsonValues) -> Self {
        let facts = FormatFacts {
            terminator: b"",
            depends_on_start: true,
            // A tag is written without what is around the records.
            tag_style: None,
            ..values.facts().clone()
        };
        Self {
            values,
            facts,
            scan: ListScan::new(path),
        }
    }
}

impl Format for JsonLists {
    fn facts(&self) -> &FormatFacts {
        &self.facts
    }

    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        without_comma(record)
    }

    /// The ends of all pieces of an input from its start on. Chunks have theirs from
    /// [`LastEnd::hand_over`].
    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        let pieces = self.scan.clone().scan(&bytes[start..], 0, |_, end| {
            ends.push(start + end);
        });
        // What is wrong behind the last one is said where chunks are cut.
        let _ = pieces;
        append_last(bytes, start, ends);
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::new(LastListPiece {
            start: self.scan.clone(),
            scan: self.scan.clone(),
            rest: 0,
            invalid: None,
            found: Found::default(),
        })
    }

    #[inline(always)]
    fn select(
        &self,
        fields: &FieldSet,
        content: &[u8],
        scratch: &mut Vec<u8>,
        chosen: &mut Vec<FieldBytes>,
    ) -> Result<(), Problem> {
        self.values.select(fields, content, scratch, chosen)
    }

    fn terminator_of(&self, _records: &[u8]) -> Option<&'static [u8]> {
        Some(b"")
    }

    fn most_records(&self, bytes: &[u8]) -> usize {
        // Each record but the first of an array has a comma, each array a piece before and one
        // behind it.
        let commas = memchr::memchr_iter(b',', bytes).count();
        commas + 3 * memchr::memchr_iter(b'[', bytes).count() + 2
    }

    fn alone<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        Some(without_comma(record))
    }
}

#[derive(Debug)]
struct LastListPiece {
    /// The scan at the start of an input.
    start: ListScan,
    scan: ListScan,
    /// The number of bytes between the last end and the end of the buffer.
    rest: usize,
    /// What is wrong, with the offset behind the last end.
    invalid: Option<Invalid>,
    /// The pieces of the last search that found one.
    found: Found,
}

impl LastEnd for LastListPiece {
    fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        if self.invalid.is_some() {
            return None;
        }
        let start = from - self.rest;
        let mut last = start;
        let found = &mut self.found;
        let scanned = self.scan.scan(bytes, from, |piece, end| {
            last = end;
            found.push(end, piece == ListPiece::Record);
            match piece {
                ListPiece::Opens { objects } => found.push_edge(Edge::OpensList { objects }),
                ListPiece::Closes => found.push_edge(Edge::Closes),
                ListPiece::Record | ListPiece::Frame => {}
            }
        });
        // What is in front of the damage does not depend on how the bytes arrive.
        if let Err(Invalid { at, .. }) = scanned
            && self.scan.is_in_frame()
            && at > last
        {
            last = at;
            found.push(at, false);
        }
        self.rest = bytes.len() - last;
        self.invalid = scanned.err().map(|Invalid { at, problem }| Invalid {
            at: at - last,
            problem,
        });
        (last > start).then_some(last)
    }

    fn problem_at_end(&self) -> Option<Problem> {
        if let Some(Invalid { at, problem }) = self.invalid {
            return Some(Problem::MalformedAt { at, problem });
        }
        (!self.scan.is_outside()).then_some(Problem::Malformed(
            "the input ends inside of the value that this is a part of",
        ))
    }

    fn is_malformed(&self) -> bool {
        self.invalid.is_some()
    }

    fn may_be_set_aside(&self) -> bool {
        // Without its bracket, an array would hold what follows.
        !self.is_malformed() && self.scan.is_outside()
    }

    fn hand_over(&mut self, chunk: &mut Chunk) {
        self.found.hand_over(chunk);
    }

    fn lacks_records(&self) -> bool {
        self.scan.has_begun() && !self.scan.has_list()
    }

    fn reset(&mut self) {
        *self = Self {
            start: self.start.clone(),
            scan: self.start.clone(),
            rest: 0,
            invalid: None,
            found: Found::default(),
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The ends of records, the end of all pieces, and where damage follows, of a text that arrives
    /// in parts of this size.
    fn found(path: &str, bytes: &[u8], size: usize) -> (Vec<usize>, usize, Option<usize>) {
        let scan = ListScan::new(ListPath::parse(path).unwrap());
        let mut last = LastListPiece {
            start: scan.clone(),
            scan,
            rest: 0,
            invalid: None,
            found: Found::default(),
        };
        let (mut records, mut end) = (Vec::new(), 0);
        for from in (0..bytes.len()).step_by(size) {
            let until = bytes.len().min(from + size);
            end = last.find(&bytes[..until], from).unwrap_or(end);
            let mut chunk = Chunk::default();
            last.hand_over(&mut chunk);
            let is_record = |piece: &usize| !chunk.unkeyed.frame.contains(piece);
            let ends = &chunk.layout.ends;
            records.extend((0..ends.len()).filter(is_record).map(|piece| ends[piece]));
        }
        (records, end, last.invalid.map(|invalid| end + invalid.at))
    }

    proptest! {
        #[test]
        fn what_is_in_front_of_damage_does_not_depend_on_how_the_bytes_arrive(
            bytes in vec(prop::sample::select(b"{}[]\"\\ \n1a,:".to_vec()), 0..60),
            start in prop::sample::select(vec!["", "[1", "{\"a\":[1]", "{\"a\":1}"]),
            size in 1_usize..9,
        ) {
            let bytes = [start.as_bytes(), &bytes].concat();
            for path in [".", "a"] {
                let (records, end, damage) = found(path, &bytes, 100);
                let mut pieces = found(path, &bytes, size);
                if damage.is_none() {
                    // A record may begin in the rest.
                    pieces.1 = end;
                }
                prop_assert_eq!((records, end, damage), pieces);
            }
        }
    }
}
