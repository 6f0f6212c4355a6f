//! The filter in horizontal slices.

use super::FailedKeys;
use crate::adapters::slices::path::{check_index, wrong_depth};
use echoless::extend::{Built, SliceCounts, Sliced, SlicedFilter, scatter};
use echoless::{Batch, Filter, KeyHash, Partitioning, Report, SpecError, Tally};

/// The number of keys sorted by slice at a time. A multiple of 64, so that a batch is whole words
/// of verdicts.
const BATCH: usize = 4096;

/// The keys that needed a failed piece within a slice.
fn unavailable_in(slice: &Built) -> u64 {
    (slice.slices()).map_or(0, |slices| slices.counts().unavailable)
}

/// How the slice of a key is chosen.
#[derive(Debug)]
pub(super) enum Chooser {
    /// By the range of lines that holds the key's line.
    Lines(Partitioning),
    /// By a hash of its own.
    Hash { stream: u64, count: u64 },
}

impl Chooser {
    #[inline(always)]
    fn slice(&self, key: KeyHash) -> usize {
        match self {
            Self::Lines(partitioning) => partitioning.partition_of(key),
            Self::Hash { stream, count } => {
                KeyHash::from_uniform(key.remix(*stream)).line(*count) as usize
            }
        }
    }
}

/// The keys of a batch that belong to one slice.
#[derive(Debug, Default)]
struct SliceBatch {
    keys: Vec<KeyHash>,
    /// The index of each key in the batch.
    origins: Vec<usize>,
}

/// S filters, one of which a key belongs to. Cache lines touched per key: those of a slice.
pub(super) struct Horizontal {
    slices: Vec<Built>,
    chooser: Chooser,
    policy: FailedKeys,
    failed: Vec<bool>,
    /// Whether a slice has failed since the filter was built or cleared: its keys were lost.
    lost_keys: bool,
    /// The clock, for slices that are restored.
    tick: u64,
    /// Keys that needed a failed piece of slices that were cleared since.
    nested_unavailable: u64,
    counts: SliceCounts,
    fresh: u64,
    loads: Vec<u64>,
    /// The keys of the current batch, by slice. Empty between batches.
    batches: Vec<SliceBatch>,
    /// The slices with keys in the current batch.
    used: Vec<usize>,
    /// The verdict bits of a slice.
    words: Vec<u64>,
}

impl Horizontal {
    pub(super) fn new(slices: Vec<Built>, chooser: Chooser, policy: FailedKeys) -> Self {
        let count = slices.len();
        Self {
            slices,
            chooser,
            policy,
            failed: vec![false; count],
            lost_keys: false,
            tick: 0,
            nested_unavailable: 0,
            counts: SliceCounts::default(),
            fresh: 0,
            loads: vec![0; count],
            batches: (0..count).map(|_| SliceBatch::default()).collect(),
            used: Vec::new(),
            words: Vec::new(),
        }
    }

    /// Moves the clock of all slices that have not failed.
    fn advance(&mut self, tick: u64) {
        self.tick = self.tick.max(tick);
        for (slice, failed) in self.slices.iter_mut().zip(&self.failed) {
            if !failed {
                slice.filter_mut().advance_to(tick);
            }
        }
    }

    /// Observes at most [`BATCH`] keys: sorts them by slice, in order within a slice, and scatters
    /// the verdicts of each slice back to the order of the batch.
    fn observe_part(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        duplicates.fill(0);
        for (origin, key) in keys.iter().enumerate() {
            let slice = self.chooser.slice(*key);
            if self.failed[slice] {
                self.counts.unavailable += 1;
                let duplicate = self.policy == FailedKeys::Duplicate;
                duplicates[origin / 64] |= u64::from(duplicate) << (origin % 64);
                continue;
            }
            let batch = &mut self.batches[slice];
            if batch.keys.is_empty() {
                self.used.push(slice);
            }
            batch.keys.push(*key);
            batch.origins.push(origin);
        }
        for slice in self.used.drain(..) {
            let SliceBatch { keys, origins } = &mut self.batches[slice];
            self.words.resize(keys.len().div_ceil(64), 0);
            let filter = self.slices[slice].filter_mut();
            filter.observe_batch(Batch::new(keys), &mut self.words);
            scatter(&self.words, duplicates, |index| origins[index]);
            self.loads[slice] += keys.len() as u64;
            self.counts.probed += keys.len() as u64;
            // A request and its answer. The slice tests and sets at once.
            self.counts.messages += 2 * keys.len() as u64;
            keys.clear();
            origins.clear();
        }
        self.counts.observed += keys.len() as u64;
        let found: u64 = duplicates
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum();
        self.fresh += keys.len() as u64 - found;
    }

    /// The slice of a path of any length above 0, and the rest of the path.
    fn split_path<'p>(&self, path: &'p [usize]) -> Result<(usize, &'p [usize]), SpecError> {
        let Some((index, rest)) = path.split_first() else {
            return Err(wrong_depth(path, "the index of a slice"));
        };
        Ok((check_index(path, *index, self.slices.len())?, rest))
    }

    /// The slices within a slice.
    fn nested(&mut self, slice: usize, path: &[usize]) -> Result<&mut dyn Sliced, SpecError> {
        let error = || wrong_depth(path, "one index, as the slices are not cut further");
        self.slices[slice].slices_mut().ok_or_else(error)
    }

    fn filters(&self) -> impl Iterator<Item = &dyn Filter> {
        self.slices.iter().map(Built::filter)
    }

    fn failed_fraction(&self) -> f64 {
        let failed = self.failed.iter().filter(|failed| **failed).count();
        failed as f64 / self.failed.len() as f64
    }
}

