//! The fingerprint stable Bloom filter in a line: 64 cells of 8 bits or 32 of 16, each a counter
//! and a fingerprint.

use super::random::{Draw, Salt, piece};
use crate::kernels::{BitOps, LINE_BITS, with_bits};
use crate::scattered::cells::FingerprintStableSpec;
use echoless::extend::{LineAllocation, LineOps, Outcome, Rule, within};
use echoless::memory::Line;
use echoless::{BuildError, Cells, KeyHash, LineFilter, SpecError};

/// FP-SBF with cells of `WIDTH` bits (paper 003, algorithm 2): a key is a duplicate if and only if
/// its k counters are all nonzero and its k fingerprints are all equal to its own. A fresh key
/// decrements k random cells of the line with probability xi, and then fills its own.
///
/// ```text
/// cell  | fingerprint: f bits | counter: c bits |    bit 0 at the right
///
/// line  | sub-table 0 | sub-table 1 | ... | sub-table k-1 | unused |
/// ```
///
/// A key has one cell in each sub-table. Its k positions are independent; the paper saves hashes by
/// double hashing instead.
#[derive(Debug, Clone, Copy)]
pub(super) struct FingerprintStableRule<const WIDTH: u32> {
    spec: FingerprintStableSpec,
    /// The number of cells of a sub-table, rounded down.
    size: u32,
    salt: Salt,
}

// Two sources of random words, each with streams of its own:
//
//   the key     0 to 7     its cell in each sub-table, four to a stream
//               16         its fingerprint
//   the draw    0          whether a fresh key evicts
//               1 to 8     which cells it decrements, four to a stream
//               17 to 48   by how much, one stream for each cell

/// The stream of a key's fingerprint.
const FINGERPRINT_STREAM: u64 = 16;
/// The stream of the draw that decides whether a fresh key evicts.
const EVICT_STREAM: u64 = 0;
/// The first stream of the draws of cells to decrement.
const CELL_STREAMS: u64 = 1;
/// The first stream of the draws of decrements.
const DECREMENT_STREAMS: u64 = 17;

impl<const WIDTH: u32> FingerprintStableRule<WIDTH> {
    /// The number of cells of a line.
    const CELLS: u32 = LINE_BITS / WIDTH;

    pub(super) fn new(spec: FingerprintStableSpec, salt: Salt) -> Result<Self, SpecError> {
        debug_assert_eq!(spec.counter_bits + spec.fingerprint_bits, WIDTH);
        let hashes = within("k", spec.hashes, 1..=Self::CELLS / 2)?;
        Ok(Self {
            spec,
            size: Self::CELLS / hashes,
            salt,
        })
    }

    /// The value of a cell. Widths divide 64, so no cell straddles two words.
    #[inline(always)]
    fn get(line: &Line, cell: u32) -> u32 {
        let bit = cell * WIDTH;
        // The remainder proves the index to the compiler, which then omits the bounds check.
        (line.0[(bit / 64) as usize % 8] >> (bit % 64) & (u64::MAX >> (64 - WIDTH))) as u32
    }

    #[inline(always)]
    fn set(line: &mut Line, cell: u32, value: u32) {
        let (word, shift) = ((cell * WIDTH / 64) as usize % 8, cell * WIDTH % 64);
        let kept = line.0[word] & !((u64::MAX >> (64 - WIDTH)) << shift);
        line.0[word] = kept | u64::from(value) << shift;
    }

    /// The cell of the key in sub-table `table`.
    #[inline(always)]
    fn cell(self, key: KeyHash, table: u32) -> u32 {
        table * self.size + piece(key, 0, table, self.size)
    }

    #[inline(always)]
    fn fingerprint(self, key: KeyHash) -> u32 {
        (key.remix(FINGERPRINT_STREAM) >> (64 - self.spec.fingerprint_bits)) as u32
    }

