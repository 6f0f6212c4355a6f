//! The batch loop that every line filter runs in: fetch lines ahead, then visit them in order and pack the verdicts.

use crate::cpu::HotLoop;
use crate::hash::KeyHash;
use crate::memory::{Line, prefetch};

/// How many keys ahead a line is fetched. Far enough to cover a memory access, near enough that the line is still cached.
const AHEAD: usize = 128;

/// What a filter does to the one line of a key.
pub(crate) trait LineStep {
    /// Tests and records the key in its line. Must be `#[inline(always)]`.
    fn visit(&self, line: &mut Line, key: KeyHash) -> Visit;

    /// Of up to 64 visits, one bit each, those that made the line forget another key.
    fn evictions(duplicates: u64, displaced: u64) -> u64;
}

/// What came of a visit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visit {
    /// The key is a duplicate.
    pub(crate) duplicate: bool,
    /// What the key would take, if it takes anything, was taken.
    pub(crate) displaced: bool,
}

/// The counts of a batch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Visits {
    pub(crate) duplicates: u64,
    pub(crate) evictions: u64,
}

/// A contiguous range of the lines of a filter: all of them, or a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineRange {
    /// How many lines the whole filter has.
    pub(crate) total: u64,
    /// The first line of the range.
    pub(crate) first: u64,
}

impl LineRange {
    /// Where the line of a key lies in an array that holds this range; past its end if the key is not of this range.
    #[inline(always)]
    pub(crate) const fn position(self, key: KeyHash) -> usize {
        key.line(self.total).wrapping_sub(self.first) as usize
    }
}

/// One batch on its way through the lines.
pub(crate) struct Drive<'a, S> {
    pub(crate) lines: &'a mut [Line],
    pub(crate) range: LineRange,
    pub(crate) keys: &'a [KeyHash],
    pub(crate) duplicates: &'a mut [u64],
    pub(crate) step: S,
}

impl<S: LineStep> HotLoop for Drive<'_, S> {
    type Output = Visits;

    #[inline(always)]
    fn run(self) -> Visits {
        let Self {
            lines,
            range,
            keys,
            duplicates,
            step,
        } = self;
        assert_eq!(
            duplicates.len(),
            keys.len().div_ceil(64),
            "one verdict word for each 64 keys"
        );
        for key in keys.iter().take(AHEAD) {
            prefetch(lines, range.position(*key));
        }
        let mut ahead = keys.iter().skip(AHEAD);
        let mut visits = Visits::default();
        for (keys, word) in keys.chunks(64).zip(duplicates) {
            // Bits in registers, counted once for 64 keys; shifted in from below, which costs an add with carry.
            let (mut duplicate, mut displaced) = (0u64, 0u64);
            for key in keys {
                if let Some(next) = ahead.next() {
                    prefetch(lines, range.position(*next));
                }
                let visit = step.visit(&mut lines[range.position(*key)], *key);
                duplicate = duplicate << 1 | u64::from(visit.duplicate);
                displaced = displaced << 1 | u64::from(visit.displaced);
            }
            let unused = 64 - keys.len();
            *word = duplicate.reverse_bits() >> unused;
            visits.duplicates += u64::from(duplicate.count_ones());
            visits.evictions += u64::from(S::evictions(duplicate, displaced).count_ones());
        }
        visits
    }
}
