//! The filter of a stream of packets, for a window: of time, of a number of packets, or both at
//! once.
//!
//! A window of N packets counts the keys that it observes: the number of a key, or of a few keys if
//! N is beyond what stamps can distinguish, is its tick. A batch has a tick for every key, so a
//! whole chunk is one batch.
//!
//! Both windows together are two filters. A packet is a duplicate if an equal one lies in both
//! windows, and that one may as well be the last equal one: it is the youngest on both clocks.
//! - With refresh, that is the last packet with this key. Both filters record every key, so the
//!   verdict is that both have it.
//! - Without refresh, that is the last *kept* packet with this key. A filter of its own would not
//!   record a packet that it takes for a duplicate, although the other window ends before and the
//!   packet is kept. So both are probed first, and both record the key if it is fresh.

use std::fmt;

use echoless::{Batch, BuildError, Filter, FilterSpec, KeyHash, Report, Tally, Ticks};

/// The windows of a run and the filters that remember their keys.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Windows {
    /// The ticks are those of the batches.
    Time(FilterSpec),
    /// The filter counts its packets.
    Packets(CountedSpec),
    Both(Box<BothSpec>),
}

/// A window of packets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CountedSpec {
    pub(crate) filter: FilterSpec,
    /// The packets of a tick, 1 or more.
    pub(crate) resolution: u64,
}

/// Two windows at once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BothSpec {
    /// In this filter and that of `packets` a duplicate renews its key.
    pub(crate) time: FilterSpec,
    pub(crate) packets: CountedSpec,
    /// Whether a duplicate renews its key.
    pub(crate) refresh: bool,
}

/// The specifications of the filters.
impl fmt::Display for Windows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(filter) => filter.fmt(formatter),
            Self::Packets(packets) => packets.filter.fmt(formatter),
            Self::Both(both) => write!(formatter, "{} and {}", both.time, both.packets.filter),
        }
    }
}

/// The tick of the key that `before` others precede, if a tick has `resolution` keys. The first
/// tick is 1.
#[inline]
pub(crate) const fn numbered_tick(before: u64, resolution: u64) -> u64 {
    // Most ticks are one packet, and a predicted branch takes less time than a division.
    if resolution == 1 {
        before + 1
    } else {
        before / resolution + 1
    }
}

impl Windows {
    /// The packets of a tick, if one of the windows counts packets; else 1.
    pub(crate) const fn packets_per_tick(&self) -> u64 {
        match self {
            Self::Time(_) => 1,
            Self::Packets(packets) => packets.resolution,
            Self::Both(both) => both.packets.resolution,
        }
    }

    /// Builds the filter.
    pub(crate) fn build(&self) -> Result<Box<dyn Filter>, BuildError> {
        Ok(match self {
            Self::Time(time) => time.build()?,
            Self::Packets(packets) => Box::new(Counted::build(packets)?),
            Self::Both(both) => Box::new(Both {
                time: both.time.build()?,
                packets: Counted::build(&both.packets)?,
                refresh: both.refresh,
                in_packets: Vec::new(),
            }),
        })
    }
}

/// A filter whose clock counts the keys that it observes.
struct Counted {
    filter: Box<dyn Filter>,
    /// The keys of a tick.
    resolution: u64,
    observed: u64,
    /// The ticks of a batch.
    ticks: Vec<u64>,
}

impl Counted {
    fn build(spec: &CountedSpec) -> Result<Self, BuildError> {
        Ok(Self {
            filter: spec.filter.build()?,
            resolution: spec.resolution,
            observed: 0,
            ticks: Vec::new(),
        })
    }

    /// Counts a key. Returns its tick.
    #[inline]
    fn count(&mut self) -> u64 {
        let tick = numbered_tick(self.observed, self.resolution);
        self.observed += 1;
        tick
    }

    /// Moves the clock to the next key.
    fn advance(&mut self) {
        let tick = self.count();
        self.filter.advance_to(tick);
    }
}

impl Filter for Counted {
    /// The ticks of the batch are those of another clock.
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        let keys = batch.keys();
        let mut ticks = std::mem::take(&mut self.ticks);
        ticks.clear();
        ticks.extend(keys.iter().map(|_| self.count()));
        let batch = Batch::at_each(keys, &ticks);
        self.filter.observe_batch(batch, duplicates);
        self.ticks = ticks;
    }

    fn prefetch(&self, keys: &[KeyHash]) {
        self.filter.prefetch(keys);
    }

    fn provide_memory(&self, share: usize, shares: usize) {
        self.filter.provide_memory(share, shares);
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
    /// The verdicts of the window of packets on a batch.
    in_packets: Vec<u64>,
}

impl Both {
    /// Leaves in `duplicates`, which has the verdicts of the window of time, those of both.
    fn intersect(&mut self, keys: &[KeyHash], duplicates: &mut [u64]) {
        self.in_packets.clear();
        self.in_packets.resize(duplicates.len(), 0);
        let batch = Batch::new(keys);
        self.packets.observe_batch(batch, &mut self.in_packets);
        for (word, other) in duplicates.iter_mut().zip(&self.in_packets) {
            *word &= other;
        }
    }

