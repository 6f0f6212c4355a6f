//! A batch that one thread passes through the partitions of its keys, one after the other: each
//! partition gets its keys in one piece.
//!
//! Few partitions have [`masks`](super::masks), as the messages of ports. For many, the keys are
//! sorted by partition, and the number of each in the batch beside them:
//!
//! ```text
//!   batch            k0 k1 k2 k3 k4 k5 k6 k7
//!   owners            2  1  1  0  1  2  0  1
//!   keys             k3 k6 | k1 k2 k4 k7 | k0 k5
//!   numbers           3  6    1  2  4  7    0  5        where the verdicts go
//! ```

use std::ops::Range;

use super::masks::{KeyBuffer, KeyMask, route};
use super::{MAX_COMPARED_PARTITIONS, MESSAGE_KEYS};
use crate::filters::{Batch, Ticks};
use crate::hash::KeyHash;
use crate::isa::{DetectedKernel, HotLoop};
use crate::partition::Partitioning;
use crate::verdicts::{Verdicts, bits_of_words, clear_tail, scatter};

/// Divides a batch by the partitions that own its keys, and puts the verdicts of the partitions
/// back into the order of the batch: the router of ordered filters, of restored states and of tasks
/// that own some partitions. Its buffers are reused from batch to batch.
///
/// # Examples
/// ```
/// use echoless::{Batch, Filter, FingerprintSpec, KeyHasher, RoutedBatch};
/// let mut filter = FingerprintSpec::new(1 << 20).build_partitions(8)?;
/// let mut routed = RoutedBatch::new(filter.partitioning().clone(), 0..8);
/// let keys = ["a", "b", "a"].map(|key| KeyHasher::seeded(0).hash(key));
/// let batch = Batch::new(&keys);
/// routed.route(batch);
/// for (index, filter) in filter.filters_mut().iter_mut().enumerate() {
///     let (part, words) = routed.part(index, batch.ticks());
///     filter.observe_batch(part, words);
///     routed.answer(index);
/// }
/// assert!(routed.finish().duplicates().eq([2]));
/// # Ok::<(), echoless::BuildError>(())
/// ```
#[derive(Debug)]
pub struct RoutedBatch {
    partitioning: Partitioning,
    /// The partitions of all keys.
    partitions: Range<usize>,
    kernel: DetectedKernel,
    parts: Parts,
    verdicts: Verdicts,
    /// The verdict bits of one partition.
    words: Vec<u64>,
}

/// The keys of each partition.
#[derive(Debug)]
enum Parts {
    /// A buffer and a mask for each, and the ticks of one of them.
    Compared(Vec<KeyBuffer>, Vec<KeyMask>, Vec<u64>),
    Sorted(Sorted),
}

/// The keys of a batch, those of each partition together, in their order. What is behind them is of
/// longer batches before.
#[derive(Debug, Default)]
struct Sorted {
    /// The partition of each key of the batch, counted from the first one.
    owners: Vec<u32>,
    /// Where the keys of each partition end.
    ends: Vec<u32>,
    keys: Vec<KeyHash>,
    ticks: Vec<u64>,
    /// The numbers of these keys in the batch.
    numbers: Vec<u32>,
}

impl RoutedBatch {
    /// For batches of keys that are all of these partitions. The partitions of a batch are counted
    /// from the first of them.
    ///
    /// # Panics
    /// If there are no such partitions.
    #[must_use]
    pub fn new(partitioning: Partitioning, partitions: Range<usize>) -> Self {
        Self::with(partitioning, partitions, DetectedKernel::best())
    }

    /// As [`new`](Self::new), with this kernel.
    pub(super) fn with(
        partitioning: Partitioning,
        partitions: Range<usize>,
        kernel: DetectedKernel,
    ) -> Self {
        let (count, all) = (partitions.len(), partitioning.count());
        assert!(
            count > 0 && partitions.end <= all,
            "partitions {partitions:?} of {all}"
        );
        Self {
            parts: Parts::new(count),
            partitioning,
            partitions,
            kernel,
            verdicts: Verdicts::new(),
            words: Vec::new(),
        }
    }

