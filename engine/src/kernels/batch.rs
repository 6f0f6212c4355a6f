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

/// The number of blocks whose positions are kept: up to three that are prefetched and the one that
/// is visited. A power of two, so that the remainder is a mask.
const KNOWN: usize = 4;

/// The step of a filter: its work on the bucket of a key, which is one line or a page.
pub(crate) trait LineStep {
    /// What the hash of a key selects.
    type Bucket: Bucket;

    /// Whether one loop serves all blocks and both caches, with branches for each key. Each of the
    /// other three loops is a kilobyte, for each rule.
    const ONE_LOOP: bool = false;

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

/// The positions of the blocks that are prefetched and not visited yet. A filter keeps them for its
/// loop: on the stack they would be zeroed for each batch, which takes longer than a few visits in
/// the cache.
#[derive(Debug)]
pub(crate) struct KnownPositions([BlockPositions; KNOWN]);

impl KnownPositions {
    pub(crate) const fn new() -> Self {
        Self([const { BlockPositions([0; BLOCK]) }; KNOWN])
    }
}

/// A batch of keys and the lines it runs over.
pub(crate) struct BatchLoop<'a, S> {
    pub(crate) lines: &'a mut [Line],
    pub(crate) range: LineRange,
    pub(crate) keys: &'a [KeyHash],
    pub(crate) duplicates: &'a mut [u64],
    pub(crate) look_ahead: LookAhead,
    pub(crate) positions: &'a mut KnownPositions,
    pub(crate) step: S,
}

