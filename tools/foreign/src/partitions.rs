//! The filters of some partitions of a divided filter: what one task of a cluster owns.

use std::io::{Read, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use echoless::memory::{LINE_BYTES, available};
use echoless::state::StateReader;
use echoless::{
    Batch, Cells, Filter as _, FilterSpec, KeyHash, KeyHasher, LineFilter, MemoryError,
    Partitioning, Report, RoutedBatch, SpecError, Tally, Ticks, Verdicts,
};

use crate::failure::{Code, Failure};
use crate::filter::{memory_of, spec_of};
use crate::keys::{KEPT_KEYS, Keys, check_batch, check_masks, give_back, hash_all};
use crate::snapshot::{Filters, PAGE, Snapshot, lock};
use crate::timed::{Selected, Timing};

/// Below so many keys, the lines of a partition are loaded while the one before is judged.
const LEAST_LOOK_AHEAD: usize = 256;

/// A contiguous range of the partitions of one filter in lines. Each has a filter of its own, with
/// its own clock, and its state is a part of the state of the whole filter.
///
/// A partition is a range of key hashes that depends on nothing but the number of partitions, so
/// that other programs can route keys. The lines of the filter must therefore be a multiple of it.
///
/// # Examples
/// ```
/// use echoless::KeyHasher;
/// use echoless_foreign::{Numbers, Partitions};
///
/// let spec = "fingerprint:fpr=1e-8,memory=1MiB";
/// let hasher = KeyHasher::seeded(0);
/// let mut task = Partitions::open(spec, hasher.clone(), 4, 0..4)?;
/// let mut duplicates = [0];
/// assert_eq!(task.observe(&Numbers(&[17, 18, 17]), None, &mut duplicates)?, 1);
///
/// // Another task goes on with the partition of a key.
/// let owner = Partitions::partition_of(hasher.hash_u64(17), 4);
/// let mut part = Vec::new();
/// task.save(owner, &mut part)?;
/// let mut other = Partitions::open(spec, hasher, 4, owner..owner + 1)?;
/// other.load(owner, &part[..])?;
/// assert_eq!(other.observe(&Numbers(&[17]), None, &mut duplicates)?, 1);
/// # Ok::<(), echoless_foreign::Failure>(())
/// ```
#[derive(Debug)]
pub struct Partitions {
    pub(crate) identity: Identity,
    /// Shared with the snapshots that are not saved yet.
    filters: Arc<Mutex<Filters>>,
    routed: RoutedBatch,
    /// The hashes of a batch.
    hashes: Vec<KeyHash>,
    /// The records of a batch that are judged, if they have times.
    pub(crate) selected: Selected,
    reading: Reading,
    /// What happens to records with times.
    pub(crate) timing: Option<Timing>,
}

/// What partitions and their snapshots have in common.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) spec: FilterSpec,
    pub(crate) hasher: KeyHasher,
    count: usize,
    owned: Range<usize>,
}

/// Where a report in slices is.
#[derive(Debug, Default)]
struct Reading {
    /// The lines before this one of this filter are read.
    filter: usize,
    line: usize,
    /// What they have, if there are any.
    current: Option<Tally>,
    /// What all lines had when they were read last.
    complete: Option<Tally>,
}

impl Partitions {
    /// Builds the filters of the partitions `owned` of `count`.
    ///
    /// # Errors
    /// [`Failure`] as [`FilterSpec::build_line_partition`] has them; [`Code::InvalidSpec`] if there
    /// are no such partitions, or the lines of the filter cannot be divided evenly.
    pub fn open(
        spec: &str,
        hasher: KeyHasher,
        count: usize,
        owned: Range<usize>,
    ) -> Result<Self, Failure> {
        let spec = spec_of(spec)?;
        if owned.is_empty() || owned.end > count {
            let value = format!("{}..{}", owned.start, owned.end);
            let allowed = format!("one or more of 0..{count}");
            return Err(SpecError::new("partitions", value, allowed).into());
        }
        let first = spec.build_line_partition(owned.start, count)?;
        let unit = first.bucket_lines() * count as u64;
        let lines = first.range().total;
        if lines % unit != 0 {
            let below = lines / unit * unit * LINE_BYTES;
            let allowed = format!(
                "a multiple of {} bytes, so that {count} partitions are equal: {below}B or {}B",
                unit * LINE_BYTES,
                below + unit * LINE_BYTES,
            );
            return Err(
                SpecError::new("memory", format!("{}B", lines * LINE_BYTES), allowed).into(),
            );
        }
        // Checked for all: each partition alone could fit where all of them do not.
        let bytes = lines / count as u64 * owned.len() as u64 * LINE_BYTES;
        if let Some(available) = available().filter(|available| bytes > *available) {
            let reason = format!("{available} bytes are available");
            return Err(MemoryError { bytes, reason }.into());
        }
        let partitioning = Partitioning::new(lines / first.bucket_lines(), count)?;
        let mut filters = vec![first];
        for index in owned.start + 1..owned.end {
            filters.push(spec.build_line_partition(index, count)?);
        }
        Ok(Self {
            identity: Identity {
                spec,
                hasher,
                count,
                owned: owned.clone(),
            },
            filters: Arc::new(Mutex::new(Filters::new(filters))),
            routed: RoutedBatch::new(partitioning, owned),
            hashes: Vec::new(),
            selected: Selected::default(),
            reading: Reading::default(),
            timing: None,
        })
    }

