//! The batch loop of every line filter: prefetch lines, visit them in order and pack the verdicts.
//!
//! A key costs one cache miss, some 100 ns from memory. The loop overlaps many of these misses: it
//! computes the lines of keys some blocks ahead and prefetches them while it visits the lines of
//! the current block.
//!
//! ```text
//! keys        | block 0 | block 1 | block 2 | block 3 | block 4 | ...
//!                  ^                             ^
//!                visited                     prefetched         3 blocks ahead
//! positions   | slot 0  | slot 1  | slot 2  | slot 3  | slot 0  | ...
//! ```

use std::hint::black_box;

use crate::hash::KeyHash;
use crate::kernels::bucket::Bucket;
use crate::kernels::isa::HotLoop;
use crate::kernels::look_ahead::{Blocks, LookAhead};
use crate::memory::{CacheLevel, Line};

/// The number of keys of a block: those of one word of verdicts. The loop prefetches whole blocks
/// ahead, so that a block is the unit of everything it does.
pub(crate) const BLOCK: usize = 64;

/// A batch of fewer keys has no whole block that is visited while another whole block is
/// prefetched: one block is visited and three are ahead.
const LONG_BATCH: usize = 4 * BLOCK;

/// The number of blocks whose positions are kept: up to three that are prefetched and the one that
/// is visited. A power of two, so that the remainder is a mask.
const KNOWN: usize = 4;

/// The step of a filter: its work on the bucket of a key, which is one line or a page.
pub(crate) trait LineStep {
    /// What the hash of a key selects.
    type Bucket: Bucket;

    /// Probes the bucket for the key and updates it. The batch loop calls it once for each key, in
    /// order, so a step may go through a list of its own alongside the keys.
    ///
    /// Must be `#[inline(always)]`, or it could not be inlined into the loop, which is compiled for
    /// the kernel's features.
    fn visit(&mut self, bucket: &mut Self::Bucket, key: KeyHash) -> Outcome;

    /// Which of up to 64 visits evicted another key, one bit each, from the bits of their outcomes.
    fn evictions(duplicates: u64, displaced: u64) -> u64;

    /// Whether the loop is also compiled to find the lines of a block in vectors, as
    /// [`TargetIsa::FINDS_LINES`](super::isa::TargetIsa::FINDS_LINES) of the kernel.
    const FINDS_LINES: bool;
}

/// The outcome of a visit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    /// Whether the key is a duplicate.
    pub(crate) duplicate: bool,
    /// Whether the slot that an insertion uses was occupied. May be set although this visit
    /// inserted nothing. [`LineStep::evictions`] combines the two.
    pub(crate) displaced: bool,
}

impl Outcome {
    /// The outcome of a visit that displaced nothing, or cannot tell.
    #[inline(always)]
    pub(crate) const fn of(duplicate: bool) -> Self {
        Self {
            duplicate,
            displaced: false,
        }
    }
}

/// The number of duplicates and of evictions in a batch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BatchCounts {
    pub(crate) duplicates: u64,
    pub(crate) evictions: u64,
}

/// The positions of a block of keys in an array of lines. They are written in whole vectors, which
/// takes longer if they straddle cache lines.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Positions([u32; BLOCK]);

/// A contiguous range of the lines of a filter: from line 0 for a whole filter, from the first line
/// of a partition otherwise.
///
/// # Examples
/// ```
/// use echoless::KeyHash;
/// use echoless::filters::lines::LineRange;
/// let upper_half = LineRange { total: 1000, first: 500 };
/// assert_eq!(upper_half.position(KeyHash::from_uniform(3 << 62)), 250);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRange {
    /// The number of lines of the whole filter.
    pub total: u64,
    /// The first line of the range.
    pub first: u64,
}

impl LineRange {
    /// The index of a key's line in an array that holds this range; past the end of the array if
    /// the key does not belong to the range.
    #[must_use]
    #[inline(always)]
    pub const fn position(self, key: KeyHash) -> usize {
        key.line(self.total).wrapping_sub(self.first) as usize
    }

