//! The loops of single keys and short batches, beside the [batch loop](super::batch).
//!
//! The batch loop keeps the positions of several blocks on its stack and moves a dozen values into
//! registers. Where lines are in the cache, that takes longer than a few visits.

use super::batch::{BLOCK, BatchCounts, LineStep, OutcomeBits, prefetch_block};
use super::line_range::LineRange;
use crate::hash::KeyHash;
use crate::isa::HotLoop;
use crate::kernels::bucket::Bucket;
use crate::memory::{CacheLevel, Line};

/// At most [`BLOCK`] keys and the lines they run over.
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
