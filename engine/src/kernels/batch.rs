//! The batch loop that every line filter runs in: fetch lines ahead, then visit them in order and pack the verdicts.

use crate::hash::KeyHash;
use crate::kernels::isa::HotLoop;
use crate::memory::{Line, prefetch};

/// Keys that share a word of verdicts. The loop looks ahead by whole blocks.
const BLOCK: usize = 64;

/// Arrays of fewer lines, below 128 MiB, are partly in the caches.
const CACHED_LINES: usize = 1 << 21;

/// Batches of fewer keys have no whole block that is visited while another one is fetched.
const LONG_BATCH: usize = 4 * BLOCK;

/// Blocks whose lines are known at a time: those that are fetched and the one that is visited.
const KNOWN: usize = 4;

/// What a filter does to the one line of a key.
pub(crate) trait LineStep {
    /// Tests and records the key in its line. Must be `#[inline(always)]`.
    fn visit(&self, line: &mut Line, key: KeyHash) -> Outcome;

    /// Of up to 64 visits, one bit each, those that made the line forget another key.
    fn evictions(duplicates: u64, displaced: u64) -> u64;
}

/// What came of a visit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    /// The key is a duplicate.
    pub(crate) duplicate: bool,
    /// What the key would take, if it takes anything, was taken.
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

/// The counts of a batch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BatchCounts {
    pub(crate) duplicates: u64,
    pub(crate) evictions: u64,
}

/// Where a contiguous range of the lines of a filter begins: at its first line, or at that of a partition.
///
/// # Examples
/// ```
/// use echoless::KeyHash;
/// use echoless::filters::lines::LineRange;
/// let upper_half = LineRange { total: 1000, first: 500 };
/// assert_eq!(upper_half.position(KeyHash(3 << 62)), 250);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineRange {
    /// How many lines the whole filter has.
    pub total: u64,
    /// The first line of the range.
    pub first: u64,
}

impl LineRange {
    /// Where the line of a key lies in an array that holds this range; past its end if the key is not of this range.
    #[must_use]
    #[inline(always)]
    pub const fn position(self, key: KeyHash) -> usize {
        key.line(self.total).wrapping_sub(self.first) as usize
    }

    /// The positions of a block of keys, of fewer than 2^32 lines: the same numbers by multiplications that vectors have.
    #[inline(always)]
    fn find(self, keys: &[KeyHash], positions: &mut [u32; BLOCK]) {
        debug_assert!(self.total >> 32 == 0);
        let total = u64::from(self.total as u32);
        for (key, position) in keys.iter().zip(positions) {
            let low = ((key.0 & 0xffff_ffff) * total) >> 32;
            let line = ((key.0 >> 32) * total + low) >> 32;
            *position = line.wrapping_sub(self.first) as u32;
        }
    }
}

/// One batch on its way through the lines.
pub(crate) struct BatchLoop<'a, S> {
    pub(crate) lines: &'a mut [Line],
    pub(crate) range: LineRange,
    pub(crate) keys: &'a [KeyHash],
    pub(crate) duplicates: &'a mut [u64],
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
        // Far enough to cover a memory access, near enough that the line is still cached: arrays that are partly in the caches are read
        // faster, so more misses have to be in flight. Time is there to be saved by finding their lines in vectors, too; while memory
        // is waited for, that only makes the fetches come in bursts.
        if self.lines.len() >= CACHED_LINES {
            self.visit_all::<2, false>()
        } else if self.keys.len() < LONG_BATCH || self.range.total > u64::from(u32::MAX) {
            self.visit_all::<3, false>()
        } else {
            self.visit_all::<3, true>()
        }
    }
}

impl<S: LineStep> BatchLoop<'_, S> {
    /// BatchCounts the lines, each fetched `AHEAD` blocks before; `IN_VECTORS` says how they are found.
    #[inline(always)]
    fn visit_all<const AHEAD: usize, const IN_VECTORS: bool>(self) -> BatchCounts {
        const { assert!(AHEAD < KNOWN) };
        let Self {
            lines,
            range,
            keys,
            duplicates,
            step,
        } = self;
        let position = |positions: &[u32; BLOCK], keys: &[KeyHash], index: usize| {
            if IN_VECTORS {
                positions[index] as usize
            } else {
                range.position(keys[index])
            }
        };
        let mut positions = [[0; BLOCK]; KNOWN];
        let mut coming = keys.chunks(BLOCK);
        for (keys, positions) in coming.by_ref().take(AHEAD).zip(&mut positions) {
            if IN_VECTORS {
                range.find(keys, positions);
            }
            for index in 0..keys.len() {
                prefetch(lines, position(positions, keys, index));
            }
        }
        let mut visits = BatchCounts::default();
        for (number, (keys, word)) in keys.chunks(BLOCK).zip(duplicates).enumerate() {
            let next = coming.next().unwrap_or_default();
            if IN_VECTORS {
                range.find(next, &mut positions[(number + AHEAD) % KNOWN]);
            }
            let (here, there) = (
                &positions[number % KNOWN],
                &positions[(number + AHEAD) % KNOWN],
            );
            let mut bits = Bits::default();
            let whole: (Result<&[_; BLOCK], _>, Result<&[_; BLOCK], _>) =
                (keys.try_into(), next.try_into());
            if let (Ok(keys), Ok(next)) = whole {
                // The common case: a known count and nothing to check saves a tenth of the instructions.
                for index in 0..BLOCK {
                    prefetch(lines, position(there, next, index));
                    let line = &mut lines[position(here, keys, index)];
                    bits.push(step.visit(line, keys[index]));
                }
            } else {
                for index in 0..next.len() {
                    prefetch(lines, position(there, next, index));
                }
                for index in 0..keys.len() {
                    let line = &mut lines[position(here, keys, index)];
                    bits.push(step.visit(line, keys[index]));
                }
            }
            *word = bits.duplicate.reverse_bits() >> (64 - keys.len());
            visits.duplicates += u64::from(bits.duplicate.count_ones());
            let evictions = S::evictions(bits.duplicate, bits.displaced);
            visits.evictions += u64::from(evictions.count_ones());
        }
        visits
    }
}

