//! Where duplicates come from: how far they are from the packet that they copy, on which interfaces
//! both were captured, and which of the ignored fields differ.
//!
//! The last packet of each key is kept in an exact table, which exists only for this report. It
//! holds the [`CAPACITY`] keys that were seen last; a duplicate of another key is counted as one
//! whose original is unknown.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write as _;

use echoless::KeyHash;
use echoless_packets::InterfaceId;
use echoless_packets::key::{Field, IgnoredFields};
use echoless_records::chunk::Chunk;
use echoless_records::failure::Failure;
use echoless_records::number::grouped;
use serde::Serialize;

use crate::dedup::{Fields, Observer, RunCounts, Words};

/// The most keys in the table. A report takes some 150 MB with so many.
const CAPACITY: usize = 1 << 18;

/// The most pairs of interfaces that are counted apart.
const MOST_PAIRS: usize = 1024;

/// The upper ends of the histogram of times, in nanoseconds: 1, 2 and 5 times the powers of ten
/// from a microsecond to 50 seconds.
const TIME_DIGITS: [u64; 3] = [1, 2, 5];
const TIME_DECADES: std::ops::Range<u32> = 3..11;

/// What is known about the duplicates so far.
#[derive(Debug)]
pub(crate) struct CopyReport {
    last: HashMap<KeyHash, Original>,
    /// The keys in the order of their packets; an entry whose key was seen again is stale.
    order: VecDeque<(KeyHash, u64)>,
    /// The number of packets so far that have a verdict: late ones have none.
    packets: u64,
    /// Duplicates whose distance is above `2^(i-1)` and at most `2^i`.
    by_packets: [u64; 65],
    /// Duplicates by time, in the buckets of [`time_ends`], and those beyond the last one.
    by_time: Vec<u64>,
    /// Duplicates of which either packet has no time.
    without_time: u64,
    by_interfaces: BTreeMap<(InterfaceId, InterfaceId), u64>,
    /// Duplicates on further pairs of interfaces.
    other_interfaces: u64,
    /// Duplicates that differ in a field, in the order of [`Field::ALL`].
    by_field: Vec<u64>,
    /// Duplicates that differ in no ignored field.
    identical: u64,
    unknown: u64,
}

/// The last packet of a key.
#[derive(Debug, Clone, Copy)]
struct Original {
    number: u64,
    time: Option<i64>,
    interface: InterfaceId,
    ignored: IgnoredFields,
}

/// The upper ends of the histogram of times, in nanoseconds.
fn time_ends() -> impl Iterator<Item = u64> {
    TIME_DECADES.flat_map(|power| TIME_DIGITS.map(|digit| digit * 10_u64.pow(power)))
}

impl CopyReport {
    pub(crate) fn new() -> Self {
        Self {
            last: HashMap::new(),
            order: VecDeque::new(),
            packets: 0,
            by_packets: [0; 65],
            by_time: vec![0; time_ends().count() + 1],
            without_time: 0,
            by_interfaces: BTreeMap::new(),
            other_interfaces: 0,
            by_field: vec![0; Field::ALL.len()],
            identical: 0,
            unknown: 0,
        }
    }

    /// Follows the packets of the next chunk of the stream.
    fn observe(&mut self, chunk: &Chunk) {
        let packets = chunk
            .keys
            .packets
            .blocks
            .iter()
            .zip(&chunk.keys.packets.ignored);
        for (index, (key, (packet, ignored))) in chunk.keys.hashes.iter().zip(packets).enumerate() {
            self.packets += 1;
            let copy = Original {
                number: self.packets,
                time: packet.timestamp,
                interface: packet.interface,
                ignored: *ignored,
            };
            let original = self.last.insert(*key, copy);
            if chunk.verdicts.of_keys.is_duplicate(index) {
                match original {
                    Some(original) => self.count(&original, &copy),
                    None => self.unknown += 1,
                }
            }
            self.order.push_back((*key, copy.number));
            self.forget();
        }
    }

    /// Keeps the table and the queue within their bounds.
    fn forget(&mut self) {
        // A key that is seen often leaves an entry each time. They must not push out other keys.
        if self.order.len() > 2 * CAPACITY {
            let last = &self.last;
            let is_last = |(key, number): &(KeyHash, u64)| {
                last.get(key)
                    .is_some_and(|original| original.number == *number)
            };
            self.order.retain(is_last);
        }
        while self.last.len() > CAPACITY {
            let Some((key, number)) = self.order.pop_front() else {
                return;
            };
            let is_last = |original: &Original| original.number == number;
            if self.last.get(&key).is_some_and(is_last) {
                self.last.remove(&key);
            }
        }
    }

