//! The ageing policies of bit filters in a line: which bits an arrival clears, and whether it sets
//! the bits of its key.
//!
//! ```text
//! line      1 1 0 1 | 0 1 1 0       2 filters (of 4 bits here, of 256 in a line)
//! own       . . 1 . | . 1 . .       the bits of the key; not all set, so the key is fresh
//! cleared   1 . . . | . . . 1       a random other bit of each filter (BSBF)
//! line'     0 1 1 1 | 0 1 1 0       line without cleared, or own
//! ```
//!
//! All three are whole lines in registers, so that a visit is a few vector operations for any k.

use std::fmt::Debug;

use super::layout::{Arrival, BitLayout, Clearing};
use super::random::Draw;
use crate::kernels::{BitOps, LINE_BITS};
use crate::scattered::bits::Reservoir;
use echoless::extend::Scalar;
use echoless::memory::Line;

/// An ageing policy of paper 000, or none for Bloom.
/// [`Ageing`](crate::scattered::bits::Ageing) describes the policies.
pub(super) trait LineAgeing: Copy + Debug + Send + Sync + 'static {
    /// Whether every arrival changes the line. Where it does not, a duplicate changes nothing: the
    /// bits of its key are set, and only a fresh key clears others.
    const COUNTS_ARRIVALS: bool = false;

    /// Updates the line for the arrival.
    fn age<O: BitOps, P: BitLayout>(self, layout: P, line: &mut Line, arrival: Arrival<O>);
}

