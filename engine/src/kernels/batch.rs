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
use crate::isa::HotLoop;
use crate::kernels::bucket::{BlockPositions, Bucket, LineRange};
use crate::kernels::look_ahead::LookAhead;
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

    /// Whether the loop is also compiled to find the lines of a block in vectors, as
    /// [`TargetIsa::FINDS_LINES`](crate::isa::TargetIsa::FINDS_LINES) of the kernel.
    const FINDS_LINES: bool;

    /// Probes the bucket for the key and updates it. The batch loop calls it once for each key, in
    /// order, so a step may go through a list of its own alongside the keys.
    ///
    /// Must be `#[inline(always)]`, or it could not be inlined into the loop, which is compiled for
    /// the kernel's features.
    fn visit(&mut self, bucket: &mut Self::Bucket, key: KeyHash) -> Outcome;

    /// Which of up to 64 visits evicted another key, one bit each, from the bits of their outcomes.
    fn evictions(duplicates: u64, displaced: u64) -> u64;
}

/// The outcome of a visit.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Whether the key is a duplicate.
    pub(crate) duplicate: bool,
    /// Whether the slot that an insertion uses was occupied. May be set although this visit
    /// inserted nothing. [`LineStep::evictions`] combines the two.
    pub(crate) displaced: bool,
}

impl Outcome {
    /// The outcome of a visit that displaced nothing, or of a rule that does not determine it.
    #[inline(always)]
    pub const fn of(duplicate: bool) -> Self {
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
        let blocks = self.look_ahead.blocks();
        // Each call is compiled into the loop once more, so there is one for each way.
        if S::FINDS_LINES && self.finds_in_vectors() {
            self.visit_all::<true>(blocks)
        } else {
            self.visit_all::<false>(blocks)
        }
    }
}

