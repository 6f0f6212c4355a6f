//! The stable Bloom filter in a line: counters of 1, 2, 4 or 8 bits, all lowered at once by arithmetic on whole words.

use super::draw::{Draw, Salt, piece};
use super::filter::Rule;
use crate::error::SpecError;
use crate::filters::published::cells::{Decrement, Lowering, StableSpec, Update};
use crate::filters::published::checks::{MOST_HASHES, open_unit, within};
use crate::hash::KeyHash;
use crate::kernels::{BitOps, LINE_BITS, scalar::Scalar};
use crate::memory::Line;
use crate::theory::stable::{decrements_for, stable_point_fpr};

/// SBF with cells of `D` bits (paper 004, algorithm 1): a key is a duplicate if and only if its K cells are all nonzero; then P cells lose 1 and the
/// K cells are set to Max.
///
/// An arrival lowers P of the line's 512/D cells and no others, so a cell is lowered as often as in the scattered form, and the stable point is
/// that of a filter of 512/D cells.
#[derive(Debug, Clone, Copy)]
pub(super) struct StableRule<const D: u32> {
    hashes: u32,
    decrements: u32,
    update: Update,
    decrement: Decrement,
    salt: Salt,
}

impl<const D: u32> StableRule<D> {
    const CELLS: u32 = LINE_BITS / D;
    const MAX: u64 = u64::MAX >> (64 - D);
    /// The lowest bit of each cell.
    const LOWEST: Line = Line([u64::MAX / Self::MAX; 8]);

    pub(super) fn new(spec: StableSpec, salt: Salt) -> Result<Self, SpecError> {
        let most = MOST_HASHES.min(Self::CELLS - 1);
        let hashes = within("k", spec.hashes, 1..=most)?;
        if spec.reach != 1.0 {
            let asked = spec.reach.to_string();
            return Err(SpecError::new("reach", asked, "1 in the line form"));
        }
        Ok(Self {
            hashes,
            decrements: decrements(spec.lowering, hashes, Self::MAX as u32, Self::CELLS)?,
            update: spec.update,
            decrement: spec.decrement,
            salt,
        })
    }

    /// The lowest bits of the cells of a key.
    #[inline(always)]
    fn cells_of<O: BitOps>(self, ops: O, key: KeyHash) -> O::Bits {
        let cell = |hash| ops.bit(piece(key, 0, hash, Self::CELLS) * D, true);
        let mut lowest = cell(0);
        for hash in 1..self.hashes {
            lowest = ops.or(lowest, cell(hash));
        }
        lowest
    }

    /// The lowest bits of the cells that are not zero.
    #[inline(always)]
    fn nonzero<O: BitOps>(ops: O, bits: O::Bits) -> O::Bits {
        let mut any = bits;
        let mut reach = D / 2;
        while reach > 0 {
            any = ops.or(any, ops.down(any, reach));
            reach /= 2;
        }
        ops.and(any, ops.load(&Self::LOWEST))
    }

    /// The cells with P of them lowered by 1.
    #[inline(always)]
    fn lowered<O: BitOps>(self, ops: O, bits: O::Bits, nonzero: O::Bits, draw: Draw) -> O::Bits {
        match self.decrement {
            Decrement::Consecutive => {
                let start = draw.below(0, u64::from(Self::CELLS)) as u32;
                let reached = run(ops, start * D, self.decrements * D);
                ops.minus(bits, ops.and(nonzero, reached))
            }
            Decrement::Independent => {
                let mut line = Line::EMPTY;
                ops.store(bits, &mut line);
                for step in 0..self.decrements {
                    let bit = piece(draw.hash(), 0, step, Self::CELLS) * D;
                    let (word, shift) = ((bit / 64) as usize % 8, bit % 64);
                    let cell = line.0[word] >> shift & Self::MAX;
                    line.0[word] -= u64::from(cell > 0) << shift;
                }
                ops.load(&line)
            }
        }
    }
}

/// `len` bits from `start` on, going on from bit 0 past the end of the line.
#[inline(always)]
fn run<O: BitOps>(ops: O, start: u32, len: u32) -> O::Bits {
    let end = start + len;
    let inside = ops.without(ops.below(end.min(LINE_BITS)), ops.below(start));
    ops.or(inside, ops.below(end.saturating_sub(LINE_BITS)))
}

impl<const D: u32> Rule for StableRule<D> {
    #[inline(always)]
    fn visit<O: BitOps>(self, ops: O, line: &mut Line, key: KeyHash) -> bool {
        let bits = ops.load(line);
        let nonzero = Self::nonzero(ops, bits);
        let own = self.cells_of(ops, key);
        let seen = ops.covers(nonzero, own);
        if !seen || self.update == Update::Every {
            let draw = self.salt.draw(key, ops.fold(bits));
            let lowered = self.lowered(ops, bits, nonzero, draw);
            // Each lowest bit, doubled D times, less itself: a cell of ones. Of the highest cell the doubled bit is beyond the word.
            let full = ops.minus(ops.up(own, D), own);
            ops.store(ops.or(lowered, full), line);
        }
        seen
    }

    fn holds(self, line: &Line, key: KeyHash) -> bool {
        Scalar.covers(Self::nonzero(Scalar, *line), self.cells_of(Scalar, key))
    }

    fn load(self, line: &Line) -> f64 {
        let taken: u32 = Self::nonzero(Scalar, *line)
            .0
            .iter()
            .map(|word| word.count_ones())
            .sum();
        f64::from(taken) / f64::from(Self::CELLS)
    }
}

/// P, from itself or from a bound on the FPR at the stable point of `cells` cells, rounded up.
fn decrements(lowering: Lowering, hashes: u32, max: u32, cells: u32) -> Result<u32, SpecError> {
    match lowering {
        Lowering::Cells(asked) => Ok(within("p", asked, 1..=u64::from(cells))? as u32),
        Lowering::FprAtMost(bound) => {
            let exact = decrements_for(open_unit("fps", bound)?, max, hashes, u64::from(cells));
            if exact.ceil() > f64::from(cells) {
                let least = stable_point_fpr(f64::from(cells), max, hashes, u64::from(cells));
                return Err(SpecError::new(
                    "fps",
                    bound.to_string(),
                    format!("{least:.3e} or more in a line of {cells} cells"),
                ));
            }
            Ok((exact.ceil() as u32).max(1))
        }
    }
}