/// What came of up to 64 visits, in registers, counted once for all of them. The latest is in the lowest bit: to shift in from below costs
/// an add with carry.
#[derive(Default)]
struct Bits {
    duplicate: u64,
    displaced: u64,
}

impl Bits {
    #[inline(always)]
    fn push(&mut self, visit: Outcome) {
        self.duplicate = self.duplicate << 1 | u64::from(visit.duplicate);
        self.displaced = self.displaced << 1 | u64::from(visit.displaced);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use proptest::prelude::*;

    use super::*;

    /// Counts visits in the first word of a line; a duplicate if the line was visited before, displaced at every third visit.
    struct Counting;

    impl LineStep for Counting {
        fn visit(&self, line: &mut Line, _: KeyHash) -> Outcome {
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

    /// What a plain loop over the keys does.
    fn plainly(lines: &mut [Line], range: LineRange, keys: &[KeyHash]) -> (Vec<u64>, u64, u64) {
        let mut words = vec![0; keys.len().div_ceil(BLOCK)];
        let (mut duplicates, mut evictions) = (0, 0);
        for (index, key) in keys.iter().enumerate() {
            let visit = Counting.visit(&mut lines[range.position(*key)], *key);
            words[index / 64] |= u64::from(visit.duplicate) << (index % 64);
            duplicates += u64::from(visit.duplicate);
            evictions += u64::from(visit.duplicate && visit.displaced);
        }
        (words, duplicates, evictions)
    }

    fn driven<const AHEAD: usize, const IN_VECTORS: bool>(
        lines: &mut [Line],
        range: LineRange,
        keys: &[KeyHash],
    ) -> (Vec<u64>, u64, u64) {
        let mut words = vec![u64::MAX; keys.len().div_ceil(BLOCK)];
        let drive = BatchLoop {
            lines,
            range,
            keys,
            duplicates: &mut words,
            step: Counting,
        };
        let visits = drive.visit_all::<AHEAD, IN_VECTORS>();
        (words, visits.duplicates, visits.evictions)
    }

    /// So many keys of the lines from 100 on, of 300.
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
    fn every_way_through_a_batch_is_the_plain_loop() {
        for count in [
            0, 1, 63, 64, 65, 127, 128, 129, 191, 192, 193, 255, 256, 257, 1000, 1024,
        ] {
            let (range, keys) = keys(count);
            let mut plain = vec![Line::EMPTY; 200];
            let expected = plainly(&mut plain, range, &keys);
            for drive in [
                driven::<2, false>,
                driven::<3, false>,
                driven::<2, true>,
                driven::<3, true>,
            ] {
                let mut lines = vec![Line::EMPTY; 200];
                assert_eq!(drive(&mut lines, range, &keys), expected, "{count} keys");
                assert!(lines == plain, "{count} keys");
            }
        }
    }

    #[test]
    fn a_key_before_or_behind_the_range_is_refused() {
        let (range, mut keys) = keys(2000);
        keys.retain(|key| key.line(300) < 200);
        for (stray, place) in [(0, 3), (0, 300), (u64::MAX, 3), (u64::MAX, 300)] {
            let mut keys = keys.clone();
            let mut lines = vec![Line::EMPTY; 100];
            driven::<3, true>(&mut lines, range, &keys);
            keys[place] = KeyHash(stray);
            for drive in [driven::<2, false>, driven::<3, true>] {
                let refused = catch_unwind(AssertUnwindSafe(|| {
                    drive(&mut lines, range, &keys);
                }));
                assert!(refused.is_err(), "key {stray} at {place}");
            }
        }
    }

    proptest! {
        #[test]
        fn positions_found_in_vectors_are_those_of_single_keys(
            keys in prop::collection::vec(
                prop_oneof![Just(0), Just(u64::MAX), any::<u64>()].prop_map(KeyHash),
                0..=BLOCK,
            ),
            total in prop_oneof![1..=8_u64, 1..1_u64 << 21, 1..1_u64 << 32],
            first in any::<prop::sample::Selector>(),
        ) {
            let range = LineRange { total, first: first.select([0, total / 3, total - 1]) };
            // The first keys of lines, and those before them.
            let border = |key: &KeyHash| {
                let first = (u128::from(key.line(total)) << 64).div_ceil(u128::from(total)) as u64;
                [*key, KeyHash(first), KeyHash(first.wrapping_sub(1))]
            };
            let keys: Vec<KeyHash> = keys.iter().flat_map(border).take(BLOCK).collect();
            let mut positions = [0; BLOCK];
            range.find(&keys, &mut positions);
            for (key, position) in keys.iter().zip(positions) {
                // Of a key before the range both are past its end.
                let single = range.position(*key);
                prop_assert_eq!(position, single as u32);
                prop_assert_eq!(single < total as usize, u64::from(position) < total - range.first);
            }
        }
    }
}