    /// The positions of a block of keys among fewer than 2^32 lines, as
    /// [`position`](Self::position) computes them.
    ///
    /// The line is the high word of the 128-bit product `key * total`. Vectors have no such
    /// product, but they have 32 x 32 -> 64 bits, and two of these are enough for a 32-bit `total`:
    ///
    /// ```text
    ///   high 32 bits of key * total  +  (low 32 bits of key * total) >> 32      no overflow
    /// ```
    ///
    /// The line is the upper half of that sum. The compiler vectorizes the loop.
    #[inline(always)]
    fn positions_of(self, keys: &[KeyHash], positions: &mut Positions) {
        debug_assert!(self.total >> 32 == 0);
        let total = u64::from(self.total as u32);
        for (key, position) in keys.iter().zip(&mut positions.0) {
            let low = ((key.0 & 0xffff_ffff) * total) >> 32;
            let line = ((key.0 >> 32) * total + low) >> 32;
            // For a line before the range this wraps to 2^32 - (first - line), which is past the
            // end of the range, since `total` is below 2^32: the bounds check of the visit panics.
            *position = line.wrapping_sub(self.first) as u32;
        }
    }
}

/// A batch of keys and the lines it runs over.
pub(crate) struct BatchLoop<'a, S> {
    pub(crate) lines: &'a mut [Line],
    pub(crate) range: LineRange,
    pub(crate) keys: &'a [KeyHash],
    pub(crate) duplicates: &'a mut [u64],
    pub(crate) look_ahead: LookAhead,
    pub(crate) step: S,
}

impl<S: LineStep> HotLoop for BatchLoop<'_, S> {
    type Output = BatchCounts;

    #[inline(always)]
    fn run(self) -> BatchCounts {
        assert_eq!(
            self.duplicates.len(),
            self.keys.len().div_ceil(BLOCK),
            "one verdict word for each 64 keys"
        );
        // Finding a block's lines in vectors saves ten of 41 instructions a key: 1.2 times the keys
        // at 1 MiB, 1.04 times at 64 MiB. At 512 MiB it is 0.98 times, because the prefetches of a
        // block then come in a burst and the misses in flight run dry between two bursts. Short
        // batches have no whole blocks, which is where it saves time.
        let is_long = self.keys.len() >= LONG_BATCH && self.range.total <= u64::from(u32::MAX);
        let blocks = if is_long {
            self.look_ahead
                .blocks(self.range.total, S::Bucket::KEY_LINES)
        } else {
            Blocks::Two
        };
        // Each call is compiled into the loop once more, so there is one for each way.
        if S::FINDS_LINES && blocks != Blocks::Two {
            self.visit_all::<true>(blocks.count())
        } else {
            self.visit_all::<false>(blocks.count())
        }
    }
}

impl<S: LineStep> BatchLoop<'_, S> {
    /// Visits the line of every key, each prefetched `blocks_ahead` blocks before its visit. The
    /// number is read once for each block, and a constant would compile the loop again.
    ///
    /// With `IN_VECTORS` the positions of a block are computed at once and kept until its visit;
    /// otherwise each is computed twice, for the prefetch and for the visit.
    #[inline(always)]
    fn visit_all<const IN_VECTORS: bool>(self, blocks_ahead: usize) -> BatchCounts {
        debug_assert!(blocks_ahead < KNOWN);
        let Self {
            lines,
            range,
            keys,
            duplicates,
            look_ahead,
            mut step,
        } = self;
        let into = look_ahead.into_cache(range.total);
        let position = |positions: &Positions, keys: &[KeyHash], index: usize| {
            if IN_VECTORS {
                positions.0[index] as usize
            } else {
                range.position(keys[index])
            }
        };
        // Block `n` has its positions in entry `n % KNOWN`.
        let mut positions = [const { Positions([0; BLOCK]) }; KNOWN];
        let mut ahead = keys.chunks(BLOCK);
        for (keys, positions) in ahead.by_ref().take(blocks_ahead).zip(&mut positions) {
            if IN_VECTORS {
                range.positions_of(keys, positions);
            }
            let position = |index| position(positions, keys, index);
            prefetch_block::<S::Bucket>(lines, keys, into, position);
        }
        let mut counts = BatchCounts::default();
        for (number, (keys, word)) in keys.chunks(BLOCK).zip(duplicates).enumerate() {
            let next = ahead.next().unwrap_or_default();
            if IN_VECTORS {
                range.positions_of(next, &mut positions[(number + blocks_ahead) % KNOWN]);
            }
            let (visited, fetched) = (
                &positions[number % KNOWN],
                &positions[(number + blocks_ahead) % KNOWN],
            );
            let mut bits = Bits::default();
            let whole: (Result<&[_; BLOCK], _>, Result<&[_; BLOCK], _>) =
                (keys.try_into(), next.try_into());
            if let (Ok(keys), Ok(next)) = whole {
                // Two whole blocks, the common case: the count is a constant, which removes the
                // bounds checks of the keys. That saves a tenth of the instructions, 5 % at 1 MiB.
                // Prefetches and visits alternate, so that the prefetches are spread.
                for index in 0..BLOCK {
                    S::Bucket::prefetch(lines, position(fetched, next, index), next[index], into);
                    let bucket = S::Bucket::at_mut(lines, position(visited, keys, index));
                    bits.push(step.visit(bucket, keys[index]));
                }
            } else {
                let position_of = |index| position(fetched, next, index);
                prefetch_block::<S::Bucket>(lines, next, into, position_of);
                for index in 0..keys.len() {
                    let bucket = S::Bucket::at_mut(lines, position(visited, keys, index));
                    bits.push(step.visit(bucket, keys[index]));
                }
            }
            counts.add::<S>(&bits, keys.len(), word);
        }
        counts
    }
}