impl<S: LineStep> BatchLoop<'_, S> {
    /// Whether to find a block's lines in vectors, if the look-ahead says so. Short batches have no
    /// whole blocks, which is where it saves time (ten of 41 instructions a key), and vectors
    /// compute lines of 32 bits only.
    #[inline(always)]
    fn finds_in_vectors(&self) -> bool {
        self.look_ahead.in_vectors()
            && self.keys.len() >= LONG_BATCH
            && self.range.total <= u64::from(u32::MAX)
    }

    /// Visits the line of every key, each prefetched `blocks_ahead` blocks before its visit. The
    /// number is read once for each block, and a constant would compile the loop again.
    ///
    /// With `IN_VECTORS` the positions of a block are computed at once and kept until its visit;
    /// otherwise each is computed twice, for the prefetch and for the visit.
    #[inline(always)]
    fn visit_all<const IN_VECTORS: bool>(self, blocks_ahead: usize) -> BatchCounts {
        const { assert!(LookAhead::MOST_BLOCKS < KNOWN) };
        let Self {
            lines,
            range,
            keys,
            duplicates,
            look_ahead,
            mut step,
        } = self;
        let cache = look_ahead.cache();
        let position = |positions: &BlockPositions, keys: &[KeyHash], index: usize| {
            if IN_VECTORS {
                positions.0[index] as usize
            } else {
                range.position(keys[index])
            }
        };
        // Block `n` has its positions in entry `n % KNOWN`.
        let mut positions = [const { BlockPositions([0; BLOCK]) }; KNOWN];
        let mut ahead = keys.chunks(BLOCK);
        for (keys, positions) in ahead.by_ref().take(blocks_ahead).zip(&mut positions) {
            if IN_VECTORS {
                range.positions_of(keys, positions);
            }
            let position = |index| position(positions, keys, index);
            prefetch_block::<S::Bucket>(lines, keys, cache, position);
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
            let mut bits = OutcomeBits::default();
            let whole: (Result<&[_; BLOCK], _>, Result<&[_; BLOCK], _>) =
                (keys.try_into(), next.try_into());
            if let (Ok(keys), Ok(next)) = whole {
                // Two whole blocks, the common case.
                let ahead = |index| position(fetched, next, index);
                let here = |index| position(visited, keys, index);
                let key = |index: usize| keys[index];
                match cache {
                    CacheLevel::L1 => {
                        let prefetch = |lines: &[Line], index: usize| {
                            S::Bucket::prefetch(lines, ahead(index), next[index], CacheLevel::L1);
                        };
                        visit_block(lines, key, here, prefetch, &mut step, &mut bits);
                    }
                    CacheLevel::L2 => {
                        let prefetch = |lines: &[Line], index: usize| {
                            S::Bucket::prefetch(lines, ahead(index), next[index], CacheLevel::L2);
                        };
                        visit_block(lines, key, here, prefetch, &mut step, &mut bits);
                    }
                }
            } else {
                let position_of = |index| position(fetched, next, index);
                prefetch_block::<S::Bucket>(lines, next, cache, position_of);
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

/// Visits a whole block of keys, and prefetches a bucket of a later one before each visit, so that
/// the prefetches are spread.
///
/// The count is a constant, which removes the bounds checks of the keys: a tenth of the
/// instructions, 5 % at 1 MiB. `prefetch` has a constant cache, so that the loop has no branch on
/// it and reads nothing from the stack for each key: 1.06 times the keys at 512 MiB. By index,
/// because the compiler's loop over an iterator of the keys passes 0.7 times the keys at 64 MiB on
/// a Zen 4, for a reason that was not found: measure after each change.
#[inline(always)]
fn visit_block<S: LineStep>(
    lines: &mut [Line],
    key: impl Fn(usize) -> KeyHash,
    position: impl Fn(usize) -> usize,
    prefetch: impl Fn(&[Line], usize),
    step: &mut S,
    bits: &mut OutcomeBits,
) {
    for index in 0..BLOCK {
        prefetch(lines, index);
        let bucket = S::Bucket::at_mut(lines, position(index));
        bits.push(step.visit(bucket, key(index)));
    }
}

/// Prefetches the buckets of at most a block of keys, whose positions `position` returns.
#[inline(always)]
pub(super) fn prefetch_block<B: Bucket>(
    lines: &[Line],
    keys: &[KeyHash],
    cache: CacheLevel,
    position: impl Fn(usize) -> usize,
) {
    // Without the black box the loop has at most 64 rounds for the compiler, which unrolls all of
    // them: a kilobyte in each loop of each rule on each kernel.
    let keys = &keys[..black_box(keys.len())];
    for (index, key) in keys.iter().enumerate() {
        B::prefetch(lines, position(index), *key, cache);
    }
}

impl BatchCounts {
    /// Counts the outcomes of 1 to 64 visits, and writes their verdicts.
    #[inline(always)]
    pub(super) fn add<S: LineStep>(&mut self, bits: &OutcomeBits, visits: usize, word: &mut u64) {
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
pub(super) struct OutcomeBits {
    duplicate: u64,
    displaced: u64,
}

impl OutcomeBits {
    #[inline(always)]
    pub(super) fn push(&mut self, outcome: Outcome) {
        self.duplicate = self.duplicate << 1 | u64::from(outcome.duplicate);
        self.displaced = self.displaced << 1 | u64::from(outcome.displaced);
    }
}

/// At most [`BLOCK`] keys and the lines they run over. The batch loop keeps the positions of several
/// blocks on its stack and moves a dozen values into registers: where lines are in the cache, that
/// takes longer than a few visits.
pub(crate) struct BlockLoop<'a, S> {
    pub(crate) lines: &'a mut [Line],
    pub(crate) range: LineRange,
    pub(crate) keys: &'a [KeyHash],
    /// One word, or none if there are no keys.
    pub(crate) duplicates: &'a mut [u64],
    /// The cache to prefetch into.
    pub(crate) cache: CacheLevel,
    pub(crate) step: S,
}

impl<S: LineStep> HotLoop for BlockLoop<'_, S> {
    type Output = BatchCounts;

    #[inline(always)]
    fn run(mut self) -> BatchCounts {
        let Self {
            lines,
            range,
            keys,
            cache,
            ..
        } = self;
        debug_assert!(keys.len() <= BLOCK);
        assert_eq!(
            self.duplicates.len(),
            usize::from(!keys.is_empty()),
            "one verdict word for each 64 keys"
        );
        let mut counts = BatchCounts::default();
        let Some(word) = self.duplicates.first_mut() else {
            return counts;
        };
        prefetch_block::<S::Bucket>(lines, keys, cache, |index| range.position(keys[index]));
        let mut bits = OutcomeBits::default();
        for key in keys {
            let bucket = S::Bucket::at_mut(lines, range.position(*key));
            bits.push(self.step.visit(bucket, *key));
        }
        counts.add::<S>(&bits, keys.len(), word);
        counts
    }
}

/// A single key and its bucket.
pub(crate) struct SingleVisit<'a, S: LineStep> {
    pub(crate) bucket: &'a mut S::Bucket,
    pub(crate) key: KeyHash,
    pub(crate) step: S,
}

impl<S: LineStep> HotLoop for SingleVisit<'_, S> {
    type Output = BatchCounts;

    #[inline(always)]
    fn run(mut self) -> BatchCounts {
        let outcome = self.step.visit(self.bucket, self.key);
        let duplicates = u64::from(outcome.duplicate);
        BatchCounts {
            duplicates,
            // The bits of visits that did not take place are meaningless.
            evictions: S::evictions(duplicates, u64::from(outcome.displaced)) & 1,
        }
    }
}

/// The batch loop, in every variant, and the loops of short batches against a plain loop.
#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use proptest::prelude::*;

    use super::*;

    /// Counts visits in the first word of a line. A key is a duplicate if its line was visited
    /// before; every third visit displaces.
    struct Counting;

    impl LineStep for Counting {
        type Bucket = Line;

        const FINDS_LINES: bool = true;

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

    /// The verdicts and counts of the loop over a batch that a filter runs, with a look-ahead.
    fn batch_loop(
        look_ahead: LookAhead,
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
            look_ahead,
            step: Counting,
        };
        let counts = batch.run();
        (words, counts.duplicates, counts.evictions)
    }

    /// Every look-ahead.
    fn look_aheads() -> impl Iterator<Item = LookAhead> {
        let caches = [CacheLevel::L1, CacheLevel::L2];
        let of = move |blocks| {
            caches.map(|cache| [true, false].map(|way| LookAhead::new(blocks, cache, way)))
        };
        (1..=3).flat_map(of).flatten()
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
            cache: CacheLevel::L1,
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
            for look_ahead in look_aheads() {
                let mut lines = vec![Line::EMPTY; 200];
                let counted = batch_loop(look_ahead, &mut lines, range, &keys);
                assert_eq!(counted, expected, "{count} keys, {look_ahead}");
                assert!(lines == plain, "{count} keys, {look_ahead}");
            }
        }
    }

    proptest! {
        /// A filter that measures changes its look-ahead from batch to batch.
        #[test]
        fn any_sequence_of_look_aheads_agrees_with_the_plain_loop(
            batches in prop::collection::vec((65_usize..700, 0_usize..12), 1..20),
        ) {
            let choices: Vec<LookAhead> = look_aheads().collect();
            let (range, all) = keys(batches.iter().map(|batch| batch.0).sum());
            let (mut plain, mut lines) = (vec![Line::EMPTY; 200], vec![Line::EMPTY; 200]);
            let mut rest = &all[..];
            for (count, choice) in batches {
                let (keys, later) = rest.split_at(count);
                let expected = plain_loop(&mut plain, range, keys);
                prop_assert_eq!(batch_loop(choices[choice], &mut lines, range, keys), expected);
                rest = later;
            }
            prop_assert!(lines == plain);
        }
    }

    #[test]
    fn short_batches_and_many_lines_are_not_found_in_vectors() {
        let many = u64::from(u32::MAX);
        for (count, total, in_vectors) in [
            (255, 300, false),
            (256, 300, true),
            (1000, many, true),
            (1000, many + 1, false),
        ] {
            let look_ahead = LookAhead::new(3, CacheLevel::L1, true);
            let batch = BatchLoop {
                lines: &mut [],
                range: LineRange { total, first: 0 },
                keys: &vec![KeyHash(0); count],
                duplicates: &mut [],
                look_ahead,
                step: Counting,
            };
            assert_eq!(
                batch.finds_in_vectors(),
                in_vectors,
                "{count} keys, {total} lines"
            );
        }
    }

    /// Lines whose numbers have more than 32 bits, in a part of the filter that exists.
    #[test]
    fn more_than_32_bits_of_lines_agree_with_the_plain_loop() {
        let total = 1 << 33;
        for first in [0, (1 << 32) - 50, (1 << 32) + 7, total - 100] {
            let range = LineRange { total, first };
            // A line is the 33 high bits of a hash.
            let key =
                |number: u64| (first + number * 37 % 100) << 31 | KeyHash(number).remix(1) >> 33;
            for count in [1, 64, 65, 255, 256, 1000] {
                let keys: Vec<KeyHash> = (0..count).map(|number| KeyHash(key(number))).collect();
                let (mut plain, mut lines) = (vec![Line::EMPTY; 100], vec![Line::EMPTY; 100]);
                let expected = plain_loop(&mut plain, range, &keys);
                assert_eq!(
                    batch_loop(LookAhead::INITIAL, &mut lines, range, &keys),
                    expected
                );
                assert!(lines == plain, "{count} keys from line {first} on");
                if count <= 64 {
                    let mut lines = vec![Line::EMPTY; 100];
                    assert_eq!(block_loop(&mut lines, range, &keys), expected);
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
            batch_loop(LookAhead::INITIAL, &mut lines, range, &keys);
            keys[index] = KeyHash(stray);
            for look_ahead in look_aheads() {
                let rejected = catch_unwind(AssertUnwindSafe(|| {
                    batch_loop(look_ahead, &mut lines, range, &keys);
                }));
                assert!(rejected.is_err(), "key {stray} at {index}");
            }
            // The loop of a short batch, and the bucket that `LineFilter` finds for a single visit.
            let short = &keys[index..][..1];
            let rejected = catch_unwind(AssertUnwindSafe(|| {
                block_loop(&mut lines, range, short);
            }));
            assert!(rejected.is_err(), "key {stray} alone");
            let rejected = catch_unwind(AssertUnwindSafe(|| {
                let bucket = Line::at_mut(&mut lines, range.position(keys[index]));
                let (key, step) = (keys[index], Counting);
                SingleVisit { bucket, key, step }.run()
            }));
            assert!(rejected.is_err(), "a single visit of key {stray}");
        }
    }
}
