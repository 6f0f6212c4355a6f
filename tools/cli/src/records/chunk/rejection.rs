//! Records that leave the path of keys: set aside, passed without a verdict, or ending the run.

use super::{Chunk, ClockStep, NO_TIME};
use crate::records::fault::{Fate, Fault, Problem};

impl Chunk {
    /// Notes a record without a verdict. Returns whether the records after it are read.
    #[cold]
    pub(in crate::records) fn set_aside(&mut self, record: usize, fate: Fate) -> bool {
        match fate {
            Fate::Passed => self.keys.unkeyed.push(record),
            Fate::Comment => {
                self.keys.unkeyed.push(record);
                self.keys.comments.push(record);
            }
            Fate::Rejected(problem) => {
                self.keys.unkeyed.push(record);
                self.rejected.push(Fault { record, problem });
            }
            Fate::EndsRun(problem) => {
                self.fault = Some(Fault { record, problem });
                return false;
            }
        }
        true
    }

    /// Notes that the next record is a block of a capture that is no packet.
    pub(crate) fn add_frame_block(&mut self) {
        self.keys.frame_blocks.push(self.ends.len());
        self.keys.unkeyed.push(self.ends.len());
    }

    /// The index of the record with this key hash.
    pub(crate) fn record_of(&self, hash: usize) -> usize {
        // Each record without a key hash that is not behind it moves it by one. There are `i` of
        // them before record `unkeyed[i]`, so that one has `unkeyed[i] - i` hashes before it.
        let (mut low, mut high) = (0, self.keys.unkeyed.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.keys.unkeyed[middle] - middle <= hash {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        hash + low
    }

    /// Takes the key hashes with these indices, ascending, from their records, which then pass
    /// without a verdict.
    pub(crate) fn remove_hashes(&mut self, removed: &[usize]) {
        let records: Vec<usize> = removed.iter().map(|hash| self.record_of(*hash)).collect();
        self.keys.unkeyed.extend(records);
        self.keys.unkeyed.sort_unstable();
        retain_others(&mut self.keys.hashes, removed);
        retain_others(&mut self.keys.packets, removed);
        retain_others(&mut self.keys.ignored, removed);
        retain_others(&mut self.keys.times, removed);
        retain_others(&mut self.clock.ticks, removed);
        self.find_steps();
    }

    /// Finds the steps from the times.
    pub(crate) fn find_steps(&mut self) {
        self.keys.steps.clear();
        let mut latest = NO_TIME;
        for (from, &time) in self.keys.times.iter().enumerate() {
            if time > latest {
                latest = time;
                self.keys.steps.push(ClockStep { from, time });
            }
        }
    }

    /// Ends the records before the one with this key hash, which is faulty.
    pub(crate) fn fail_at(&mut self, hash: usize, problem: Problem) {
        let record = self.record_of(hash);
        self.end_at(Fault { record, problem });
    }

    /// Ends the records before this one.
    pub(crate) fn end_at(&mut self, fault: Fault) {
        self.keys.unkeyed.retain(|unkeyed| *unkeyed < fault.record);
        self.keys.frame_blocks.retain(|block| *block < fault.record);
        self.keys.comments.retain(|line| *line < fault.record);
        let hashes = fault.record - self.keys.unkeyed.len();
        self.keys.hashes.truncate(hashes);
        self.keys.packets.truncate(hashes);
        self.keys.ignored.truncate(hashes);
        self.keys.times.truncate(hashes);
        self.keys.steps.retain(|step| step.from < hashes);
        self.clock.ticks.truncate(hashes);
        self.fault = Some(fault);
    }

    /// Sets aside the records with these key hashes, ascending, all for the same reason.
    pub(crate) fn reject(&mut self, hashes: &[usize], problem: Problem) {
        let fault = |hash: &usize| Fault {
            record: self.record_of(*hash),
            problem,
        };
        let faults: Vec<Fault> = hashes.iter().map(fault).collect();
        self.note_rejected(&faults);
        self.remove_hashes(hashes);
    }

    /// Sets aside these records, ascending, with and without key hash.
    pub(crate) fn reject_records(&mut self, faults: &[Fault]) {
        let keyed = faults.iter().filter_map(|fault| {
            let before = self.keys.unkeyed.binary_search(&fault.record).err()?;
            Some(fault.record - before)
        });
        let hashes: Vec<usize> = keyed.collect();
        self.note_rejected(faults);
        self.remove_hashes(&hashes);
    }

    fn note_rejected(&mut self, faults: &[Fault]) {
        self.rejected.extend(faults);
        self.rejected.sort_unstable_by_key(|fault| fault.record);
    }

    /// Makes the chunk one record without a key hash, of which the input lacks the end.
    pub(crate) fn reject_incomplete(&mut self, problem: Problem) {
        self.ends.push(self.filled);
        self.keys.unkeyed.push(0);
        self.rejected.push(Fault { record: 0, problem });
    }
}

/// Keeps the items whose indices are not in `removed`, which ascends.
fn retain_others<T>(items: &mut Vec<T>, removed: &[usize]) {
    let mut removed = removed.iter().copied().peekable();
    let mut index = 0;
    items.retain(|_| {
        let keep = removed.next_if_eq(&index).is_none();
        index += 1;
        keep
    });
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::super::tests::chunk;
    use super::*;

    proptest! {
        #[test]
        fn removed_hashes_leave_their_records_unkeyed(
            records in 1usize..100,
            unkeyed in btree_set(0usize..100, 0..30),
            removed in btree_set(0usize..100, 0..30),
        ) {
            let unkeyed: Vec<usize> = unkeyed.into_iter().filter(|at| *at < records).collect();
            let mut chunk = chunk(records, &unkeyed);
            let keyed: Vec<usize> = chunk.keys.hashes.iter().map(|key| key.get() as usize).collect();
            for (hash, record) in keyed.iter().enumerate() {
                prop_assert_eq!(chunk.record_of(hash), *record);
            }
            let removed: Vec<usize> = removed.into_iter().filter(|at| *at < keyed.len()).collect();
            chunk.remove_hashes(&removed);
            let gone: Vec<usize> = removed.iter().map(|hash| keyed[*hash]).collect();
            let is_gone = |record: &usize| unkeyed.contains(record) || gone.contains(record);
            let expected: Vec<usize> = (0..records).filter(is_gone).collect();
            prop_assert_eq!(&chunk.keys.unkeyed, &expected);
            let kept: Vec<usize> = keyed.into_iter().filter(|key| !gone.contains(key)).collect();
            let left = chunk.keys.hashes.iter().map(|key| key.get() as usize);
            prop_assert_eq!(left.collect::<Vec<_>>(), kept.clone());
            // The tick of a key in this test.
            let ticks = chunk.clock.ticks.iter().map(|tick| *tick as usize / 2);
            prop_assert_eq!(ticks.collect::<Vec<_>>(), kept);
        }

        #[test]
        fn a_fault_ends_hashes_and_ticks(
            records in 1usize..100,
            unkeyed in btree_set(1usize..100, 0..30),
            fault in 0usize..100,
        ) {
            let unkeyed: Vec<usize> = unkeyed.into_iter().filter(|at| *at < records).collect();
            let mut chunk = chunk(records, &unkeyed);
            let fault = fault % chunk.keys.hashes.len();
            let record = chunk.keys.hashes[fault].get() as usize;
            chunk.fail_at(fault, Problem::Late);
            prop_assert_eq!(chunk.fault.map(|fault| fault.record), Some(record));
            prop_assert_eq!(chunk.records(), record);
            prop_assert_eq!((chunk.keys.hashes.len(), chunk.clock.ticks.len()), (fault, fault));
        }
    }
}