    fn count(&mut self, original: &Original, copy: &Original) {
        let distance = copy.number - original.number;
        let bucket = u64::BITS - (distance - 1).leading_zeros();
        self.by_packets[bucket as usize] += 1;
        match (original.time, copy.time) {
            (Some(first), Some(second)) => {
                let time = second.abs_diff(first);
                let bucket = time_ends().take_while(|end| *end < time).count();
                self.by_time[bucket] += 1;
            }
            (None, _) | (_, None) => self.without_time += 1,
        }
        let pair = (original.interface, copy.interface);
        if self.by_interfaces.len() < MOST_PAIRS || self.by_interfaces.contains_key(&pair) {
            *self.by_interfaces.entry(pair).or_default() += 1;
        } else {
            self.other_interfaces += 1;
        }
        let differing = original.ignored.differing(&copy.ignored);
        if differing.is_empty() {
            self.identical += 1;
        }
        for (field, count) in Field::ALL.iter().zip(&mut self.by_field) {
            *count += u64::from(differing.contains(*field));
        }
    }

    /// The report for programs.
    fn copies(&self) -> CopyStats {
        let ends = (0..u64::BITS).map(|power| Some(1 << power)).chain([None]);
        let times = time_ends().map(|end| Some(end as f64 / 1e9)).chain([None]);
        let packets = ends.zip(self.by_packets);
        let times = times.zip(self.by_time.iter().copied());
        CopyStats {
            distance_packets: packets
                .filter(|(_, duplicates)| *duplicates > 0)
                .map(|(at_most, duplicates)| PacketBucket {
                    at_most,
                    duplicates,
                })
                .collect(),
            distance_seconds: times
                .filter(|(_, duplicates)| *duplicates > 0)
                .map(|(at_most, duplicates)| TimeBucket {
                    at_most,
                    duplicates,
                })
                .collect(),
            without_time: self.without_time,
            interfaces: (self.by_interfaces.iter())
                .map(|((from, to), duplicates)| PairCount {
                    original: interface_name(*from),
                    copy: interface_name(*to),
                    duplicates: *duplicates,
                })
                .collect(),
            other_interfaces: self.other_interfaces,
            differing_fields: (Field::ALL.iter().zip(&self.by_field))
                .filter(|(_, duplicates)| **duplicates > 0)
                .map(|(field, duplicates)| FieldCount {
                    field: field.name(),
                    duplicates: *duplicates,
                })
                .collect(),
            identical: self.identical,
            unknown: self.unknown,
        }
    }
}

/// An interface as text: its section and its number there, both from 0.
fn interface_name(interface: InterfaceId) -> String {
    format!("{}.{}", interface.section, interface.index)
}

/// The report in the JSON of `--stats`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CopyStats {
    distance_packets: Vec<PacketBucket>,
    distance_seconds: Vec<TimeBucket>,
    without_time: u64,
    interfaces: Vec<PairCount>,
    other_interfaces: u64,
    differing_fields: Vec<FieldCount>,
    identical: u64,
    unknown: u64,
}

/// Duplicates at most this far away, and farther than the bucket before; `null` has no end.
#[derive(Debug, Clone, Serialize)]
struct PacketBucket {
    at_most: Option<u64>,
    duplicates: u64,
}

#[derive(Debug, Clone, Serialize)]
struct TimeBucket {
    at_most: Option<f64>,
    duplicates: u64,
}

#[derive(Debug, Clone, Serialize)]
struct PairCount {
    original: String,
    copy: String,
    duplicates: u64,
}

#[derive(Debug, Clone, Serialize)]
struct FieldCount {
    field: &'static str,
    duplicates: u64,
}

impl Observer for CopyReport {
    fn on_chunk(&mut self, chunk: &mut Chunk, _: &mut RunCounts) -> Result<(), Failure> {
        self.observe(chunk);
        Ok(())
    }

    fn stats(&self, _: &RunCounts, fields: &mut Fields) {
        fields.add("copies", self.copies());
    }

    fn words(&self, _: &RunCounts, words: &mut Words) {
        words.report = self.copies().lines();
    }
}