impl Sliced for Horizontal {
    fn slice_count(&self) -> usize {
        self.slices.len()
    }

    fn fail(&mut self, path: &[usize]) -> Result<(), SpecError> {
        let (slice, rest) = self.split_path(path)?;
        if !rest.is_empty() {
            self.nested(slice, path)?.fail(rest)?;
        } else if !self.failed[slice] {
            self.failed[slice] = true;
            self.nested_unavailable += unavailable_in(&self.slices[slice]);
            self.slices[slice].filter_mut().clear();
        }
        self.lost_keys = true;
        Ok(())
    }

    fn restore(&mut self, path: &[usize]) -> Result<(), SpecError> {
        let (slice, rest) = self.split_path(path)?;
        if !rest.is_empty() {
            return self.nested(slice, path)?.restore(rest);
        }
        if self.failed[slice] {
            self.failed[slice] = false;
            // It was cleared, its pieces were restored, and its clock went back.
            self.slices[slice].filter_mut().advance_to(self.tick);
        } else if let Some(nested) = self.slices[slice].slices_mut() {
            for piece in 0..nested.slice_count() {
                nested.restore(&[piece])?;
            }
        }
        Ok(())
    }

    fn is_failed(&self, path: &[usize]) -> Result<bool, SpecError> {
        let (slice, rest) = self.split_path(path)?;
        let nested = self.slices[slice].slices();
        let failed = match (nested, rest) {
            (None, []) => false,
            (None, _) => {
                let allowed = "one index, as the slices are not cut further";
                return Err(wrong_depth(path, allowed));
            }
            (Some(nested), []) => {
                let mut pieces = (0..nested.slice_count()).map(|piece| nested.is_failed(&[piece]));
                pieces.try_fold(true, |all, piece| piece.map(|failed| all && failed))?
            }
            (Some(nested), rest) => nested.is_failed(rest)?,
        };
        Ok(failed || self.failed[slice])
    }

    fn counts(&self) -> SliceCounts {
        self.counts
    }

    fn loads(&self) -> &[u64] {
        &self.loads
    }
}

impl Filter for Horizontal {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        batch.observe_runs(duplicates, |tick, batch, duplicates| {
            if let Some(tick) = tick {
                self.advance(tick);
            }
            let words = duplicates.chunks_mut(BATCH / 64);
            for (keys, duplicates) in batch.keys().chunks(BATCH).zip(words) {
                self.observe_part(keys, duplicates);
            }
        });
    }

    fn contains(&self, key: KeyHash) -> bool {
        let slice = self.chooser.slice(key);
        if self.failed[slice] {
            return self.policy == FailedKeys::Duplicate;
        }
        self.slices[slice].filter().contains(key)
    }

    /// Restores all slices, too.
    fn clear(&mut self) {
        for slice in &mut self.slices {
            slice.filter_mut().clear();
        }
        self.failed.fill(false);
        self.lost_keys = false;
        self.tick = 0;
        self.nested_unavailable = 0;
        self.counts = SliceCounts::default();
        self.fresh = 0;
        self.loads.fill(0);
    }

    fn memory_bytes(&self) -> u64 {
        self.filters().map(Filter::memory_bytes).sum()
    }

    /// The sum of the slices. Once keys were lost, the absence of evictions promises nothing.
    fn tally(&self) -> Tally {
        let sum: Tally = self.filters().map(Filter::tally).sum();
        let nested: u64 = self.slices.iter().map(unavailable_in).sum();
        Tally {
            observed: Some(self.counts.observed),
            fresh: Some(self.fresh),
            evictions: sum.evictions.filter(|_| !self.lost_keys),
            unavailable: Some(self.counts.unavailable + self.nested_unavailable + nested),
            ..sum
        }
    }

    fn report_on(&self, tally: Tally) -> Report {
        // Only the lines of one filter have estimates that follow from the sum of the tallies.
        let inner = self.slices[0].filter().report_on(tally);
        let report = match self.chooser {
            Chooser::Lines(_) => inner,
            Chooser::Hash { .. } => Report {
                kernel: inner.kernel,
                slot_bits: inner.slot_bits,
                window: inner.window,
                ..Report::new(tally)
            },
        };
        if !self.lost_keys {
            return report;
        }
        // Failed slices are empty: they contribute a rate of 0 to the mean.
        let added = match self.policy {
            FailedKeys::Duplicate => self.failed_fraction(),
            FailedKeys::Fresh => 0.0,
        };
        Report {
            expected_fpr: report.expected_fpr.map(|fpr| (fpr + added).min(1.0)),
            expected_false_duplicates: None,
            most_fpr: None,
            miss_age: None,
            ..report
        }
    }
}

impl SlicedFilter for Horizontal {
    fn slices(&self) -> &dyn Sliced {
        self
    }

    fn slices_mut(&mut self) -> &mut dyn Sliced {
        self
    }
}
