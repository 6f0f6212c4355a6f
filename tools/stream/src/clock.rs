//! The clock of a stream: the latest time so far.

use crate::ahead::AheadRun;

/// The tick of a time. The clock of a filter starts at 0, and no key has that tick: the origin has
/// tick 1.
///
/// # Examples
/// ```
/// use echoless_stream::tick_since;
/// assert_eq!(tick_since(0, 60), 61);
/// assert_eq!(tick_since(i64::MIN, i64::MAX), u64::MAX);
/// ```
#[must_use]
#[inline]
pub const fn tick_since(origin: i64, time: i64) -> u64 {
    (time.wrapping_sub(origin) as u64).saturating_add(1)
}

/// Whether a record is late: its time is more than `late_after` before the clock.
///
/// Judged at the clock, all late records would share one instant, however far apart they are: of
/// streams in the wrong order, equal keys hours apart would be duplicates as if they were inside one
/// window. So they pass without a verdict, unless a policy says otherwise.
#[must_use]
pub const fn is_late(clock: i64, time: i64, late_after: u64) -> bool {
    is_beyond(clock, time, late_after)
}

/// Whether one time is more than `most` beyond another.
pub(crate) const fn is_beyond(time: i64, other: i64, most: u64) -> bool {
    time > other && time.abs_diff(other) > most
}

/// How far ahead of the clock a time may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxAdvance {
    /// In the unit of the times of the clock.
    pub most: u64,
    /// The time of the system when the program began, which the first time of a stream is compared
    /// with; `None` if that has no meaning, such as for times of day.
    pub now: Option<i64>,
}

/// The latest time of a stream, in ticks or another unit, without times that are too far ahead.
///
/// # Examples
/// ```
/// use echoless_stream::{Clock, MaxAdvance};
/// let bound = Some(MaxAdvance { most: 10, now: Some(1000) });
/// let mut clock = Clock::default();
/// assert_eq!(clock.admit(1011, bound), None);
/// assert_eq!(clock.admit(1010, bound), Some(1010));
/// assert_eq!(clock.admit(995, bound), Some(995));
/// assert_eq!(clock.latest, Some(1010));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clock {
    /// `None` before the first time.
    pub latest: Option<i64>,
    /// The records in a row that are too far ahead.
    pub ahead: AheadRun,
}

impl Clock {
    /// Moves the clock by the next record. Returns the time that the record has for it, or `None` if
    /// it is too far ahead; see [`AheadRun`].
    pub fn admit(&mut self, time: i64, bound: Option<MaxAdvance>) -> Option<i64> {
        let admitted = match bound {
            None => time,
            Some(bound) => {
                let clock = self.latest.or(bound.now);
                self.ahead.admit(clock, time, bound.most)?
            }
        };
        self.latest = self.latest.max(Some(admitted));
        Some(admitted)
    }
}