impl CopyStats {
    /// The report for people: one line for each of its parts, without a newline at the end.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut part = |title: &str, entries: Vec<(String, u64)>| {
            let mut line = format!("duplicates by {title}:");
            for (name, duplicates) in entries.iter().filter(|(_, duplicates)| *duplicates > 0) {
                let _ = write!(line, " {name}: {};", grouped(*duplicates));
            }
            if line.ends_with(';') {
                line.pop();
            } else {
                line += " none";
            }
            lines.push(line);
        };
        let bucket = |end: Option<String>| end.map_or("more".into(), |end| format!("to {end}"));
        let packets = self.distance_packets.iter();
        let packets = packets.map(|it| (bucket(it.at_most.map(grouped)), it.duplicates));
        part("distance in packets", packets.collect());
        let times = self.distance_seconds.iter();
        let times = times.map(|it| (bucket(it.at_most.map(time_text)), it.duplicates));
        let without = ("without time".into(), self.without_time);
        part("distance in time", times.chain([without]).collect());
        let pairs = self.interfaces.iter();
        let pairs = pairs.map(|it| (format!("{} to {}", it.original, it.copy), it.duplicates));
        let others = ("others".into(), self.other_interfaces);
        part(
            "interfaces (section.number)",
            pairs.chain([others]).collect(),
        );
        let fields = self.differing_fields.iter();
        let fields = fields.map(|it| (it.field.to_owned(), it.duplicates));
        let identical = ("none".into(), self.identical);
        part("differing fields", fields.chain([identical]).collect());
        if self.unknown > 0 {
            let unknown = grouped(self.unknown);
            lines.push(format!(
                "{unknown} duplicates of packets that the report does not remember any more"
            ));
        }
        lines
    }
}

/// A time in its largest whole unit.
fn time_text(seconds: f64) -> String {
    let nanoseconds = (seconds * 1e9).round() as u64;
    let units = [
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1000),
        ("ns", 1),
    ];
    let whole = |(_, unit): &&(&str, u64)| nanoseconds.is_multiple_of(*unit);
    let (name, unit) = units.iter().find(whole).unwrap_or(&("ns", 1));
    format!("{} {name}", nanoseconds / unit)
}

#[cfg(test)]
mod tests {
    use echoless::Verdict;
    use echoless_packets::key::{KeyOptions, KeyReader};
    use echoless_packets::synth::{Header, Stack};

    use super::*;

    #[test]
    fn memory_is_bounded_by_keys_and_pairs() {
        let stack = Stack::new(vec![Header::ethernet(), Header::ipv4(), Header::udp()]);
        let bytes = stack.bytes(b"");
        let packet = stack.packet(&bytes);
        let reader = KeyReader::new(KeyOptions::default()).unwrap();
        let ignored = reader.ignored_fields(&packet);
        let mut report = CopyReport::new();
        let mut chunk = Chunk::default();
        let (mut number, mut duplicates) = (0_u64, 0);
        while number < 3 * CAPACITY as u64 {
            chunk.clear();
            chunk.verdicts.of_keys.reset(1000);
            for index in 0..1000 {
                // Every third packet repeats the one before it, on another pair of interfaces.
                let copy = number % 3 == 2;
                chunk
                    .keys
                    .hashes
                    .push(KeyHash::from_uniform(number - u64::from(copy)));
                chunk.keys.packets.ignored.push(ignored);
                chunk
                    .keys
                    .packets
                    .blocks
                    .push(echoless_packets::framing::PacketBlock {
                        interface: InterfaceId {
                            section: 0,
                            index: (number % 5000) as u32,
                        },
                        link: packet.link,
                        data: 0..bytes.len(),
                        original_len: packet.original_len,
                        timestamp: None,
                    });
                if copy {
                    chunk.verdicts.of_keys.set(index, Verdict::Duplicate);
                    duplicates += 1;
                }
                number += 1;
            }
            report.observe(&chunk);
            assert!(report.last.len() <= CAPACITY);
            assert!(report.order.len() <= 2 * CAPACITY);
            assert!(report.by_interfaces.len() <= MOST_PAIRS);
        }
        // Beyond the bounds everything is still counted.
        let by_pair: u64 = report.by_interfaces.values().sum();
        assert_eq!(by_pair + report.other_interfaces, duplicates);
        assert_eq!((report.without_time, report.unknown), (duplicates, 0));
        assert!(report.last.len() > CAPACITY - 1000 && report.by_interfaces.len() == MOST_PAIRS);
    }
}
