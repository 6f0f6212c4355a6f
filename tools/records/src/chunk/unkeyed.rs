//! Records that leave the path of keys: set aside, passed without a verdict, or ending the run.

use std::borrow::Cow;

use super::Chunk;
use super::keys::retain_others;
use super::parts::clear_list;
use crate::fault::{Fate, Fault, Problem};
use crate::format::Pieces;

/// The records without a key hash, by their indices. All lists ascend.
#[derive(Debug, Default)]
pub struct UnkeyedRecords {
    pub all: Vec<usize>,
    /// Those that are the frame of a file, which every output needs: blocks of a capture that are
    /// no packets, or what is around records inside of elements.
    pub frame: Vec<usize>,
    /// Those that are comment lines.
    pub comments: Vec<usize>,
    /// Those that are faulty and set aside.
    pub rejected: Vec<Fault>,
}

impl UnkeyedRecords {
    /// Removes everything and keeps the memory of `kept` records.
    pub(super) fn clear(&mut self, kept: usize) {
        let Self {
            all,
            frame,
            comments,
            rejected,
        } = self;
        clear_list(all, kept);
        clear_list(frame, kept);
        clear_list(comments, kept);
        clear_list(rejected, kept);
    }

    /// Whether the record is one of the frame.
    pub(crate) fn is_frame(&self, record: usize) -> bool {
        self.frame.binary_search(&record).is_ok()
    }

    /// Whether the record is a comment line.
    pub(crate) fn is_comment(&self, record: usize) -> bool {
        self.comments.binary_search(&record).is_ok()
    }

    /// Those that are set aside.
    pub fn rejected_records(&self) -> impl Iterator<Item = usize> + Clone {
        self.rejected.iter().map(|fault| fault.record)
    }

    /// The number of those that count as records.
    pub fn own_records(&self) -> usize {
        self.all.len() - self.frame.len() - self.comments.len()
    }

    /// The numbers, from 0, of those that count as records, if only such are counted. `all` is
    /// returned where all of them do.
    pub fn own_numbers(&self) -> Cow<'_, [usize]> {
        if self.own_records() == self.all.len() {
            return Cow::Borrowed(&self.all);
        }
        let mut before = 0;
        let own = self.all.iter().filter_map(|&record| {
            if self.is_frame(record) || self.is_comment(record) {
                before += 1;
                return None;
            }
            Some(record - before)
        });
        Cow::Owned(own.collect())
    }

    /// Removes the records from this one on, which is not set aside.
    fn truncate(&mut self, record: usize) {
        self.all.retain(|unkeyed| *unkeyed < record);
        self.frame.retain(|block| *block < record);
        self.comments.retain(|line| *line < record);
    }

    fn reject(&mut self, faults: &[Fault]) {
        self.rejected.extend(faults);
        self.rejected.sort_unstable_by_key(|fault| fault.record);
    }
}

impl Chunk {
    /// Notes a record without a verdict. Returns whether the records after it are read.
    #[cold]
    pub(crate) fn set_aside(&mut self, record: usize, fate: Fate) -> bool {
        match fate {
            Fate::Passed => self.unkeyed.all.push(record),
            Fate::Comment => {
                self.unkeyed.all.push(record);
                self.unkeyed.comments.push(record);
            }
            Fate::Rejected(problem) => {
                self.unkeyed.all.push(record);
                self.unkeyed.rejected.push(Fault { record, problem });
            }
            Fate::EndsRun(problem) => {
                self.fault = Some(Fault { record, problem });
                return false;
            }
        }
        true
    }

    /// Notes that the next record is a block of a capture that is no packet.
    pub fn add_frame_block(&mut self) {
        self.unkeyed.frame.push(self.layout.ends.len());
        self.unkeyed.all.push(self.layout.ends.len());
    }

    /// Has all packets of a chunk, which has nothing else, pass without a verdict.
    pub fn leave_unjudged(&mut self) {
        debug_assert_eq!(self.layout.ends.len(), self.keys.packets.blocks.len());
        self.unkeyed.all.extend(0..self.layout.ends.len());
        let packets = &mut self.keys.packets;
        packets.unjudged.append(&mut packets.blocks);
    }

    /// The index of the record with this key hash.
    pub fn record_of(&self, hash: usize) -> usize {
        // Each record without a key hash that is not behind it moves it by one. There are `i` of
        // them before record `unkeyed[i]`, so that one has `unkeyed[i] - i` hashes before it.
        let (mut low, mut high) = (0, self.unkeyed.all.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.unkeyed.all[middle] - middle <= hash {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        hash + low
    }

    /// Takes the key hashes with these indices, ascending, from their records, which then pass
    /// without a verdict.
    pub fn remove_hashes(&mut self, removed: &[usize]) {
        let records: Vec<usize> = removed.iter().map(|hash| self.record_of(*hash)).collect();
        self.unkeyed.all.extend(records);
        self.unkeyed.all.sort_unstable();
        self.keys.remove(removed);
        retain_others(&mut self.clock.ticks, removed);
    }

    /// Ends the records before the one with this key hash, which is faulty.
    pub fn fail_at(&mut self, hash: usize, problem: Problem) {
        let record = self.record_of(hash);
        self.end_at(Fault { record, problem });
    }

    /// Ends the records before this one.
    pub(crate) fn end_at(&mut self, fault: Fault) {
        self.unkeyed.truncate(fault.record);
        let hashes = fault.record - self.unkeyed.all.len();
        self.keys.truncate(hashes);
        self.clock.ticks.truncate(hashes);
        self.fault = Some(fault);
    }

    /// Sets aside the records with these key hashes, ascending, all for the same reason.
    pub fn reject(&mut self, hashes: &[usize], problem: Problem) {
        let fault = |hash: &usize| Fault {
            record: self.record_of(*hash),
            problem,
        };
        let faults: Vec<Fault> = hashes.iter().map(fault).collect();
        self.unkeyed.reject(&faults);
        self.remove_hashes(hashes);
    }

    /// Sets aside these records, ascending, with and without key hash.
    pub fn reject_records(&mut self, faults: &[Fault]) {
        let keyed = faults.iter().filter_map(|fault| {
            let before = self.unkeyed.all.binary_search(&fault.record).err()?;
            Some(fault.record - before)
        });
        let hashes: Vec<usize> = keyed.collect();
        self.unkeyed.reject(faults);
        self.remove_hashes(&hashes);
    }

    /// Makes the chunk one record without a key hash, of which the input lacks the end.
    pub(crate) fn reject_incomplete(&mut self, problem: Problem) {
        self.layout.ends.push(self.bytes.filled);
        self.unkeyed.all.push(0);
        self.unkeyed.rejected.push(Fault { record: 0, problem });
    }

    /// Takes the pieces that a search for the last whole record has found.
    pub(crate) fn take_pieces(&mut self, pieces: &mut Pieces) {
        let mark = self.bytes.mark;
        (self.layout.ends).extend(pieces.ends.drain(..).map(|end| mark + end));
        self.unkeyed.frame.append(&mut pieces.frame);
        self.layout.edges.append(&mut pieces.edges);
    }

    /// Removes the pieces behind this end of one, which were handed over with the chunk.
    pub(crate) fn cut_pieces(&mut self, end: usize) {
        let layout = &mut self.layout;
        let pieces = layout.ends.partition_point(|piece_end| *piece_end <= end);
        layout.ends.truncate(pieces);
        layout.edges.retain(|edge| edge.piece < pieces);
        self.unkeyed.frame.retain(|block| *block < pieces);
    }
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
            prop_assert_eq!(&chunk.unkeyed.all, &expected);
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
