//! Records with times, judged by the partitions of a task: one call hashes and routes the keys,
//! moves the clocks, and says what is to happen to each record.

use echoless::{Batch, KeyHash};
use echoless_stream::{TaskClock, Window};

use crate::failure::{Code, Failure};
use crate::keys::{Keys, give_back};
use crate::partitions::Partitions;

/// What a record is, as bits: those of [`Partitions::judge`].
pub mod fate {
    /// A duplicate.
    pub const DUPLICATE: u8 = 1;
    /// Without a verdict.
    pub const UNJUDGED: u8 = 2;
    /// Older than the clock of its partition by more than window and lateness.
    pub const LATE: u8 = 4;
    /// Further ahead of the watermark than the skew.
    pub const BEYOND_SKEW: u8 = 8;
    /// Further ahead of the latest time of the task than any record may be.
    pub const TOO_FAR_AHEAD: u8 = 16;
}

/// What happens to records that are late or ahead.
#[derive(Debug, Clone, Copy)]
pub struct TimeRules {
    /// Its unit is the millisecond.
    pub window: Window,
    /// In milliseconds.
    pub max_advance: Option<u64>,
    /// Which of them are judged all the same: bits of [`fate`].
    pub judged: u8,
    /// Which of them are failures: bits of [`fate`].
    pub failing: u8,
}

/// The clocks of a task, and what they lead to.
#[derive(Debug)]
pub(crate) struct Timing {
    rules: TimeRules,
    clock: TaskClock,
}

/// The records of a batch that are judged. Kept for the memory alone.
#[derive(Debug, Default)]
pub(crate) struct Selected {
    keys: Vec<KeyHash>,
    ticks: Vec<u64>,
    /// Their numbers in the batch.
    numbers: Vec<u32>,
}

impl Selected {
    fn emptied(mut self) -> Self {
        self.keys.clear();
        self.ticks.clear();
        self.numbers.clear();
        give_back(&mut self.keys);
        give_back(&mut self.ticks);
        give_back(&mut self.numbers);
        self
    }
}

impl Timing {
    pub(crate) fn new(rules: TimeRules, partitions: usize) -> Self {
        let judges_beyond_skew = rules.judged & fate::BEYOND_SKEW != 0;
        let TimeRules {
            window,
            max_advance,
            ..
        } = rules;
        let clock = TaskClock::new(partitions, window, max_advance, judges_beyond_skew);
        Self { rules, clock }
    }

    /// Moves the clocks by a record of an owned partition. Returns its tick and its fate without a
    /// verdict.
    fn place(&mut self, partition: usize, time: i64, now: i64) -> Result<(u64, u8), Failure> {
        let reference = self.clock.reference(now);
        let place = self.clock.place(partition, time, now);
        let bit = |is_set, bit| if is_set { bit } else { 0 };
        let mut fate = bit(place.is_late, fate::LATE)
            | bit(place.is_beyond_skew, fate::BEYOND_SKEW)
            | bit(place.is_too_far_ahead, fate::TOO_FAR_AHEAD);
        let failing = fate & self.rules.failing;
        if failing != 0 {
            return Err(self.failure(partition, time, reference, failing));
        }
        if fate & !self.rules.judged != 0 {
            fate |= fate::UNJUDGED;
        }
        Ok((place.tick, fate))
    }

    /// `failing` are the bits of its fate for which a record fails.
    fn failure(&self, partition: usize, time: i64, reference: i64, failing: u8) -> Failure {
        let clock = &self.clock;
        let Window {
            skew, resolution, ..
        } = *clock.window();
        let what = if failing & fate::TOO_FAR_AHEAD != 0 {
            let most = self.rules.max_advance.unwrap_or_default();
            format!(
                "too far ahead: more than maxAdvance, {most} ms, beyond the clock at {reference}"
            )
        } else if failing & fate::BEYOND_SKEW != 0 {
            format!(
                "more than the skew, {} ms, beyond the watermark at {}",
                skew * resolution,
                clock.time_of(clock.watermark())
            )
        } else {
            let tick = clock.clock(partition).cast_unsigned();
            format!(
                "late: the clock of its key group is at {}",
                clock.time_of(tick)
            )
        };
        let text = format!("a record of event time {time} is {what}");
        Failure::new(Code::InvalidArgument, text)
    }
}

