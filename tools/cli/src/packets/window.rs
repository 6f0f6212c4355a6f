//! The window of a stream of packets: of time, of a number of packets, or both at once.
//!
//! A window of N packets counts the keys that it observes: the number of a key is its tick, so a
//! whole chunk is one batch.
//!
//! Both windows together are two filters. A packet is a duplicate if an equal one lies in both
//! windows, and that one may as well be the last equal one: it is the youngest on both clocks.
//! - With refresh, that is the last packet with this key. Both filters record every key, so the
//!   verdict is that both have it.
//! - Without refresh, that is the last *kept* packet with this key. A filter of its own would not
//!   record a packet that it takes for a duplicate, although the other window ends before and the
//!   packet is kept. So both are asked first, and both record the key if it is fresh.

use std::fmt;

use echoless::{BuildError, Filter, FilterSpec, KeyHash, Report, Tally, Verdict};

/// The windows of a run and the filters that remember their keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Windows {
    /// The ticks are those of the batches.
    Time(FilterSpec),
    /// The ticks are the numbers of the packets.
    Packets(FilterSpec),
    Both(Box<BothSpec>),
}

/// Two windows at once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BothSpec {
    /// In this filter and the other one a duplicate renews its key.
    pub(crate) time: FilterSpec,
    pub(crate) packets: FilterSpec,
    /// Whether a duplicate renews its key.
    pub(crate) refresh: bool,
}

/// The specifications of the filters.
impl fmt::Display for Windows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(filter) | Self::Packets(filter) => filter.fmt(formatter),
            Self::Both(both) => write!(formatter, "{} and {}", both.time, both.packets),
        }
    }
}

impl Windows {
    /// Builds the filter.
    pub(crate) fn build(&self) -> Result<Box<dyn Filter>, BuildError> {
        Ok(match self {
            Self::Time(time) => time.build()?,
            Self::Packets(packets) => Box::new(Counted::new(packets.build()?)),
            Self::Both(both) => Box::new(Both {
                time: both.time.build()?,
                packets: Counted::new(both.packets.build()?),
                refresh: both.refresh,
            }),
        })
    }
}

/// A filter whose clock is the number of the key.
struct Counted {
    filter: Box<dyn Filter>,
    observed: u64,
}

impl Counted {
    fn new(filter: Box<dyn Filter>) -> Self {
        Self {
            filter,
            observed: 0,
        }
    }

    /// Moves the clock to the next key.
    #[inline]
    fn count(&mut self) {
        self.observed += 1;
        self.filter.advance_to(self.observed);
    }
}

impl Filter for Counted {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        set_bits(keys, duplicates, |key, ahead| {
            self.filter.prefetch(ahead);
            self.count();
            self.filter.observe_one(key) == Verdict::Duplicate
        });
    }

    fn prefetch(&self, keys: &[KeyHash]) {
        self.filter.prefetch(keys);
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.filter.contains(key)
    }

    fn clear(&mut self) {
        self.observed = 0;
        self.filter.clear();
    }

    fn memory_bytes(&self) -> u64 {
        self.filter.memory_bytes()
    }

    fn tally(&self) -> Tally {
        self.filter.tally()
    }

    fn report_on(&self, tally: Tally) -> Report {
        self.filter.report_on(tally)
    }
}

/// A window of time and one of packets: a duplicate is in both.
struct Both {
    time: Box<dyn Filter>,
    packets: Counted,
    refresh: bool,
}

impl Both {
    fn is_duplicate(&mut self, key: KeyHash) -> bool {
        self.packets.count();
        let packets = &mut self.packets.filter;
        if !self.refresh && self.time.contains(key) && packets.contains(key) {
            return true;
        }
        let in_time = self.time.observe_one(key) == Verdict::Duplicate;
        let in_packets = packets.observe_one(key) == Verdict::Duplicate;
        in_time && in_packets
    }
}

impl Filter for Both {
    fn observe_words(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        set_bits(keys, duplicates, |key, ahead| {
            self.prefetch(ahead);
            self.is_duplicate(key)
        });
    }

    fn prefetch(&self, keys: &[KeyHash]) {
        self.time.prefetch(keys);
        self.packets.prefetch(keys);
    }

    fn advance_to(&mut self, tick: u64) {
        self.time.advance_to(tick);
    }

