//! What a filter observes while it is saved: the keys between two copies of its lines.

use std::io::Write;

use crate::filters::{Batch, Ticks};
use crate::hash::KeyHash;
use crate::state::{StateError, StateWriter};

/// The keys of a partition since they were taken last, as far as they change lines that were
/// copied.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// Whether duplicates change lines.
    has_duplicates: bool,
    /// The buckets of the whole filter, and those of the partition that were copied end here: what
    /// later ones observe is part of their copies.
    buckets: u64,
    copied_end: u64,
    /// The most keys, and whether there were more.
    most: u64,
    is_full: bool,
    recorded: Recorded,
}

/// Recorded keys, in the order of the stream.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    keys: Vec<KeyHash>,
    /// The clock at each key; none as long as there is no clock.
    ticks: Vec<u64>,
}

impl Recorder {
    /// For a partition of a filter with so many `buckets`, none of which is copied. Keeps `most`
    /// keys.
    pub(super) fn new(has_duplicates: bool, buckets: u64, most: u64) -> Self {
        Self {
            has_duplicates,
            buckets,
            most,
            ..Self::default()
        }
    }

    /// The buckets of the partition are copied up to `end`, which counts from the first bucket of
    /// the whole filter.
    pub(super) const fn set_copied(&mut self, end: u64) {
        self.copied_end = end;
    }

    /// Records a batch that was observed at a clock of `clock` or later.
    pub(super) fn record(&mut self, batch: Batch<'_>, clock: Option<u64>, verdicts: &[u64]) {
        if self.is_full {
            return;
        }
        let Recorded { keys, ticks } = &mut self.recorded;
        let has_clock = clock.is_some() || batch.ticks() != Ticks::Unmoved;
        if has_clock {
            // There was none yet at the keys before.
            ticks.resize(keys.len(), 0);
        }
        let clock = clock.unwrap_or(0);
        for (index, key) in batch.keys().iter().enumerate() {
            let duplicate = verdicts[index / 64] >> (index % 64) & 1 == 1;
            if duplicate && !self.has_duplicates || key.line(self.buckets) >= self.copied_end {
                continue;
            }
            keys.push(*key);
            if has_clock {
                ticks.push(match batch.ticks() {
                    Ticks::Unmoved => clock,
                    Ticks::One(tick) => clock.max(tick),
                    Ticks::Each(ticks) => clock.max(ticks[index]),
                });
            }
        }
        if keys.len() as u64 > self.most {
            // What is there is of no use.
            self.recorded = Recorded::default();
            self.is_full = true;
        }
    }

    /// Moves the keys so far into `into`, which is empty, and whose memory the next keys get.
    /// `None` if there were too many.
    pub(super) fn take(&mut self, into: &mut Recorded) -> Option<()> {
        std::mem::swap(&mut self.recorded, into);
        (!self.is_full).then_some(())
    }
}

