//! Horizontal slices: each key belongs to one of S filters (paper 001, definition 1).

use super::cut::{MOST_SLICES, check_index, wrong_depth};
use echoless::extend::{
    AdapterRow, Head, Layers, Named, OptionRow, SliceCounts, Sliced, check_available, names,
    scatter,
};
use echoless::spec::Facts;
use echoless::{Batch, BuildError, Filter, KeyHash, Partitioning, Report, SpecError, Tally};

/// The number of keys sorted by slice at a time. A multiple of 64, so that a batch is whole words
/// of verdicts.
const BATCH: usize = 4096;

/// The keys that needed a failed piece within a slice.
fn unavailable_in(slice: &dyn Filter) -> u64 {
    (slice.slices()).map_or(0, |slices| slices.counts().unavailable)
}

/// How the slice of a key is chosen.
#[derive(Debug)]
enum Chooser {
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
struct Horizontal {
    slices: Vec<Box<dyn Filter>>,
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
    fn new(slices: Vec<Box<dyn Filter>>, chooser: Chooser, policy: FailedKeys) -> Self {
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
                slice.advance_to(tick);
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
            self.slices[slice].observe_batch(Batch::new(keys), &mut self.words);
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
        self.slices.iter().map(|slice| &**slice)
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
            self.nested_unavailable += unavailable_in(&*self.slices[slice]);
            self.slices[slice].clear();
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
            self.slices[slice].advance_to(self.tick);
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
        self.slices[slice].contains(key)
    }

    /// Restores all slices, too.
    fn clear(&mut self) {
        for slice in &mut self.slices {
            slice.clear();
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
        let nested: u64 = self.filters().map(unavailable_in).sum();
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
        let inner = self.slices[0].report_on(tally);
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

    fn slices(&self) -> Option<&dyn Sliced> {
        Some(self)
    }

    fn slices_mut(&mut self) -> Option<&mut dyn Sliced> {
        Some(self)
    }
}

/// The first of the [`KeyHash::remix`](echoless::KeyHash::remix) streams that choose the slice of a
/// key, one stream for each level of nested horizontal slices. No filter draws positions from them,
/// so the keys of a slice are spread over it as all keys are over a filter.
const SLICE_STREAMS: u64 = 0x736c_6963_6573_0000;

/// The verdict on a key whose slice has failed (paper 001, section 3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailedKeys {
    /// Duplicate: more false positives, no false negatives.
    Duplicate,
    /// Fresh: false negatives, no more false positives.
    Fresh,
}

/// The names of the policies.
const FAILED: [(&str, FailedKeys); 2] = [
    ("duplicate", FailedKeys::Duplicate),
    ("fresh", FailedKeys::Fresh),
];

/// The name in text.
pub(crate) const NAME: &str = "horizontal";

const OPTIONS: &[OptionRow] = &[
    // At most one for each line in the line form.
    OptionRow::whole("slices", 1, MOST_SLICES as u64, 8),
    OptionRow::choice("failed", &names(&FAILED)),
];

/// Horizontal slices.
///
/// The slices of a line filter are ranges of its lines ([`Partitioning`](echoless::Partitioning)), and
/// its verdicts are those of the undivided filter while no slice has failed. For all other filters,
/// S filters of M/S bytes are built, and a hash that is independent of their positions chooses
/// among them.
pub(crate) static ROW: AdapterRow = AdapterRow {
    head: Head {
        name: NAME,
        options: |_| OPTIONS,
        complete: Named::as_given,
    },
    build,
    check_lines: Some(check_lines),
    facts: |named, inner| {
        let whole = Facts {
            forgets_by_time: false,
            ..inner.facts()
        };
        if cuts_lines(inner) {
            return whole;
        }
        // Each key is judged by one slice. Slices with a hash of their own fill unevenly, and have
        // no formula.
        let count = named.small("slices");
        let slice = inner.part(count, 0).facts();
        Facts {
            cache_lines: slice.cache_lines,
            rate_model: None,
            // While no slice has failed.
            fpr_limit: slice.fpr_limit,
            most_memory: whole.most_memory.saturating_mul(count.into()),
            ..whole
        }
    },
};

/// Checks the number of slices of a line filter.
fn check_lines(slices: &Named, lines: u64) -> Result<(), SpecError> {
    let count = slices.whole("slices");
    if count > lines {
        let allowed = format!("1 to {lines} (one line each)");
        return Err(SpecError::new("slices", count.to_string(), allowed));
    }
    Ok(())
}

/// S', the pieces of a vertical slice that these slices lie in. Fails if they have a policy of
/// their own.
pub(crate) fn pieces(slices: &Named) -> Result<u32, SpecError> {
    if slices.choice("failed", &FAILED) != FailedKeys::Duplicate {
        let allowed = "duplicate inside vertical slices, whose own policy decides";
        return Err(SpecError::new("failed", "fresh", allowed));
    }
    Ok(slices.small("slices"))
}

/// Whether the slices are ranges of the lines of one filter.
fn cuts_lines(inner: Layers<'_>) -> bool {
    inner.has_partitions() && inner.split().is_none()
}

fn build(named: &Named, inner: Layers<'_>) -> Result<Box<dyn Filter>, BuildError> {
    let count = named.small("slices");
    let (chooser, slices) = if cuts_lines(inner) {
        check_lines(named, inner.plan()?.buckets())?;
        let (partitioning, slices) = inner.partitions(count as usize)?.into_parts();
        let slices = slices.into_iter().map(|slice| -> Box<dyn Filter> { slice });
        (Chooser::Lines(partitioning), slices.collect())
    } else {
        // Each slice alone could fit where all of them do not.
        check_available(inner.memory)?;
        let slices = (0..count).map(|index| build_slice(inner, count, index));
        let chooser = Chooser::Hash {
            stream: SLICE_STREAMS + inner.count_of(NAME),
            count: u64::from(count),
        };
        (chooser, slices.collect::<Result<_, _>>()?)
    };
    let policy = named.choice("failed", &FAILED);
    let filter = Horizontal::new(slices, chooser, policy);
    Ok(Box::new(filter))
}

/// Builds one of `count` slices. An error about its memory states that it is that of a slice.
fn build_slice(inner: Layers<'_>, count: u32, index: u32) -> Result<Box<dyn Filter>, BuildError> {
    inner
        .part(count, index)
        .build()
        .map_err(|error| match error {
            BuildError::Spec(error) if error.field == "memory" => {
                let allowed = format!("enough for {count} slices, each {}", error.allowed);
                SpecError::new("memory", format!("{} B", inner.memory), allowed).into()
            }
            error => error,
        })
}