    fn contains(&self, key: KeyHash) -> bool {
        self.time.contains(key) && self.packets.contains(key)
    }

    fn clear(&mut self) {
        self.time.clear();
        self.packets.clear();
    }

    fn memory_bytes(&self) -> u64 {
        self.time.memory_bytes() + self.packets.memory_bytes()
    }

    fn tally(&self) -> Tally {
        self.time.tally()
    }

    /// The report of the filter of time, whose false duplicates bound those of both, with the
    /// memory and the evictions of both.
    fn report_on(&self, tally: Tally) -> Report {
        let mut report = self.time.report_on(tally);
        let packets = self.packets.tally();
        report.tally.memory_bytes += packets.memory_bytes;
        report.tally.evictions = sum(report.tally.evictions, packets.evictions);
        report.tally.huge_page_bytes = sum(report.tally.huge_page_bytes, packets.huge_page_bytes);
        report
    }
}

fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    Some(left? + right?)
}

/// Sets the bit of every key for which `is_duplicate` holds. That is called for each key in order,
/// with the keys to load for later calls: the next word's at the first key of each word.
fn set_bits(
    keys: &[KeyHash],
    duplicates: &mut [u64],
    mut is_duplicate: impl FnMut(KeyHash, &[KeyHash]) -> bool,
) {
    assert_eq!(duplicates.len(), keys.len().div_ceil(64));
    let mut words = keys.chunks(64).peekable();
    for word in duplicates {
        let keys = words.next().unwrap_or_default();
        let next = words.peek().copied().unwrap_or_default();
        *word = 0;
        for (bit, key) in keys.iter().enumerate() {
            let ahead = if bit == 0 { next } else { &[] };
            *word |= u64::from(is_duplicate(*key, ahead)) << bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use echoless::KeyHasher;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn spec(window: u64, refresh: bool) -> FilterSpec {
        let text = format!("stamped:window={window},refresh={refresh},form=line,memory=64KiB");
        text.parse().unwrap()
    }

    proptest! {
        /// From the definition: the last packet that counts is inside every window.
        #[test]
        fn verdicts_equal_the_definition(
            stream in vec((0_u64..12, 0_u64..4), 0..300),
            time in prop::option::of(1_u64..40),
            packets in 1_u64..40,
            refresh: bool,
            lengths in vec(1_usize..20, 1..5),
        ) {
            let windows = match time {
                None => Windows::Packets(spec(packets, refresh)),
                Some(time) => Windows::Both(Box::new(BothSpec {
                    time: spec(time, true),
                    packets: spec(packets, true),
                    refresh,
                })),
            };
            let mut filter = windows.build().unwrap();
            let hasher = KeyHasher::seeded(3);
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            let mut last: HashMap<u64, (u64, u64)> = HashMap::new();
            let (mut clock, mut number) = (1, 0);
            let mut rest = &stream[..];
            for length in lengths.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                // A batch has one tick.
                let (batch, after) = rest.split_at((*length).min(rest.len()));
                rest = after;
                clock += batch[0].1;
                filter.advance_to(clock);
                let keys: Vec<KeyHash> = batch.iter().map(|(key, _)| hasher.hash_u64(*key)).collect();
                let mut words = vec![u64::MAX; keys.len().div_ceil(64)];
                filter.observe_words(&keys, &mut words);
                for (index, (key, _)) in batch.iter().enumerate() {
                    number += 1;
                    found.push(words[index / 64] >> (index % 64) & 1 == 1);
                    let duplicate = last.get(key).is_some_and(|(tick, at)| {
                        number - at <= packets && time.is_none_or(|time| clock - tick <= time)
                    });
                    expected.push(duplicate);
                    if refresh || !duplicate {
                        last.insert(*key, (clock, number));
                    }
                }
            }
            prop_assert_eq!(found, expected);
            prop_assert_eq!(filter.report().tally.evictions, Some(0));
        }
    }

    #[test]
    fn both_filters_are_reported_as_one() {
        let windows = Windows::Both(Box::new(BothSpec {
            time: spec(10, true),
            packets: spec(20, true),
            refresh: true,
        }));
        let filter = windows.build().unwrap();
        let report = filter.report();
        assert_eq!(report.tally.memory_bytes, 128 << 10);
        assert_eq!(report.tally.evictions, Some(0));
        assert_eq!(filter.memory_bytes(), 128 << 10);
    }
}
