//! How much later copies come to one interface than to another: the way between two points of the
//! network, and the difference of their clocks.
//!
//! A packet may have its earlier time on either interface, and is a copy on the other one all the
//! same. So what is measured of two interfaces has a sign: the time on the second one minus that on
//! the first, in the order of their options.

use std::collections::BTreeMap;

use echoless_records::chunk::Chunk;
use echoless_records::failure::Failure;
use echoless_records::number::grouped;
use serde::Serialize;

use super::distances::time_text;
use super::last_seen::LastSeen;
use crate::dedup::{Fields, Observer, RunCounts, Words};

/// One key in so many is followed, a power of two: that is enough for medians, and a table of all
/// keys would take longer than the rest of a run.
const KEYS_FOR_ONE: u64 = 16;

/// The most times that are kept of two interfaces.
const MOST_TIMES: usize = 1 << 12;

/// What is known of the copies between interfaces so far.
#[derive(Debug)]
pub(crate) struct Skew {
    names: Vec<String>,
    /// The interface and the time of the last packet of each key that is followed.
    last: LastSeen<(u32, i64)>,
    by_interfaces: BTreeMap<(u32, u32), Times>,
}

/// Times in nanoseconds, of which later ones are kept less often, so that they are few.
#[derive(Debug)]
struct Times {
    count: u64,
    /// One in so many is kept.
    stride: u64,
    kept: Vec<i64>,
}

impl Times {
    const NONE: Self = Self {
        count: 0,
        stride: 1,
        kept: Vec::new(),
    };

    fn add(&mut self, time: i64) {
        if self.count.is_multiple_of(self.stride) {
            self.kept.push(time);
        }
        self.count += 1;
        if self.kept.len() == MOST_TIMES {
            let mut number = 0_usize;
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// The times that 1, 50 and 99 of 100 are below, or at.
    fn quantiles(&self) -> [i64; 3] {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        [1, 50, 99].map(|share| sorted.get(last * share / 100).copied().unwrap_or(0))
    }
}

impl Skew {
    /// Of these interfaces, if they are several.
    pub(crate) fn of(names: &[String]) -> Option<Self> {
        (names.len() > 1).then(|| Self {
            names: names.to_vec(),
            last: LastSeen::new(),
            by_interfaces: BTreeMap::new(),
        })
    }

    /// Follows the packets of the next chunk of the stream.
    pub(crate) fn observe(&mut self, chunk: &Chunk) {
        let blocks = &chunk.keys.packets.blocks;
        for (index, (key, block)) in chunk.keys.hashes.iter().zip(blocks).enumerate() {
            let Some(time) = block.timestamp.filter(|_| key.get() % KEYS_FOR_ONE == 0) else {
                continue;
            };
            let interface = block.interface.index;
            let before = self.last.replace(*key, (interface, time));
            let before = before.filter(|_| chunk.verdicts.of_keys.is_duplicate(index));
            if let Some((other, then)) = before.filter(|(other, _)| *other != interface) {
                let (pair, later) = match other < interface {
                    true => ((other, interface), time.saturating_sub(then)),
                    false => ((interface, other), then.saturating_sub(time)),
                };
                let times = self.by_interfaces.entry(pair).or_insert(Times::NONE);
                times.add(later);
            }
        }
    }

    fn name(&self, interface: u32) -> &str {
        self.names.get(interface as usize).map_or("", |name| name)
    }

    /// A line for each two interfaces that have copies.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.by_interfaces.iter().map(|((first, second), times)| {
            let [low, median, high] = times.quantiles().map(signed);
            let (first, second) = (self.name(*first), self.name(*second));
            let copies = grouped(times.count);
            format!(
                "copies on {second} are {median} behind those on {first} (median; {low} to {high} \
                 without the outermost 2 %), by {copies} of them"
            )
        })
    }

    /// The same for programs.
    pub(crate) fn stats(&self) -> Vec<SkewStats<'_>> {
        let pairs = self.by_interfaces.iter();
        let pairs = pairs.map(|((first, second), times)| {
            let [low_ns, median_ns, high_ns] = times.quantiles();
            SkewStats {
                first: self.name(*first),
                second: self.name(*second),
                copies: times.count,
                low_ns,
                median_ns,
                high_ns,
            }
        });
        pairs.collect()
    }
}