impl Partitions {
    /// Judges records by their times from now on; see [`judge`](Self::judge).
    pub fn set_time_rules(&mut self, rules: TimeRules) {
        self.timing = Some(Timing::new(rules, self.owned()));
    }

    /// Judges records in their order, each at the tick of its time, which is in milliseconds since
    /// 1970; without [rules](Self::set_time_rules), times do not matter. A record with a negative
    /// time is not judged. Writes the [`fate`] of each record, and returns the number of duplicates.
    /// `now` is the time of the system.
    ///
    /// # Errors
    /// [`Failure`] if there are more or fewer times or fates than keys, a key belongs to a partition
    /// that is not owned, or a record fails by the rules. No key was judged then, but clocks may have
    /// moved.
    pub fn judge(
        &mut self,
        keys: &dyn Keys,
        times: &[i64],
        now: i64,
        fates: &mut [u8],
    ) -> Result<u64, Failure> {
        for length in [times.len(), fates.len()] {
            if length != keys.len() {
                let allowed = format!("{}, one for each key", keys.len());
                return Err(Failure::argument(
                    "number of times or fates",
                    length,
                    allowed,
                ));
            }
        }
        self.with_hashes(keys, |partitions, hashes| {
            let mut selected = std::mem::take(&mut partitions.selected);
            let Selected {
                keys,
                ticks,
                numbers,
            } = &mut selected;
            for (number, (key, time)) in hashes.iter().zip(times).enumerate() {
                let (tick, fate) = if *time < 0 {
                    // Not judged, so it needs no owner.
                    (0, fate::UNJUDGED)
                } else {
                    let Some(place) = partitions.identity.place(*key) else {
                        return Err(partitions.identity.not_owned(*key, number));
                    };
                    match &mut partitions.timing {
                        Some(timing) => timing.place(place, *time, now)?,
                        None => (0, 0),
                    }
                };
                fates[number] = fate;
                if fate & fate::UNJUDGED == 0 {
                    keys.push(*key);
                    ticks.push(tick);
                    numbers.push(number as u32);
                }
            }
            let batch = match partitions.timing {
                Some(_) => Batch::at_each(keys, ticks),
                None => Batch::new(keys),
            };
            let verdicts = partitions.judge_batch(batch);
            for index in verdicts.duplicates() {
                fates[numbers[index] as usize] |= fate::DUPLICATE;
            }
            let duplicates = verdicts.count_duplicates();
            partitions.selected = selected.emptied();
            Ok(duplicates)
        })
    }

    /// Takes a watermark, in milliseconds since 1970. `now` is the time of the system.
    pub fn set_watermark(&mut self, time: i64, now: i64) {
        if let Some(timing) = &mut self.timing {
            timing.clock.set_watermark(time, now);
        }
    }

    /// The clocks that a state of a task keeps: the latest tick of each owned partition, 0 before its
    /// first one, and the tick of the watermark behind them.
    #[must_use]
    pub fn clocks(&self) -> Vec<u64> {
        let Some(Timing { clock, .. }) = &self.timing else {
            return vec![0; self.owned() + 1];
        };
        let mut clocks = clock.latest().to_vec();
        clocks.push(clock.watermark());
        clocks
    }

    /// Takes the clock of one partition from a state.
    ///
    /// # Errors
    /// [`Failure`] if the partition is not owned.
    pub fn restore_clock(
        &mut self,
        partition: usize,
        latest: u64,
        watermark: u64,
    ) -> Result<(), Failure> {
        let index = self.index(partition)?;
        if let Some(timing) = &mut self.timing {
            timing.clock.restore(index, latest, watermark);
        }
        Ok(())
    }
}
