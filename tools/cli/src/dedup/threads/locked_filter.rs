//! Filters that belong to one thread at a time.
//!
//! The partitions of a filter belong to the nodes of a mesh, and a filter that cannot be divided to
//! the worker whose turn it is. A worker that is [alone](super::chunk_order::ChunkOrder::is_alone)
//! borrows them all, so a line of a slow stream wakes no other thread. The order of the chunks is
//! kept, so the verdicts are the same. At the end of the run they report.
//!
//! The locks are free nearly always. A node takes that of its own partition once or twice for all
//! keys that it has gathered. While a worker is alone, the only messages that can be left are those
//! without keys, at an earlier tick, which no thread waits for. An owner that applies one then
//! changes nothing: it judges no key, and an earlier tick does not move a clock.

use std::sync::{Arc, Mutex, MutexGuard};

use echoless::{Filter, KeyHash, Partitioning, Report, Tally, Verdicts};

use crate::locks::lock;

/// A filter, or a partition of one, that several threads have. It leaves out the slices that can
/// fail, which `dedup` never uses.
pub(in crate::dedup) struct LockedFilter<F>(Arc<Mutex<F>>);

impl<F> LockedFilter<F> {
    pub(in crate::dedup) fn new(filter: F) -> Self {
        Self(Arc::new(Mutex::new(filter)))
    }

    fn lock(&self) -> MutexGuard<'_, F> {
        lock(&self.0)
    }
}

impl<F> Clone for LockedFilter<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F: Filter> Filter for LockedFilter<F> {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        self.lock().observe_words(keys, duplicates);
    }

    fn advance_to(&mut self, tick: u64) {
        self.lock().advance_to(tick);
    }

    fn observe_words_at(&mut self, keys: &[KeyHash], ticks: &[u64], duplicates: &mut [u64]) {
        self.lock().observe_words_at(keys, ticks, duplicates);
    }

    fn prefetch(&self, keys: &[KeyHash]) {
        self.lock().prefetch(keys);
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.lock().contains(key)
    }

    fn contains_each(&self, keys: &[KeyHash], verdicts: &mut Verdicts) {
        self.lock().contains_each(keys, verdicts);
    }

    fn clear(&mut self) {
        self.lock().clear();
    }

    fn memory_bytes(&self) -> u64 {
        self.lock().memory_bytes()
    }

    fn tally(&self) -> Tally {
        self.lock().tally()
    }

    fn report_on(&self, tally: Tally) -> Report {
        self.lock().report_on(tally)
    }
}

/// All partitions of a filter, as the one filter that they are.
pub(in crate::dedup) struct WholeFilter<F> {
    partitioning: Partitioning,
    partitions: Vec<LockedFilter<F>>,
    /// The keys of a batch by the partitions that own them: partition and index.
    routed: Vec<(usize, usize)>,
    keys: Vec<KeyHash>,
    verdicts: Verdicts,
}

impl<F> WholeFilter<F> {
    /// The whole of these partitions, which must be those of `partitioning`.
    pub(super) fn new(partitioning: Partitioning, partitions: Vec<LockedFilter<F>>) -> Self {
        debug_assert_eq!(partitioning.count(), partitions.len());
        Self {
            partitioning,
            partitions,
            routed: Vec::new(),
            keys: Vec::new(),
            verdicts: Verdicts::new(),
        }
    }
}

impl<F> Clone for WholeFilter<F> {
    fn clone(&self) -> Self {
        Self::new(self.partitioning.clone(), self.partitions.clone())
    }
}

impl<F: Filter> Filter for WholeFilter<F> {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        duplicates.fill(0);
        let Self {
            partitioning,
            partitions,
            routed,
            keys: owned,
            verdicts,
        } = self;
        let owners = keys.iter().map(|key| partitioning.partition_of(*key));
        routed.clear();
        routed.extend(owners.zip(0..));
        // By partition, and by index: the keys of a partition keep their order.
        routed.sort_unstable();
        for routed in routed.chunk_by(|one, next| one.0 == next.0) {
            owned.clear();
            owned.extend(routed.iter().map(|(_, index)| keys[*index]));
            partitions[routed[0].0].observe(owned, verdicts);
            for key in verdicts.duplicates() {
                let index = routed[key].1;
                duplicates[index / 64] |= 1 << (index % 64);
            }
        }
    }

    fn advance_to(&mut self, tick: u64) {
        // Without a window every batch is at tick 0, and no clock moves.
        if tick > 0 {
            for partition in &mut self.partitions {
                partition.advance_to(tick);
            }
        }
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.partitions[self.partitioning.partition_of(key)].contains(key)
    }

    fn clear(&mut self) {
        for partition in &mut self.partitions {
            partition.clear();
        }
    }

    fn memory_bytes(&self) -> u64 {
        self.partitions.iter().map(Filter::memory_bytes).sum()
    }

    fn tally(&self) -> Tally {
        self.partitions.iter().map(Filter::tally).sum()
    }

    fn report_on(&self, tally: Tally) -> Report {
        self.partitions[0].report_on(tally)
    }
}

#[cfg(test)]
mod tests {
    use echoless::{FilterSpec, report_of};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn borrowed_partitions_judge_and_report_as_the_undivided_filter(
            batches in vec((vec(0_u64..300, 0..150), 0_u64..4), 1..8),
            partitions in 1_usize..9,
            windowed: bool,
        ) {
            let text = if windowed { "stamped:window=3,memory=4KiB" } else { "fingerprint:memory=4KiB" };
            let spec: FilterSpec = text.parse().unwrap();
            let mut undivided = spec.build().unwrap();
            let (partitioning, filters) = spec.build_partitions(partitions).unwrap().into_parts();
            let partitions: Vec<_> = filters.into_iter().map(LockedFilter::new).collect();
            let mut whole = WholeFilter::new(partitioning, partitions.clone());
            let (mut clock, mut expected, mut found) = (0, Verdicts::new(), Verdicts::new());
            for (keys, step) in batches {
                clock += step;
                let keys: Vec<KeyHash> = (keys.iter())
                    .map(|key| KeyHash::from_uniform(key.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
                    .collect();
                undivided.advance_to(clock);
                undivided.observe(&keys, &mut expected);
                whole.advance_to(clock);
                whole.observe(&keys, &mut found);
                prop_assert_eq!(&expected, &found);
                // Several ticks in a batch, as a chunk has them.
                let ticks: Vec<u64> = (0..keys.len()).map(|key| clock + key as u64 / 50).collect();
                undivided.observe_at(&keys, &ticks, &mut expected);
                whole.observe_at(&keys, &ticks, &mut found);
                prop_assert_eq!(&expected, &found);
            }
            prop_assert_eq!(whole.memory_bytes(), undivided.memory_bytes());
            let of_parts = report_of(&partitions);
            prop_assert_eq!(whole.report().tally, of_parts.tally);
            prop_assert_eq!(whole.report().tally.fresh, undivided.report().tally.fresh);
        }
    }
}
