//! The layout of the k filters of a line, and the choice of one bit in each of them.
//!
//! ```text
//! k = 2   | word 0 | word 1 | word 2 | word 3 | word 4 | word 5 | word 6 | word 7 |
//!         | filter 0: 256 bits                | filter 1: 256 bits                |
//! k = 3   | filter 0: 171 bits  | filter 1: 171 bits     | filter 2: 170 bits     |
//! ```
//!
//! A random bit to clear is never the key's own, which is about to be set. In a filter of the whole
//! memory the two practically never coincide, but in one of 128 bits they would often enough to
//! change the rates.

use std::fmt::{self, Debug};

use super::random::{Draw, piece};
use crate::kernels::{BitOps, Filters, LANES, LINE_BITS, Numbers, Spread};
use echoless::KeyHash;
use echoless::extend::Scalar;
use echoless::memory::Line;

// The streams of a draw (see `random`):
//
//   0 to 15    one random bit in each filter: up to 64 filters, four to a stream
//   16 to 31   a second random bit in each filter
//   32         a random filter
//   33 on      RSBF (see `ageing`)

/// The first stream of the second set of random bits.
const SECOND_SET: u64 = 16;
/// The stream of a random filter.
const FILTER_STREAM: u64 = 32;

/// An arrival at a line, after the probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival<O: BitOps> {
    pub(super) ops: O,
    pub(super) key: KeyHash,
    /// The bits of the key, one in each filter.
    pub(super) own: O::Bits,
    /// Whether all of them were set, so that the key is a duplicate.
    pub(super) seen: bool,
    /// The random words of this visit.
    pub(super) draw: Draw,
}

/// Bits to clear, and the words of the line in which to clear them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clearing<O: BitOps> {
    pub(super) bits: O::Bits,
    pub(super) words: O::Words,
}

/// k filters in a line, whose sizes differ by at most one bit.
pub(super) trait BitLayout: Copy + Debug + Send + Sync + 'static {
    /// k.
    fn filters(self) -> u32;

    /// The first bit of filter `filter`. For `filter` = k, the end of the last one.
    fn start(self, filter: u32) -> u32;

    /// The probability that a random key finds its bit set in each filter.
    ///
    /// A position takes `width` bits of the line: 1 in bit filters, the width of a cell in filters
    /// of cells, of which `line` then has only the lowest bits set.
    fn chance_of_all(self, line: &Line, width: u32) -> f64 {
        let filter = |filter: u32| (self.start(filter), self.start(filter + 1));
        (0..self.filters())
            .map(filter)
            .map(|(start, end)| {
                f64::from(ones(line, start * width, end * width)) / f64::from(end - start)
            })
            .product()
    }

    /// The bits of a key, one in each filter. They are independent of the line of the key among up
    /// to 2^32 lines.
    fn of_key<O: BitOps>(self, ops: O, key: KeyHash) -> O::Bits;

    /// One random bit in each filter, never the key's own.
    fn others<O: BitOps>(self, arrival: Arrival<O>) -> O::Bits;

    /// The bits of [`others`](Self::others), each with a probability equal to the fill of its
    /// filter; none for a duplicate.
    ///
    /// No bits are counted. A second random bit of the filter, the witness, decides: the
    /// probability that it is set is exactly the fill.
    fn others_by_fill<O: BitOps>(self, arrival: Arrival<O>, line: &Line) -> Clearing<O>;

    /// The bit of [`others`](Self::others) in one random filter; none for a duplicate.
    fn other_of_one<O: BitOps>(self, arrival: Arrival<O>) -> Clearing<O>;
}

/// The number of set bits from `start` up to but not including `end`.
#[inline(always)]
pub(super) fn ones(line: &Line, start: u32, end: u32) -> u32 {
    let range = Scalar.without(Scalar.below(end), Scalar.below(start));
    let ones = Scalar.and(*line, range);
    ones.0.iter().map(|word| word.count_ones()).sum()
}

/// 1, 2, 4 or 8 filters of whole words. [`BitOps::in_each`] computes the bits of all filters at
/// once.
#[derive(Debug, Clone, Copy)]
pub(super) struct WholeWords<const K: u32>;

impl<const K: u32> WholeWords<K> {
    /// Whether k packed positions fit in the lower half of a hash. The upper half selects the line,
    /// so the two are independent, and a remix is saved.
    ///
    /// ```text
    /// k                   1   2   4   8
    /// bits of positions   9  16  28  48      k = 8 needs a remix
    /// ```
    const FIT_IN_HALF: bool = K * Filters::<K>::POSITION_BITS <= 32;

    /// The packed positions of a key, filter 0 in the lowest bits.
    #[inline(always)]
    const fn positions(key: KeyHash) -> u64 {
        if Self::FIT_IN_HALF {
            key.get()
        } else {
            key.remix(0)
        }
    }
}

