//! Records inside of something else that is written around them: elements of BER, arrays of JSON.
//!
//! Where such records begin depends on all bytes before, so the search for the last whole record
//! notes all pieces that it passes, and hands them over with the chunk.

use std::fmt::Debug;

use crate::fault::Problem;
use crate::format::{LastEnd, Pieces};

/// A scan of an input for its pieces.
pub(super) trait PieceScan: Clone + Debug + Send {
    /// Appends the pieces that end in `bytes` to `found`. Scanned before is `bytes[..from]`, and
    /// the last piece ended at `start`. Returns the end of the last piece now, and what is wrong
    /// behind it.
    fn find_pieces(
        &mut self,
        bytes: &[u8],
        start: usize,
        from: usize,
        found: &mut Pieces,
    ) -> (usize, Option<Problem>);

    /// What is wrong if the input ends here, with `rest` bytes behind the last piece.
    fn problem_at_end(&self, rest: usize) -> Option<Problem>;

    /// Whether nothing is open around what comes next.
    fn is_outside(&self) -> bool;

    /// Whether the input has begun, and nothing in it could hold a record.
    fn lacks_records(&self) -> bool;
}

/// Finds the last piece of a buffer.
#[derive(Debug)]
pub(super) struct LastPiece<S> {
    /// The scan at the start of an input.
    start: S,
    scan: S,
    /// The number of bytes between the last end and the end of the buffer.
    rest: usize,
    invalid: Option<Problem>,
    /// The pieces of the last search that found one.
    found: Pieces,
}

impl<S: PieceScan> LastPiece<S> {
    /// A search that begins with this scan.
    pub(super) fn new(start: S) -> Self {
        Self {
            scan: start.clone(),
            start,
            rest: 0,
            invalid: None,
            found: Pieces::default(),
        }
    }
}

impl<S: PieceScan> LastEnd for LastPiece<S> {
    fn find(&mut self, bytes: &[u8], from: usize) -> Option<usize> {
        if self.invalid.is_some() {
            return None;
        }
        let start = from - self.rest;
        let (last, invalid) = self.scan.find_pieces(bytes, start, from, &mut self.found);
        self.rest = bytes.len() - last;
        self.invalid = invalid;
        (last > start).then_some(last)
    }

    fn problem_at_end(&self) -> Option<Problem> {
        self.invalid.or_else(|| self.scan.problem_at_end(self.rest))
    }

    fn is_malformed(&self) -> bool {
        self.invalid.is_some()
    }

    fn is_malformed_inside(&self) -> bool {
        true
    }

    fn may_be_set_aside(&self) -> bool {
        // Without its end, what is around a record would hold what follows.
        !self.is_malformed() && self.scan.is_outside()
    }

    fn pieces(&mut self) -> Option<&mut Pieces> {
        Some(&mut self.found)
    }

    fn lacks_records(&self) -> bool {
        self.scan.lacks_records()
    }

    fn reset(&mut self) {
        *self = Self::new(self.start.clone());
    }
}
