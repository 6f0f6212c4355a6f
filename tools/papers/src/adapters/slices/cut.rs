//! The cut of a table of cells into vertical slices and their pieces, and the checks of the paths
//! that name slices of any cut.

use std::ops::Range;

use echoless::{KeyHash, SpecError};

/// The first of the [`KeyHash::remix`] streams that choose the piece of a key, one stream for each
/// vertical slice. No filter draws positions from them.
const PIECE_STREAMS: u64 = 0x7069_6563_6573_0000;

/// A table cut into S slices, and each slice into S' pieces (1 if the slices are not cut).
///
/// Slice i owns the cells ceil(i m / S) to ceil((i + 1) m / S) - 1 (paper 001, definition 2). The
/// pieces of a slice are ranges of it in the same way. With S' above 1 each slice is a horizontal
/// filter of its own: a hash of the key, another one for each slice, chooses the piece, and the
/// position within the slice is scaled down to the piece.
///
/// ```text
///   cells   | slice 0                   | slice 1                   | ...
///   pieces  | 0,0 | 0,1 | 0,2 | 0,3     | 1,0 | 1,1 | 1,2 | 1,3     | ...
/// ```
#[derive(Debug, Clone, Copy)]
pub(super) struct Cut {
    cells: u64,
    slices: u64,
    pieces: u64,
}

impl Cut {
    /// Cuts `cells` cells; there is at least one for each piece.
    pub(super) fn new(cells: u64, slices: u32, pieces: u32) -> Self {
        let (slices, pieces) = (u64::from(slices), u64::from(pieces));
        debug_assert!(slices > 0 && pieces > 0 && slices * pieces <= cells);
        Self {
            cells,
            slices,
            pieces,
        }
    }

    /// S, the number of slices.
    pub(super) const fn slices(self) -> usize {
        self.slices as usize
    }

    /// S', the number of pieces of a slice.
    pub(super) const fn pieces(self) -> usize {
        self.pieces as usize
    }

    fn slice(self, slice: u64) -> Range<u64> {
        part(0..self.cells, self.slices, slice)
    }

    /// The cells of a piece; pieces are numbered through all slices.
    pub(super) fn range(self, piece: usize) -> Range<u64> {
        let piece = piece as u64;
        part(
            self.slice(piece / self.pieces),
            self.pieces,
            piece % self.pieces,
        )
    }

    /// The piece and the cell of a key whose position in the uncut table is `position`.
    #[inline]
    pub(super) fn locate(self, key: KeyHash, position: u64) -> (usize, u64) {
        let slice = scale(position, self.slices, self.cells);
        if self.pieces == 1 {
            return (slice as usize, position);
        }
        let piece = KeyHash::from_uniform(key.remix(PIECE_STREAMS + slice)).line(self.pieces);
        let piece = slice * self.pieces + piece;
        let (whole, range) = (self.slice(slice), self.range(piece as usize));
        let within = scale(
            position - whole.start,
            range.end - range.start,
            whole.end - whole.start,
        );
        (piece as usize, range.start + within)
    }
}

/// floor(value * to / from), without overflow.
fn scale(value: u64, to: u64, from: u64) -> u64 {
    (u128::from(value) * u128::from(to) / u128::from(from)) as u64
}

/// Part `index` of `count` of a range. Cell x of n lies in part floor(x * count / n).
fn part(range: Range<u64>, count: u64, index: u64) -> Range<u64> {
    let len = u128::from(range.end - range.start);
    let bound = |index: u64| {
        let before = (len * u128::from(index)).div_ceil(u128::from(count));
        range.start + before as u64
    };
    bound(index)..bound(index + 1)
}

/// The most slices of one cut.
pub(super) const MOST_SLICES: u32 = 1 << 16;

/// Checks one step of a path. Fails if `index` is not below `count`; the error names the whole
/// path.
pub(super) fn check_index(path: &[usize], index: usize, count: usize) -> Result<usize, SpecError> {
    if index < count {
        return Ok(index);
    }
    let allowed = format!("0 to {} in each place", count - 1);
    Err(SpecError::new("slice", path_text(path), allowed))
}

/// The error about a path of the wrong length.
pub(super) fn wrong_depth(path: &[usize], allowed: &str) -> SpecError {
    SpecError::new("slice", path_text(path), allowed)
}

fn path_text(path: &[usize]) -> String {
    let indices: Vec<String> = path.iter().map(usize::to_string).collect();
    indices.join("/")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_tile_the_table_and_own_the_positions_located_in_them(
            slices in 1_u32..40,
            pieces in 1_u32..10,
            more in prop_oneof![0_u64..500, 0_u64..1 << 50],
            positions in prop::collection::vec(any::<(u64, u64)>(), 1..50),
        ) {
            let least = u64::from(slices) * u64::from(pieces);
            let cut = Cut::new(least + more, slices, pieces);
            let mut next = 0;
            for piece in 0..cut.slices() * cut.pieces() {
                let range = cut.range(piece);
                prop_assert_eq!(range.start, next);
                prop_assert!(range.end > range.start);
                next = range.end;
            }
            prop_assert_eq!(next, cut.cells);
            for (key, position) in positions {
                let position = position % cut.cells;
                let (piece, cell) = cut.locate(KeyHash::from_uniform(key), position);
                prop_assert!(cut.range(piece).contains(&cell));
                // The slice is that of the uncut position.
                let slice = cut.slice((piece / cut.pieces()) as u64);
                prop_assert!(slice.contains(&position));
                if pieces == 1 {
                    prop_assert_eq!(cell, position);
                }
            }
        }
    }
}