    /// Decrements k random cells of all sub-tables by a random 1 to Max each.
    #[inline(always)]
    fn evict(self, line: &mut Line, draw: Draw) {
        let max = u64::from(self.spec.counter_max());
        for index in 0..self.spec.hashes {
            let cells = self.size * self.spec.hashes;
            let cell = piece(draw.hash(), CELL_STREAMS, index, cells);
            let amount = 1 + draw.below(DECREMENT_STREAMS + u64::from(index), max) as u32;
            let decremented = self.spec.cell_decremented(Self::get(line, cell), amount);
            Self::set(line, cell, decremented);
        }
    }
}

impl<const WIDTH: u32> Rule for FingerprintStableRule<WIDTH> {
    type Bucket = Line;

    const HAS_PORTABLE_LOOP: bool = false;

    #[inline(always)]
    fn visit<O: LineOps>(self, ops: O, line: &mut Line, key: KeyHash) -> Outcome {
        if self.holds(line, key) {
            return Outcome::of(true);
        }
        let draw = self.salt.draw(key, with_bits!(ops, |bits| bits.fold(line)));
        if draw.chance(EVICT_STREAM, self.spec.eviction) {
            self.evict(line, draw);
        }
        let fingerprint = self.fingerprint(key);
        for table in 0..self.spec.hashes {
            let cell = self.cell(key, table);
            let filled = self.spec.cell_filled(Self::get(line, cell), fingerprint);
            Self::set(line, cell, filled);
        }
        Outcome::of(false)
    }

    fn duplicates_change_lines(self) -> bool {
        false
    }

    #[inline(always)]
    fn holds(self, line: &Line, key: KeyHash) -> bool {
        let fingerprint = self.fingerprint(key);
        (0..self.spec.hashes).all(|table| {
            let cell = Self::get(line, self.cell(key, table));
            self.spec.cell_holds(cell, fingerprint)
        })
    }

    fn fpr(self, line: &Line, _: u64) -> f64 {
        // The k cells must all be live and hold the fingerprint of the key. For each live cell of
        // sub-table 0: the key maps to it with probability 1/size, has its fingerprint with
        // probability 2^-f, and in each other sub-table maps to a live cell of that fingerprint
        // with the probability that `fraction` counts.
        let live =
            |cell| Some(Self::get(line, cell)).filter(|value| value & self.spec.counter_max() != 0);
        let fraction = |table: u32, fingerprint: u32| {
            let cells = (0..self.size).filter_map(|index| live(table * self.size + index));
            let equal = cells.filter(|value| value >> self.spec.counter_bits == fingerprint);
            equal.count() as f64 / f64::from(self.size)
        };
        let first = (0..self.size).filter_map(live);
        let probabilities = first.map(|value| {
            let fingerprint = value >> self.spec.counter_bits;
            (1..self.spec.hashes)
                .map(|table| fraction(table, fingerprint))
                .product::<f64>()
        });
        let values = f64::from(1_u32 << self.spec.fingerprint_bits);
        probabilities.sum::<f64>() / f64::from(self.size) / values
    }

    fn cells(self, line: &Line) -> Cells {
        let max = self.spec.counter_max();
        let occupied = (0..Self::CELLS).filter(|cell| Self::get(line, *cell) & max != 0);
        Cells::new(occupied.count() as u64, Self::CELLS.into())
    }
}

/// Builds the line form of FP-SBF. Counter and fingerprint together take 8 or 16 bits.
pub(crate) fn build(
    spec: &FingerprintStableSpec,
    allocation: LineAllocation,
) -> Result<Box<dyn LineFilter>, BuildError> {
    let salt = Salt::from_seed(allocation.seed);
    match (spec.counter_bits, spec.fingerprint_bits) {
        (1..=7, bits) if spec.counter_bits + bits == 8 => {
            allocation.build(FingerprintStableRule::<8>::new(*spec, salt)?)
        }
        (1..=15, bits) if spec.counter_bits + bits == 16 => {
            allocation.build(FingerprintStableRule::<16>::new(*spec, salt)?)
        }
        (counter, bits) => Err(SpecError::new(
            "c + f",
            format!("{counter} + {bits} bits"),
            "8 or 16 bits in the line form, with at least 1 bit each",
        )
        .into()),
    }
}