impl<const K: u32> BitLayout for WholeWords<K> {
    #[inline(always)]
    fn filters(self) -> u32 {
        K
    }

    #[inline(always)]
    fn start(self, filter: u32) -> u32 {
        filter * Filters::<K>::WIDTH
    }

    #[inline(always)]
    fn of_key<O: BitOps>(self, ops: O, key: KeyHash) -> O::Bits {
        ops.in_each::<K>(Self::positions(key))
    }

    /// Each position differs from the key's in the lowest bit: even if that is odd, and odd if it
    /// is even. One `or` and one `xor` do this for all filters.
    ///
    /// ```text
    /// key's positions   | p3     0 | p2     1 | p1     1 | p0     0 |    lowest bit at the right
    /// draw | LOWEST     | random 1 | random 1 | random 1 | random 1 |
    /// xor               | random 1 | random 0 | random 0 | random 1 |    never p3, p2, p1 or p0
    /// ```
    #[inline(always)]
    fn others<O: BitOps>(self, arrival: Arrival<O>) -> O::Bits {
        let Arrival { ops, key, draw, .. } = arrival;
        ops.in_each::<K>(Self::positions(key) ^ (draw.word(0) | Filters::<K>::LOWEST))
    }

    #[inline(always)]
    fn others_by_fill<O: BitOps>(self, arrival: Arrival<O>, line: &Line) -> Clearing<O> {
        let Arrival { ops, draw, .. } = arrival;
        // `others` uses the lower half of word 0 where that is enough; the upper half is unused.
        let witnesses = ops.in_each::<K>(if Self::FIT_IN_HALF {
            draw.word(0) >> 32
        } else {
            draw.word(SECOND_SET)
        });
        let found = ops.and(ops.load(line), witnesses);
        Clearing {
            bits: self.others(arrival),
            words: ops.filters_if::<K>(!arrival.seen, found),
        }
    }

    #[inline(always)]
    fn other_of_one<O: BitOps>(self, arrival: Arrival<O>) -> Clearing<O> {
        let Arrival { ops, draw, .. } = arrival;
        let filter = draw.below(FILTER_STREAM, u64::from(K)) as u32;
        let start = ops.bit(self.start(filter), true);
        Clearing {
            bits: self.others(arrival),
            words: ops.filters_if::<K>(!arrival.seen, start),
        }
    }
}

/// The number of filters: a constant that the compiler unrolls loops for, or a variable.
pub(super) trait FilterCount: Copy + Debug + Send + Sync + 'static {
    fn get(self) -> u32;
}

/// A constant number of filters.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConstCount<const K: u32>;

impl<const K: u32> FilterCount for ConstCount<K> {
    #[inline(always)]
    fn get(self) -> u32 {
        K
    }
}

impl FilterCount for u32 {
    #[inline(always)]
    fn get(self) -> u32 {
        self
    }
}

/// Any number of filters, one after the other in the first bits of the line. If the bits do not
/// divide evenly, the first filters have one bit more.
#[derive(Clone, Copy)]
pub(super) struct Ranges<C> {
    count: C,
    /// The number of bits of the shorter filters.
    width: u32,
    /// The number of filters that have one bit more.
    longer: u32,
    side_by_side: Option<SideBySide>,
}

/// What the positions of few filters are computed from at once, a lane for each filter.
#[derive(Clone, Copy)]
struct SideBySide {
    spread: Spread,
    starts: Numbers,
    widths: Numbers,
    /// The widths less one.
    steps: Numbers,
}

/// Without what follows from the other fields: the text names a filter in saved states.
impl<C: Debug> Debug for Ranges<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ranges")
            .field("count", &self.count)
            .field("width", &self.width)
            .field("longer", &self.longer)
            .finish()
    }
}

impl<C: FilterCount> Ranges<C> {
    /// `count` filters in the first `bits` bits of a line, of at least two bits each.
    pub(super) fn in_bits(count: C, bits: u32) -> Self {
        Self::in_cells(count, bits, 1)
    }

    /// The same in cells of `cell_bits` bits each: all positions are those of cells.
    pub(super) fn in_cells(count: C, cells: u32, cell_bits: u32) -> Self {
        debug_assert!((1..=cells / 2).contains(&count.get()));
        debug_assert!(cells * cell_bits <= LINE_BITS);
        let mut ranges = Self {
            count,
            width: cells / count.get(),
            longer: cells % count.get(),
            side_by_side: None,
        };
        let spread = Spread::new(count.get(), |filter| ranges.start(filter) * cell_bits);
        ranges.side_by_side = spread.map(|spread| {
            let of_filters = |number: &dyn Fn(u32) -> u32| -> Numbers {
                std::array::from_fn(|lane| match lane as u32 {
                    filter if filter < count.get() => number(filter) as u16,
                    _ => 0,
                })
            };
            SideBySide {
                spread,
                starts: of_filters(&|filter| ranges.start(filter)),
                widths: of_filters(&|filter| ranges.width(filter)),
                steps: of_filters(&|filter| ranges.width(filter) - 1),
            }
        });
        ranges
    }

