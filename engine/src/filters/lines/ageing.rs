//! The ageing policies of bit filters in a line: which bits are cleared, and whether the key's bits are set.

use std::fmt::Debug;

use super::layout::BitLayout;
use super::random::Draw;
use crate::filters::scattered::bits::Reservoir;
use crate::hash::KeyHash;
use crate::kernels::{BitOps, LINE_BITS, scalar::Scalar};
use crate::memory::Line;

/// An arrival at a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival<B> {
    pub(super) key: KeyHash,
    /// The bits of the key.
    pub(super) own: B,
    /// Whether they were all set.
    pub(super) seen: bool,
    pub(super) draw: Draw,
}

/// A policy of paper 000 (Bloom aside), as [`Ageing`](crate::filters::scattered::bits::Ageing) describes them.
pub(super) trait LineAgeing: Copy + Debug + Send + 'static {
    /// Makes the line what it is after the arrival.
    fn age<O: BitOps, P: BitLayout>(
        self,
        ops: O,
        layout: P,
        line: &mut Line,
        arrival: Arrival<O::Bits>,
    );
}

/// Clears `cleared` if the key is fresh and sets its own bits, which a key that was seen has already.
#[inline(always)]
fn replace<O: BitOps>(ops: O, line: &mut Line, cleared: O::Bits, arrival: Arrival<O::Bits>) {
    let kept = ops.without(ops.load(line), ops.only_if(!arrival.seen, cleared));
    ops.store(ops.or(kept, arrival.own), line);
}

/// Bloom: nothing is cleared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Never;

/// BSBF: a random bit in each filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct EachFilter;

/// BSBFSD: a random bit of a random filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct OneFilter;

/// RLBSBF: a random bit in each filter, with the probability of its load.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByFill;

impl LineAgeing for Never {
    #[inline(always)]
    fn age<O: BitOps, P: BitLayout>(
        self,
        ops: O,
        _: P,
        line: &mut Line,
        arrival: Arrival<O::Bits>,
    ) {
        ops.store(ops.or(ops.load(line), arrival.own), line);
    }
}

impl LineAgeing for EachFilter {
    #[inline(always)]
    fn age<O: BitOps, P: BitLayout>(
        self,
        ops: O,
        layout: P,
        line: &mut Line,
        arrival: Arrival<O::Bits>,
    ) {
        let cleared = layout.others(ops, arrival.key, arrival.draw);
        replace(ops, line, cleared, arrival);
    }
}

impl LineAgeing for OneFilter {
    #[inline(always)]
    fn age<O: BitOps, P: BitLayout>(
        self,
        ops: O,
        layout: P,
        line: &mut Line,
        arrival: Arrival<O::Bits>,
    ) {
        let cleared = layout.other_of_one(ops, arrival.key, arrival.draw);
        replace(ops, line, cleared, arrival);
    }
}

impl LineAgeing for ByFill {
    #[inline(always)]
    fn age<O: BitOps, P: BitLayout>(
        self,
        ops: O,
        layout: P,
        line: &mut Line,
        arrival: Arrival<O::Bits>,
    ) {
        let cleared = layout.others_by_fill(ops, arrival.key, arrival.draw, line);
        replace(ops, line, cleared, arrival);
    }
}

/// RSBF: the line counts its own arrivals in its last bits.
///
/// ```text
/// | k filters in 496 bits | count: 16 bits |
/// ```
///
/// The s and i of the paper are those of the line, so s/i is the same but for the spread of arrivals over lines. From there on i is taken to be
/// [`MOST_ARRIVALS`], while the count runs through the numbers above it again and again: a line that is always the same would always draw the same.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted(pub(super) Reservoir);

/// The bits of the count.
const COUNT_BITS: u32 = 16;
/// The bits of a line that are left for filters.
pub(super) const COUNTED_LINE_BITS: u32 = LINE_BITS - COUNT_BITS;
/// Where the count starts in the last word.
const COUNT_SHIFT: u32 = 64 - COUNT_BITS;
/// The most arrivals that are told apart: 65,280.
pub(super) const MOST_ARRIVALS: u64 = (1 << COUNT_BITS) - (1 << 8);

/// The count of one arrival more.
#[inline(always)]
const fn counted(count: u64) -> u64 {
    if count + 1 < 1 << COUNT_BITS {
        count + 1
    } else {
        MOST_ARRIVALS
    }
}

/// The stream of the draw that decides on insertion, and the first of those that pick set bits; apart from those of [`BitLayout`].
const INSERT_STREAM: u64 = 33;
const SET_BIT_STREAM: u64 = 34;

impl LineAgeing for Counted {
    #[inline(always)]
    fn age<O: BitOps, P: BitLayout>(
        self,
        ops: O,
        layout: P,
        line: &mut Line,
        arrival: Arrival<O::Bits>,
    ) {
        let count = counted(line.0[7] >> COUNT_SHIFT);
        let arrivals = count.min(MOST_ARRIVALS);
        // s, rounded down.
        let size = u64::from(COUNTED_LINE_BITS / layout.filters());
        let early = arrivals <= size;
        let lucky = early || arrival.draw.below(INSERT_STREAM, arrivals) < size;
        let cleared = match self.0 {
            Reservoir::Tabled => lucky.then(|| layout.others(ops, arrival.key, arrival.draw)),
            Reservoir::Described { .. } if early => Some(ops.bit(0, false)),
            Reservoir::Described { .. } if arrival.seen => None,
            Reservoir::Described { threshold } if size as f64 <= threshold * arrivals as f64 => {
                let mut own = Line::EMPTY;
                ops.store(arrival.own, &mut own);
                Some(ops.load(&set_bits(layout, *line, own, arrival.draw)))
            }
            Reservoir::Described { .. } => {
                lucky.then(|| layout.others(ops, arrival.key, arrival.draw))
            }
        };
        if let Some(cleared) = cleared {
            let kept = ops.without(ops.load(line), cleared);
            ops.store(ops.or(kept, arrival.own), line);
        }
        line.0[7] = line.0[7] << COUNT_BITS >> COUNT_BITS | count << COUNT_SHIFT;
    }
}

/// A random set bit of each filter in which the key's own bit is zero.
#[inline(always)]
fn set_bits<P: BitLayout>(layout: P, line: Line, own: Line, draw: Draw) -> Line {
    let mut picked = Line::EMPTY;
    for filter in 0..layout.filters() {
        let up_to = Scalar.below(layout.start(filter + 1));
        let range = Scalar.without(up_to, Scalar.below(layout.start(filter)));
        let ones = Scalar.and(line, range);
        let count: u32 = ones.0.iter().map(|word| word.count_ones()).sum();
        if count > 0 && !Scalar.covers(ones, Scalar.and(own, range)) {
            let rank = draw.below(SET_BIT_STREAM + u64::from(filter), u64::from(count));
            add_set_bit(&mut picked, ones, rank as u32);
        }
    }
    picked
}

/// Adds the set bit of `ones` that has `rank` others below it.
#[inline(always)]
fn add_set_bit(picked: &mut Line, ones: Line, mut rank: u32) {
    for (word, picked) in ones.0.iter().zip(&mut picked.0) {
        let here = word.count_ones();
        if rank < here {
            let mut rest = *word;
            for _ in 0..rank {
                rest &= rest - 1;
            }
            *picked |= rest & rest.wrapping_neg();
            return;
        }
        rank -= here;
    }
}
