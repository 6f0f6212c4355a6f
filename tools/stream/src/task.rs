//! The clocks of the partitions of a task, with a watermark.

use crate::clock::{Clock, MaxAdvance, is_beyond, is_late};
use crate::window::Window;

/// Where a record is in time, and the tick at which it is judged, if it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// 0 if it is too far ahead.
    pub tick: u64,
    /// Older than the clock of its partition by more than window and lateness.
    pub is_late: bool,
    /// Further ahead of the watermark than the skew.
    pub is_beyond_skew: bool,
    /// Further ahead of the latest time of the task than any record may be.
    pub is_too_far_ahead: bool,
}

/// The clocks of the partitions that a task of a cluster owns.
///
/// ```text
///   window + lateness                  skew
/// |<----------------->|<------------------------------>|
/// late                clock                            beyond the skew
/// ---------------------------------------------------------------------> time
/// ```
///
/// The clock of a partition is the watermark, which is that of the slowest source, but at most the
/// skew behind the latest time of the partition. Without a skew it is that time alone, so that
/// verdicts depend on nothing but the records and their order.
///
/// Apart from that, a time can be too far ahead of all others. A watermark of such a time is
/// ignored, too.
///
/// Times are whole units since 1970, ticks begin at 1, and a tick of 0 stands for none.
#[derive(Debug, Clone)]
pub struct TaskClock {
    window: Window,
    /// In the unit of times.
    bound: Option<u64>,
    judges_beyond_skew: bool,
    /// The latest tick of each partition that was judged.
    latest: Vec<u64>,
    /// The tick of the watermark.
    watermark: u64,
    /// The latest time of the task that was not too far ahead, in the unit of times.
    stream: Clock,
}

impl TaskClock {
    /// The clocks of so many partitions. `max_advance` is in the unit of times. A record beyond the
    /// skew moves the clock only if it is judged.
    #[must_use]
    pub fn new(
        partitions: usize,
        window: Window,
        max_advance: Option<u64>,
        judges_beyond_skew: bool,
    ) -> Self {
        Self {
            window,
            bound: max_advance,
            judges_beyond_skew,
            latest: vec![0; partitions],
            watermark: 0,
            stream: Clock::default(),
        }
    }

    /// The window.
    #[must_use]
    pub const fn window(&self) -> &Window {
        &self.window
    }

    /// The latest tick of each partition, 0 before its first one, which a state keeps.
    #[must_use]
    pub fn latest(&self) -> &[u64] {
        &self.latest
    }

    /// The tick of the watermark, 0 before the first one, which a state keeps.
    #[must_use]
    pub const fn watermark(&self) -> u64 {
        self.watermark
    }

    /// Takes the clock of a partition from a state. Partitions of several tasks become those of one:
    /// its watermark is the least.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn restore(&mut self, partition: usize, latest: u64, watermark: u64) {
        self.latest[partition] = latest;
        if latest > 0 {
            self.stream.latest = self.stream.latest.max(Some(self.time_of(latest)));
        }
        if watermark > 0 {
            self.watermark = match self.watermark {
                0 => watermark,
                other => other.min(watermark),
            };
        }
    }

    /// Takes a watermark. `now` is the time of the system.
    pub fn set_watermark(&mut self, time: i64, now: i64) {
        if let Some(most) = self.bound {
            if is_beyond(time, self.reference(now), most) {
                return;
            }
            self.stream.latest = self.stream.latest.max(Some(time));
        }
        self.watermark = self.watermark.max(self.tick_of(time));
    }

    /// The time that others are compared with for `max_advance`. `now` is the time of the system.
    #[must_use]
    pub fn reference(&self, now: i64) -> i64 {
        self.stream.latest.unwrap_or(now)
    }

    /// Moves the clocks by a record of a partition, whose time is 0 or later.
    ///
    /// # Panics
    /// If there is no such partition.
    #[inline]
    pub fn place(&mut self, partition: usize, time: i64, now: i64) -> Place {
        let time = match self.bound {
            None => time,
            Some(most) => {
                let now = Some(now);
                let Some(admitted) = self.stream.admit(time, Some(MaxAdvance { most, now })) else {
                    return Place {
                        is_too_far_ahead: true,
                        ..Place::default()
                    };
                };
                // The one that ends a run of records ahead moves the clock of the task by all of
                // them, and is itself at its own time, at most that of the clock.
                time.min(admitted)
            }
        };
        let tick = self.tick_of(time);
        let skew = self.window.skew;
        let is_beyond_skew = skew > 0 && self.watermark > 0 && tick > self.watermark + skew;
        if is_beyond_skew && !self.judges_beyond_skew {
            return Place {
                tick,
                is_beyond_skew,
                ..Place::default()
            };
        }
        let latest = &mut self.latest[partition];
        *latest = tick.max(*latest);
        Place {
            // With a skew, the filter judges at the record's own time.
            tick: if skew > 0 { tick } else { *latest },
            is_late: is_late(self.clock(partition), tick as i64, self.window.late_after),
            is_beyond_skew,
            is_too_far_ahead: false,
        }
    }

    /// The clock of a partition in ticks; 0 or less before its first record.
    #[must_use]
    pub fn clock(&self, partition: usize) -> i64 {
        let latest = self.latest[partition] as i64;
        match self.window.skew {
            0 => latest,
            skew => (self.watermark as i64).max(latest - skew as i64),
        }
    }

    /// The tick of a time, which is 0 or later.
    fn tick_of(&self, time: i64) -> u64 {
        time as u64 / self.window.resolution + 1
    }

    /// The first time of a tick.
    #[must_use]
    pub fn time_of(&self, tick: u64) -> i64 {
        (tick as i64 - 1) * self.window.resolution as i64
    }
}
