//! `--format ber:container=PATH`: records inside of elements that hold many of them.
//!
//! Where records begin depends on all elements before, so the search for the last whole record
//! notes all pieces that it passes, and hands them over with the chunk.

use echoless_ber::{ContainerScan, Invalid, Piece, PieceKind, TagPath};

use super::ber::malformed;
use crate::binary::{BinaryFraming, FramingFacts};
use crate::chunk::{Chunk, Edge, ElementEdge};
use crate::fault::Problem;
use crate::format::{Extent, LastEnd};

/// The elements on a path, and the records in the innermost ones.
#[derive(Debug)]
pub(super) struct Containers {
    /// At the start of an input.
    scan: ContainerScan,
}

impl Containers {
    /// The records are the children of the elements on this path.
    pub(super) fn new(path: &TagPath) -> Self {
        Self {
            scan: ContainerScan::new(path),
        }
    }
}

impl BinaryFraming for Containers {
    fn facts(&self) -> FramingFacts {
        FramingFacts {
            record_bytes: None,
            depends_on_start: true,
            file_header_end: None,
            extent: Extent::Unsaid,
        }
    }

    #[inline(always)]
    fn content<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        record
    }

    /// The ends of all pieces of an input from its start on. Chunks have theirs from
    /// [`LastEnd::hand_over`].
    fn record_ends(&self, bytes: &[u8], start: usize, ends: &mut Vec<usize>) {
        let mut scan = self.scan.clone();
        let mut at = start;
        while let Ok(Some(piece)) = scan.next(bytes, at) {
            at = piece.end;
            ends.push(at);
        }
        if at < bytes.len() {
            ends.push(bytes.len());
        }
    }

    fn most_records(&self, bytes: &[u8]) -> usize {
        bytes.len()
    }

    fn last_end(&self) -> Box<dyn LastEnd> {
        Box::new(LastPiece {
            start: self.scan.clone(),
            scan: self.scan.clone(),
            rest: 0,
            invalid: None,
            found: Found::default(),
        })
    }
}

/// The pieces of a buffer that are found.
#[derive(Debug, Default)]
pub(super) struct Found {
    ends: Vec<usize>,
    /// The pieces that are no records.
    frame: Vec<usize>,
    edges: Vec<ElementEdge>,
}

impl Found {
    /// Appends a piece. One that is no record goes on with another one that has no edge.
    pub(super) fn push(&mut self, end: usize, is_record: bool) {
        let last = self.ends.len().wrapping_sub(1);
        let has_edges = self.edges.last().is_some_and(|edge| edge.piece == last);
        if !is_record && self.frame.last() == Some(&last) && !has_edges {
            self.ends[last] = end;
        } else {
            self.push_alone(end, is_record);
        }
    }

    /// Appends a piece that is not joined with the one before.
    fn push_alone(&mut self, end: usize, is_record: bool) {
        self.ends.push(end);
        if !is_record {
            self.frame.push(self.ends.len() - 1);
        }
    }

    /// Notes an edge of the last piece.
    pub(super) fn push_edge(&mut self, edge: Edge) {
        let piece = self.ends.len() - 1;
        self.edges.push(ElementEdge { piece, edge });
    }

    /// Moves the pieces, whose ends are those behind a byte order mark, into the chunk.
    pub(super) fn hand_over(&mut self, chunk: &mut Chunk) {
        let mark = chunk.bytes.mark;
        chunk
            .layout
            .ends
            .extend(self.ends.drain(..).map(|end| mark + end));
        chunk.unkeyed.frame.append(&mut self.frame);
        chunk.layout.edges.append(&mut self.edges);
    }
}

fn push(found: &mut Found, piece: Piece) {
    match piece.kind {
        PieceKind::Opens { length_at, length } => {
            found.push_alone(piece.end, false);
            found.push_edge(Edge::Opens { length_at, length });
        }
        kind => found.push(piece.end, kind == PieceKind::Record),
    }
    for _ in 0..piece.closes {
        found.push_edge(Edge::Closes);
    }
}

#[derive(Debug)]
struct LastPiece {
    /// The scan at the start of an input.
    start: ContainerScan,
    scan: ContainerScan,
    /// The number of bytes between the last end and the end of the buffer.
    rest: usize,
    invalid: Option<Invalid>,
    /// The pieces of the last search that found one.
    found: Found,
}

impl LastEnd for LastPiece {
    fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        let start = from - self.rest;
        let mut at = start;
        loop {
            match self.scan.next(bytes, at) {
                Ok(Some(piece)) => {
                    at = piece.end;
                    push(&mut self.found, piece);
                }
                Ok(None) => break,
                Err(invalid) => {
                    self.invalid = Some(invalid);
                    break;
                }
            }
        }
        self.rest = bytes.len() - at;
        (at > start).then_some(at)
    }

    fn problem_at_end(&self) -> Option<Problem> {
        if let Some(invalid) = self.invalid {
            return Some(malformed(invalid));
        }
        if self.rest > 0 {
            let (has, needs) = (self.rest, self.scan.needs());
            return Some(Problem::CutShort { has, needs });
        }
        (!self.scan.is_outside()).then_some(Problem::MalformedAt {
            at: 0,
            problem: "the input ends inside of an element that holds records",
        })
    }

    fn is_malformed(&self) -> bool {
        self.invalid.is_some()
    }

    fn may_be_set_aside(&self) -> bool {
        // Without their ends, elements around a record would hold what follows.
        !self.is_malformed() && self.scan.is_outside()
    }

    fn hand_over(&mut self, chunk: &mut Chunk) {
        self.found.hand_over(chunk);
    }

    fn lacks_records(&self) -> bool {
        // A scan that was not begun is at the start of an empty input.
        self.scan.has_begun() && !self.scan.has_container()
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
