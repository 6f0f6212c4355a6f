//! The stable Bloom filter in a line: counters of 1, 2, 4 or 8 bits, all lowered at once by arithmetic on whole words.

use super::filter::{LineAllocation, LineFilter, Rule};
use super::layout::{BitLayout, Count, Fixed, Ranges};
use super::random::{Draw, Salt, piece};
use crate::error::{BuildError, SpecError};
use crate::filters::scattered::cells::{Decrement, StableSpec, Update};
use crate::hash::KeyHash;
use crate::kernels::{BitOps, LINE_BITS, LineOps, Outcome, scalar::Scalar};
use crate::limits::{MOST_HASHES, within};
use crate::memory::Line;
use crate::report::Cells;

/// SBF with cells of `D` bits (paper 004, algorithm 1): a key is a duplicate if and only if its K cells are all nonzero; then P cells mark_lost 1 and the
/// K cells are set to Max.
///
/// ```text
/// | K filters of 504/D cells together | count: 8 bits |
/// ```
///
/// An arrival lowers P of the line's cells and no others, so a cell is lowered as often as in the scattered form, and the stable point is
/// that of a filter of 504/D cells. The K cells of a key lie in K ranges: in so few cells, positions drawn from all of them would coincide often
/// enough to break a bound on the FPR. The line counts its updates, for one that finds the line as it leaves it would draw the same cells for ever.
#[derive(Debug, Clone, Copy)]
pub(super) struct StableRule<const D: u32, C> {
    layout: Ranges<C>,
    decrements: u32,
    update: Update,
    decrement: Decrement,
    salt: Salt,
}

/// The bits of a line that are left for cells.
const CELLS_BITS: u32 = LINE_BITS - 8;
/// What a line that counts one update is less by: 1 in the highest byte is this much short of 2^64.
const COUNT_ONE: Line = Line([
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    (1_u64 << (CELLS_BITS % 64)).wrapping_neg(),
]);

impl<const D: u32, C: Count> StableRule<D, C> {
    const CELLS: u32 = CELLS_BITS / D;
    const MAX: u64 = u64::MAX >> (64 - D);
    /// The lowest bit of each cell.
    const LOWEST: Line = {
        let mut lowest = [u64::MAX / Self::MAX; 8];
        lowest[7] &= (1 << (CELLS_BITS % 64)) - 1;
        Line(lowest)
    };

    /// The rule for `count` cells a key, which are those of the specification.
    pub(super) fn new(spec: StableSpec, count: C, salt: Salt) -> Result<Self, SpecError> {
        // A range of one cell would hold nothing that tells keys apart.
        let most = MOST_HASHES.min(Self::CELLS / 2);
        let hashes = within("k", spec.hashes, 1..=most)?;
        if spec.reach != 1.0 {
            let asked = spec.reach.to_string();
            return Err(SpecError::new("reach", asked, "1 in the line form"));
        }
        let max = Self::MAX as u32;
        let decrements = spec
            .lowering
            .decrements(hashes, max, u64::from(Self::CELLS))? as u32;
        Ok(Self {
            layout: Ranges::in_bits(count, Self::CELLS),
            decrements,
            update: spec.update,
            decrement: spec.decrement,
            salt,
        })
    }

    /// The lowest bits of the cells of a key.
    #[inline(always)]
    fn cells_of<O: BitOps>(self, ops: O, key: KeyHash) -> O::Bits {
        self.layout
            .each(ops, |hash| (self.layout.bit_of(key, hash) * D, true))
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

/// `len` bits from `start` on, going on from bit 0 past the last cell.
#[inline(always)]
fn run<O: BitOps>(ops: O, start: u32, len: u32) -> O::Bits {
    let end = start + len;
    let inside = ops.without(ops.below(end.min(CELLS_BITS)), ops.below(start));
    ops.or(inside, ops.below(end.saturating_sub(CELLS_BITS)))
}

impl<const D: u32, C: Count> Rule for StableRule<D, C> {
    #[inline(always)]
    fn visit<O: LineOps>(self, ops: O, line: &mut Line, key: KeyHash) -> Outcome {
        let bits = ops.load(line);
        let nonzero = Self::nonzero(ops, bits);
        let own = self.cells_of(ops, key);
        let seen = ops.covers(nonzero, own);
        if !seen || self.update == Update::Every {
            let draw = self.salt.draw(key, ops.fold(bits));
            let lowered = self.lowered(ops, bits, nonzero, draw);
            // Each lowest bit, doubled D times, less itself: a cell of ones. Of a word's highest cell the doubled bit is beyond the word.
            let full = ops.minus(ops.up(own, D), own);
            let counted = ops.minus(ops.or(lowered, full), ops.load(&COUNT_ONE));
            ops.store(counted, line);
        }
        Outcome::of(seen)
    }

    fn holds(self, line: &Line, key: KeyHash) -> bool {
        Scalar.covers(Self::nonzero(Scalar, *line), self.cells_of(Scalar, key))
    }

    fn decrements(self) -> Option<u32> {
        Some(self.decrements)
    }

    fn fpr(self, line: &Line, _: u64) -> f64 {
        let nonzero = Self::nonzero(Scalar, *line);
        self.layout.chance_of_all(&nonzero, D)
    }

    fn cells(self, line: &Line) -> Cells {
        let nonzero = Self::nonzero(Scalar, *line).0;
        let occupied = nonzero.iter().map(|word| u64::from(word.count_ones()));
        Cells::new(occupied.sum(), Self::CELLS.into())
    }
}

/// Builds the line form of SBF.
///
/// Cells have 1, 2, 4 or 8 bits. P follows from a bound on the false positive rate as for a filter
/// of one line's cells, which each line is; the measured rate keeps within 3 % of the bound for all d
/// and for K up to 31. Independent decrements are done cell by cell, without vectors.
pub(crate) fn build(
    spec: &StableSpec,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    match spec.cell_bits {
        1 => build_cells::<1>(spec, allocation),
        2 => build_cells::<2>(spec, allocation),
        4 => build_cells::<4>(spec, allocation),
        8 => build_cells::<8>(spec, allocation),
        bits => Err(SpecError::new("d", bits.to_string(), "1, 2, 4 or 8 in the line form").into()),
    }
}

fn build_cells<const D: u32>(
    spec: &StableSpec,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    match spec.hashes {
        2 => allocation.build(StableRule::<D, _>::new(
            *spec,
            Fixed::<2>,
            Salt::from_seed(allocation.seed),
        )?),
        3 => allocation.build(StableRule::<D, _>::new(
            *spec,
            Fixed::<3>,
            Salt::from_seed(allocation.seed),
        )?),
        hashes => allocation.build(StableRule::<D, _>::new(
            *spec,
            hashes,
            Salt::from_seed(allocation.seed),
        )?),
    }
}
