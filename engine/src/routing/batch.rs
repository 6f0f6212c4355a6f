//! A batch that one thread passes through the partitions of its keys, one after the other.

use std::ops::Range;

use super::{Messages, Router, Selections};
use crate::filters::{Batch, Ticks};
use crate::hash::KeyHash;
use crate::partition::Partitioning;
use crate::verdicts::{Verdicts, bits_of_words};

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
    router: Router,
    selections: Selections,
    verdicts: Verdicts,
    /// The keys of one partition, if the router does not have them in one place.
    keys: Vec<KeyHash>,
    /// The ticks of these keys.
    ticks: Vec<u64>,
    /// The verdict bits of one partition.
    words: Vec<u64>,
}

impl RoutedBatch {
    /// For batches of keys that are all of these partitions. The partitions of a batch are counted
    /// from the first of them.
    ///
    /// # Panics
    /// If there are no such partitions.
    #[must_use]
    pub fn new(partitioning: Partitioning, partitions: Range<usize>) -> Self {
        let count = partitioning.count();
        assert!(
            !partitions.is_empty() && partitions.end <= count,
            "partitions {partitions:?} of {count}"
        );
        Self {
            router: Router::to(partitioning, partitions),
            selections: Selections::default(),
            verdicts: Verdicts::new(),
            keys: Vec::new(),
            ticks: Vec::new(),
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
        self.verdicts.reset(keys.len());
        self.router.route(keys, &mut self.selections);
        if let Ticks::Each(ticks) = batch.ticks() {
            self.router.route_ticks(ticks, &self.selections);
        }
    }

    /// The keys of a partition in the order of the batch, at its `ticks`, and the words for their
    /// verdicts, which are zero.
    pub fn part<'a>(&'a mut self, index: usize, ticks: Ticks<'a>) -> (Batch<'a>, &'a mut [u64]) {
        let selections = &self.selections;
        let keys = self.router.keys_of(selections, index, &mut self.keys);
        let batch = match ticks {
            Ticks::Each(all) => {
                let of_keys = (self.router).ticks_of(all, selections, index, &mut self.ticks);
                Batch::at_each(keys, of_keys)
            }
            Ticks::One(tick) => Batch::at(keys, tick),
            Ticks::Unmoved => Batch::new(keys),
        };
        self.words.clear();
        self.words.resize(keys.len().div_ceil(64), 0);
        (batch, &mut self.words)
    }

    /// The keys of a partition, in pieces: to [prefetch](crate::Filter::prefetch) their lines
    /// before its turn.
    pub fn pieces(&self, index: usize) -> impl Iterator<Item = &[KeyHash]> {
        let mut messages = Messages::to(index);
        std::iter::from_fn(move || messages.next(&self.router, &self.selections))
    }

    /// Takes the verdicts of a partition: the words of the [`part`](Self::part) that was returned
    /// last.
    pub fn answer(&mut self, index: usize) {
        // The router cuts the keys of a partition into messages, with a word of verdicts for each.
        let (kernel, mut start) = (self.router.kernel(), 0);
        let mut messages = Messages::to(index);
        while let Some(keys) = messages.next(&self.router, &self.selections) {
            let bits = bits_of_words(&self.words, start, keys.len());
            start += keys.len();
            (self.selections).answer(index, kernel, bits, &mut self.verdicts);
        }
    }

    /// The keys of a partition have no verdict. Returns whether there are any.
    #[cold]
    pub(crate) fn answer_unknown(&mut self, index: usize) -> bool {
        let has_keys = !self.selections.is_empty(index);
        if has_keys {
            (self.selections).mark_unsent(index, None, &mut self.verdicts);
        }
        has_keys
    }

    /// The verdicts of the batch, once each partition with keys has answered.
    pub fn finish(&mut self) -> &mut Verdicts {
        (self.selections).finish(self.router.kernel(), &mut self.verdicts);
        &mut self.verdicts
    }

    /// Gives back the memory of the last batch.
    pub fn release(&mut self) {
        self.router.release();
        self.selections = Selections::default();
        self.verdicts = Verdicts::new();
        (self.keys, self.ticks, self.words) = (Vec::new(), Vec::new(), Vec::new());
    }
}