    /// The constants of a kernel that computes positions side by side, unless there are too many
    /// filters.
    #[inline(always)]
    fn side_by_side<O: BitOps>(&self) -> Option<&SideBySide> {
        // The number of filters first: where it is a constant, one of the two ways is left out.
        if O::SIDE_BY_SIDE && self.count.get() as usize <= LANES {
            self.side_by_side.as_ref()
        } else {
            None
        }
    }

    /// The words that [`piece`] takes its bits from.
    #[inline(always)]
    fn words(self, hash: KeyHash, first: u64) -> [u64; 2] {
        let second = if self.count.get() > 4 {
            hash.remix(first + 1)
        } else {
            0
        };
        [hash.remix(first), second]
    }

    /// The lowest bits of the cells of a key, one in each filter, in a layout in cells of
    /// `CELL_BITS` bits, a power of two.
    #[inline(always)]
    pub(super) fn cells_of<O: BitOps, const CELL_BITS: u32>(self, ops: O, key: KeyHash) -> O::Bits {
        match self.side_by_side::<O>() {
            Some(lanes) => self.cells_in_lanes::<O, CELL_BITS>(ops, lanes, key),
            None => self.each(ops, |filter| (self.bit_of(key, filter) * CELL_BITS, true)),
        }
    }

    /// [`cells_of`](Self::cells_of), side by side.
    #[inline(always)]
    fn cells_in_lanes<O: BitOps, const CELL_BITS: u32>(
        self,
        ops: O,
        lanes: &SideBySide,
        key: KeyHash,
    ) -> O::Bits {
        let own = ops.pieces(self.words(key, 0), ops.lanes(&lanes.widths));
        let mut own = ops.plus(own, ops.lanes(&lanes.starts));
        for _ in 0..CELL_BITS.ilog2() {
            own = ops.plus(own, own);
        }
        ops.at_lanes(own, &lanes.spread)
    }

    /// The bits of [`others_by_fill`](BitLayout::others_by_fill), side by side.
    #[inline(always)]
    fn by_fill_in_lanes<O: BitOps>(
        self,
        arrival: Arrival<O>,
        lanes: &SideBySide,
        line: &Line,
    ) -> O::Bits {
        let ops = arrival.ops;
        let witnesses = self.words(arrival.draw.hash(), SECOND_SET);
        let witnesses = ops.pieces(witnesses, ops.lanes(&lanes.widths));
        let witnesses = ops.plus(witnesses, ops.lanes(&lanes.starts));
        let others = self.other_lanes(arrival, lanes);
        let others = ops.where_set(line, witnesses, others);
        ops.at_lanes(others, &lanes.spread)
    }

    /// [`other`](Self::other) in each filter.
    #[inline(always)]
    fn other_lanes<O: BitOps>(self, arrival: Arrival<O>, lanes: &SideBySide) -> O::Lanes {
        let Arrival { ops, key, draw, .. } = arrival;
        let widths = ops.lanes(&lanes.widths);
        let own = ops.pieces(self.words(key, 0), widths);
        let drawn = ops.pieces(self.words(draw.hash(), 0), ops.lanes(&lanes.steps));
        let step = ops.plus(drawn, ops.lanes(&[1; LANES]));
        let other = ops.wrapped(ops.plus(own, step), widths);
        ops.plus(other, ops.lanes(&lanes.starts))
    }

    #[inline(always)]
    fn width(self, filter: u32) -> u32 {
        self.width + u32::from(filter < self.longer)
    }

    /// The position in the line of a key's bit in a filter.
    #[inline(always)]
    fn bit_of(self, key: KeyHash, filter: u32) -> u32 {
        self.position(key, 0, filter)
    }

    /// The position in the line of a random bit of a filter. The streams from `first` on of `hash`
    /// select it.
    #[inline(always)]
    fn position(self, hash: KeyHash, first: u64, filter: u32) -> u32 {
        self.start(filter) + piece(hash, first, filter, self.width(filter))
    }

    /// The position in the line of a random bit of a filter, never the key's own: 1 to width - 1
    /// steps on from it, wrapping at the end of the filter.
    #[inline(always)]
    fn other<O: BitOps>(self, arrival: Arrival<O>, filter: u32) -> u32 {
        let width = self.width(filter);
        let step = 1 + piece(arrival.draw.hash(), 0, filter, width - 1);
        let other = self.bit_of(arrival.key, filter) + step;
        if other < self.start(filter) + width {
            other
        } else {
            other - width
        }
    }