/// Prefetches the buckets of at most a block of keys, whose positions `position` returns.
#[inline(always)]
pub(super) fn prefetch_block<B: Bucket>(
    lines: &[Line],
    keys: &[KeyHash],
    into: CacheLevel,
    position: impl Fn(usize) -> usize,
) {
    // Without the black box the loop has at most 64 rounds for the compiler, which unrolls all of
    // them: a kilobyte in each loop of each rule on each kernel.
    let keys = &keys[..black_box(keys.len())];
    for (index, key) in keys.iter().enumerate() {
        B::prefetch(lines, position(index), *key, into);
    }
}

impl BatchCounts {
    /// Counts the outcomes of 1 to 64 visits, and writes their verdicts.
    #[inline(always)]
    pub(super) fn add<S: LineStep>(&mut self, bits: &Bits, visits: usize, word: &mut u64) {
        // The first key is in the highest of `visits` bits; verdicts have it in bit 0.
        *word = bits.duplicate.reverse_bits() >> (64 - visits);
        self.duplicates += u64::from(bits.duplicate.count_ones());
        let evictions = S::evictions(bits.duplicate, bits.displaced);
        self.evictions += u64::from(evictions.count_ones());
    }
}

/// The outcomes of up to 64 visits, one bit each, in two registers; they are counted once for all
/// of them. That is 1.6 times the keys at 1 MiB, against a store for each key.
///
/// The latest outcome is in the lowest bit, because shifting in from below is one add with carry.
#[derive(Default)]
pub(super) struct Bits {
    duplicate: u64,
    displaced: u64,
}