/// Sets the bits of the key, and clears others, which are never its own.
///
/// The own bits of a duplicate are set already, so that only `cleared` depends on the verdict. It
/// is a mask, because a branch on the verdict could not be predicted.
#[inline(always)]
fn replace<O: BitOps>(line: &mut Line, cleared: Clearing<O>, arrival: Arrival<O>) {
    let Arrival { ops, own, .. } = arrival;
    let recorded = ops.or(ops.load(line), own);
    ops.store(ops.clear(recorded, cleared.bits, cleared.words), line);
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

/// RLBSBF: a random bit in each filter, each with a probability equal to the fill of its filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByFill;

impl LineAgeing for Never {
    #[inline(always)]
    fn age<O: BitOps, P: BitLayout>(self, _: P, line: &mut Line, arrival: Arrival<O>) {
        let Arrival { ops, own, .. } = arrival;
        ops.store(ops.or(ops.load(line), own), line);
    }
}

impl LineAgeing for EachFilter {
    #[inline(always)]
    fn age<O: BitOps, P: BitLayout>(self, layout: P, line: &mut Line, arrival: Arrival<O>) {
        let cleared = Clearing {
            bits: layout.others(arrival),
            words: arrival.ops.words_if(!arrival.seen),
        };
        replace(line, cleared, arrival);
    }
}

impl LineAgeing for OneFilter {
    #[inline(always)]
    fn age<O: BitOps, P: BitLayout>(self, layout: P, line: &mut Line, arrival: Arrival<O>) {
        replace(line, layout.other_of_one(arrival), arrival);
    }
}

impl LineAgeing for ByFill {
    #[inline(always)]
    fn age<O: BitOps, P: BitLayout>(self, layout: P, line: &mut Line, arrival: Arrival<O>) {
        let cleared = layout.others_by_fill(arrival, line);
        replace(line, cleared, arrival);
    }
}

/// RSBF: the line counts its own arrivals in its last bits.
///
/// ```text
/// bit 0                  495 496        511
/// | k filters                | count      |
/// ```
///
/// The s and i of the paper are the size of a filter in this line and the arrivals at this line.
/// Their ratio is that of the scattered filter, up to the uneven distribution of arrivals over
/// lines.
///
/// The count saturates as i, but never stands still: past [`MOST_ARRIVALS`] it cycles through the
/// numbers above, and i stays at [`MOST_ARRIVALS`]. An unchanged line would repeat its draw.
///
/// ```text
/// count   1, 2, 3, ...  65,280, 65,281, ...  65,535, 65,280, 65,281, ...
/// i       1, 2, 3, ...  65,280, 65,280, ...  65,280, 65,280, 65,280, ...
/// ```
#[derive(Debug, Clone, Copy)]
pub(super) struct ByReservoir(pub(super) Reservoir);

/// The width of the count in bits.
const COUNT_BITS: u32 = 16;
/// The number of bits of a line that are left for filters: 496.
pub(super) const COUNTED_LINE_BITS: u32 = LINE_BITS - COUNT_BITS;
/// The position of the count in the last word: its highest bits.
const COUNT_SHIFT: u32 = 64 - COUNT_BITS;
/// The highest i, 65,280. The last 256 numbers of 16 bits are left for the cycle of the count.
pub(super) const MOST_ARRIVALS: u64 = (1 << COUNT_BITS) - (1 << 8);

/// The count after one more arrival.
#[inline(always)]
const fn next_count(count: u64) -> u64 {
    if count + 1 < 1 << COUNT_BITS {
        count + 1
    } else {
        MOST_ARRIVALS
    }
}

/// The stream of the draw that decides on insertion. The streams of [`BitLayout`] are lower.
const INSERT_STREAM: u64 = 33;
/// The first stream of the draws that select set bits, one for each filter.
const SET_BIT_STREAM: u64 = 34;

impl LineAgeing for ByReservoir {
    const COUNTS_ARRIVALS: bool = true;

    #[inline(always)]
    fn age<O: BitOps, P: BitLayout>(self, layout: P, line: &mut Line, arrival: Arrival<O>) {
        let ops = arrival.ops;
        let count = next_count(line.0[7] >> COUNT_SHIFT);
        let arrivals = count.min(MOST_ARRIVALS);
        // s, rounded down: the size of the shorter filters.
        let size = u64::from(COUNTED_LINE_BITS / layout.filters());
        let first_phase = arrivals <= size;
        // With probability min(1, s/i).
        let drawn = first_phase || arrival.draw.below(INSERT_STREAM, arrivals) < size;
        // The bits to clear; `None` if the key is not inserted.
        let cleared = match self.0 {
            Reservoir::Tabled => drawn.then(|| layout.others(arrival)),
            // The first phase clears nothing.
            Reservoir::Described { .. } if first_phase => Some(ops.bit(0, false)),
            Reservoir::Described { .. } if arrival.seen => None,
            // The third phase: s/i is at most p*.
            Reservoir::Described { threshold } if size as f64 <= threshold * arrivals as f64 => {
                let mut own = Line::EMPTY;
                ops.store(arrival.own, &mut own);
                Some(ops.load(&set_bits(layout, *line, own, arrival.draw)))
            }
            // The second phase.
            Reservoir::Described { .. } => drawn.then(|| layout.others(arrival)),
        };
        if let Some(cleared) = cleared {
            let kept = ops.without(ops.load(line), cleared);
            ops.store(ops.or(kept, arrival.own), line);
        }
        // The shifts drop the old count. No operation above touches it: all filters end below it.
        line.0[7] = line.0[7] << COUNT_BITS >> COUNT_BITS | count << COUNT_SHIFT;
    }
}

/// A random set bit of each filter in which the key's own bit is zero; none of a filter without set
/// bits.
///
/// It selects by rank among the set bits. Trying random positions until one is set would take an
/// unbounded number of draws in a nearly empty filter.
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

/// Adds to `picked` the set bit of `ones` that has `rank` set bits below it.
#[inline(always)]
fn add_set_bit(picked: &mut Line, ones: Line, mut rank: u32) {
    for (word, picked) in ones.0.iter().zip(&mut picked.0) {
        let here = word.count_ones();
        if rank < here {
            let mut rest = *word;
            for _ in 0..rank {
                // Clears the lowest set bit.
                rest &= rest - 1;
            }
            // The lowest set bit that is left.
            *picked |= rest & rest.wrapping_neg();
            return;
        }
        rank -= here;
    }
}