fn signed(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    format!("{sign}{}", time_text(nanoseconds.unsigned_abs()))
}

/// Two interfaces in the JSON of `--stats`.
#[derive(Debug, Serialize)]
pub(crate) struct SkewStats<'a> {
    first: &'a str,
    second: &'a str,
    /// The copies that were followed.
    copies: u64,
    low_ns: i64,
    median_ns: i64,
    high_ns: i64,
}

impl Observer for Skew {
    fn on_chunk(&mut self, chunk: &mut Chunk, _: &mut RunCounts) -> Result<(), Failure> {
        self.observe(chunk);
        Ok(())
    }

    fn stats(&self, _: &RunCounts, fields: &mut Fields) {
        fields.add("skew", Skew::stats(self));
    }

    fn words(&self, _: &RunCounts, words: &mut Words) {
        words.lines.extend(self.lines());
    }
}

#[cfg(test)]
mod tests {
    use echoless::{KeyHash, Verdict};
    use echoless_packets::framing::PacketBlock;
    use echoless_packets::{InterfaceId, LinkType};

    use super::*;

    /// A chunk with packets of these keys, interfaces and times, of which the first with a key is
    /// fresh.
    fn chunk(packets: &[(u64, u32, i64)]) -> Chunk {
        let mut chunk = Chunk::default();
        chunk.verdicts.of_keys.reset(packets.len());
        let mut seen = Vec::new();
        for (at, (key, index, time)) in packets.iter().enumerate() {
            chunk.keys.hashes.push(KeyHash::from_uniform(*key));
            chunk.keys.packets.blocks.push(PacketBlock {
                interface: InterfaceId {
                    section: 0,
                    index: *index,
                },
                link: LinkType::ETHERNET,
                data: 0..0,
                original_len: 0,
                timestamp: Some(*time),
            });
            if seen.contains(key) {
                chunk.verdicts.of_keys.set(at, Verdict::Duplicate);
            }
            seen.push(*key);
        }
        chunk
    }

    #[test]
    fn times_have_the_sign_of_the_second_interface() {
        let mut skew = Skew::of(&["a".into(), "b".into(), "c".into()]).unwrap();
        let packets = [
            (0, 0, 1000),
            // The same interface, and a key that is not followed.
            (0, 0, 1200),
            (16, 1, 1250),
            (7, 0, 0),
            (7, 1, 1),
            (0, 1, 4200),
            // First on the second one.
            (16, 0, 1300),
            // Earlier than its original, which was read before.
            (0, 2, 4000),
            // Fresh.
            (32, 0, 5000),
        ];
        skew.observe(&chunk(&packets));
        let found = serde_json::to_value(skew.stats()).unwrap();
        let pair = |first: &str, second: &str, copies: u64, times: [i64; 3]| {
            serde_json::json!({
                "first": first, "second": second, "copies": copies,
                "low_ns": times[0], "median_ns": times[1], "high_ns": times[2],
            })
        };
        let expected = [
            pair("a", "b", 2, [-50, -50, -50]),
            pair("b", "c", 1, [-200; 3]),
        ];
        assert_eq!(found, serde_json::json!(expected));
        let lines: Vec<_> = skew.lines().collect();
        assert!(lines[1].starts_with("copies on c are -200 ns behind those on b"));
        assert!(Skew::of(&["a".into()]).is_none());
    }

    #[test]
    fn quantiles_of_many_times_are_those_of_all() {
        let mut times = Times::NONE;
        for time in 0..1_000_000 {
            times.add((time * 7919) % 1_000_003);
            assert!(times.kept.len() < MOST_TIMES);
        }
        let [low, median, high] = times.quantiles();
        assert!((5000..15_000).contains(&low), "{low}");
        assert!((480_000..520_000).contains(&median), "{median}");
        assert!((985_000..995_000).contains(&high), "{high}");
    }
}