    /// Divides the next batch.
    ///
    /// # Panics
    /// If it has 2^31 keys or more; with a key of another partition, here or in the filter that
    /// gets it, unless the key gets no verdict.
    pub fn route(&mut self, batch: Batch<'_>) {
        let keys = batch.keys();
        assert!(keys.len() < 1 << 31, "a batch of {} keys", keys.len());
        self.verdicts.reset(keys.len());
        match &mut self.parts {
            Parts::Compared(buffers, masks, _) => {
                let starts = &self.partitioning.starts()[self.partitions.clone()];
                route(self.kernel, starts, keys, buffers, masks);
            }
            Parts::Sorted(sorted) => {
                let count = self.partitions.len();
                self.kernel.run(Sort {
                    partitioning: &self.partitioning,
                    first: self.partitions.start as u32,
                    count,
                    batch,
                    sorted,
                });
            }
        }
    }

    /// The keys of a partition in the order of the batch, at its `ticks`, and the words for their
    /// verdicts, which are zero. `ticks` must be those of the batch that was routed last.
    pub fn part<'a>(&'a mut self, index: usize, ticks: Ticks<'a>) -> (Batch<'a>, &'a mut [u64]) {
        let (keys, of_keys): (&[KeyHash], &[u64]) = match &mut self.parts {
            Parts::Compared(buffers, masks, copied) => {
                if let Ticks::Each(all) = ticks {
                    copied.clear();
                    masks[index].copy_owned(all, copied);
                }
                (buffers[index].keys(), copied)
            }
            Parts::Sorted(sorted) => {
                let range = sorted.range(index);
                let ticks = sorted.ticks.get(range.clone()).unwrap_or_default();
                (&sorted.keys[range], ticks)
            }
        };
        let batch = match ticks {
            Ticks::Each(_) => Batch::at_each(keys, of_keys),
            Ticks::One(tick) => Batch::at(keys, tick),
            Ticks::Unmoved => Batch::new(keys),
        };
        self.words.clear();
        self.words.resize(keys.len().div_ceil(64), 0);
        (batch, &mut self.words)
    }

    /// The number of keys of a partition; 0 if there is no such partition.
    #[must_use]
    #[inline]
    pub fn count(&self, index: usize) -> usize {
        match &self.parts {
            Parts::Compared(buffers, ..) => {
                buffers.get(index).map_or(0, |buffer| buffer.keys().len())
            }
            Parts::Sorted(sorted) => match sorted.ends.get(index) {
                Some(end) => (end - index.checked_sub(1).map_or(0, |at| sorted.ends[at])) as usize,
                None => 0,
            },
        }
    }

    /// The keys of a partition: to [prefetch](crate::Filter::prefetch) their lines before its turn.
    #[must_use]
    pub fn keys(&self, index: usize) -> &[KeyHash] {
        match &self.parts {
            Parts::Compared(buffers, ..) => buffers[index].keys(),
            Parts::Sorted(sorted) => &sorted.keys[sorted.range(index)],
        }
    }

    /// Takes the verdicts of a partition: the words of the [`part`](Self::part) that was returned
    /// last.
    pub fn answer(&mut self, index: usize) {
        match &mut self.parts {
            Parts::Compared(buffers, masks, _) => {
                let count = buffers[index].keys().len();
                for start in (0..count).step_by(MESSAGE_KEYS) {
                    let bits = bits_of_words(&self.words, start, MESSAGE_KEYS.min(count - start));
                    masks[index].deposit(self.kernel, bits, self.verdicts.words_mut());
                }
            }
            Parts::Sorted(sorted) => {
                let numbers = &sorted.numbers[sorted.range(index)];
                // A filter from outside this crate may set bits past its last key.
                clear_tail(&mut self.words, numbers.len());
                let number = |index: usize| numbers[index] as usize;
                scatter(&self.words, self.verdicts.words_mut(), number);
            }
        }
    }

    /// The keys of a partition have no verdict. Returns whether there are any.
    #[cfg(feature = "threads")]
    #[cold]
    pub(crate) fn answer_unknown(&mut self, index: usize) -> bool {
        let has_keys = self.count(index) > 0;
        if has_keys {
            let unknown = self.verdicts.unknown_words_mut();
            match &self.parts {
                Parts::Compared(_, masks, _) => masks[index].mark_unsent(None, unknown),
                Parts::Sorted(sorted) => {
                    for number in &sorted.numbers[sorted.range(index)] {
                        unknown[*number as usize / 64] |= 1 << (number % 64);
                    }
                }
            }
        }
        has_keys
    }

    /// The verdicts of the batch, once each partition with keys has answered.
    pub const fn finish(&mut self) -> &mut Verdicts {
        &mut self.verdicts
    }

    /// Gives back the memory of the last batch.
    pub fn release(&mut self) {
        self.parts = Parts::new(self.partitions.len());
        (self.verdicts, self.words) = (Verdicts::new(), Vec::new());
    }
}