    /// The partition of a key among `count`: that of an even division of all hashes.
    #[must_use]
    pub fn partition_of(key: KeyHash, count: usize) -> usize {
        ((u128::from(key.get()) * count as u128) >> 64) as usize
    }

    /// The memory of the owned partitions, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        memory_of(&lock(&self.filters).filters)
    }

    /// As [`Filter::observe`](crate::Filter::observe). The keys of a partition move its own clock.
    ///
    /// # Errors
    /// As [`check_masks`], and if a key belongs to a partition that is not owned; nothing was
    /// judged then.
    pub fn observe(
        &mut self,
        keys: &dyn Keys,
        ticks: Option<&[u64]>,
        duplicates: &mut [u64],
    ) -> Result<u64, Failure> {
        check_masks(keys.len(), ticks.map(<[u64]>::len), duplicates.len())?;
        self.with_hashes(keys, |partitions, hashes| {
            partitions.identity.check_owned(hashes)?;
            let batch = match ticks {
                Some(ticks) => Batch::at_each(hashes, ticks),
                None => Batch::new(hashes),
            };
            let verdicts = partitions.judge_batch(batch);
            duplicates.copy_from_slice(verdicts.words());
            Ok(verdicts.count_duplicates())
        })
    }

    /// Calls `judge` with the hashes of the keys of a batch.
    pub(crate) fn with_hashes<T>(
        &mut self,
        keys: &dyn Keys,
        judge: impl FnOnce(&mut Self, &[KeyHash]) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        check_batch(keys.len())?;
        let mut buffer = std::mem::take(&mut self.hashes);
        let judged = judge(self, hash_all(keys, &self.identity.hasher, &mut buffer));
        give_back(&mut buffer);
        self.hashes = buffer;
        if keys.len() > KEPT_KEYS {
            self.routed.release();
        }
        judged
    }

    /// Judges keys of owned partitions.
    pub(crate) fn judge_batch(&mut self, batch: Batch<'_>) -> &Verdicts {
        let routed = &mut self.routed;
        routed.route(batch);
        let held = &mut *lock(&self.filters);
        let mut keys = routed.count(0);
        for index in 0..held.filters.len() {
            let next = routed.count(index + 1);
            // A filter looks ahead in long batches; the keys of many partitions are few for each.
            if (1..LEAST_LOOK_AHEAD).contains(&next) {
                held.filters[index + 1].prefetch(routed.keys(index + 1));
            }
            if std::mem::replace(&mut keys, next) == 0 {
                continue;
            }
            let (part, words) = routed.part(index, batch.ticks());
            let last = match part.ticks() {
                Ticks::Each(ticks) => ticks.iter().max().copied(),
                _ => None,
            };
            held.before_keys(index, part.keys(), last.unwrap_or(0));
            held.filters[index].observe_batch(part, words);
            routed.answer(index);
        }
        routed.finish()
    }

    /// The number of owned partitions.
    pub(crate) fn owned(&self) -> usize {
        self.identity.owned.len()
    }

    /// The place of a partition among the owned ones.
    pub(crate) fn index(&self, partition: usize) -> Result<usize, Failure> {
        self.identity.index(partition)
    }

    /// Counters and error estimates of the owned partitions together. This may read their memory.
    #[must_use]
    pub fn report(&self) -> Report {
        Reading::default().report(&lock(&self.filters).filters, usize::MAX)
    }

    /// As [`report`](Self::report), for threads that must not be held up: the counters are those of
    /// now, but a call reads at most `most_lines` lines, rounded up to pages of 64, and the next
    /// call goes on behind them. What follows from the lines (fill and rates) is that of the last
    /// time that all of them were read; before the first time it is estimated from those that were.
    #[must_use]
    pub fn report_in_slices(&mut self, most_lines: usize) -> Report {
        self.reading
            .report(&lock(&self.filters).filters, most_lines)
    }

    /// Writes the state of one partition.
    ///
    /// # Errors
    /// [`Failure`] if the partition is not owned, [`Code::Io`] if `output` fails.
    pub fn save(&mut self, partition: usize, output: impl Write) -> Result<(), Failure> {
        // Without the lock, for which others would wait as long as `output` takes.
        self.snapshot().save(partition, output)
    }

    /// Replaces one partition by its saved state, which `input` ends behind.
    ///
    /// # Errors
    /// [`Failure`] if the partition is not owned; [`Code::StateMismatch`] if the state is of
    /// another partition, filter or hasher, [`Code::InvalidState`] if it is damaged. The partition
    /// stays as it was then.
    pub fn load(&mut self, partition: usize, input: impl Read) -> Result<(), Failure> {
        let identity = &self.identity;
        let index = identity.index(partition)?;
        let state = StateReader::open(input)?;
        state.check(&identity.spec, &identity.hasher)?;
        let lines = lock(&self.filters).filters[index].held();
        let part = state.header().part.clone();
        if part != lines {
            let text = format!(
                "invalid state of lines {}..{}: expected {}..{}, partition {partition} of {}",
                part.start, part.end, lines.start, lines.end, identity.count
            );
            return Err(Failure::new(Code::StateMismatch, text));
        }
        let restored = state.restore()?.filter;
        let held = &mut *lock(&self.filters);
        held.before_all(index);
        held.filters[index] = restored;
        Ok(())
    }

    /// All owned partitions as they are now, which other threads can save while this observes.
    ///
    /// Nothing is copied now. Later, a page of 4 KiB is copied before a key changes it for the first
    /// time, unless it is saved by then. So the memory grows by what changes while it is saved, at
    /// most that of the partitions.
    #[must_use]
    pub fn snapshot(&mut self) -> Snapshot {
        Snapshot::new(self.identity.clone(), Arc::clone(&self.filters))
    }
}