    /// The verdict without refresh: both filters are probed before either records the key.
    fn is_duplicate(&mut self, key: KeyHash) -> bool {
        self.packets.advance();
        let packets = &mut self.packets.filter;
        if self.time.contains(key) && packets.contains(key) {
            return true;
        }
        self.time.observe_one(key);
        packets.observe_one(key);
        false
    }
}

impl Filter for Both {
    fn observe_batch(&mut self, batch: Batch<'_>, duplicates: &mut [u64]) {
        let keys = batch.keys();
        if self.refresh {
            self.time.observe_batch(batch, duplicates);
            return self.intersect(keys, duplicates);
        }
        let ticks = match batch.ticks() {
            Ticks::Each(ticks) => Some(ticks),
            Ticks::One(tick) => {
                self.time.advance_to(tick);
                None
            }
            Ticks::Unmoved => None,
        };
        set_bits(keys, duplicates, |index, ahead| {
            self.prefetch(ahead);
            if let Some(ticks) = ticks {
                self.time.advance_to(ticks[index]);
            }
            self.is_duplicate(keys[index])
        });
    }

    fn prefetch(&self, keys: &[KeyHash]) {
        self.time.prefetch(keys);
        self.packets.prefetch(keys);
    }

    fn provide_memory(&self, share: usize, shares: usize) {
        self.time.provide_memory(share, shares);
        self.packets.provide_memory(share, shares);
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
    /// memory of both and the evictions that both filters have.
    fn report_on(&self, tally: Tally) -> Report {
        let mut report = self.time.report_on(tally);
        let packets = self.packets.tally();
        report.tally.memory_bytes += packets.memory_bytes;
        // Both have the same lines and the same order of keys in them. So a filter that loses a key
        // inside both windows has met more keys inside both than its line holds, and the other one
        // loses it, too. Only what both have lost can be missed.
        report.tally.evictions = least(report.tally.evictions, packets.evictions);
        report
    }
}

fn least(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    Some(left?.min(right?))
}

/// Sets the bit of every key for which `is_duplicate` holds. That is called for the index of each
/// key in order, with the keys to load for later calls: the next word's at the first key of each
/// word.
fn set_bits(
    keys: &[KeyHash],
    duplicates: &mut [u64],
    mut is_duplicate: impl FnMut(usize, &[KeyHash]) -> bool,
) {
    assert_eq!(duplicates.len(), keys.len().div_ceil(64));
    for (number, word) in duplicates.iter_mut().enumerate() {
        let end = keys.len().min(64 * number + 64);
        let next = &keys[end..keys.len().min(end + 64)];
        *word = 0;
        for index in 64 * number..end {
            let ahead = if index % 64 == 0 { next } else { &[] };
            *word |= u64::from(is_duplicate(index, ahead)) << (index % 64);
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

    fn counted(window: u64, resolution: u64, refresh: bool) -> CountedSpec {
        CountedSpec {
            filter: spec(window.div_ceil(resolution), refresh),
            resolution,
        }
    }

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
            resolution in prop_oneof![Just(1_u64), 2_u64..4],
            refresh: bool,
            lengths in vec(1_usize..20, 1..5),
            one_tick: bool,
        ) {
            let windows = match time {
                None => Windows::Packets(counted(packets, resolution, refresh)),
                Some(time) => Windows::Both(Box::new(BothSpec {
                    time: spec(time, true),
                    packets: counted(packets, resolution, true),
                    refresh,
                })),
            };
            let mut filter = windows.build().unwrap();
            let hasher = KeyHasher::seeded(3);
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            let mut last: HashMap<u64, (u64, u64)> = HashMap::new();
            let (mut clock, mut number) = (1, 0_u64);
            let mut rest = &stream[..];
            for length in lengths.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (batch, after) = rest.split_at((*length).min(rest.len()));
                rest = after;
                let keys: Vec<KeyHash> = batch.iter().map(|(key, _)| hasher.hash_u64(*key)).collect();
                let mut words = vec![u64::MAX; keys.len().div_ceil(64)];
                // A batch has one tick, or every key its own.
                clock += if one_tick { batch[0].1 } else { 0 };
                let ticks: Vec<u64> = batch
                    .iter()
                    .map(|(_, step)| {
                        clock += if one_tick { 0 } else { *step };
                        clock
                    })
                    .collect();
                let observed = if one_tick {
                    Batch::at(&keys, clock)
                } else {
                    Batch::at_each(&keys, &ticks)
                };
                filter.observe_batch(observed, &mut words);
                for (index, (key, _)) in batch.iter().enumerate() {
                    number += 1;
                    let clock = ticks[index];
                    found.push(words[index / 64] >> (index % 64) & 1 == 1);
                    let duplicate = last.get(key).is_some_and(|(tick, at)| {
                        let ticks = (number - 1) / resolution - (at - 1) / resolution;
                        // At least the packets that were requested.
                        assert!(number - at > packets || ticks <= packets.div_ceil(resolution));
                        ticks <= packets.div_ceil(resolution) && time.is_none_or(|time| clock - tick <= time)
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
            packets: counted(20, 1, true),
            refresh: true,
        }));
        let filter = windows.build().unwrap();
        let report = filter.report();
        assert_eq!(report.tally.memory_bytes, 128 << 10);
        assert_eq!(report.tally.evictions, Some(0));
        assert_eq!(filter.memory_bytes(), 128 << 10);
    }
}
