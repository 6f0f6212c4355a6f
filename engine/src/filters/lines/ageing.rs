//! The ageing policies of bit filters in a line: which bits are cleared, and whether the key's bits are set.

use super::draw::Draw;
use super::mask::{LINE_BITS, below, replaced, words};
use super::places::Places;
use crate::filters::published::bits::Reservoir;
use crate::hash::KeyHash;
use crate::memory::Line;

/// An arrival at a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) key: KeyHash,
    /// The bits of the key.
    pub(super) own: Line,
    /// Whether they were all set.
    pub(super) seen: bool,
    pub(super) draw: Draw,
}

/// A policy of paper 000 (Bloom aside), as [`Ageing`](crate::filters::published::bits::Ageing) describes them.
pub(super) trait LineAgeing: Copy + Send + 'static {
    /// The line after the arrival.
    fn age<P: Places>(self, places: P, line: &Line, arrival: Arrival) -> Line;
}

/// Bloom: nothing is cleared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Never;

/// BSBF: a random bit in each filter, other than the key's as in all of these.
#[derive(Debug, Clone, Copy)]
pub(super) struct EachFilter;

/// BSBFSD: one random bit.
#[derive(Debug, Clone, Copy)]
pub(super) struct OneFilter;

/// RLBSBF: a random bit in each filter, with the probability of its load.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByLoad;

impl LineAgeing for Never {
    #[inline(always)]
    fn age<P: Places>(self, _places: P, line: &Line, arrival: Arrival) -> Line {
        words(|index| line.0[index] | arrival.own.0[index])
    }
}

impl LineAgeing for EachFilter {
    #[inline(always)]
    fn age<P: Places>(self, places: P, line: &Line, arrival: Arrival) -> Line {
        let cleared = places.others(arrival.key, arrival.draw);
        replaced(line, &cleared, !arrival.seen, &arrival.own)
    }
}

impl LineAgeing for OneFilter {
    #[inline(always)]
    fn age<P: Places>(self, places: P, line: &Line, arrival: Arrival) -> Line {
        let cleared = places.other_of_one(arrival.key, arrival.draw);
        replaced(line, &cleared, !arrival.seen, &arrival.own)
    }
}

impl LineAgeing for ByLoad {
    #[inline(always)]
    fn age<P: Places>(self, places: P, line: &Line, arrival: Arrival) -> Line {
        let cleared = places.others_by_load(arrival.key, arrival.draw, line);
        replaced(line, &cleared, !arrival.seen, &arrival.own)
    }
}

/// RSBF: the line counts its own arrivals, up to [`MOST_ARRIVALS`], in its last bits.
///
/// ```text
/// | k filters in 496 bits | count: 16 bits |
/// ```
///
/// The s and i of the paper are those of the line, so s/i is the same but for the spread of arrivals over lines. A count that is full stays so, and
/// with it s/i at its least value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted(pub(super) Reservoir);

/// The bits of the count.
const COUNT_BITS: u32 = 16;
/// The bits of a line that are left for filters.
pub(super) const COUNTED_LINE_BITS: u32 = LINE_BITS - COUNT_BITS;
/// Where the count starts in the last word.
const COUNT_SHIFT: u32 = 64 - COUNT_BITS;
/// The most arrivals that are counted.
pub(super) const MOST_ARRIVALS: u64 = (1 << COUNT_BITS) - 1;

/// The stream of the draw that decides on insertion, and the first of those that pick set bits; apart from those of [`Places`].
const INSERT_STREAM: u64 = 33;
const SET_BIT_STREAM: u64 = 34;

impl LineAgeing for Counted {
    #[inline(always)]
    fn age<P: Places>(self, places: P, line: &Line, arrival: Arrival) -> Line {
        let arrivals = (line.0[7] >> COUNT_SHIFT)
            .saturating_add(1)
            .min(MOST_ARRIVALS);
        // s, rounded down.
        let size = u64::from(COUNTED_LINE_BITS / places.filters());
        let early = arrivals <= size;
        let lucky = early || arrival.draw.below(INSERT_STREAM, arrivals) < size;
        let one_of_each = places.others(arrival.key, arrival.draw);
        let mut after = match self.0 {
            Reservoir::Tabled if lucky => replaced(line, &one_of_each, true, &arrival.own),
            Reservoir::Tabled => *line,
            Reservoir::Described { .. } if early => {
                replaced(line, &Line::EMPTY, false, &arrival.own)
            }
            Reservoir::Described { .. } if arrival.seen => *line,
            Reservoir::Described { threshold } if size as f64 <= threshold * arrivals as f64 => {
                let cleared = set_bits(places, line, arrival);
                replaced(line, &cleared, true, &arrival.own)
            }
            Reservoir::Described { .. } if lucky => {
                replaced(line, &one_of_each, true, &arrival.own)
            }
            Reservoir::Described { .. } => *line,
        };
        after.0[7] = after.0[7] << COUNT_BITS >> COUNT_BITS | arrivals << COUNT_SHIFT;
        after
    }
}

/// A random set bit of each filter in which the key's own bit is zero.
#[inline(always)]
fn set_bits<P: Places>(places: P, line: &Line, arrival: Arrival) -> Line {
    let mut picked = Line::EMPTY;
    for filter in 0..places.filters() {
        let (before, up_to) = (below(places.start(filter)), below(places.start(filter + 1)));
        let range = words(|index| up_to.0[index] & !before.0[index]);
        let lacks = (0..8).any(|index| arrival.own.0[index] & range.0[index] & !line.0[index] != 0);
        let ones = words(|index| line.0[index] & range.0[index]);
        let count: u32 = ones.0.iter().map(|word| word.count_ones()).sum();
        if lacks && count > 0 {
            let rank = arrival
                .draw
                .below(SET_BIT_STREAM + u64::from(filter), u64::from(count));
            add_set_bit(&mut picked, &ones, rank as u32);
        }
    }
    picked
}

/// Adds the set bit of `ones` that has `rank` others below it.
#[inline(always)]
fn add_set_bit(picked: &mut Line, ones: &Line, mut rank: u32) {
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