impl Parts {
    fn new(count: usize) -> Self {
        if count > MAX_COMPARED_PARTITIONS {
            return Self::Sorted(Sorted::default());
        }
        let (buffers, masks) = (KeyBuffer::default(), KeyMask::default());
        Self::Compared(vec![buffers; count], vec![masks; count], Vec::new())
    }
}

impl Sorted {
    fn range(&self, index: usize) -> Range<usize> {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[index] as usize
    }
}

/// Sorts the keys of a batch by partition.
struct Sort<'a> {
    partitioning: &'a Partitioning,
    first: u32,
    count: usize,
    batch: Batch<'a>,
    sorted: &'a mut Sorted,
}

impl HotLoop for Sort<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let keys = self.batch.keys();
        let Sorted {
            owners,
            ends,
            keys: sorted,
            ticks,
            numbers,
        } = self.sorted;
        ends.clear();
        ends.resize(self.count, 0);
        // Slices: vectors would be read again after each store.
        let ends = &mut ends[..];
        let owners = first_of(owners, keys.len(), 0);
        let sorted = first_of(sorted, keys.len(), KeyHash(0));
        let numbers = first_of(numbers, keys.len(), 0);
        self.partitioning.partitions_of(keys, self.first, owners);
        for owner in &*owners {
            ends[*owner as usize] += 1;
        }
        // Where the keys of each partition begin, and once they are written, where they end.
        let mut next = 0;
        for end in &mut *ends {
            next += std::mem::replace(end, next);
        }
        if let Ticks::Each(each) = self.batch.ticks() {
            let ticks = first_of(ticks, keys.len(), 0);
            for (number, (owner, (key, tick))) in
                owners.iter().zip(keys.iter().zip(each)).enumerate()
            {
                let at = take_next(&mut ends[*owner as usize]);
                (sorted[at], ticks[at], numbers[at]) = (*key, *tick, number as u32);
            }
        } else {
            for (number, (owner, key)) in owners.iter().zip(keys).enumerate() {
                let at = take_next(&mut ends[*owner as usize]);
                (sorted[at], numbers[at]) = (*key, number as u32);
            }
        }
    }
}

/// The first elements of a buffer, which grows if it has fewer and never shrinks: what a longer
/// batch left there is overwritten.
#[inline(always)]
fn first_of<T: Copy>(buffer: &mut Vec<T>, len: usize, empty: T) -> &mut [T] {
    if buffer.len() < len {
        buffer.resize(len, empty);
    }
    &mut buffer[..len]
}

#[inline(always)]
const fn take_next(next: &mut u32) -> usize {
    *next += 1;
    *next as usize - 1
}
