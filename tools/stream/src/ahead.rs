//! A bound of how far one record moves the clock of a stream.

use serde::{Deserialize, Serialize};

use crate::clock::is_beyond;

/// Records in a row whose times are too far ahead of the clock of a stream.
///
/// A window takes the latest time so far for the clock, so one record with a time in the far future
/// makes all others late. With a bound, a record whose time is more than `most` beyond the clock is
/// **too far ahead**: it does not move the clock, and what happens to it is that of a record
/// without a time. A stream that was silent for longer has only such records, so
/// [`LONGEST`](Self::LONGEST) in a row are no error: the last of them moves the clock to where it
/// would be if the stream had begun with them.
///
/// The decision depends on the records alone, so the same stream always leads to the same one.
///
/// # Examples
/// ```
/// use echoless_stream::AheadRun;
/// let (mut ahead, clock) = (AheadRun::default(), Some(100));
/// assert_eq!(ahead.admit(clock, 110, 10), Some(110));
/// assert_eq!(ahead.admit(clock, 111, 10), None);
/// // After a pause, when the clock is still there.
/// let mut ahead = AheadRun::default();
/// let times = (500..).take(AheadRun::LONGEST as usize);
/// let admitted: Vec<i64> = times.filter_map(|time| ahead.admit(clock, time, 10)).collect();
/// assert_eq!(admitted, [500 + AheadRun::LONGEST as i64 - 1]);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "(u64, i64)", from = "(u64, i64)")]
pub struct AheadRun {
    /// How many there are. Records without a time do not end them.
    pub records: u64,
    /// The clock of a stream of these records alone. One that is too far ahead of a later record
    /// was wrong, and begins there again.
    pub clock: i64,
}

impl AheadRun {
    /// So many in a row move the clock: more than one wrong producer writes in a batch.
    pub const LONGEST: u64 = 1000;

    /// Returns the time that the next record has for the clock, or `None` if it is too far ahead.
    /// Without a clock any time is allowed.
    pub fn admit(&mut self, clock: Option<i64>, time: i64, most: u64) -> Option<i64> {
        let is_ahead = |time, clock| is_beyond(time, clock, most);
        if !clock.is_some_and(|clock| is_ahead(time, clock)) {
            self.records = 0;
            return Some(time);
        }
        if self.records == 0 || is_ahead(self.clock, time) {
            self.clock = time;
        } else if !is_ahead(time, self.clock) {
            self.clock = self.clock.max(time);
        }
        self.records += 1;
        if self.records < Self::LONGEST {
            return None;
        }
        self.records = 0;
        Some(self.clock)
    }
}

/// In states, and their order there.
impl From<AheadRun> for (u64, i64) {
    fn from(run: AheadRun) -> Self {
        (run.records, run.clock)
    }
}

impl From<(u64, i64)> for AheadRun {
    fn from((records, clock): (u64, i64)) -> Self {
        Self { records, clock }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times that the clock gets from a stream.
    fn admitted(times: impl IntoIterator<Item = i64>, most: u64) -> Vec<Option<i64>> {
        let (mut ahead, mut clock) = (AheadRun::default(), None);
        let times = times.into_iter().map(|time| {
            let admitted = ahead.admit(clock, time, most);
            clock = clock.max(admitted);
            admitted
        });
        times.collect()
    }

    #[test]
    fn times_far_ahead_of_the_clock_do_not_move_it() {
        assert_eq!(
            admitted([5, 3, 15, 26, 14, 25, 36, i64::MAX, 35, i64::MIN], 10),
            [
                Some(5),
                Some(3),
                Some(15),
                None,
                Some(14),
                Some(25),
                None,
                None,
                Some(35),
                Some(i64::MIN)
            ]
        );
        assert_eq!(
            admitted([i64::MIN, i64::MAX, i64::MAX - 1], u64::MAX),
            [Some(i64::MIN), Some(i64::MAX), Some(i64::MAX - 1)]
        );
    }

    #[test]
    fn a_burst_of_wrong_times_is_no_pause_and_a_pause_ends() {
        let burst = [9_999; AheadRun::LONGEST as usize - 1];
        let times = [1]
            .into_iter()
            .chain(burst)
            .chain([2])
            .chain(burst)
            .chain([3]);
        let clock = admitted(times, 10).into_iter().max().flatten();
        assert_eq!(clock, Some(3));
        // Some of them have wrong times, and they take longer than one may be ahead.
        let pause = (0..2 * AheadRun::LONGEST as i64).map(|number| match number {
            0 | 7 => 1 << 50,
            _ => 9_000 + number,
        });
        let admitted = admitted([1].into_iter().chain(pause), 50);
        assert_eq!(admitted[AheadRun::LONGEST as usize], Some(9_999));
        assert!(
            admitted[AheadRun::LONGEST as usize + 1..]
                .iter()
                .all(Option::is_some)
        );
    }
}