impl Identity {
    /// The place of a partition among the owned ones.
    pub(crate) fn index(&self, partition: usize) -> Result<usize, Failure> {
        if self.owned.contains(&partition) {
            return Ok(partition - self.owned.start);
        }
        let allowed = format!("one of {}", self.owned_text());
        Err(Failure::argument("partition", partition, allowed))
    }

    /// The place of the partition of a key among the owned ones.
    #[inline]
    pub(crate) fn place(&self, key: KeyHash) -> Option<usize> {
        let place = Partitions::partition_of(key, self.count).wrapping_sub(self.owned.start);
        (place < self.owned.len()).then_some(place)
    }

    /// Checks that all keys are of owned partitions.
    fn check_owned(&self, keys: &[KeyHash]) -> Result<(), Failure> {
        let [first, end] = [self.owned.start, self.owned.end]
            .map(|partition| ((partition as u128) << 64).div_ceil(self.count as u128));
        let (first, last) = (first as u64, (end - 1) as u64);
        let is_outside = |key: &KeyHash| (key.get() < first) | (key.get() > last);
        // Without a branch for each key.
        if !keys.iter().fold(false, |any, key| any | is_outside(key)) {
            return Ok(());
        }
        let number = keys.iter().position(is_outside).unwrap_or_default();
        Err(self.not_owned(keys[number], number))
    }

    #[cold]
    pub(crate) fn not_owned(&self, key: KeyHash, number: usize) -> Failure {
        let partition = Partitions::partition_of(key, self.count);
        let value = format!("{partition} of key {number}");
        let allowed = format!("one of {}", self.owned_text());
        Failure::argument("partition", value, allowed)
    }

    fn owned_text(&self) -> String {
        let Range { start, end } = self.owned;
        format!("{start} to {} of {}", end - 1, self.count)
    }
}

impl Reading {
    /// The report of filters, whose lines this goes on to read.
    fn report(&mut self, filters: &[Box<dyn LineFilter>], most_lines: usize) -> Report {
        let mut tally: Tally = filters.iter().map(LineFilter::counters).sum();
        if tally.cells.is_none() {
            self.read(filters, most_lines);
            let read = self.complete.or(self.current).unwrap_or_default();
            tally.cells = read.cells.map(|cells| {
                // All cells, if some were read. Hashes choose the line, so any lines are typical.
                let all = |cells| {
                    (u128::from(cells) * u128::from(tally.memory_bytes)
                        / u128::from(read.memory_bytes)) as u64
                };
                Cells::new(all(cells.occupied), all(cells.total))
            });
            tally.rates = read.rates;
        }
        filters[0].report_on(tally)
    }

    /// Reads so many lines, or those that are left.
    fn read(&mut self, filters: &[Box<dyn LineFilter>], most_lines: usize) {
        let rounded = most_lines.max(1).checked_next_multiple_of(PAGE);
        let mut rest = rounded.unwrap_or(usize::MAX);
        while rest > 0 {
            let filter = &filters[self.filter];
            let lines = filter.lines().len();
            let end = lines.min(self.line.saturating_add(rest));
            let read = filter.count_lines(self.line..end);
            self.current = Some(self.current.map_or(read, |current| current + read));
            rest -= end - self.line;
            self.line = end;
            if end < lines {
                continue;
            }
            self.line = 0;
            self.filter += 1;
            if self.filter == filters.len() {
                self.filter = 0;
                self.complete = self.current.take();
                return;
            }
        }
    }
}
