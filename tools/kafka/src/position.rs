//! The bytes of a commit of the journal of a partition: where the stream is, and what must not
//! change.
//!
//! ```text
//!  8 offset behind the records | 8 clock | 1 whether the group has an offset | JSON: Details
//! ```
//!
//! The first versions wrote no JSON.

use echoless_durable::{Commit, LastingOption};
use echoless_stream::{AheadRun, Clock, tick_since};
use serde::{Deserialize, Serialize};

use crate::window::{ClockSource, Window};

/// Where the stream is at a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position {
    /// The offset behind the records.
    pub(crate) next: i64,
    /// The tick of the filter, which is 1 for the time 0, and 0 if no record has moved the clock.
    pub(crate) tick: u64,
    /// A transaction has committed an offset of the group.
    pub(crate) group_has_offset: bool,
    /// `None` in a journal of the first versions.
    pub(crate) details: Option<Details>,
}

/// What came to the commits of a journal later.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Details {
    /// The options that must not change.
    pub(crate) options: Vec<LastingOption>,
    /// The id of the topic, if the brokers told it.
    #[serde(default)]
    pub(crate) topic_id: Option<String>,
    /// The number of its partitions.
    #[serde(default)]
    pub(crate) partitions: Option<usize>,
    /// The records in a row that are too far ahead, whose clock is a tick of the filter, too.
    #[serde(default)]
    pub(crate) ahead: AheadRun,
}

impl Position {
    /// The position of a stream whose clock, in ticks, is this one.
    pub(crate) fn new(next: i64, clock: Clock, group_has_offset: bool, details: Details) -> Self {
        let AheadRun {
            records,
            clock: ahead,
        } = clock.ahead;
        let ahead = AheadRun {
            records,
            clock: ahead.saturating_add(1),
        };
        Self {
            next,
            tick: clock.latest.map_or(0, |latest| tick_since(0, latest)),
            group_has_offset,
            details: Some(Details { ahead, ..details }),
        }
    }

    /// The clock, in ticks.
    pub(crate) fn clock(&self) -> Clock {
        let mut ahead = (self.details.as_ref()).map_or_else(AheadRun::default, |at| at.ahead);
        ahead.clock = ahead.clock.saturating_sub(1);
        let latest = self.tick.checked_sub(1).map(|latest| latest as i64);
        Clock { latest, ahead }
    }

    /// The bytes of a commit.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.next.to_le_bytes().to_vec();
        bytes.extend(self.tick.to_le_bytes());
        bytes.push(u8::from(self.group_has_offset));
        if let Some(details) = &self.details {
            serde_json::to_writer(&mut bytes, details)
                .unwrap_or_else(|error| unreachable!("text, numbers and lists are JSON: {error}"));
        }
        bytes
    }

    /// The position of a commit; `None` if it has another form.
    pub(crate) fn of(commit: &Commit) -> Option<Self> {
        Self::decode(&commit.bytes)
    }

    /// The position in the bytes of a commit; `None` if they have another form.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (next, rest) = bytes.split_first_chunk()?;
        let (tick, rest) = rest.split_first_chunk()?;
        let (group_has_offset, details) = rest.split_first()?;
        let details = match details {
            [] => None,
            json => Some(serde_json::from_slice(json).ok()?),
        };
        Some(Self {
            next: i64::from_le_bytes(*next),
            tick: u64::from_le_bytes(*tick),
            group_has_offset: *group_has_offset == 1,
            details,
        })
    }

    /// Whether the clock of a journal of the first versions, which does not hold its window, is
    /// that of this one.
    ///
    /// Offsets give their tick exactly. A clock of times is plausible if it is in the years from
    /// 2000 to 2029, when there were such journals: ticks are 1, 2 or 5 times a power of ten, and
    /// with the next one above or below, the same number is a time before 2000 or after 2029.
    pub(crate) fn has_clock_of(&self, window: Window) -> bool {
        /// In milliseconds since 1970.
        const YEARS: std::ops::Range<u64> = 946_684_800_000..1_893_456_000_000;
        match (self.clock().latest, window.clock) {
            // No record has moved the clock.
            (None, _) => true,
            (latest, ClockSource::Offsets) => latest == window.tick(self.next - 1, None),
            (Some(tick), ClockSource::Times) => {
                YEARS.contains(&(tick as u64).saturating_mul(window.resolution))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_were_written_and_those_of_the_first_versions_too() {
        let options = vec![("--window".to_owned(), Some("1h".to_owned()))];
        let details = Details {
            options,
            topic_id: Some("x".to_owned()),
            partitions: Some(6),
            ahead: (7, -1).into(),
        };
        for details in [None, Some(details)] {
            for group_has_offset in [false, true] {
                let position = Position {
                    next: 1 << 40,
                    tick: u64::MAX,
                    group_has_offset,
                    details: details.clone(),
                };
                let bytes = position.encode();
                assert_eq!(Position::decode(&bytes), Some(position));
                for length in (0..bytes.len()).filter(|length| *length != 17) {
                    assert_eq!(Position::decode(&bytes[..length]), None);
                }
            }
        }
    }

    #[test]
    fn a_clock_without_a_window_is_that_of_one_window_only() {
        let windows = ["10m", "1h", "2h", "6h", "24h", "5000", "10k", "20k", "50k"];
        let windows = windows.map(|text| Window::parse(text).unwrap());
        for made in windows {
            for year in 1..29 {
                let time = 946_684_800_000 + year * 31_556_952_000;
                let (next, time) = (1_234_567, Some(time));
                let position = Position {
                    next,
                    tick: made.tick(next - 1, time).unwrap() as u64 + 1,
                    group_has_offset: true,
                    details: None,
                };
                for now in windows {
                    let is_same = (now.clock, now.resolution) == (made.clock, made.resolution);
                    assert_eq!(position.has_clock_of(now), is_same, "{made:?} {now:?}");
                }
            }
        }
    }
}