/// Writes the keys that partitions recorded between two tickets, and the clock after them, and
/// forgets them. The keys are in an order that leads to the same lines: that of their clocks. Keys
/// of different partitions change different lines, so those of one clock may have any order.
///
/// # Errors
/// Those of the writer.
pub(super) fn write_recorded(
    recorded: &mut [Recorded],
    writer: &mut StateWriter<impl Write>,
    clock: u64,
) -> Result<(), StateError> {
    if recorded.iter().any(|part| !part.ticks.is_empty()) {
        let mut all: Vec<(u64, KeyHash)> = Vec::new();
        for Recorded { keys, ticks } in &mut *recorded {
            let ticks = ticks.drain(..).chain(std::iter::repeat(0));
            all.extend(ticks.zip(keys.drain(..)));
        }
        // Stable: the keys of a partition keep their order.
        all.sort_by_key(|(tick, _)| *tick);
        let (ticks, keys): (Vec<u64>, Vec<KeyHash>) = all.into_iter().unzip();
        return writer.append_keys(Batch::at_each(&keys, &ticks), clock);
    }
    for Recorded { keys, .. } in recorded.iter_mut().filter(|part| !part.keys.is_empty()) {
        writer.append_keys(Batch::new(keys), clock)?;
        keys.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::KeyHasher;
    use crate::state::{Header, Section, StateReader};

    const KEYS: [KeyHash; 3] = [KeyHash(1), KeyHash(2), KeyHash(3)];

    /// What is read of what was written.
    fn drained(recorders: &mut [Recorder]) -> (Vec<u64>, Vec<u64>) {
        let mut all: Vec<Recorded> = recorders
            .iter_mut()
            .map(|recorder| {
                let mut taken = Recorded::default();
                recorder.take(&mut taken).unwrap();
                taken
            })
            .collect();
        let spec: crate::FilterSpec = "qqht:form=line,memory=64B".parse().unwrap();
        let header = Header::new(&spec, &KeyHasher::seeded(0)).unwrap();
        let mut writer = StateWriter::new(Vec::new(), &header).unwrap();
        write_recorded(&mut all, &mut writer, 9).unwrap();
        let file = writer.into_output();
        let mut reader = StateReader::open(&file[..]).unwrap();
        let Some(Section::Keys(keys)) = reader.read_section().unwrap() else {
            return (Vec::new(), Vec::new());
        };
        assert_eq!(keys.clock(), 9);
        let ticks = keys.ticks().flat_map(|(tick, count)| vec![tick; count]);
        (keys.keys().map(KeyHash::get).collect(), ticks.collect())
    }

    /// A recorder of a partition that is copied.
    fn recorder(has_duplicates: bool) -> Recorder {
        let mut recorder = Recorder::new(has_duplicates, 4, 100);
        recorder.set_copied(4);
        recorder
    }

    #[test]
    fn fresh_keys_are_recorded_and_duplicates_where_they_change_lines() {
        for (has_duplicates, expected) in [(true, vec![1, 2, 3]), (false, vec![1, 3])] {
            let mut recorder = [recorder(has_duplicates)];
            recorder[0].record(Batch::new(&KEYS), None, &[0b010]);
            assert_eq!(drained(&mut recorder), (expected, vec![]));
            assert_eq!(drained(&mut recorder), (vec![], vec![]));
        }
    }

    #[test]
    fn keys_are_in_the_order_of_the_clock_and_of_their_partition() {
        let mut parts = [recorder(true), recorder(true)];
        parts[0].record(Batch::new(&KEYS[..1]), None, &[0]);
        parts[1].record(Batch::at(&KEYS[1..2], 5), None, &[0]);
        parts[0].record(Batch::at_each(&KEYS[..2], &[3, 4]), Some(3), &[0]);
        // Late at a clock of 7, and at that clock.
        parts[0].record(Batch::at(&KEYS[2..], 6), Some(7), &[0]);
        parts[1].record(Batch::new(&KEYS[..1]), Some(7), &[0]);
        let expected = (vec![1, 1, 2, 2, 3, 1], vec![0, 3, 4, 5, 7, 7]);
        assert_eq!(drained(&mut parts), expected);
    }

    #[test]
    fn keys_of_buckets_that_are_still_to_be_copied_are_not_recorded() {
        let keys = [0, 1 << 62, 2 << 62, 3 << 62, u64::MAX].map(KeyHash);
        let mut recorder = [Recorder::new(false, 4, 100)];
        for (copied, expected) in [(0, 0), (1, 1), (3, 3), (4, 5)] {
            recorder[0].set_copied(copied);
            recorder[0].record(Batch::new(&keys), None, &[0]);
            let expected: Vec<u64> = keys[..expected].iter().map(|key| key.get()).collect();
            assert_eq!(drained(&mut recorder), (expected, vec![]));
        }
    }
    #[test]
    fn a_recorder_with_too_many_keys_has_none() {
        let (mut recorder, mut taken) = (Recorder::new(true, 4, 5), Recorded::default());
        recorder.set_copied(4);
        for expected in [Some(()), Some(()), None, None] {
            recorder.record(Batch::new(&KEYS[..2]), None, &[0]);
            if expected.is_none() {
                recorder.record(Batch::new(&KEYS), None, &[0]);
                recorder.record(Batch::new(&KEYS), None, &[0]);
            }
            assert_eq!(recorder.take(&mut taken), expected);
            assert_eq!(taken.keys.is_empty(), expected.is_none());
            taken = Recorded::default();
        }
    }
}