impl Bits {
    #[inline(always)]
    pub(super) fn push(&mut self, outcome: Outcome) {
        self.duplicate = self.duplicate << 1 | u64::from(outcome.duplicate);
        self.displaced = self.displaced << 1 | u64::from(outcome.displaced);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use proptest::prelude::*;

    use super::*;
    use crate::kernels::block::{BlockLoop, SingleVisit};

    /// Counts visits in the first word of a line. A key is a duplicate if its line was visited
    /// before; every third visit displaces.
    struct Counting;

    impl LineStep for Counting {
        type Bucket = Line;

        fn visit(&mut self, line: &mut Line, _: KeyHash) -> Outcome {
            line.0[0] += 1;
            Outcome {
                duplicate: line.0[0] > 1,
                displaced: line.0[0].is_multiple_of(3),
            }
        }

        fn evictions(duplicates: u64, displaced: u64) -> u64 {
            duplicates & displaced
        }

        const FINDS_LINES: bool = true;
    }

    /// The verdicts and counts of a plain loop over the keys.
    fn plain_loop(lines: &mut [Line], range: LineRange, keys: &[KeyHash]) -> (Vec<u64>, u64, u64) {
        let mut words = vec![0; keys.len().div_ceil(BLOCK)];
        let (mut duplicates, mut evictions) = (0, 0);
        for (index, key) in keys.iter().enumerate() {
            let outcome = Counting.visit(&mut lines[range.position(*key)], *key);
            words[index / 64] |= u64::from(outcome.duplicate) << (index % 64);
            duplicates += u64::from(outcome.duplicate);
            evictions += u64::from(outcome.duplicate && outcome.displaced);
        }
        (words, duplicates, evictions)
    }

    /// The verdicts and counts of the batch loop.
    fn batch_loop<const IN_VECTORS: bool>(
        blocks_ahead: usize,
        lines: &mut [Line],
        range: LineRange,
        keys: &[KeyHash],
    ) -> (Vec<u64>, u64, u64) {
        let mut words = vec![u64::MAX; keys.len().div_ceil(BLOCK)];
        let batch = BatchLoop {
            lines,
            range,
            keys,
            duplicates: &mut words,
            look_ahead: LookAhead::of_process().unwrap(),
            step: Counting,
        };
        let counts = batch.visit_all::<IN_VECTORS>(blocks_ahead);
        (words, counts.duplicates, counts.evictions)
    }

    /// The verdicts and counts of the loop for up to 64 keys, which single visits agree with.
    fn block_loop(lines: &mut [Line], range: LineRange, keys: &[KeyHash]) -> (Vec<u64>, u64, u64) {
        let mut words = vec![u64::MAX; keys.len().div_ceil(BLOCK)];
        let mut single = lines.to_vec();
        let block = BlockLoop {
            lines: &mut *lines,
            range,
            keys,
            duplicates: &mut words,
            into: CacheLevel::L1,
            step: Counting,
        };
        let counts = block.run();
        let (mut duplicates, mut evictions) = (0, 0);
        for key in keys {
            let bucket = &mut single[range.position(*key)];
            let (key, step) = (*key, Counting);
            let counts = SingleVisit { bucket, key, step }.run();
            duplicates += counts.duplicates;
            evictions += counts.evictions;
        }
        assert!(single == lines);
        assert_eq!(
            (duplicates, evictions),
            (counts.duplicates, counts.evictions)
        );
        (words, counts.duplicates, counts.evictions)
    }

    /// `count` keys of the lines from 100 on, of 300.
    fn keys(count: usize) -> (LineRange, Vec<KeyHash>) {
        let range = LineRange {
            total: 300,
            first: 100,
        };
        let keys = (0..).map(|number| KeyHash(KeyHash(number).remix(7)));
        let keys = keys.filter(|key| key.line(300) >= 100).take(count);
        (range, keys.collect())
    }

    #[test]
    fn every_variant_agrees_with_the_plain_loop() {
        for count in [
            0, 1, 63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257, 1000, 1024,
        ] {
            let (range, keys) = keys(count);
            let mut plain = vec![Line::EMPTY; 200];
            let expected = plain_loop(&mut plain, range, &keys);
            if count <= BLOCK {
                let mut lines = vec![Line::EMPTY; 200];
                assert_eq!(block_loop(&mut lines, range, &keys), expected);
                assert!(lines == plain, "{count} keys");
            }
            for variant in [batch_loop::<false>, batch_loop::<true>] {
                for ahead in 1..=3 {
                    let mut lines = vec![Line::EMPTY; 200];
                    let counted = variant(ahead, &mut lines, range, &keys);
                    assert_eq!(counted, expected, "{count} keys, {ahead} ahead");
                    assert!(lines == plain, "{count} keys, {ahead} ahead");
                }
            }
        }
    }

    #[test]
    fn a_key_outside_the_range_panics() {
        let (range, mut keys) = keys(2000);
        keys.retain(|key| key.line(300) < 200);
        for (stray, index) in [(0, 3), (0, 300), (u64::MAX, 3), (u64::MAX, 300)] {
            let mut keys = keys.clone();
            let mut lines = vec![Line::EMPTY; 100];
            batch_loop::<true>(3, &mut lines, range, &keys);
            keys[index] = KeyHash(stray);
            for variant in [batch_loop::<false>, batch_loop::<true>] {
                let rejected = catch_unwind(AssertUnwindSafe(|| {
                    variant(2, &mut lines, range, &keys);
                }));
                assert!(rejected.is_err(), "key {stray} at {index}");
            }
        }
    }

    proptest! {
        #[test]
        fn positions_found_in_vectors_agree_with_single_keys(
            keys in prop::collection::vec(
                prop_oneof![Just(0), Just(u64::MAX), any::<u64>()].prop_map(KeyHash),
                0..=BLOCK,
            ),
            total in prop_oneof![1..=8_u64, 1..1_u64 << 21, 1..1_u64 << 32],
            first in any::<prop::sample::Selector>(),
        ) {
            let range = LineRange { total, first: first.select([0, total / 3, total - 1]) };
            // The first key of each line, and the key before it.
            let border = |key: &KeyHash| {
                let first = (u128::from(key.line(total)) << 64).div_ceil(u128::from(total)) as u64;
                [*key, KeyHash(first), KeyHash(first.wrapping_sub(1))]
            };
            let keys: Vec<KeyHash> = keys.iter().flat_map(border).take(BLOCK).collect();
            let mut positions = Positions([0; BLOCK]);
            range.positions_of(&keys, &mut positions);
            for (key, position) in keys.iter().zip(positions.0) {
                // For a key before the range both are past the end of the range.
                let single = range.position(*key);
                prop_assert_eq!(position, single as u32);
                prop_assert_eq!(single < total as usize, u64::from(position) < total - range.first);
            }
        }
    }
}