    /// The union over all filters of the bit that `bit` returns for a filter: its position in the
    /// line, and whether it is set.
    #[inline(always)]
    fn each<O: BitOps>(self, ops: O, bit: impl Fn(u32) -> (u32, bool)) -> O::Bits {
        let (position, set) = bit(0);
        let mut bits = ops.bit(position, set);
        for filter in 1..self.count.get() {
            let (position, set) = bit(filter);
            bits = ops.or(bits, ops.bit(position, set));
        }
        bits
    }
}

impl<C: FilterCount> BitLayout for Ranges<C> {
    #[inline(always)]
    fn filters(self) -> u32 {
        self.count.get()
    }

    #[inline(always)]
    fn start(self, filter: u32) -> u32 {
        filter * self.width + filter.min(self.longer)
    }

    #[inline(always)]
    fn of_key<O: BitOps>(self, ops: O, key: KeyHash) -> O::Bits {
        self.cells_of::<O, 1>(ops, key)
    }

    #[inline(always)]
    fn others<O: BitOps>(self, arrival: Arrival<O>) -> O::Bits {
        let ops = arrival.ops;
        if let Some(lanes) = self.side_by_side::<O>() {
            return ops.at_lanes(self.other_lanes(arrival, lanes), &lanes.spread);
        }
        self.each(ops, |filter| (self.other(arrival, filter), true))
    }

    #[inline(always)]
    fn others_by_fill<O: BitOps>(self, arrival: Arrival<O>, line: &Line) -> Clearing<O> {
        let Arrival { ops, draw, .. } = arrival;
        let words = ops.words_if(!arrival.seen);
        if let Some(lanes) = self.side_by_side::<O>() {
            return Clearing {
                bits: self.by_fill_in_lanes(arrival, lanes, line),
                words,
            };
        }
        let bits = self.each(ops, |filter| {
            let witness = self.position(draw.hash(), SECOND_SET, filter);
            // The remainder proves the index to the compiler, which then omits the bounds check.
            let is_set = line.0[(witness / 64) as usize % 8] >> (witness % 64) & 1 == 1;
            (self.other(arrival, filter), is_set)
        });
        Clearing { bits, words }
    }

    #[inline(always)]
    fn other_of_one<O: BitOps>(self, arrival: Arrival<O>) -> Clearing<O> {
        let Arrival { ops, draw, .. } = arrival;
        let filter = draw.below(FILTER_STREAM, u64::from(self.count.get()));
        Clearing {
            bits: ops.bit(self.other(arrival, filter as u32), true),
            words: ops.words_if(!arrival.seen),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::random::Salt;
    use super::*;

    /// The cells of a key in lanes and filter by filter. `None` if there are no lanes.
    fn cells<const D: u32>(count: u32, bits: u32, key: KeyHash) -> Option<[Line; 2]> {
        let ranges = Ranges::in_cells(count, bits / D, D);
        let lanes = ranges.side_by_side.as_ref()?;
        let in_lanes = ranges.cells_in_lanes::<_, D>(Scalar, lanes, key);
        Some([in_lanes, ranges.cells_of::<_, D>(Scalar, key)])
    }

    proptest! {
        #[test]
        fn positions_side_by_side_are_those_of_each_filter(
            key in any::<u64>().prop_map(KeyHash::from_uniform),
            content in any::<u64>(),
            line in any::<[u64; 8]>().prop_map(Line),
        ) {
            let draw = Salt::from_seed(7).draw(key, content);
            for count in 1..=LANES as u32 {
                for bits in [512, 504, 496] {
                    let of_sizes = [
                        cells::<1>(count, bits, key),
                        cells::<2>(count, bits, key),
                        cells::<4>(count, bits, key),
                        cells::<8>(count, bits, key),
                    ];
                    for (log2, pair) in of_sizes.into_iter().enumerate() {
                        let [in_lanes, each] = pair.expect("at most two filters in a word");
                        prop_assert_eq!(in_lanes, each, "{} in {}, 2^{}", count, bits, log2);
                    }
                    let ranges = Ranges::in_bits(count, bits);
                    // So positions of this kernel are computed filter by filter.
                    prop_assert!(ranges.side_by_side::<Scalar>().is_none());
                    let arrival = Arrival {
                        ops: Scalar,
                        key,
                        own: ranges.of_key(Scalar, key),
                        seen: false,
                        draw,
                    };
                    let lanes = ranges.side_by_side.as_ref().expect("as above");
                    let others = ranges.other_lanes(arrival, lanes);
                    let others = Scalar.at_lanes(others, &lanes.spread);
                    prop_assert_eq!(others, ranges.others(arrival));
                    let by_fill = ranges.by_fill_in_lanes(arrival, lanes, &line);
                    let each = ranges.others_by_fill(arrival, &line);
                    prop_assert_eq!(by_fill, each.bits);
                }
            }
        }
    }
}
