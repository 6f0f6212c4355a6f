//! What a filter observes while it is saved: the keys between two copies of its lines.

use std::io::Write;

use crate::filters::{Batch, Ticks};
use crate::hash::KeyHash;
use crate::state::{StateError, StateWriter};

/// The keys of a partition since they were taken last, as far as they change its lines.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// Whether duplicates change lines.
    has_duplicates: bool,
    keys: Vec<KeyHash>,
    /// The clock at each key; none as long as there is no clock.
    ticks: Vec<u64>,
}

impl Recorder {
    pub(super) fn new(has_duplicates: bool) -> Self {
        Self {
            has_duplicates,
            ..Self::default()
        }
    }

    /// Records a batch that was observed at a clock of `clock` or later.
    pub(super) fn record(&mut self, batch: Batch<'_>, clock: Option<u64>, verdicts: &[u64]) {
        let has_clock = clock.is_some() || batch.ticks() != Ticks::Unmoved;
        if has_clock {
            // There was none yet at the keys before.
            self.ticks.resize(self.keys.len(), 0);
        }
        let clock = clock.unwrap_or(0);
        for (index, key) in batch.keys().iter().enumerate() {
            let duplicate = verdicts[index / 64] >> (index % 64) & 1 == 1;
            if duplicate && !self.has_duplicates {
                continue;
            }
            self.keys.push(*key);
            if has_clock {
                self.ticks.push(match batch.ticks() {
                    Ticks::Unmoved => clock,
                    Ticks::One(tick) => clock.max(tick),
                    Ticks::Each(ticks) => clock.max(ticks[index]),
                });
            }
        }
    }

    /// The keys so far, and the clock at each, in the order of the stream. The recorder has none.
    pub(super) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(self.has_duplicates))
    }
}

/// The keys of several partitions between two tickets, in an order that leads to the same lines:
/// that of their clocks. Keys of different partitions change different lines, so those of one clock
/// may have any order.
#[derive(Debug, Default)]
pub(super) struct RecordedKeys {
    keys: Vec<(u64, KeyHash)>,
    has_clock: bool,
}

impl RecordedKeys {
    pub(super) fn add(&mut self, recorded: &Recorder) {
        self.has_clock |= !recorded.ticks.is_empty();
        let ticks = recorded.ticks.iter().copied().chain(std::iter::repeat(0));
        self.keys.extend(ticks.zip(recorded.keys.iter().copied()));
    }

    /// Writes all keys, and the clock after them, and forgets them.
    ///
    /// # Errors
    /// Those of the writer.
    pub(super) fn write(
        &mut self,
        writer: &mut StateWriter<impl Write>,
        clock: u64,
    ) -> Result<(), StateError> {
        if self.keys.is_empty() {
            return Ok(());
        }
        // Stable: the keys of a partition keep their order.
        self.keys.sort_by_key(|(tick, _)| *tick);
        let (ticks, keys): (Vec<u64>, Vec<KeyHash>) = self.keys.drain(..).unzip();
        let batch = if self.has_clock {
            Batch::at_each(&keys, &ticks)
        } else {
            Batch::new(&keys)
        };
        writer.append_keys(batch, clock)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::hash::KeyHasher;
    use crate::state::{Header, Section, StateReader};

    const KEYS: [KeyHash; 3] = [KeyHash(1), KeyHash(2), KeyHash(3)];

    /// What is read of what was written.
    fn drained(recorders: &mut [Recorder]) -> (Vec<u64>, Vec<u64>) {
        let mut all = RecordedKeys::default();
        for recorder in recorders {
            all.add(&recorder.take());
        }
        let spec = "bloom:k=4,memory=64B".parse().unwrap();
        let header = Header::new(&spec, &KeyHasher::seeded(0)).unwrap();
        let mut writer = StateWriter::new(Vec::new(), &header).unwrap();
        all.write(&mut writer, 9).unwrap();
        let file = writer.into_output();
        let mut reader = StateReader::open(&file[..]).unwrap();
        let Some(Section::Keys(keys)) = reader.read_section().unwrap() else {
            return (Vec::new(), Vec::new());
        };
        assert_eq!(keys.clock(), 9);
        let ticks = keys.ticks().flat_map(|(tick, count)| vec![tick; count]);
        (keys.keys().map(KeyHash::get).collect(), ticks.collect())
    }

    #[test]
    fn fresh_keys_are_recorded_and_duplicates_where_they_change_lines() {
        for (has_duplicates, expected) in [(true, vec![1, 2, 3]), (false, vec![1, 3])] {
            let mut recorder = [Recorder::new(has_duplicates)];
            recorder[0].record(Batch::new(&KEYS), None, &[0b010]);
            assert_eq!(drained(&mut recorder), (expected, vec![]));
            assert_eq!(drained(&mut recorder), (vec![], vec![]));
        }
    }

    #[test]
    fn keys_are_in_the_order_of_the_clock_and_of_their_partition() {
        let mut parts = [Recorder::new(true), Recorder::new(true)];
        parts[0].record(Batch::new(&KEYS[..1]), None, &[0]);
        parts[1].record(Batch::at(&KEYS[1..2], 5), None, &[0]);
        parts[0].record(Batch::at_each(&KEYS[..2], &[3, 4]), Some(3), &[0]);
        // Late at a clock of 7, and at that clock.
        parts[0].record(Batch::at(&KEYS[2..], 6), Some(7), &[0]);
        parts[1].record(Batch::new(&KEYS[..1]), Some(7), &[0]);
        let expected = (vec![1, 1, 2, 2, 3, 1], vec![0, 3, 4, 5, 7, 7]);
        assert_eq!(drained(&mut parts), expected);
    }
}