impl<S: LineStep> HotLoop for BatchLoop<'_, S> {
    type Output = BatchCounts;

    /// Visits the line of every key, each prefetched some blocks before its visit.
    ///
    /// Each round prefetches a block and visits another one. In the first rounds there is none to
    /// visit yet, and in the last ones none to prefetch.
    #[inline(always)]
    fn run(self) -> BatchCounts {
        const { assert!(LookAhead::MOST_BLOCKS < KNOWN) };
        let Self {
            lines,
            range,
            keys,
            duplicates,
            look_ahead,
            positions: KnownPositions(positions),
            mut step,
        } = self;
        let blocks = keys.len().div_ceil(BLOCK);
        assert_eq!(
            duplicates.len(),
            blocks,
            "one verdict word for each 64 keys"
        );
        let cache = look_ahead.cache();
        let blocks_ahead = look_ahead.blocks().min(blocks);
        let mut ahead = keys.chunks(BLOCK);
        let mut visited = keys.chunks(BLOCK).zip(duplicates);
        let mut counts = BatchCounts::default();
        for round in 0..blocks + blocks_ahead {
            let next = ahead.next().unwrap_or_default();
            range.positions_of(next, &mut positions[round % KNOWN]);
            let fetched = &positions[round % KNOWN].0;
            let visit = if round < blocks_ahead {
                None
            } else {
                visited.next()
            };
            let Some((keys, word)) = visit else {
                prefetch_block::<S::Bucket>(lines, next, fetched, cache);
                continue;
            };
            let here = &positions[(round - blocks_ahead) % KNOWN].0;
            let mut bits = OutcomeBits::default();
            if S::ONE_LOOP {
                for index in 0..keys.len().max(next.len()) {
                    if let Some(key) = next.get(index) {
                        S::Bucket::prefetch(lines, fetched[index] as usize, *key, cache);
                    }
                    if let Some(key) = keys.get(index) {
                        let bucket = S::Bucket::at_mut(lines, here[index] as usize);
                        bits.push(step.visit(bucket, *key));
                    }
                }
                counts.add::<S>(&bits, keys.len(), word);
                continue;
            }
            let whole: (Result<&[_; BLOCK], _>, Result<&[_; BLOCK], _>) =
                (keys.try_into(), next.try_into());
            if let (Ok(keys), Ok(next)) = whole {
                // Two whole blocks, the common case.
                match cache {
                    CacheLevel::L1 => {
                        let prefetch = |lines: &[Line], index: usize| {
                            let position = fetched[index] as usize;
                            S::Bucket::prefetch(lines, position, next[index], CacheLevel::L1);
                        };
                        visit_block(lines, keys, here, prefetch, &mut step, &mut bits);
                    }
                    CacheLevel::L2 => {
                        let prefetch = |lines: &[Line], index: usize| {
                            let position = fetched[index] as usize;
                            S::Bucket::prefetch(lines, position, next[index], CacheLevel::L2);
                        };
                        visit_block(lines, keys, here, prefetch, &mut step, &mut bits);
                    }
                }
            } else {
                prefetch_block::<S::Bucket>(lines, next, fetched, cache);
                for (key, position) in keys.iter().zip(here) {
                    let bucket = S::Bucket::at_mut(lines, *position as usize);
                    bits.push(step.visit(bucket, *key));
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
    keys: &[KeyHash; BLOCK],
    positions: &[u32; BLOCK],
    prefetch: impl Fn(&[Line], usize),
    step: &mut S,
    bits: &mut OutcomeBits,
) {
    for index in 0..BLOCK {
        prefetch(lines, index);
        let bucket = S::Bucket::at_mut(lines, positions[index] as usize);
        bits.push(step.visit(bucket, keys[index]));
    }
}

/// Prefetches the buckets of at most a block of keys.
#[inline(always)]
fn prefetch_block<B: Bucket>(
    lines: &[Line],
    keys: &[KeyHash],
    positions: &[u32; BLOCK],
    cache: CacheLevel,
) {
    // Without the black box the loop has at most 64 rounds for the compiler, which unrolls all of
    // them: a kilobyte in each loop of each rule on each kernel.
    let keys = &keys[..black_box(keys.len())];
    for (key, position) in keys.iter().zip(positions) {
        B::prefetch(lines, *position as usize, *key, cache);
    }
}

impl BatchCounts {
    /// Counts the outcomes of 1 to 64 visits, and writes their verdicts.
    #[inline(always)]
    fn add<S: LineStep>(&mut self, bits: &OutcomeBits, visits: usize, word: &mut u64) {
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
struct OutcomeBits {
    duplicate: u64,
    displaced: u64,
}

impl OutcomeBits {
    #[inline(always)]
    fn push(&mut self, outcome: Outcome) {
        self.duplicate = self.duplicate << 1 | u64::from(outcome.duplicate);
        self.displaced = self.displaced << 1 | u64::from(outcome.displaced);
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

/// The batch loop, in every variant, and single visits against a plain loop.
#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use proptest::prelude::*;

    use super::*;
    use crate::kernels::bucket::MOST_LINES;

    /// Counts visits in the first word of a line. A key is a duplicate if its line was visited
    /// before; every third visit displaces.
    struct Counting<const ONE_LOOP: bool>;

    impl<const ONE_LOOP: bool> LineStep for Counting<ONE_LOOP> {
        type Bucket = Line;
        const ONE_LOOP: bool = ONE_LOOP;

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
            let outcome = Counting::<false>.visit(&mut lines[range.position(*key)], *key);
            words[index / 64] |= u64::from(outcome.duplicate) << (index % 64);
            duplicates += u64::from(outcome.duplicate);
            evictions += u64::from(outcome.duplicate && outcome.displaced);
        }
        (words, duplicates, evictions)
    }

    thread_local! {
        /// Those of the batches before in this thread, as in a filter; at first of no line.
        static POSITIONS: RefCell<KnownPositions> = const {
            let of_no_line = [const { BlockPositions([u32::MAX; BLOCK]) }; KNOWN];
            RefCell::new(KnownPositions(of_no_line))
        };
    }

    /// The verdicts and counts of the loops over a batch that a filter runs, with a look-ahead.
    fn batch_loop(
        look_ahead: LookAhead,
        lines: &mut [Line],
        range: LineRange,
        keys: &[KeyHash],
    ) -> (Vec<u64>, u64, u64) {
        let mut others = lines.to_vec();
        let expected = loop_of_form::<true>(look_ahead, &mut others, range, keys);
        let counted = loop_of_form::<false>(look_ahead, lines, range, keys);
        assert_eq!(counted, expected);
        assert!(lines == others);
        counted
    }

    fn loop_of_form<const ONE_LOOP: bool>(
        look_ahead: LookAhead,
        lines: &mut [Line],
        range: LineRange,
        keys: &[KeyHash],
    ) -> (Vec<u64>, u64, u64) {
        let mut words = vec![u64::MAX; keys.len().div_ceil(BLOCK)];
        let counts = POSITIONS.with_borrow_mut(|positions| {
            let batch = BatchLoop {
                lines,
                range,
                keys,
                duplicates: &mut words,
                look_ahead,
                positions,
                step: Counting::<ONE_LOOP>,
            };
            batch.run()
        });
        (words, counts.duplicates, counts.evictions)
    }

    /// The counts of single visits.
    fn single_visits(lines: &mut [Line], range: LineRange, keys: &[KeyHash]) -> (u64, u64) {
        let (mut duplicates, mut evictions) = (0, 0);
        for key in keys {
            let bucket = &mut lines[range.position(*key)];
            let (key, step) = (*key, Counting::<false>);
            let counts = SingleVisit { bucket, key, step }.run();
            duplicates += counts.duplicates;
            evictions += counts.evictions;
        }
        (duplicates, evictions)
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
            let mut lines = vec![Line::EMPTY; 200];
            let counts = single_visits(&mut lines, range, &keys);
            assert_eq!(counts, (expected.1, expected.2));
            assert!(lines == plain, "{count} keys");
            for look_ahead in LookAhead::all() {
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
            batches in prop::collection::vec((1_usize..700, 0_usize..6), 1..20),
        ) {
            let choices: Vec<LookAhead> = LookAhead::all().collect();
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

    /// The most lines, whose number has more than 32 bits, in a part of the filter that exists.
    #[test]
    fn the_most_lines_agree_with_the_plain_loop() {
        let total = MOST_LINES;
        for first in [0, total / 2 - 50, total - 100] {
            let range = LineRange { total, first };
            // A line is the upper half of a hash.
            let key =
                |number: u64| (first + number * 37 % 100) << 32 | KeyHash(number).remix(1) >> 32;
            for count in [1, 64, 65, 255, 256, 1000] {
                let keys: Vec<KeyHash> = (0..count).map(|number| KeyHash(key(number))).collect();
                let (mut plain, mut lines) = (vec![Line::EMPTY; 100], vec![Line::EMPTY; 100]);
                let expected = plain_loop(&mut plain, range, &keys);
                assert_eq!(
                    batch_loop(LookAhead::INITIAL, &mut lines, range, &keys),
                    expected
                );
                assert!(lines == plain, "{count} keys from line {first} on");
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
            for look_ahead in LookAhead::all() {
                for run in [loop_of_form::<true>, loop_of_form::<false>] {
                    let rejected = catch_unwind(AssertUnwindSafe(|| {
                        run(look_ahead, &mut lines, range, &keys);
                    }));
                    assert!(rejected.is_err(), "key {stray} at {index}");
                }
                // What it left does not show in the next batch.
                let (mut plain, mut lines) = (vec![Line::EMPTY; 100], vec![Line::EMPTY; 100]);
                let expected = plain_loop(&mut plain, range, &keys[..index]);
                let counted = batch_loop(look_ahead, &mut lines, range, &keys[..index]);
                assert_eq!(counted, expected);
                assert!(lines == plain);
            }
            // A short batch, and the bucket that `LineFilter` finds for a single visit.
            let short = &keys[index..][..1];
            let rejected = catch_unwind(AssertUnwindSafe(|| {
                batch_loop(LookAhead::INITIAL, &mut lines, range, short);
            }));
            assert!(rejected.is_err(), "key {stray} alone");
            let rejected = catch_unwind(AssertUnwindSafe(|| {
                let bucket = Line::at_mut(&mut lines, range.position(keys[index]));
                let (key, step) = (keys[index], Counting::<false>);
                SingleVisit { bucket, key, step }.run()
            }));
            assert!(rejected.is_err(), "a single visit of key {stray}");
        }
    }
}
